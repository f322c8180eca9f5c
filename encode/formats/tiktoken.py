"""tiktoken rank files: a line a token, its bytes in base64 and its rank.

They carry neither a pattern nor special tokens. For the file names that OpenAI publishes both are known (tiktoken
0.14, tiktoken_ext/openai_public.py); for any other file they have to be given.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Mapping
from typing import NamedTuple

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import AddedToken, Pattern, RankBPE, Split, TokenizerSpec

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

R50K_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
O200K_PATTERN = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


class _Published(NamedTuple):
    pattern: str
    special_tokens: Mapping[str, int]


_R50K = _Published(R50K_PATTERN, {"<|endoftext|>": 50256})
_PUBLISHED = {
    "gpt2.tiktoken": _R50K,
    "r50k_base.tiktoken": _R50K,
    "p50k_base.tiktoken": _R50K,
    "cl100k_base.tiktoken": _Published(
        CL100K_PATTERN,
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base.tiktoken": _Published(O200K_PATTERN, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
}


def read(
    data: bytes,
    *,
    name: str = "",
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> TokenizerSpec:
    """Read a rank file.

    Args:
        data: Its content.
        name: Its file name, which tells the rest for OpenAI's own.
        pattern: The pre-tokenizer's pattern, as fancy-regex reads it.
        special_tokens: Text to id.

    Raises:
        TokenizerFileError: If a line is not base64 and a rank, or a rank or token is there twice; says which line.
        UnsupportedTokenizerError: If the pattern is neither given nor known.

    """
    ranks = _ranks(data)
    published = _PUBLISHED.get(name)
    if pattern is None:
        if published is None:
            raise UnsupportedTokenizerError(
                f"a rank file {name!r} says nothing of its pattern and special tokens: give pattern= and special_tokens="
            )
        pattern = published.pattern
    if special_tokens is None:
        special_tokens = published.special_tokens if published else {}
    return TokenizerSpec(
        model=RankBPE(ranks),
        pre_tokenizer=Split(
            pattern=Pattern(Regex=pattern), behavior="Isolated", dialect="fancy-regex", unmatched="drop"
        ),
        added_tokens=tuple(AddedToken(text, id=i, special=True) for text, i in special_tokens.items()),
        source="tiktoken rank file",
    )


def _ranks(data: bytes) -> dict[bytes, int]:
    if (read := _core.read_ranks(data)) is not None:
        return read
    ranks: dict[bytes, int] = {}  # an unusual file, or a bad one, of which this says what is wrong
    seen: set[int] = set()
    number = 0
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            text, rank_text = line.split()
            token = b"" if text == b"=" else a2b_base64(text, strict_mode=True)  # Whisper's file writes no bytes as `=`
            rank = int(rank_text)
        except (ValueError, Base64Error) as error:
            raise TokenizerFileError(f"line {number} is not a base64 token and a rank: {line[:40]!r}") from error
        if token in ranks or rank < 0 or rank in seen:
            raise TokenizerFileError(
                f"line {number}: token {token!r:.60} or rank {rank} is there already, or the rank is negative"
            )
        ranks[token] = rank
        seen.add(rank)
    if not ranks:
        raise TokenizerFileError("no ranks in it")
    return ranks
