"""Chat completions, completions and responses over HTTP, by unmodified clients."""

import asyncio
import json
import re

import openai
import pytest
from case_tables import cases
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from serving import CALL, TOK, WITH_TOOLS, Endless, Script, Sure, client_of, eventually, http_of, serving

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.ngram import NgramEngine
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

HI = [{"role": "user", "content": "hi"}]
THINKING = ("<think>", "Let me see.", "</think>", "Hello wörld 🙂!", "<|im_end|>")
TOOL = {"type": "function", "function": {"name": "weather", "description": "Look outside."}}


# --- chat completions -------------------------------------------------------------------------------------------------


async def test_a_chat_completion():
    engine = Script(*THINKING)
    async with serving({"demo": engine}) as server, client_of(server) as client:
        completion = await client.chat.completions.create(model="demo", messages=HI, max_tokens=100, temperature=0)
    (choice,) = completion.choices
    assert choice.message.content == "Hello wörld 🙂!"
    assert choice.message.reasoning_content == "Let me see."
    assert (choice.finish_reason, choice.message.role, completion.model) == ("stop", "assistant", "demo")
    assert completion.usage.prompt_tokens == len(TOK.encode(engine.prompts[0]))
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    assert completion.usage.completion_tokens_details.reasoning_tokens > 2
    assert (engine.sampling.max_tokens, engine.sampling.temperature) == (100, 0)


async def test_a_stream_of_chunks_with_usage():
    async with serving(Script(*THINKING)) as server, client_of(server) as client:
        text = thinking = ""
        async for chunk in await client.chat.completions.create(
            model="default", messages=HI, stream=True, stream_options={"include_usage": True}
        ):
            if not chunk.choices:
                break
            (choice,) = chunk.choices
            text += choice.delta.content or ""
            thinking += getattr(choice.delta, "reasoning_content", None) or ""
            reason = choice.finish_reason
    assert (text, thinking, reason) == ("Hello wörld 🙂!", "Let me see.", "stop")
    assert chunk.usage.total_tokens == chunk.usage.prompt_tokens + chunk.usage.completion_tokens > 10


async def test_the_arguments_of_each_call_come_with_its_index():
    begun, arguments = asyncio.Event(), ["", ""]
    engine = Script(CALL, CALL.partition("Rome")[0], begun, 'Bern"}}</tool_call>', "<|im_end|>")
    asked = {"model": "default", "messages": HI, "tools": [TOOL], "stream": True}
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        async for chunk in await client.chat.completions.create(**asked):
            for piece in chunk.choices[0].delta.tool_calls or ():
                arguments[piece.index] += piece.function.arguments or ""
            if arguments[1]:
                begun.set()
    assert [json.loads(each)["city"] for each in arguments] == ["Rome", "Bern"]


async def test_tags_count_as_ids_if_the_server_says_so():
    spelled = ("<think>", "So ", "<", "/think>", " is text.", "</think>", "Hi <", "think>", "<|im_end|>")
    for markup, content in (("ids", "Hi <think>"), ("text", " is text.</think>Hi <think>")):
        async with serving(Script(*spelled), markup=markup) as server, client_of(server) as client:
            answer = await client.chat.completions.create(model="default", messages=HI)
            assert answer.choices[0].message.content == content
    other = ChatTemplate(str(WITH_TOOLS.source).replace("<tool_call>", "[TOOL_CALLS]").replace("</tool_call>", ""))
    with pytest.raises(ValueError, match="of tool style 'mistral' is a token of the vocabulary"):
        async with serving(Script(), template=other, markup="ids"):
            pass


