"""Bounds on what clients cost.

limits.py names them; admission.py counts places, connections.py sockets, budget.py bytes on the wire, and rates.py requests
and tokens a minute; stream/prompts/cache/ledger.py counts memory between requests. turns.py orders the parsing of input, fair_queue.py
prompts.
"""
