"""Whole answers in ids as completions: the same as those of the coupled server."""

import json

import pytest
from case_tables import cases
from derendering import ANSWERS, HI, TEMPLATE, generated, post
from serving import TOK, Script, http_of, serving

from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_is_that_of_the_coupled_server(name):
    text, options = ANSWERS[name]
    request = {"messages": HI} | options
    async with serving(Script(text), template=TEMPLATE) as server, http_of(server) as client:
        whole = await post(client, "/v1/chat/completions", request)
        rendered = await post(client, "/v1/chat/completions/render", request)
        body = {
            "generate_response": generated(text),
            "prompt_token_ids": rendered["token_ids"],
            "chat_request": request,
        }
        given = await post(client, "/v1/chat/completions/derender", body)
    expected, got = whole["choices"][0], given["choices"][0]
    assert got["finish_reason"] == expected["finish_reason"]
    theirs, ours = expected["message"], got["message"]
    assert ours["content"] == theirs["content"]
    assert ours.get("reasoning") == theirs.get("reasoning_content")
    assert [c["function"] for c in ours.get("tool_calls", [])] == [c["function"] for c in theirs.get("tool_calls", [])]
    assert given["id"] == "generate-tokens-1" and given["object"] == "chat.completion"
    assert given["usage"]["prompt_tokens"] == whole["usage"]["prompt_tokens"]
    assert given["usage"]["completion_tokens"] == len(TOK.encode(text))
    assert got["stop_reason"] == ("END" if "stop" in options else None)


async def test_the_prompt_says_whether_thinking_is_open():
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        body = {"generate_response": generated("Hm.</think>Yes.<|im_end|>"), "chat_request": {"messages": HI}}
        body["prompt_token_ids"] = TOK.encode("<|im_start|>assistant\n<think>")
        message = (await post(client, "/v1/chat/completions/derender", body))["choices"][0]["message"]
        assert (message["reasoning"], message["content"]) == ("Hm.", "Yes.")
        body["chat_request"]["include_reasoning"] = False
        message = (await post(client, "/v1/chat/completions/derender", body))["choices"][0]["message"]
        assert "reasoning" not in message and message["content"] == "Yes."


OPENED = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n<think>\n"
)


async def test_messages_stand_for_the_ids_of_their_prompt():
    """As in the example of vLLM's page on derender, which sends the request and how many ids its prompt had."""
    async with serving(Script(""), template=OPENED) as server, http_of(server) as client:
        rendered = await post(client, "/v1/chat/completions/render", {"messages": HI})
        response = generated("Hm.</think>Yes.<|im_end|>")
        body = {"generate_response": response, "chat_request": {"messages": HI}}
        for more, count in [({"prompt_tokens": 3}, 3), ({}, len(rendered["token_ids"]))]:
            given = await post(client, "/v1/chat/completions/derender", body | more)
            message = given["choices"][0]["message"]
            assert (message["reasoning"], message["content"]) == ("Hm.", "Yes.")
            assert given["usage"]["prompt_tokens"] == count
        body = {"stream": True, "generate_chunk": response, "stream_state": None, "chat_request": {"messages": HI}}
        delta = (await post(client, "/v1/chat/completions/derender", body))["chunk"]["choices"][0]["delta"]
        assert (delta["reasoning"], delta["content"]) == ("Hm.", "Yes.")
        body["chat_request"] = {"messages": [{"role": "king", "content": "hi"}]}
        error = (await post(client, "/v1/chat/completions/derender", body, 400))["error"]
        assert error["param"] == "chat_request.messages[0].role"


