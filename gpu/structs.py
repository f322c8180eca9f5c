"""Structs on a device, by whose pointers kernels find their tables.

Such a struct is an array of 8-byte words, in the order of the fields in its C++ source (`shared.fields`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.gpu.device import Device


class Structs:
    """The owner of structs for kernels: it builds them on a device, and keeps alive the arrays to which they point."""

    def __init__(self, device: Device) -> None:
        """Take the device on which the structs lie."""
        self._device = device
        self._arrays: list[Any] = []

    def _struct(self, order: Sequence[str], values: Mapping[str, NDArray[Any] | int]) -> Any:
        """Build a struct on the device; return it as an array of 8-byte words.

        Args:
            order: The names of the fields, in the order of the C++ struct.
            values: The value of each field: an integer; or an array, which is copied to the device and becomes a pointer.

        Raises:
            ValueError: `values` has other names than `order`.

        """
        if set(order) != set(values):
            raise ValueError(f"a struct of {', '.join(order)} is given {', '.join(values)}")
        return self._device.to_device(np.array([self._word(values[field]) for field in order], np.uint64))

    def _word(self, field: NDArray[Any] | int) -> int:
        if isinstance(field, int):
            return field
        copy = self._device.to_device(field if field.size else np.zeros(1, field.dtype))
        self._arrays.append(copy)
        return self._device.address(copy)
