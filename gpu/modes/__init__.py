"""The modes of encoding, one file for each kind of model: the layout of its tables, and the launches of its kernels.

They share `batch.py`: the text with its bit maps, the search for added tokens, and the collection of the ids.
"""
