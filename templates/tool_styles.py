"""How models write tool calls: a table of styles, as data.

A block of calls stands in the answer. Each call is an object with the name and the arguments (`{"name": ...,
"arguments": {...}}`), perhaps in a list, or a header with the name before the object of the arguments. The markup is
that of the models' own chat templates and of the parsers of vLLM 0.33, SGLang 0.5.23 and llama.cpp. Models that write
arguments as XML, Python or with strings of their own (GLM, Qwen3-Coder, Seed-OSS, MiniMax M2, Gemma 4, Llama 4) are
not here: JSON would have to be made up, with types that only the tools' schemas know.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from tokenweir.templates.style_names import named_style


class ToolStyle(Struct, frozen=True, kw_only=True):
    """The markup of tool calls.

    White space may stand between all parts. `stream/decode/parsers/tools.py` says what becomes of calls that are not as described.

    Attributes:
        name: The name it has in `TOOL_STYLES`.
        grammar: How calls are written within a block: "json", or another that `stream/decode/parsers/tools.py` knows.
            The fields that only some grammar needs may stand in a subclass.
        opens: Texts that begin a block of calls.
        closes: The text that ends a block; empty if a block ends with its last call.
        call_opens: The text before each call in a block, if there is one.
        call_closes: The text after each call, if there is one.
        header: A regular expression for what stands before the object of the arguments, with the function's name as
            the group `name`; empty if calls are objects with name and arguments.
        objects: Whether calls may be such objects.
        lists: Whether a block may be a list of such objects.
        bare: The characters with which an answer that is nothing but calls may begin, without an opening text.
        separators: What may stand between two objects outside a list, the empty text for nothing.
        tails: Texts that may follow the arguments and are markup too.
        name_keys: The keys of the name in an object.
        argument_keys: The keys of the arguments in an object.
        tokens: Control tokens. A vocabulary that has them all, and none of `unlike`, is taken to use the style.
        others: More texts of the markup that may be control tokens.
        unlike: Texts that no template or vocabulary of the style has: another style with the same opening text has.

    Raises:
        ValueError: Nothing opens a block, or the header has no group `name`.

    """

    name: str
    grammar: str = "json"
    opens: tuple[str, ...]
    closes: str = ""
    call_opens: str = ""
    call_closes: str = ""
    header: str = ""
    objects: bool = True
    lists: bool = False
    bare: str = ""
    separators: tuple[str, ...] = ()
    tails: tuple[str, ...] = ()
    name_keys: tuple[str, ...] = ("name",)
    argument_keys: tuple[str, ...] = ("arguments", "parameters")
    tokens: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """All texts of the markup."""
        return (*self.opens, self.closes, self.call_opens, self.call_closes, *self.tails, *self.tokens, *self.others)

    def __post_init__(self) -> None:
        """Refuse a style that no text could have."""
        if not self.opens or "" in self.opens:
            raise ValueError(f"tool style {self.name!r}: nothing opens a block, or the empty text does: {self.opens}")
        if self.header and "name" not in re.compile(self.header).groupindex:
            raise ValueError(f"tool style {self.name!r}: header {self.header!r} has no group 'name'")


def _tagged(name: str, opener: str, closer: str, **fields: Any) -> ToolStyle:
    return ToolStyle(name=name, opens=(opener,), closes=closer, tokens=(opener, closer), **fields)


TOOL_STYLES: dict[str, ToolStyle] = {
    style.name: style
    for style in (
        # Channels rather than a block in the answer: `stream/decode/parsers/harmony.py` parses it.
        ToolStyle(
            name="harmony",
            opens=("<|channel|>commentary",),
            tokens=("<|start|>", "<|channel|>", "<|message|>", "<|call|>"),
        ),
        ToolStyle(
            name="deepseek",
            opens=("<｜tool▁calls▁begin｜>",),
            closes="<｜tool▁calls▁end｜>",
            call_opens="<｜tool▁call▁begin｜>",
            call_closes="<｜tool▁call▁end｜>",
            # V3 and R1 write `function<sep>name`, a line end and a fence; V3.1 writes `name<sep>`.
            header=r"(?:function<｜tool▁sep｜>(?=[^<]*```))?(?P<name>[^\s<`]+)(?:<｜tool▁sep｜>|\s*```json)\s*",
            objects=False,
            tails=("```",),
            tokens=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁sep｜>"),
        ),
        ToolStyle(
            name="kimi-k2",
            opens=("<|tool_calls_section_begin|>",),
            closes="<|tool_calls_section_end|>",
            call_opens="<|tool_call_begin|>",
            call_closes="<|tool_call_end|>",
            header=r"(?:functions\.)?(?P<name>[A-Za-z_][^\s:<]*)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*",
            objects=False,
            tokens=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            others=("<|tool_call_argument_begin|>",),
        ),
        ToolStyle(
            name="plamo3",
            opens=("<|plamo:begin_tool_requests:plamo|>",),
            closes="<|plamo:end_tool_requests:plamo|>",
            call_opens="<|plamo:begin_tool_request:plamo|>",
            call_closes="<|plamo:end_tool_request:plamo|>",
            header=(
                r"<\|plamo:begin_tool_name:plamo\|>(?P<name>[^\s<]+)<\|plamo:end_tool_name:plamo\|>\s*"
                r"<\|plamo:begin_tool_arguments:plamo\|>(?:<\|plamo:constrain\|>json<\|plamo:msg\|>)?\s*"
            ),
            objects=False,
            tails=("<|plamo:end_tool_arguments:plamo|>",),
            tokens=("<|plamo:begin_", "<|plamo:end_", ":plamo|>"),
            others=("<|plamo:constrain|>", "<|plamo:msg|>"),
        ),
        ToolStyle(
            name="mistral",
            opens=("[TOOL_CALLS]",),
            # Up to tokenizer version 7 a list; then the name, since version 11 with [ARGS], and with an id before it.
            header=r"(?P<name>[^\s\[\]{}]+)(?:\[CALL_ID\][^\s\[\]{}]+)?(?:\[ARGS\])?",
            lists=True,
            tokens=("[TOOL_CALLS]",),
            others=("[CALL_ID]", "[ARGS]"),
        ),
        _tagged(
            "cohere",
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            lists=True,
            name_keys=("tool_name",),
            argument_keys=("parameters",),
        ),
        ToolStyle(
            name="internlm",
            opens=("<|action_start|><|plugin|>",),
            closes="<|action_end|>",
            tokens=("<|action_start|>", "<|plugin|>", "<|action_end|>"),
        ),
        _tagged("longcat", "<longcat_tool_call>", "</longcat_tool_call>"),
        _tagged("nemotron", "<TOOLCALL>", "</TOOLCALL>", lists=True),
        _tagged(
            "tool-calls",
            "<tool_calls>",
            "</tool_calls>",
            lists=True,
            separators=("",),
            unlike=("<tool_sep>", "<arg_key>"),
        ),
        ToolStyle(name="granite", opens=("<|tool_call|>",), lists=True, tokens=("<|tool_call|>",)),
        ToolStyle(
            name="functionary",
            opens=("<function=",),
            closes="</function>",
            header=r"(?P<name>[^\s>]+)>",
            objects=False,
            unlike=("<parameter=",),
        ),
        _tagged("hermes", "<tool_call>", "</tool_call>", unlike=("<arg_key>", "<function=", "<parameter=")),
        ToolStyle(name="llama3", opens=("<|python_tag|>",), bare="{", separators=(";", ""), tokens=("<|python_tag|>",)),
    )
}
"""Every style by its name. The particular come first: where several are shown, the first is taken."""

TOOL_FAMILIES: dict[str, str] = {
    "gpt-oss": "harmony",
    "deepseek-r1": "deepseek",
    "deepseek-v3": "deepseek",
    "deepseek-v31": "deepseek",
    "ernie45": "hermes",
    "qwen": "hermes",
    "qwen25": "hermes",
    "qwen3": "hermes",
    "smollm3": "hermes",
    "hunyuan-a13b": "tool-calls",
    "jamba": "tool-calls",
    "minimax-m1": "tool-calls",
    "llama": "llama3",
    "llama3-json": "llama3",
    "llama31": "llama3",
    "llama32": "llama3",
    "command-a": "cohere",
    "command-r7b": "cohere",
    "kimi": "kimi-k2",
}
"""Families of models by the name of their style, for those that share one."""


def tool_style_of(style: str | ToolStyle) -> ToolStyle:
    """Look up a style by its own name or that of a family of models; case and `_` for `-` make no difference.

    Args:
        style: A name, or a style, which is given back.

    Raises:
        TypeError: It is neither; a list of tools is for `chat()` and the template.
        ValueError: No style has the name; the message lists those that exist.

    """
    return style if isinstance(style, ToolStyle) else named_style(style, "tool style", TOOL_STYLES, TOOL_FAMILIES)


def shown_tools(source: str) -> str | None:
    """Name the style that a template's source shows: an opening text stands there, and nothing of another style."""
    for style in TOOL_STYLES.values():
        if any(text in source for text in style.opens) and not any(text in source for text in style.unlike):
            return style.name
    return None
