"""Tables on a device, and the structs by which kernels find them.

A struct that points to tables is a row of words of 8 bytes, in the order that its source has (`shared.fields`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.gpu.device import Device


class Structs:
    """Makes structs for kernels, and keeps the arrays that they point to."""

    def __init__(self, device: Device) -> None:
        """Take the device where they lie."""
        self._device = device
        self._arrays: list[Any] = []

    def _struct(self, order: Sequence[str], values: Mapping[str, NDArray[Any] | int]) -> Any:
        """A struct on the device, with its fields in their order; its pointers lead to copies of the arrays."""
        if set(order) != set(values):
            raise ValueError(f"a struct of {', '.join(order)} is given {', '.join(values)}")
        return self._device.to_device(np.array([self._word(values[field]) for field in order], np.uint64))

    def _word(self, field: NDArray[Any] | int) -> int:
        if isinstance(field, int):
            return field
        copy = self._device.to_device(field if field.size else np.zeros(1, field.dtype))
        self._arrays.append(copy)
        return self._device.address(copy)