async def test_top_logprobs():
    """In the shapes of Chat Completions, Completions and Responses, by the client's models; refused by engines without logprobs."""
    asked = {"model": "sure", "messages": HI, "logprobs": True, "top_logprobs": 2}
    engines = {"sure": Sure(), "silent": Script("Hello"), "ngram": NgramEngine()}
    include = ["message.output_text.logprobs"]
    async with serving(engines) as server, client_of(server) as client:
        whole = await client.chat.completions.create(**asked)
        streamed = []
        async for chunk in await client.chat.completions.create(**asked, stream=True):
            if chunk.choices[0].logprobs:
                streamed += chunk.choices[0].logprobs.content
        response = await client.responses.create(model="sure", input="x", include=include, top_logprobs=2)
        completion = await client.completions.create(model="sure", prompt="x", logprobs=2)
        for model, said in (("silent", "this model's engine gives none"), ("ngram", "cannot honour top_logprobs=2")):
            with pytest.raises(openai.BadRequestError, match=said) as refused:
                await client.chat.completions.create(**asked | {"model": model, "top_logprobs": 2})
            assert refused.value.param in ("top_logprobs", "logprobs")
        with pytest.raises(openai.BadRequestError, match="top_logprobs wants logprobs to be true"):
            await client.chat.completions.create(model="sure", messages=HI, top_logprobs=2)
        with pytest.raises(openai.BadRequestError, match="Expected `int` <= 20"):
            await client.chat.completions.create(**asked | {"top_logprobs": 21})
    ChatCompletion.model_validate(whole.model_dump(), strict=True)
    Response.model_validate(response.model_dump())
    assert response.top_logprobs == 2
    for tokens in (whole.choices[0].logprobs.content, streamed, response.output[0].content[0].logprobs):
        assert "".join(token.token for token in tokens).startswith("Hello w")
        for token in tokens:
            first, second = token.top_logprobs
            assert (first.token, first.logprob, first.bytes) == (token.token, -0.25, token.bytes)
            assert (second.logprob, bytes(second.bytes).decode(), second.token) == (-2.0, *[TOK.decode([72])] * 2)
    rows = completion.choices[0].logprobs
    assert [top[token] for top, token in zip(rows.top_logprobs, rows.tokens, strict=True)] == rows.token_logprobs
    assert all(top[TOK.decode([72])] == -2.0 for top in rows.top_logprobs)


@pytest.mark.parametrize("given", [{"n": 1}, {"n": 2}])
async def test_ids_stand_beside_the_answer(given):
    """All that the engine gave is there, ids without text included: tags, the end of a call, the end token."""
    said = f"<think>Hm.</think>Let me look.{CALL}<|im_end|>"
    engine = Script(said)
    ask = {"model": "default", "messages": HI, "tools": [TOOL], "extra_body": {"return_token_ids": True}} | given
    async with serving(engine) as server, client_of(server) as client:
        whole = await client.chat.completions.create(**ask)
        prompts, answers = [], [[] for _ in whole.choices]
        async for chunk in await client.chat.completions.create(**ask, stream=True):
            prompts += [chunk.prompt_token_ids] if hasattr(chunk, "prompt_token_ids") else []
            for choice in chunk.choices:
                answers[choice.index] += getattr(choice, "token_ids", [])
        plain = await client.chat.completions.create(**ask | {"extra_body": {}})
    assert [choice.token_ids for choice in whole.choices] == answers == [TOK.encode(said)] * len(answers)
    assert [TOK.decode(ids, skip_special_tokens=False) for ids in (whole.prompt_token_ids, *prompts)] == (
        engine.prompts[:1] * 2
    )
    assert not hasattr(plain, "prompt_token_ids") and not hasattr(plain.choices[0], "token_ids")


async def test_several_answers():
    async with serving(Sure()) as server, client_of(server) as client:
        whole = await client.chat.completions.create(model="default", messages=HI, n=3, seed=1)
        assert [choice.message.content for choice in whole.choices] == ["Hello wörld"] * 3
        assert [choice.index for choice in whole.choices] == [0, 1, 2]
        texts = ["", "", ""]
        async for chunk in await client.chat.completions.create(model="default", messages=HI, n=3, stream=True):
            texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        assert texts == ["Hello wörld"] * 3
        with pytest.raises(openai.BadRequestError, match="n asks for 17 answers; this server gives 16 at most"):
            await client.chat.completions.create(model="default", messages=HI, n=17)


