"""The tokens of a model as its file spells them, and of a tokenizer with its added ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import assert_never

from tokenweir.encode import _core
from tokenweir.encode.spec import BPE, Model, RankBPE, SentencePiece, Unigram, WordPiece

Mapping.register(_core.TokenIds)
Mapping.register(_core.RankIds)
Sequence.register(_core.Merges)


class Vocabulary:
    """The tokens of a tokenizer, by name and by id: those of its model, and added tokens, which come first."""

    def __init__(self, model: Model, added: dict[str, int], known: Mapping[str, int] | None) -> None:
        """Build the vocabulary of a tokenizer.

        Args:
            model: The model.
            added: The ids of the added tokens, by their texts.
            known: The model's `token_ids`; None computes them when they are needed.

        """
        self._model = model
        self._added = added
        self._known = known

    @cached_property
    def _token_ids(self) -> Mapping[str, int]:
        return token_ids(self._model) if self._known is None else self._known

    @cached_property
    def model_names(self) -> dict[int, str]:
        """The token of each id of the model, as text, by id."""
        return {token_id: token for token, token_id in self._token_ids.items()}

    @cached_property
    def names(self) -> dict[int, str]:
        """The token of each id, added tokens included, by id. Of added tokens that share an id, the first counts."""
        return self.model_names | {token_id: token for token, token_id in reversed(self._added.items())}

    def written(self) -> dict[str, int]:
        """Return the ids of all tokens, added ones included; a rank file's tokens that are not UTF-8 are left out."""
        return {**written_token_ids(self._model), **self._added}

    def id_of(self, token: str) -> int | None:
        """Return the id of a token, as its file spells it; None if there is no such token."""
        if (added := self._added.get(token)) is not None:
            return added
        if isinstance(self._model, RankBPE):
            return self._model.ranks.get(token.encode(errors="surrogatepass"))
        return self._token_ids.get(token)


def token_ids(model: Model) -> Mapping[str, int]:
    r"""Return a model's map of tokens to ids.

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
    """Return a model's map of tokens to ids, without a rank file's tokens that are not UTF-8."""
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
