"""Styles of tool calls with tagged parameters: rows of the table in `tools.py`, in its order."""

from __future__ import annotations

from tokenweir.templates.styles.grammars import (
    ParameterStyle,
    ValueKind,
    functions_and_parameters,
    invokes,
    keys_and_values,
)

# vLLM's deepseek_v4.py also takes a parameter without the attribute.
_DSML_KEYS: tuple[tuple[str, ValueKind], ...] = (
    ('" string="true">', "string"),
    ('" string="false">', "json"),
    ('">', "schema"),
)
_KIMI_TYPES = ("number", "integer", "boolean", "object", "array", "null")

TAGGED_STYLES: tuple[ParameterStyle, ...] = (
    # Each block is a message to its tool: `stream/decode/parsers/muse.py` finds it.
    invokes(
        "muse",
        ("<atem:function_calls>",),
        "</atem:function_calls>",
        "atem:",
        tokens=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
        unlike=("<|channel|>",),
    ),
    ParameterStyle(
        name="kimi-k3",
        opens=("<|open|>tools<|sep|>",),
        closes="<|close|>tools<|sep|>",
        call_opens='<|open|>call tool="',
        call_closes="<|close|>call<|sep|>",
        name_ends=('"',),
        name_tail="<|sep|>",
        key_opens='<|open|>argument key="',
        key_closes=(
            ('" type="string"<|sep|>', "string"),
            *((f'" type="{kind}"<|sep|>', "json") for kind in _KIMI_TYPES),
        ),
        value_closes="<|close|>argument<|sep|>",
        object_opens='<|open|>json type="object"<|sep|>',
        tails=("<|close|>json<|sep|>",),
        entities=True,
        tokens=("<|open|>", "<|close|>", "<|sep|>"),
    ),
    invokes(
        "deepseek-v3.2",
        ("<｜DSML｜function_calls>", '<｜DSML｜invoke name="'),
        "</｜DSML｜function_calls>",
        "｜DSML｜",
        key_closes=_DSML_KEYS,
        tokens=("｜DSML｜",),
        shows=("DSML", "function_calls", "invoke name="),
    ),
    # SGLang's deepseekv4_detector.py: as V3.2, with another name for the block.
    invokes(
        "deepseek-v4",
        ("<｜DSML｜tool_calls>", '<｜DSML｜invoke name="'),
        "</｜DSML｜tool_calls>",
        "｜DSML｜",
        key_closes=_DSML_KEYS,
        shows=("DSML", "tool_calls>", "invoke name="),
    ),
    # vLLM's deepseek_v41.py: as V4, with a space before each tag's name.
    invokes(
        "deepseek-v4.1",
        ("<｜DSML｜ calls>", '<｜DSML｜ invoke name="'),
        "</｜DSML｜ calls>",
        "｜DSML｜ ",
        key_closes=_DSML_KEYS,
        shows=("DSML", " calls>", " invoke name="),
    ),
    # SGLang's gigachat35_detector.py.
    invokes(
        "gigachat3.5",
        ("<｜GCML｜tool_calls>",),
        "</｜GCML｜tool_calls>",
        "｜GCML｜",
        key_closes=_DSML_KEYS,
        tokens=("｜GCML｜",),
        shows=("GCML", "tool_calls>", "invoke name="),
    ),
    invokes(
        "minimax-m2",
        ("<minimax:tool_call>",),
        "</minimax:tool_call>",
        "",
        tokens=("<minimax:tool_call>", "</minimax:tool_call>"),
    ),
    # Its template builds the markup of parts. Unions of a string and others stay strings, as in llama.cpp's parser.
    ParameterStyle(
        name="minimax-m3",
        opens=("]<]minimax[>[<tool_call>",),
        closes="]<]minimax[>[</tool_call>",
        call_opens=']<]minimax[>[<invoke name="',
        call_closes="]<]minimax[>[</invoke>",
        name_ends=('">',),
        key_opens="]<]minimax[>[<",
        key_closes=((">", "schema"),),
        value_closes="]<]minimax[>[</{}>",
        nests="]<]minimax[>[",
        tokens=("]<]minimax[>[",),
        others=("<item>", "</item>"),
    ),
    # vLLM's dots_tool_parser.py.
    invokes("dots", ("<dots_function_call>",), "</dots_function_call>", "", or_json=True, lists=True),
    # SGLang's k2_v3_detector.py.
    ParameterStyle(
        name="k2-v3",
        or_json=True,
        opens=("<ifm|tool_calls>", "<ifm|tool_call>"),
        closes="</ifm|tool_calls>",
        call_opens="<ifm|tool_call>",
        call_closes="</ifm|tool_call>",
        name_stops=("\n", "<ifm|arg_key>", "</ifm|tool_call>"),
        key_opens="<ifm|arg_key>",
        key_closes=(("</ifm|arg_key>", "schema"),),
        type_tags=("<ifm|arg_type>", "</ifm|arg_type>"),
        value_opens="<ifm|arg_value>",
        value_closes="</ifm|arg_value>",
        tokens=("<ifm|tool_calls>", "<ifm|arg_key>"),
        shows=("<ifm|tool_calls>", "<ifm|arg_key>"),
    ),
    # SGLang's step3_detector.py; vLLM's step3_tool_parser.py also takes calls without the words before the tag.
    ParameterStyle(
        name="step3",
        opens=("<｜tool_calls_begin｜>",),
        closes="<｜tool_calls_end｜>",
        leads=("<｜tool_call_begin｜>", "function<｜tool_sep｜>"),
        call_opens='<steptml:invoke name="',
        call_closes="</steptml:invoke>",
        tails=("<｜tool_call_end｜>", "<｜tool_sep｜>"),
        name_ends=('">',),
        key_opens='<steptml:parameter name="',
        key_closes=(('">', "schema"),),
        value_closes="</steptml:parameter>",
        tokens=("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<｜tool_call_begin｜>", "<｜tool_call_end｜>"),
    ),
    functions_and_parameters(
        "seed-oss",
        ("<seed:tool_call>",),
        "</seed:tool_call>",
        "function",
        "parameter",
        tokens=("<seed:tool_call>", "</seed:tool_call>"),
    ),
    # V4 is the same without `<tool_sep>` (vLLM's hy_v4_tool_parser.py). Tags may end in any word (`<tool_calls:WORD>`):
    # `stream/decode/parsers/detection.py` looks for it in the vocabulary.
    keys_and_values(
        "hunyuan-v3",
        "<tool_calls:opensource>",
        "</tool_calls:opensource>",
        ":opensource",
        call_opens="<tool_call:opensource>",
        call_closes="</tool_call:opensource>",
        name_ends=("<tool_sep:opensource>",),
        name_stops=("<arg_key:opensource>", "</tool_call:opensource>"),
        tokens=("<tool_calls:opensource>", "</tool_calls:opensource>"),
        shows=(":opensource", "<tool_calls{}>", "<arg_key{}>"),
    ),
    # The same without a word in its tags (vLLM's hy_v3_tool_parser.py).
    keys_and_values(
        "hunyuan-v3-preview",
        "<tool_calls>",
        "</tool_calls>",
        call_opens="<tool_call>",
        call_closes="</tool_call>",
        name_ends=("<tool_sep>",),
        name_stops=("<arg_key>", "</tool_call>"),
        tokens=("<tool_calls>", "<arg_key>"),
        shows=("<tool_calls>", "<arg_key>"),
    ),
    # GLM 5.3 Flash also writes the arguments as one object behind the name and `>`, or leaves out the tags between a name and
    # its value (SGLang's glm53_flash_detector.py).
    keys_and_values(
        "glm",
        "<tool_call>",
        "</tool_call>",
        name_ends=(">",),
        name_stops=("\n", "<arg_key>", "</tool_call>"),
        joins="=",
        tokens=("<tool_call>", "<arg_key>"),
        shows=("<tool_call>", "<arg_key>"),
    ),
    # SGLang's iquest_q1_detector.py: as GLM, in tags of its own.
    keys_and_values(
        "iquest-q1",
        "<iquest_tool_call>",
        "</iquest_tool_call>",
        name_stops=("\n", "<arg_key>", "</iquest_tool_call>"),
    ),
    # Likewise (iquest_coder_v2_tool_parser.py, proposed for vLLM).
    keys_and_values(
        "iquest-coder",
        "<iquestcoder_tool_call>",
        "</iquestcoder_tool_call>",
        name_stops=("\n", "<arg_key>", "</iquestcoder_tool_call>"),
        tokens=("<iquestcoder_tool_call>", "</iquestcoder_tool_call>"),
    ),
    # solar_open2_tool_parser.py, proposed for vLLM.
    ParameterStyle(
        name="solar-open2",
        opens=("<|tool_call:start|>",),
        closes="<|tool_call:end|>",
        name_stops=("\n", "<|tool_arg:start|>", "<|tool_call:end|>"),
        key_opens="<|tool_arg:start|>",
        key_closes=(("<|tool_arg:value|>", "schema"),),
        value_closes="<|tool_arg:end|>",
        tokens=("<|tool_call:start|>", "<|tool_call:end|>", "<|tool_arg:start|>"),
    ),
    ParameterStyle(
        name="minicpm5",
        opens=('<function name="',),
        call_opens='<function name="',
        call_closes="</function>",
        name_ends=('">',),
        key_opens='<param name="',
        key_closes=(('">', "schema"),),
        value_closes="</param>",
        verbatim=("<![CDATA[", "]]>"),
    ),
    functions_and_parameters(
        "qwen3-coder",
        ("<tool_call>", "<function="),
        "</tool_call>",
        "function",
        "parameter",
        trims=True,
        shows=("<function=", "<parameter="),
    ),
)
