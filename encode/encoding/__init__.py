"""The parts of `Tokenizer`'s encoding methods.

`selection.py` resolves the options of a call and chooses the added tokens to match. `sequence_encoder.py` encodes texts, words
and pairs with offsets, into the columns of `columns.py`; `sequences.py` post-processes them. `truncation.py` truncates ids as
HuggingFace's library does, and `text_chunks.py` truncates and cuts texts.
"""
