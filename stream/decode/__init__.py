"""Ids to deltas: decoding, end tokens, thinking, tool calls and stop strings, without I/O."""
