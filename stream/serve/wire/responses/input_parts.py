"""Parts of the contents of Responses items, as contents for a chat template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenweir.stream.serve.wire.shared.contents import (
    Content,
    InputAudio,
    InputFile,
    audio_part,
    content_of,
    file_part,
    image_part,
    text_part,
)
from tokenweir.stream.serve.wire.shared.marks import CacheMarks


class InputText(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_text"):
    """Text."""

    text: str


class OutputText(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="output_text"):
    """Text of an answer that comes back."""

    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class Refusal(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="refusal"):
    """Refusal of a model."""

    refusal: str

    @property
    def text(self) -> str:
        """The text of the refusal."""
        return self.refusal


class InputImage(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_image"):
    """An image."""

    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class InputFilePart(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_file"):
    """A file."""

    file_data: str | None = None
    filename: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    detail: str | None = None


class InputAudioPart(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_audio"):
    """Audio."""

    input_audio: InputAudio


InputPart = InputText | OutputText | Refusal | InputImage | InputFilePart | InputAudioPart
"""A part of a message, or of the result of a call."""


def input_content(content: str | Sequence[InputPart] | None, where: str) -> Content:
    """Return a content for a chat template.

    Args:
        content: A text, or parts; None is an empty text.
        where: Path of the content in the request, for errors.

    Raises:
        RequestError: An image or a file is not supported.

    """
    if content is None or isinstance(content, str):
        return content or ""
    return content_of(_part(part, f"{where}[{place}]") for place, part in enumerate(content))


def _part(part: InputPart, where: str) -> dict[str, Any]:
    match part:
        case InputImage():
            return image_part(part.image_url, where)
        case InputFilePart():
            return file_part(InputFile(part.file_data, part.filename), where)
        case InputAudioPart():
            return audio_part(part.input_audio)
        case _:
            return text_part(part.text)
