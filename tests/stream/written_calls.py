"""Calls as models of each style write them."""

from __future__ import annotations

import json

from tokenweir.templates.styles.grammars import LiteralStyle, ParameterStyle

PLAMO = "<|plamo:begin_tool_name:plamo|>{}<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>"
HEADED = {
    "deepseek": "{}<｜tool▁sep｜>{}",
    "kimi-k2": "functions.{}:0 <|tool_call_argument_begin|>{}",
    "plamo3": f"{PLAMO}<|plamo:constrain|>json<|plamo:msg|>{{}}<|plamo:end_tool_arguments:plamo|>",
    "mirothinker": "\n<server_name>it</server_name>\n<tool_name>{}</tool_name>\n<arguments>\n{}\n</arguments>",
    "step-audio-2": "{}\n{}",
    "yandexgpt": "{}\n{}",
    "solar-open": "id-0<|tool_call:name|>{}<|tool_call:args|>{}",
    "functionary-v3.2": "{}\n{}",
    "functionary": "{}>{}",
}
"""Names and arguments of the styles whose calls have a header."""


def write(style, *calls):
    """Return an answer of calls, each a name and its arguments: an object, or for styles in JSON its text."""
    match style.grammar:
        case "parameters":
            return "\n".join(_parameters(style, *call) for call in calls)
        case "literals" if style.escapes:
            texts = [
                f"{name}{style.name_suffix}({', '.join(f'{key}={value!r}' for key, value in call.items())})"
                for name, call in calls
            ]
            if style.name_suffix:  # each in a block of its own
                return "".join(style.opens[0] + text for text in texts)
            return f"{style.opens[0]}[{', '.join(texts)}]{style.closes}"
        case "literals" | "typed literals":
            head = style.opens[0] + "call:"
            return "".join(f"{head}{name}{_literal(style, call)}{style.closes}" for name, call in calls)
        case "python objects":
            return f"{style.opens[0]}{[{'name': name, 'arguments': call} for name, call in calls]}"
    return _json(style, [(name, call if isinstance(call, str) else json.dumps(call)) for name, call in calls])


def _json(style, calls):
    headed = HEADED.get(style.name)
    texts = [headed.format(*call) if headed else _object(style, *call) for call in calls]
    if style.name == "llama3":
        return style.opens[0] + "; ".join(texts)
    if style.call_opens or style.name == "mirothinker":
        return style.opens[0] + "".join(style.call_opens + text + style.call_closes for text in texts) + style.closes
    if headed or style.name == "granite-20b-fc":
        return "\n".join(f"{style.opens[0]}{text}{style.closes}" for text in texts)
    if style.lists and style.name != "hermes":
        return f"{style.opens[0].removesuffix('[')}[{', '.join(texts)}]{style.closes}"
    return "\n".join(f"{style.opens[0]}\n{text}\n{style.closes}" for text in texts)


def _object(style, name, arguments):
    if not style.name_keys:
        return f'{{"{name}": {arguments}}}'
    return f'{{"{style.name_keys[0]}": "{name}", "{style.argument_keys[0]}": {arguments}}}'


def _parameters(style, name, arguments):
    ends = "\n" if "\n" in style.name_stops else style.name_ends[0]
    tail = f' index="1"{style.name_tail}' if style.name_tail else ""
    body = ""
    for key, value in arguments.items():
        kinds = {kind: text for text, kind in style.key_closes}
        closer = kinds.get("schema") or kinds["string" if isinstance(value, str) else "json"]
        line_end = "\n" * style.trims
        body += f"{style.key_opens}{key}{closer}{style.value_opens}{line_end}{tagged_value(style, value)}{line_end}"
        body += style.value_closes.replace("{}", key) + "\n"
    opener = style.opens[0] if style.opens[0] != style.call_opens else ""
    opener += "".join(style.leads) + style.call_opens
    return f"{opener}{name}{ends}{tail}{body}{style.call_closes}{''.join(style.tails)}{style.closes}"


def tagged_value(style: ParameterStyle, value):
    """Return a value as a template writes it: strings as they are, all else as JSON, or as tags if the style nests."""
    if style.nests and isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else [("item", item) for item in value]
        tag = style.nests
        return "".join(f"{tag}<{key}>{tagged_value(style, item)}{tag}</{key}>" for key, item in members)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _literal(style: LiteralStyle, value):
    quote = style.quotes[0]
    match value:
        case str():
            return f"{quote}{value}{quote}"
        case dict():
            return "{" + ",".join(f"{key}:{_literal(style, item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ",".join(_literal(style, item) for item in value) + "]"
    return json.dumps(value)
