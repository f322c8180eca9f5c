"""Who may come in: guard.py over every request, auth.py keys, origins and hosts, admission.py how many at a time.

turns.py and fair_queue.py decide when long messages are parsed and prompts rendered.
"""
