"""Types that a function's JSON Schema allows for its arguments and for the values inside them.

A lookup combines everything that applies to a value: its own keywords, references, `allOf`, and the alternatives of
`anyOf`, `oneOf`, conditions and dependent schemas. What applies always is intersected; alternatives are united. An
alternative that declares no type allows every type, so it counts only where nothing else declares one.

Schemas come from clients, so the steps of lookups are limited (`schema_document.py`), and results are cached. A value whose
schema exceeds a limit has no declared type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Final

from tokenweir.stream.decode.parsers.blocks.coercion import Types, quoted, type_of
from tokenweir.stream.decode.parsers.schema_document import SchemaDocument, TooManyStepsError

MAX_DEPTH = 32
"""Nesting depth up to which one lookup follows schemas, references included."""

MAX_LISTED = 64
"""Most elements of an array that have schemas of their own; later ones of them have no declared type."""

MAX_PATTERN = 256
"""Most characters of a pattern of names that is compared."""

_NAMES: dict[str, str] = (
    dict.fromkeys(("str", "text", "varchar", "char", "enum"), "string")
    | dict.fromkeys(("int", "int32", "int64", "uint", "uint32", "uint64", "long", "short", "unsigned"), "integer")
    | dict.fromkeys(("float", "float32", "float64", "double"), "number")
    | dict.fromkeys(("list", "arr", "sequence"), "array")
    | {"bool": "boolean", "dict": "object", "map": "object"}
)
"""JSON schema types by the names that other languages use, as in vLLM 0.33. Gemini's schemas write names in capitals."""

_ANYTHING: Final = True
"""The schema that allows every value."""

_Own = Callable[[Mapping[str, Any]], Iterator[Any]]


class ValueSchema:
    """Schema of a value: its types, and the schemas of its members or elements. Results are cached.

    Attributes:
        types: Names of the allowed JSON types; empty if none is declared. If a type besides string is allowed, the strings
            that an enum lists are in the set too, each as JSON.

    """

    __slots__ = ("_document", "_elements", "_members", "_schema", "types")

    def __init__(self, document: SchemaDocument, schema: Any) -> None:
        """Look up the types of a value.

        Args:
            document: The schema of the function, in which references are resolved.
            schema: The value's schema: a part of the document, or a combination of parts.

        """
        self._document, self._schema = document, schema
        self._members: dict[str, ValueSchema] = {}
        self._elements: dict[int, ValueSchema] = {}
        try:
            self.types: Types = _Lookup(document).all_types(schema)
        except TooManyStepsError:
            self.types = frozenset()

    def member(self, name: str) -> ValueSchema:
        """Return the schema of the member `name` of an object; one without types if no schema declares the member."""
        if name not in self._members:
            self._members[name] = self._inner(lambda schema: _own_members(schema, name, self._document))
        return self._members[name]

    def element(self, index: int) -> ValueSchema:
        """Return the schema of the element `index` of an array; one without types if no schema declares it."""
        index = min(index, MAX_LISTED)
        if index not in self._elements:
            self._elements[index] = self._inner(lambda schema: _own_elements(schema, index, self._document))
        return self._elements[index]

    def _inner(self, own: _Own) -> ValueSchema:
        try:
            schema = _Lookup(self._document).inner(self._schema, own)
        except TooManyStepsError:
            schema = _ANYTHING
        return ValueSchema(self._document, schema)


