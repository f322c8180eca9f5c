"""Batched encoding and decoding on a GPU, through CuPy, which is imported when the first encoder or decoder is made."""

from tokenweir.gpu.decoder import DeviceTexts, GpuDecoder
from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.encoder import EncoderStats, GpuEncoder
from tokenweir.gpu.ragged import DeviceRagged

__all__ = ["CupyDevice", "Device", "DeviceRagged", "DeviceTexts", "EncoderStats", "GpuDecoder", "GpuEncoder"]
