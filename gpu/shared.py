"""What kernels and host share: constants, and the order of a struct's fields, read from the kernels' own sources.

So each is written once, where the compiler sees it. The sources are read as text, which is enough for what stands there:
`constexpr` names of whole numbers, enumerations, and structs of pointers and words of 8 bytes.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from types import MappingProxyType

from tokenweir.gpu.kernels import HEADERS, SOURCES

_COMMENT = re.compile(r"//[^\n]*")
_INCLUDE = re.compile(r'#include "([^"]+)"')
_CONSTEXPR = re.compile(r"\bconstexpr \w+ ([^;()]+(?:\([^;]*)?);")
_SUFFIX = re.compile(r"\b(0x[0-9A-Fa-f]+|\d+)[uUlL]+\b")
_ENUM = re.compile(r"\benum \w+ : \w+ \{(.*?)\};", re.DOTALL)
_STRUCT = r"\bstruct (?:alignas\(\d+\) )?{} \{{\n(.*?)\n\}};"
_FIELD = re.compile(r"^  (?!static|TW_FN|__device__)(?:const )?(\w+)(\*?) (\w+(?:, \w+)*);$", re.MULTILINE)

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
}


@cache
def constants(name: str) -> Mapping[str, int]:
    """The constants of a file of kernels and of what it includes, by their names.

    Args:
        name: A file in `kernels/`, or a header of the core by its path there.

    """
    text = _flattened(name)
    found: dict[str, int] = {}
    for declared in _CONSTEXPR.findall(text):
        for one in declared.split(","):
            _define(one, found)
    for members in _ENUM.findall(text):
        following = 0
        for one in filter(str.strip, members.split(",")):
            _define(one if "=" in one else f"{one} = {following}", found)
            following = found[one.partition("=")[0].strip()] + 1
    return MappingProxyType(found)


@cache
def fields(name: str, struct: str) -> tuple[str, ...]:
    """The fields of a struct, each a pointer or a word of 8 bytes, in their order; `a.b` is field `b` of the struct `a`.

    Args:
        name: A file that has the struct or includes it, as in `constants`.
        struct: Its name.

    Raises:
        ValueError: There is no such struct, or a field is of another size.

    """
    if (body := re.search(_STRUCT.format(struct), _flattened(name), re.DOTALL)) is None:
        raise ValueError(f"{name}: no struct {struct}")
    found: list[str] = []
    for kind, pointer, names in _FIELD.findall(body[1]):
        for field in names.split(", "):
            if pointer or kind == "uint64_t":
                found.append(field)
            else:
                found += [f"{field}.{inner}" for inner in fields(name, kind)]
    return tuple(found)


@cache
def _flattened(name: str) -> str:
    """The text of a file behind those that it includes, without comments."""
    path = next((folder / name for folder in (SOURCES, HEADERS) if (folder / name).is_file()), None)
    if path is None:
        raise ValueError(f"no source {name}")
    text = _COMMENT.sub("", path.read_text("utf-8"))
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return "\n".join([*map(_flattened, _INCLUDE.findall(text)), text])


def _define(declaration: str, known: dict[str, int]) -> None:
    """Add `name = value` to what is known, if the value is made of whole numbers and known names."""
    name, _, value = declaration.partition("=")
    with suppress(SyntaxError):  # C++ that is more than that
        number = _value(ast.parse(_SUFFIX.sub(r"\1", value.strip()), mode="eval").body, known)
        if number is not None:
            known[name.strip()] = number


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
