"""Small pictures and sounds as bytes and data URLs, a template with placeholders, and an engine that takes media."""

import struct
import zlib
from base64 import b64encode

from serving import Script

from tokenweir.templates.chat_template import ChatTemplate

TEMPLATE = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for c in m.content %}{% if c.type == 'image' %}<image>{% elif c.type == 'audio' %}<audio>"
    "{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def png(width=2, height=3, shade=0, rows=None):
    """Return the bytes of a PNG of one shade of grey, or of rows; a large one has no pixels behind its header."""
    if rows is None:
        rows = (b"\0" + bytes([shade]) * width) * height if width * height < 1 << 16 else b""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def wav():
    """Return the bytes of a WAV file without samples."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    return b"RIFF" + struct.pack("<I", 4 + len(form) + 8) + b"WAVE" + form + b"data" + struct.pack("<I", 0)


def data_url(data, media_type="image/png"):
    return f"data:{media_type};base64,{b64encode(data).decode()}"


def image(data=None):
    """Return an image part of Chat Completions, with a PNG or the given data."""
    return {"type": "image_url", "image_url": {"url": data_url(png() if data is None else data)}}


def sound():
    """Return an audio part of Chat Completions."""
    return {"type": "input_audio", "input_audio": {"data": b64encode(wav()).decode(), "format": "wav"}}


def text(said):
    return {"type": "text", "text": said}


def user(*parts):
    return {"role": "user", "content": list(parts)}


class Sighted(Script):
    """Engine double that takes images and sound, and records the media that it got in `seen`."""

    media = frozenset({"image", "audio"})

    def __init__(self, *parts):
        super().__init__(*parts)
        self.seen = []

    def generate(self, prompt_ids, sampling, *, media=None):
        self.seen.append(media)
        return super().generate(prompt_ids, sampling)
