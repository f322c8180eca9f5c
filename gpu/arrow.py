"""Arrow strings in device memory: only their offsets are copied to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode._core import DeviceStrings
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import SLACK


class DeviceDocuments:
    """The texts of a call, in memory that a device reads.

    Attributes:
        device: The device that reads them.
        offsets: The byte at which each text begins and the last one ends, counted over all texts; int64[n + 1].

    """

    def __init__(self, strings: DeviceStrings, device: Device) -> None:
        """Wrap Arrow strings that `device` can read, without copying their text.

        The device's later calls wait for the event that the array's producer set. The offsets are copied to the host.

        Raises:
            ValueError: A string is null, or the offsets do not ascend.

        """
        self._strings = strings  # whose memory this is
        self.device = device
        self.offsets: NDArray[np.int64] = np.zeros(len(strings) + 1, np.int64)
        if len(strings):  # else buffers may be absent
            with device.use():
                self._find(strings)

    def _find(self, strings: DeviceStrings) -> None:
        if strings.event:
            self.device.wait_for(strings.event)
        self._check_no_nulls()
        width = strings.offset_bytes
        begin = strings.offsets + strings.first * width
        offsets = self.device.to_host(self._memory(begin, len(strings) + 1, np.dtype(f"i{width}")))
        wrong = (offsets[:-1] < 0) | (offsets[1:] < offsets[:-1])
        if wrong.any():
            raise ValueError(f"the offsets of texts[{wrong.argmax()}] do not ascend")
        self.offsets[:] = offsets - offsets[0]
        self._bytes = self._memory(strings.bytes + int(offsets[0]), int(self.offsets[-1]), np.dtype(np.uint8))

    def __len__(self) -> int:
        return len(self._strings)

    def __getitem__(self, index: int) -> bytes:
        """Copy one text to the host; return its bytes."""
        begin, end = self.offsets[index : index + 2].tolist()
        with self.device.use():
            return self.device.to_host(self._bytes[begin:end]).tobytes()

    def part(self, first: int, last: int) -> tuple[Any, Any]:
        """Copy the texts with the numbers [first, last) to a new array on the device.

        Returns:
            The bytes, followed by `SLACK` zero bytes; and the byte of the copy at which each text begins and the last one
            ends, int64[last - first + 1]. Both are on the device.

        """
        begin, end = self.offsets[first], self.offsets[last]
        text = self.device.empty(int(end - begin) + SLACK, np.uint8)
        text[:-SLACK] = self._bytes[begin:end]
        text[-SLACK:] = 0
        return text, self.device.to_device(self.offsets[first : last + 1] - begin)

    def _memory(self, address: int, n: int, dtype: np.dtype[Any]) -> Any:
        return self.device.borrowed(address, n, dtype, self._strings) if n else self.device.empty(0, dtype)

    def _check_no_nulls(self) -> None:
        strings = self._strings
        if not strings.validity:
            return
        begin, end = strings.first, strings.first + len(strings)
        bits = self.device.to_host(self._memory(strings.validity, -(-end // 8), np.dtype(np.uint8)))
        valid = np.unpackbits(bits, bitorder="little")[begin:end]
        if not valid.all():
            raise ValueError(f"texts[{valid.argmin()}] is null")
