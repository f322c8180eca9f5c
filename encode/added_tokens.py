"""Added tokens: the ids they really have."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from msgspec.structs import replace

from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.spec import AddedToken, Model, RankBPE, SentencePiece
from tokenweir.encode.vocabulary import token_ids

END_NAMES = frozenset(
    [
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|im_end|>",
        "<|endoftext|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|end_of_turn|>",
        "<end_of_turn>",
        "<turn|>",
        "<eos>",
        "</s>",
        "<EOT>",
        "[EOT]",
        "[EOS]",
        "<end_of_utterance>",
        "<|end_of_role|>",
        "<｜end▁of▁sentence｜>",
    ]
)
"""Control tokens that end a generation, by name; used only where no file says. Not every text of that form counts:
Qwen's vocabulary has an ordinary token `</s>`, so only added control tokens are looked at."""


def with_real_ids(tokens: Iterable[AddedToken], model: Model) -> tuple[AddedToken, ...]:
    """Give every added token the id it has in use, in the tokens' order.

    HuggingFace does not trust the ids in a file: a token that the model's vocabulary has keeps the model's id, any other
    gets the next free one; of tokens listed twice the later flags hold, but what once was special stays so (tokenizers
    0.23, tokenizer/added_vocabulary.rs). A rank file's special tokens come with ids that count. So do those beside a
    SentencePiece model, but for its own pieces, whose ids are certain, and for tokens without one, which get the next.

    Raises:
        TokenizerFileError: If two tokens claim one id, where ids count.

    """
    if isinstance(model, RankBPE):
        return _with_given_ids(tokens, {rank: repr(token) for token, rank in model.ranks.items()})
    vocab = token_ids(model)
    size = len(vocab)
    if isinstance(model, SentencePiece):
        known = [replace(t, id=vocab.get(t.content, t.id)) for t in tokens]
        free = count(max([size - 1, *(t.id for t in known if t.id is not None)]) + 1)
        given = [t if t.id is not None else replace(t, id=next(free)) for t in known]
        others = (t.id for t in given if t.id is not None and t.id in range(size) and t.content not in vocab)
        return _with_given_ids(given, {i: repr(model.pieces[i]) for i in others})
    by_content: dict[str, AddedToken] = {}
    highest = -1
    for token in tokens:
        if not token.content:
            continue
        token_id = vocab.get(token.content)
        if token_id is None and token.content in by_content:
            token_id = by_content[token.content].id
        if token_id is None:
            token_id = max(size, highest + 1)
        highest = max(highest, token_id)
        special = token.special or (token.content in by_content and by_content[token.content].special)
        by_content[token.content] = replace(token, id=token_id, special=special)
    return tuple(by_content.values())


def _with_given_ids(tokens: Iterable[AddedToken], taken: dict[int, str]) -> tuple[AddedToken, ...]:
    """The tokens, if each has an id of its own that is not `taken` by what is named there."""
    tokens = tuple(tokens)
    for token in tokens:
        if token.id is None or token.id < 0:
            raise TokenizerFileError(f"special token {token.content!r:.60} has no valid id ({token.id})")
        if token.id in taken:
            raise TokenizerFileError(f"special token {token.content!r:.60} has the id {token.id} of {taken[token.id]}")
        taken[token.id] = repr(token.content)
    return tokens


def inferred_end_ids(tokens: Iterable[AddedToken]) -> tuple[int, ...]:
    """The ids of control tokens that are known to end generations."""
    return tuple(t.id for t in tokens if t.special and t.id is not None and t.content in END_NAMES)
