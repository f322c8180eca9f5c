"""Types of fields that several components share."""

from typing import Annotated

from msgspec import Meta, Struct

Character = Annotated[str, Meta(min_length=1, max_length=1)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Pattern(Struct, frozen=True, omit_defaults=True):
    """The pattern of a `Split` or `Replace`: a regular expression (`Regex`) or plain text (`String`), never both."""

    Regex: str | None = None
    String: str | None = None
