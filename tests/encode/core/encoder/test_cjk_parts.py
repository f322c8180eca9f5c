"""Chinese, Japanese and Korean under models without a pre-tokenizer: the ids are those of the whole text."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tokenweir.encode import _core
from tokenweir.encode.components.decoders import decoding
from tokenweir.encode.spec import WordPiece
from tokenweir.encode.tokenizer import Tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
LETTERS = "日本語中国人カナ한글，。a▁é😀\u3000\uffff𠮷"
"""Characters on both sides of U+3000, two of them beyond the basic plane."""


def encoder_of(model, size):
    none = _core.AddedTokens([], [])
    how = decoding(None, WordPiece(vocab={}))
    tokens = _core.TokenBytes(_core.Vocabulary.plain({}), [], size, *how)
    return _core.Encoder(_core.Normalizer([]), _core.PreTokenizer([]), model, none, none, none, tokens)


def encode(encoder, text, *, parse_special=True):
    return encoder.encode(text, parse_special, [], [], [])


def drawn_tokens(rng):
    """Some letters, and tokens that are two tokens joined, in an order in which each can be made."""
    letters = rng.sample(LETTERS, rng.randint(4, len(LETTERS)))
    joined = {}
    known = [*letters]
    for _ in range(rng.randint(0, 40)):
        left, right = rng.choice(known), rng.choice(known)
        if len(left + right) <= 6 and left + right not in known:
            joined[left + right] = (left, right)
            known.append(left + right)
    return letters, joined


def by_merges(rng):
    letters, joined = drawn_tokens(rng)
    more, options = [], {}
    if rng.random() < 0.5:
        more, options = BYTES, {"byte_fallback": True}
    if rng.random() < 0.5:
        more, options = [*more, "?"], options | {"unk_token": "?", "fuse_unk": rng.random() < 0.5}
    names = [*letters, *joined, *more]
    control = rng.sample(range(len(letters) + len(joined)), rng.randint(0, 2))
    vocabulary = _core.Vocabulary.plain({name: i for i, name in enumerate(names)})
    return _core.CharacterBpe(vocabulary, [*joined.values()], control=control, **options), len(names)


def by_scores(rng):
    letters, joined = drawn_tokens(rng)
    byte_fallback = rng.random() < 0.5
    names = ["<unk>", *letters, *joined, *(BYTES if byte_fallback else [])]
    kinds = [UNKNOWN] + [NORMAL] * (len(letters) + len(joined)) + [BYTE] * (256 * byte_fallback)
    for i in rng.sample(range(1, 1 + len(letters) + len(joined)), rng.randint(0, 4)):
        kinds[i] = rng.choice([USER_DEFINED, UNUSED, CONTROL])
    scores = np.array([-float(rng.randint(0, 30)) for _ in names])
    control = [i for i, kind in enumerate(kinds) if kind == CONTROL or (kind == USER_DEFINED and rng.random() < 0.5)]
    return _core.SentencePieceBpe(names, scores, bytes(kinds), 0, byte_fallback, control), len(names)


@pytest.mark.parametrize("make", [by_merges, by_scores])
@pytest.mark.parametrize("seed", range(60))
def test_drawn_models(make, seed):
    rng = random.Random(seed)
    model, size = make(rng)
    encoder = encoder_of(model, size)
    for length in [1, 2, 3, 5, 8, 20, 60, 60, 400]:
        text = "".join(rng.choices(LETTERS, k=length))
        for _ in range(2):  # the second time from the cache
            assert encode(encoder, text) == model.encode(text, False)[0]
            assert encode(encoder, text, parse_special=False) == model.encode(text, True)[0]


@pytest.mark.parametrize("file", ["llama-2/tokenizer.json", "llama-2/tokenizer.model", "gemma/tokenizer.json"])
def test_real_models(data, file):
    tokenizer = Tokenizer.from_file(data(f"tokenizers/{file}"))
    rng = random.Random(1)
    known = [token for token in tokenizer.vocab if any(c > "\u2fff" for c in token)]
    blocks = [
        range(0x3000, 0x3100),
        range(0x4E00, 0x9FA6),
        range(0xAC00, 0xD7A4),
        range(0xFF00, 0xFFF0),
        range(0x20, 0x7F),
    ]
    for _ in range(300):
        parts = [rng.choice(known) if rng.random() < 0.5 else chr(rng.choice(rng.choice(blocks))) for _ in range(40)]
        text = "".join(parts)
        expected = tokenizer.encode_with_offsets(text, parse_special=False).ids
        assert tokenizer.encode(text, parse_special=False) == expected
        assert tokenizer.encode(text, parse_special=False) == expected
