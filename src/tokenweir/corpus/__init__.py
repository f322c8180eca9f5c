"""Encoding of files of any size to shards of ids, on all cores; an interrupted run resumes.

`inputs.py` cuts the files into parts, and `reading.py` reads one, in batches that `decoded_sizes.py` bounds; `documents.py` makes
ids of what is read; `shards.py` writes them, in one of three formats; `manifest.py` remembers which shards are whole; `run.py` lets processes do this part by part.
"""
