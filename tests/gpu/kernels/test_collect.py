"""Collecting ids where a batch has more tiles than the block that adds up their counts has threads: beyond 2 MiB."""

from __future__ import annotations

import numpy as np
from full_run import share

from tokenweir.gpu.encoded import SLACK
from tokenweir.gpu.modes.batch import Batch


def test_more_tiles_than_a_block_has_threads(kernels_on):
    n = (5 << 19) + 77
    pick = np.random.default_rng(1)
    tokens = np.zeros(n, np.bool_)
    tokens[pick.choice(n, n // 50, replace=False)] = True
    ends = np.sort(pick.choice(n, 400, replace=False))
    offsets = np.array([0, *ends, n], np.int64)
    refused = [3, 77, 400]
    kept = tokens.copy()
    for document in refused:
        kept[offsets[document] : offsets[document + 1]] = False
    for seed in range(share(8)):
        device = kernels_on(seed)
        batch = Batch(device, device.zeros(n + SLACK, np.uint8), device.to_device(offsets), 1)
        bits = np.packbits(tokens, bitorder="little")
        batch.tokens.view(np.uint8)[: len(bits)] = device.to_device(bits)
        batch.ids[:] = device.to_device(np.arange(n, dtype=np.uint32))
        batch.refusals[refused] = 4
        batch.counters[0] = 1  # some are refused
        encoded = batch.count().collect({4: "why"})
        assert np.array_equal(device.to_host(encoded.ids), np.flatnonzero(kept))
        assert np.array_equal(device.to_host(encoded.offsets), np.array([0, *np.cumsum(kept)])[offsets])
        assert (encoded.refused.tolist(), encoded.reasons) == (refused, ("why",) * 3)
