"""Joining the ids of all documents: those that the device found, those that the CPU found, and affixes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenweir.gpu.device import Device
from tokenweir.gpu.ragged import DeviceRagged
from tokenweir.gpu.shared import constants
from tokenweir.gpu.texts import BatchPart, CpuIds

_THREADS = 256
_TILE = constants("insert.cu")["kTile"]  # ids a block


class AddedIds(NamedTuple):
    """The ids that are added around documents.

    Attributes:
        prefix: The ids before each document's own.
        suffix: The ids after them.
        bare: The numbers of the documents around which nothing is added.

    """

    prefix: Sequence[int]
    suffix: Sequence[int]
    bare: Collection[int] = ()

    def counts(self, n: int) -> tuple[int, int] | None:
        """Return the numbers of ids that are added before and after each of `n` documents; None if documents differ."""
        if len(self.bare) == n:
            return 0, 0
        around = len(self.prefix), len(self.suffix)
        return None if self.bare and any(around) else around


class Inserted(NamedTuple):
    """The ids that the host adds to a part: affixes, and all ids of documents that the CPU encoded.

    Attributes:
        ids: The added ids of all documents one after the other; int32.
        shifts: The place in `ids` at which each document's added ids begin and the last one's end; int64[n + 1].

    """

    ids: NDArray[np.int32]
    shifts: NDArray[np.int64]


def join(device: Device, parts: Sequence[BatchPart], on_cpu: CpuIds, affixes: AddedIds) -> DeviceRagged:
    """Join the ids of all parts into one array on the device, in the documents' order.

    Args:
        device: The device on which the ids of the parts lie.
        parts: The parts, which together are all documents of a call.
        on_cpu: The ids of the documents that the CPU encoded, by the documents' numbers.
        affixes: The ids to add around documents.

    """
    if len(parts) == 1 and (only := parts[0].encoded) and not (on_cpu or affixes.prefix or affixes.suffix):
        return DeviceRagged(only.ids, only.offsets, device)
    n = parts[-1].last if parts else 0
    inserted = [_inserted(part, on_cpu, affixes) for part in parts]
    sizes = [
        len(added.ids) + (part.encoded.ids.size if part.encoded else 0)
        for part, added in zip(parts, inserted, strict=True)
    ]
    ids, offsets = device.empty(sum(sizes), np.int32), device.zeros(n + 1, np.int64)
    base = 0
    for part, added, size in zip(parts, inserted, sizes, strict=True):
        own, starts = _on_device(device, part)
        device.launch(
            "insert_ids",
            max(-(-size // _TILE), 1),
            _THREADS,
            own,
            starts,
            device.to_device(added.ids),
            device.to_device(added.shifts),
            np.int64(len(affixes.prefix)),
            np.int64(len(part)),
            np.int64(base),
            ids[base : base + size],
            offsets[part.first : part.last + 1],
        )
        base += size
    return DeviceRagged(ids, offsets, device, added=affixes.counts(n))


def _on_device(device: Device, part: BatchPart) -> tuple[Any, Any]:
    if part.encoded is not None:
        return part.encoded.ids, part.encoded.offsets
    return device.empty(0, np.int32), device.zeros(len(part) + 1, np.int64)


def _inserted(part: BatchPart, on_cpu: CpuIds, affixes: AddedIds) -> Inserted:
    prefix, suffix, bare = affixes
    enclosed = np.ones(len(part), np.bool_)
    enclosed[[i - part.first for i in bare if part.first <= i < part.last]] = False
    counts = np.where(enclosed, len(prefix) + len(suffix), 0)
    left = [i for i in on_cpu if part.first <= i < part.last]
    for i in left:
        counts[i - part.first] += len(on_cpu[i])
    shifts = np.zeros(len(part) + 1, np.int64)
    np.cumsum(counts, out=shifts[1:])
    ids = np.empty(shifts[-1], np.int32)
    begins, ends = shifts[:-1][enclosed], shifts[1:][enclosed]
    for k, token_id in enumerate(prefix):
        ids[begins + k] = token_id
    for k, token_id in enumerate(reversed(suffix)):
        ids[ends - 1 - k] = token_id
    for i in left:
        begin = shifts[i - part.first] + (len(prefix) if enclosed[i - part.first] else 0)
        ids[begin : begin + len(on_cpu[i])] = on_cpu[i]
    return Inserted(ids, shifts)
