"""Added tokens: the ids that they have in use, which need not be those in the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from msgspec.structs import replace

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import AddedToken, Model, RankBPE, SentencePiece, TokenizerSpec, Unigram
from tokenweir.encode.spec.models import USER_DEFINED
from tokenweir.encode.vocabulary import ranked_tokens, token_ids

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
        "<|eot|>",
        "<|eom|>",
        "<end_of_utterance>",
        "<|end_of_role|>",
        "<｜end▁of▁sentence｜>",
    ]
)
"""Control tokens that end a generation, by name; used only where no file says. Not every text of that form counts:
Qwen's vocabulary has an ordinary token `</s>`, so only added control tokens are looked at."""


def with_real_ids(
    tokens: Iterable[AddedToken], model: Model, vocab: Mapping[str, int] | None = None
) -> tuple[AddedToken, ...]:
    """Give every added token the id it has in use, in the tokens' order.

    HuggingFace does not trust the ids in a file: a token that the model's vocabulary has keeps the model's id, any other
    gets the next one after as many as the model has; of tokens listed twice the later flags hold, but what once was
    special stays so (tokenizers 0.23, tokenizer/added_vocabulary.rs). A rank file's special tokens come with ids that
    count, and two may share one, as in tiktoken. Ids count beside a SentencePiece model, too. Its own pieces keep theirs,
    and tokens without an id get the next.

    Args:
        tokens: The added tokens as they are listed.
        model: The model beside them.
        vocab: The model's `token_ids`, if they are at hand; ranks are not asked for theirs.

    Raises:
        TokenizerFileError: If two tokens claim one id, where ids count.
        UnsupportedTokenizerError: If they come to have one id where ids do not count, since the model's have gaps.

    """
    if isinstance(model, RankBPE):
        tokens = tuple(tokens)
        found = ranked_tokens(model, {t.id for t in tokens if t.id is not None})
        return _with_given_ids(tokens, {rank: repr(token) for rank, token in found.items()}, shared=True)
    vocab = token_ids(model) if vocab is None else vocab
    size = len(vocab)
    if isinstance(model, SentencePiece):
        known = [replace(t, id=vocab.get(t.content, t.id)) for t in tokens]
        free = count(max([size - 1, *(t.id for t in known if t.id is not None)]) + 1)
        given = [t if t.id is not None else replace(t, id=next(free)) for t in known]
        others = (t.id for t in given if t.id is not None and t.id in range(size) and t.content not in vocab)
        return _with_given_ids(given, {i: repr(model.pieces[i]) for i in others})
    by_content: dict[str, AddedToken] = {}
    owners: dict[int, str] = {}
    # Though the model may have that id, if its own have gaps; of Unigram's equal pieces each has one.
    free = count(len(model.vocab) if isinstance(model, Unigram) else size)
    for token in tokens:
        if not token.content:
            continue
        earlier = by_content.get(token.content)
        token_id = vocab.get(token.content, earlier.id if earlier else None)
        if token_id is None:
            token_id = next(free)
        # What such a file decodes to depends on what the library still remembers of the earlier token.
        if (owner := owners.setdefault(token_id, token.content)) != token.content:
            raise UnsupportedTokenizerError(
                f"added tokens {owner!r:.60} and {token.content!r:.60} have one id, {token_id}"
            )
        if earlier:
            token = replace(token, special=token.special or earlier.special)
        by_content[token.content] = replace(token, id=token_id)
    return tuple(by_content.values())


def _with_given_ids(
    tokens: Iterable[AddedToken], taken: dict[int, str], *, shared: bool = False
) -> tuple[AddedToken, ...]:
    """Return the tokens, if each has an id that is not `taken` by what is named there; `shared`: they may share one."""
    tokens = tuple(tokens)
    for token in tokens:
        if token.id is None or token.id < 0:
            raise TokenizerFileError(f"special token {token.content!r:.60} has no valid id ({token.id})")
        if token.id in taken:
            raise TokenizerFileError(f"special token {token.content!r:.60} has the id {token.id} of {taken[token.id]}")
        if not shared:
            taken[token.id] = repr(token.content)
    return tokens


def is_control(token: AddedToken) -> bool:
    """Whether an added token controls the model: a special one, or any that has some punctuation.

    Added tokens of white space or of letters and digits alone (Gemma's runs of line feeds, words of a domain) are
    ordinary vocabulary that user text may use.
    """
    return token.special or not is_plain(token.content)


def is_plain(text: str) -> bool:
    """Whether a text has letters, digits and white space only; U+2581 is SentencePiece's space."""
    return all(c.isalnum() or c.isspace() or c == "\u2581" for c in text)


def own_control_texts(model: Model, added: Iterable[AddedToken]) -> tuple[str, ...]:
    """The user-defined pieces of a SentencePiece model that control it by the same rule and are no added tokens."""
    if not isinstance(model, SentencePiece):
        return ()
    if USER_DEFINED not in model.types:
        return ()
    listed = {t.content for t in added}
    pieces = (model.pieces[i] for i, piece_type in enumerate(model.types) if piece_type == USER_DEFINED)
    return tuple(piece for piece in pieces if not is_plain(piece) and piece not in listed)


def inferred_end_ids(tokens: Iterable[AddedToken]) -> tuple[int, ...]:
    """The ids of control tokens that are known to end generations.

    Where there is a `<|return|>`, an `<|end|>` ends one of several messages and not the generation (gpt-oss).
    """
    ends = {t.content: t.id for t in tokens if t.special and t.id is not None and t.content in END_NAMES}
    if "<|return|>" in ends:
        ends.pop("<|end|>", None)
    return tuple(ends.values())


def with_roles(spec: TokenizerSpec) -> tuple[AddedToken, ...]:
    """The added tokens and those that play a role without being listed; transformers adds these as control tokens."""
    if isinstance(spec.model, RankBPE):
        return spec.added_tokens
    listed = {t.content for t in spec.added_tokens}
    if isinstance(spec.model, SentencePiece):  # its pieces need not be added to play a role
        listed.update(spec.model.pieces)
    roles = dict.fromkeys(spec.special_roles.values())
    return (*spec.added_tokens, *(AddedToken(t, special=True) for t in roles if t not in listed))
