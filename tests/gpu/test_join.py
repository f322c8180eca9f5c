"""The ids of device, CPU and post-processor put together by the kernel, against the same by lists."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from tokenweir.gpu.encoded import EncodedBatch
from tokenweir.gpu.join import AddedIds, join
from tokenweir.gpu.texts import BatchPart


def document(pick, longest):
    """A document's result: its ids, whether the CPU found them, and whether it is a prompt."""
    ids = [pick.randrange(1 << 31) for _ in range(pick.choice([0, 0, 1, 2, pick.randrange(longest)]))]
    return ids, pick.random() < 0.2, pick.random() < 0.2


def part_of(device, documents, first, last, absent):
    rows = [[] if on_cpu else ids for ids, on_cpu, _ in documents[first:last]]
    if absent:  # the device has had nothing to do
        return BatchPart(first, last, 0)
    offsets = device.to_device(np.cumsum([0, *map(len, rows)], dtype=np.int64))
    ids = device.to_device(np.array([i for row in rows for i in row], np.int32))
    return BatchPart(first, last, 1, None, EncodedBatch(ids, offsets, np.zeros(0, np.int64), ()))


@pytest.mark.parametrize(
    ("n", "longest", "cuts", "affixes"),
    [
        (1, 9, [], ([], [])),
        (1, 6000, [], ([1], [2])),
        (40, 6, [10, 10, 30], ([1, 2, 3], [4])),
        (300, 20, [], ([7], [])),  # some tiles of many documents
        (9, 5000, [2, 3, 8], ([], [5, 6])),  # some documents of many tiles
        (3000, 3, [1500], ([], [])),
    ],
)
def test_documents_of_all_sources(device, n, longest, cuts, affixes):
    pick = random.Random(n)
    documents = [document(pick, longest) for _ in range(n)]
    bounds = [0, *cuts, n]
    parts = []
    for first, last in pairwise(bounds):
        absent = pick.random() < 0.3
        documents[first:last] = [(ids, on_cpu or absent, prompt) for ids, on_cpu, prompt in documents[first:last]]
        parts.append(part_of(device, documents, first, last, absent))
    bare = [i for i, (_, _, prompt) in enumerate(documents) if prompt]
    on_cpu = {i: np.array(ids, np.int32) for i, (ids, on_cpu, _) in enumerate(documents) if on_cpu}
    found = join(device, parts, on_cpu, AddedIds(*affixes, bare)).to_host()
    prefix, suffix = affixes
    assert found.added == (
        (len(prefix), len(suffix)) if not bare or not any(affixes) else None if len(bare) < n else (0, 0)
    )
    assert [ids.tolist() for ids in found] == [ids if prompt else prefix + ids + suffix for ids, _, prompt in documents]
