"""Small requests for large answers are refused before the answer is made."""

import json
import threading

import pytest
from serving import TOK, Script, http_of, serving

from tokenweir.stream.serve.http import api, replies
from tokenweir.stream.serve.limits.limits import Limits

pytestmark = pytest.mark.anyio

LONGEST = max(range(TOK.vocab_size), key=lambda token_id: len(TOK.token_bytes(token_id)))
SMALL = Limits(max_returned_tokens=50, max_outgoing_bytes_per_client=20_000, drain_timeout=0.2)


async def asked(path, body, *, engine=None, limits=SMALL):
    async with serving(engine or Script("fine", "<|im_end|>"), limits=limits) as server, http_of(server) as http:
        reply = await http.post(path, json=body)
        # A refusal does not close the connection.
        assert (await http.post("/tokenize", json={"prompt": "hi"})).status_code == 200
    return reply


def engine_answer(count, tops):
    top = {"token_id": 5, "logprob": -1.0}
    row = top | {"top_logprobs": [top] * tops}
    return {"choices": [{"index": 0, "token_ids": [5] * count, "logprobs": {"content": [row] * count}}]}


CHAT = {"model": "default", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("path", "body", "fits", "param"),
    [
        ("/detokenize", lambda n: {"tokens": [5] * n, "return_tokens": True}, 50, "return_tokens"),
        ("/tokenize", lambda n: {"prompt": " a" * n, "return_token_strs": True}, 50, "return_token_strs"),
        (
            "/v1/completions/derender",
            lambda n: {"generate_responses": [engine_answer(5, n - 1)]},
            10,
            "logprobs",
        ),
        (
            "/v1/completions/derender",
            lambda n: {"stream": True, "generate_chunk": engine_answer(1, n - 1)},
            50,
            "logprobs",
        ),
        (
            "/v1/chat/completions/derender",
            lambda n: {"generate_response": engine_answer(1, n - 1), "chat_request": CHAT},
            50,
            "logprobs",
        ),
    ],
)
async def test_tokens_that_are_described_one_by_one_are_bounded(path, body, fits, param):
    reply = await asked(path, body(fits))
    assert reply.status_code == 200, reply.text
    reply = await asked(path, body(fits + 1))
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (400, "answer_too_large", param)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/detokenize", lambda ids: {"tokens": ids}),
        (
            "/v1/completions/derender",
            lambda ids: {"generate_responses": [{"choices": [{"index": 0, "token_ids": ids}]}]},
        ),
        (
            "/v1/completions/derender",
            lambda ids: {"stream": True, "generate_chunk": {"choices": [{"index": 0, "token_ids": ids}]}},
        ),
    ],
)
async def test_ids_of_a_long_text_are_not_decoded(path, body):
    each = len(TOK.token_bytes(LONGEST))
    assert (await asked(path, body([LONGEST] * (8_000 // each)))).status_code == 200
    reply = await asked(path, body([LONGEST] * (10_000 // each + 1)))
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (400, "answer_too_large")
    assert "a text of" in error["message"]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_prompt_is_not_repeated_for_many_choices(stream):
    limits = Limits(max_outgoing_bytes_per_client=28_000, drain_timeout=0.2)
    body = {"prompt": [5] * 500, "return_token_ids": True, "stream": stream, "n": 4}
    assert (await asked("/v1/completions", body, limits=limits)).status_code == 200
    reply = await asked("/v1/completions", body | {"n": 5}, limits=limits)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "answer_too_large")


@pytest.mark.parametrize("path", ["/tokenize", "/v1/completions/render", "/v1/completions", "/v1/responses"])
async def test_an_answer_in_one_piece_is_bounded(path):
    prompt = "the fox " * 3_000
    body = {"input": prompt} if "responses" in path else {"prompt": prompt}
    engine = Script("the fox " * 3000, "<|im_end|>") if "v1" in path else None
    limits = Limits(max_outgoing_bytes_per_client=20_000, max_output_tokens=100_000, drain_timeout=0.2)
    reply = await asked(
        path, body | {"max_tokens": 50_000} if path == "/v1/completions" else body, engine=engine, limits=limits
    )
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (400, "answer_too_large")
    assert "this server sends 10000 in one piece" in error["message"]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/v1/responses"])
async def test_a_long_answer_is_encoded_off_the_event_loop(path, monkeypatch):
    made = []

    async def noted(make, tokens, limits):
        def work():
            made.append(threading.current_thread() is threading.main_thread())
            return make()

        return await replies.reply_with(work, tokens, limits)

    monkeypatch.setattr(api, "reply_with", noted)
    body = CHAT if "chat" in path else {"prompt": "hi", "max_tokens": 8000} if "comp" in path else {"input": "hi"}
    for words, on_the_loop in ((10, True), (2_000, False)):
        reply = await asked(
            path, body, engine=Script("the fox " * words, "<|im_end|>"), limits=Limits(drain_timeout=0.2)
        )
        assert json.loads(reply.content) and made.pop() is on_the_loop
