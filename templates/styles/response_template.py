"""Styles from a checkpoint's `response_template`, by which transformers 5.13 and newer parse answers.

A response template names the fields of a message, each with the texts or patterns that open and close it, and the
format of its content. Its patterns are regular expressions of the checkpoint's author, so they are compared and never
run: a template that describes a style of the tables selects that style. Fields between plain texts, with thinking,
JSON or Python calls in them, make a style of their own. Other templates select nothing, and the styles are detected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tokenweir.templates.styles.grammars import LiteralStyle, ParameterStyle, ToolStyle
from tokenweir.templates.styles.reasoning import HARMONY, STYLES, ReasoningStyle
from tokenweir.templates.styles.tools import TOOL_STYLES

NAME = "response-template"
"""The name of a style that no table has."""

_THINKING = ("thinking", "reasoning_content", "reasoning")
_GRAMMARS = {
    "json": ("json", "typed literals"),
    "xml-inline": ("parameters", "typed literals"),
    "python-call-list": ("literals",),
}
_SPECIAL = frozenset(".^$*+?{}[]|()")
_QUANTIFIERS = frozenset("*?{")


def reasoning_of(template: object) -> ReasoningStyle | None:
    """Return the style of thinking that a model's `response_template` describes.

    A known style is returned as it is in the table. Another one, between plain texts, is a new object. None if the template
    describes no style that can be read.
    """
    fields = _fields(template)
    field = next((fields[name] for name in _THINKING if name in fields), None)
    if field is None:
        return None
    opens, closes, whole = _texts(field, "open"), _texts(field, "close"), _texts(fields.get("content", {}), "open")
    for style in STYLES.values():
        enveloped = not style.envelope or _fits(whole, style.envelope)
        if enveloped and _fits(opens, style.openers) and _fits(closes, style.closers):
            return style
    openers, closers = _literals(field, "open"), _literals(field, "close")
    if not openers or not closers or field.get("content", "text") != "text":
        return None
    try:
        return ReasoningStyle(name=NAME, openers=openers, closers=closers, opens_at="anywhere", repeated_opener="keep")
    except ValueError:  # a tag begins another
        return None


def tool_style_of_template(template: object) -> ToolStyle | None:
    """Return the style of tool calls that a model's `response_template` describes.

    A known style is returned as it is in the table, if a call may begin with the template's opening text: one that stands
    inside a block of the style does not show it. Another style, of JSON or Python between plain texts, is a new object.
    None if the template describes no style that can be read.
    """
    field = _fields(template).get("tool_calls")
    if field is None:
        return None
    opens, closes, content = _texts(field, "open"), _texts(field, "close"), field.get("content", "text")
    for style in TOOL_STYLES.values():
        ends = (style.closes, style.call_closes, *(("<|call|>",) if style.name == HARMONY else ()))
        known = _fits(opens, style.opens) and (not closes or _fits(closes, ends))
        if known and style.grammar in _GRAMMARS.get(content, ()) and _reads(style, field):
            return style
    return _own_style(field, content)


def _own_style(field: Mapping[str, Any], content: object) -> ToolStyle | None:
    """Return a new style for calls in JSON or Python between plain texts; None for any other form of calls.

    Args:
        field: The field `tool_calls` of a response template.
        content: The format of its content, such as "json" or "python-call-list".

    """
    openers, closers = _literals(field, "open"), _literals(field, "close")
    if not openers or len(closers) != 1 or field.get("content_args"):
        return None
    keys = _keys(field)
    if content == "python-call-list" and keys == ("name", "arguments"):
        return LiteralStyle(name=NAME, opens=openers, closes=closers[0], lists=True)
    if content == "json" and keys is not None:
        name, arguments = keys
        return ToolStyle(
            name=NAME,
            opens=openers,
            closes=closers[0],
            lists=field.get("transform_each") is True,
            name_keys=(name,),
            argument_keys=(arguments,),
        )
    return None


def _reads(style: ToolStyle, field: Mapping[str, Any]) -> bool:
    """Return whether a known style can read the calls that a response template's field `tool_calls` describes."""
    arguments = field.get("content_args")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    pattern = str(arguments.get("tag_pattern", "")).replace("\\", "")
    if isinstance(style, ParameterStyle):
        return style.key_opens in pattern
    if isinstance(style, LiteralStyle):
        return not style.words or any(quote in f"{pattern}{arguments.get('string_delims')}" for quote in style.quotes)
    if arguments:
        return False
    keys = _keys(field)
    if keys is None:  # the opening pattern has the name
        return bool(style.header) or style.name == HARMONY
    name, named = keys
    return style.objects and name in style.name_keys and named in style.argument_keys


def _keys(field: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the keys under which a call's JSON object has the function's name and the arguments.

    `field` is the field `tool_calls` of a response template. None if the objects do not have both.
    """
    transform = field.get("transform")
    function = transform.get("function") if isinstance(transform, Mapping) else None
    if function == "{content}":
        return "name", "arguments"
    if not isinstance(function, Mapping):
        return None
    before = "{" if field.get("transform_each") is True else "{content."
    name, arguments = str(function.get("name", "")), str(function.get("arguments", ""))
    if not (name.startswith(before) and arguments.startswith(before)):
        return None
    return name.removeprefix(before).removesuffix("}"), arguments.removeprefix(before).removesuffix("}")


def _fields(template: object) -> Mapping[str, Mapping[str, Any]]:
    """Return the fields of a response template of version 1, by name; empty for any other object."""
    if not isinstance(template, Mapping) or template.get("version", 1) != 1:
        return {}
    fields = template.get("fields")
    if not isinstance(fields, Mapping):
        return {}
    return {str(name): field for name, field in fields.items() if isinstance(field, Mapping)}


def _literals(field: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the plain texts under `key`, "open" or "close", of a response template's field, without repetitions.

    Empty if the value is missing, or is not a text or a list of texts.
    """
    given = field.get(key, ())
    texts = (given,) if isinstance(given, str) else given
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):
        return ()
    return tuple(dict.fromkeys(texts))


def _texts(field: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the texts by which a response template's field opens or closes, without white space around them.

    `key` is "open" or "close". If the field has a pattern in place of texts, the result is the plain text with which the
    pattern begins.
    """
    pattern = field.get(f"{key}_pattern")
    texts = (_beginning(pattern),) if isinstance(pattern, str) else _literals(field, key)
    return tuple(filter(None, (text.strip() for text in texts)))


def _beginning(pattern: str) -> str:
    """Return the plain text at the start of a regular expression, with which all of its matches begin; may be empty."""
    text, place = "", 0
    while place < len(pattern) and pattern[place] not in _SPECIAL:
        escaped = pattern[place] == "\\"
        char = pattern[place + escaped : place + escaped + 1]
        if escaped and (not char or char.isalnum()):
            break
        text += char
        place += 1 + escaped
    return text[:-1] if place < len(pattern) and pattern[place] in _QUANTIFIERS else text


def _fits(texts: Iterable[str], marks: Iterable[str]) -> bool:
    """Return whether any of the texts is a prefix of any of the marks, or the other way round. Empty marks do not count."""
    return any(mark and (mark.startswith(text) or text.startswith(mark)) for text in texts for mark in marks)
