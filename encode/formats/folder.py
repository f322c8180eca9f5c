"""The files beside a tokenizer file in a model folder: configuration and chat templates.

`docs/explanation/exactness.md` has the rule. Added tokens and roles are those of `declared_tokens`; flags are reported and
not applied; the ids that end a generation are the union of all files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from tokenweir.encode.components.added_tokens import with_real_ids, with_roles
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.files import read_text
from tokenweir.encode.formats.declared_tokens import (
    CONFIG,
    MORE_TOKENS,
    TOKEN_MAP,
    Declared,
    added_token,
    content,
    read_declared,
    tokens_to_add,
)
from tokenweir.encode.formats.known_rank_files import Recognised, recognise, recognise_content
from tokenweir.encode.formats.programs import prompt_programs, template_of_program
from tokenweir.encode.spec import AddedToken, RankBPE, SentencePiece, TemplateProcessing, TokenizerSpec

CHANGING_CLASSES = frozenset(
    f"{name}Tokenizer"
    for name in [
        *("Albert", "Barthez", "Camembert", "FNet", "M2M100", "MBart", "MBart50", "Nllb", "PLBart", "Pegasus"),
        *("XGLM", "XLMRoberta", "XLNet"),
    ]
)
"""Classes of transformers whose ids are not those of their SentencePiece model, or that prepare the text in Python."""


def beside(path: Path) -> list[Path]:
    """Return the other files of its folder that reading the tokenizer file `path` may open, whether they exist or not."""
    folder = path.parent
    names = (CONFIG, TOKEN_MAP, MORE_TOKENS, "generation_config.json", "config.json", "chat_template.jinja")
    more = [*folder.glob("tokenization_*.py"), *(folder / "additional_chat_templates").glob("*.jinja")]
    more += prompt_programs(folder)
    return [*(folder / name for name in names), *sorted(more)]


def read_beside(spec: TokenizerSpec, folder: Path, *, tokenizer_config: bool = True) -> TokenizerSpec:
    """Return a spec completed by the configuration files and chat templates of a model folder, as far as they exist.

    Args:
        spec: The spec read from the tokenizer file.
        folder: The model folder.
        tokenizer_config: Whether the tokens that tokenizer_config.json declares count. If not, only its chat templates
            do.

    Raises:
        TokenizerFileError: A file is not a JSON object, or an entry has the wrong type.

    """
    templates = read_chat_templates(folder, config := _json(folder / CONFIG))
    generation, model = _json(folder / "generation_config.json"), _json(folder / "config.json")
    text_model: dict[str, Any] = nested if isinstance(nested := model.get("text_config"), dict) else model
    eos = {*_ids(generation, "eos_token_id"), *_ids(model, "eos_token_id"), *_ids(text_model, "eos_token_id")}
    if tokenizer_config:
        spec = _with_declared(spec, config, _json(folder / TOKEN_MAP), _json(folder / MORE_TOKENS))
    return replace(
        spec,
        eos_ids=tuple(sorted({*spec.eos_ids, *eos})),
        chat_templates={**spec.chat_templates, **templates},
        response_template=found if isinstance(found := config.get("response_template"), dict) else None,
        vocab_size=_count(text_model, "vocab_size"),
    )


def _with_declared(
    spec: TokenizerSpec, config: dict[str, Any], token_map: dict[str, Any], more_tokens: dict[str, Any]
) -> TokenizerSpec:
    """Return `spec` with the added tokens, roles and flags that the files beside it declare.

    For a SentencePiece model, which has no post-processor, the flags `add_bos_token` and `add_eos_token` decide what is
    added to a text, as in transformers 5.24. For other models they are only recorded.

    Args:
        spec: The spec read from the tokenizer file.
        config: The content of tokenizer_config.json.
        token_map: The content of special_tokens_map.json.
        more_tokens: The content of added_tokens.json.

    """
    declared = read_declared(config, token_map, more_tokens, spec.added_tokens, spec.padding)
    spec = replace(
        spec,
        added_tokens=_added_tokens(spec, declared),
        special_roles={**spec.special_roles, **declared.special_roles()},
        add_bos=_flag(config, "add_bos_token"),
        add_eos=_flag(config, "add_eos_token"),
    )
    if not isinstance(spec.model, SentencePiece):
        return spec
    around = [_around(spec, role) if wanted else [] for role, wanted in (("bos", spec.add_bos), ("eos", spec.add_eos))]
    return replace(spec, post_processor=TemplateProcessing.around(*around) if any(around) else None)


def _around(spec: TokenizerSpec, role: str) -> list[tuple[str, int]]:
    """Return the token that plays a role ("bos" or "eos") in a SentencePiece model, as a list of one (token, id).

    Raise `TokenizerFileError` if there is no such token.
    """
    assert isinstance(spec.model, SentencePiece)
    token = spec.special_roles.get(f"{role}_token")
    if token is None:
        raise TokenizerFileError(f"{CONFIG}: add_{role}_token is set and there is no {role}_token")
    ids = {t.content: t.id for t in with_real_ids(with_roles(spec), spec.model)}
    token_id = ids.get(token)
    return [(token, spec.model.pieces.index(token) if token_id is None else token_id)]


def _added_tokens(spec: TokenizerSpec, declared: Declared) -> tuple[AddedToken, ...]:
    """Return the spec's tokens and those that the files beside it declare."""
    match spec.model:
        case SentencePiece():
            return _beside_pieces(spec, spec.model, declared)
        case RankBPE():  # whose library finds special tokens in one way only, so that most flags do not count
            listed = {"", *(token.content for token in spec.added_tokens)}
            normalized = spec.normalizer is not None
            more = [(i, token) for i, token in sorted(declared.tokens.items()) if token.content not in listed]
            tokens = (AddedToken(token.content, i, normalized=normalized, special=token.special) for i, token in more)
            return (*spec.added_tokens, *tokens)
        case _:
            return (*spec.added_tokens, *tokens_to_add(spec.added_tokens, declared))


