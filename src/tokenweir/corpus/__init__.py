"""Files of any size to shards of ids, on all cores; a run that is killed goes on where it was.

`inputs.py` cuts the files into parts, and `reading.py` reads one; `documents.py` makes ids of what is read; `shards.py`
writes them, in one of three formats; `manifest.py` remembers which shards are whole; `run.py` lets processes do this part by part.
"""
