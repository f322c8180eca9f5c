"""Prompts to ids.

batching/   one by one, in order, or many callers in one batch
turns/      the ids of earlier answers, and which of them a later prompt keeps
cache/      prompts encoded from what earlier ones have in common
"""
