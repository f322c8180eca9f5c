"""Fixtures that several tests of commands share."""

from __future__ import annotations

import json

import pytest

from tokenweir.encode.tokenizer import Tokenizer


@pytest.fixture
def recording(tmp_path):
    """Function that writes a recording of a text and its speed, and returns the `--engine` option that replays it."""

    def write(text, wait_ms=0.0):
        ids = Tokenizer.default().encode(text)
        path = tmp_path / f"recording-{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps({"name": "test", "prompt": "?", "ids": ids, "waits_ms": [wait_ms] * len(ids)}))
        return f"--engine=replay:{path}"

    return write
