"""`patch_transformers()`: tokenizers and chat templates of transformers run on tokenweir, and those that engines take from
`tokenizers` directly."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from threading import RLock
from types import TracebackType
from typing import Any, NamedTuple

from tokenweir.integrations.transformers.backend import Backend, Original
from tokenweir.integrations.transformers.chat_templates import compiler, indices_renderer
from tokenweir.integrations.transformers.decode_stream import DecodeStream
from tokenweir.integrations.transformers.patched_tokenizer import PatchedTokenizer, reduce_tokenizer, set_in_force
from tokenweir.integrations.transformers.tensors import batch_encoding

_ABSENT = object()
_lock = RLock()


class _Change(NamedTuple):
    """An attribute that the patch has replaced.

    Attributes:
        owner: The class or module.
        name: The name of the attribute.
        before: The value before the patch, or a sentinel if the owner did not have the attribute itself.

    """

    owner: Any
    name: str
    before: Any


_undo: list[_Change] = []


class _BackendSlot:
    """Descriptor for the attribute `_tokenizer` of transformers' tokenizers.

    Wraps each `tokenizers.Tokenizer` in a `Backend`.
    """

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return None
        found = owner.__dict__.get("_tokenizer")
        if type(found) is Original:  # set before the patch
            self.__set__(owner, found)
            found = owner.__dict__["_tokenizer"]
        return found

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__["_tokenizer"] = Backend.of(value, type(owner).__name__)

    def __delete__(self, owner: Any) -> None:
        owner.__dict__.pop("_tokenizer", None)


class Patch(AbstractContextManager["Patch"]):
    """Result of `patch_transformers()`; leaving it as a context manager undoes the patch if that call made it."""

    def __init__(self, *, made: bool) -> None:
        self._made = made

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._made:
            unpatch_transformers()


def patch_transformers(*, chat_templates: bool = True) -> Patch:
    """Let transformers' tokenizers run on tokenweir, in the whole process.

    Every fast tokenizer, whether made before or later, encodes and decodes by tokenweir's core: its `_tokenizer` becomes a
    `Backend`, which is built from what the object holds. `tokenizers.Tokenizer` and `tokenizers.decoders.DecodeStream` are
    replaced likewise, for engines that use them directly. A second call changes nothing, nor does leaving its context.

    Ids, masks, offsets and texts are those of the original. What is not reproduced exactly goes to the original;
    `tokenweir.integrations.report()` counts it.

    Args:
        chat_templates: Render chat templates by tokenweir's engine, too.

    Returns:
        The patch, as a context manager that undoes it.

    Raises:
        ImportError: transformers 5 or tokenizers is not installed.

    """
    with _lock:
        made = not _undo
        if made:
            try:
                _replace_all(chat_templates)
            except BaseException:
                unpatch_transformers()
                raise
            copyreg.pickle(Original, reduce_tokenizer)
            set_in_force(True)
    return Patch(made=made)


def unpatch_transformers() -> None:
    """Undo `patch_transformers()`. Tokenizers that were used under the patch keep their backend, with the same results."""
    with _lock:
        if _undo:
            copyreg.dispatch_table.pop(Original, None)
            set_in_force(False)
        while _undo:
            owner, name, before = _undo.pop()
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


def _replace_all(with_templates: bool) -> None:
    base = _module("transformers.tokenization_utils_tokenizers").TokenizersBackend
    _replace(base, "_tokenizer", _BackendSlot())
    for module in ("tokenizers", "tokenizers.tokenizers"):
        _replace(_module(module), "Tokenizer", PatchedTokenizer)
    _replace(_module("tokenizers.decoders"), "DecodeStream", DecodeStream)
    base = _module("transformers.tokenization_utils_base")
    _replace(base, "to_py_obj", _plain_ids(base.to_py_obj))
    _replace(base.BatchEncoding, "__init__", batch_encoding(base.BatchEncoding.__init__))
    if with_templates:
        utils = _module("transformers.utils.chat_template_utils")
        _replace(utils, "_compile_jinja_template", compiler(utils._compile_jinja_template))
        _replace(
            utils,
            "_render_with_assistant_indices",
            indices_renderer(utils._render_with_assistant_indices),
        )


def _module(name: str) -> Any:
    """Import a module of transformers or tokenizers; raise `ImportError` with what to install."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise ImportError(f"patch_transformers() needs {package}: pip install 'transformers>=5'") from error


def _plain_ids(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a replacement of transformers' `to_py_obj` with a fast path for lists of ints and lists of such lists.

    It is called for all ids at each `decode`, and takes most of the time of a `TextStreamer`, which decodes its line
    at each id.
    """

    def to_py_obj(obj: Any) -> Any:
        kinds = set(map(type, obj)) if type(obj) is list else None
        if kinds == {int}:
            return obj.copy()
        return [to_py_obj(row) for row in obj] if kinds == {list} else original(obj)

    return to_py_obj


def _replace(owner: Any, name: str, value: Any) -> None:
    _undo.append(_Change(owner, name, vars(owner).get(name, _ABSENT)))
    setattr(owner, name, value)
