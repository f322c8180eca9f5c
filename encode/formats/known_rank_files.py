r"""Known rank files: the pattern and the special tokens, which they do not carry.

A rank file is recognised, in this order, by its own name; by the class that tokenizer_config.json names (`auto_map`,
`tokenizer_class`); by the `model_type` of config.json; by the name of a `tokenization_*.py` beside it, which is never
executed or read; and by its content. The table is `known_rank_files.toml`.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PATTERNS: dict[str, str] = {}
"""The pre-tokenizers' patterns, and parts of them, by name."""
for _name, _pattern in _TABLE["patterns"].items():
    PATTERNS[_name] = re.sub(r"%\(([\w-]+)\)", lambda part: PATTERNS[part[1]], _pattern)


class KnownRankFile(NamedTuple):
    """The pattern and the special tokens of a known tiktoken rank file, which the file itself lacks.

    Attributes:
        name: The name of the vocabulary.
        pattern: The pre-tokenizer's pattern, as fancy-regex reads it.
        special_tokens: The ids of special tokens by their texts.
        following: More special tokens, with the next ids after the ranks, in this order.
        reserved: The number of ids after the ranks that are special tokens: `<|reserved_token_ID|>` unless
            tokenizer_config.json names them. Never together with `following`.
        nfc: Whether text is normalized to form C first.
        not_with: Keys of config.json that show that a model has other special tokens; then the file is not recognised.

    """

    name: str
    pattern: str
    special_tokens: Mapping[str, int] = {}
    following: tuple[str, ...] = ()
    reserved: int = 0
    nfc: bool = False
    not_with: Collection[str] = ()


_NUMBERS = re.compile(r"\{([0-9]+):([0-9]+):?([0-9.]*)\}")


def _tokens(text: str) -> Iterator[str]:
    for name in text.split():
        if numbers := _NUMBERS.search(name):
            start, stop, step = numbers.groups()
            for i in range(int(start), int(stop)):
                yield name.replace(numbers[0], f"{i * float(step):.2f}" if step else str(i))
        else:
            yield name


def _known(pattern: str, special_tokens: Sequence[Any] = (), following: str = "", **row: Any) -> KnownRankFile:
    special = {name: first + i for first, text in special_tokens for i, name in enumerate(_tokens(text))}
    fields = KnownRankFile._fields & row.keys()
    return KnownRankFile(
        pattern=PATTERNS[pattern],
        special_tokens=special,
        following=(*_tokens(following),),
        **{f: row[f] for f in fields},
    )


_KNOWN = {key: _known(**row) for key, row in _TABLE["known"].items()}
_WHISPER = _KNOWN["whisper"]
_LANGUAGES_END = _WHISPER.following.index("<|translate|>")
_WHISPER_V3 = _WHISPER._replace(  # the large models from version 3 on
    name="OpenAI's Whisper with 100 languages",
    following=(*_WHISPER.following[:_LANGUAGES_END], "<|yue|>", *_WHISPER.following[_LANGUAGES_END:]),
)
_WHISPER_V3_ROWS = 51866
_MAX_ID_DIGITS = 9  # real ids have six; `int` refuses more than 4,300


def _recognised_by(sign: str) -> dict[str, KnownRankFile]:
    return {value: _KNOWN[key] for key, row in _TABLE["known"].items() for value in row.get(sign, ())}


_BY_FILE, _BY_CLASS, _BY_CODE, _BY_MODEL_TYPE, _BY_SHA256 = map(
    _recognised_by, ("files", "classes", "code", "model_types", "sha256")
)


class Recognised(NamedTuple):
    """A rank file that was recognised as a known one.

    Attributes:
        known: The pattern and the special tokens.
        by: By what it was recognised, such as "the name tokenizer.model"; for messages.
        named: The ids to which tokenizer_config.json gives a token; they get no reserved token. Empty without that
            file, and for a rank file recognised by its content.

    """

    known: KnownRankFile
    by: str
    named: frozenset[int] = frozenset()


def recognise(
    name: str,
    tokenizer_config: Mapping[str, Any] = {},
    config: Mapping[str, Any] = {},
    code: Collection[str] = (),
) -> Recognised | None:
    """Recognise a known rank file by its name and by the files beside it; return None if it is unknown.

    Args:
        name: The file's name.
        tokenizer_config: The content of tokenizer_config.json.
        config: The content of config.json.
        code: The names of the `tokenization_*.py` files beside it.

    """
    for known, by in _candidates(name, tokenizer_config, config, code):
        if known is not None:
            named = tokenizer_config.get("added_tokens_decoder")
            keys = named if isinstance(named, dict) else ()
            ids = frozenset(int(key) for key in keys if key.isdecimal() and len(key) <= _MAX_ID_DIGITS)
            return None if any(key in config for key in known.not_with) else Recognised(known, by, ids)
    return None


def recognise_content(data: bytes) -> Recognised | None:
    """Recognise a known rank file by the hash of its content; return None if it is unknown."""
    known = _BY_SHA256.get(hashlib.sha256(data).hexdigest())
    return None if known is None else Recognised(known, "its content")


def _candidates(
    name: str, tokenizer_config: Mapping[str, Any], config: Mapping[str, Any], code: Collection[str]
) -> Iterator[tuple[KnownRankFile | None, str]]:
    by_file = _BY_FILE.get(name)
    if by_file is _WHISPER and config.get("vocab_size") == _WHISPER_V3_ROWS:
        yield _WHISPER_V3, f"the name {name} and config.json's vocab_size, {_WHISPER_V3_ROWS}"
    yield by_file, f"the name {name}"
    auto_map = tokenizer_config.get("auto_map")
    classes = auto_map.get("AutoTokenizer") if isinstance(auto_map, dict) else None
    for class_name in classes if isinstance(classes, list) else [classes]:
        if isinstance(class_name, str):
            bare = class_name.rpartition("--")[2]  # behind the repository that the class may be in
            yield _BY_CLASS.get(bare), f"tokenizer_config.json's auto_map, {bare}"
    if isinstance(class_name := tokenizer_config.get("tokenizer_class"), str):
        yield _BY_CLASS.get(class_name), f"tokenizer_config.json's tokenizer_class, {class_name}"
    if isinstance(model_type := config.get("model_type"), str):
        yield _BY_MODEL_TYPE.get(model_type), f"config.json's model_type, {model_type}"
    for file in sorted(code):
        yield _BY_CODE.get(file), f"the file {file}"
