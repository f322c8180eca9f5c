"""Streams of ids chunk by chunk: the joined chunks are the whole answer, however it is cut; states are not trusted."""

import json
import threading
from base64 import b64decode, b64encode

import msgspec
import pytest
from case_tables import cases
from derendering import ANSWERS, CHAT, HI, TEMPLATE, TEXT, TOOL, cut, derender, generated, joined, post
from msgspec.structs import replace
from serving import TOK, Script, http_of, serving

from tokenweir.stream.decode import saved_state
from tokenweir.stream.decode.saved_state import DIGEST, MAGIC
from tokenweir.stream.serve.tokens import stream

CASES = cases(__file__)

PROMPT = TOK.encode("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
FIRST = {"prompt_token_ids": PROMPT}
SAID = {"chat_request": {"messages": HI}}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("sizes", [[1], [8], [2, 0, 5], [1000]], ids=str)
async def test_joined_chunks_are_the_whole_answer(name, sizes):
    text, options = ANSWERS[name]
    request = {"messages": HI} | options
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        body = {"generate_response": generated(text), "chat_request": request}
        (whole,) = (await post(client, CHAT, body | FIRST))["choices"]
        chunks, _ = await derender(client, CHAT, cut(TOK.encode(text), sizes), first=FIRST, chat_request=request)
    message, end = joined(chunks)
    assert message["content"] == (whole["message"]["content"] or "")
    assert message["reasoning"] == whole["message"].get("reasoning", "")
    calls = [[c["function"]["name"], c["function"]["arguments"]] for c in whole["message"].get("tool_calls", [])]
    assert message["calls"] == calls
    assert end == (whole["finish_reason"], whole["stop_reason"])
    assert {(chunk["id"], chunk["object"], chunk["model"]) for chunk in chunks} == {
        ("r", "chat.completion.chunk", "default")
    }
    assert [chunk["choices"][0]["delta"].get("role") for chunk in chunks] == ["assistant"] + [None] * (len(chunks) - 1)


async def test_open_thinking_is_known_from_the_first_chunk_on():
    opened = {"prompt_token_ids": [*PROMPT, *TOK.encode("<think>")]}
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        chunks, _ = await derender(client, CHAT, cut(TOK.encode("Hm.</think>Yes."), [1]), first=opened, **SAID)
    message, _ = joined(chunks)
    assert (message["reasoning"], message["content"]) == ("Hm.", "Yes.")


async def test_the_prompt_may_come_from_the_engine():
    chunk = {"choices": [{"index": 0, "token_ids": TOK.encode("Yes")}], "prompt_token_ids": PROMPT}
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        body = {"stream": True, "generate_chunk": chunk} | SAID
        given = await post(client, CHAT, body)
        chunk.pop("prompt_token_ids")
        error = (await post(client, CHAT, body | {"chat_request": {}}, 400))["error"]  # nor does it have messages
    assert given["chunk"]["choices"][0]["delta"]["content"] == "Yes"
    assert given["chunk"]["id"].startswith("chatcmpl")
    assert error["param"] == "prompt_token_ids"


async def test_answers_side_by_side_have_a_state_each():
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        first, other = [], []
        states = {0: None, 1: None}
        for one, two in zip(TOK.encode("wörld 🙂 one"), TOK.encode("<think>wörld 🙂 two"), strict=False):
            for index, token_id, chunks in ((0, one, first), (1, two, other)):
                choice = {"index": index, "token_ids": [token_id]}
                body = {"stream": True, "generate_chunk": {"choices": [choice]}, "stream_state": states[index]}
                given = await post(client, CHAT, body | SAID | FIRST)
                states[index] = given["stream_state"]
                chunks.append(given["chunk"])
        crossed = body | SAID | {"stream_state": states[0]}  # of answer 0, for a chunk of answer 1
        error = (await post(client, CHAT, crossed, 400))["error"]
    assert error["param"] == "stream_state"
    assert all(chunk["choices"][0]["index"] == 1 for chunk in other)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in first) == "wörld 🙂 one"


async def test_usage_at_the_end_and_in_every_chunk():
    usage = {"prompt_tokens": 99, "completion_tokens": 3, "total_tokens": 102}
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        chunks, state = await derender(client, CHAT, [TOK.encode("one")], first=FIRST, **SAID)
        body = {"stream": True, "generate_chunk": {"choices": [], "usage": usage}, "stream_state": state} | SAID
        last = await post(client, CHAT, body)
        asked = await post(client, CHAT, body | {"prompt_tokens": 77})
        choice = {"index": 0, "token_ids": [], "finish_reason": None}
        during = await post(client, CHAT, body | {"generate_chunk": {"choices": [choice], "usage": usage}})
    assert last["chunk"]["choices"] == [] and last["chunk"]["id"] == "r" and last["stream_state"] == state
    assert last["chunk"]["usage"] == {
        "prompt_tokens": len(PROMPT),
        "completion_tokens": 3,
        "total_tokens": len(PROMPT) + 3,
    }
    assert asked["chunk"]["usage"]["prompt_tokens"] == 77
    assert during["chunk"]["usage"]["completion_tokens"] == 3 and chunks[0]["usage"] is None


