"""Batches in exact mode, compared with the CPU's encoder."""

from __future__ import annotations

from itertools import accumulate, pairwise

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
    texts = [d if isinstance(d, str) else d.decode(errors="replace") for d in documents]
    expected = tok.encode_batch(texts, add_special_tokens=False, parse_special=parse_special)
    for i, document in enumerate(documents):
        if i not in refused:
            assert found[i] == expected[i].tolist(), (document, parse_special)
    return refused


def check_what_is_left_out(mode_and_device):
    """Assert which documents a mode leaves out that takes 64 bytes at a time, and in which a space becomes U+2581."""
    documents = ["ab", b"\xff", b"\xe6\x97", "a▁", "a" * 200, b"\x97a", "", "ba"]
    invalid = dict.fromkeys((1, 2, 5), "it is not UTF-8")
    assert check(mode_and_device, documents) == invalid | {3: "it has a U+2581", 4: "oversized piece"}


def check_guards(mode_and_device, documents, pick):
    """Guard some characters of each document, and assert that a device's ids equal the CPU's; return as `check` does."""
    guarded = [sorted(pick.sample(range(len(d)), pick.randint(0, len(d) // 3))) for d in documents]
    begins = accumulate((len(d.encode()) for d in documents), initial=0)
    places = [
        begin + len(document[:character].encode())
        for begin, document, characters in zip(begins, documents, guarded, strict=False)
        for character in characters
    ]
    found, refused = run(mode_and_device, documents, guards=np.array(places, np.int64))
    tok = mode_and_device[0].tokenizer
    for i, (document, characters) in enumerate(zip(documents, guarded, strict=True)):
        if i not in refused:
            assert found[i] == tok.encode(document, add_special_tokens=False, guarded=characters), (
                document,
                characters,
            )
    return refused
