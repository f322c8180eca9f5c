"""`patch_transformers()`: tokenizers and chat templates of transformers run on tokenweir, and those that engines take from
`tokenizers` directly."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from threading import RLock
from typing import Any

from tokenweir.integrations.transformers.backend import Backend, Original
from tokenweir.integrations.transformers.chat_templates import compiler, indices_renderer
from tokenweir.integrations.transformers.decode_stream import DecodeStream
from tokenweir.integrations.transformers.patched_tokenizer import PatchedTokenizer, reduce_tokenizer, set_in_force
from tokenweir.integrations.transformers.tensors import batch_encoding

_lock = RLock()
_undo: ExitStack | None = None
"""The steps that undo the patch; None while it is not in force."""


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


def patch_transformers(*, chat_templates: bool = True) -> AbstractContextManager[object]:
    """Let transformers' tokenizers run on tokenweir, in the whole process.

    Every fast tokenizer, whether made before or later, encodes and decodes by tokenweir's core: its `_tokenizer` becomes a
    `Backend`, which is built from what the object holds. `tokenizers.Tokenizer` and `tokenizers.decoders.DecodeStream` are
    replaced likewise, for engines that use them directly. A second call changes nothing, nor does leaving its context.

    Ids, masks, offsets and texts are those of the original. What is not reproduced exactly goes to the original;
    `tokenweir.integrations.report()` counts it.

    Args:
        chat_templates: Render chat templates by tokenweir's engine, too.

    Returns:
        A context manager that undoes the patch if this call made it.

    Raises:
        ImportError: transformers 5 or tokenizers is not installed.

    """
    global _undo
    left = ExitStack()
    with _lock:
        if _undo is None:
            with ExitStack() as undo:
                _replace_all(undo, chat_templates)
                copyreg.pickle(Original, reduce_tokenizer)
                undo.callback(copyreg.dispatch_table.pop, Original, None)
                set_in_force(True)
                undo.callback(set_in_force, False)
                _undo = undo.pop_all()
            left.callback(unpatch_transformers)
    return left


def unpatch_transformers() -> None:
    """Undo `patch_transformers()`. Tokenizers that were used under the patch keep their backend, with the same results."""
    global _undo
    with _lock:
        if _undo is not None:
            _undo.close()
            _undo = None


def _replace_all(undo: ExitStack, with_templates: bool) -> None:
    def replace(owner: Any, name: str, value: Any) -> None:
        if name in vars(owner):
            undo.callback(setattr, owner, name, vars(owner)[name])
        else:
            undo.callback(delattr, owner, name)
        setattr(owner, name, value)

    base = _module("transformers.tokenization_utils_tokenizers").TokenizersBackend
    replace(base, "_tokenizer", _BackendSlot())
    for module in ("tokenizers", "tokenizers.tokenizers"):
        replace(_module(module), "Tokenizer", PatchedTokenizer)
    replace(_module("tokenizers.decoders"), "DecodeStream", DecodeStream)
    base = _module("transformers.tokenization_utils_base")
    replace(base, "to_py_obj", _plain_ids(base.to_py_obj))
    replace(base.BatchEncoding, "__init__", batch_encoding(base.BatchEncoding.__init__))
    if with_templates:
        utils = _module("transformers.utils.chat_template_utils")
        replace(utils, "_compile_jinja_template", compiler(utils._compile_jinja_template))
        renderer = indices_renderer(utils._render_with_assistant_indices)
        replace(utils, "_render_with_assistant_indices", renderer)


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
