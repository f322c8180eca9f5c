"""Files of a message: images, sound and video as data URLs, other files as text."""

from __future__ import annotations

from base64 import b64encode
from mimetypes import guess_type
from pathlib import Path
from typing import Any, NamedTuple

from tokenweir.encode.base.options import check_texts
from tokenweir.encode.errors import MediaError
from tokenweir.encode.files import read_regular


class Attachment(NamedTuple):
    """A file that is attached to a message.

    Attributes:
        name: The file's name.
        kind: "text", or the kind of media: "image", "audio" or "video".
        part: The part of the message's content that carries it, in OpenAI's form.

    """

    name: str
    kind: str
    part: dict[str, Any]


def read_attachment(path: str, engine: object) -> Attachment:
    """Read a file, to attach it to a message.

    Args:
        path: The file; `~` is the home folder.
        engine: The engine that gets the message; its attribute `media` has the kinds of media that it takes.

    Raises:
        MediaError: The engine takes no media of the file's kind, or the file is neither media nor UTF-8.
        OSError: The file cannot be read.
        RuntimeError: There is no home folder.

    """
    check_texts(path=path)
    file = Path(path).expanduser()
    media_type = guess_type(file.name)[0] or "text/plain"
    kind = media_type.partition("/")[0]
    if kind not in ("image", "audio", "video"):
        try:
            text = read_regular(file).decode()
        except UnicodeDecodeError:
            raise MediaError(f"{file.name} is neither an image, sound or video nor UTF-8") from None
        return Attachment(file.name, "text", {"type": "text", "text": f"{file.name}:\n{text}\n"})
    if kind not in getattr(engine, "media", ()):
        raise MediaError(f"{file.name} is of type {media_type}, and this model's engine takes no {kind}")
    url = f"data:{media_type};base64,{b64encode(read_regular(file)).decode()}"
    return Attachment(file.name, kind, {"type": f"{kind}_url", f"{kind}_url": {"url": url}})
