"""Prompts of the last minutes. prompt_cache.py keeps them in prompt_store.py: message_digests.py and prompt_index.py propose an
earlier one, the core's tapes compare and encode, and cached_prompt.py is what comes out, with the engines' keys of it
(block_keys.py). conversation.py is the cache for loops of one's own, and ledger.py counts what clients hold.
"""
