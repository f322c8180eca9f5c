"""The ways to encode a batch: a file a kind of model, whose tables it lays out and whose kernels it launches.

`batch.py` is what they have in common: a text with bit maps, added tokens first and the ids collected last.
"""
