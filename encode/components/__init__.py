"""The components of a `TokenizerSpec`, built for the core.

In the order in which a text meets them: added_tokens.py, normalize.py, pre_tokenize.py, post_process.py; ids meet decoders.py.
"""
