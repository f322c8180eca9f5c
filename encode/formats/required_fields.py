"""The fields that a component of a tokenizer.json must have, though the spec has a default for them.

HuggingFace's library (`tokenizers` 0.23) refuses a file without one; so does `huggingface.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tokenweir.encode.errors import TokenizerFileError

_BYTE_LEVEL = ("add_prefix_space", "trim_offsets")

_REQUIRED: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "normalizer": {
            "BertNormalizer": ("clean_text", "handle_chinese_chars", "lowercase"),
            "Strip": ("strip_left", "strip_right"),
        },
        "pre_tokenizer": {
            "ByteLevel": _BYTE_LEVEL,
            "Metaspace": ("replacement",),
            "Split": ("invert",),
        },
        "post_processor": {"ByteLevel": _BYTE_LEVEL, "TemplateProcessing": ("pair", "special_tokens")},
        "decoder": {
            "BPEDecoder": ("suffix",),
            "ByteLevel": _BYTE_LEVEL,
            "Metaspace": ("replacement",),
            "WordPiece": ("prefix", "cleanup"),
        },
    }
)
"""For each kind of component, the required fields of some types."""

_SEQUENCES = ("normalizers", "pretokenizers", "processors", "decoders")
"""The fields in which a `Sequence` has its parts."""


def check_required(kind: str, component: object, place: str) -> None:
    """Raise `TokenizerFileError` if a component, or a part of it, lacks a required field.

    Args:
        kind: The key of the component in the file, such as "normalizer".
        component: The component, as its JSON has it.
        place: Its JSON path, for the message.

    """
    if not isinstance(component, dict):
        return
    for field in _REQUIRED[kind].get(str(component.get("type")), ()):
        if field not in component:
            raise TokenizerFileError(f"{place}: Object missing required field `{field}`")
    for name in _SEQUENCES:
        if isinstance(parts := component.get(name), list):
            for i, part in enumerate(parts):
                check_required(kind, part, f"{place}.{name}[{i}]")
