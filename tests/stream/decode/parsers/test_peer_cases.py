"""Output of models, as the tests of llama.cpp, vLLM and SGLang show it, and what becomes of it here.

The facts are theirs: which markup, in which order, and what stands round it. Names, values and sentences are ours. Texts
are compared without the white space round them, arguments as JSON. Where we differ on purpose, `ON_PURPOSE` says why.
"""

from __future__ import annotations

import json

import pytest
from splitting import run, told

from tokenweir.stream.decode.parsers.detection import Styles, make_splitter
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.tools import tool_style_of


def tool(name, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties}}


TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
TOOLS = [
    tool("count", of=WHOLE),
    tool("look", at=TEXT),
    tool("weigh", mass=NUMBER, wet={"type": "boolean"}),
    tool("plan", steps={"type": "array", "items": TEXT}, options={"type": "object"}),
    tool("label", text={"type": ["string", "null"]}, any={"anyOf": [TEXT, {"type": "object"}, WHOLE]}),
    tool("unit", of={"enum": ["m", "ft"]}),
    tool("now"),
    tool("maps/look"),
    tool("mcp__a__b-c"),
    tool('a&lt "b"'),
]
COUNT = ("count", {"of": 3})
LOOK = ("look", {"at": "Bern"})


def xml(name, *parameters):
    """A call as Qwen3-Coder writes it."""
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters)
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def glm(name, *pairs, between="\n"):
    """A call as GLM writes it."""
    inner = "".join(f"<arg_key>{k}</arg_key>{between}<arg_value>{v}</arg_value>{between}" for k, v in pairs)
    return f"<tool_call>{name}{between}{inner}</tool_call>"


def dsml(block, *calls):
    """A block as DeepSeek V3.2 and V4 write it."""
    invokes = "".join(
        f'<｜DSML｜invoke name="{name}">\n'
        + "".join(
            f'<｜DSML｜parameter name="{key}" string="{kind}">{value}</｜DSML｜parameter>\n'
            for key, kind, value in values
        )
        + "</｜DSML｜invoke>\n"
        for name, values in calls
    )
    return f"<｜DSML｜{block}>\n{invokes}</｜DSML｜{block}>"


def spaced(text):
    """The same as DeepSeek V4.1 writes it."""
    return (
        text.replace("｜DSML｜tool_calls", "｜DSML｜ calls")
        .replace("｜DSML｜i", "｜DSML｜ i")
        .replace("｜DSML｜p", "｜DSML｜ p")
    )


def xtml(*calls):
    """The tools of a message as Kimi K3 writes them."""
    inner = "".join(
        f'<|open|>call tool="{name}" index="{number}"<|sep|>'
        + "".join(
            f'<|open|>argument key="{key}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>'
            for key, kind, value in values
        )
        + "<|close|>call<|sep|>"
        for number, (name, values) in enumerate(calls, 1)
    )
    return f"<|open|>tools<|sep|>{inner}<|close|>tools<|sep|><|close|>message<|sep|>"


def kimi(*calls):
    """Calls as Kimi K2 writes them, without the section round them."""
    return "".join(
        f"<|tool_call_begin|>{head}<|tool_call_argument_begin|>{args}<|tool_call_end|>" for head, args in calls
    )


M3 = "]<]minimax[>["


def m3(*calls):
    """A block as MiniMax M3 writes it; parameters are texts."""
    inner = "".join(f'{M3}<invoke name="{name}">{values}{M3}</invoke>\n' for name, values in calls)
    return f"{M3}<tool_call>\n{inner}{M3}</tool_call>"


SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
HERMES = '<tool_call>\n{"name": "count", "arguments": {"of": 3}}\n</tool_call>'
HERMES_2 = '<tool_call>\n{"name": "look", "arguments": {"at": "Bern"}}\n</tool_call>'
RESPONSE = "<|open|>response<|sep|>{}<|close|>response<|sep|>"

