"""Files to `TokenizerSpec`: one reader a format, chosen by name and content. Files are not trusted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats import gguf, huggingface, tiktoken
from tokenweir.encode.formats.folder import read_beside
from tokenweir.encode.spec import TokenizerSpec

MAX_BYTES = 1 << 30
"""A larger tokenizer file is refused; the largest known has 33 MB."""


def read_file(
    path: Path, *, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> TokenizerSpec:
    """Read a tokenizer file with what lies beside it, or a model folder; see `Tokenizer.from_file`."""
    if path.is_dir():
        path = _in_folder(path)
    try:
        if gguf.is_gguf(path):
            if special_tokens is not None:
                raise ValueError("special_tokens is for rank files; a GGUF file has its own")
            return gguf.read_file(path, pattern=pattern)
        if (size := path.stat().st_size) > MAX_BYTES:
            raise TokenizerFileError(f"{size} bytes; at most {MAX_BYTES} are read")
        data = path.read_bytes()
        if path.name.startswith("tekken"):
            raise UnsupportedTokenizerError("a tekken file")
        if path.suffix == ".json":
            spec = read_bytes(data, "huggingface", pattern=pattern, special_tokens=special_tokens)
        elif re.match(rb"\n[^\n]\n", data):  # protobuf: the first piece, its length, the piece's text
            raise UnsupportedTokenizerError("a SentencePiece model")
        else:
            spec = tiktoken.read(data, name=path.name, pattern=pattern, special_tokens=special_tokens)
        return read_beside(spec, path.parent)
    except (TokenizerFileError, UnsupportedTokenizerError) as error:
        raise type(error)(f"{path}: {error}") from error
    except OSError as error:
        raise TokenizerFileError(f"{path}: {error.strerror or error}") from error


def read_bytes(
    data: bytes, format: str, *, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> TokenizerSpec:
    """Read a tokenizer from memory; see `Tokenizer.from_bytes`."""
    match format:
        case "huggingface":
            if pattern is not None or special_tokens is not None:
                raise ValueError("pattern and special_tokens are for rank files; a tokenizer.json has its own")
            return huggingface.read(data)
        case "tiktoken":
            return tiktoken.read(data, pattern=pattern, special_tokens=special_tokens)
        case "gguf":
            if special_tokens is not None:
                raise ValueError("special_tokens is for rank files; a GGUF file has its own")
            return gguf.read_bytes(data, pattern=pattern)
    raise ValueError(f'format must be "huggingface", "tiktoken" or "gguf", not {format!r}')


def _in_folder(folder: Path) -> Path:
    for pattern in ("tokenizer.json", "*.tiktoken", "tokenizer.model", "tekken.json", "*.gguf"):
        found = sorted(folder.glob(pattern))
        if len(found) > 1:
            raise TokenizerFileError(f"{folder}: which of {', '.join(path.name for path in found)}? Name one")
        if found:
            return found[0]
    raise TokenizerFileError(f"{folder}: no tokenizer.json, rank file or GGUF file in this folder")