async def test_chunks_after_the_end_say_nothing():
    request = {"messages": HI, "stop": ["END"], "logprobs": True}
    pieces = cut(TOK.encode("one END two three four"), [1])
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        chunks, _ = await derender(
            client,
            CHAT,
            pieces,
            last="length",
            first=FIRST,
            chat_request=request,
            logprobs=lambda i: {"token_id": i, "logprob": -1},
        )
    message, end = joined(chunks)
    assert (message["content"], end) == ("one ", ("stop", "END"))
    assert chunks[-1]["choices"][0]["delta"] == {}
    rows = [row["token"] for chunk in chunks for row in chunk["choices"][0]["logprobs"]["content"]]
    assert "one END".startswith("".join(rows)[:7]) and "two" not in "".join(rows)


async def test_probabilities_stand_beside_any_parser():
    text = "<think>Hm.</think>wörld 🙂"
    ids = TOK.encode(text)
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        given = {"logprobs": lambda token_id: {"token_id": token_id, "logprob": -token_id / 8}}
        chat, _ = await derender(client, CHAT, cut(ids, [2]), first=FIRST, **SAID, **given)
        flat, _ = await derender(client, TEXT, cut(ids, [2]), **given)
    rows = [row for chunk in chat for row in chunk["choices"][0]["logprobs"]["content"]]
    assert b"".join(bytes(row["bytes"]) for row in rows).decode() == text
    assert [row["logprob"] for row in rows] == [-token_id / 8 for token_id in ids]
    choices = [chunk["choices"][0] for chunk in flat]
    assert "".join(choice["text"] for choice in choices) == text
    offsets = [offset for choice in choices for offset in choice["logprobs"]["text_offset"]]
    tokens = [token for choice in choices for token in choice["logprobs"]["tokens"]]
    whole = [(offset, token) for offset, token in zip(offsets, tokens, strict=True) if "\ufffd" not in token]
    assert len(whole) > 4 and all(text[offset:].startswith(token) for offset, token in whole)


async def test_completions_keep_thinking_in_the_text_and_stop():
    pieces = cut(TOK.encode("<think>a</think>b END c"), [3])
    request = {"prompt": "x", "stop": "END", "return_token_ids": True}
    async with serving(Script("")) as server, http_of(server) as client:
        chunks, _ = await derender(client, TEXT, pieces, completion_request=request)
    choices = [chunk["choices"][0] for chunk in chunks]
    assert "".join(choice["text"] for choice in choices) == "<think>a</think>b "
    assert [c["finish_reason"] for c in choices if c["finish_reason"]] == ["stop"]
    assert [c["token_ids"] for c in choices] == pieces and chunks[0]["object"] == "text_completion"


async def test_the_state_does_not_grow():
    call = '<tool_call>{"name": "weather", "arguments": {"a": ["' + "on and on " * 400 + '"]}}</tool_call>'
    request = {"messages": HI, "tools": [TOOL], "stop": ["never"]}
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        sizes = []
        for text in ("<think>" + "on and on " * 40, "<think>" + "on and on " * 400, call[:600], call[:-40]):
            chunks, state = await derender(
                client, CHAT, cut(TOK.encode(text), [200]), last=None, first=FIRST, chat_request=request
            )
            sizes.append(len(state["state"]))
    assert max(sizes) < 1000 and abs(sizes[0] - sizes[1]) < 40 and abs(sizes[2] - sizes[3]) < 40, (sizes, chunks[-1])


# --- states are not trusted -------------------------------------------------------------------------------------------


def forged(state, **changes):
    """A state with other numbers inside."""
    decoder, answer_id, created, chars, tokens = msgspec.msgpack.decode(b64decode(state["state"]))
    fields = {"decoder": decoder, "id": answer_id, "created": created, "chars": chars, "tokens": tokens} | changes
    return {"state": b64encode(msgspec.msgpack.encode(list(fields.values()))).decode()}


def with_decoder(state, change):
    """A state whose decoder's content is another, with a check that is right."""
    inside = msgspec.msgpack.decode(b64decode(state["state"]))[0]
    belongs = inside[len(MAGIC) + 1 :][:DIGEST]
    return forged(state, decoder=saved_state.write_state(change(saved_state.read_state(inside, belongs)), belongs))


