"""The tokens of a model as its file spells them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import assert_never

from tokenweir.encode import _core
from tokenweir.encode.spec import BPE, Model, RankBPE, SentencePiece, Unigram, WordPiece

Mapping.register(_core.TokenIds)
Mapping.register(_core.RankIds)
Sequence.register(_core.Merges)


def token_ids(model: Model) -> Mapping[str, int]:
    r"""Return the map of tokens to ids.

    A rank file's tokens are bytes; those that are not UTF-8 are shown with `\xe4` escapes. Of equal tokens the last
    wins, as in the libraries.
    """
    match model:
        case BPE() | WordPiece():
            return model.vocab
        case RankBPE():
            return {token.decode(errors="backslashreplace"): rank for token, rank in model.ranks.items()}
        case SentencePiece():
            return {piece: i for i, piece in enumerate(model.pieces)}
        case Unigram():
            return {piece: i for i, (piece, _) in enumerate(model.vocab)}
        case _:
            assert_never(model)


def written_token_ids(model: Model) -> Mapping[str, int]:
    """Return the map of tokens to ids, without a rank file's tokens that are not text."""
    if not isinstance(model, RankBPE):
        return token_ids(model)
    return {text: rank for token, rank in model.ranks.items() if (text := _text(token)) is not None}


def ranked_tokens(model: RankBPE, ids: Collection[int]) -> Mapping[int, bytes]:
    """Return the tokens of a rank file with the given ids, by id."""
    if isinstance(model.ranks, _core.RankIds):
        return model.ranks.tokens([i for i in ids if abs(i) < 1 << 62])
    return {rank: token for token, rank in model.ranks.items() if rank in ids}


def _text(token: bytes) -> str | None:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None
