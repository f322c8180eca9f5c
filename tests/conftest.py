"""What every test may use: the folder of real tokenizers, texts and templates."""

from __future__ import annotations

import os
import runpy
import struct
from pathlib import Path

import pytest

from tokenweir.encode.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"


def data_path(name: str) -> Path:
    """The path of a file in ../shared/data; skips the test where it is absent, or fails it under REQUIRE_DATA=1."""
    path = DATA / name
    if not path.exists():
        reason = f"{path} is absent"
        if os.environ.get("REQUIRE_DATA") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def data():
    return data_path


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A CTranslate2 model folder with random weights, over the embedded vocabulary; greedy, it never says an end token."""
    pytest.importorskip("ctranslate2")
    folder = tmp_path_factory.mktemp("tiny_model")
    tok = Tokenizer.default()
    write = runpy.run_path(str(ROOT / "demos" / "tiny_model.py"))["write_tiny_model"]
    write(folder, tok.vocab_size, eos_id=min(tok.eos_ids), silent=tok.special_tokens.values())
    return folder


def gguf_bytes(values, *, version=3):
    """A GGUF file without tensors.

    Args:
        values: Key to value. A str, bool, int (UINT32), float (FLOAT32), a list of them (integers are INT32, an empty list
            is of strings), or bytes for an array of UINT8.
        version: The format's version.

    """
    return struct.pack("<4sIQQ", b"GGUF", version, 0, len(values)) + b"".join(
        _gguf_string(key) + _gguf_value(value) for key, value in values.items()
    )


def _gguf_string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def _gguf_value(value):
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _gguf_string(value)
        case bytes():
            return struct.pack("<IIQ", 9, 0, len(value)) + value
        case [int(), *_]:
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
        case [float(), *_]:
            return struct.pack(f"<IIQ{len(value)}f", 9, 6, len(value), *value)
        case [*texts]:
            return struct.pack("<IIQ", 9, 8, len(texts)) + b"".join(map(_gguf_string, texts))
    raise TypeError(value)


@pytest.fixture(scope="session")
def gguf():
    return gguf_bytes
