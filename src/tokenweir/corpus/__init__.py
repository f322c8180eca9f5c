"""Corpora to ids: a step for engines that distribute work, and files of any size to shards on all cores.

`encode.py` is the step. For files, `inputs.py` cuts them into parts, and `reading.py` reads one, in batches that
`decoded_sizes.py` bounds; `documents.py` makes ids of what is read; `shards.py` writes them, in one of several formats;
`manifest.py` remembers which shards are whole; `run.py` lets processes do this part by part.
"""

from tokenweir.corpus.encode import Encode as Encode

__all__ = ["Encode"]
