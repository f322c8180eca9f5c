"""Normalized texts with the origin of each character, by the library `tokenizers` and by the core."""

from __future__ import annotations

from tokenizers import Tokenizer, models

# A tokenizer whose tokens are single bytes, so that its offsets are those of the normalizer.
BYTES = Tokenizer(models.BPE(vocab={f"<0x{byte:02X}>": byte for byte in range(256)}, merges=[], byte_fallback=True))


def theirs(normalizer, text):
    """Normalize a text by the library; return the result and the origin of each of its characters."""
    BYTES.normalizer = normalizer
    encoding = BYTES.encode(text, add_special_tokens=False)
    origin = [offsets for byte, offsets in zip(encoding.ids, encoding.offsets, strict=True) if byte & 0xC0 != 0x80]
    return bytes(encoding.ids).decode(), origin


def ours(core, text):
    """Normalize a text by the core, as `theirs` does; both ways of normalizing must agree."""
    normal, origin = core.normalize_with_origin(text)
    assert core.normalize(text) == normal
    return normal, [tuple(offsets) for offsets in origin.tolist()]
