"""Values that travel through the pipeline; this room imports no other room of `stream`.

`sampling.py` says how to generate and `step.py` is what an engine yields. `prompt_scores.py` has the probabilities of a prompt's
ids. `media.py` is what an engine gets beside ids, and `image_header.py` reads the sizes of images. `deltas.py` has the deltas
that a reader gets, and `merge.py` joins those that wait; `call_ids.py` makes ids of calls. `json_bounds.py` counts what JSON
from outside costs.
"""
