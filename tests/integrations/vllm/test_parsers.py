"""vLLM's parsers: streamed and whole answers, the older interfaces, and what makes vLLM take them."""

from __future__ import annotations

import json
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from case_tables import cases

from tokenweir import patch_transformers
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.integrations import vllm
from tokenweir.templates.styles.tools import TOOL_STYLES, tool_style_of

CASES = cases(__file__)

transformers = pytest.importorskip("transformers")

TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Bern \U0001f9ca"}}\n</tool_call>'
ANSWER = f"<think>\nHm, Bern \U0001f9ca.\n</think>\n\nI look.\n{CALL}"
FORCED = CASES["forced"]
"""The call as styles write it that vLLM has a grammar for."""


class Tool(SimpleNamespace):
    """A tool of a request, as pydantic's models are dumped."""

    def model_dump(self):
        return vars(self)


@pytest.fixture(scope="module")
def loaded():
    return {}


@pytest.fixture
def qwen(data, loaded):
    if not loaded:
        loaded["qwen3"] = transformers.AutoTokenizer.from_pretrained(data("tokenizers/qwen3"))
    return loaded["qwen3"]


@pytest.fixture
def parsers(vllm_modules, monkeypatch):
    """The plug-in's module, registered in vLLM as vLLM does it."""
    manager = vllm_modules("vllm.parser").ParserManager
    monkeypatch.setattr(manager, "get_parser", manager.get_parser)
    monkeypatch.setenv("VLLM_PLUGINS", "other,tokenweir_parsers")
    vllm.register_parsers()
    vllm.register_parsers()
    return vllm_modules("tokenweir.integrations.vllm.parsers")


def request_of(**fields):
    """A request with the fields that parsers read."""
    given = {"tools": None, "tool_choice": "auto", "include_reasoning": True, "messages": [], "stop": []}
    return SimpleNamespace(**given | fields)


def made(vllm_modules, tokenizer, tools, **names):
    found = vllm_modules("vllm.parser").ParserManager.get_parser(enable_auto_tools=True, tokenizer=tokenizer, **names)
    return found(tokenizer, tools, chat_template_kwargs=None, model_config=None)


def streamed(parser, ids, request, prompt=(), size=1):
    """The joined fields of a stream of `size` ids a chunk."""
    content = reasoning = ""
    calls = {}
    parts = [ids[i : i + size] for i in range(0, len(ids), size)]
    for place, part in enumerate(parts):
        message = parser.parse_delta("", list(part), request, list(prompt), finished=place == len(parts) - 1)
        if message is None:
            continue
        content += message.content or ""
        reasoning += message.reasoning or ""
        for call in message.tool_calls:
            known = calls.setdefault(call.index, {"name": "", "arguments": "", "id": None})
            known["name"] += call.function.name or ""
            known["arguments"] += call.function.arguments or ""
            known["id"] = known["id"] or call.id
    return reasoning, content, calls


def test_the_patch_and_the_parsers_go_together(parsers, qwen):
    with patch_transformers():
        found = parsers.tokenizer_of(qwen)
    assert found.encode(ANSWER) == qwen.encode(ANSWER)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_gives_thinking_answer_and_calls(parsers, vllm_modules, qwen, size):
    tools = [Tool(**TOOL)]
    parser = made(vllm_modules, qwen, tools, tool_parser_name="tokenweir", reasoning_parser_name="tokenweir")
    assert isinstance(parser, parsers.Parser)
    request = request_of(tools=tools)
    reasoning, content, calls = streamed(parser, qwen.encode(ANSWER), request, size=size)
    assert (reasoning.strip(), content.strip()) == ("Hm, Bern \U0001f9ca.", "I look.")
    assert [call["name"] for call in calls.values()] == ["weather"]
    assert json.loads(calls[0]["arguments"]) == {"city": "Bern \U0001f9ca"}
    assert calls[0]["id"]
    whole = made(vllm_modules, qwen, tools, tool_parser_name="tokenweir", reasoning_parser_name="tokenweir")
    for ids in (qwen.encode(ANSWER), ()):
        found = whole.parse(ANSWER, request, enable_auto_tools=True, model_output_token_ids=ids)
        assert found[:2] == (reasoning, content)
        assert [(call.name, call.arguments) for call in found[2]] == [("weather", calls[0]["arguments"])]


