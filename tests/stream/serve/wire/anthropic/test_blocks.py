"""Content blocks of the client's current types: search results, documents, and those of tools that a provider has run."""

import json

import pytest
from anthropic.types import ServerToolUseBlockParam, UserMessageParam
from anthropic.types.beta import BetaContentBlockParam
from case_tables import cases
from pydantic import TypeAdapter
from serving import WITH_TOOLS, Script, anthropic_of, serving

from tokenweir.stream.serve.wire.anthropic.requests import parse_message
from tokenweir.stream.serve.wire.shared.errors import RequestError

CASES = cases(__file__)

BLOCK = TypeAdapter(BetaContentBlockParam)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
FOUND = CASES["found"]
FOUND_TEXT = "Weather (https://a.example):\nSun. Wind.\n"


def text(said):
    return {"type": "text", "text": said}


def document(source, **more):
    return {"type": "document", "source": source, **more}


def history(*blocks, role="user"):
    for block in blocks:
        BLOCK.validate_python(block)
    messages = [{"role": "user", "content": "a"}, {"role": role, "content": list(blocks)}]
    messages += [{"role": "user", "content": "b"}] if role == "assistant" else []
    body = {"model": "m", "max_tokens": 9, "messages": messages}
    return parse_message(body).history(later_system=True, keep_billing_header=False, max_items=99)


@pytest.mark.parametrize(("block", "shown"), CASES["texts_of_blocks_are_taken_also_within_results"])
def test_texts_of_blocks_are_taken_also_within_results(block, shown):
    assert history(text("See "), block).messages == [{"role": "user", "content": f"a\n\nSee {shown}"}]
    called = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    answered = {"type": "tool_result", "tool_use_id": "c1", "content": [text("See "), block]}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [called]},
        {"role": "user", "content": [answered]},
    ]
    asked = parse_message({"model": "m", "max_tokens": 9, "messages": messages})
    read = asked.history(later_system=True, keep_billing_header=False, max_items=99)
    assert (read.messages[2]["content"], read.left_out) == (f"See {shown}", [])


def test_images_of_a_document_stay_in_their_place():
    block = document({"type": "content", "content": [text("x"), IMAGE]}, title="T")
    [message] = history(block).messages
    assert [part["type"] for part in message["content"]] == ["text", "image_url", "text"]


CODE = {"type": "code_execution_result", "stdout": "2", "stderr": "", "return_code": 0, "content": []}
PAGE = CASES["page"]


def used(name, given, kind="server_tool_use", **more):
    return {"type": kind, "id": "s1", "name": name, "input": given, **more}


def result(kind, content, **more):
    return {"type": f"{kind}_tool_result", "tool_use_id": "s1", "content": content, **more}


@pytest.mark.parametrize(
    ("call", "answered", "name", "shown"), CASES["a_call_that_the_provider_ran_is_written_if_its_result_can_be_read"]
)
def test_a_call_that_the_provider_ran_is_written_if_its_result_can_be_read(call, answered, name, shown):
    read = history(text("I look."), call, answered, text("So."), role="assistant")
    _, said, given, rest, _ = read.messages
    assert said["content"] == "I look."
    (made,) = said["tool_calls"]
    assert (made["function"]["name"], json.loads(made["function"]["arguments"])) == (name, call["input"])
    assert (given["role"], given["tool_call_id"], given["content"]) == ("tool", made["id"], shown)
    assert (rest["content"], read.left_out) == ("So.", [])


HIT = {"type": "web_search_result", "title": "A", "url": "https://a.example", "encrypted_content": "x"}
SECRET = CASES["secret"]
PDF = PAGE | {"content": document({"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="})}
REFERENCES = {"type": "tool_search_tool_search_result", "tool_references": []}


@pytest.mark.parametrize(
    "blocks",
    [
        [used("web_search", {"query": "a"}), result("web_search", [HIT])],
        [used("code_execution", {"code": ""}), result("code_execution", SECRET)],
        [used("web_fetch", {"url": "a"}), result("web_fetch", PDF)],
        [used("tool_search_tool_regex", {"pattern": "a"}), result("tool_search", REFERENCES)],
        [used("code_execution", {"code": ""})],
        [result("code_execution", CODE)],
        [{"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}],
        [{"type": "redacted_thinking", "data": "x"}],
        [used("advisor", {}), result("advisor", {"type": "advisor_result", "text": "x"})],
        [{"type": "mcp_tool_listing", "mcp_server_name": "docs", "tools": []}],
    ],
)
def test_what_only_the_provider_can_read_is_left_out_and_told(blocks):
    read = history(text("I look."), *blocks, text(" So."), role="assistant")
    said = "".join(message["content"] for message in read.messages if message["role"] == "assistant")
    assert said.replace("\n\n", "") == "I look. So."
    assert not any("tool_calls" in message for message in read.messages)
    assert read.left_out == [f"messages[1].content[{place}]" for place in range(1, 1 + len(blocks))]


def test_only_a_tool_of_the_provider_may_lack_a_name():
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}]}
    asked = parse_message(body | {"tools": [{"type": "browser_toolset_20260801"}]})
    assert asked.history(later_system=True, keep_billing_header=False, max_items=9).left_out == ["tools[0]"]
    with pytest.raises(RequestError, match=r"tools\[0\]: Object missing required field `name`"):
        parse_message(body | {"tools": [{"input_schema": {}}]})


async def test_the_client_sends_a_history_of_another_server():
    engine = Script("Ok.", "<|im_end|>")
    call = ServerToolUseBlockParam(**used("code_execution", {"code": "1+1"}))
    messages = [
        UserMessageParam(role="user", content=[FOUND]),
        {"role": "assistant", "content": [call, result("code_execution", CODE), text("2")]},
        {"role": "assistant", "content": [used("web_search", {}), result("web_search", [HIT])]},
        UserMessageParam(role="user", content="more"),
    ]
    async with serving(engine, template=WITH_TOOLS) as server, anthropic_of(server) as client:
        message = await client.messages.create(model="default", max_tokens=9, messages=messages)
        assert await client.messages.count_tokens(model="default", messages=messages)
    assert message.content[0].text == "Ok."
    assert message.left_out == ["messages[2].content[0]", "messages[2].content[1]"]
    assert f"<|im_start|>tool\n{json.dumps(CODE)}<|im_end|>" in engine.prompts[0]
    assert FOUND_TEXT in engine.prompts[0]


def test_an_error_lists_each_type_of_a_block_once():
    source = {"type": "content", "content": [{"type": "document"}]}
    content = [{"type": "document", "source": source}]
    with pytest.raises(RequestError, match='"document" is not one of text, image$'):
        parse_message({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": content}]})
