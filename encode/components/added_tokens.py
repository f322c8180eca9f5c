"""Added tokens: their effective ids, which may differ from those in the file, and which of them are control tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count, repeat

from msgspec.structs import replace

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import AddedToken, Model, RankBPE, SentencePiece, TokenizerSpec, Unigram
from tokenweir.encode.spec.models import USER_DEFINED
from tokenweir.encode.vocabulary import ranked_tokens, token_ids

END_NAMES = frozenset(
    [
        *("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|im_end|>", "<|endoftext|>", "<|end|>", "<|return|>"),
        *("<|call|>", "<|end_of_turn|>", "<end_of_turn>", "<turn|>", "<eos>", "</s>", "<EOT>", "[EOT]", "[EOS]"),
        *("<|eot|>", "<|eom|>", "<end_of_utterance>", "<|end_of_role|>", "<｜end▁of▁sentence｜>"),
    ]
)
"""Names of control tokens that end a generation, used only if no file names the end tokens. Only added control tokens are
considered, because Qwen's vocabulary has an ordinary token `</s>`."""


def with_real_ids(
    tokens: Iterable[AddedToken], model: Model, vocab: Mapping[str, int] | None = None
) -> tuple[AddedToken, ...]:
    """Return the added tokens, in order, each with its effective id; without repetitions and empty tokens.

    HuggingFace ignores the ids in a file: a token in the model's vocabulary keeps the model's id, any other gets the next id
    from the vocabulary's size on. Of tokens listed twice, the later flags win, except that a special token stays special
    (tokenizers 0.23, tokenizer/added_vocabulary.rs). The ids of a rank file's special tokens are authoritative, and two of
    them may share one, as in tiktoken. So are those of added tokens beside a SentencePiece model, except for its own pieces,
    which keep their ids, and for tokens without one, which get the next id.

    Args:
        tokens: The added tokens as listed.
        model: The model.
        vocab: The model's map of tokens to ids; None computes it. Not used for a rank file.

    Raises:
        TokenizerFileError: Two tokens claim one id, where ids are authoritative.
        UnsupportedTokenizerError: Two tokens are assigned one id, because the ids of the vocabulary have gaps.

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
    # The model may have that id too, if its ids have gaps. Equal pieces of Unigram have an id each.
    free = count(len(model.vocab) if isinstance(model, Unigram) else size)
    for token in tokens:
        if not token.content:
            continue
        earlier = by_content.get(token.content)
        token_id = vocab.get(token.content, earlier.id if earlier else None)
        if token_id is None:
            token_id = next(free)
        # The decode of such a file depends on leftover state of the earlier token in the library.
        if (owner := owners.setdefault(token_id, token.content)) != token.content:
            raise UnsupportedTokenizerError(
                f"added tokens {owner!r:.60} and {token.content!r:.60} have one id, {token_id}"
            )
        if earlier:
            token = replace(token, special=token.special or earlier.special)
        by_content[token.content] = replace(token, id=token_id)
    return tuple(by_content.values())


def with_more(
    tokens: Iterable[AddedToken], more: Iterable[str | AddedToken], first_id: int | None
) -> tuple[AddedToken, ...]:
    """Return the added tokens joined with more of them.

    A token with the content of an earlier one replaces it, and takes over its id unless it has one of its own.

    Args:
        tokens: The present added tokens.
        more: The tokens to add; a text alone is a token that is not special.
        first_id: The id for the first new token without an id; the next ones follow. None leaves them without ids.

    """
    free = repeat(None) if first_id is None else count(first_id)
    by_content = {token.content: token for token in tokens}
    for given in more:
        token = AddedToken(given) if isinstance(given, str) else given
        if token.id is None:
            earlier = by_content.get(token.content)
            token = replace(token, id=earlier.id if earlier else next(free))
        by_content[token.content] = token
    return tuple(by_content.values())


def _with_given_ids(
    tokens: Iterable[AddedToken], taken: dict[int, str], *, shared: bool = False
) -> tuple[AddedToken, ...]:
    """Check the ids of tokens; return the tokens unchanged.

    Args:
        tokens: The tokens, with their ids.
        taken: The ids that no token may have, each with its owner's name for errors; the tokens' ids are added.
        shared: Whether tokens may share an id with each other.

    Raises:
        TokenizerFileError: An id is missing, negative, or taken.

    """
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
    """Return whether an added token controls the model: it is special, or has a character that is not plain.

    Added tokens of only white space, letters and digits (Gemma's runs of line feeds, words of a domain) are ordinary
    vocabulary that user text may contain.
    """
    return token.special or not is_plain(token.content)


def is_plain(text: str) -> bool:
    """Return whether a text has only letters, digits and white space, including U+2581, SentencePiece's space."""
    return all(c.isalnum() or c.isspace() or c == "\u2581" for c in text)


def own_control_texts(model: Model, added: Iterable[AddedToken]) -> tuple[str, ...]:
    """Return the user-defined pieces of a SentencePiece model that count as control tokens.

    Those are the pieces with punctuation, except added tokens; empty for other models.
    """
    if not isinstance(model, SentencePiece):
        return ()
    if USER_DEFINED not in model.types:
        return ()
    listed = {t.content for t in added}
    pieces = (model.pieces[i] for i, piece_type in enumerate(model.types) if piece_type == USER_DEFINED)
    return tuple(piece for piece in pieces if not is_plain(piece) and piece not in listed)


def inferred_end_ids(tokens: Iterable[AddedToken]) -> tuple[int, ...]:
    """Return the ids of special tokens that, by their names, end a generation.

    Tokens that end a message only are not among them: `<|end|>` beside `<|return|>` (gpt-oss), and `<|eom|>` beside `<|eot|>`
    where messages begin with `<|start|>` and `<|message|>` (Muse).
    """
    special = {t.content: t.id for t in tokens if t.special and t.id is not None}
    ends = {content: token_id for content, token_id in special.items() if content in END_NAMES}
    if "<|return|>" in ends:
        ends.pop("<|end|>", None)
    if {"<|eot|>", "<|start|>", "<|message|>"} <= special.keys():
        ends.pop("<|eom|>", None)
    return tuple(ends.values())


def with_roles(spec: TokenizerSpec) -> tuple[AddedToken, ...]:
    """Return the added tokens and a special token for each role, such as `pad_token`, whose token is not among them.

    As in transformers. A rank file's tokens, and a SentencePiece model's own pieces, get no such tokens.
    """
    if isinstance(spec.model, RankBPE):
        return spec.added_tokens
    listed = {t.content for t in spec.added_tokens}
    if isinstance(spec.model, SentencePiece):  # its own pieces may have roles
        listed.update(spec.model.pieces)
    roles = dict.fromkeys(spec.special_roles.values())
    return (*spec.added_tokens, *(AddedToken(t, special=True) for t in roles if t not in listed))
