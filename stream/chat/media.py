"""Media in messages: checked, extracted for the engine, and replaced by parts without bytes for the template.

A part is OpenAI's: `image_url`, `video_url` or `audio_url` with a data URL, or `input_audio`. A part without an address, such
as `{"type": "image"}`, is the template's alone, for engines that have the media from elsewhere. Nothing is fetched: an address
other than a data URL is refused, or passed on to the engine where `MediaLimits.remote` allows it.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct

from tokenweir.encode.errors import MediaError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.events.image_header import FORMATS, read_image_header
from tokenweir.stream.events.media import Media, MediaKind, MediaPrompt
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.messages import Messages
from tokenweir.templates.prompt import MediaPlace, Prompt

_DATA_URL = re.compile(r"data:([\w.+-]{1,64}+/[\w.+-]{1,64}+)(?:;[\w-]++=[\w.-]++)*+;base64,", re.ASCII)
CHUNK = 1 << 16
"""Characters of base64 that are decoded at once."""
LONG_MEDIA = 1 << 17
"""Characters of base64 from which they are decoded in a thread: half a millisecond of work."""
_ADDRESSED: dict[str, MediaKind] = {"image_url": "image", "video_url": "video", "audio_url": "audio"}
_TEMPLATE_TYPES: dict[MediaKind, tuple[str, ...]] = {
    "image": ("image", "image_url"),
    "audio": ("audio", "input_audio", "audio_url"),
    "video": ("video", "video_url"),
}
"""Types that templates know, the commonest first."""


class MediaLimits(Struct, frozen=True, kw_only=True):
    """Bounds on the media of one conversation.

    Attributes:
        items: Largest number of media.
        bytes: Largest total of their bytes, decoded. Media at web addresses do not count.
        image_pixels: Largest number of pixels of one image.
        remote: Pass web addresses on to the engine, which then fetches what clients name. Their digest is that of the address.

    """

    items: int = 32
    bytes: int = 1 << 24
    image_pixels: int = 1 << 25
    remote: bool = False


NO_MEDIA_LIMITS = MediaLimits(items=1 << 30, bytes=1 << 40, image_pixels=1 << 40)
"""Bounds for callers who own the process."""


def read_media(
    messages: Any, template: ChatTemplate, limits: MediaLimits = NO_MEDIA_LIMITS
) -> tuple[Any, tuple[Media, ...]]:
    """Extract the media from messages.

    Args:
        messages: The conversation, with media as OpenAI's content parts. `Messages` are returned unchanged, without media.
        template: The template, which decides the type names of the parts that replace media.
        limits: Bounds on the number and size of the media.

    Returns:
        The messages for the template, unchanged if they have no media, and the media in their order. Each media part
        is replaced by one with its type and its digest as `id`, so that prompts with different pictures differ.

    Raises:
        MediaError: A part is malformed, exceeds a limit, or has a type that cannot be read.

    """
    if isinstance(messages, Messages) or not isinstance(messages, Sequence):
        return messages, ()
    found: list[Media] = []
    total = 0
    shown: dict[int, dict[str, Any]] = {}
    for number, part_number, part in _parts(messages):
        place = f"messages[{number}].content[{part_number}]"
        if (address := _address(part, place)) is None:
            continue
        kind, url = address
        if len(found) == limits.items:
            raise MediaError(f"{place}: a conversation may have {limits.items} images, sounds and videos", place=place)
        media = _media(kind, url, (number, part_number), limits, total)
        total += media.size
        found.append(media)
        message = shown.setdefault(number, {**messages[number], "content": list(messages[number]["content"])})
        message["content"][part_number] = {"type": _type_for(template, media.kind), "id": media.digest}
    if not found:
        return messages, ()
    return [shown.get(number, message) for number, message in enumerate(messages)], tuple(found)


def media_size(messages: Any) -> int:
    """Return the number of characters of all media addresses and base64 data in messages, which `read_media` reads."""
    if isinstance(messages, Messages) or not isinstance(messages, Sequence):
        return 0
    size = 0
    for _, _, part in _parts(messages):
        kind = part.get("type")
        given = part.get(kind) if kind == "input_audio" or kind in _ADDRESSED else None
        data = given.get("url", given.get("data")) if isinstance(given, Mapping) else given
        if isinstance(data, str):
            size += len(data)
    return size


def check_media(media: Sequence[Media], template: ChatTemplate, engine: object) -> None:
    """Raise `MediaError` if the template has no placeholder for the kind of a medium, or the engine does not support it."""
    takes = getattr(engine, "media", ())
    for each in media:
        if not any(_mentions(template, name) for name in _TEMPLATE_TYPES[each.kind]):
            raise MediaError(f"{each}, and the chat template {template.name!r} takes no {each.kind}", place=each.place)
        if each.kind not in takes:
            raise MediaError(f"{each}, and this model's engine takes no {each.kind}", place=each.place)


def place_media(prompt: Prompt, media: Sequence[Media], tokenizer: Tokenizer) -> MediaPrompt:
    """Return the prompt's text with its media and the positions of their placeholders, for an engine.

    Raise `MediaError` unless each medium has exactly one placeholder in the prompt.
    """
    text = prompt.text
    by_part = {(each.message, each.part): each for each in media}
    written: dict[tuple[int, int], MediaPlace] = {}
    for place in prompt.places:
        if not text[place.start : place.end].strip():
            continue  # a second loop over the content, for its texts
        part = place.message, place.part
        where = f"messages[{place.message}].content[{place.part}]"
        if part not in by_part:
            raise MediaError(f"{where} has a placeholder in the prompt, but no data URL", place=where)
        if part in written:
            raise MediaError(f"{where} has several placeholders in the prompt", place=where)
        written[part] = place
    for part, each in by_part.items():
        if part not in written:
            raise MediaError(f"{each}, and the chat template writes no placeholder for it there", place=each.place)
    return MediaPrompt(
        text=text,
        media=tuple(by_part[part] for part in written),
        places=tuple((place.start, place.end) for place in written.values()),
        guarded=bool(prompt.guarded_for(tokenizer)),
    )


def _parts(messages: Sequence[Any]) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    for number, message in enumerate(messages):
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, list | tuple):
            for place, part in enumerate(content):
                if isinstance(part, Mapping):
                    yield number, place, part


def _address(part: Mapping[str, Any], place: str) -> tuple[MediaKind, str] | None:
    """Return the kind and the URL of a media part; None for any other part and for a media part without an address.

    The URL of `input_audio` is a data URL of its data and format.

    Args:
        part: The content part.
        place: The position of the part in the messages, for errors.

    Raises:
        MediaError: The address or the audio data has the wrong type.

    """
    kind = part.get("type")
    if kind == "input_audio":
        given = part.get(kind)
        if not isinstance(given, Mapping):
            return None
        data, form = given.get("data"), given.get("format")
        if not isinstance(data, str) or not isinstance(form, str):
            raise MediaError(f"{place}.input_audio must have data in base64 and a format", place=place)
        return "audio", data if data.startswith("data:") else f"data:audio/{form};base64,{data}"
    if kind not in _ADDRESSED:
        return None
    given = part.get(kind)
    url = given.get("url") if isinstance(given, Mapping) else given
    if url is None:
        return None
    if not isinstance(url, str):
        raise MediaError(f"{place}.{kind}.url must be a data URL, not {type(url).__name__}", place=place)
    return _ADDRESSED[kind], url


def _media(kind: MediaKind, url: str, at: tuple[int, int], limits: MediaLimits, before: int) -> Media:
    place = f"messages[{at[0]}].content[{at[1]}]"
    header = _DATA_URL.match(url)
    if header is None and limits.remote and url.startswith(("https://", "http://")):
        digest = sha256(url.encode("utf-8", "replace")).hexdigest()
        return Media(kind=kind, media_type="", url=url, digest=digest, size=0, message=at[0], part=at[1])
    if header is None:
        raise MediaError(f"{place}: {url[:40]!r} is no data URL in base64, and addresses are not fetched", place=place)
    encoded = len(url) - header.end()
    if before + encoded // 4 * 3 - 2 > limits.bytes:
        raise MediaError(f"{place}: the media of a conversation may have {limits.bytes} bytes together", place=place)
    try:
        data, digest = _decode(url, header.end())
    except (binascii.Error, UnicodeEncodeError) as error:
        raise MediaError(f"{place}: its data URL is not base64: {error}", place=place) from None
    if before + len(data) > limits.bytes:
        raise MediaError(f"{place}: the media of a conversation may have {limits.bytes} bytes together", place=place)
    media_type = header[1].lower()
    if kind == "image":
        image = read_image_header(data)
        if image is None:
            raise MediaError(f"{place}: {media_type} of {len(data)} bytes is no {FORMATS}", place=place)
        if image.width * image.height > limits.image_pixels:
            raise MediaError(
                f"{place}: the image has {image.width} x {image.height} pixels; {limits.image_pixels} are allowed",
                place=place,
            )
        media_type = image.media_type
    elif not media_type.startswith(f"{kind}/"):
        raise MediaError(f"{place} is of type {kind}, and its data URL of {media_type}", place=place)
    elif not data:
        raise MediaError(f"{place}: its data URL is empty", place=place)
    return Media(
        kind=kind,
        media_type=media_type,
        url=url,
        digest=digest,
        size=len(data),
        message=at[0],
        part=at[1],
    )


def _decode(url: str, start: int) -> tuple[bytes, str]:
    """Return the bytes of a data URL, whose base64 begins at index `start`, and their SHA-256 in hex.

    The GIL is held for one chunk at a time, so that other threads can send their streams.

    Raises:
        binascii.Error: It is not base64.
        UnicodeEncodeError: It is not ASCII.

    """
    data, digest = bytearray(), sha256()
    for begin in range(start, len(url), CHUNK):
        chunk = binascii.a2b_base64(url[begin : begin + CHUNK].encode("ascii"), strict_mode=True)
        if begin + CHUNK < len(url) and len(chunk) < CHUNK // 4 * 3:
            raise binascii.Error("Excess data after padding")
        data += chunk
        digest.update(chunk)
    return bytes(data), digest.hexdigest()


def _type_for(template: ChatTemplate, kind: MediaKind) -> str:
    """Return the `type` of content parts by which a template tests for a kind of media, such as "image" or "image_url"."""
    names = _TEMPLATE_TYPES[kind]
    return next((name for name in names if _mentions(template, name)), names[0])


def _mentions(template: ChatTemplate, name: str) -> bool:
    return f"'{name}'" in template.source or f'"{name}"' in template.source
