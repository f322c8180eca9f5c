"""Untidy histories: one conversation has one prompt, through `chat()` and through every interface of the server."""

import json
import logging

import pytest
from case_tables import cases
from serving import TOK, Script, http_of, serving
from template_files import template_files

from tokenweir import ChatTemplate, chat
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache

CASES = cases(__file__)

FUNCTION = CASES["function"]
ASKED = {"role": "user", "content": "Weather?"}
WRITTEN = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "<call>{{ c.function.name }}{% for k, v in c.function.arguments.items() %} {{ k }}={{ v }}{% endfor %}</call>{% endfor %}<|im_end|>\n"
    "{% endfor %}"
)


def call(arguments, call_id):
    return {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def called(*arguments, content=None):
    calls = [call(each, f"call{name * 5}") for each, name in zip(arguments, "AB", strict=False)]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(content, name="A"):
    return {"role": "tool", "tool_call_id": f"call{name * 5}", "content": content}


PARTS = [{"type": "text", "text": "15C, "}, {"type": "text", "text": "cloudy"}]
HISTORIES = {
    "cut": [ASKED, called('{"city": "Bern", "day": "Mo'), result("no JSON"), ASKED],
    "no JSON": [ASKED, called("city=Bern"), result("no JSON")],
    "empty": [ASKED, called("", content=""), result("")],
    "null": [ASKED, called(None), result("x")],
    "a list": [ASKED, called([1]), result("x")],
    "another order": [ASKED, called('{"city": "Bern"}', '{"city": "Oslo"}'), result("OSLO", "B"), result("BERN")],
    "parts": [ASKED, called("{}"), result(PARTS)],
    "no parts": [ASKED, called("{}"), result([])],
    "no result": [ASKED, called("{}"), result(None)],
    "orphan result": [ASKED, result("15C", "B"), ASKED],
    "unanswered call": [ASKED, called("{}", content="I look."), ASKED],
}


def items_of(messages):
    """The input items of Responses for messages of Chat Completions."""
    for message in messages:
        if message["role"] == "tool":
            output = message["content"]
            if isinstance(output, list):
                output = [part | {"type": "input_text"} for part in output]
            yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}
            continue
        if message["content"]:
            yield {"role": message["role"], "content": message["content"]}
        for each in message.get("tool_calls", ()):
            yield {"type": "function_call", "call_id": each["id"], **each["function"]}