# The styles of thinking and of calls, whether the prompt has opened the thinking, the text; thinking, answer, calls.
CASES = [
    # Qwen3-Coder, Qwen3.5, Nemotron 3 and Step 3.5
    ("think", "qwen3-coder", True, xml("count", ("of", "3")), "", "", [COUNT]),
    ("think", "qwen3-coder", True, "I must look.\n" + xml("look", ("at", "Bern")), "I must look.", "", [LOOK]),
    ("think", "qwen3-coder", True, "Hm.\n</think>\n\nSo.\n" + xml("count", ("of", "3")), "Hm.", "So.", [COUNT]),
    ("think", "qwen3-coder", True, "</think>\n\n" + xml("now"), "", "", [("now", {})]),
    ("think", "qwen3-coder", True, "Hm.\n</think>\nIt is so.", "Hm.", "It is so.", []),
    (None, "qwen3-coder", False, xml("look", ("at", "    in\n")), "", "", [("look", {"at": "    in\n"})]),
    (None, "qwen3-coder", False, xml("look", ("at", "")), "", "", [("look", {"at": ""})]),
    (None, "qwen3-coder", False, xml("look", ("at", "格")), "", "", [("look", {"at": "格"})]),
    (None, "qwen3-coder", False, xml("look", ("at", "512")), "", "", [("look", {"at": "512"})]),
    (None, "qwen3-coder", False, xml("look", ("at", '"x"')), "", "", [("look", {"at": '"x"'})]),
    (None, "qwen3-coder", False, xml("look", ("at", "<b>\n <i>x</i>\n</b>")), "", "", [("look", {"at": "<b>\n <i>x</i>\n</b>"})]),
    (None, "qwen3-coder", False, xml("weigh", ("wet", "true"), ("mass", "-1.5")), "", "", [("weigh", {"wet": True, "mass": -1.5})]),
    (None, "qwen3-coder", False, xml("plan", ("options", '{"a": [1]}')), "", "", [("plan", {"options": {"a": [1]}})]),
    (None, "qwen3-coder", False, xml("label", ("text", "null")), "", "", [("label", {"text": None})]),
    (None, "qwen3-coder", False, xml("label", ("text", "12 Main St")), "", "", [("label", {"text": "12 Main St"})]),
    (None, "qwen3-coder", False, xml("label", ("any", '{"a": 1}')), "", "", [("label", {"any": {"a": 1}})]),
    (None, "qwen3-coder", False, xml("label", ("any", "{no json")), "", "", [("label", {"any": "{no json"})]),
    (None, "qwen3-coder", False, xml("label", ("any", "1abc")), "", "", [("label", {"any": "1abc"})]),
    (None, "qwen3-coder", False, xml("unit", ("of", "ft")), "", "", [("unit", {"of": "ft"})]),
    (None, "qwen3-coder", False, xml("count", ("of", "3"))[12:], "", "", [COUNT]),  # without <tool_call>
    (None, "qwen3-coder", False, "So.\n" + xml("count", ("of", "3"))[12:] + "\n" + xml("now"), "", "So.", [COUNT, ("now", {})]),
    (None, "qwen3-coder", False, xml("look", ("at", "Bern")).replace("\n</parameter>", ""), "", "", [LOOK]),
    (None, "qwen3-coder", False, "<function=weigh>\n<parameter=mass>2\n<parameter=wet>True\n</function>", "", "", [("weigh", {"mass": 2, "wet": True})]),
    (None, "qwen3-coder", False, "<function=look>\n<parameter=at>Bern</parameter>\n</function>", "", "", [LOOK]),
    (None, "qwen3-coder", False, xml("plan", ("steps", '\n["a",\n "b"]\n')), "", "", [("plan", {"steps": ["a", "b"]})]),
    (None, "qwen3-coder", False, xml("look", ("at", "a < b && c > d")) + "\n" + xml("count", ("of", " 3 ")), "", "", [("look", {"at": "a < b && c > d"}), COUNT]),
    (None, "qwen3-coder", False, xml("weigh", ("mass", "1e3"), ("wet", "0")), "", "", [("weigh", {"mass": 1000.0, "wet": False})]),
    (None, "qwen3-coder", False, xml("weigh", ("mass", "heavy"), ("wet", "maybe")), "", "", [("weigh", {"mass": "heavy", "wet": "maybe"})]),
    (None, "qwen3-coder", False, xml("plan", ("steps", "['a', \"b's\"]"), ("options", "{'x': None, \"y\": (1, True)}")), "", "", [("plan", {"steps": ["a", "b's"], "options": {"x": None, "y": [1, True]}})]),
    (None, "qwen3-coder", False, xml("weigh", ("mass", "9007199254740993"), ("wet", "false")), "", "", [("weigh", {"mass": 9007199254740993, "wet": False})]),
    (None, "minimax-m2", False, '<minimax:tool_call><invoke name="label"><parameter name="text">null</parameter><parameter name="any">[1,2]</parameter></invoke></minimax:tool_call>', "", "", [("label", {"text": None, "any": "[1,2]"})]),
    (None, "step3", False, '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="look"><steptml:parameter name="at">if a < b:\n  c</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>', "", "", [("look", {"at": "if a < b:\n  c"})]),
    (None, "hermes", False, '<tool_call>\n{"name": "now"}\n</tool_call>\n' + HERMES, "", "", [("now", {}), COUNT]),
    (None, "nemotron", False, "<TOOLCALL>[1, 2]</TOOLCALL>", "", "<TOOLCALL>[1, 2]</TOOLCALL>", []),
    (None, "step3", False, '<｜tool_calls_begin｜><｜tool_call_begin｜><steptml:invoke name="now"></steptml:invoke><｜tool_call_end｜><｜tool_sep｜><｜tool_call_begin｜><steptml:invoke name="look"><steptml:parameter name="at">C:\\Bern "x"</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>\n\nDone.', "", "Done.", [("now", {}), ("look", {"at": 'C:\\Bern "x"'})]),
    # GLM, Spark 2.5 and Ling 3
    ("think", "glm", True, "I must.\n" + glm("look", ("at", "Bern")), "I must.", "", [LOOK]),
    ("think", "glm", True, "Hm.</think>\nNow.\n" + glm("look", ("at", "Bern")), "Hm.", "Now.", [LOOK]),
    ("think", "glm", True, glm("look", ("at", "Bern")) + "\nDone.", "", "Done.", [LOOK]),
    ("think", "glm", True, "Hm.</think>" + glm("now", between=""), "Hm.", "", [("now", {})]),
    ("kimi-k3", "kimi-k3", False, xtml(("now", [])).replace("<|close|>call", '<|open|>json type="object"<|sep|>{"of": [3, "<|close|>json"]}\n<|close|>json<|sep|><|close|>call'), "", "", [("now", {"of": [3, "<|close|>json"]})]),
    ("think", "glm", False, glm("count", ("of", "3"), between="") + glm("now", between=""), "", "", [COUNT, ("now", {})]),
    ("think", "glm", True, "x</think>" + glm("look", ("at", "</think> <tool_call>")), "x", "", [("look", {"at": "</think> <tool_call>"})]),
    ("think", "glm", False, glm("plan", ("steps", '["上", "b"]'), between=""), "", "", [("plan", {"steps": ["上", "b"]})]),
    ("think", "glm", True, "I must. " + glm("look", ("at", "Bern"), between=""), "I must.", "", [LOOK]),
    ("think", "glm", True, "I must use <tool_call> so.</think>So.", "I must use <tool_call> so.", "So.", []),
    (None, "glm", False, "I must.\n" + glm("look", ("at", "Bern")), "", "I must.", [LOOK]),
    (None, "glm", False, glm("plan", ("steps", r'["C:\\a", "x\\n"]'), between=""), "", "", [("plan", {"steps": ["C:\\a", "x\\n"]})]),
    (None, "glm", False, glm("look", ("at", "two\nlines"), between=""), "", "", [("look", {"at": "two\nlines"})]),
    (None, "glm", False, "So." + glm("now") + "\n" + glm("count", ("of", "3")), "", "So.", [("now", {}), COUNT]),
    (None, "glm", False, 'So.<tool_call>look>{"at": "Bern"}<tool_call>count>{"of": 3}', "", "So.", [LOOK, COUNT]),
    (None, "glm", False, '<tool_call>look\n{"at": "Bern"}</tool_call>', "", "", [LOOK]),
    (None, "glm", False, "<tool_call>plan<arg_key>steps=[1, 2]</arg_value><arg_key>options={}</arg_value></tool_call>", "", "", [("plan", {"steps": [1, 2], "options": {}})]),
    (None, "glm", False, "<tool_call>look<arg_key>at=x = y</arg_value></tool_call>" + glm("count", ("of", "3")), "", "", [("look", {"at": "x = y"}), COUNT]),
    (None, "glm", False, glm("\n look ", ("at", "Bern")) + glm("\nnow\n"), "", "", [LOOK, ("now", {})]),
    ("think", "glm", True, 'I must.<tool_call>maps/look>{"at": "Bern"}</tool_call>', "I must.", "", [("maps/look", {"at": "Bern"})]),
    ("think", "iquest-coder", True, "Hm\n" + glm("look", ("at", "Bern")).replace("tool_call", "iquestcoder_tool_call"), "Hm", "", [LOOK]),
    ("solar-open2", "solar-open2", True, "Hm<|think:end|>So.<|tool_call:start|>look\n<|tool_arg:start|>at<|tool_arg:value|>Bern\n<|tool_call:<|tool_arg:end|>\n<|tool_call:end|><|tool_call:start|>count\n<|tool_arg:start|>of<|tool_arg:value|>3<|tool_arg:end|>\n<|tool_call:end|>", "Hm", "So.", [("look", {"at": "Bern\n<|tool_call:"}), COUNT]),
    ("think", "mirothinker", True, 'Hm</think>So.\n<use_mcp_tool>\n<server_name>maps</server_name>\n<tool_name>look</tool_name>\n<arguments>\n{"at": "Bern </arguments>"}\n</arguments>\n<server_name>clock</server_name>\n<tool_name>now</tool_name>\n<arguments>\n{}\n</arguments>\n</use_mcp_tool>', "Hm", "So.", [("look", {"at": "Bern </arguments>"}), ("now", {})]),
    # DeepSeek
    ("think", "deepseek-v3.2", True, "Hm</think>\n\n" + dsml("function_calls", ("look", [("at", "true", "Bern")])), "Hm", "", [LOOK]),
    ("think", "deepseek-v3.2", False, dsml("function_calls", ("count", [("of", "false", "3")])), "", "", [COUNT]),
    ("think", "deepseek-v4", True, "Hm</think>So.\n\n" + dsml("tool_calls", ("count", [("of", "false", "3")]), ("look", [("at", "true", "Bern")])), "Hm", "So.", [COUNT, LOOK]),
    ("think", "deepseek-v4", True, "Hm\n\n" + dsml("tool_calls", ("look", [("at", "true", "Bern")])), "Hm", "", [LOOK]),
    ("think", "deepseek-v4", False, "\n\n" + dsml("tool_calls", ("now", [])), "", "", [("now", {})]),
    (None, "deepseek-v3.2", False, dsml("function_calls", ("count", [("of", "true", "3")])), "", "", [COUNT]),
    (None, "deepseek-v3.2", False, dsml("function_calls", ("look", [("at", "false", "null")])), "", "", [("look", {"at": "null"})]),
    (None, "deepseek-v4", False, dsml("tool_calls", ("count", [("of", "false", "3")])).removeprefix("<｜DSML｜tool_calls>\n"), "", "", [COUNT]),
    ("think", "deepseek", True, '</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>count\n```json\n{"of": 3}```<｜tool▁call▁end｜><｜tool▁calls▁end｜>', "", "", [COUNT]),
    ("think", "deepseek", True, 'Hm</think>So<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>count<｜tool▁sep｜>{"of": 3}<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>', "Hm", "So", [COUNT, ("now", {})]),
    (None, "deepseek-v4", False, dsml("tool_calls", ("count", [("of", "false", "3")])).replace(' string="false"', ""), "", "", [COUNT]),
    ("think", "deepseek-v4.1", True, "Hm</think>So.\n\n" + spaced(dsml("tool_calls", ("count", [("of", "false", "3")]), ("look", [("at", "true", "Bern")]))), "Hm", "So.", [COUNT, LOOK]),
    ("think", "deepseek-v4.1", True, "Hm\n\n" + spaced(dsml("tool_calls", ("now", []))), "Hm", "", [("now", {})]),
    # GigaChat 3.5, IQuest Q1
    ("think", "gigachat3.5", True, "Hm</think>So.\n" + dsml("tool_calls", ("look", [("at", "true", "Bern")]), ("count", [("of", "false", "3")])).replace("DSML", "GCML"), "Hm", "So.", [LOOK, COUNT]),
    (None, "gigachat3.5", False, dsml("tool_calls", ("plan", [("steps", "false", '["a"]'), ("options", "false", '{"x": null}')])).replace("DSML", "GCML"), "", "", [("plan", {"steps": ["a"], "options": {"x": None}})]),
    ("think", "iquest-q1", True, "Hm\n" + glm("look", ("at", " Bern ")).replace("tool_call", "iquest_tool_call"), "Hm", "", [("look", {"at": " Bern "})]),
    (None, "iquest-q1", False, "So." + glm("now", between="").replace("tool_call", "iquest_tool_call"), "", "So.", [("now", {})]),
    # Kimi K2 and K3
    (None, "kimi-k2", False, "So. " + SECTION + kimi(("functions.count:0", '{"of": 3}'), ("functions.look:1", '{"at": "Bern"}')) + SECTION_END, "", "So.", [COUNT, LOOK]),
    (None, "kimi-k2", False, SECTION + kimi(("count:0 ", '{\n "of": 3\n} ')) + SECTION_END, "", "", [COUNT]),
    (None, "kimi-k2", False, SECTION + kimi(("functions.count:5", '{"of": 3}'), ("functions.mcp__a__b-c:6", "{}")) + SECTION_END, "", "", [COUNT, ("mcp__a__b-c", {})]),
    (None, "kimi-k2", False, "So <", "", "So <", []),
    ("think", "kimi-k2", False, "<think>Hm</think>" + SECTION + kimi(("functions.now:0", "{}")) + SECTION_END, "Hm", "", [("now", {})]),
    ("think", "kimi-k2", False, "<think>I need two" + SECTION + kimi(("functions.count:0", '{"of": 3}')) + SECTION_END, "I need two", "", [COUNT]),
    ("think", "kimi-k2", False, '<think>I need<|tool_call_begin|>functions.count:0<|tool_call_argument_begin|>{"of": 3}<|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}', "I need", "", [COUNT, ("now", {})]),
    ("kimi-k3", "kimi-k3", True, "Hm<|close|>think<|sep|>" + RESPONSE.format("On it.") + xtml(("count", [("of", "number", "3")]), ("look", [("at", "string", "Bern")])), "Hm", "On it.", [COUNT, LOOK]),
    ("kimi-k3", "kimi-k3", False, RESPONSE.format("Use the response tag, then message me.") + "<|close|>message<|sep|>", "", "Use the response tag, then message me.", []),
    ("kimi-k3", "kimi-k3", False, xtml(("look", [("at", "string", "&amp;"), ("a &amp; &quot;b&quot;", "string", "&quot;")])), "", "", [("look", {"at": "&amp;", 'a & "b"': "&quot;"})]),
    (None, "kimi-k3", False, xtml(("a&lt &quot;b&quot;", [("x<y", "number", "1")])), "", "<|close|>message<|sep|>", [('a&lt "b"', {"x<y": 1})]),
    ("kimi-k3", "kimi-k3", True, "Still thinking", "Still thinking", "", []),
    # MiniMax
    ("minimax-m3", "minimax-m3", False, "</mm:think>It is.", "", "It is.", []),
    ("minimax-m3", "minimax-m3", False, "<mm:think>Hm</mm:think>So." + m3(("count", f"{M3}<of>3{M3}</of>"), ("now", "")), "Hm", "So.", [COUNT, ("now", {})]),
    ("minimax-m3", "minimax-m3", False, m3(("plan", f"{M3}<steps>{M3}<item>a{M3}</item>{M3}<item>b{M3}</item>{M3}</steps>")), "", "", [("plan", {"steps": ["a", "b"]})]),
    ("minimax-m3", "minimax-m3", False, m3(("look", f"{M3}<at>{M3}<x>1{M3}</x>{M3}</at>")), "", "", [("look", {"at": f"{M3}<x>1{M3}</x>"})]),
    ("think", "minimax-m2", True, 'Hm:\n</think>\n\n<minimax:tool_call>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>', "Hm:", "", [("now", {})]),
    # Cohere
    ("cohere", "cohere", True, "Hm<|END_THINKING|><|START_TEXT|>It\nis.<|END_TEXT|>", "Hm", "It\nis.", []),
    ("cohere", "cohere", False, "<|START_THINKING|>Hm<|END_THINKING|><|START_RESPONSE|>It is.<|END_RESPONSE|>", "Hm", "It is.", []),
    ("cohere", "cohere", True, '<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "count", "parameters": {"of": 3}},\n    {"tool_call_id": "1", "tool_name": "now", "parameters": {}}\n]<|END_ACTION|>', "", "", [COUNT, ("now", {})]),
    (None, "command-r-plus", False, 'Action:\n```json\n[{"tool_name": "count", "parameters": {"of": 3}}]\n```', "", "", [COUNT]),
    ("minimax-m3", "minimax-m3", False, "It </mm:think> is.", "", "It </mm:think> is.", []),
    # Dots, K2 Horizon, Hunyuan's preview
    (None, "dots", False, 'So.\n<dots_function_call>\n<invoke name="count">\n<parameter name="of">3</parameter>\n</invoke>\n<invoke name="now">\n</invoke>\n</dots_function_call>', "", "So.", [COUNT, ("now", {})]),
    ("k2-v3", "k2-v3", False, "<ifm|think>Hm</ifm|think>So.<ifm|tool_calls><ifm|tool_call>count<ifm|arg_key>of</ifm|arg_key><ifm|arg_value>3</ifm|arg_value></ifm|tool_call>\n<ifm|tool_call>now</ifm|tool_call></ifm|tool_calls>", "Hm", "So.", [COUNT, ("now", {})]),
    ("k2-v3", "k2-v3", False, '<ifm|tool_calls><ifm|tool_call>{"name": "count", "arguments": {"of": 3}}</ifm|tool_call></ifm|tool_calls>', "", "", [COUNT]),
    (None, "hunyuan-v3-preview", False, "<tool_calls>\n<tool_call>look<tool_sep>\n<arg_key>at</arg_key>\n<arg_value>Bern</arg_value>\n</tool_call>\n<tool_call>now<tool_sep></tool_call>\n</tool_calls>", "", "", [LOOK, ("now", {})]),
    ("hunyuan", "hunyuan-v3", False, "<think:opensource>Hm</think:opensource><tool_calls:opensource><tool_call:opensource>now<tool_sep:opensource></tool_call:opensource></tool_calls:opensource>", "Hm", "", [("now", {})]),
    ("hunyuan", "hunyuan-v3", False, "<tool_calls:opensource><tool_call:opensource>count<arg_key:opensource>of</arg_key:opensource><arg_value:opensource>3</arg_value:opensource></tool_call:opensource></tool_calls:opensource>", "", "", [COUNT]),
    (None, "hunyuan-v3-preview", False, "<tool_calls><tool_call>now</tool_call><tool_call>look<arg_key>at</arg_key><arg_value>Bern</arg_value></tool_call></tool_calls>", "", "", [("now", {}), LOOK]),
    # JSON in tags: Hermes, Qwen, ERNIE 4.5, Granite 4, Reka, MiMo
    (None, "hermes", False, "So.\n" + HERMES + "\n" + HERMES_2, "", "So.", [COUNT, LOOK]),
    (None, "hermes", False, '<tool_call>\n[{"name": "count", "arguments": {"of": 3}}, {"name": "now"}]\n</tool_call>', "", "", [COUNT, ("now", {})]),
    (None, "hermes", False, HERMES.replace("</tool_call>", HERMES_2.removeprefix("<tool_call>")), "", "", [COUNT, LOOK]),
    ("think", "nemotron", True, 'I must. <TOOLCALL>[{"name": "count", "arguments": {"of": 3}}]</TOOLCALL>', "I must.", "", [COUNT]),
    ("think", "hermes", False, f"<think>{HERMES}</think>So.", "", "So.", [COUNT]),
    ("thought", "hermes", True, "\nHm\n</thought>\n\nSo.", "Hm", "So.", []),
    ("think", "hermes", True, "Hm\n</think>\n\nSo." + HERMES.replace("\n</", "</"), "Hm", "So.", [COUNT]),
    ("think-response", "hermes", True, f"I need two.\n</think>\n\n{HERMES}\n{HERMES_2}\n", "I need two.", "", [COUNT, LOOK]),
    ("think-response", "hermes", True, "Hm\n</think>\n\n\n<response>\nIt is.\n</response>\n", "Hm", "It is.", []),
    ("think", "nemotron", True, 'Hm\n</think>\n\n<TOOLCALL>[{"name": "count", "arguments": {"of": 3}}]</TOOLCALL>\n', "Hm", "", [COUNT]),
    ("apriel", "tool-calls", True, 'Hm\n[BEGIN FINAL RESPONSE]\n<tool_calls>[{"name": "count", "arguments": {"of": 3}}]</tool_calls>', "Hm", "", [COUNT]),
    ("mistral", "mistral", False, '[THINK]Hm[/THINK][TOOL_CALLS]count[ARGS]{"of": 3}[TOOL_CALLS]now[CALL_ID]000000002[ARGS]{}', "Hm", "", [COUNT, ("now", {})]),
    (None, "mistral", False, '[TOOL_CALLS][{"name": "count", "arguments": {"of": 3}, "id": "123456789"}]', "", "", [COUNT]),
    (None, "phi4-functools", False, ' functools[{"name": "count", "arguments": {"of": 3}}]', "", "", [COUNT]),
    (None, "granite", False, '<|tool_call|>[{"name": "count", "arguments": {"of": 3}}]', "", "", [COUNT]),
    (None, "granite", False, '<tool_call>[{"name": "count", "arguments": {"of": 3}}, {"name": "now", "arguments": {}}]', "", "", [COUNT, ("now", {})]),
    (None, "gigachat3", False, 'So.<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "count", "arguments": {"of": 3}}', "", "So.", [COUNT]),
    (None, "gigachat3", False, 'So.<|function_call|>{"name": "count", "arguments": {"of": 3}}', "", "So.", [COUNT]),
    (None, "llama3", False, 'So: {"type": "function", "name": "count", "parameters": {"of": 3}} More?', "", "So:  More?", [COUNT]),
    (None, "llama3", False, '<|python_tag|>{"name": "count", "parameters": {"of": 3}}; {"name": "now", "parameters": {}}', "", "", [COUNT, ("now", {})]),
    (None, "llama3", False, '<|python_tag|>[{"name": "count", "parameters": {"of": 3}}, {"name": "now", "parameters": {}}]', "", "", [COUNT, ("now", {})]),
    (None, "llama3.1", False, 'So: [{"name": "count", "parameters": {"of": 3}},\n{"name": "now", "parameters": {}}] More?', "", "So:  More?", [COUNT, ("now", {})]),
    (None, "llama3", False, '[1, 2] and [{"a": 1}, {"name": "x", "parameters": 3}]', "", '[1, 2] and [{"a": 1}, {"name": "x", "parameters": 3}]', []),
    (None, "apertus", False, 'So. <|tools_prefix|>[{"count": {"of": 3}}, {"look": {"at": "Bern"}}]<|tools_suffix|> ', "", "So.", [COUNT, LOOK]),
    (None, "apertus", False, '<|tools_prefix|>[{"count": {"of": 3}}]', "", "", [COUNT]),
    # other markup
    ("seed-oss", "seed-oss", False, '<seed:think>Hm</seed:think>\n<seed:tool_call>\n<function=look>\n<parameter=at>a = "1":\n    b\n</parameter>\n</function>\n</seed:tool_call>', "Hm", "", [("look", {"at": 'a = "1":\n    b\n'})]),
    (None, "lfm2", False, r'So.<|tool_call_start|>[look(at="a\n\t\"b\""), now()]<|tool_call_end|>', "", "So.", [("look", {"at": 'a\n\t"b"'}), ("now", {})]),
    ("minicpm4", "minicpm4", False, '<|thought_start|>\nHm\n<|thought_end|>\n<|tool_call_start|>\n```python\ncount(of=3)\nlook(at="a ```b")\n```\n<|tool_call_end|>\nSo.', "Hm", "So.", [COUNT, ("look", {"at": "a ```b"})]),
    (None, "yandexgpt", False, 'So.\n[TOOL_CALL_START]count\n{"of": 3}', "", "So.", [COUNT]),
    ("think", "minicpm5", True, 'Hm</think><function name="look"><param name="at"><![CDATA[<a href="/x">b</a> </param>]]></param></function>\n<function name="now"></function>', "Hm", "", [("look", {"at": '<a href="/x">b</a> </param>'}), ("now", {})]),
    ("gemma4", "gemma4", False, '<|channel>thought\nHm<channel|>So.<|tool_call>call:plan{steps:[<|"|>a<|"|>,<|"|>b<|"|>],options:{x:{y:-2.5e3}}}<tool_call|><|tool_call>call:now{}<tool_call|>', "Hm", "So.", [("plan", {"steps": ["a", "b"], "options": {"x": {"y": -2500.0}}}), ("now", {})]),
    (None, "gemma4", False, 'See: <|tool_call>:look{at:<|"|>Bern<|"|>}<tool_call|>', "", "See:", [LOOK]),
    (None, "gemma4", False, '<|tool_call>:now{}<tool_call|><|tool_call>call:count{of:3}<tool_call|>', "", "", [("now", {}), COUNT]),
    (None, "gemma4", False, "<|tool_call>call:look{at:90210}<tool_call|><|tool_call>call:label{text:null,any:5}<tool_call|>", "", "", [("look", {"at": "90210"}), ("label", {"text": None, "any": 5})]),
    (None, "gemma4", False, "<|tool_call>call:weigh{wet:1,mass:2.0}<tool_call|><|tool_call>call:plan{steps:[1,true],options:{x:1}}<tool_call|>", "", "", [("weigh", {"wet": True, "mass": 2.0}), ("plan", {"steps": [1, True], "options": {"x": 1}})]),
    # PLaMo 3's tokens are markup wherever they stand; a request may come without the list's beginning
    ("plamo3", "plamo3", False, "So.<|plamo:end_think:plamo|> It <|plamo:begin_think:plamo|>Hm<|plamo:end_think:plamo|>is.", "Hm", "So. It is.", []),
    ("plamo3", "plamo3", True, 'Hm<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>count<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>{"of": 3}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>', "Hm", "", [COUNT]),
    # literals, and forms of older models
    (None, "pythonic", False, "[count(of=3), look(at='Martha\\'s \"V\"')]", "", "", [COUNT, ("look", {"at": 'Martha\'s "V"'})]),
    (None, "pythonic", False, "<|python_start|>[plan(steps=(), options={'a': {'b': None}})]<|python_end|>", "", "", [("plan", {"steps": [], "options": {"a": {"b": None}}})]),
    (None, "olmo3", False, "<function_calls>count(of=-3)\nnow()</function_calls>", "", "", [("count", {"of": -3}), ("now", {})]),
    (None, "lfm2", False, "<|tool_call_start|>[count(of=007), now(from='x')]<|tool_call_end|>", "", "", [("count", {"of": 7}), ("now", {"from": "x"})]),
    (None, "functiongemma", False, "<start_function_call>call:look{at:<escape>Bern<escape>}<end_function_call>", "", "", [LOOK]),
    (None, "functiongemma", False, "<start_function_call>call:count{of:<escape>3<escape>}<end_function_call>", "", "", [COUNT]),
    (None, "functiongemma", False, "<start_function_call>call:look{at:<escape>3<escape>}<end_function_call><start_function_call>call:now{by:<escape>[1]<escape>,of:<escape>a, b<escape>}<end_function_call>", "", "", [("look", {"at": "3"}), ("now", {"by": [1], "of": "a, b"})]),
    (None, "functiongemma", False, "<start_function_call>call:plan{steps:<escape>['a', 'b']<escape>,options:<escape>{'x': True}<escape>}<end_function_call>", "", "", [("plan", {"steps": ["a", "b"], "options": {"x": True}})]),
    (None, "functiongemma", False, "<start_function_call>call:weigh{wet:<escape>True<escape>,mass:<escape>heavy<escape>}<end_function_call>", "", "", [("weigh", {"wet": True, "mass": "heavy"})]),
    (None, "step3", False, 'So.<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="count"><steptml:parameter name="of">3</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>', "", "So.", [COUNT]),
    (None, "internlm", False, 'So.<|action_start|><|plugin|>\n{"name": "count", "parameters": {"of": 3}}<|action_end|>', "", "So.", [COUNT]),
    (None, "longcat", False, '<longcat_tool_call>{"name": "count", "arguments": {"of": 3}}</longcat_tool_call>', "", "", [COUNT]),
    (None, "tool-calls", False, ' So.<tool_calls>[\n    {"name": "count", "arguments": {"of": 3}},\n    {"name": "now", "arguments": {}}\n]</tool_calls>', "", "So.", [COUNT, ("now", {})]),
    (None, "granite-20b-fc", False, '<function_call> {"name": "count", "arguments": {"of": 3}}<function_call> {"name": "now", "arguments": {}}', "", "", [COUNT, ("now", {})]),
    (None, "xlam", False, '```json\n[{"name": "count", "arguments": {"of": 3}}]\n```', "", "", [COUNT]),
    ("think", "xlam", False, '<think>Hm</think>[{"name": "count", "arguments": {"of": 3}}]', "Hm", "", [COUNT]),
    # a call's opening token ends the thinking; Apertus closes it behind the call, if at all
    ("apertus", "apertus", False, 'So <|inner_prefix|>Hm<|tools_prefix|>[{"count": {"of": 3}}]<|tools_suffix|>', "Hm", "So", [COUNT]),
    ("apertus", "apertus", True, 'Hm<|inner_suffix|>So.<|inner_prefix|> More', "Hm More", "So.", []),
    ("seed-oss", "seed-oss", True, "Hm<seed:tool_call><function=count><parameter=of>3</parameter></function></seed:tool_call>", "Hm", "", [COUNT]),
    ("k2-v3", "k2-v3", True, "Hm<ifm|tool_calls><ifm|tool_call>now</ifm|tool_call></ifm|tool_calls>", "Hm", "", [("now", {})]),
    # thinking alone
    ("gemma4", "gemma4", False, "Say <|channel>Hm<channel|>\nso.", "Hm", "Say \nso.", []),
    ("hunyuan-a13b", "tool-calls", False, "<think>\nHm\n</think>\n<answer>\nSo.\n</answer>", "Hm", "So.", []),
    ("granite-3.2", "granite", False, "Here is my thought process: Hm Here is my response: So.", "Hm", "So.", []),
    ("granite-3.2", "granite", False, "Here is no thought. Here is my response: So.", "", "Here is no thought. Here is my response: So.", []),
    ("seed-oss", "seed-oss", True, "Hm</seed:think>So.", "Hm", "So.", []),
    ("kimi-vl", "kimi-k2", False, "◁think▷Hm◁/think▷So.", "Hm", "So.", []),
    ("pangu", "pangu", False, '[unused16]Hm[unused17]So.[unused11][{"name": "count", "arguments": {"of": 3}}, {"name": "now", "arguments": {}}][unused12]', "Hm", "So.", [COUNT, ("now", {})]),
    ("gemma4", "gemma4", False, "<|channel>thought\nHm", "Hm", "", []),
    ("think", "glm", True, "So.", "So.", "", []),
    ("think", "hermes", True, "Hm</think>a</think>b", "Hm", "a</think>b", []),
    ("think", "hermes", False, "a </think> b", "", "a </think> b", []),
    ("muse", "muse", False, ' to=self<|message|>Hm<|eom|><|start|>assistant to=look<|message|><atem:function_calls>\n<atem:invoke name="look">\n<atem:parameter name="at">Bern</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>', "Hm", "", [LOOK]),
]  # fmt: skip