async def test_what_is_wrong_is_named():
    async with serving({"demo": Script("Hello")}) as server, client_of(server) as client:
        for status, code, param, options in [
            (404, "model_not_found", "model", {"model": "gpt-9"}),
            (400, "invalid_value", "temperature", {"temperature": 3}),
            (400, "invalid_value", "top_logprobs", {"logprobs": True, "top_logprobs": 21}),
            (400, "unsupported_parameter", "tool_choice", {"tools": [TOOL], "tool_choice": "required"}),
            (400, "unsupported_parameter", "tool_choice", {"tool_choice": "required"}),
            (400, "invalid_value", "tool_choice", {"tools": [TOOL], "tool_choice": "some"}),
            (400, "unsupported_parameter", "foo", {"extra_body": {"foo": 1}}),
            (400, "invalid_value", "messages[0].role", {"messages": [{"role": "king", "content": "hi"}]}),
            (400, "unsupported_content", "messages[0].content[0]", {"messages": [IMAGE]}),
            (
                400,
                "invalid_value",
                "messages[0].tool_call_id",
                {"messages": [{"role": "tool", "content": "x", "tool_call_id": 5}]},
            ),
            (400, "invalid_value", "max_tokens", {"max_tokens": 9000}),
            (400, "unsupported_parameter", "chat_template_kwargs.chat_template", {"extra_body": TEMPLATE}),
            (400, "too_many_items", "messages", {"messages": HI * 2049}),
            (400, "invalid_value", "messages", {"messages": []}),
            (400, "invalid_value", "min_tokens", {"max_tokens": 2, "extra_body": {"min_tokens": 5}}),
            (400, "invalid_value", "stop_token_ids", {"extra_body": {"stop_token_ids": [1 << 30]}}),
            (400, "invalid_value", "stop_token_ids", {"extra_body": {"stop_token_ids": [-1]}}),
            (400, "invalid_value", "logit_bias", {"logit_bias": {str(TOK.vocab_size): 1}}),
            (400, "invalid_value", "logit_bias", {"logit_bias": {"1" * 5000: 1}}),
            (400, "missing_required_parameter", "messages", {"extra_body": {"messages": None}}),
        ]:
            for stream in (False, True):
                with pytest.raises(openai.APIStatusError) as caught:
                    await client.chat.completions.create(
                        **{"model": "demo", "messages": HI, "stream": stream} | options
                    )
                error = caught.value
                assert (error.status_code, error.code, error.param) == (status, code, param), error
                assert error.message


CHOOSING = ChatTemplate(
    "{% for tool in tools or [] %}{{ tool.function.name }} {% endfor %}choice:{{ tool_choice }} "
    "parallel:{{ parallel_tool_calls }} {{ messages[0].content }}",
    name="choosing",
)


async def test_a_choice_of_tools_is_told_to_a_template_that_reads_it():
    engine = Script("Hello")
    other = {"type": "function", "function": {"name": "now"}}
    async with serving(engine, template=CHOOSING) as server, client_of(server) as client:
        for tool_choice, parallel, prompt in CASES["a_choice_of_tools_is_told_to_a_template_that_reads_it"]:
            more = {} if parallel is None else {"parallel_tool_calls": parallel}
            await client.chat.completions.create(
                model="default", messages=HI, tools=[TOOL, other], tool_choice=tool_choice, **more
            )
            assert engine.prompts[-1] == prompt
            flat = [{"type": "function", **tool["function"]} for tool in (TOOL, other)]
            choice = {"type": "function", "name": "now"} if isinstance(tool_choice, dict) else tool_choice
            response = await client.responses.create(
                model="default", input="hi", tools=flat, tool_choice=choice, **more
            )
            assert engine.prompts[-1] == prompt
            told = response.tool_choice if isinstance(tool_choice, str) else response.tool_choice.to_dict()
            assert (told, response.parallel_tool_calls) == (choice, parallel is not False)
        allowed = {"mode": "required", "tools": [other]}
        await client.chat.completions.create(
            model="default",
            messages=HI,
            tools=[TOOL, other],
            tool_choice={"type": "allowed_tools", "allowed_tools": allowed},
        )
        assert engine.prompts[-1] == "now choice:required parallel: hi"
        flat_choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "now"}]}
        response = await client.responses.create(model="default", input="hi", tools=flat, tool_choice=flat_choice)
        assert engine.prompts[-1] == "now choice: parallel: hi"
        assert response.tool_choice.to_dict() == flat_choice


IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}
TEMPLATE = {"chat_template_kwargs": {"chat_template": "{{ 1 }}"}}