def test_the_prompt_decides_where_thinking_begins(parsers, vllm_modules, qwen):
    parser = made(vllm_modules, qwen, None, reasoning_parser_name="tokenweir")
    prompt = qwen.encode("<|im_start|>user\nSay </think><|im_end|>\n<|im_start|>assistant\n<think>\n")
    ids = qwen.encode("one\n</think>\n\ntwo<|im_end|>")
    reasoning, content, _ = streamed(parser, ids, request_of(), prompt)
    assert (reasoning.strip(), content.strip()) == ("one", "two")
    assert parser.count_reasoning_tokens(ids) == len(qwen.encode("one\n</think>"))
    hidden = made(vllm_modules, qwen, None, reasoning_parser_name="tokenweir")
    assert streamed(hidden, ids, request_of(include_reasoning=False), prompt) == ("", content, {})


def test_a_stop_string_is_not_sent(parsers, vllm_modules, qwen):
    parser = made(vllm_modules, qwen, None, reasoning_parser_name="tokenweir")
    _, content, _ = streamed(parser, qwen.encode("one two STOP three"), request_of(stop="STOP"))
    assert content == "one two "
    stop_id = qwen.encode(" two")[0]
    parser = made(vllm_modules, qwen, None, reasoning_parser_name="tokenweir")
    _, content, _ = streamed(parser, qwen.encode("one two"), request_of(stop_token_ids=[stop_id]))
    assert content == "one"


def test_without_tools_or_with_none_calls_stay_text(parsers, vllm_modules, qwen):
    for tools, choice in ((None, "auto"), ([Tool(**TOOL)], "none")):
        parser = made(vllm_modules, qwen, tools, tool_parser_name="tokenweir")
        _, content, calls = streamed(parser, qwen.encode("a {}"), request_of(tools=tools, tool_choice=choice))
        assert (content, calls) == ("a {}", {})


def test_the_older_reasoning_interface(parsers, vllm_modules, qwen):
    manager = vllm_modules("vllm.reasoning").ReasoningParserManager
    parser = manager.get_reasoning_parser("tokenweir_think")(qwen)
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == ("<think>", "</think>")
    begun = qwen.encode("<|im_start|>assistant\n<think>\n")
    assert not parser.is_reasoning_end(begun)
    assert parser.is_reasoning_end(qwen.encode("<|im_start|>assistant\n<think>\n\n</think>\n\n"))
    assert not parser.is_reasoning_end(qwen.encode("<|im_start|>assistant\n"))
    assert parser.is_reasoning_end_streaming(begun + qwen.encode("a</think>"), qwen.encode("</think>"))
    assert not parser.is_reasoning_end_streaming(begun + qwen.encode("ab"), qwen.encode("b"))
    assert parser.extract_content_ids(qwen.encode("<think>\na</think>bc")) == qwen.encode("bc")
    reasoning, content = parser.extract_reasoning("<think>\na\n</think>\n\nb", request_of())
    assert (reasoning.strip(), content.strip()) == ("a", "b")
    ids = qwen.encode("<think>\na\n</think>\n\nb")
    messages = [parser.extract_reasoning_streaming("", "", "", [], [], [i]) for i in ids]
    assert parser.has_engine_confirmed_reasoning_end()
    messages.append(parser.finish_streaming())
    assert "".join(m.reasoning or "" for m in messages if m).strip() == "a"
    assert "".join(m.content or "" for m in messages if m).strip() == "b"


def test_the_older_tool_interface(parsers, vllm_modules, qwen):
    tools = [Tool(**TOOL)]
    manager = vllm_modules("vllm.tool_parsers").ToolParserManager
    parser = manager.get_tool_parser("tokenweir_hermes")(qwen, tools)
    request = request_of(tools=tools, skip_special_tokens=True)
    assert parser.adjust_request(request).skip_special_tokens is False
    found = parser.extract_tool_calls(f"I look.\n{CALL}", request)
    assert found.tools_called
    assert found.content.strip() == "I look."
    assert json.loads(found.tool_calls[0].function.arguments) == {"city": "Bern \U0001f9ca"}
    messages = [parser.extract_tool_calls_streaming("", "", "", [], [], [i], request) for i in qwen.encode(CALL)]
    messages.append(parser.finish_streaming())
    parts = [call.function for message in messages if message for call in message.tool_calls]
    assert parts[0].name == "weather"
    assert json.loads("".join(part.arguments or "" for part in parts)) == {"city": "Bern \U0001f9ca"}


