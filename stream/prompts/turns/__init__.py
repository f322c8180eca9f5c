"""Ids that engines generated for earlier answers: sampled_turns.py has the answers, engine_ids.py stores the ids of all answers
in a prompt, and kept_turns.py decides which of them a prompt keeps, by answer_identity.py and token_tables.py.
"""
