"""Corpora to ids: a step for engines that distribute work, and files of any size to shards on all cores.

`encode.py` is the step. For files, `inputs.py` cuts them into parts and plans shards, and `reading.py` reads a part, in batches that
`decoded_sizes.py` bounds; `documents.py` makes ids of what is read, `shuffle.py` and `packing.py` rearrange them, and `shards.py`
writes them, in one of several formats. `storage.py` publishes complete files in a folder or at a URL; `manifest.py` remembers which
shards are complete; `run.py` lets processes do this shard by shard.
"""

from tokenweir.corpus.encode import Encode as Encode

__all__ = ["Encode"]
