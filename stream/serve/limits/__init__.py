"""Bounds on what clients cost: limits.py names them, admission.py counts places, turns.py orders long work."""
