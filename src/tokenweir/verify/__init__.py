"""Comparison with the reference libraries, for `tokenweir verify`."""
