"""References within a JSON Schema: JSON pointers, anchors, dynamic anchors, and resources with a URI of their own.

Nothing outside the document is read; a reference that leads nowhere allows every value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urljoin

MAX_STEPS = 512
"""Most steps of one lookup: visits of schemas, and parts of references."""

MAX_STEPS_IN_ALL = 16 * MAX_STEPS
"""Most steps of all lookups in a function's schema for one request. Their results are cached."""

MAX_REFERENCE = 1024
"""Most characters of a reference that is followed."""

MAX_INDEXED = 2048
"""Most objects and lists of a document that are searched for anchors and URIs."""

URI_STEPS = 16
"""Steps of a lookup that resolving a URI counts as, besides the visits of schemas."""

_DATA = frozenset({"const", "default", "enum", "examples"})  # keywords whose values are no schemas


class TooManyStepsError(Exception):
    """A lookup in a schema takes more steps than are allowed."""


class SchemaDocument:
    """A function's schema, in which references are resolved, and the counter of steps of lookups in it."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self._left, self._left_in_all = 0, MAX_STEPS_IN_ALL  # steps
        # The embedded resource of each schema that was reached in one, by the schema's identity.
        self._resources: dict[int, Mapping[str, Any]] = {}
        self._anchors: dict[tuple[int, str], Mapping[str, Any]] | None = None  # by the resource's identity and the name
        self._uris: dict[str, Mapping[str, Any]] = {}
        self._uri_of: dict[int, str] = {}

    def begin_lookup(self) -> None:
        """Begin a lookup, which may take `MAX_STEPS` steps."""
        self._left = MAX_STEPS

    def take(self, count: int = 1) -> None:
        """Count steps of the lookup; raise `TooManyStepsError` if fewer are left."""
        self._left -= count
        self._left_in_all -= count
        if self._left < 0 or self._left_in_all < 0:
            raise TooManyStepsError

    def inside(self, schema: Mapping[str, Any], part: Any) -> Any:
        """Return `part`, a schema inside `schema`, and remember the resource in which its references are resolved."""
        return self._in(self._resource(schema), part)

    def target(self, schema: Mapping[str, Any], key: str) -> Any:
        """Return the schema that a reference leads to; True, which allows every value, if it leads nowhere.

        Args:
            schema: The schema with the reference.
            key: `$ref`, `$dynamicRef` or `$recursiveRef`.

        Raises:
            TooManyStepsError: The lookup's steps are used up.

        """
        reference, resource = schema[key], self._resource(schema)
        if not isinstance(reference, str) or len(reference) > MAX_REFERENCE:
            return True
        uri, _, fragment = reference.partition("#")
        self.take(len(reference) // 64)
        if uri:
            self.take(URI_STEPS)
            self._index()
            found = self._uris.get(_joined(self._uri_of.get(id(resource), ""), uri))
            if found is None:
                return True
            resource = found
        if not fragment:
            return self._in(resource, resource)
        name = unquote(fragment)
        if fragment.startswith("/"):
            found = self._pointed(resource, name)
            if found is None and name != fragment:  # written without the escapes of a URI
                found = self._pointed(resource, fragment)
            return True if found is None else found
        anchors = self._index()
        found, outermost = anchors.get((id(resource), name)), anchors.get((id(self.root), name))
        if key == "$dynamicRef" and _is_dynamic(found, name) and _is_dynamic(outermost, name):
            return outermost
        return True if found is None else self._in(resource, found)

    def _resource(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._resources.get(id(schema), self.root)

    def _in(self, resource: Mapping[str, Any], part: Any) -> Any:
        if isinstance(part, Mapping):
            if _is_resource(part):
                self._resources[id(part)] = part
            elif resource is not self.root:
                self._resources[id(part)] = resource
        return part

    def _pointed(self, resource: Mapping[str, Any], pointer: str) -> Any:
        """Return the part of a resource that a JSON pointer names; None if there is no such part."""
        part: Any = resource
        for token in pointer[1:].split("/"):
            self.take()
            token = token.replace("~1", "/").replace("~0", "~")
            if isinstance(part, Mapping):
                part = part.get(token)
            elif isinstance(part, list | tuple) and token.isascii() and token.isdigit() and int(token) < len(part):
                part = part[int(token)]
            else:
                return None
            if isinstance(part, Mapping) and _is_resource(part):
                resource = part
        return self._in(resource, part)

    def _index(self) -> dict[tuple[int, str], Mapping[str, Any]]:
        """Return the anchors of the document, and find its URIs. The document is searched once, the outermost parts first."""
        if self._anchors is not None:
            return self._anchors
        self._anchors = {}
        left = MAX_INDEXED
        ahead: deque[tuple[Any, Mapping[str, Any]]] = deque([(self.root, self.root)])
        while ahead and left:
            part, resource = ahead.popleft()
            left -= 1
            if isinstance(part, Mapping):
                if part is self.root or _is_resource(part):
                    uri = _joined(self._uri_of.get(id(resource), ""), part["$id"] if _is_resource(part) else "")
                    resource = part
                    self._uris.setdefault(uri.removesuffix("#"), part)
                    self._uri_of[id(part)] = uri
                for key in ("$anchor", "$dynamicAnchor"):
                    if isinstance(name := part.get(key), str):
                        self._anchors.setdefault((id(resource), name), part)
                if isinstance(name := part.get("$id"), str) and name.startswith("#"):  # JSON Schema up to draft 7
                    self._anchors.setdefault((id(resource), name[1:]), part)
                inner = [value for key, value in part.items() if key not in _DATA]
            else:
                inner = list(part)
            ahead += [(value, resource) for value in inner[:left] if isinstance(value, Mapping | list | tuple)]
        return self._anchors


def _is_resource(schema: Mapping[str, Any]) -> bool:
    uri = schema.get("$id")
    return isinstance(uri, str) and len(uri) <= MAX_REFERENCE and not uri.startswith("#")


def _is_dynamic(schema: Mapping[str, Any] | None, name: str) -> bool:
    return schema is not None and schema.get("$dynamicAnchor") == name


def _joined(base: str, uri: str) -> str:
    try:
        return urljoin(base, uri)
    except ValueError:
        return uri
