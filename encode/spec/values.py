"""Types of fields that several components share."""

from typing import Annotated

from msgspec import Meta, Struct

Character = Annotated[str, Meta(min_length=1, max_length=1)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Pattern(Struct, frozen=True, omit_defaults=True):
    """The pattern of a `Split`: a regular expression or plain text, never both."""

    Regex: str | None = None
    String: str | None = None
