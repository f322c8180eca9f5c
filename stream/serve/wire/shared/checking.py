"""Checks of JSON bodies and events; errors name the field and its value. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, inspect

from tokenweir.stream.events.json_bounds import as_float, has_more_outside_strings, has_more_strings, is_deeper
from tokenweir.stream.serve.wire.shared.errors import RequestError, unsupported_parameter
from tokenweir.stream.serve.wire.shared.marks import CacheMarks
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage

T = TypeVar("T")

LONG = 1 << 15
"""Bytes from which on a message is bounded in its values, which cost more time than its bytes."""
MOST_CONTAINERS = 1 << 16
"""Arrays and objects of a message: the garbage collector follows each."""
DEEPEST = 500
"""Levels of arrays and objects. Python's stack has some 1,000, which writing JSON elsewhere takes up as well."""
MOST_FLOATS = 1 << 14
"""Numbers with a fraction or an exponent."""
MOST_STRINGS = 1 << 17
"""Strings, keys included."""
MOST_CHOICES = 12
"""Values that an error lists of those that a field takes."""
_HALF_PAIR = re.compile(
    rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F]..(?<!\\u[dD][89abAB]..\\u[dD]...))", re.DOTALL
)
"""A half of a surrogate pair without the other half, as an escape sequence."""


def refuse_template(template_kwargs: Mapping[str, object]) -> None:
    """Raise `RequestError` if a request's template variables contain `chat_template`.

    A template is a program, and clients must not run theirs here.
    """
    if "chat_template" in template_kwargs:
        raise unsupported_parameter(
            "chat_template_kwargs.chat_template: a template is never taken from a request",
            "chat_template_kwargs.chat_template",
        )


def parse_object(data: str | bytes) -> dict[str, Any]:
    """Parse JSON text that must be an object.

    Raises:
        RequestError: The text is not JSON in UTF-8, not an object, has too many or too deeply nested values, or has half of a
            surrogate pair.

    """
    if isinstance(data, str):
        data = data.encode()
    decoder = _decoder
    if len(data) >= LONG:
        if has_more_outside_strings(data, b"[{", MOST_CONTAINERS):
            raise _too_many("arrays and objects", MOST_CONTAINERS)
        if has_more_strings(data, MOST_STRINGS):
            raise _too_many("strings", MOST_STRINGS)
        decoder = msgspec.json.Decoder(float_hook=_bounded_float())
    if is_deeper(data, DEEPEST):
        raise RequestError(
            f"the message has arrays and objects that are nested more than {DEEPEST} deep", code="too_deep"
        )
    try:
        event = decoder.decode(data)
    except UnicodeDecodeError as error:  # its place is that within a string
        raise RequestError(f"the message is not UTF-8: {_utf8_error(data)}", code="invalid_unicode") from error
    except (msgspec.DecodeError, RecursionError) as error:
        if isinstance(error.__cause__, RequestError):
            raise error.__cause__ from None
        if _has_half_pair(data, error):  # msgspec takes none, which JSON can spell
            raise RequestError(
                "the message has half of a surrogate pair, which is no character", code="invalid_unicode"
            ) from error
        raise RequestError(f"the message is not JSON: {error}", code="invalid_json") from error
    if not isinstance(event, dict):
        raise RequestError(f"expected a JSON object, got {short_json(event)}", code="invalid_type")
    return event


_decoder = msgspec.json.Decoder(float_hook=as_float)