class _Lookup:
    """One walk over the schemas that apply to a value. Each is visited once, and the number of visits is bounded."""

    def __init__(self, document: SchemaDocument) -> None:
        self._document = document
        document.begin_lookup()
        # The result for each visited schema, by its identity. While a schema is being visited, it is `unknown` of `_visit`.
        self._known: dict[int, Any] = {}
        self._listed: set[str] = set()

    def all_types(self, schema: Any) -> Types:
        """Return the types that a schema allows, with the listed strings. Raise `TooManyStepsError` beyond the limits."""
        types, _ = self._types(schema, 0)
        return types | set(map(quoted, self._listed)) if "string" in types and len(types) > 1 else types

    def _types(self, schema: Any, depth: int) -> tuple[Types, bool]:
        """Return the types that a schema allows, and whether it allows no others; empty types if it declares none."""
        nothing: tuple[Types, bool] = frozenset(), False
        if not self._visit(schema, depth, nothing):
            return nothing if not isinstance(schema, Mapping) else self._known[id(schema)]
        names, values = _declared_names(schema), _listed_values(schema)
        self._document.take((len(names) + len(values)) // 16)
        types = frozenset(_NAMES.get(name.lower(), name.lower()) for name in names if isinstance(name, str))
        self._listed |= {value for value in values if isinstance(value, str)}
        listed = frozenset(map(type_of, values))
        found = [(types & listed or types if types and listed else types | listed, True)]
        for group in _groups(schema, self._document):
            found.append(_either([self._types(inner, depth + 1) for inner in group]))
        result = _both([some for some in found if some[0]])
        if schema.get("nullable") is True and result[0]:
            result = result[0] | {"null"}, result[1]
        self._known[id(schema)] = result
        return result

    def inner(self, schema: Any, own: _Own, depth: int = 0) -> Any:
        """Return the schema of a value inside the value: a part of the document, or a combination of parts.

        Args:
            schema: The schema of the outer value.
            own: Yields the schemas that one schema object itself gives to the inner value.
            depth: The depth of the walk.

        Raises:
            TooManyStepsError: The walk exceeds the limits.

        """
        if not self._visit(schema, depth, _ANYTHING):
            return self._known[id(schema)] if isinstance(schema, Mapping) else _ANYTHING
        parts = list(own(schema))
        for group in _groups(schema, self._document):
            found = [self.inner(part, own, depth + 1) for part in group]
            if any(part is not _ANYTHING for part in found):
                parts.append(found[0] if len(found) == 1 else {"anyOf": found})
        result = _ANYTHING if not parts else parts[0] if len(parts) == 1 else {"allOf": parts}
        self._known[id(schema)] = result
        return result

    def _visit(self, schema: Any, depth: int, unknown: Any) -> bool:
        """Count a visit; return whether the schema is an object that is visited for the first time.

        `unknown` is its result for the time of the visit, in which the schema may contain itself.
        """
        self._document.take()
        if depth > MAX_DEPTH:
            raise TooManyStepsError
        if not isinstance(schema, Mapping) or id(schema) in self._known:
            return False
        self._known[id(schema)] = unknown
        return True


def _groups(schema: Mapping[str, Any], document: SchemaDocument) -> Iterator[Iterable[Any]]:
    """Yield groups of schemas that apply to the same value as a schema: a value fits at least one of each group."""
    for key in ("$ref", "$dynamicRef", "$recursiveRef"):
        if key in schema:
            yield [document.target(schema, key)]
    for key in ("allOf", "anyOf", "oneOf"):
        if isinstance(listed := schema.get(key), list | tuple):
            inner = (document.inside(schema, part) for part in listed)
            yield from ([part] for part in inner) if key == "allOf" else (inner,)
    if "if" in schema:
        yield [document.inside(schema, schema.get(key, _ANYTHING)) for key in ("then", "else")]
    for key in ("dependentSchemas", "dependencies"):
        if isinstance(conditional := schema.get(key), Mapping):
            yield from ([document.inside(schema, part), _ANYTHING] for part in conditional.values())


def _own_members(schema: Mapping[str, Any], name: str, document: SchemaDocument) -> Iterator[Any]:
    """Yield the schemas that a schema object gives to the member `name`; patterns of names count as steps."""
    declared = False
    if isinstance(properties := schema.get("properties"), Mapping) and name in properties:
        declared = True
        yield document.inside(schema, properties[name])
    if isinstance(patterns := schema.get("patternProperties"), Mapping):
        for pattern, inner in patterns.items():
            document.take()
            if (matches := _matches(pattern, name)) is not False:
                declared = declared or matches is True
                found = document.inside(schema, inner)
                yield found if matches else _perhaps(found)
    if not declared:
        yield from _others(schema, ("additionalProperties", "unevaluatedProperties"), document)


def _own_elements(schema: Mapping[str, Any], index: int, document: SchemaDocument) -> Iterator[Any]:
    """Yield the schemas that a schema object gives to the element `index`."""
    items = schema.get("items")  # a list up to JSON Schema 2019-09
    listed = items if isinstance(items, list | tuple) else schema.get("prefixItems")
    listed = listed if isinstance(listed, list | tuple) else ()
    if index < len(listed):
        yield document.inside(schema, listed[index] if index < MAX_LISTED else _ANYTHING)
    elif isinstance(items, Mapping):
        yield document.inside(schema, items)
    else:
        yield from _others(schema, ("additionalItems", "unevaluatedItems"), document)


def _others(schema: Mapping[str, Any], keys: tuple[str, ...], document: SchemaDocument) -> Iterator[Any]:
    """Yield the schemas that the keywords `keys` give to members or elements which no other keyword declares.

    Any other schema of the same value overrides them; see `_perhaps`.
    """
    return (_perhaps(document.inside(schema, schema[key])) for key in keys if isinstance(schema.get(key), Mapping))


def _perhaps(schema: Any) -> Any:
    """Return a schema that gives way to any other schema of the same value."""
    return {"anyOf": [schema, _ANYTHING]}


def _matches(pattern: object, name: str) -> bool | None:
    """Return whether a regular expression of the schema occurs in a name; None if the expression is not plain text.

    Expressions of clients are not run, since their time has no bound.
    """
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
        return None
    begins, text = pattern.startswith("^"), pattern.removeprefix("^")
    ends = text.endswith("$") and not text.endswith("\\$")
    text = text[: len(text) - ends]
    if text.startswith(".*"):
        begins, text = False, text[2:]
    if text.endswith(".*") and not text.endswith("\\.*"):
        ends, text = False, text[:-2]
    if any(char in ".^$*+?{}[]|()\\" for char in text):
        return None
    if begins and ends:
        return name == text
    return name.startswith(text) if begins else name.endswith(text) if ends else text in name


def _declared_names(schema: Mapping[str, Any]) -> list[Any] | tuple[Any, ...]:
    declared = schema.get("type")
    return declared if isinstance(declared, list | tuple) else (declared,)


def _listed_values(schema: Mapping[str, Any]) -> list[Any] | tuple[Any, ...]:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return values if isinstance(values, list | tuple) else ()


def _either(found: list[tuple[Types, bool]]) -> tuple[Types, bool]:
    """Unite the types of alternatives."""
    return frozenset().union(*(types for types, _ in found)), all(types and certain for types, certain in found)


def _both(found: list[tuple[Types, bool]]) -> tuple[Types, bool]:
    """Intersect types that hold together: those that are certain, or if none is, unite the others."""
    if certain := [types for types, sure in found if sure]:
        return reduce(_common, certain), True
    return frozenset().union(*(types for types, _ in found)), False


def _common(some: Types, others: Types) -> Types:
    """Return the types that both sets allow; all of them if the sets contradict each other."""
    common = some & others
    if ("integer" in some and "number" in others) or ("number" in some and "integer" in others):
        common |= {"integer"}
    return common or some | others
