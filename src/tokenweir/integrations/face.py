"""`TokenizerFace`: the class in the place of `tokenizers.Tokenizer` while the patch is in force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenweir.integrations.backend import Backend, Original, original_of


class _FaceType(type):
    """The type of `TokenizerFace`: its instances are backends and original tokenizers.

    Modules that are imported under the patch keep the class. Without the patch, so when `in_force` is false, it makes
    original tokenizers.
    """

    in_force = False

    def __call__(cls, original: Any, **options: Any) -> Any:
        if not _FaceType.in_force:
            return original if type(original) is Original else Original(original)
        return super().__call__(original, **options)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Original)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Original | Backend)


class TokenizerFace(Backend, metaclass=_FaceType):
    """`tokenizers.Tokenizer` under the patch: backends with its constructors."""

    @classmethod
    def from_file(cls, path: Any) -> TokenizerFace:
        """Read a tokenizer.json."""
        return cls(Original.from_file(path))

    @classmethod
    def from_str(cls, json: Any) -> TokenizerFace:
        """Read the text of a tokenizer.json."""
        return cls(Original.from_str(json))

    @classmethod
    def from_buffer(cls, buffer: Any) -> TokenizerFace:
        """Read the bytes of a tokenizer.json."""
        return cls(Original.from_buffer(buffer))

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> TokenizerFace:
        """Read a tokenizer from the hub, as `tokenizers` does."""
        return cls(Original.from_pretrained(*args, **kwargs))


def set_in_force(in_force: bool) -> None:
    """Say whether the patch is in force."""
    _FaceType.in_force = in_force


def reduced(original: Any) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
    """Reduce a `tokenizers.Tokenizer` for a pickle, which finds no class by its name under the patch."""
    return original_of, (original.__getstate__(),)
