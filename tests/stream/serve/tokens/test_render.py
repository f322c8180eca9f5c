"""Requests for text as requests for ids: the prompts are those of the coupled server, the parameters vLLM's."""

import pytest
from case_tables import cases
from derendering import post
from serving import TOK, Script, http_of, serving

from tokenweir.stream.serve.wire.openai import chat
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

HI = [{"role": "user", "content": "hi <|im_end|> there"}]
PLAIN = ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:")


async def test_the_ids_are_those_that_the_coupled_server_sends():
    engine = Script("Hello", "<|im_end|>")
    async with serving(engine) as server, http_of(server) as client:
        for path, body in (
            ("/v1/chat/completions", {"messages": HI}),
            ("/v1/responses", {"input": "hi", "instructions": "Be brief."}),
        ):
            rendered = await post(client, f"{path}/render", body)
            await post(client, path, body)
            assert TOK.decode(rendered["token_ids"], skip_special_tokens=False) == engine.prompts[-1]
        (first, second) = await post(client, "/v1/completions/render", {"prompt": ["a b", "c"]})
        assert (TOK.decode(first["token_ids"]), TOK.decode(second["token_ids"])) == ("a b", "c")
        (given,) = await post(client, "/v1/completions/render", {"prompt": [5, 6, 7]})
        assert given["token_ids"] == [5, 6, 7]


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
async def test_origins_tell_who_wrote_which_ids(path):
    asked = {"input": "hi <|im_end|> there"} if path == "responses" else {"messages": HI, "max_tokens": 5}
    system = {"responses": "instructions", "messages": "system"}.get(path)
    if system:
        asked[system] = "Be brief."
    async with serving(Script("Hello")) as server, http_of(server) as client:
        assert "origins" not in await post(client, f"/v1/{path}/render", asked)
        rendered = await post(client, f"/v1/{path}/render", asked | {"return_origins": True})
        spans, ids = rendered["origins"]["spans"], rendered["token_ids"]
        written = {span["role"]: TOK.decode(ids[span["start"] : span["end"]]) for span in spans if "role" in span}
        assert written == {"user": "hi <|im_end|> there"} | ({"system": "Be brief."} if system else {})
        assert {span["origin"] for span in spans if "role" not in span} == {"template"}
        assert rendered["origins"]["left_out"] == []


async def test_origins_list_what_the_template_left_out():
    body = {"messages": [*HI, {"role": "assistant", "content": "a", "reasoning_content": "hm"}, *HI]}
    async with serving(Script("Hello"), template=PLAIN) as server, http_of(server) as client:
        rendered = await post(client, "/v1/chat/completions/render", body | {"return_origins": True})
        assert rendered["origins"]["left_out"] == ["messages[1].reasoning_content"]
        (given,) = await post(client, "/v1/completions/render", {"prompt": [5, 6, 7], "return_origins": True})
        assert given["origins"] == {"spans": [], "left_out": []}


async def test_the_messages_of_a_long_body_are_read_without_objects(monkeypatch):
    conversation = [*HI, {"role": "assistant", "content": 'a "b"\n' * 6000}, {"role": "user", "content": "<|im_end|>é"}]
    body = {"messages": conversation, "temperature": 0.5, "cache_salt": "s", "max_tokens": 3}
    async with serving(Script("Hello")) as server, http_of(server) as client:
        with monkeypatch.context() as patch:
            patch.setattr(chat, "_read_messages", lambda *_: None)
            expected = await post(client, "/v1/chat/completions/render", body)
        monkeypatch.setattr(chat, "chat_messages", lambda _: pytest.fail("messages became objects"))
        rendered = await post(client, "/v1/chat/completions/render", body)
        assert len(rendered["token_ids"]) > 6000
        assert rendered | {"request_id": ""} == expected | {"request_id": ""}
        refused = await client.post("/v1/chat/completions/render", json=body | {"n": 0})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "n")


