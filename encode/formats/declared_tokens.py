"""Added tokens and roles that the files beside a tokenizer declare.

The reference is `PreTrainedTokenizerFast.from_pretrained(folder)` of transformers 5.24 (tokenization_utils_base.py,
`_from_pretrained` and `__init__`; tokenization_utils_tokenizers.py, `__init__`). Files are tokenizer_config.json and, where
that has no `added_tokens_decoder`, special_tokens_map.json and added_tokens.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.spec import AddedToken

ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The roles that every model may have. Any other key that ends in `_token` and has a text is a role of the model's own."""

CONFIG, TOKEN_MAP, MORE_TOKENS = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
_LISTED, _EXTRA, _OLD_EXTRA = "added_tokens_decoder", "extra_special_tokens", "additional_special_tokens"
_OWN_ROLES = "model_specific_special_tokens"


class FlaggedToken(Struct, frozen=True):
    """A token of a model folder's files, with its flags; `AddedToken` explains the other fields.

    Attributes:
        normalized: Whether the token is matched in normalized text. None if the file does not say it: then only a token
            that is not special is.

    """

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool | None = None
    special: bool = False

    def added(self, token_id: int | None = None, *, special: bool = False) -> AddedToken:
        """Convert to an `AddedToken` with this id; with `special`, it is special, whatever its own flag says."""
        special = special or self.special
        normalized = not special if self.normalized is None else self.normalized
        return AddedToken(self.content, token_id, self.single_word, self.lstrip, self.rstrip, normalized, special)


Spelling = str | FlaggedToken
"""A token as a file names it: by its text alone, or with its flags."""


class Declared(NamedTuple):
    """The tokens that the files beside a tokenizer declare.

    Attributes:
        tokens: The tokens that are listed with an id, by that id.
        roles: The token that plays each role, such as `bos_token`; the roles of `ROLES` come first.
        extra: Special tokens without a role.

    """

    tokens: Mapping[int, FlaggedToken]
    roles: Mapping[str, Spelling]
    extra: Sequence[Spelling]

    def special_roles(self) -> dict[str, str]:
        """Return for each role the text of the token that plays it."""
        return {role: content(token) for role, token in self.roles.items()}


def content(token: Spelling) -> str:
    """Return the text of a token."""
    return token if isinstance(token, str) else token.content


def read_declared(
    config: Mapping[str, Any],
    token_map: Mapping[str, Any],
    more_tokens: Mapping[str, Any],
    listed: Sequence[AddedToken],
    padding: Mapping[str, object] | None,
) -> Declared:
    """Read the tokens that the files of a model folder declare.

    Args:
        config: The content of `tokenizer_config.json`. If it has an `added_tokens_decoder`, the next three arguments are
            ignored.
        token_map: The content of `special_tokens_map.json`.
        more_tokens: The content of `added_tokens.json`.
        listed: The added tokens of the tokenizer file.
        padding: The padding settings of the tokenizer file. Their token is the padding token if no file declares one.

    Raises:
        TokenizerFileError: An entry has the wrong type.

    """
    values = dict(config)
    if _OLD_EXTRA in values and not values.get(_EXTRA):
        values[_EXTRA] = values.pop(_OLD_EXTRA)
    own = {key: values.pop(key) for key in config if _is_own_role(key) and isinstance(config[key], str)}
    if isinstance(values.get(_EXTRA), dict):
        own |= values.pop(_EXTRA)
    if own:
        values[_OWN_ROLES] = own
    if _LISTED in values:
        tokens = _tokens_with_ids(values[_LISTED] or {})
    else:
        _add_token_map(values, token_map)
        tokens = _old_tokens(values, more_tokens, listed)
    by_content = {token.content: token for _, token in tokens}  # those whose id another one takes, too
    if _OLD_EXTRA in values and _EXTRA not in values:
        values[_EXTRA] = values.pop(_OLD_EXTRA)
    if padding is not None:
        values.setdefault("pad_token", padding.get("pad_token"))
    roles: dict[str, Spelling | None] = dict.fromkeys(ROLES)
    for role in ROLES:
        if (value := values.get(role)) is not None:
            token = _spelling(value, role)
            roles[role] = by_content.get(content(token), token)
    roles |= {
        key: token
        for key, value in values.items()
        if _is_own_role(key) and isinstance(token := _converted(value), str | FlaggedToken)
    }
    own_roles, extra = values.get(_OWN_ROLES) or {}, values.get(_EXTRA)
    if not isinstance(own_roles, dict) or not isinstance(extra, list | None):
        wrong = _EXTRA if isinstance(own_roles, dict) else _OWN_ROLES
        raise TokenizerFileError(f"{CONFIG}: {wrong} is {values[wrong]!r:.60}")
    roles |= {role: _spelling(value, f"{_EXTRA}.{role:.60}") for role, value in own_roles.items()}
    named = {role: token for role, token in roles.items() if token is not None}
    return Declared(dict(tokens), named, [_spelling(value, f"{_EXTRA}[{i}]") for i, value in enumerate(extra or ())])


