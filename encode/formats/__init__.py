"""Files to `TokenizerSpec`: one reader a format, chosen by name and content. Files are not trusted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from tokenweir.encode.base.options import check_flags
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError, without_path
from tokenweir.encode.files import check_regular, read_regular, refuse_pointer
from tokenweir.encode.formats import gguf, huggingface, sentencepiece, tekken, tiktoken
from tokenweir.encode.formats.folder import check_class_beside, read_beside, recognise_beside
from tokenweir.encode.spec import TokenizerSpec

MAX_BYTES = 1 << 30
"""A larger tokenizer file is refused; the largest known has 33 MB. (GGUF files are mapped, and may have any size.)"""

Format = Literal["gguf", "tekken", "huggingface", "sentencepiece", "tiktoken"]


class FileFormat(Struct, frozen=True):
    """A format of tokenizer files. A new one is its module, and a row of `FORMATS`.

    Attributes:
        noun: The noun for such a file in error messages, such as "a GGUF file".
        names: Glob patterns of the names that such files have in a model folder.
        recognises: Whether a file is of this format, by its path and content. Formats are asked in the order of `FORMATS`.
        read: Takes a file's content and returns the spec of its tokenizer.
        options: The names of the options of `Tokenizer.from_file` that `read` takes as keywords.

    """

    noun: str
    names: tuple[str, ...]
    recognises: Callable[[Path, bytes], bool]
    read: Callable[..., TokenizerSpec]
    options: tuple[str, ...] = ()


FORMATS: dict[Format, FileFormat] = {
    "gguf": FileFormat(
        "a GGUF file", ("*.gguf",), lambda path, data: gguf.is_gguf(path), gguf.read_bytes, ("pattern", "nfc")
    ),
    "tekken": FileFormat(
        "a tekken.json",
        ("tekken.json",),
        lambda path, data: path.suffix == ".json" and (path.name.startswith("tekken") or tekken.recognises(data)),
        tekken.read,
    ),
    "huggingface": FileFormat(
        "a tokenizer.json", ("tokenizer.json",), lambda path, data: path.suffix == ".json", huggingface.read
    ),
    "sentencepiece": FileFormat(
        "a SentencePiece model",
        ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model"),
        lambda path, data: sentencepiece.looks_like(data),
        sentencepiece.read,
    ),
    "tiktoken": FileFormat(
        "a rank file",
        ("*.tiktoken", "tiktoken.model"),
        lambda path, data: True,
        tiktoken.read,
        ("pattern", "special_tokens"),
    ),
}


def read_file(
    path: Path, *, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None, nfc: bool = True
) -> TokenizerSpec:
    """Read a tokenizer file with the files beside it, or a model folder; return the tokenizer's spec.

    The arguments and errors are those of `Tokenizer.from_file`.
    """
    if os.path.isdir(path):  # `Path.is_dir` fails for names that are too long
        path = find_in_folder(path)
    options: dict[str, Any] = {"pattern": pattern, "special_tokens": special_tokens, "nfc": nfc}
    try:
        if check_regular(path) == 0:
            raise TokenizerFileError("the file is empty")
        if FORMATS["gguf"].recognises(path, b""):  # mapped rather than read; it needs no files beside it
            return gguf.read_file(path, **_checked("gguf", options))
        data = read_regular(path, MAX_BYTES)
        format = next(name for name, known in FORMATS.items() if known.recognises(path, data))
        given = _checked(format, options)
        if format == "sentencepiece":
            check_class_beside(path.parent)
        elif format == "tiktoken":
            given |= {"name": path.name, "recognised": recognise_beside(path, data)}
        # A tokenizer_config.json beside a tekken.json describes a conversion of it.
        return read_beside(FORMATS[format].read(data, **given), path.parent, tokenizer_config=format != "tekken")
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
    """Read a tokenizer from the content of a file; return its spec.

    The arguments and errors are those of `Tokenizer.from_bytes`.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        hint = "; from_file() takes a path" if isinstance(data, str) else ""
        raise TypeError(f"data must be bytes, not {type(data).__name__}{hint}")
    check_given(pattern, special_tokens, nfc)
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(sorted(FORMATS))}, not {format!r}")
    given = _checked(format, {"pattern": pattern, "special_tokens": special_tokens, "nfc": nfc})
    try:
        refuse_pointer(data)
    except OSError as error:
        raise TokenizerFileError(f"the data {error}") from error
    return FORMATS[format].read(data, **given)


def check_given(pattern: object, special_tokens: object, nfc: object) -> None:
    """Raise `TypeError` if an option of `Tokenizer.from_file` has the wrong type, whatever the file's format."""
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
    """Return the options that differ from their defaults; raise `ValueError` for one that the format does not take."""
    given = {name: value for name, value in options.items() if value is not (True if name == "nfc" else None)}
    for name in given:
        if name not in FORMATS[format].options:
            files = "GGUF files" if name == "nfc" else "rank files"
            raise ValueError(f"{name} is for {files}; {FORMATS[format].noun} has its own")
    return given


def find_in_folder(folder: Path) -> Path:
    """Return the path of the tokenizer file in a model folder.

    Of several formats the first counts: tokenizer.json, tiktoken rank file, SentencePiece model, tekken.json, GGUF file.
    Raise `TokenizerFileError` if there is no such file, or if several match one name pattern.
    """
    for pattern in (name for format in _SEARCHED for name in FORMATS[format].names):
        found = sorted(folder.glob(pattern))
        if len(found) > 1:
            raise TokenizerFileError(f"{folder}: which of {', '.join(path.name for path in found)}? Name one")
        if found:
            return found[0]
    raise TokenizerFileError(
        f"{folder}: no tokenizer.json, tekken.json, SentencePiece, rank or GGUF file in this folder"
    )


_SEARCHED: tuple[Format, ...] = ("huggingface", "tiktoken", "sentencepiece", "tekken", "gguf")
"""The order in which a folder is searched: the file that the model's authors converted last comes first."""
