"""Ids to deltas, engines, serving."""