def tokens_to_add(listed: Sequence[AddedToken], declared: Declared) -> tuple[AddedToken, ...]:
    """Return the tokens that transformers adds to those of a tokenizer.json, in the order in which it adds them.

    A token that the tokenizer.json lists may be among them, with other flags, which then replace its own. An added token
    that plays a role is special.

    Args:
        listed: The added tokens of the tokenizer.json.
        declared: The tokens that the files beside it declare.

    """
    added: list[Spelling] = [token for _, token in sorted(declared.tokens.items())]
    contents = {token.content for token in listed if token.content} | set(map(content, added))
    named_before: set[str | AddedToken] = set()  # where a text alone equals no token with flags
    for token in (*declared.roles.values(), *declared.extra):
        spelled = token if isinstance(token, str) else token.added()
        if content(token) not in contents and spelled not in named_before:
            added.append(token)
            named_before.add(spelled)
    named = set(map(content, declared.roles.values()))
    return tuple(added_token(token, special=content(token) in named) for token in added if content(token))


def added_token(token: Spelling, *, special: bool) -> AddedToken:
    """Convert a token, given as a text or with flags, to an `AddedToken`. A text alone is special; flags, if `special`."""
    return AddedToken(token, special=True) if isinstance(token, str) else token.added(special=special)


def _is_own_role(key: str) -> bool:
    return key.endswith("_token") and key not in ROLES


def _add_token_map(values: dict[str, Any], token_map: Mapping[str, Any]) -> None:
    """Merge the entries of special_tokens_map.json into `values`, those of tokenizer_config.json, and replace these.

    Lists of extra special tokens are joined. A token of a wrong type raises `TokenizerFileError`.
    """
    for key, value in token_map.items():
        if key in ROLES and not isinstance(value, str | dict | None):
            raise TokenizerFileError(f"{TOKEN_MAP}: {key} is {value!r:.60}")
        if key == _EXTRA and isinstance(value, list):
            existing = values.get(_EXTRA)
            merged = list(existing) if isinstance(existing, list) else []
            for entry in value:
                token = _made({**entry, "special": True}, TOKEN_MAP, key) if isinstance(entry, dict) else entry
                if token not in merged:
                    merged.append(token)
            value = merged
        elif key != _EXTRA and isinstance(value, dict):
            value = _made({**value, "special": True}, TOKEN_MAP, key)
        values[key] = value
    if isinstance(values.get(_EXTRA), dict):
        values[_OWN_ROLES] = {**values.get(_OWN_ROLES, {}), **values.pop(_EXTRA)}


def _old_tokens(
    values: Mapping[str, Any], more_tokens: Mapping[str, Any], listed: Sequence[AddedToken]
) -> list[tuple[int, FlaggedToken]]:
    """Return the tokens of a folder without an `added_tokens_decoder`: (id, token).

    They are those of added_tokens.json (`more_tokens`), followed by those that the tokenizer file lists with an id.
    `values` are the entries of the configuration files, which tell the special ones.
    """
    extra = values.get(_EXTRA)
    named = [*map(values.get, ROLES), *(extra if isinstance(extra, list) else ())]
    special = {content(token) for token in named if isinstance(token, str | FlaggedToken)}
    tokens = []
    for text, token_id in more_tokens.items():
        if type(token_id) is not int:
            raise TokenizerFileError(f"{MORE_TOKENS}: {text[:60]!r} has the id {token_id!r:.60}")
        tokens.append((token_id, FlaggedToken(text, normalized=text not in special, special=text in special)))
    for token in listed:
        if token.id is not None:
            flags = (token.single_word, token.lstrip, token.rstrip, token.normalized, token.special)
            tokens.append((token.id, FlaggedToken(token.content, *flags)))
    return tokens


def _tokens_with_ids(entries: Any) -> list[tuple[int, FlaggedToken]]:
    try:
        return [(int(token_id), _made(entry, CONFIG, _LISTED)) for token_id, entry in entries.items()]
    except (AttributeError, ValueError) as error:
        if isinstance(error, TokenizerFileError):
            raise
        raise TokenizerFileError(f"{CONFIG}: {_LISTED}: {error}") from error


def _made(entry: Any, file: str, key: str) -> FlaggedToken:
    """Convert a JSON object that describes a token; raise `TokenizerFileError`, with `file` and `key`, for other values."""
    if not isinstance(entry, dict):
        raise TokenizerFileError(f"{file}: {key}: {entry!r:.60} is no object")
    try:
        return msgspec.convert(entry, FlaggedToken)
    except (msgspec.ValidationError, TypeError) as error:
        raise TokenizerFileError(f"{file}: {key}: {error}") from error


def _converted(value: Any) -> Any:
    """Convert a JSON object with `"__type": "AddedToken"` to a token; return any other value unchanged."""
    return _made(value, CONFIG, "a token") if isinstance(value, dict) and value.get("__type") == "AddedToken" else value


def _spelling(value: Any, place: str) -> Spelling:
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        return _made(value, CONFIG, place)
    if isinstance(value, str | FlaggedToken):
        return value
    raise TokenizerFileError(f"{CONFIG}: {place} is {value!r:.60}")
