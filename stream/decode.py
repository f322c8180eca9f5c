"""Incremental decoding, one id at a time; the same class as in `encode`, where its compiled half lives."""

from __future__ import annotations

from tokenweir.encode.decode import DecodeStream

__all__ = ["DecodeStream"]
