"""Prompts to ids: one by one, in order, many callers in one batch, or from what earlier prompts have in common.

prompt_encoding.py has the protocols of encoders, batcher.py and calibrate.py batches of many callers. prompt_cache.py keeps
the prompts of the last minutes in prompt_store.py: message_digests.py and prompt_index.py propose an earlier one, the core's
tapes compare and encode, and cached_prompt.py is what comes out, with the engines' keys of it (block_keys.py). sampled_turns.py has
the answers, kept_turns.py decides which of their ids a prompt keeps (answer_identity.py, token_tables.py), and engine_ids.py
stores those. conversation.py is the cache for loops of one's own. ledger.py counts what clients hold, and
worker_thread.py calls in threads.
"""
