"""Mistral's tekken.json (mistral-common 1.13, tokens/tokenizers/tekken.py): ranks, a pattern and special tokens.

Ids begin with the special tokens, so a token's id is its rank and their number. The file lists more tokens than count:
only as many as `default_vocab_size` has room for.

mistral-common's `encode` never matches special tokens in text, which is `parse_special=False` here, and adds a
beginning or end token only when told to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from tokenweir.encode.build import MAX_IDS
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import AddedToken, Pattern, RankBPE, Split, TokenizerSpec

OLD_SPECIAL_TOKENS = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    *("[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"),
    *("[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
"""The special tokens of files that do not list them, by id."""

LAST_VERSION_WITHOUT_LIST = 7

MAX_SPECIAL_TOKENS = 1 << 16
"""The most special tokens of a file, which need not list them to have them; real ones have 1,000."""

ROLES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


class _Config(Struct):
    pattern: str
    default_vocab_size: int
    default_num_special_tokens: int
    version: str


class _Entry(Struct, gc=False):
    rank: int
    token_bytes: bytes  # base64 in the file


class _Special(Struct):
    rank: int
    token_str: str


class _File(Struct):
    config: _Config
    vocab: list[_Entry]
    special_tokens: list[_Special] | None = None


class _Keys(Struct):
    """The keys by which a tekken.json is told from a tokenizer.json."""

    config: Raw = Raw()
    vocab: Raw = Raw()
    model: Raw = Raw()


def recognises(data: bytes) -> bool:
    """Return whether the content of a JSON file looks like that of a tekken.json."""
    if b'"token_bytes"' not in data:  # costs a hundredth of the reading of keys
        return False
    try:
        keys = msgspec.json.decode(data, type=_Keys)
    except (msgspec.DecodeError, RecursionError):
        return False
    return bool(keys.config and keys.vocab and not keys.model)


def read(data: bytes) -> TokenizerSpec:
    """Read a tekken.json; return the spec of the tokenizer.

    Raises:
        TokenizerFileError: The file is not JSON, has a value of the wrong type, or is inconsistent; the message has the
            place.
        UnsupportedTokenizerError: It has too many ids or special tokens.

    """
    try:
        file = msgspec.json.decode(data, type=_File)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        raise TokenizerFileError(f"{place.strip('`').removeprefix('$.') or 'the file'}: {message}") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise TokenizerFileError(f"not a tekken.json: {error}") from error
    config = file.config
    special = config.default_num_special_tokens
    if config.default_vocab_size > MAX_IDS:
        raise UnsupportedTokenizerError(f"{config.default_vocab_size} ids; at most {MAX_IDS} fit")
    if special > MAX_SPECIAL_TOKENS:
        raise UnsupportedTokenizerError(f"config: {special} special tokens; at most {MAX_SPECIAL_TOKENS} are possible")
    if not 0 <= special <= config.default_vocab_size <= special + len(file.vocab):
        raise TokenizerFileError(
            f"config: default_vocab_size {config.default_vocab_size} is not made of default_num_special_tokens "
            f"{special} and some of the {len(file.vocab)} tokens in vocab"
        )
    names = _special_tokens(file)
    return TokenizerSpec(
        model=RankBPE(_ranks(file.vocab[: config.default_vocab_size - special], special)),
        pre_tokenizer=Split(
            pattern=Pattern(Regex=config.pattern), behavior="Isolated", dialect="fancy-regex", unmatched="drop"
        ),
        added_tokens=tuple(AddedToken(name, id=i, special=True) for i, name in enumerate(names)),
        special_roles={role: name for role, name in ROLES.items() if name in names},
        source=f"tekken.json {config.version}",
    )


def _ranks(entries: Sequence[_Entry], shift: int) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for i, entry in enumerate(entries):
        token = entry.token_bytes
        if entry.rank != i:
            raise TokenizerFileError(f"vocab[{i}]: rank {entry.rank} instead of {i}")
        if not token or token in ranks:
            first = f"there already, in vocab[{ranks[token] - shift}]" if token else "empty"
            raise TokenizerFileError(f"vocab[{i}]: token {token!r:.60} is {first}")
        if i < 256 and token != bytes([i]):
            raise TokenizerFileError(f"vocab[{i}]: token {token!r:.60} where byte {i} belongs")
        ranks[token] = i + shift
    return ranks


def _special_tokens(file: _File) -> list[str]:
    """Return the texts of all special tokens by id; reserved ids without a text get names such as `<SPECIAL_20>`."""
    if not (version := re.fullmatch(r"v(\d{1,9})", file.config.version)):
        raise TokenizerFileError(f"config.version: {file.config.version!r:.60} is not v and a number")
    if file.special_tokens is not None:
        names = []
        for i, token in enumerate(file.special_tokens):
            if token.rank != i:
                raise TokenizerFileError(f"special_tokens[{i}]: rank {token.rank} instead of {i}")
            names.append(token.token_str)
    elif int(version[1]) > LAST_VERSION_WITHOUT_LIST:
        raise TokenizerFileError(f"special_tokens: missing, which only versions up to v{LAST_VERSION_WITHOUT_LIST} may")
    else:
        names = list(OLD_SPECIAL_TOKENS)
    count = file.config.default_num_special_tokens
    if len(names) > count:
        raise TokenizerFileError(f"config.default_num_special_tokens: {count}, and there are {len(names)}")
    names += [f"<SPECIAL_{i}>" for i in range(len(names), count)]
    seen: set[str] = set()
    for i, name in enumerate(names):
        if not name or name in seen:
            raise TokenizerFileError(f"special_tokens[{i}]: {name!r:.60} is " + ("there already" if name else "empty"))
        seen.add(name)
    return names