def blocks_of(messages):
    """Anthropic's messages for messages of Chat Completions."""
    for message in messages:
        role, content = message["role"], []
        if role == "tool":
            content.append(
                {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            )
        elif message["content"]:
            content.append({"type": "text", "text": message["content"]})
        for each in message.get("tool_calls", ()):
            given = each["function"]["arguments"]
            try:
                given = json.loads(given)
            except (TypeError, ValueError):
                pass
            content.append({"type": "tool_use", "id": each["id"], "name": each["function"]["name"], "input": given})
        yield {"role": "assistant" if role == "assistant" else "user", "content": content}


async def prompts_of(messages, template):
    engine = Script("Yes.", "<|im_end|>")
    function = {"type": "function", "function": FUNCTION}
    tools = [function] if "tools" in template.variables else None
    async with chat(messages, engine=engine, tokenizer=TOK, template=template, tools=tools) as deltas:
        async for _ in deltas:
            pass
    schema = {"name": FUNCTION["name"], "description": FUNCTION["description"], "input_schema": FUNCTION["parameters"]}
    bodies = {
        "chat/completions": {"messages": messages, "tools": tools},
        "responses": {"input": list(items_of(messages)), "tools": tools and [{"type": "function", **FUNCTION}]},
        "messages": {"messages": list(blocks_of(messages)), "max_tokens": 9, "tools": tools and [schema]},
    }
    async with serving(engine, template=template) as server, http_of(server, "/v1") as client:
        for path, body in bodies.items():
            body = {name: value for name, value in body.items() if value is not None}
            answer = await client.post(path, json={"model": "default", **body})
            assert answer.status_code == 200, (path, answer.text)
    return dict(zip(["chat()", *bodies], engine.prompts, strict=True))


@pytest.mark.parametrize("name", HISTORIES)
async def test_one_conversation_has_one_prompt(name):
    prompts = await prompts_of(HISTORIES[name], WRITTEN)
    assert len(set(prompts.values())) == 1, prompts


@pytest.mark.parametrize("model", ["Qwen3-Coder", "GLM-4.6", "MiniMax-M2", "Qwen-Qwen3-0.6B", "LFM2-8B-A1B"])
async def test_so_it_has_with_templates_of_models(model):
    if (source := template_files().get(model)) is None:
        pytest.skip("the template is not at hand")
    template = ChatTemplate(source, special_tokens={"bos_token": "<s>", "eos_token": "</s>"})
    for name in ("cut", "empty", "another order", "parts"):
        prompts = await prompts_of(HISTORIES[name], template)
        assert len(set(prompts.values())) == 1, (name, prompts)
        assert "'type'" not in prompts["chat()"]


@pytest.mark.parametrize(("name", "shown"), CASES["what_the_model_is_shown"])
async def test_what_the_model_is_shown(name, shown):
    assert shown in (await prompts_of(HISTORIES[name], WRITTEN))["responses"]


async def test_results_stand_in_the_order_of_their_calls():
    prompt = (await prompts_of(HISTORIES["another order"], WRITTEN))["messages"]
    assert 0 < prompt.index("BERN") < prompt.index("OSLO")


async def test_mended_arguments_are_logged_and_told_by_render(caplog):
    engine, path = Script("Yes.", "<|im_end|>"), "messages[1].tool_calls[0].function.arguments"
    async with serving(engine, template=WRITTEN) as server, http_of(server, "/v1") as client:
        with caplog.at_level(logging.WARNING, "tokenweir.serve"):
            for name, messages in HISTORIES.items():
                caplog.clear()
                body = {"model": "default", "messages": messages}
                assert (await client.post("chat/completions", json=body)).status_code == 200
                told = (await client.post("chat/completions/render", json=body)).json().get("left_out", [])
                mended = name in ("cut", "no JSON", "a list")
                assert told == [path] * mended
                assert len([line for line in caplog.messages if path in line]) == 2 * mended


async def test_leftovers_of_other_servers_are_left_out():
    leftovers = CASES["leftovers_of_other_servers_are_left_out"]
    answered = called("{}") | leftovers
    answered["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "x"}}
    engine = Script("Yes.", "<|im_end|>")
    async with serving(engine, template=WRITTEN) as server, http_of(server, "/v1") as client:
        for message in (called("{}"), answered):
            body = {"model": "default", "messages": [ASKED, message, result("x")]}
            assert (await client.post("chat/completions", json=body)).status_code == 200
        audio = called("{}") | {"audio": {"id": "audio_1"}}
        refused = await client.post("chat/completions", json={"model": "default", "messages": [ASKED, audio]})
    assert len(set(engine.prompts)) == 1
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "messages[1].audio"


async def test_the_cache_does_with_ordered_results_what_it_does_with_those_in_order():
    counts = []
    for swapped in (False, True):
        engine, prompts = Script("Yes.", "<|im_end|>"), PromptCache()
        asked, calls, *results = HISTORIES["another order"]
        messages = [asked, calls, *(results if swapped else reversed(results))]
        for later in ([], [{"role": "assistant", "content": "Yes."}, ASKED]):
            options = {
                "engine": engine,
                "tokenizer": TOK,
                "template": WRITTEN,
                "prompts": prompts,
                "history": "sampled",
            }
            async with chat([*messages, *later], **options) as deltas:
                async for _ in deltas:
                    pass
        counts.append((prompts.counts, engine.prompts))
    assert counts[0] == counts[1]
    assert counts[1][0].kept_ids > 0  # the answer's, as the engine sampled them
