r"""Pre-tokenizers by their names in GGUF files (`tokenizer.ggml.pre`): the table `pre.toml`.

A GGUF file names its pre-tokenizer only. The components here are those of each family's own tokenizer.json (or tiktoken
file), which llama.cpp's patterns approximate. Where they differ, the original is taken:

- llama.cpp does not normalize; Qwen, Command-R, GPT-NeoX and their descendants compose by NFC.
- Its o200k and tekken patterns tell upper from lower case by A-Z and a-z alone and leave out `\p{M}`.
- Its contractions do not match U+017F, the long s, which `(?i:'s)` does.
- Its Unicode tables are those of version 15.1, the libraries' of 16.0.
- It lacks `ignore_merges`, by which some families take a piece that is a token without merging.

An entry with a `doubt` was not compared with a tokenizer.json of its family. Its pattern is the one that llama.cpp
quotes as the original, or llama.cpp's own. Source of names and patterns: llama.cpp, src/llama-vocab.cpp (2026-11).
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tokenweir.encode.formats.known_rank_files import PATTERNS
from tokenweir.encode.spec import ByteLevel, Digits, Pattern, PreTokenizer, PreTokenizerSequence, Punctuation, Split


class Pre(Struct, frozen=True, kw_only=True):
    """The pre-tokenizer and the defaults that a name in `tokenizer.ggml.pre` stands for.

    Attributes:
        stages: The pre-tokenizer's parts; None if the original ones are not known.
        spelling: The spelling of tokens: in GPT-2's alphabet of bytes (`bytes`), or as text with U+2581 for spaces
            (`spaces`).
        ranks: Whether the original is a tiktoken file: the rank of a token is its id, and the file's merges are ignored.
        nfc: Whether text is normalized to form C first.
        ignore_merges: Whether a piece that is a token is taken whole, without merging.
        add_bos: Whether a beginning-of-text token is added before a text unless the file says otherwise.
        add_sep: Whether a separator is added after it, likewise.
        doubt: The reason why this entry is uncertain; empty if it was compared with the family's own file.

    """

    stages: tuple[PreTokenizer, ...] | None
    spelling: Literal["bytes", "spaces"] = "bytes"
    ranks: bool = False
    nfc: bool = False
    ignore_merges: bool = False
    add_bos: bool = False
    add_sep: bool = False
    doubt: str = ""

    @property
    def pre_tokenizer(self) -> PreTokenizer | None:
        """The pre-tokenizer of all `stages`, as a tokenizer.json would have it; None if there are no stages."""
        stages = self.stages or ()
        return stages[0] if len(stages) == 1 else PreTokenizerSequence(stages) if stages else None


def split(*patterns: str) -> tuple[PreTokenizer, ...]:
    """Return the parts of a pre-tokenizer: a split by each pattern, inside the pieces of the one before, and `ByteLevel`."""
    return (*(Split(pattern=Pattern(Regex=pattern), behavior="Isolated") for pattern in patterns), _BYTES)


_BYTES = ByteLevel(add_prefix_space=False, use_regex=False)
_STAGES: dict[str, PreTokenizer] = {
    "%(bytes)": _BYTES,
    "%(gpt2)": ByteLevel(add_prefix_space=False, use_regex=True),
    "%(digits)": Digits(individual_digits=True),
    "%(numbers)": Digits(individual_digits=False),
    "%(punctuation)": Punctuation(behavior="Contiguous"),
    "%(kimi)": Split(
        pattern=Pattern(Regex=PATTERNS["kimi"]), behavior="Isolated", dialect="fancy-regex", unmatched="drop"
    ),
}
"""The stages that the table names."""

_UNSEEN = "no tokenizer.json of the family was compared; "
_DOUBTS = {
    "own": "the pattern is llama.cpp's",
    "quoted": "the pattern is the original that llama.cpp quotes",
}


def _read_table() -> dict[str, Pre]:
    table = tomllib.loads(Path(__file__).with_name("pre.toml").read_text("utf-8"))
    parts = PATTERNS | table["parts"]

    def stage(given: str) -> PreTokenizer:
        if given in _STAGES:
            return _STAGES[given]
        pattern = re.sub(r"%\(([\w-]+)\)", lambda part: parts[part[1]], given)
        return Split(pattern=Pattern(Regex=pattern), behavior="Isolated")

    found: dict[str, Pre] = {}
    for name, row in table["pre"].items():
        names, alike = row.pop("names", ()), row.pop("alike", ())
        if doubt := row.pop("doubt", ""):
            doubt = _UNSEEN + _DOUBTS.get(doubt, doubt)
        stages = row.pop("stages", None)
        if stages is not None:
            stages = tuple(map(stage, stages))
        found |= dict.fromkeys((name, *names), pre := Pre(stages=stages, doubt=doubt, **row))
        found |= dict.fromkeys(alike, replace(pre, doubt=f"{_UNSEEN}llama.cpp treats it like {name}"))
    return found


PRE = _read_table()
