"""Constants and struct fields that kernels and host share, read from the kernels' own sources.

So each is written once, where the compiler sees it. The sources are parsed as text, which suffices for `constexpr`
names of whole numbers, enumerations, and structs of pointers and 8-byte words. Asking for anything else raises, and
names it.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping
from functools import cache

from tokenweir.gpu.kernels import HEADERS, SOURCES

_COMMENT = re.compile(r"//[^\n]*")
_INCLUDE = re.compile(r'#include "([^"]+)"')
_CONSTEXPR = re.compile(r"\bconstexpr \w+ ([^;()]+(?:\([^;]*)?);")
_SUFFIX = re.compile(r"\b(0x[0-9A-Fa-f]+|\d+)[uUlL]+\b")
_ENUM = re.compile(r"\benum \w+ : \w+ \{(.*?)\};", re.DOTALL)
_STRUCT = r"\bstruct (?:alignas\(\d+\) )?{} \{{\n(.*?)\n\}};"
_FIELD = re.compile(r"^  (?:const )?(\w+)(\*?) (\w+(?:, \w+)*);$")
_NO_FIELD = re.compile(r"^  (?: |\}|static\b|TW_FN\b|__device__)")  # functions, their bodies and static members

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
}


class Constants(Mapping[str, int]):
    """The constants of a source file, by their names."""

    def __init__(self, source: str, values: Mapping[str, int], unreadable: Mapping[str, str]) -> None:
        """Take the constants that have been read, and the declarations of those that could not be."""
        self._source, self._values, self._unreadable = source, values, unreadable

    def __getitem__(self, name: str) -> int:
        """Return a constant's value.

        Raises:
            ValueError: Its value is not made of whole numbers, known constants and simple operators.
            KeyError: No constant has this name.

        """
        if name in self._unreadable:
            raise ValueError(f"{self._source}: cannot read the constant {self._unreadable[name]}")
        if name not in self._values:
            raise KeyError(f"{self._source}: no constant {name}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@cache
def constants(name: str) -> Constants:
    """Read the constants of a file of kernels, and of the files that it includes.

    Args:
        name: A file in `kernels/`, or the path of a header in the core's folder.

    Raises:
        ValueError: There is no such file, or an enumerator's value cannot be read.

    """
    text = _flattened(name)
    values: dict[str, int] = {}
    unreadable: dict[str, str] = {}
    for declared in _CONSTEXPR.findall(text):
        for one in declared.split(","):
            own, value = _define(one, values)
            if value is None:
                unreadable[own] = " ".join(one.split())
            else:
                values[own] = value
    for members in _ENUM.findall(text):
        following = 0
        for one in filter(str.strip, members.split(",")):
            own, value = _define(one if "=" in one else f"{one} = {following}", values)
            if value is None:
                raise ValueError(f"{name}: cannot read the enumerator {' '.join(one.split())}")
            values[own] = value
            following = value + 1
    return Constants(name, values, unreadable)


@cache
def fields(name: str, struct: str) -> tuple[str, ...]:
    """Read the fields of a struct, in their order; each is a pointer or an 8-byte word.

    A field `a` that is itself a struct is replaced by its own fields, `a.b` and so on.

    Args:
        name: A file that defines or includes the struct, as in `constants`.
        struct: Its name.

    Raises:
        ValueError: There is no such struct, or a field has another type.

    """
    if (body := re.search(_STRUCT.format(struct), _flattened(name), re.DOTALL)) is None:
        raise ValueError(f"{name}: no struct {struct}")
    found: list[str] = []
    for member in filter(None, body[1].split("\n")):
        if _NO_FIELD.match(member):
            continue
        if (field := _FIELD.match(member)) is None:
            raise ValueError(f"{name}: cannot read the member of {struct}: {member.strip()}")
        kind, pointer, names = field.groups()
        for own in names.split(", "):
            if pointer or kind == "uint64_t":
                found.append(own)
            else:
                found += [f"{own}.{inner}" for inner in fields(name, kind)]
    return tuple(found)


@cache
def _flattened(name: str) -> str:
    """Return the text of a file without comments, after the text of the files that it includes."""
    path = next((folder / name for folder in (SOURCES, HEADERS) if (folder / name).is_file()), None)
    if path is None:
        raise ValueError(f"no source {name}")
    text = _COMMENT.sub("", path.read_text("utf-8"))
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return "\n".join([*map(_flattened, _INCLUDE.findall(text)), text])


def _define(declaration: str, known: Mapping[str, int]) -> tuple[str, int | None]:
    """Parse `name = value`; the value is None if it is not made of whole numbers, known names and simple operators."""
    name, _, value = declaration.partition("=")
    try:
        expression = ast.parse(_SUFFIX.sub(r"\1", value.strip()), mode="eval").body
    except SyntaxError:
        return name.strip(), None
    return name.strip(), _value(expression, known)


def _value(node: ast.expr, known: Mapping[str, int]) -> int | None:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return known.get(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            a, b = _value(left, known), _value(right, known)
            return None if a is None or b is None else int(_OPERATORS[type(op)](a, b))
        case _:
            return None