async def test_a_hostile_state_is_refused():
    chunk = {"choices": [{"index": 0, "token_ids": TOK.encode("more"), "finish_reason": None}]}
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        _, state = await derender(client, CHAT, [TOK.encode("one")], last=None, first=FIRST, **SAID)
        text = state["state"]
        hostile = [
            "text",
            5,
            [],
            {},
            {"state": 5},
            {"state": "", "more": 1},
            {"state": ""},
            {"state": "not base64!"},
            {"state": text[:-8]},
            {"state": b64encode(b"\xc1" * 40).decode()},
            {"state": b64encode(msgspec.msgpack.encode([b"", "i", 0, 0])).decode()},
            forged(state, chars=-1),
            forged(state, chars="many"),
            forged(state, chars=2**64 - 1),
            forged(state, decoder=b"twd" + b"\x00" * 60),
            forged(state, decoder=b"x"),
            forged(state, decoder=b""),  # does not begin anew
            *(
                {"state": text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]}
                for place in range(8, 60)
            ),
        ]
        for wrong in hostile:
            body = {"stream": True, "generate_chunk": chunk, "stream_state": wrong} | SAID
            reply = await client.post(CHAT, json=body)
            assert reply.status_code == 400, (wrong, reply.text)
            assert reply.json()["error"]["param"].startswith("stream_state"), (wrong, reply.text)
        changed = {"stream": True, "generate_chunk": chunk, "stream_state": state, "chat_request": {"stop": ["x"]}}
        error = (await post(client, CHAT, changed, 400))["error"]
        assert error["param"] == "stream_state" and "other options" in error["message"]
        given = await post(client, CHAT, {"stream": True, "generate_chunk": chunk, "stream_state": state} | SAID)
    assert given["chunk"]["choices"][0]["delta"]["content"] == "more"


async def test_a_state_whose_parts_contradict_each_other_is_refused():
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        decoders = []
        for text in ("<thi", "one"):
            _, state = await derender(client, CHAT, [TOK.encode(text)], last=None, first=FIRST, **SAID)
            with_decoder(state, lambda said: decoders.append(said) or said)
        wrong = with_decoder(state, lambda said: replace(said, splitter=decoders[0].splitter))
        chunk = {"choices": [{"index": 0, "token_ids": TOK.encode("more")}]}
        error = await post(client, CHAT, {"stream": True, "generate_chunk": chunk, "stream_state": wrong} | SAID, 400)
    assert error["error"]["param"] == "stream_state"


@pytest.mark.parametrize(("body", "param"), CASES["what_cannot_be_decoded_is_refused_by_name"])
async def test_what_cannot_be_decoded_is_refused_by_name(body, param):
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        reply = await client.post(CHAT, json={"stream": True} | SAID | FIRST | body)
    assert reply.status_code == 400 and reply.json()["error"]["param"] == param, reply.text


async def test_any_worker_takes_any_chunk():
    """Another server continues what one began, because servers keep no state."""
    text, options = ANSWERS["a call"]
    request = {"messages": HI} | options
    pieces = cut(TOK.encode(text), [3])
    state, chunks = None, []
    async with (
        serving(Script(""), template=TEMPLATE) as one,
        serving(Script(""), template=TEMPLATE) as other,
        http_of(one) as first,
        http_of(other) as second,
    ):
        for number, piece in enumerate(pieces):
            reason = "stop" if number == len(pieces) - 1 else None
            chunk = {"choices": [{"index": 0, "token_ids": piece, "finish_reason": reason}]}
            body = {"stream": True, "generate_chunk": chunk, "stream_state": state, "chat_request": request} | FIRST
            given = await post(first if number % 2 else second, CHAT, body)
            state = given["stream_state"]
            chunks.append(given["chunk"])
    message, end = joined(chunks)
    assert json.loads(message["calls"][0][1]) == {"city": "Rome"} and end == ("tool_calls", None)
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_a_long_state_is_refused_off_the_event_loop(monkeypatch):
    threads = []
    read = stream.read_state
    monkeypatch.setattr(stream, "read_state", lambda text: threads.append(threading.current_thread()) or read(text))
    async with serving(Script(""), template=TEMPLATE) as server, http_of(server) as client:
        _, state = await derender(client, CHAT, [TOK.encode("one")], last=None, first=FIRST, **SAID)
        chunk = {"choices": [{"index": 0, "token_ids": [], "finish_reason": None}]}
        for held in ("", "<" * 300_000):
            wrong = with_decoder(
                state,
                lambda said, held=held: replace(said, splitter=[said.splitter[0], held, *said.splitter[2:]]),
            )
            body = {"stream": True, "generate_chunk": chunk, "stream_state": wrong} | SAID
            reply = await client.post(CHAT, json=body)
            assert reply.status_code == (400 if held else 200), reply.text
        assert reply.json()["error"]["param"] == "stream_state"
    assert [thread is threading.main_thread() for thread in threads] == [True, False]