async def test_several_answers_and_engines_with_words_of_their_own():
    response = generated("one", "two") | {"usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}
    response["choices"][1] |= {"index": 3, "finish_reason": "abort"}
    async with serving(Script("")) as server, http_of(server) as client:
        body = {"generate_response": response, "chat_request": {"messages": HI, "return_token_ids": True}}
        given = await post(client, "/v1/chat/completions/derender", body)
    assert [(c["index"], c["message"]["content"], c["finish_reason"]) for c in given["choices"]] == [
        (0, "one", "stop"),
        (3, "two", "abort"),
    ]
    assert [c["token_ids"] for c in given["choices"]] == [TOK.encode("one"), TOK.encode("two")]
    assert given["usage"]["prompt_tokens"] == 7


@pytest.mark.parametrize("written", ["token_id", "token"])
async def test_probabilities_get_their_tokens(written):
    ids = TOK.encode("Hello wörld<|im_end|>")
    other = TOK.encode("dam")[0]
    name = TOK.token_bytes(other).decode()

    def row(token_id, logprob):
        return {written: token_id if written == "token_id" else f"token_id:{token_id}", "logprob": logprob}

    response = generated("Hello wörld<|im_end|>")
    response["choices"][0]["logprobs"] = {
        "content": [
            row(token_id, -0.5) | {"top_logprobs": [row(token_id, -0.5), row(other, -9999.0)]} for token_id in ids
        ]
    }
    async with serving(Script("")) as server, http_of(server) as client:
        chat = await post(
            client,
            "/v1/chat/completions/derender",
            {"generate_response": response, "chat_request": {"messages": HI, "logprobs": True}},
        )
        text = await post(client, "/v1/completions/derender", {"generate_responses": [response]})
    rows = chat["choices"][0]["logprobs"]["content"]
    assert b"".join(bytes(row["bytes"]) for row in rows).decode() == "Hello wörld<|im_end|>"
    assert rows[0]["top_logprobs"][1] == {"token": name, "bytes": list(name.encode()), "logprob": -9999.0}
    flat = text["choices"][0]["logprobs"]
    assert flat["tokens"] == [row["token"] for row in rows]
    assert flat["text_offset"][:2] == [0, len(rows[0]["token"])]
    assert flat["top_logprobs"][0] == {rows[0]["token"]: -0.5, name: -9999.0}


async def test_completions_of_several_prompts():
    answers = [generated("<think>one"), generated("two END three", reason="length")]
    body = {"generate_responses": answers, "prompt_tokens": [3, 4], "prompt_token_ids": [None, TOK.encode("a")]}
    body["completion_request"] = {"prompt": ["x", "a"], "stop": "END", "logprobs": 5}
    async with serving(Script("")) as server, http_of(server) as client:
        given = await post(client, "/v1/completions/derender", body)
    assert [(c["index"], c["text"], c["finish_reason"]) for c in given["choices"]] == [
        (0, "<think>one", "stop"),
        (1, "two ", "stop"),
    ]
    assert given["usage"]["prompt_tokens"] == 7 and given["object"] == "text_completion"


async def test_more_answers_than_a_request_may_have_are_refused():
    body = {"generate_responses": [{"choices": [CHOICE] * 8}] * 3}
    async with serving(Script("")) as server, http_of(server) as client:
        error = (await post(client, "/v1/completions/derender", body, 400))["error"]
    assert error["message"] == "generate_responses has 24 choices; this server takes 16 at most"


async def test_a_long_answer():
    text = "on and on " * 2000
    async with serving(Script("")) as server, http_of(server) as client:
        given = await post(client, "/v1/completions/derender", {"generate_responses": [generated(text)]})
    assert given["choices"][0]["text"] == text


CHOICE = {"index": 0, "token_ids": [5], "finish_reason": "stop"}


@pytest.mark.parametrize(("body", "param"), CASES["what_cannot_be_decoded_is_refused_by_name"])
async def test_what_cannot_be_decoded_is_refused_by_name(body, param):
    plain = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")
    async with serving(Script(""), template=plain) as server, http_of(server) as client:
        reply = await client.post("/v1/chat/completions/derender", json={"chat_request": {}} | body)
    assert reply.status_code in (400, 404) and reply.json()["error"]["param"] == param, reply.text


async def test_a_model_with_thinking_wants_the_request():
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        body = {"generate_response": {"choices": [CHOICE]}}
        error = (await post(client, "/v1/chat/completions/derender", body, 400))["error"]
    assert error["param"] == "chat_request", json.dumps(error)
