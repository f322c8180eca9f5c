"""Requests and tokens a minute of each client."""

import json

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from serving import TOK, Endless, Script, eventually, http_of, say, serving, socket_to, until

from tokenweir.stream.serve.limits import rates
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.limits.rates import Rates, TokenBucket
from tokenweir.stream.serve.wire.shared.errors import RequestError

CASES = cases(__file__)

pytestmark = pytest.mark.anyio

TOLD = {"role": "user", "content": "hi"}


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@given(
    st.integers(1, 10_000),
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 3000)), max_size=20),
    st.integers(1, 100),
)
def test_after_the_time_told_and_not_before_there_is_enough(rate, spent, amount):
    clock = Clock()
    bucket = TokenBucket(rate, clock)
    for seconds, tokens in spent:
        clock.now += seconds
        bucket.spend("client", tokens)
    amount = min(amount, rate)
    seconds = bucket.wait("client", amount)
    assert bucket.wait("another", amount) == 0
    if seconds:
        clock.now += seconds - 1
        assert bucket.wait("client", amount) == 1
        clock.now += 1
    assert bucket.wait("client", amount) == 0


def test_a_minute_has_as_many_requests_as_the_rate_says():
    clock = Clock()
    counted = Rates(Limits(max_requests_per_minute=6), clock=clock)
    for _ in range(6):
        counted.request("client")
    for seconds in (10, 9):
        with pytest.raises(RequestError) as refused:
            counted.request("client")
        assert (refused.value.status, refused.value.retry_after) == (429, seconds)
        clock.now += 1
    counted.request("another")
    clock.now += 8
    counted.request("client")
    with pytest.raises(RequestError, match="6 requests a minute; try again in 10 s"):
        counted.request("client")


def test_clients_are_forgotten(monkeypatch):
    monkeypatch.setattr(rates, "MOST_CLIENTS", 10)
    clock = Clock()
    bucket = TokenBucket(60, clock)
    for number in range(100):
        bucket.spend(str(number), 1)
    assert len(bucket._full_at) == 10 and "99" in bucket._full_at
    clock.now += 60
    bucket.spend("last", 1)
    assert [*bucket._full_at] == ["last"]


def test_nothing_is_counted_without_a_rate():
    bucket = TokenBucket(0)
    bucket.spend("client", 10**9)
    assert bucket.wait("client", 10**9) == 0 and not bucket._full_at


@pytest.mark.parametrize(("path", "body"), CASES["requests_above_the_rate_are_refused_on_each_path"])
async def test_requests_above_the_rate_are_refused_on_each_path(path, body):
    async with (
        serving(Script("fine", "<|im_end|>"), api_key=["one", "two"], max_requests_per_minute=2) as server,
        http_of(server, key="one") as http,
    ):
        for _ in range(2):
            assert (await http.post(path, json=body)).status_code == 200
        reply = await http.post(path, json=body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        assert 1 <= int(reply.headers["retry-after"]) <= 30
        assert (await http.get("/v1/models")).status_code == 200
        async with http_of(server, key="two") as other:
            assert (await other.post(path, json=body)).status_code == 200
        assert 'tokenweir:rate_limited_total{unit="requests"} 1.0' in (await http.get("/metrics")).text
        assert server._app.service.admission.connections == 0


async def test_the_turns_of_a_websocket_count():
    async with (
        serving(Script("fine", "<|im_end|>"), max_requests_per_minute=2) as server,
        socket_to(server) as websocket,
    ):
        for _ in range(2):
            await say(websocket)
            await until(websocket, "response.completed")
        await say(websocket)
        event = (await until(websocket, "error"))[-1]
        assert (event["status"], event["error"]["code"]) == (429, "rate_limit_exceeded")
        assert "try again in" in event["error"]["message"]
        async with http_of(server, key="one") as http:
            assert (await http.post("/tokenize", json={"prompt": "hi"})).status_code == 429


async def test_tokens_of_prompts_and_answers_count():
    prompt = "the fox " * 100
    size = len(TOK.encode(prompt))
    async with (
        serving(Script("the fox " * 60, "<|im_end|>"), max_tokens_per_minute=300) as server,
        http_of(server, key="one") as http,
    ):
        clock = Clock()
        server._app.service.rates._tokens._clock = clock
        reply = await http.post("/v1/completions", json={"prompt": prompt, "max_tokens": 1000, "n": 2})
        usage = reply.json()["usage"]
        assert usage["prompt_tokens"] == size and usage["total_tokens"] > 300
        for _ in range(2):
            reply = await http.post("/v1/completions", json={"prompt": "hi"})
            assert (reply.status_code, reply.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        wait = int(reply.headers["retry-after"])
        assert wait == -(-(usage["total_tokens"] - 300 + 1) // 5)
        async with socket_to(server) as websocket:
            await say(websocket)
            assert (await until(websocket, "error"))[-1]["status"] == 429
        clock.now += wait - 1
        assert (await http.post("/v1/completions", json={"prompt": "hi"})).status_code == 429
        clock.now += 1
        assert (await http.post("/v1/completions", json={"prompt": "hi"})).status_code == 200


async def test_tokens_of_an_answer_that_is_left_count():
    async with (
        serving(Endless(), max_tokens_per_minute=300, max_output_tokens=10**9) as server,
        http_of(server, key="one") as http,
    ):
        body = {"messages": [TOLD], "stream": True}
        seen = 0
        async with http.stream("POST", "/v1/chat/completions", json=body) as reply:
            async for line in reply.aiter_lines():
                seen += len(line)
                if seen > 10_000:
                    break
        await eventually(lambda: server._app.service.admission.generations == 0)
        reply = await http.post("/v1/chat/completions", json={"messages": [TOLD]})
        assert reply.status_code == 429 and json.loads(reply.content)["error"]["message"].startswith(
            "you may use 300 tokens"
        )
