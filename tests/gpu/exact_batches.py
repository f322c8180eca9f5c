"""Batches in exact mode, compared with the CPU's encoder."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tokenweir.gpu.encoded import SLACK


def run(mode_and_device, documents, **options):
    """Encode documents on a device; return the ids of each, and the reason for each refused document by its number."""
    mode, device = mode_and_device
    documents = [d.encode() if isinstance(d, str) else d for d in documents]
    text = np.frombuffer(b"".join(documents) + bytes(SLACK), np.uint8)
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    encoded = mode.encode(device.to_device(text), device.to_device(offsets), **options)
    ids, offsets = device.to_host(encoded.ids), device.to_host(encoded.offsets)
    assert ids.dtype == np.int32 and offsets.dtype == np.int64
    assert len(offsets) == len(documents) + 1 and offsets[0] == 0 and offsets[-1] == len(ids)
    refused = dict(zip(encoded.refused.tolist(), encoded.reasons, strict=True))
    found = [ids[begin:end].tolist() for begin, end in pairwise(offsets.tolist())]
    assert all(found[i] == [] for i in refused)
    return found, refused


def check(mode_and_device, documents, *, parse_special=True):
    """Assert that a device's ids equal the CPU's; return the reason for each refused document by its number."""
    found, refused = run(mode_and_device, documents, parse_special=parse_special)
    tok = mode_and_device[0].tokenizer
    expected = tok.encode_batch(documents, add_special_tokens=False, parse_special=parse_special)
    for i, document in enumerate(documents):
        if i not in refused:
            assert found[i] == expected[i].tolist(), (document, parse_special)
    return refused