async def test_what_real_clients_send_and_what_changes_nothing_is_accepted():
    engine = Script("Hello", "<|im_end|>")
    async with serving(engine) as server, client_of(server) as client:
        completion = await client.chat.completions.create(
            model="default",
            messages=[{"role": "developer", "content": [{"type": "text", "text": "Be brief."}]}, *HI],
            store=True,
            metadata={"a": "b"},
            user="me",
            service_tier="auto",
            prompt_cache_key="k",
            safety_identifier="s",
            frequency_penalty=0,
            presence_penalty=0,
            logit_bias={},
            verbosity="low",
            modalities=["text"],
            response_format={"type": "text"},
            top_p=1,
            parallel_tool_calls=True,
            extra_body={"top_k": -1, "min_p": 0, "repetition_penalty": 1, "chat_template_kwargs": {}},
        )
    assert completion.choices[0].message.content == "Hello"
    assert "<|im_start|>system\nBe brief." in engine.prompts[0]
    assert {*engine.sampling.given()} == {"max_tokens", "top_p"}


class Held(Script):
    """An engine that honours a JSON schema."""

    supports = frozenset({"json_schema"})


LIST = '[{"name": "weather", "arguments": {"city": "Rome"}}, {"name": "now", "arguments": {}}]'
NOW = {"type": "function", "function": {"name": "now"}}


