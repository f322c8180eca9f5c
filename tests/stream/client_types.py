"""Request types of the `openai` and `anthropic` packages: their fields, and a request that sets one of them.

`Interface.walk` goes through the types that a request of an interface may have, and yields each once with a function that puts
a value of it into a smallest request. Types and fields that a table lists as not honoured are not entered.
"""

import collections.abc
import functools
import typing
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

import typing_extensions


def is_struct(kind):
    return typing_extensions.is_typeddict(kind)


hints_of = functools.cache(typing.get_type_hints)


@functools.cache
def required_fields(kind):
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name for name, hint in hints.items() if get_origin(hint) is typing.Required}


def is_required(kind, name):
    return name in required_fields(kind)


def structs_in(hint, depth=0):
    """Yield the typed dicts that a value of this type may hold in place of itself, each with the number of lists around it."""
    if is_struct(hint):
        yield hint, depth
        return
    origin = get_origin(hint)
    if origin is None or origin is Literal or _is(origin, collections.abc.Mapping):
        return
    inner = depth + 1 if _is(origin, collections.abc.Iterable) else depth
    for argument in get_args(hint):
        yield from structs_in(argument, inner)


def _is(origin, base):
    return isinstance(origin, type) and issubclass(origin, base)


def name_of(kind):
    return kind.__name__


def key_of(kind):
    """Return the name of a type with that of its module: several types have one name."""
    return f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"


@dataclass
class Interface:
    """An interface of the server, with what its requests need to be valid.

    Attributes:
        path: Path of the endpoint.
        root: The type of a request.
        samples: Values of fields whose types do not tell a valid one, by field, or by type and field.
        before: Messages or items that have to stand before a type, by its name.
        after: Those that have to stand behind it.
        always: Fields that a type needs although the package does not require them, by its name.
        roles: Roles of the messages that may have a block of a type, by its name.
        beside: Further fields of the request for a field of a type, by both names.

    """

    path: str
    root: Any
    samples: dict[str, Any]
    before: dict[str, list[Any]] = field(default_factory=dict)
    beside: dict[str, dict[str, Any]] = field(default_factory=dict)
    after: dict[str, list[Any]] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    always: dict[str, dict[str, Any]] = field(default_factory=dict)
    history: str = "messages"

    def sample(self, hint, owner, name):
        """Return a valid value of a field."""
        for key in (f"{owner}.{name}", name):
            if key in self.samples:
                return self.samples[key]
        return self._value(hint, owner, name)

    def _value(self, hint, owner, name):
        if is_struct(hint):
            return self.minimal(hint)
        origin = get_origin(hint)
        if origin is Literal:
            return get_args(hint)[0]
        if _is(origin, collections.abc.Mapping):
            return {}
        if _is(origin, collections.abc.Iterable):
            return [self._value(get_args(hint)[0], owner, name)]
        if origin is not None:  # a union
            return self._value(next(each for each in get_args(hint) if each is not type(None)), owner, name)
        return {str: "x", int: 1, float: 1.0, bool: True}.get(hint, {})

    def minimal(self, kind):
        """Return a value of a type with its required fields only."""
        hints, owner = hints_of(kind), name_of(kind)
        given = {name: self.sample(hints[name], owner, name) for name in hints if is_required(kind, name)}
        return given | self.always.get(owner, {})

    def request(self, kind, place, value, *fields):
        """Return a request with a value of a type in its place, and with what the value and these fields need."""
        body, owner = place(value), name_of(kind)
        if role := self.roles.get(owner):
            body[self.history] = [each | {"role": role} for each in body[self.history]]
        if owner in self.before or owner in self.after:
            body[self.history] = [*self.before.get(owner, ()), *body[self.history], *self.after.get(owner, ())]
        for each in (owner, *(f"{owner}.{name}" for name in fields)):
            body = self.beside.get(each, {}) | body
        return body

    def walk(self, enter):
        """Yield each type once, with a function that makes a request of a value of it.

        `enter(kind, name)` tells whether to go into a field of a type, and `enter(kind, None)` whether into a type.
        """
        seen = set()
        waiting = [(self.root, lambda value: dict(value))]
        while waiting:
            kind, place = waiting.pop(0)
            if kind in seen:
                continue
            seen.add(kind)
            yield kind, place
            if not enter(kind, None):
                continue
            for name, hint in hints_of(kind).items():
                if enter(kind, name):
                    waiting += [(inner, self._placed(kind, place, name, depth)) for inner, depth in structs_in(hint)]

    def _placed(self, kind, place, name, depth):
        def placed(value):
            for _ in range(depth):
                value = [value]
            return self.request(kind, place, {**self.minimal(kind), name: value}, name)

        return placed
