"""The environment in which marked text is rendered: a template does there what it does without the marks.

Comparisons, tests, look-ups and the methods that look into a text or cut it see text without marks; what is cut from a
text keeps its marks. A template that notices the marks all the same is found out, since the two renderings differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from types import BuiltinMethodType
from typing import Any, cast

from jinja2 import nodes
from jinja2.runtime import Context, Undefined
from jinja2.visitor import NodeTransformer

from tokenweir.templates import limits
from tokenweir.templates.charging import Charging, filtered
from tokenweir.templates.environment import ChatEnvironment
from tokenweir.templates.marks import BLIND_METHODS, MARK, atoms, call_method, find_marked, recased, sliced, unmarked

_COMPARING = frozenset({"in", "eq", "equalto", "==", "ne", "!=", "gt", "greaterthan", ">", "ge", ">="}) | frozenset(
    {"lt", "lessthan", "<", "le", "<="}
)
_LOOKING = frozenset({"length", "count", "int", "float", "wordcount"})  # filters
_METHODS = {"replace": "replace", "trim": "strip"}  # filters that are methods of strings
_OTHERS = frozenset({"title", "capitalize", "first", "last", "list"})


class MarkedEnvironment(ChatEnvironment):
    """The environment; one serves all templates."""

    def __init__(self) -> None:
        super().__init__()
        self.tests = {
            name: _blind_test(cast(Callable[..., Any], function), deep=name in _COMPARING)
            for name, function in self.tests.items()
        }
        for name, function in self.filters.items():
            if name in _LOOKING | _METHODS.keys() | _OTHERS:
                self.filters[name] = _blind_filter(name, function)
        self.filters["unmarked"] = unmarked
        self.filters["sliced"] = _slice

    @property
    def rewriting(self) -> NodeTransformer:
        return _Blinding()

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Look a key up whose marks do not matter, or a place in a text."""
        if isinstance(obj, str) and isinstance(argument, int) and MARK in obj:
            try:
                return sliced(obj, argument)
            except IndexError:
                return self.undefined(obj=unmarked(obj), name=str(argument))
        return super().getitem(obj, _key(obj, argument))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look an attribute up, or a key whose marks do not matter."""
        found = super().getattr(obj, attribute)
        if isinstance(found, Undefined) and (key := _key(obj, attribute)) != attribute:
            return obj[key]
        return found

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, method or macro; `get` finds keys whatever their marks."""
        if isinstance(function, BuiltinMethodType) and function.__name__ == "get" and args:
            args = (_key(function.__self__, args[0]), *args[1:])
        return super().call(context, function, *args, **kwargs)

    def call_method(self, method: BuiltinMethodType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of a string, which does not see its marks."""
        if method.__name__ in BLIND_METHODS:
            return call_method(method.__name__, cast(str, method.__self__), args, kwargs)
        return super().call_method(method, args, kwargs)


class _Blinding(Charging):
    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        super().visit_Compare(node)
        holders: tuple[nodes.Compare | nodes.Operand, ...] = (node, *node.ops)
        for holder in holders:
            if not isinstance(holder.expr, nodes.Const):
                holder.expr = filtered(holder.expr, "unmarked")
        return node


def _slice(value: Any, start: Any, stop: Any, step: Any) -> Any:
    place = slice(start, stop, step)
    return limits.result(sliced(value, place) if isinstance(value, str) and MARK in value else value[place])


def _key(mapping: Any, key: Any) -> Any:
    """The key as it stands in the mapping, whatever marks either has."""
    if isinstance(mapping, Mapping) and isinstance(key, str) and key not in mapping:
        found = find_marked(mapping, key)
        return key if found is None else found
    return key


def _blind_test(function: Callable[..., Any], *, deep: bool) -> Callable[..., Any]:
    """A test that sees no marks: in texts, and if it is `deep`, in lists and mappings too."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def blind(*args: Any) -> Any:
        plain = (unmarked(value) if deep or isinstance(value, str) else value for value in args[first:])
        return function(*args[:first], *plain)

    return blind


def _blind_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def blind(*args: Any, **kwargs: Any) -> Any:
        subject = args[first]
        if not isinstance(subject, str):
            return function(*args, **kwargs)
        if name in _LOOKING:
            return function(*args[:first], unmarked(subject), *args[first + 1 :], **kwargs)
        if MARK not in subject and name != "replace":
            return function(*args, **kwargs)
        if name in _METHODS:
            arguments = tuple(value for value in args[first + 1 :] if value is not None)
            limits.check_call(name, subject, arguments, kwargs)
            return limits.result(call_method(_METHODS[name], subject, arguments, kwargs))
        if name in ("title", "capitalize"):
            return limits.result(recased(subject, function(unmarked(subject))))
        letters = atoms(subject)
        return limits.result(letters) if name == "list" else letters[0 if name == "first" else -1]

    return blind
