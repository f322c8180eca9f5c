"""Batches in exact mode, compared with the CPU's encoder; small tokenizers to try them on."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tokenweir.encode._core import byte_alphabet
from tokenweir.encode.spec import BPE, ByteLevel, PreTokenizerSequence, Split, TokenizerSpec
from tokenweir.encode.spec.values import Pattern
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.encoded import SLACK

SPELLS = ByteLevel(add_prefix_space=False, use_regex=False)
WORDS = ByteLevel(add_prefix_space=False)


def run(batch_and_device, documents, **options):
    """The ids of each document, and the reasons of those that are refused by their numbers."""
    batch, device = batch_and_device
    documents = [d.encode() if isinstance(d, str) else d for d in documents]
    text = np.frombuffer(b"".join(documents) + bytes(SLACK), np.uint8)
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    encoded = batch.encode(device.to_device(text), device.to_device(offsets), **options)
    ids, offsets = device.to_host(encoded.ids), device.to_host(encoded.offsets)
    assert ids.dtype == np.int32 and offsets.dtype == np.int64
    assert len(offsets) == len(documents) + 1 and offsets[0] == 0 and offsets[-1] == len(ids)
    refused = dict(zip(encoded.refused.tolist(), encoded.reasons, strict=True))
    found = [ids[begin:end].tolist() for begin, end in pairwise(offsets.tolist())]
    assert all(found[i] == [] for i in refused)
    return found, refused


def check(batch_and_device, documents, *, parse_special=True):
    """Compares with the CPU; the documents that are refused, by their numbers."""
    found, refused = run(batch_and_device, documents, parse_special=parse_special)
    tok = batch_and_device[0].tokenizer
    expected = tok.encode_batch(documents, add_special_tokens=False, parse_special=parse_special)
    for i, document in enumerate(documents):
        if i not in refused:
            assert found[i] == expected[i].tolist(), (document, parse_special)
    return refused


def spell(token):
    """A token in GPT-2's byte alphabet."""
    return "".join(byte_alphabet()[byte] for byte in token)


def small(merges=(), pre_tokenizer=WORDS, *, ignore_merges=False, **components):
    """A tokenizer of merges, as pairs of bytes."""
    tokens = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *(left + right for left, right in merges)])
    model = BPE(
        vocab={spell(token): i for i, token in enumerate(tokens)},
        merges=[(spell(left), spell(right)) for left, right in merges],
        ignore_merges=ignore_merges,
    )
    return Tokenizer.from_spec(TokenizerSpec(model=model, pre_tokenizer=pre_tokenizer, **components))


def splits(*patterns):
    """A pre-tokenizer that cuts by one pattern after the other, as DeepSeek's does."""
    cuts = [Split(pattern=Pattern(Regex=pattern), behavior="Isolated") for pattern in patterns]
    return PreTokenizerSequence([*cuts, SPELLS])