INSIDE_THINKING = (
    "a call's opening token ends the thinking wherever it stands, since models do call so; whoever only mentions one in a "
    "thought looks the same until the thought continues"
)
STAYS = "a value that does not parse stays a string: JSON in JSON's escapes is not guessed at"
KEPT = "what is uncertain never deletes text: what stands beside calls, or is markup without a call, is answer"
MODEL_WROTE = "a parser tells what the model wrote: which arguments the request allows is for the caller to check"
SCHEMA_LESS = "a parameter without a declared type is JSON if its text is JSON"
NO_NAME = "an id is no name: which function is meant is not guessed from the arguments"

LFM2 = "<|tool_call_start|>[now()]<|tool_call_end|>"

# As above, with what others expect and the reason.
ON_PURPOSE = [
    ("mistral", "mistral", False, '[THINK]Say [TOOL_CALLS]now[ARGS]{} hm[/THINK][TOOL_CALLS]count[ARGS]{"of": 3}',
     ("Say [TOOL_CALLS]now[ARGS]{} hm", "", [COUNT]), ("Say", "hm", [("now", {}), COUNT]), INSIDE_THINKING),
    ("think", "lfm2", False, f"<think>Say {LFM2} hm</think><|tool_call_start|>[count(of=3)]<|tool_call_end|>",
     (f"Say {LFM2} hm", "", [COUNT]), ("Say", "hm", [("now", {}), COUNT]), INSIDE_THINKING),
    ("think", "hermes", True, f"Say {HERMES} hm\n</think>\n\n{HERMES_2}",
     (f"Say {HERMES} hm", "", [LOOK]), ("Say", "hm", [COUNT, LOOK]), INSIDE_THINKING),
    ("think", "qwen3-coder", True, "Hm</think>So.</think> It is.",
     ("Hm", "So. It is.", []), ("Hm", "So.</think> It is.", []), KEPT),
    ("think", "deepseek-v4", False, "</think>It is.", ("", "It is.", []), ("", "</think>It is.", []), KEPT),
    ("cohere", "cohere", True, "<|END_THINKING|><|START_RESPONSE|>It <co>is</co: 0:[1]>.<|END_RESPONSE|>",
     ("", "It is.", []), ("", "It <co>is</co: 0:[1]>.", []), KEPT),
    (None, "minimax-m3", False, m3(("now", "")) + "Done.", ("", "", [("now", {})]), ("", "Done.", [("now", {})]), KEPT),
    (None, "deepseek-v3.2", False, dsml("function_calls", ("look", [("arguments", "false", '{"at": "Bern"}')])),
     ("", "", [LOOK]), ("", "", [("look", {"arguments": {"at": "Bern"}})]), MODEL_WROTE),
    (None, "minimax-m2", False, '<minimax:tool_call><invoke name="draw"></invoke></minimax:tool_call>',
     ("", "", []), ("", '<minimax:tool_call><invoke name="draw"></invoke></minimax:tool_call>', []), KEPT),
    ("muse", "muse", False, ' to=f<|message|><atem:function_calls><atem:invoke name="now.now"></atem:invoke></atem:function_calls>',
     ("", "", [("now", {})]),
     ("", 'to=f<|message|><atem:function_calls><atem:invoke name="now.now"></atem:invoke></atem:function_calls>', []),
     KEPT),
    (None, "gemma4", False, "<|tool_call>call:now{of:3}<tool_call|>",
     ("", "", [("now", {"of": "3"})]), ("", "", [("now", {"of": 3})]), SCHEMA_LESS),
    ("muse", "muse", False, " to=developer<|message|>A note.<|eom|><|start|>assistant to=user<|message|>So.<|eot|>",
     ("", "So.", []), ("", "to=developer<|message|>A note.So.", []), KEPT),
    ("think", "qwen3-coder", False, xml("count", ("of", "none")), ("", "", [("count", {"of": None})]),
     ("", "", [("count", {"of": "none"})]), STAYS),
    (None, "kimi-k2", False, SECTION + kimi(("0", '{"at": "Bern"}')) + SECTION_END,
     ("", "", [LOOK]), ("", SECTION + kimi(("0", '{"at": "Bern"}')) + SECTION_END, []), NO_NAME),
]  # fmt: skip
"""llama.cpp's Ministral and Reka cases, vLLM's call by number; then cases of vLLM and SGLang, with another content each."""


def read(thinking, calls, inside, text):
    """Split a text whole and character by character, which must be the same; give thinking, answer and calls."""
    styles = Styles(style_of(thinking) if thinking else None, tool_style_of(calls))

    def split(parts):
        return told(run(make_splitter(styles, TOOLS, inside=inside), parts))

    got = split([text])
    assert split(list(text)) == got
    made = [(name, json.loads(arguments)) for name, arguments, _ in got["calls"]]
    return got["thinking"].strip(), got["answer"].strip(), made


@pytest.mark.parametrize(("thinking", "calls", "inside", "text", "thought", "answer", "made"), CASES)
def test_a_case_of_others(thinking, calls, inside, text, thought, answer, made):
    assert read(thinking, calls, inside, text) == (thought, answer, made)


@pytest.mark.parametrize(("thinking", "calls", "inside", "text", "theirs", "ours", "reason"), ON_PURPOSE)
def test_a_difference_on_purpose(thinking, calls, inside, text, theirs, ours, reason):
    assert read(thinking, calls, inside, text) == ours != theirs
    assert reason
