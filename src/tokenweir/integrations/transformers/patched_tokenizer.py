"""`PatchedTokenizer`: the class that replaces `tokenizers.Tokenizer` while `patch_transformers` is in force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenweir.integrations.transformers.backend import Backend, Original, original_of


class _PatchedTokenizerType(type):
    """Metaclass of `PatchedTokenizer`: `isinstance` accepts backends and original tokenizers as its instances.

    Modules that were imported under the patch keep the class. Once the patch is undone (`in_force` is false), calling
    the class creates original tokenizers.
    """

    in_force = False

    def __call__(cls, original: Any, **options: Any) -> Any:
        if not _PatchedTokenizerType.in_force:
            return original if type(original) is Original else Original(original)
        return super().__call__(original, **options)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Original)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Original | Backend)


class PatchedTokenizer(Backend, metaclass=_PatchedTokenizerType):
    """`Backend` with the constructors of `tokenizers.Tokenizer`, which it replaces under the patch."""

    @classmethod
    def from_file(cls, path: Any) -> PatchedTokenizer:
        """Create a tokenizer from the path of a tokenizer.json."""
        return cls(Original.from_file(path))

    @classmethod
    def from_str(cls, json: Any) -> PatchedTokenizer:
        """Create a tokenizer from the text of a tokenizer.json."""
        return cls(Original.from_str(json))

    @classmethod
    def from_buffer(cls, buffer: Any) -> PatchedTokenizer:
        """Create a tokenizer from a tokenizer.json, given as a `bytes` object; an original one if no patch is in force.

        Raises:
            TypeError: `buffer` is not a `bytes` object.
            ValueError: The bytes are not a valid tokenizer.json.

        """
        return cls(Original.from_buffer(buffer))

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> PatchedTokenizer:
        """Create a tokenizer from the Hugging Face hub; arguments as in `tokenizers`."""
        return cls(Original.from_pretrained(*args, **kwargs))


def set_in_force(in_force: bool) -> None:
    """Set whether `PatchedTokenizer` creates backends (the patch is in force) or original tokenizers."""
    _PatchedTokenizerType.in_force = in_force


def reduce_tokenizer(original: Any) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
    """Return the function and its arguments by which a pickle restores a `tokenizers.Tokenizer` (see `copyreg`).

    Under the patch, a pickle does not find the original class by its name.
    """
    return original_of, (original.__getstate__(),)
