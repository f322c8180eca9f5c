"""Bounds on what clients cost.

limits.py names them; admission.py counts places, connections.py sockets, budget.py bytes, and rates.py requests and tokens a
minute; turns.py orders long work.
"""
