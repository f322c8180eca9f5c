"""Styles of tool calls: a table, as data.

A block of calls stands in the answer. Each call is an object with the name and the arguments (`{"name": ...,
"arguments": {...}}`), perhaps in a list; a header with the name before the object of the arguments; a name with tagged
parameters (`tagged.py`), whose types the tools' schemas know; or a call as a programming language writes it. The
markup is that of the models' own chat templates and of the parsers of vLLM 0.33, SGLang 0.5.23 and llama.cpp; a comment
names the source where a style's template was not at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from tokenweir.templates.styles.grammars import LiteralStyle, ToolStyle, json_in_tags
from tokenweir.templates.styles.names import TOOL_FAMILIES, named_style
from tokenweir.templates.styles.tagged import TAGGED_STYLES

Tools = Sequence[Mapping[str, Any]]
"""Tools as `chat()` and templates take them: `{"type": "function", "function": {"name": ..., "parameters": ...}}`,
the inner object alone, or both merged into one object."""

# Asked to, models of the LFM2 family write JSON (SGLang's lfm2_detector.py).
_IN_TOOL_CALL = LiteralStyle(
    name="lfm2",
    or_json=True,
    opens=("<|tool_call_start|>",),
    leads=("```python",),
    closes="<|tool_call_end|>",
    tails=("```",),
    lists=True,
    tokens=("<|tool_call_start|>", "<|tool_call_end|>"),
    shows=("List of tools: ",),  # some templates of the family write no calls
)

TOOL_STYLES: dict[str, ToolStyle] = {
    style.name: style
    for style in (
        # Channels rather than a block in the answer: `stream/decode/parsers/harmony.py` parses it.
        ToolStyle(
            name="harmony",
            opens=("<|channel|>commentary",),
            tokens=("<|start|>", "<|channel|>", "<|message|>", "<|call|>"),
        ),
        # Each block is a message: `stream/decode/parsers/inkling.py` finds it.
        ToolStyle(
            name="inkling",
            opens=("<|content_invoke_tool_json|>",),
            argument_keys=("args",),
            tokens=("<|message_model|>", "<|content_invoke_tool_json|>"),
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
            # Some models write the section's tags in the singular.
            opens=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"),
            closes="<|tool_calls_section_end|>",
            strays=("<|tool_call_section_end|>",),
            call_opens="<|tool_call_begin|>",
            call_closes="<|tool_call_end|>",
            # A number alone is an id.
            header=(
                r"(?:functions[.:])?(?P<name>(?=[^\s:<]*[^\W\d])[^\s:<]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*"
            ),
            objects=False,
            call_ids="functions.{name}:{number}",  # vLLM's make_tool_call_id; the model's own template writes nothing else
            tokens=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            others=("<|tool_call_argument_begin|>",),
        ),
        *TAGGED_STYLES,
        # ik_llama.cpp's template and parser (common/chat.cpp); the name of the server is no part of the function's.
        ToolStyle(
            name="mirothinker",
            opens=("<use_mcp_tool>",),
            closes="</use_mcp_tool>",
            call_opens="<server_name>",
            call_closes="</arguments>",
            header=r"[^<]*</server_name>\s*<tool_name>(?P<name>[^\s<]+)</tool_name>\s*<arguments>\s*",
            objects=False,
        ),
        LiteralStyle(
            name="gemma4",
            grammar="typed literals",
            opens=("<|tool_call>",),
            closes="<tool_call|>",
            strays=("<|tool_response>",),
            prefixes=("call:", ":"),  # some models of the family leave the word out (vLLM's gemma4.py)
            brackets="{}",
            assigns=":",
            quotes=('<|"|>',),
            escapes=False,
            words=True,
            tokens=("<|tool_call>", "<tool_call|>"),
            others=('<|"|>',),
        ),
        # vLLM's functiongemma_tool_parser.py and template, which quotes numbers like strings.
        LiteralStyle(
            name="functiongemma",
            grammar="typed literals",
            quotes_all=True,
            opens=("<start_function_call>",),
            closes="<end_function_call>",
            prefixes=("call:",),
            brackets="{}",
            assigns=":",
            quotes=("<escape>",),
            escapes=False,
            words=True,
            tokens=("<start_function_call>", "<end_function_call>"),
            others=("<escape>",),
        ),
        # Calls on lines of their own in a fence (the data of OpenBMB's MiniCPM4-MCP).
        replace(
            _IN_TOOL_CALL,
            name="minicpm4",
            tokens=("<|thought_start|>", "<|tool_call_start|>", "<|tool_call_end|>"),
            shows=("<|tool_call_start|>", "```python"),
        ),
        _IN_TOOL_CALL,
        # vLLM's olmo3_tool_parser.py.
        LiteralStyle(
            name="olmo3",
            opens=("<function_calls>",),
            closes="</function_calls>",
            lists=True,
            unlike=("DSML", "<invoke"),
        ),
        ToolStyle(
            name="solar-open",
            opens=("<|tool_call:begin|>",),
            closes="<|tool_call:end|>",
            header=r"[^<]*<\|tool_call:name\|>(?P<name>[^\s<]+)<\|tool_call:args\|>\s*",
            objects=False,
            tokens=("<|tool_call:begin|>", "<|tool_call:end|>"),
            others=("<|tool_call:name|>", "<|tool_call:args|>"),
        ),
        ToolStyle(
            name="gigachat3",
            # The first model begins a turn of another role; GigaChat 3.1 has a token of its own.
            opens=(
                "<|message_sep|>\n\nfunction call<|role_sep|>\n",
                "function call<|role_sep|>\n",
                "<|function_call|>",
            ),
            tokens=("<|role_sep|>", "<|message_sep|>"),
        ),
        # vLLM's phi4mini_tool_parser.py.
        ToolStyle(name="phi4-functools", opens=("functools[",), lists=True, shows=("functools",)),
        # The template of YandexGPT 5 Lite.
        ToolStyle(name="yandexgpt", opens=("[TOOL_CALL_START]",), header=r"(?P<name>[^\s{]+)\n\s*", objects=False),
        # vLLM's granite_20b_fc_tool_parser.py.
        ToolStyle(name="granite-20b-fc", opens=("<function_call>",), separators=("", "<function_call>")),
        ToolStyle(
            name="plamo3",
            opens=("<|plamo:begin_tool_requests:plamo|>", "<|plamo:begin_tool_request:plamo|>"),
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
            header=r"(?P<name>[^\s\[\]{}]+)(?:\[CALL_ID\][^\s\[\]{}]+)?(?:\[ARGS\])?\s*",
            lists=True,
            tokens=("[TOOL_CALLS]",),
            others=("[CALL_ID]", "[ARGS]"),
        ),
        json_in_tags(
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
        json_in_tags("longcat", "<longcat_tool_call>", "</longcat_tool_call>"),
        json_in_tags("nemotron", "<TOOLCALL>", "</TOOLCALL>", lists=True),
        # pangu_tool_parser.py of openPangu's copy of vLLM.
        json_in_tags("pangu", "[unused11]", "[unused12]", lists=True),
        json_in_tags(
            "tool-calls",
            "<tool_calls>",
            "</tool_calls>",
            lists=True,
            separators=("",),
            unlike=("<arg_key>",),
        ),
        # Some models of the family spell the token (vLLM's granite_engine_tool_parser.py).
        ToolStyle(
            name="granite",
            opens=("<|tool_call|>", "<tool_call>"),
            lists=True,
            tokens=("<|tool_call|>",),
            shows=("<|tool_call|>",),
        ),
        ToolStyle(
            name="functionary",
            opens=("<function=",),
            closes="</function>",
            header=r"(?P<name>[^\s>]+)>",
            objects=False,
            unlike=("<parameter=",),
        ),
        # Its template opens every answer with `>>>`, so an answer begins with `all` and a line end, or with a call.
        ToolStyle(
            name="functionary-v3.2",
            opens=(">>>",),
            doubtful=(">>>",),
            answers=("all\n",),
            header=r"(?P<name>[^\W\d][\w.-]*)\n\s*",
            objects=False,
            shows=(">>>${recipient}",),
        ),
        json_in_tags(
            "hermes",
            "<tool_call>",
            "</tool_call>",
            lists=True,
            separators=("",),
            unlike=("<arg_key>", "<function=", "<parameter="),
        ),
        # vLLM's llama4_pythonic_tool_parser.py and pythonic_tool_parser.py; or a list of calls, as in SGLang's detector.
        LiteralStyle(
            name="pythonic",
            opens=("<|python_start|>",),
            closes="<|python_end|>",
            lists=True,
            bare="[",
            strewn=True,
            tokens=("<|python_start|>", "<|python_end|>"),
            shows=("[func_name1(param",),
        ),
        # Meta's prompt format of Llama 3.1: built-in tools as calls of Python, others as objects. Code without a tool's name
        # stays text.
        LiteralStyle(
            name="llama3.1",
            or_json=True,
            opens=("<|python_tag|>",),
            name_suffix=".call",
            lists=True,
            bare="{[",
            strewn=True,
            separators=(";", ""),
            shows=("<|python_tag|>", ".call("),
        ),
        ToolStyle(
            name="llama3",
            opens=("<|python_tag|>",),
            lists=True,
            bare="{[",
            strewn=True,
            separators=(";", ""),
            tokens=("<|python_tag|>",),
            shows=('{"name": function name, "parameters": dictionary of argument name and its value}',),
        ),
        # smg's sarashina.rs. The opening text is a special token, which most detokenizers drop.
        ToolStyle(
            name="sarashina",
            grammar="python objects",
            opens=("<|tool_calls|>",),
            bare="[",
            shows=("<|tool_calls|>[{'name'",),
        ),
        # Fine-tuned on prompts that list their tools in these tags (proposed for vLLM); no template shows it.
        ToolStyle(
            name="qwen2.5-coder",
            opens=("<tools>",),
            closes="</tools>",
            lists=True,
            separators=("",),
            shows=("within <tools></tools> tags for each call",),
        ),
        # vLLM's rwkv_tool_parser.py.
        ToolStyle(
            name="rwkv7",
            opens=("**Tool Call:**\n```json\n", "**Tool Call:**\n\n```json\n"),
            closes="```",
            shows=("**Tool Call:**",),
        ),
        # vLLM's step_audio_2_tool_parser.py.
        ToolStyle(
            name="step-audio-2",
            opens=("<tool_call>function\n",),
            closes="</tool_call>",
            header=r"(?P<name>[^\s{]+)\n\s*",
            objects=False,
            shows=("<tool_call>function\n",),
        ),
        # Its template has the list alone, and vLLM's xlam_tool_parser.py the rest.
        ToolStyle(
            name="xlam",
            opens=("```json", "[TOOL_CALLS]", "<tool_call>"),
            doubtful=("```json",),
            lists=True,
            bare="[",
            objects=False,
            tails=("```", "</tool_call>"),
            shows=("make calls in a single JSON array",),
        ),
        ToolStyle(
            name="command-r-plus",
            opens=("Action:\n```json\n", "Action: ```json\n"),
            closes="```",
            lists=True,
            name_keys=("tool_name",),
            argument_keys=("parameters",),
            shows=("Write 'Action:' followed by a json-formatted list of actions",),
        ),
        ToolStyle(
            name="apertus",
            opens=("<|tools_prefix|>",),
            closes="<|tools_suffix|>",
            lists=True,
            name_keys=(),
            argument_keys=(),
            tokens=("<|tools_prefix|>", "<|tools_suffix|>"),
        ),
    )
}
"""Every style by its name. The particular come first: where several are shown, the first is taken."""


def tool_style_of(style: str | ToolStyle) -> ToolStyle:
    """Look up a style by its own name or that of a family of models; case and `_` for `-` make no difference.

    Args:
        style: A name, or a style, which is given back.

    Raises:
        TypeError: It is neither; a list of tools is for `chat()` and the template.
        ValueError: No style has the name; the message lists those that exist.

    """
    return style if isinstance(style, ToolStyle) else named_style(style, "tool style", TOOL_STYLES, TOOL_FAMILIES)
