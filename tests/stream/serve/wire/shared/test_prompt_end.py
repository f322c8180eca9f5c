"""Answers that continue the last message: the fields and marks of other servers, in chat completions, tokenize and render."""

import pytest
from case_tables import cases
from openai import BadRequestError, NotFoundError
from serving import TOK, WITH_TOOLS, Script, client_of, http_of, serving

from tokenweir.stream.serve.wire.shared.checking import LONG
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.prompt_end import prompt_end_kwargs

CASES = cases(__file__)

HI = [{"role": "user", "content": "hi"}]
BEGUN = {"role": "assistant", "content": "The answer is"}
THOUGHT = {"role": "assistant", "content": "", "reasoning_content": "Let me"}


@pytest.mark.parametrize(("last", "extra"), CASES["the_last_message_is_continued"])
async def test_the_last_message_is_continued(last, extra):
    engine = Script(" forty-two.", "<|im_end|>")
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        completion = await client.chat.completions.create(model="default", messages=[*HI, last], extra_body=extra)
        stream = await client.chat.completions.create(
            model="default", messages=[*HI, last], stream=True, extra_body=extra
        )
        deltas = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert engine.prompts == ["<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nThe answer is"] * 2
    assert completion.choices[0].message.content == "".join(deltas) == " forty-two."


@pytest.mark.parametrize(
    ("last", "extra"), [(THOUGHT, {"continue_final_message": "reasoning_content"}), (THOUGHT | {"prefix": True}, {})]
)
async def test_thinking_is_continued(last, extra):
    engine = Script(" see.", "</think>", "42", "<|im_end|>")
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        completion = await client.chat.completions.create(model="default", messages=[*HI, last], extra_body=extra)
    assert engine.prompts[0].endswith("<|im_start|>assistant\n<think>Let me")
    message = completion.choices[0].message
    assert (message.reasoning_content, message.content) == (" see.", "42")


async def test_a_response_continues_the_last_message_and_is_not_stored():
    engine = Script(" forty-two.", "<|im_end|>")
    extra = {"continue_final_message": True}
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        response = await client.responses.create(model="default", input=[*HI, BEGUN], extra_body=extra)
        assert response.output_text == " forty-two."
        assert not response.model_extra["store"]
        with pytest.raises(NotFoundError, match="no response .* to continue"):
            await client.responses.create(model="default", input="so", previous_response_id=response.id)
        begun = await client.responses.create(model="default", input=[*HI, BEGUN, *HI])
        await client.responses.create(
            model="default",
            input=[BEGUN],
            previous_response_id=begun.id,
            extra_body={"continue_final_message": "content"},
        )
        with pytest.raises(BadRequestError) as caught:
            await client.responses.create(model="default", input="hi", extra_body={"continue_final_message": 5})
        async with http_of(server) as http:
            body = {"input": [*HI, BEGUN], **extra}
            rendered = (await http.post("/v1/responses/render", json=body)).json()
    assert caught.value.param == "continue_final_message"
    assert engine.prompts[0] == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nThe answer is"
    assert engine.prompts[2].endswith(" forty-two.<|im_end|>\n<|im_start|>assistant\nThe answer is")
    assert rendered["token_ids"] == TOK.encode(engine.prompts[0])


async def test_marks_of_earlier_messages_and_unset_ones_have_no_effect():
    engine = Script("Yes.", "<|im_end|>")
    messages = [*HI, BEGUN | {"prefix": True}, HI[0], {"role": "assistant", "content": "Yes?", "prefix": False}]
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        await client.chat.completions.create(model="default", messages=messages[:3])
        await client.chat.completions.create(model="default", messages=messages)
        await client.chat.completions.create(
            model="default", messages=messages[:1], extra_body={"add_generation_prompt": False}
        )
    assert engine.prompts[0].endswith("hi<|im_end|>\n<|im_start|>assistant\n")
    assert engine.prompts[1].endswith("Yes?<|im_end|>\n<|im_start|>assistant\n")
    assert engine.prompts[2].endswith("<|im_start|>user\nhi<|im_end|>\n")


@pytest.mark.parametrize(("messages", "extra", "param"), CASES["a_contradiction_is_refused_by_name"])
async def test_a_contradiction_is_refused_by_name(messages, extra, param):
    async with serving(Script(""), template=WITH_TOOLS) as server, client_of(server) as client:
        with pytest.raises(BadRequestError) as caught:
            await client.chat.completions.create(model="default", messages=messages, extra_body=extra)
    assert caught.value.param == param


@pytest.mark.parametrize("filler", ["", "x" * LONG])
async def test_tokenize_and_render_have_the_prompt_of_the_answer(filler):
    engine = Script("")
    messages = [{"role": "user", "content": filler}, BEGUN | {"prefix": True}]
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        await client.chat.completions.create(model="default", messages=messages)
        async with http_of(server) as http:
            rendered = (await http.post("/v1/chat/completions/render", json={"messages": messages})).json()
            asked = {"messages": messages, "continue_final_message": True}
            tokens = (await http.post("/tokenize", json=asked)).json()["tokens"]
    assert tokens == rendered["token_ids"] == TOK.encode(engine.prompts[0])
    assert engine.prompts[0].endswith("assistant\nThe answer is")


def test_the_usual_end_needs_no_arguments():
    assert prompt_end_kwargs(None, False) == prompt_end_kwargs(True, False) == {}
    with pytest.raises(RequestError, match="is to be continued, and add_generation_prompt"):
        prompt_end_kwargs(True, "content")
