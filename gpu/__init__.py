"""Batched encoding and decoding on a GPU, through CuPy, which is imported when the first encoder or decoder is made.

`encoder.py` packs texts (`texts.py`, `arrow.py`), gives each device its share (`device_pipeline.py`), and joins the ids
(`join.py`, `ragged.py`). A mode of `modes/` runs the kernels of `kernels/`, for its kind of model; `replay.py` and `graph.py` run
small batches by one launch. `decoder.py` decodes. `device.py` has the calls that a device must offer, `kernels.py` compiles, and
`shared.py` reads constants and structs from the sources.
"""

from tokenweir.gpu.decoder import DeviceTexts, GpuDecoder
from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.encoder import EncoderStats, GpuEncoder
from tokenweir.gpu.ragged import DeviceRagged

__all__ = ["CupyDevice", "Device", "DeviceRagged", "DeviceTexts", "EncoderStats", "GpuDecoder", "GpuEncoder"]
