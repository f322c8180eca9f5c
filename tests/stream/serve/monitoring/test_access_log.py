"""The access log: a line a request, without content."""

import json
import logging

import pytest
from serving import Script, fetch, http_of, say, serving, socket_to, until
from websockets.exceptions import InvalidStatus


def lines(caplog):
    return [json.loads(record.message) for record in caplog.records if record.name == "tokenweir.access"]


async def test_a_line_a_request_without_content(caplog):
    caplog.set_level(logging.INFO, "tokenweir.access")
    async with serving(Script("an answer", "<|im_end|>"), api_key=["first", "second"]) as server:
        headers = {"Authorization": "Bearer second"}
        async with http_of(server, headers=headers) as http:
            body = {"messages": [{"role": "user", "content": "a question"}]}
            reply = await http.post("/v1/chat/completions?secret=1", json=body)
            await http.get("/nowhere/%1b[31m%0a")
            await http.get("/nowhere/%c2%9b31m%e2%80%ae%7f")
            await http.get("/v1/models", headers={"Authorization": "Bearer wrong"})
        async with socket_to(server, additional_headers=headers) as websocket:
            await say(websocket, input="a question")
            await until(websocket, "response.completed")
        with pytest.raises(InvalidStatus):
            await socket_to(server).__aenter__()
    told = [(line["client"], line["method"], line["path"], line["status"]) for line in lines(caplog)]
    assert told == [
        ("key 1", "POST", "/v1/chat/completions", 200),
        ("key 1", "GET", "/nowhere/\x1b[31m\n", 404),
        ("key 1", "GET", "/nowhere/\x9b31m\u202e\x7f", 404),
        ("address 127.0.0.1", "GET", "/v1/models", 401),
        ("key 1", "WEBSOCKET", "/v1/responses", 101),
        ("address 127.0.0.1", "WEBSOCKET", "/v1/responses", 401),
    ]
    assert lines(caplog)[0]["bytes"] == len(reply.content)
    assert all(line["seconds"] >= 0 and line["time"].endswith("+00:00") for line in lines(caplog))
    for hidden in ("secret", "question", "answer", "second", "wrong", "\x1b", "\x7f", "\x9b", "\u202e"):
        assert not any(hidden in record.message.replace("seconds", "") for record in caplog.records)


async def test_no_line_unless_somebody_wants_it(caplog):
    caplog.set_level(logging.WARNING, "tokenweir.access")
    async with serving(Script("fine", "<|im_end|>")) as server:
        await fetch(server, "/health")
    assert not lines(caplog)
