"""Contents of messages for a chat template: a text, or parts in OpenAI's form where there are images, audio or files.

The wire formats differ in the names of their parts. Here each becomes a text or a media part with a data URL, which
`tokenweir.stream.chat.media` reads. Text files become text; other files are refused by their type.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from msgspec import Struct

from tokenweir.stream.serve.wire.shared.errors import RequestError

Content = str | list[dict[str, Any]]
"""A text, or parts."""

_HEADER = re.compile(r"data:([\w.+-]{1,64}+/[\w.+-]{1,64}+)(?![\w.+-])[^,]*+,", re.ASCII)
"""Head of a data URL. Linear: neighbouring repeats have no character in common, and are possessive."""


class ImageAddress(Struct, frozen=True):
    """Address of an image or another medium; `detail` is accepted and has no effect."""

    url: str
    detail: str | None = None


class InputAudio(Struct, frozen=True):
    """Audio: its bytes in base64, and the name of its format."""

    data: str
    format: str


class InputFile(Struct, frozen=True):
    """A file of a request. Only `file_data`, a data URL, is supported."""

    file_data: str | None = None
    filename: str | None = None
    file_id: str | None = None
    file_url: str | None = None


def image_part(url: str | None, where: str) -> dict[str, Any]:
    """Return the content part of an image for a chat template.

    Raise `RequestError` if `url` is None, as it is if the request refers to an uploaded file. `where` is the path of
    the image in the request, for errors.
    """
    if url is None:
        raise unsupported(f"{where} has no image: this server stores no files, and takes images as data URLs", where)
    return {"type": "image_url", "image_url": {"url": url}}


def audio_part(audio: InputAudio) -> dict[str, Any]:
    """Return the content part of audio for a chat template."""
    return {"type": "input_audio", "input_audio": {"data": audio.data, "format": audio.format}}


def file_part(file: InputFile, where: str) -> dict[str, Any]:
    """Return the content part of a file for a chat template: a text with the file's name, an image, audio or a video.

    Args:
        file: The file.
        where: Path of the file in the request, for errors.

    Raises:
        RequestError: The file has no data URL, is text but not UTF-8, or is of another type.

    """
    url = file.file_data
    if url is None:
        raise unsupported(f"{where} has no file_data: this server stores and fetches no files", where)
    header = _HEADER.match(url)
    if header is None:
        raise unsupported(f"{where}.file_data: {url[:40]!r} is no data URL", where)
    media_type = header[1].lower()
    kind = media_type.partition("/")[0]
    if kind in ("image", "audio", "video"):
        return {"type": f"{kind}_url", f"{kind}_url": {"url": url}}
    if kind != "text":
        raise unsupported(f"{where} is of type {media_type[:80]!r}: files are text, images or audio here", where)
    try:
        text = binascii.a2b_base64(url[header.end() :], strict_mode=True).decode()
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"{where}.file_data is not UTF-8 in base64: {error}", param=where) from None
    return text_part(f"{file.filename}:\n{text}\n" if file.filename else text)


def text_part(text: str) -> dict[str, Any]:
    """Return the content part of a text for a chat template."""
    return {"type": "text", "text": text}


def content_of(parts: Iterable[dict[str, Any]]) -> Content:
    """Join parts to a message's content.

    Neighbouring texts are joined, and empty ones dropped. The result is a string if no part is an image, audio or
    another medium, otherwise a list of parts.
    """
    joined: list[dict[str, Any]] = []
    for are_texts, run in groupby(parts, lambda part: part["type"] == "text"):
        if not are_texts:
            joined += run
        elif text := "".join(part["text"] for part in run):
            joined.append(text_part(text))
    if all(part["type"] == "text" for part in joined):
        return joined[0]["text"] if joined else ""
    return joined


def parts_of(content: Content) -> list[dict[str, Any]]:
    """Return a content as a list of parts; a string becomes one text part."""
    return [text_part(content)] if isinstance(content, str) else content


def paragraphs(*contents: Content) -> Content:
    """Join contents to one, with an empty line between them; empty contents are skipped."""
    joined: list[dict[str, Any]] = []
    for content in contents:
        if content:
            if joined:
                joined.append(text_part("\n\n"))
            joined += parts_of(content)
    return content_of(joined)


def text_of(content: Content) -> str:
    """Return the text of a content, without its media."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def text_size(content: Content) -> int:
    """Return the number of characters of a content's text."""
    return len(content) if isinstance(content, str) else sum(len(part.get("text", "")) for part in content)


def unsupported(message: str, where: str) -> RequestError:
    """Return the error for content that this server does not take; `where` is its path in the request."""
    return RequestError(message, code="unsupported_content", param=where)
