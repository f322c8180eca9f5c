"""Engines: anything that yields token ids."""
