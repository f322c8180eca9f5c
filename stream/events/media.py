"""Media of a prompt: images, sound and video that go to an engine beside the prompt's ids."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

MediaKind = Literal["image", "audio", "video"]


class Media(Struct, frozen=True, kw_only=True):
    """An image, a sound or a video of a conversation.

    Attributes:
        kind: "image", "audio" or "video".
        media_type: Its media type, such as `image/png`; empty if only its web address is known.
        url: Its content as a data URL in base64; or its web address, where these are allowed.
        digest: The SHA-256 of its bytes, or of the address, in hexadecimal.
        size: Its size in bytes; 0 if only its web address is known.
        message: The index of its message in the conversation, from 0.
        part: The index of its part in the message's content, from 0.

    """

    kind: MediaKind
    media_type: str
    url: str
    digest: str
    size: int
    message: int
    part: int

    @property
    def base64(self) -> str:
        """The content in base64, taken from the data URL."""
        return self.url.partition(",")[2]

    @property
    def place(self) -> str:
        """The path of its part in the request, such as `messages[0].content[1]`, for error messages."""
        return f"messages[{self.message}].content[{self.part}]"

    def __str__(self) -> str:
        """Return the path and the kind as the beginning of a sentence: `messages[0].content[1] is an image`."""
        return f"{self.place} is {'a' if self.kind == 'video' else 'an'} {self.kind}"


class MediaPrompt(Struct, frozen=True, kw_only=True):
    """A prompt with media, which an engine gets beside the ids.

    Attributes:
        text: The prompt's text.
        media: The media, in the order of their placeholders.
        places: The start and the end of each placeholder in the text, in characters.
        guarded: Whether messages have text that spells a control token but counts as text. An engine that encodes the
            prompt's text itself would take it for a control token.

    """

    text: str
    media: tuple[Media, ...]
    places: tuple[tuple[int, int], ...]
    guarded: bool
