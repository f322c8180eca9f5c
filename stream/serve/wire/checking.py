"""Checks of JSON bodies and events; errors name the field and its value. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, inspect

from tokenweir.stream.events.json_bounds import as_float, has_more_outside_strings, has_more_strings
from tokenweir.stream.serve.wire.conversation import ChatMessage
from tokenweir.stream.serve.wire.errors import RequestError

T = TypeVar("T")

LONG = 1 << 15
"""Bytes from which on a message is bounded in its values, which cost more time than its bytes."""
MOST_CONTAINERS = 1 << 16
"""Arrays and objects of a message: the garbage collector follows each."""
MOST_FLOATS = 1 << 14
"""Numbers with a fraction or an exponent."""
MOST_STRINGS = 1 << 17
"""Strings, keys included."""
_HALF_PAIR = re.compile(
    rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F]..(?<!\\u[dD][89abAB]..\\u[dD]...))", re.DOTALL
)
"""A half of a surrogate pair without the other half, as an escape sequence."""


def refuse_template(template_kwargs: Mapping[str, object]) -> None:
    """Raise `RequestError` for a template among the template's variables: it would be a program of a client."""
    if "chat_template" in template_kwargs:
        raise RequestError(
            "chat_template_kwargs.chat_template: a template is never taken from a request",
            code="unsupported_parameter",
            param="chat_template_kwargs.chat_template",
        )


def parse_object(data: str | bytes) -> dict[str, Any]:
    """Return a JSON object; raise `RequestError` if it is not one, or has too many values."""
    if isinstance(data, str):
        data = data.encode()
    decoder = _decoder
    if len(data) >= LONG:
        if has_more_outside_strings(data, b"[{", MOST_CONTAINERS):
            raise _too_many("arrays and objects", MOST_CONTAINERS)
        if has_more_strings(data, MOST_STRINGS):
            raise _too_many("strings", MOST_STRINGS)
        decoder = msgspec.json.Decoder(float_hook=_bounded_float())
    try:
        event = decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        if isinstance(error.__cause__, RequestError):
            raise error.__cause__ from None
        if _has_half_pair(data, error):  # msgspec takes none, which JSON can spell
            raise RequestError(
                "the message has half of a surrogate pair, which is no character", code="invalid_unicode"
            ) from error
        raise RequestError(f"the message is not JSON: {error}", code="invalid_json") from error
    if not isinstance(event, dict):
        raise RequestError(f"expected a JSON object, got {show(event)}", code="invalid_type")
    return event


_decoder = msgspec.json.Decoder(float_hook=as_float)


def _has_half_pair(data: bytes, error: Exception) -> bool:
    """Return whether JSON has half of a surrogate pair where `msgspec` refused it: at the byte that it names, or at the end."""
    named = re.search(r"\(byte (\d+)\)", str(error))
    at = int(named[1]) if named else len(data)
    begin = len(data[: max(0, at - 40)].rstrip(b"\\"))  # two backslashes are one of the text
    around = data[begin : at + 1].replace(b"\\\\", b"  ")
    return _HALF_PAIR.search(around, max(0, len(around) - 17)) is not None


def _bounded_float() -> Callable[[str], float]:
    """Return `as_float` for one message, which refuses more than `MOST_FLOATS`."""
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
    """Raise `RequestError` for more items, content parts and tool calls than a template should go through."""
    for field in fields:
        items = event.get(field)
        if isinstance(items, list):
            total = len(items)
            if total <= max_items:
                lists = (
                    item.get(name) for item in items if isinstance(item, dict) for name in ("content", "tool_calls")
                )
                total += sum(len(inner) for inner in lists if isinstance(inner, list))
            if total > max_items:
                raise RequestError(
                    f"{field} has {total} items and parts; this server takes {max_items} at most",
                    code="too_many_items",
                    param=field,
                )


def check_length(messages: Sequence[ChatMessage], max_items: int) -> None:
    """Raise `RequestError` for a conversation that is too long with the messages that it continues or has unpacked.

    A message counts once, or once a call if it has several: no more than the items that it was made of.
    """
    total = sum(max(1, len(message.get("tool_calls", ()))) for message in messages)
    if total > max_items:
        raise too_many_messages(total, max_items)


def too_many_messages(total: int, max_items: int) -> RequestError:
    """Return the refusal of a conversation that is too long."""
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
    """The fields of a body that `struct` has.

    Args:
        ignored: Fields that change no output.
        neutral: Values of fields that are not offered, which ask for nothing.

    Raises:
        RequestError: Another field is set; names it, and its value.

    """
    kept = {}
    for name, value in body.items():
        if value is None or name in ignored:
            continue
        if name in struct.__struct_fields__:
            kept[name] = value
        elif not any(type(value) is type(nothing) and value == nothing for nothing in neutral.get(name, ())):
            name = name[:80]
            raise RequestError(
                f"{name} is {show(value)}; this server does not offer it", code="unsupported_parameter", param=name
            )
    return kept


def convert(body: dict[str, Any], struct: type[T]) -> T:
    """Return a request's body as a struct; raise `RequestError` for an invalid field, with its name and value."""
    try:
        return msgspec.convert(body, struct)
    except msgspec.ValidationError as error:
        raise located(error, body, struct) from error


def located(error: msgspec.ValidationError, event: dict[str, Any], kind: Any) -> RequestError:
    """Return the error with the path as `param`, the value that stands there and, of a few, those that may.

    `msgspec` gives the path as `$.a[0].b`, and says of a wrong choice only that it is wrong. `kind` is the type to
    which `event` was converted.
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
    choices = [str(choice) for kind in kinds if isinstance(kind, inspect.LiteralType) for choice in kind.values]
    if choices and isinstance(value, str):
        return RequestError(f"{param}: {show(value)} is not one of {', '.join(choices)}", param=param)
    return RequestError(f"{param}: {message}, got {show(value)}", param=param)


@cache  # 2 or 3 ms for a request, and there are a few kinds of them
def _type_info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _alternatives(kind: Any) -> Sequence[Any]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _inside(kind: Any, key: str) -> Iterator[Any]:
    """The type of a field of a type, or of its items, if it has any."""
    match kind:
        case inspect.StructType(tag_field=tag_field, tag=tag, fields=fields):
            if key == tag_field:
                yield inspect.LiteralType((tag,))
            yield from (field.type for field in fields if field.encode_name == key)
        case inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
            yield inner
        case _:
            pass


def show(value: Any) -> str:
    """The value as JSON, cut where it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