async def test_an_engine_is_held_to_a_choice_of_tools():
    engine = Held(LIST, "<|im_end|>")
    named = {"type": "function", "function": {"name": "weather"}}
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        asked = {"model": "default", "messages": HI, "tools": [TOOL, NOW]}
        whole = await client.chat.completions.create(**asked, tool_choice="required")
        calls = whole.choices[0].message.tool_calls
        assert [(call.function.name, call.function.arguments) for call in calls] == [
            ("weather", '{"city": "Rome"}'),
            ("now", "{}"),
        ]
        assert (whole.choices[0].finish_reason, whole.choices[0].message.content) == ("tool_calls", None)
        one = (await client.chat.completions.create(**asked, tool_choice=named)).choices[0].message
        assert [call.function.name for call in one.tool_calls] == ["weather"]
        assert one.content == ', {"name": "now", "arguments": {}}]'  # it broke the schema; nothing of that is lost
        assert engine.sampling.json_schema["items"]["properties"]["name"]["enum"] == ["weather"]
        response = await client.responses.create(
            model="default",
            input="hi",
            tools=[{"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}],
            tool_choice={"type": "function", "name": "weather"},
            parallel_tool_calls=False,
        )
        assert [item.name for item in response.output] == ["weather"]
        assert response.tool_choice.name == "weather"
        of_text = {"type": "json_schema", "json_schema": {"name": "form", "schema": {"type": "integer"}}}
        formed = await client.chat.completions.create(**asked, tool_choice="required", response_format=of_text)
        assert formed.choices[0].finish_reason == "tool_calls"  # there is no text for the format
        assert engine.sampling.json_schema["type"] == "array"


async def test_the_first_whole_call_ends_an_answer_that_may_have_one():
    engine = Script("Look: ", CALL, CALL, "more", "<|im_end|>")
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        asked = {"model": "default", "messages": HI, "tools": [TOOL]}
        for options, calls in (({"parallel_tool_calls": False}, 1), ({}, 2)):
            choice = (await client.chat.completions.create(**asked, **options)).choices[0]
            assert [call.function.name for call in choice.message.tool_calls] == ["weather"] * calls
            assert choice.finish_reason == "tool_calls"


class Small(Script):
    """An engine with a context of 50 ids, which honours no penalty."""

    context_size = 50
    supports = frozenset({"temperature"})


class Brief(Script):
    """An engine that bounds answers to requests without a limit."""

    default_max_tokens = 7


async def test_an_engine_bounds_answers_to_requests_that_set_no_limit():
    engine = Brief("Hello", "<|im_end|>")
    async with serving(engine) as server, client_of(server) as client, http_of(server) as http:
        for limits, limit in (({}, 7), ({"max_tokens": 30}, 30), ({"max_tokens": 3}, 3)):
            await client.chat.completions.create(model="default", messages=HI, **limits)
            assert engine.sampling.max_tokens == limit
        for limits, limit in (({}, 7), ({"max_output_tokens": 30}, 30)):
            response = await client.responses.create(model="default", input="hi", **limits)
            assert response.max_output_tokens == engine.sampling.max_tokens == limit
        message = {"model": "default", "messages": HI, "max_tokens": 30}
        assert (await http.post("/v1/messages", json=message)).status_code == 200
        assert engine.sampling.max_tokens == 30
    async with serving(engine, max_output_tokens=5) as server, client_of(server) as client:
        assert (await client.responses.create(model="default", input="hi")).max_output_tokens == 5


async def test_what_does_not_fit_into_the_context():
    engine = Small("Hello", "<|im_end|>")
    async with serving(engine) as server, client_of(server) as client, http_of(server) as http:
        await client.chat.completions.create(model="default", messages=HI)
        room = engine.sampling.max_tokens
        assert 0 < room < 50  # what the prompt leaves
        await client.chat.completions.create(model="default", messages=HI, max_tokens=room)
        for ask in (
            client.chat.completions.create(model="default", messages=HI, max_tokens=room + 1),
            client.chat.completions.create(model="default", messages=[{"role": "user", "content": "long " * 99}]),
            client.responses.create(model="default", input="hi", max_output_tokens=room + 1),
            client.responses.create(model="default", input="hi", max_output_tokens=room + 1, stream=True),
            client.completions.create(model="default", prompt="long " * 99),
        ):
            with pytest.raises(openai.BadRequestError, match="the model's context holds 50 at most") as caught:
                await ask
            assert caught.value.code == "context_length_exceeded"
        assert (await http.get("/v1/models")).json()["data"][0]["max_model_len"] == 50
        with pytest.raises(openai.BadRequestError, match="default cannot honour frequency_penalty=1") as caught:
            await client.chat.completions.create(model="default", messages=HI, frequency_penalty=1)
        assert caught.value.param == "frequency_penalty"
        with pytest.raises(openai.BadRequestError, match="cannot honour json_schema") as caught:
            await client.chat.completions.create(model="default", messages=HI, response_format={"type": "json_object"})
        assert caught.value.param == "response_format"
        with pytest.raises(openai.BadRequestError, match="cannot honour json_schema") as caught:
            await client.responses.create(model="default", input="hi", text={"format": {"type": "json_object"}})
        assert caught.value.param == "text.format"


# --- completions ------------------------------------------------------------------------------------------------------


async def test_completions_of_texts_and_ids():
    engine = Script("<think>one", "<|im_end|>")
    async with serving(engine) as server, client_of(server) as client:
        ids = TOK.encode("Once")
        for prompt, count in (("Once", 1), (["Once", "Twice"], 2), (ids, 1), ([ids, ids], 2)):
            whole = await client.completions.create(model="default", prompt=prompt)
            assert [choice.text for choice in whole.choices] == ["<think>one"] * count  # thinking is not told apart
            assert [choice.index for choice in whole.choices] == list(range(count))
            texts = [""] * count
            async for chunk in await client.completions.create(model="default", prompt=prompt, stream=True):
                texts[chunk.choices[0].index] += chunk.choices[0].text
            assert texts == ["<think>one"] * count
        assert engine.prompts[0] == "Once"
        whole = await client.completions.create(
            model="default", prompt="Once", n=2, extra_body={"return_token_ids": True}
        )
        assert [TOK.decode(choice.token_ids) for choice in whole.choices] == ["<think>one"] * 2
        assert [TOK.decode(choice.prompt_token_ids) for choice in whole.choices] == ["Once"] * 2
        prompts = {}
        async for chunk in await client.completions.create(
            model="default", prompt=["Once", "Twice"], stream=True, extra_body={"return_token_ids": True}
        ):
            for choice in chunk.choices:
                if hasattr(choice, "prompt_token_ids"):
                    assert choice.index not in prompts
                    prompts[choice.index] = TOK.decode(choice.prompt_token_ids)
        assert prompts == {0: "Once", 1: "Twice"}
        for prompt in ([], [[]], 3, [True], [1, "a"]):
            with pytest.raises(openai.BadRequestError, match="prompt: expected a text"):
                await client.completions.create(model="default", prompt=prompt)
        with pytest.raises(openai.BadRequestError, match="outside the vocabulary"):
            await client.completions.create(model="default", prompt=[10**6])
        with pytest.raises(openai.BadRequestError, match="the prompt has no tokens") as caught:
            await client.completions.create(model="default", prompt="")
        assert caught.value.code == "invalid_prompt"


# --- responses over HTTP ----------------------------------------------------------------------------------------------


async def test_responses_whole_and_streamed_and_continued():
    engine = Script(*THINKING)
    async with serving(engine) as server, client_of(server) as client:
        first = await client.responses.create(model="default", input="one", instructions="Be brief.")
        assert first.output_text == "Hello wörld 🙂!"
        assert first.status == "completed" and first.store
        second = await client.responses.create(model="default", input="two", previous_response_id=first.id)
        assert second.previous_response_id == first.id
        text = ""
        async with client.responses.stream(model="default", input="three") as stream:
            async for event in stream:
                text += event.delta if event.type == "response.output_text.delta" else ""
            final = await stream.get_final_response()
        assert text == final.output_text == "Hello wörld 🙂!"
        unstored = await client.responses.create(model="default", input="four", store=False)
        with pytest.raises(openai.NotFoundError) as caught:
            await client.responses.create(model="default", input="five", previous_response_id=unstored.id)
        assert caught.value.code == "previous_response_not_found"
    assert engine.prompts[1].index("one") < engine.prompts[1].index("Hello wörld") < engine.prompts[1].index("two")


async def test_server_sent_events_as_httpx_reads_them():
    async with (
        serving(Script("Hello", "<|im_end|>")) as server,
        http_of(server) as http,
        http.stream("POST", "/v1/responses", json={"input": "hi", "stream": True}) as reply,
    ):
        assert reply.headers["content-type"].startswith("text/event-stream")
        lines = [line async for line in reply.aiter_lines()]
    assert lines[0] == "event: response.created" and lines[2] == ""
    assert lines[-2:] == ["data: [DONE]", ""]
    for event, data in zip(lines[:-2:3], lines[1:-2:3], strict=True):
        assert event == f"event: {json.loads(data.removeprefix('data: '))['type']}"


# --- failures and those who go away -----------------------------------------------------------------------------------


class Panic(BaseException):
    """The exception that PyO3 raises for a panic in Rust, which is not an `Exception`."""


@pytest.mark.parametrize("failure", [EngineError, RuntimeError, SystemExit, asyncio.CancelledError, Panic])
async def test_a_failing_engine_is_told_of_without_its_words(failure, caplog):
    engine = Script("Hel", failure("at /etc/secret"))
    ask = {"model": "default", "messages": HI}
    async with serving(engine) as server, client_of(server) as client:
        for number in (1, 2):
            with pytest.raises(openai.InternalServerError) as caught:
                await client.chat.completions.create(**ask, n=number)
            said = str(caught.value)
            assert "secret" not in said
            named = re.search("the engine failed; the server's log says why, under (chatcmpl_\\w+)", said)[1]
            assert [record for record in caplog.records if named in record.message]
        with pytest.raises(openai.InternalServerError):
            await client.responses.create(model="default", input="hi")
        with pytest.raises(openai.APIError, match="the engine failed"):
            async for _ in await client.chat.completions.create(**ask, stream=True):
                pass
        engine.parts = ("fine", "<|im_end|>")
        whole = await client.chat.completions.create(**ask, n=2)
        assert [choice.message.content for choice in whole.choices] == ["fine", "fine"]
    assert caplog.text.count("/etc/secret") >= 4


@pytest.mark.parametrize(("path", "body"), CASES["a_client_that_goes_away_stops_its_engine"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_stops_its_engine(path, body, stream):
    engine = Endless()
    async with serving(engine, max_output_tokens=10**9) as server:
        async with http_of(server) as http:
            asking = asyncio.ensure_future(http.post(path, json=body | {"stream": stream}))
            await eventually(lambda: engine.given)
            asking.cancel()
        await eventually(lambda: engine.closed)


async def test_silence_is_filled_with_comments():
    async with serving(Script("a", 0.1, "b", "<|im_end|>"), heartbeat=0.01) as server, http_of(server) as http:
        body = {"messages": HI, "stream": True}
        async with http.stream("POST", "/v1/chat/completions", json=body) as reply:
            lines = [line async for line in reply.aiter_lines()]
    assert lines.count(": keep-alive") >= 2
