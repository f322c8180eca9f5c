"""Ragged arrays on a device: the ids, or the bytes, of many texts one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.values.encoded import AddedIds, Ragged, Side, checked_padding, kept_added
from tokenweir.gpu.device import Device

_THREADS = 256


class DeviceRows:
    """Rows of any length, one after the other in one array on a device. A sequence: item i is row i, on the device."""

    def __init__(self, values: Any, offsets: Any, device: Device) -> None:
        """Wrap two arrays of a device.

        Args:
            values: The values of all rows one after the other.
            offsets: The place in `values` at which each row begins and the last one ends; int64[n + 1].
            device: The device on which both arrays lie.

        """
        self._values = values
        self.offsets = offsets
        self._device = device

    def __len__(self) -> int:
        return int(self.offsets.size) - 1

    def __getitem__(self, index: int) -> Any:
        """Return the values of one row, on the device. The first call copies the offsets to the host, and waits."""
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"text {index} of {n}")
        start, end = self._host_offsets[index % n : index % n + 2].tolist()
        return self._values[start:end]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def _host_offsets(self) -> NDArray[np.int64]:
        with self._device.use():
            return self._device.to_host(self.offsets)


class DeviceRagged(DeviceRows):
    """The ids of many texts in one array on a device, as a `Ragged` has them on the host.

    On a CUDA device the arrays are CuPy's, ordered on the stream that was CuPy's current one. Other libraries take them
    without a copy (`torch.from_dlpack(ragged.ids)`).

    Attributes:
        ids: int32[total], all ids one after the other.
        offsets: int64[n + 1]; text i has `ids[offsets[i]:offsets[i + 1]]`.
        added: As in `Ragged.added`.

    """

    def __init__(self, values: Any, offsets: Any, device: Device, *, added: AddedIds | None = (0, 0)) -> None:
        super().__init__(values, offsets, device)
        self.added = added

    @property
    def ids(self) -> Any:
        """All ids one after the other, int32[total]; the array itself, not a copy."""
        return self._values

    def to_host(self) -> Ragged:
        """Copy ids and offsets to the host.

        Raises:
            DeviceError: The device failed.

        """
        with self._device.use():
            return Ragged(self._device.to_host(self.ids), self._host_offsets.copy(), added=self.added)

    def padded(
        self,
        pad_id: int,
        length: int | None = None,
        *,
        side: Side = "right",
        truncation_side: Side = "right",
    ) -> tuple[Any, Any]:
        """Pad or truncate the ids of every text to one length. Truncation keeps the ids that the post-processor added.

        Args:
            pad_id: The id that is padded with.
            length: The number of ids in a row; None is that of the longest text.
            side: The side on which rows are padded.
            truncation_side: The side on which longer texts are truncated.

        Returns:
            The rows, and a mask of 1 for an id of the text and 0 for padding; both int32[n, length], on the device.

        Raises:
            TypeError: `pad_id` is None, as `Tokenizer.pad_id` may be.
            ValueError: `length` is below 0 or has no room for the added ids of a text that must be truncated, or a side
                is neither "left" nor "right".
            DeviceError: The device failed.

        """
        pad_id, length = checked_padding(pad_id, length, side, truncation_side)
        with self._device.use():
            n = len(self)
            width = self._longest() if length is None else length
            before, after = kept_added(self.added, width, self._longest)
            rows, mask = (self._device.empty(n * width, np.int32) for _ in range(2))
            blocks_per_row = -(-width // _THREADS)
            if n * width:
                self._device.launch(
                    "pad_rows",
                    n * blocks_per_row,
                    _THREADS,
                    self.ids,
                    self.offsets,
                    np.int64(width),
                    np.int64(blocks_per_row),
                    np.int32(pad_id),
                    np.int32(side == "left"),
                    np.int32(before if truncation_side == "left" else -after - 1),
                    rows,
                    mask,
                )
            return rows.reshape(n, width), mask.reshape(n, width)

    def _longest(self) -> int:
        return int(np.diff(self._host_offsets).max(initial=0))

    def __repr__(self) -> str:
        return f"DeviceRagged({len(self)} texts, {self.ids.size} ids, on {self._device.name})"
