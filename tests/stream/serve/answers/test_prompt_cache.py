"""The server's cache of prompts: it changes no ids, counts in the budget, and can be kept out."""

import json

import pytest
from serving import TOK, Script, eventually, http_of, metrics_of, serving, socket_to, until

from tokenweir.stream.events.step import EngineStep
from tokenweir.stream.serve.app import application

LONG = "some words again. " * 200


class Recording(Script):
    """An engine that keeps the ids of its prompts."""

    async def generate(self, prompt_ids, sampling):
        self.ids = [*getattr(self, "ids", []), list(prompt_ids)]
        async for step in super().generate(prompt_ids, sampling):
            yield step


def messages(*texts):
    return [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(texts)]


async def ask(server, *texts, path="/v1/chat/completions", **headers):
    body = {"messages": messages(*texts)} if "chat" in path else {"input": messages(*texts)}
    async with http_of(server) as client:
        reply = await client.post(path, json=body, headers=headers)
    assert reply.status_code == 200, reply.text


async def metric(server, name):
    return (await metrics_of(server))[f"tokenweir:{name}"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_the_next_turn_takes_over_the_ids_of_the_last_one(path):
    engine, plain = Recording("ok"), Recording("ok")
    async with serving(engine) as server, serving(plain, prompt_cache=False) as without:
        for each in (server, without):
            await ask(each, LONG, path=path)
            await ask(each, LONG, "ok", "And then?", path=path)
        assert await metric(server, "prompt_ids_reused_total") > 0.7 * len(engine.ids[0])
        assert await metric(without, "prompt_ids_reused_total") == 0
        assert await metric(server, "stored_bytes") > await metric(without, "stored_bytes")
    assert engine.ids == plain.ids


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_no_store_keeps_a_request_out(path):
    async with serving(Script("ok")) as server:
        await ask(server, LONG, path=path, **{"Cache-Control": "no-store"})
        await ask(server, LONG, path=path)
        assert await metric(server, "prompt_ids_reused_total") == 0
        await ask(server, LONG, path=path, **{"Cache-Control": "no-store, private"})
        assert await metric(server, "prompt_ids_reused_total") == 0
        await ask(server, LONG, path=path)
        assert await metric(server, "prompt_ids_reused_total") > 500


async def test_clients_share_nothing():
    async with serving(Script("ok"), api_key=["one", "two"]) as server:
        await ask(server, LONG, Authorization="Bearer one")
        await ask(server, LONG, Authorization="Bearer two")
        assert server._app.service.prompts.counts.reused_ids == 0
        await ask(server, LONG, Authorization="Bearer two")
        assert server._app.service.prompts.counts.reused_ids > 500


async def test_a_socket_takes_part():
    async with serving(Script("ok")) as server, socket_to(server) as websocket:
        for _ in range(2):
            await websocket.send(json.dumps({"type": "response.create", "input": LONG, "store": False}))
            await until(websocket, "response.completed")
        assert await metric(server, "prompt_ids_reused_total") > 500


async def test_no_store_keeps_the_messages_of_a_socket_out():
    async with serving(Script("ok")) as server:
        for _ in range(2):
            async with socket_to(server, additional_headers={"Cache-Control": "No-Store"}) as websocket:
                await websocket.send(json.dumps({"type": "response.create", "input": LONG}))
                await until(websocket, "response.completed")
        assert await metric(server, "prompt_ids_reused_total") == 0
        assert len(server._app.service.prompts) == 0


async def test_a_wrong_prompt_is_found_logged_and_forgotten(monkeypatch, caplog):
    monkeypatch.setattr(application, "CHECK_EVERY", 1)
    engine = Recording("ok")
    async with serving(engine) as server:
        await ask(server, LONG)
        (kept,) = server._app.service.prompts._store.kept
        kept.tape = other_tape(engine.ids[0])
        await ask(server, LONG, "ok", "And then?")
        assert await metric(server, "prompts_wrong_total") == 1
    assert TOK.decode(engine.ids[1], skip_special_tokens=False).count("again.") == 200
    (record,) = [record for record in caplog.records if record.name == "tokenweir.prompts"]
    assert "had wrong ids" in record.getMessage()
    assert "some words" not in record.getMessage()


def other_tape(ids):
    """A tape of the prompt's text by a tokenizer that has other ids for it."""
    from tokenweir.encode import _core
    from tokenweir.encode.tokenizer import core_of

    other = TOK.with_added_tokens(["again"])
    return _core.tape(core_of(other).encoder, TOK.decode(ids, skip_special_tokens=False), [], None)


class Caching(Script):
    """An engine that had all of a prompt but its last id, and tells so with its first ids."""

    async def generate(self, prompt_ids, sampling):
        yield EngineStep(TOK.encode("ok"), cached=len(prompt_ids) - 1)


async def test_usage_and_metrics_have_what_the_engine_had_in_its_cache():
    async with serving(Caching(), history="exact") as server, http_of(server) as client:
        said = messages("Hi")
        usage = (await client.post("/v1/chat/completions", json={"messages": said, "n": 2})).json()["usage"]
        cached = usage["prompt_tokens"] - 1
        assert usage["prompt_tokens_details"] == {"cached_tokens": cached}
        usage = (await client.post("/v1/completions", json={"prompt": ["Hi there", "Hi you"]})).json()["usage"]
        assert usage["prompt_tokens_details"] == {"cached_tokens": usage["prompt_tokens"] - 2}
        usage = (await client.post("/v1/responses", json={"input": "Hi"})).json()["usage"]
        assert usage["input_tokens_details"]["cached_tokens"] == usage["input_tokens"] - 1
        body = {"model": "default", "max_tokens": 9, "messages": said}
        usage = (await client.post("/v1/messages", json=body)).json()["usage"]
        assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (1, cached)
        text = (await client.get("/metrics")).text
        completions = len(TOK.encode("Hi there")) + len(TOK.encode("Hi you")) - 2
        assert f'prompt_tokens_cached_total{{model_name="default"}} {float(3 * cached + completions)}' in text


async def test_metrics_count_kept_and_declined_answers():
    async with serving(Script("ok<|im_end|>"), history="exact") as server:
        await ask(server, "Hi")
        await ask(server, "Hi", "ok", "And then?")
        assert await metric(server, "prompt_ids_kept_total") == len(TOK.encode("ok<|im_end|>"))
        await ask(server, "Hi", "no", "And then?")
        assert await metric(server, 'prompts_declined_total{reason="nothing"}') == 1


async def respond(client, headers=None, **body):
    reply = await client.post("/v1/responses", json=body, headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_delete_drops_a_response_and_the_tapes_of_its_conversation():
    async with serving(Script("ok<|im_end|>"), history="exact") as server, http_of(server) as client:
        prompts = server._app.service.prompts
        other = await respond(client, input=f"Other {LONG}")
        kept = len(prompts)
        first = await respond(client, input=LONG)
        second = await respond(client, input="Go on.", previous_response_id=first["id"])
        await respond(client, input="On.", previous_response_id=second["id"], store=False)  # its tape has all of them
        assert len(prompts) > kept
        reply = await client.delete(f"/v1/responses/{first['id']}")
        assert reply.json() == {"id": first["id"], "object": "response", "deleted": True}
        assert len(prompts) == kept
        before = prompts.counts.reused_ids
        await respond(client, input=LONG)
        assert prompts.counts.reused_ids - before < 100
        reply = await client.delete(f"/v1/responses/{first['id']}")
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "response_not_found")
        body = {"input": "Go on.", "previous_response_id": first["id"]}
        assert (await client.post("/v1/responses", json=body)).status_code == 404
        assert (await client.delete(f"/v1/responses/{other['id']}")).status_code == 200


async def test_a_client_deletes_its_own_responses_only():
    one, two = ({"authorization": f"Bearer {key}"} for key in ("one", "two"))
    async with serving(Script("ok"), api_key=["one", "two"]) as server, http_of(server) as client:
        response = await respond(client, one, input=LONG)
        assert (await client.delete(f"/v1/responses/{response['id']}", headers=two)).status_code == 404
        assert len(server._app.service.prompts) == 1
        again = {"input": "Go on.", "previous_response_id": response["id"]}
        assert (await client.post("/v1/responses", json=again, headers=one)).status_code == 200


async def test_delete_stops_a_background_response():
    engine = Script("ok", 20.0, "more")
    async with serving(engine) as server, http_of(server) as client, socket_to(server) as websocket:
        await websocket.send(json.dumps({"type": "response.create", "input": LONG, "background": True}))
        (created, *_) = await until(websocket, "response.output_text.delta")
        reply = await client.delete(f"/v1/responses/{created['response']['id']}")
        assert reply.json()["deleted"]
        await eventually(lambda: engine.closed_at)
        assert len(server._app.service.prompts) == 0
