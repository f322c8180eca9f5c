"""The components of a `TokenizerSpec`, built for the core.

In the order of processing a text: added_tokens.py, normalize.py, pre_tokenize.py, post_process.py; decoders.py for ids.
"""
