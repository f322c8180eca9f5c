"""Tokenizers of a few merges, to try batches on."""

from __future__ import annotations

from tokenweir.encode._core import byte_alphabet
from tokenweir.encode.spec import (
    BPE,
    ByteLevel,
    PreTokenizerSequence,
    SentencePiece,
    SentencePieceNormalizer,
    Split,
    TokenizerSpec,
)
from tokenweir.encode.spec.values import Pattern
from tokenweir.encode.tokenizer import Tokenizer

SPELLS = ByteLevel(add_prefix_space=False, use_regex=False)
WORDS = ByteLevel(add_prefix_space=False)
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def random_merges(pick, letters, count):
    """Return random pairs of tokens made of `letters`, as merges.

    Half of the time in an order in which a merge may need a later one's result.
    """
    tokens = [bytes([letter]) for letter in letters]
    merges = {}
    for _ in range(count):
        left, right = pick.choice(tokens), pick.choice(tokens)
        if len(left + right) <= 9:
            merges[left, right] = None
            tokens.append(left + right)
    merges = list(merges)
    if pick.random() < 0.5:
        pick.shuffle(merges)
    return merges


ALPHABET = byte_alphabet()


def spell(token):
    """Return a token's bytes in GPT-2's byte alphabet."""
    return "".join(ALPHABET[byte] for byte in token)


def small(merges=(), pre_tokenizer=WORDS, *, ignore_merges=False, **components):
    """Return a byte-level BPE tokenizer with these merges, each a pair of bytes objects."""
    tokens = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *(left + right for left, right in merges)])
    model = BPE(
        vocab={spell(token): i for i, token in enumerate(tokens)},
        merges=[(spell(left), spell(right)) for left, right in merges],
        ignore_merges=ignore_merges,
    )
    components.setdefault("decoder", ByteLevel())
    return Tokenizer.from_spec(TokenizerSpec(model=model, pre_tokenizer=pre_tokenizer, **components))


def of_pieces(algorithm, pieces, *, byte_fallback=False, added=(), user_defined=(), unused=(), **rules):
    """Return a tokenizer of a SentencePiece model of `<unk>`, others, and `pieces` (piece to score)."""
    others = {"<unk>": 2, **dict.fromkeys(BYTES if byte_fallback else [], 6)}
    others |= dict.fromkeys(user_defined, 4) | dict.fromkeys(unused, 5)
    model = SentencePiece(
        algorithm=algorithm,
        pieces=[*others, *pieces],
        scores=[*(0.0 for _ in others), *pieces.values()],
        types=bytes([*others.values(), *(1 for _ in pieces)]),
        unk_id=0,
        byte_fallback=byte_fallback,
    )
    normalizer = SentencePieceNormalizer(user_defined=tuple(user_defined), **rules)
    return Tokenizer.from_spec(TokenizerSpec(model=model, normalizer=normalizer, added_tokens=tuple(added)))


def splits(*patterns):
    """Return a pre-tokenizer that splits by one pattern after the other, as DeepSeek's does."""
    cuts = [Split(pattern=Pattern(Regex=pattern), behavior="Isolated") for pattern in patterns]
    return PreTokenizerSequence([*cuts, SPELLS])
