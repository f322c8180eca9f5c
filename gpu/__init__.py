"""Batched encoding on a GPU, through CuPy. Nothing here imports it before a `GpuEncoder` is made."""

from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.encoder import EncoderStats, GpuEncoder
from tokenweir.gpu.ragged import DeviceRagged

__all__ = ["CupyDevice", "Device", "DeviceRagged", "EncoderStats", "GpuEncoder"]