def _utf8_error(data: bytes) -> str:
    """Return a description of the first bytes that are not UTF-8, with their place."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"{error.reason} at byte {error.start}"
    return "an invalid string"


def _has_half_pair(data: bytes, error: Exception) -> bool:
    """Return whether `msgspec` refused JSON because of an escape of only half a surrogate pair.

    Args:
        data: The JSON.
        error: The error of `msgspec`. The escape is searched at the byte that it names, or at the end if it names no
            byte.

    """
    named = re.search(r"\(byte (\d+)\)", str(error))
    at = int(named[1]) if named else len(data)
    begin = len(data[: max(0, at - 40)].rstrip(b"\\"))  # two backslashes are one of the text
    around = data[begin : at + 1].replace(b"\\\\", b"  ")
    return _HALF_PAIR.search(around, max(0, len(around) - 17)) is not None


def _bounded_float() -> Callable[[str], float]:
    """Return a converter of JSON numbers for one message, for the `float_hook` of `msgspec`.

    It converts by `as_float`, and raises `RequestError` after `MOST_FLOATS` numbers.
    """
    left = MOST_FLOATS

    def convert_float(text: str) -> float:
        nonlocal left
        left -= 1
        if left < 0:
            raise _too_many("numbers with a fraction or an exponent", MOST_FLOATS)
        return as_float(text)

    return convert_float


def _too_many(what: str, most: int) -> RequestError:
    return RequestError(f"the message has more than {most} {what}", code="too_many_values")


def count_items(event: dict[str, Any], fields: Iterable[str], max_items: int) -> None:
    """Raise `RequestError` if a list in the event is too long.

    Args:
        event: The decoded JSON object.
        fields: Names of the fields to check. Each is counted separately; a field that is not a list is skipped.
        max_items: Most items of one field, including the content parts, tool calls and tools inside its items.

    """
    for field in fields:
        if isinstance(items := event.get(field), list):
            total, inner = len(items), [items]
            while inner and total <= max_items:
                lists = [
                    each
                    for item in inner.pop()
                    if isinstance(item, dict)
                    for name in ("content", "output", "tool_calls", "tools")
                    if isinstance(each := item.get(name), list)
                ]
                total += sum(map(len, lists))
                inner += lists
            if total > max_items:
                raise RequestError(
                    f"{field} has {total} items and parts; this server takes {max_items} at most",
                    code="too_many_items",
                    param=field,
                )


def check_length(messages: Sequence[ChatMessage], max_items: int) -> None:
    """Raise `RequestError` if a conversation has more than `max_items` messages.

    The conversation includes the messages that it continues and those unpacked from compactions. A message with several
    tool calls counts once a call.
    """
    total = sum(max(1, len(message.get("tool_calls", ()))) for message in messages)
    if total > max_items:
        raise too_many_messages(total, max_items)


def too_many_messages(total: int, max_items: int) -> RequestError:
    """Return the error for a conversation of `total` messages and calls, which is more than `max_items`."""
    return RequestError(
        f"the conversation has {total} messages and calls, with what it continues and what was unpacked; "
        f"max_items is {max_items}",
        code="too_many_items",
        param="input",
    )


def offered_fields(
    body: dict[str, Any],
    struct: type[Struct],
    *,
    ignored: Container[str],
    neutral: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """Return the fields of a body that are set and that `struct` has.

    Args:
        body: The decoded JSON object. A field whose value is None counts as unset.
        struct: The struct to which the result will be converted.
        ignored: Names of fields that change no output, which are left out, as marks for caches are.
        neutral: Values by the names of unsupported fields. A field with one of its values asks for nothing, and is left
            out.

    Raises:
        RequestError: Another field is set; the error has its name and value.

    """
    kept = {}
    for name, value in body.items():
        if value is None or name in ignored or name in CacheMarks.__struct_fields__:
            continue
        if name in struct.__struct_fields__:
            kept[name] = value
        elif not any(type(value) is type(nothing) and value == nothing for nothing in neutral.get(name, ())):
            name = name[:80]
            raise unsupported_parameter(f"{name} is {short_json(value)}; this server does not offer it", name)
    return kept


def convert(body: dict[str, Any], struct: type[T]) -> T:
    """Convert a decoded body to a struct; raise `RequestError` for an invalid field, with its name and value."""
    try:
        return msgspec.convert(body, struct)
    except msgspec.ValidationError as error:
        raise convert_validation_error(error, body, struct) from error


def convert_validation_error(error: msgspec.ValidationError, event: dict[str, Any], kind: Any) -> RequestError:
    """Convert a validation error of `msgspec` to a `RequestError` that describes the field at fault.

    The message has the field's path, its value and, if the field takes one of a few strings, these strings. The path is
    also in `param`. A missing field is reported as missing.

    Args:
        error: The error of `msgspec`.
        event: The value that was converted.
        kind: The type to which `event` was converted.

    """
    text = str(error)
    message, found, path = text.rpartition(" - at `$")  # the last one: the message may quote the client before it
    if not found:
        missing = re.fullmatch(r"Object missing required field `(\w+)`", text)
        if missing is None:
            return RequestError(text)
        return RequestError(f"{missing[1]} is missing", code="missing_required_parameter", param=missing[1])
    param = path.removesuffix("`").removeprefix(".")
    value: Any = event
    kinds = _alternatives(_type_info(kind))
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]", param):
        if index == "...":  # some value of a mapping: msgspec does not say which
            break
        value = value[int(index)] if index else value.get(key)
        kinds = [inner for outer in kinds for field in _inside(outer, key) for inner in _alternatives(field)]
    literals = (kind.values for kind in kinds if isinstance(kind, inspect.LiteralType))
    choices = list(dict.fromkeys(str(choice) for values in literals for choice in values))
    if choices and isinstance(value, str):
        more = f" or {len(choices) - MOST_CHOICES} others" if len(choices) > MOST_CHOICES else ""
        known = ", ".join(choices[:MOST_CHOICES]) + more
        return RequestError(f"{param}: {short_json(value)} is not one of {known}", param=param)
    return RequestError(f"{param}: {message}, got {short_json(value)}", param=param)


@cache  # 2 or 3 ms for a request, and there are a few kinds of them
def _type_info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _alternatives(kind: Any) -> Sequence[Any]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _inside(kind: Any, key: str) -> Iterator[Any]:
    """Yield the types, as `msgspec.inspect` describes them, that a value inside a value of type `kind` may have.

    For a struct it is the type of the field `key`, for a list that of the items, for a dict that of the values. Other
    types yield nothing.
    """
    match kind:
        case inspect.StructType(tag_field=tag_field, tag=tag, fields=fields):
            if key == tag_field:
                yield inspect.LiteralType((tag,))
            yield from (field.type for field in fields if field.encode_name == key)
        case inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
            yield inner
        case _:
            pass


def short_json(value: Any) -> str:
    """Return the value as JSON text, cut to 80 characters with `...` at the end."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