def test_a_named_style_has_the_name_of_its_grammar(parsers, vllm_modules):
    get = vllm_modules("vllm.tool_parsers").ToolParserManager.get_tool_parser
    assert get("tokenweir_qwen3_coder").structural_tag_model == "qwen_3_coder"
    assert get("tokenweir_pythonic").structural_tag_model is None
    assert get("tokenweir").structural_tag_model is None  # the vocabulary is Qwen3's and Qwen3-Coder's


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_grammars_are_those_of_vllms_parsers_for_the_style(parsers, vllm_modules):
    manager = vllm_modules("vllm.tool_parsers").ToolParserManager
    theirs = {}
    for name in manager.list_registered():
        if name in manager.lazy_parsers and name not in ("beam", "hf"):
            style = next(own for own, each in TOOL_STYLES.items() if each is tool_style_of(name))
            theirs.setdefault(style, set()).add(manager.get_tool_parser(name).structural_tag_model)
    for style, tag in parsers.STRUCTURAL_TAGS.items():
        assert tag in theirs[style]


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
@pytest.mark.parametrize("style", FORCED)
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_forced_call_is_written_by_vllms_grammar_and_read(parsers, vllm_modules, qwen, style, choice):
    import xgrammar

    protocol = vllm_modules("vllm.entrypoints.openai.chat_completion.protocol")
    request = protocol.ChatCompletionRequest(messages=[], tools=[TOOL], tool_choice=choice)
    name = f"tokenweir_{style.replace('-', '_')}"
    parser = made(vllm_modules, qwen, request.tools, tool_parser_name=name)
    tag = parser.adjust_request(request).structured_outputs.structural_tag
    vocabulary = xgrammar.TokenizerInfo([bytes([byte]) for byte in range(256)])
    grammar = xgrammar.GrammarCompiler(vocabulary).compile_structural_tag(json.loads(tag))
    assert xgrammar.GrammarMatcher(grammar).accept_string(FORCED[style])
    assert not xgrammar.GrammarMatcher(grammar).accept_string("It is warm.")
    _, _, calls = streamed(parser, qwen.encode(FORCED[style]), request)
    assert [json.loads(call["arguments"]) for call in calls.values()] == [{"city": "Bern \U0001f9ca"}]


def test_vllms_own_parsers_stay_theirs(parsers, vllm_modules, qwen):
    """Beside a parser of another name the halves are joined by vLLM."""
    manager = vllm_modules("vllm.reasoning").ReasoningParserManager
    base = vllm_modules("vllm.reasoning").ReasoningParser

    class Other(base):
        def is_reasoning_end(self, input_ids):
            return True

        def extract_content_ids(self, input_ids):
            return input_ids

        def extract_reasoning(self, model_output, request):
            return None, model_output

        def extract_reasoning_streaming(self, *args):
            return None

    manager.register_module("other_parser", module=Other)
    kind = vllm_modules("vllm.parser").ParserManager.get_parser(
        tool_parser_name="tokenweir", reasoning_parser_name="other_parser", enable_auto_tools=True
    )
    assert not issubclass(kind, parsers.Parser)
    assert vllm_modules("vllm.parser").ParserManager.get_parser() is None


def test_harmony_stays_vllms(parsers, vllm_modules):
    manager = vllm_modules("vllm.parser").ParserManager
    for is_harmony in (False, True):
        kind = manager.get_parser(tool_parser_name="tokenweir", enable_auto_tools=True, is_harmony=is_harmony)
        assert issubclass(kind, parsers.Parser) != is_harmony


def test_a_tokenizer_of_another_kind_is_refused(parsers):
    class Slow:
        pass

    with pytest.raises(UnsupportedTokenizerError, match=r"^Slow has no tokenizer that tokenweir reproduces$"):
        parsers.tokenizer_of(Slow())


def test_nothing_is_registered_without_its_name(vllm_modules, monkeypatch):
    manager = vllm_modules("vllm.parser").ParserManager
    before = manager.get_parser
    monkeypatch.setenv("VLLM_PLUGINS", "tokenweir,tokenweir_server")
    vllm.register_parsers()
    assert manager.get_parser == before
