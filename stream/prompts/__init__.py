"""Prompts to ids: one by one, in order, or many callers in one batch."""
