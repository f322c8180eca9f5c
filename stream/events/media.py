"""Media of a prompt: images, sound and video that go to an engine beside the prompt's ids."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

MediaKind = Literal["image", "audio", "video"]


class Media(Struct, frozen=True, kw_only=True):
    """An image, a sound or a video of a conversation.

    Attributes:
        kind: Its kind.
        media_type: Its media type, such as `image/png`; empty if it is not here.
        url: All of it, as a data URL in base64; or its web address, where these are allowed.
        digest: The SHA-256 of its bytes, or of the address, in hexadecimal.
        size: Its bytes; 0 if it is not here.
        message: The number of its message.
        part: The number of its part in the message's content.

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
        """The bytes in base64."""
        return self.url.partition(",")[2]

    @property
    def place(self) -> str:
        """The path of its part, for messages to people."""
        return f"messages[{self.message}].content[{self.part}]"

    def __str__(self) -> str:
        """Name the place and the kind, as the beginning of a sentence."""
        return f"{self.place} is {'a' if self.kind == 'video' else 'an'} {self.kind}"


class MediaPrompt(Struct, frozen=True, kw_only=True):
    """A prompt with media, which an engine gets beside the ids.

    Attributes:
        text: The prompt's text.
        media: The media, in the order of their placeholders.
        places: The start and the end of each placeholder in the text, in characters.
        guarded: Whether the text has control tokens that count as text. An engine that encodes the text itself would take
            them for control tokens.

    """

    text: str
    media: tuple[Media, ...]
    places: tuple[tuple[int, int], ...]
    guarded: bool