def _beside_pieces(spec: TokenizerSpec, model: SentencePiece, declared: Declared) -> tuple[AddedToken, ...]:
    """Return the added tokens of a SentencePiece model: those of the spec and those that the files beside it declare.

    A declared token replaces one of the spec with the same text. All of them are matched in text that is not normalized,
    because normalized text has U+2581 before it.
    """
    tokens = {token.content: token for token in spec.added_tokens}
    for token_id, token in sorted(declared.tokens.items()):
        if not token.content:
            continue
        special = token.content in tokens and tokens[token.content].special
        tokens[token.content] = replace(token.added(token_id, special=special), normalized=False)
    pieces = set(model.pieces)
    for named in (*declared.roles.values(), *declared.extra):
        if content(named) and content(named) not in tokens and content(named) not in pieces:
            tokens[content(named)] = replace(added_token(named, special=True), normalized=False)
    return tuple(tokens.values())


def recognise_beside(path: Path, data: bytes) -> Recognised | None:
    """Recognise a known rank file by its name, the files of its folder and its content; None if it is unknown.

    Of code in the folder only the file names count. `data` is the content.
    """
    code = [file.name for file in path.parent.glob("tokenization_*.py")]
    by_name = recognise(path.name, _json(path.parent / CONFIG), _json(path.parent / "config.json"), code)
    return by_name or recognise_content(data)


def check_class_beside(folder: Path) -> None:
    """Raise if a SentencePiece model's folder names a class of transformers that changes the model's ids or its text.

    Raises:
        TokenizerFileError: tokenizer_config.json is not a JSON object.
        UnsupportedTokenizerError: It names such a class.

    """
    name = _json(folder / "tokenizer_config.json").get("tokenizer_class")
    if isinstance(name, str) and name.removesuffix("Fast") in CHANGING_CLASSES:
        raise UnsupportedTokenizerError(
            f"tokenizer_config.json: {name} gives a SentencePiece model's pieces other ids or changes the text before it;"
            " a tokenizer.json of the model can be loaded"
        )


def read_chat_templates(folder: Path, config: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the chat templates of a model folder, by name; the plain one is `default`.

    chat_template.jinja replaces the `chat_template` of tokenizer_config.json, which is a string or a list of
    `{name, template}`. Each additional_chat_templates/NAME.jinja is a template NAME. A folder without templates whose
    prompts are written by a known program gets the template in `programs` that stands for it.

    Args:
        folder: The model folder.
        config: The content of tokenizer_config.json; None reads the file.

    Raises:
        TokenizerFileError: A file is unreadable, or an entry has the wrong type.

    """
    config = _json(folder / "tokenizer_config.json") if config is None else config
    templates: dict[str, str] = {}
    match config.get("chat_template"):
        case None:
            pass
        case str(source):
            templates["default"] = source
        case [*entries]:
            for entry in entries:
                match entry:
                    case {"name": str(name), "template": str(source)}:
                        templates[name] = source
                    case _:
                        raise TokenizerFileError(f"tokenizer_config.json: chat_template has an entry {entry!r:.60}")
        case other:
            raise TokenizerFileError(f"tokenizer_config.json: chat_template is {other!r:.60}")
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        templates[path.stem] = read_text(path)
    if (path := folder / "chat_template.jinja").exists():
        templates["default"] = read_text(path)
    if not templates and (written := template_of_program(folder)) is not None:
        templates["default"] = written
    return templates


def _json(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        value = msgspec.json.decode(read_text(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise TokenizerFileError(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise TokenizerFileError(f"{path}: an object is expected, not {type(value).__name__}")
    return value


def _flag(config: dict[str, Any], key: str) -> bool | None:
    value = config.get(key)
    if value is not None and not isinstance(value, bool):
        raise TokenizerFileError(f"tokenizer_config.json: {key} is {value!r:.60}")
    return value


def _ids(config: dict[str, Any], key: str) -> list[int]:
    """Return the token ids under a key of a configuration, which has one id or a list; empty if the key is missing."""
    value = config.get(key)
    ids = value if isinstance(value, list) else [] if value is None else [value]
    for token_id in ids:
        if type(token_id) is not int:
            raise TokenizerFileError(f"{key}: {token_id!r:.60} is not a token id")
    return ids


def _count(config: dict[str, Any], key: str) -> int | None:
    value = config.get(key)
    if value is not None and (type(value) is not int or not 0 < value < 1 << 24):
        raise TokenizerFileError(f"config.json: {key} is {value!r:.60}")
    return value
