"""Files to `TokenizerSpec`: one reader a format, chosen by name and content. Files are not trusted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError, without_path
from tokenweir.encode.formats import gguf, huggingface, sentencepiece, tekken, tiktoken
from tokenweir.encode.formats.folder import check_class_beside, read_beside, recognise_beside
from tokenweir.encode.options import check_flags
from tokenweir.encode.spec import TokenizerSpec

MAX_BYTES = 1 << 30
"""A larger tokenizer file is refused; the largest known has 33 MB. (GGUF files are mapped, and may have any size.)"""

Format = Literal["huggingface", "sentencepiece", "tekken", "gguf", "tiktoken"]

FORMATS: dict[Format, str] = {
    "huggingface": "a tokenizer.json",
    "sentencepiece": "a SentencePiece model",
    "tekken": "a tekken.json",
    "gguf": "a GGUF file",
    "tiktoken": "a rank file",
}


def read_file(
    path: Path, *, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None, nfc: bool = True
) -> TokenizerSpec:
    """Read a tokenizer file with what lies beside it, or a model folder; see `Tokenizer.from_file`."""
    if os.path.isdir(path):  # `Path.is_dir` fails for names that are too long
        path = find_in_folder(path)
    options: dict[str, Any] = {"pattern": pattern, "special_tokens": special_tokens, "nfc": nfc}
    try:
        if path.is_file() and path.stat().st_size == 0:
            raise TokenizerFileError("the file is empty")
        if gguf.is_gguf(path):  # it says everything itself
            return gguf.read_file(path, **_checked("gguf", options))
        if (size := path.stat().st_size) > MAX_BYTES:
            raise TokenizerFileError(f"{size} bytes; at most {MAX_BYTES} are read")
        data = path.read_bytes()
        if path.suffix == ".json" and (path.name.startswith("tekken") or tekken.recognises(data)):
            # A tokenizer_config.json describes a conversion of it.
            return read_beside(read_bytes(data, "tekken", **options), path.parent, tokenizer_config=False)
        if path.suffix == ".json":
            spec = read_bytes(data, "huggingface", **options)
        elif sentencepiece.looks_like(data):
            check_class_beside(path.parent)
            spec = read_bytes(data, "sentencepiece", **options)
        else:
            _checked("tiktoken", options)
            recognised = recognise_beside(path, data)
            spec = tiktoken.read(
                data, name=path.name, recognised=recognised, pattern=pattern, special_tokens=special_tokens
            )
        return read_beside(spec, path.parent)
    except (TokenizerFileError, UnsupportedTokenizerError) as error:
        raise type(error)(f"{path}: {error}") from error
    except OSError as error:
        raise TokenizerFileError(f"{path}: {without_path(error)}") from error


def read_bytes(
    data: bytes,
    format: Format,
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    nfc: bool = True,
) -> TokenizerSpec:
    """Read a tokenizer from memory; see `Tokenizer.from_bytes`."""
    if not isinstance(data, bytes | bytearray | memoryview):
        hint = "; from_file() takes a path" if isinstance(data, str) else ""
        raise TypeError(f"data must be bytes, not {type(data).__name__}{hint}")
    check_given(pattern, special_tokens, nfc)
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    given = _checked(format, {"pattern": pattern, "special_tokens": special_tokens, "nfc": nfc})
    match format:
        case "huggingface":
            return huggingface.read(data)
        case "sentencepiece":
            return sentencepiece.read(data)
        case "tekken":
            return tekken.read(data)
        case "gguf":
            return gguf.read_bytes(data, **given)
        case _:
            return tiktoken.read(data, **given)


def check_given(pattern: object, special_tokens: object, nfc: object = True) -> None:
    """Refuse options that can be right for no file.

    Raises:
        TypeError: Says what it must be.

    """
    if not isinstance(pattern, str | None):
        raise TypeError(f"pattern must be str, not {type(pattern).__name__}")
    check_flags(nfc=nfc)
    if special_tokens is None:
        return
    if not isinstance(special_tokens, Mapping):
        raise TypeError(f"special_tokens must be a mapping of texts to ids, not {type(special_tokens).__name__}")
    for text, token_id in special_tokens.items():
        if not isinstance(text, str) or not hasattr(token_id, "__index__"):
            raise TypeError(f"special_tokens must map texts to ids, and has {text!r:.80}: {token_id!r:.80}")


def _checked(format: Format, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given, if the format takes them."""
    given = {name: value for name, value in options.items() if value is not (True if name == "nfc" else None)}
    takes = {"tiktoken": ("pattern", "special_tokens"), "gguf": ("pattern", "nfc")}.get(format, ())
    for name in given:
        if name not in takes:
            files = "GGUF files" if name == "nfc" else "rank files"
            raise ValueError(f"{name} is for {files}; {FORMATS[format]} has its own")
    return given


def find_in_folder(folder: Path) -> Path:
    """The tokenizer file of a model folder: what comes first of the names below.

    Raises:
        TokenizerFileError: If there is none, or several of one kind.

    """
    for pattern in (
        "tokenizer.json",
        "*.tiktoken",
        "tiktoken.model",
        "tokenizer.model",
        "spiece.model",
        "sentencepiece.bpe.model",
        "tekken.json",
        "*.gguf",
    ):
        found = sorted(folder.glob(pattern))
        if len(found) > 1:
            raise TokenizerFileError(f"{folder}: which of {', '.join(path.name for path in found)}? Name one")
        if found:
            return found[0]
    raise TokenizerFileError(
        f"{folder}: no tokenizer.json, tekken.json, SentencePiece, rank or GGUF file in this folder"
    )
