"""Messages as templates may see them: plain JSON data, checked, and in the shape that the template reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tokenweir.encode.errors import TemplateError, TextError, TokenweirError

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")  # which clients and templates use for one thing
MAX_DEPTH = 64  # nested lists and dicts

_NUMBER = re.compile(r"[0-9]+\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")

Message = dict[str, Any]


def read_messages(messages: object, roles: frozenset[str]) -> list[Message]:
    """Check messages and copy them.

    Args:
        messages: A sequence of mappings with a `role` and, mostly, a `content`: a string, a list of parts or None.
        roles: The roles to accept. Templates paste the role into control text, hence no others.

    Returns:
        New dicts and lists, which nobody else holds.

    Raises:
        TemplateError: Something is not as above; the message says what and where.
        TextError: A string has a lone surrogate.

    """
    copies = [read_mapping(message, where) for message, where in _items(messages, "messages")]
    for index, message in enumerate(copies):
        where = f"messages[{index}]"
        role = message.get("role")
        if not isinstance(role, str) or role not in roles:
            raise TemplateError(f"{where}: role {role!r} is not one of {', '.join(sorted(roles))}")
        content = message.get("content")
        if content is None and (
            role != "assistant" or len(message) == 1
        ):  # an assistant's may be all calls or thinking
            raise TemplateError(f'{where} has no content: write {{"role": "{role}", "content": "..."}}')
        if isinstance(content, list):
            for number, part in enumerate(content):
                if not isinstance(part, dict | str):
                    raise TemplateError(f"{where}.content[{number}] must be a part, not {type(part).__name__}")
        elif not isinstance(content, str | None):
            raise TemplateError(f"{where}.content must be a string or a list of parts, not {type(content).__name__}")
        calls = message.get("tool_calls")
        if calls is not None and not (isinstance(calls, list) and all(isinstance(call, dict) for call in calls)):
            raise TemplateError(f"{where}.tool_calls must be a list of calls: write [{_CALL}]")
    return copies


def read_mappings(values: object, name: str) -> list[dict[str, Any]] | None:
    """Check and copy `documents`: a sequence of mappings, or None.

    Raises:
        TemplateError: It is anything else.
        TextError: A string has a lone surrogate.

    """
    if values is None:
        return None
    return [read_mapping(value, where) for value, where in _items(values, name)]


def read_tools(values: object) -> list[dict[str, Any]] | None:
    """Check and copy `tools`: a sequence of mappings, each of which describes a function by its name, or None.

    Raises:
        TemplateError: It is anything else. Python functions are refused: their JSON schema is wanted.
        TextError: A string has a lone surrogate.

    """
    if values is None:
        return None
    tools = []
    for tool, where in _items(values, "tools"):
        tools.append(read_mapping(tool, where))
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if not (isinstance(function, Mapping) and isinstance(function.get("name"), str)):
            raise TemplateError(f"{where} names no function{_wanted(where)}")
    return tools


def read_mapping(value: object, where: str) -> dict[str, Any]:
    """Check and copy a mapping of JSON-like data."""
    if not isinstance(value, Mapping):
        raise TemplateError(f"{where} must be a mapping, not {type(value).__name__}{_wanted(where)}")
    copy: dict[str, Any] = read_value(value, where)
    return copy


def read_value(value: object, where: str) -> Any:
    """Check and copy JSON-like data; tuples become lists, mappings become dicts.

    Raises:
        TemplateError: Another type, a key that is no string, or nesting deeper than `MAX_DEPTH`.
        TextError: A string has a lone surrogate.

    """
    try:
        return _copied(value, 0)
    except _RefusedError as refused:
        raise refused.kind(refused.before + where + "".join(reversed(refused.path)) + refused.reason) from None


class _RefusedError(Exception):
    """What is wrong with a value; its path is put together on the way out, for it is seldom wanted."""

    def __init__(self, reason: str, before: str = "", kind: type[TokenweirError] = TemplateError) -> None:
        self.reason = reason
        self.before = before
        self.kind = kind
        self.path: list[str] = []
        self.of_key = False  # of the mapping that is being copied, so the path ends at the mapping itself


def _copied(value: object, depth: int) -> Any:
    if isinstance(value, str):
        if not value.isascii() and (found := _SURROGATE.search(value)):
            raise _RefusedError(
                f" has the lone surrogate U+{ord(found[0]):04X} at character {found.start()}", kind=TextError
            )
        return str(value)  # of a subclass of str, such as a StrEnum, only the text
    if value is None or isinstance(value, int | float):
        return value
    if depth == MAX_DEPTH:
        raise _RefusedError(f" is nested more than {MAX_DEPTH} levels deep")
    place: object = None
    try:
        if isinstance(value, dict | Mapping):
            copy = {}
            for place, item in value.items():
                key = place if type(place) is str and place.isascii() else _copied_key(place)
                plain = type(item) is str and item.isascii()
                copy[key] = item if plain else _copied(item, depth + 1)
            return copy
        if isinstance(value, list | tuple):
            items: list[Any] = []
            for item in value:
                place = len(items)
                items.append(_copied(item, depth + 1))
            return items
    except _RefusedError as refused:
        if not refused.of_key:
            refused.path.append(f"[{place}]" if isinstance(value, list | tuple) else f".{place}")
        refused.of_key = False
        raise
    raise _RefusedError(f" of type {type(value).__name__} cannot be given to templates")


def _copied_key(key: object) -> str:
    try:
        if isinstance(key, str):
            copy: str = _copied(key, 0)
            return copy
        refused = _RefusedError(f" has the key {key!r}, which is not a string")
    except _RefusedError as error:
        refused = error
        refused.before = "a key of "
    refused.of_key = True
    raise refused


def alias_reasoning(messages: list[Message]) -> None:
    """Give a message's reasoning under the names that templates read, in place, as transformers 5.23 does.

    Of several fields the first of `REASONING_FIELDS` that is not None counts. It becomes `reasoning_content`, and also
    `thinking`, which gpt-oss reads, where there is none.
    """
    for index, message in enumerate(messages):
        reasoning = next((message[name] for name in REASONING_FIELDS if message.get(name) is not None), None)
        if reasoning is not None:
            messages[index] = {"thinking": reasoning, **message, "reasoning_content": reasoning}


def flatten_parts(messages: Iterable[Message]) -> None:
    """Join the text parts of each content with line feeds, in place, as vLLM does for templates that want strings.

    Raises:
        TemplateError: A part is not text.

    """
    for index, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, list):
            texts = []
            for number, part in enumerate(content):
                text = part if isinstance(part, str) else part.get("text")
                if not isinstance(text, str):
                    kind = part.get("type")
                    raise TemplateError(
                        f"messages[{index}].content[{number}] is of type {kind!r}, but this template takes only text"
                    )
                texts.append(text)
            message["content"] = "\n".join(texts)


def parse_arguments(messages: Iterable[Message]) -> None:
    """Turn tool-call arguments that are the JSON text of an object into the object, in place.

    OpenAI's clients send text; most templates take the object and write JSON themselves. vLLM does the same.

    Args:
        messages: The messages.

    Raises:
        TemplateError: The object is nested too deep.
        TextError: A string of it has a lone surrogate.

    """
    for function, where in _functions(messages):
        if isinstance(function.get("arguments"), str):
            try:
                arguments = json.loads(function["arguments"])
            except (ValueError, RecursionError):
                continue
            if isinstance(arguments, dict):
                function["arguments"] = read_value(arguments, f"the arguments of {where}")


def write_arguments(messages: Iterable[Message]) -> None:
    """Turn tool-call arguments that are an object into its JSON text, in place.

    Templates that add it to other text fail with the object.

    Args:
        messages: The messages.

    """
    for function, _ in _functions(messages):
        if isinstance(function.get("arguments"), dict):
            function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)


def part_calls(messages: Iterable[Message]) -> list[Message]:
    """Give calls a message of their own without content, behind what stands beside them."""
    parted: list[Message] = []
    for message in messages:
        if message.get("tool_calls") and message.get("content") is not None:
            if message["content"]:
                parted.append({key: value for key, value in message.items() if key != "tool_calls"})
                message = {key: message[key] for key in ("role", "tool_calls")}
            parted.append(message | {"content": None})
        else:
            parted.append(message)
    return parted


def name_calls(messages: Iterable[Message], form: str) -> None:
    """Give calls, and the results that name them, ids that tell the function, in place.

    Args:
        messages: The messages.
        form: What an id is, with `{name}` and `{number}`; one that is so already stays.

    """
    number = 0
    ids: dict[object, str] = {}
    for message in messages:
        for call, function in _calls(message):
            given, name = call.get("id"), function.get("name")
            if isinstance(name, str):
                last = _NUMBER.search(given) if isinstance(given, str) else None
                if last is None or given != form.format(name=name, number=last[0]):
                    call["id"] = form.format(name=name, number=number)
                if isinstance(given, str):
                    ids[given] = call["id"]
            number += 1
        if isinstance(answered := message.get("tool_call_id"), str):
            message["tool_call_id"] = ids.get(answered, answered)


def _functions(messages: Iterable[Message]) -> Iterator[tuple[dict[str, Any], str]]:
    """The functions that messages call, each with where its message stands."""
    for index, message in enumerate(messages):
        for _, function in _calls(message):
            yield function, f"messages[{index}]"


def _calls(message: Message) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The calls of a message, each with its function, which may be the call itself."""
    calls = message.get("tool_calls")
    for call in calls or ():
        function = call.get("function", call)
        if isinstance(function, dict):
            yield call, function


_CALL = '{"type": "function", "function": {"name": "...", "arguments": {...}}}'
_TOOL = '{"type": "function", "function": {"name": "...", "parameters": {...}}}'
_MESSAGE = '{"role": "user", "content": "..."}'


def _wanted(where: str) -> str:
    """What to write instead, for the end of an error."""
    for name, item in (("tools", _TOOL), ("messages", _MESSAGE)):
        if where == name:
            return f": write [{item}]"
        if where.startswith(f"{name}["):
            return f": write {item}"
    return ""


def _items(values: object, name: str) -> Iterable[tuple[object, str]]:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise TemplateError(f"{name} must be a list, not {type(values).__name__}{_wanted(name)}")
    return ((value, f"{name}[{index}]") for index, value in enumerate(values))