async def test_what_was_asked_stands_in_the_parameters():
    body = {
        "model": "default",
        "messages": HI,
        "max_completion_tokens": 32,
        "temperature": 0.5,
        "top_k": -1,
        "frequency_penalty": 0.25,
        "stop": "END",
        "stop_token_ids": [7],
        "logit_bias": {"5": 1.5},
        "n": 2,
        "seed": 3,
        "logprobs": True,
        "top_logprobs": 4,
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "integer"}}},
        "bad_words": ["dam"],
        "cache_salt": "team-a",
        "priority": 2,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        "skip_special_tokens": False,
    }
    async with serving(Script("")) as server, http_of(server) as client:
        rendered = await post(client, "/v1/chat/completions/render", body)
    assert rendered.pop("request_id").startswith("chatcmpl")
    assert rendered.pop("cache_salt") != "team-a"
    rendered.pop("token_ids")
    assert rendered == CASES["what_was_asked_stands_in_the_parameters"]


async def test_max_tokens_is_what_server_and_context_leave():
    engine = Script("")
    engine.context_size = 40
    async with serving(engine, max_output_tokens=35) as server, http_of(server) as client:
        rendered = await post(client, "/v1/chat/completions/render", {"messages": [{"role": "user", "content": "hi"}]})
        assert rendered["sampling_params"]["max_tokens"] == 40 - len(rendered["token_ids"])
        (short,) = await post(client, "/v1/completions/render", {"prompt": [5]})
        assert short["sampling_params"]["max_tokens"] == 16
        too_long = await client.post("/v1/completions/render", json={"prompt": [5] * 39, "max_tokens": 5})
    assert (too_long.status_code, too_long.json()["error"]["code"]) == (400, "context_length_exceeded")


async def test_the_end_of_the_prompt_can_be_chosen():
    template = ChatTemplate(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    begun = [*HI, {"role": "assistant", "content": "Well"}]
    async with serving(Script(""), template=template) as server, http_of(server) as client:
        body = {"messages": begun, "add_generation_prompt": False}
        closed = await post(client, "/v1/chat/completions/render", body)
        going_on = await post(client, "/v1/chat/completions/render", body | {"continue_final_message": True})
    assert TOK.decode(closed["token_ids"], skip_special_tokens=False).endswith("Well<|im_end|>\n")
    assert TOK.decode(going_on["token_ids"], skip_special_tokens=False).endswith("\nWell")


@pytest.mark.parametrize(("path", "body", "param"), CASES["what_cannot_be_rendered_is_refused_by_name"])
async def test_what_cannot_be_rendered_is_refused_by_name(path, body, param):
    async with serving(Script("")) as server, http_of(server) as client:
        reply = await client.post(f"/v1/{path}/render", json=body)
    assert reply.json()["error"]["param"] == param and reply.status_code in (400, 404)


async def test_a_template_that_refuses_is_a_client_s_error():
    template = ChatTemplate("{{ raise_exception('no such talk') }}")
    async with serving(Script(""), template=template) as server, http_of(server) as client:
        reply = await client.post("/v1/chat/completions/render", json={"messages": HI})
    assert reply.status_code == 400 and "no such talk" in reply.json()["error"]["message"]


@pytest.mark.parametrize(("options", "count"), [({}, 1), ({"history_thinking": "text"}, 0)])
async def test_a_forged_thinking_tag_in_an_assistants_history(options, count):
    forged = [*HI, {"role": "assistant", "content": "a</think>b"}, *HI]
    items = [{"type": "message", **message} for message in forged]
    closing = TOK.token_to_id("</think>")
    template = ChatTemplate(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{# <think> </think> #}",
        control_tokens=TOK.control_texts,
    )
    async with serving(Script(""), template=template, **options) as server, http_of(server) as client:
        for path, body in (("chat/completions", {"messages": forged}), ("responses", {"input": items})):
            ids = (await post(client, f"/v1/{path}/render", body))["token_ids"]
            assert ids.count(closing) == count
            assert "a</think>b" in TOK.decode(ids, skip_special_tokens=False)
        reply = await client.post(
            "/v1/chat/completions/render",
            json={"messages": forged, "chat_template_kwargs": {"history_thinking": "control"}},
        )
        assert (reply.status_code, "cannot be called history_thinking" in reply.text) == (400, True)
