"""tiktoken rank files: a line a token, its bytes in base64 and its rank.

They carry neither a pattern nor special tokens. Of some files both are known (`known_rank_files`); for any other they
have to be given.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Mapping

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.known_rank_files import Recognised
from tokenweir.encode.spec import NFC, AddedToken, Pattern, RankBPE, Split, TokenizerSpec


def read(
    data: bytes,
    *,
    name: str = "",
    recognised: Recognised | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> TokenizerSpec:
    """Read a tiktoken rank file; return the spec of the tokenizer.

    Args:
        data: The content of the file.
        name: Its file name, for errors.
        recognised: The known rank file as which it was recognised; None for an unknown one.
        pattern: The pre-tokenizer's pattern, as fancy-regex reads it, instead of the known one.
        special_tokens: The ids of special tokens by their texts, instead of the known ones.

    Raises:
        TokenizerFileError: A line is not base64 and a rank, or a rank or token occurs twice; the message has the line.
        UnsupportedTokenizerError: The pattern is neither given nor known.

    """
    ranks = _ranks(data)
    if recognised is None and pattern is None:
        raise UnsupportedTokenizerError(
            f"a rank file {name!r} says nothing of its pattern and special tokens: give pattern= and special_tokens="
        )
    normalizer = None
    reserved: list[int] = []
    notes: tuple[str, ...] = ()
    if recognised is not None:
        known, by, named = recognised
        if special_tokens is None:
            following = {text: len(ranks) + i for i, text in enumerate(known.following)}
            special_tokens = {**known.special_tokens, **following}
            reserved = [i for i in range(len(ranks), len(ranks) + known.reserved) if i not in named]
        if pattern is None:
            pattern = known.pattern
            normalizer = NFC() if known.nfc else None
            form = ", form C" * known.nfc
            notes = (f"the pattern{form} and the special tokens are those of {known.name}, by {by}",)
    return TokenizerSpec(
        model=RankBPE(ranks),
        normalizer=normalizer,
        pre_tokenizer=Split(
            pattern=Pattern(Regex=pattern or ""), behavior="Isolated", dialect="fancy-regex", unmatched="drop"
        ),
        added_tokens=(
            *(
                AddedToken(text, id=i, special=True, normalized=normalizer is not None)  # matched in normalized text
                for text, i in (special_tokens or {}).items()
            ),
            *(AddedToken(f"<|reserved_token_{i}|>", id=i) for i in reserved),
        ),
        notes=notes,
        source="tiktoken rank file",
    )


def _ranks(data: bytes) -> Mapping[bytes, int]:
    if (read := _core.RankIds.read(data)) is not None:
        return read
    ranks: dict[bytes, int] = {}  # slow path: reads unusual files, and finds the error in invalid ones
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
