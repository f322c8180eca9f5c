"""`history="exact"` in the server: an answer that a client sends back keeps the ids that the engine sampled."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from serving import TOK, http_of, serving, socket_to, until

from tokenweir.stream.events.step import EngineStep

END = TOK.token_to_id("<|im_end|>")
BYTES = {TOK.token_bytes(i)[0]: i for i in reversed(range(TOK.vocab_size)) if len(TOK.token_bytes(i)) == 1}
TEXT = "Once upon a time there was a weir."
CALL = '<tool_call>\n{"name":"read","arguments":{"path":"a b"}}\n</tool_call>'
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
USER = {"role": "user", "content": "Tell."}


def spelled(text):
    """Ids of a text, one a byte: a spelling that no encoding has."""
    return [BYTES[byte] for byte in text.encode()]


class Sampler:
    """An engine that plays one list of ids, steps or lists of them an answer, and keeps its prompts."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.ids = []

    async def generate(self, prompt_ids, sampling):
        self.ids.append(list(prompt_ids))
        for item in self.answers.pop(0):
            if isinstance(item, float):
                await asyncio.sleep(item)
            else:
                yield [item] if isinstance(item, int) else item


class Parallel(Sampler):
    """An engine that generates several answers at once."""

    parallel = True


@asynccontextmanager
async def exact(engine, **options):
    async with serving(engine, **{"history": "exact"} | options) as server, http_of(server) as client:
        yield server, client


async def complete(client, messages, path="/v1/chat/completions", headers=None, **more):
    reply = await client.post(path, json={"messages": messages} | more, headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def second_prompt(answer, *, back=None, options=None, **more):
    """The ids of the prompt that has the answer as history, and the delivered message."""
    engine = Sampler(answer, [END])
    async with exact(engine, **options or {}) as (_, client):
        message = (await complete(client, [USER], **more))["choices"][0]["message"]
        message = message if back is None else back(message)
        after = {"role": "user", "content": "Go on."}
        if message.get("tool_calls"):
            after = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "found"}
        await complete(client, [USER, message, after], **more | {"max_tokens": 5})
    first, second = engine.ids
    assert TOK.decode(second[: len(first)], skip_special_tokens=False) == TOK.decode(first, skip_special_tokens=False)
    return second[len(first) :], message


def canonical(ids):
    """The ids of the text of ids, all of which may be control tokens."""
    return TOK.encode(TOK.decode(ids, skip_special_tokens=False), add_special_tokens=False)


async def test_an_answer_that_comes_back_keeps_its_ids():
    ids = [*spelled(TEXT), END]
    found, message = await second_prompt(ids)
    assert message["content"] == TEXT
    assert found[: len(ids)] == ids
    assert found[len(ids) :] == canonical(found[len(ids) :])


async def test_by_default_ids_are_those_of_the_text():
    found, _ = await second_prompt([*spelled(TEXT), END], options={"history": "canonical"})
    assert found == canonical(found)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_was_cut_by_length_gets_the_close_of_the_template(stream):
    ids = spelled(TEXT)
    engine = Sampler([*ids, END], [END])
    async with exact(engine) as (_, client):
        body = {"messages": [USER], "max_tokens": 9, "stream": stream}
        assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
        await complete(client, [USER, {"role": "assistant", "content": TEXT[:9]}, USER])
    first, second = engine.ids
    assert second[len(first) : len(first) + 10] == [*ids[:9], END]


async def test_a_stop_string_keeps_the_ids_of_the_delivered_text():
    ids = [*spelled("One two"), *TOK.encode(" STOP", add_special_tokens=False), *spelled(" three"), END]
    found, message = await second_prompt(ids, stop=[" STOP"])
    assert message["content"] == "One two"
    assert found[: len("One two") + 1] == [*spelled("One two"), END]


async def test_an_id_that_straddles_a_stop_string_is_encoded_anew():
    word = TOK.encode(" water", add_special_tokens=False)[0]
    assert len(TOK.token_bytes(word)) > 3
    piece = TOK.token_bytes(word).decode()
    found, message = await second_prompt([*spelled("One"), word, *spelled(" more"), END], stop=[piece[2:]])
    assert message["content"] == "One" + piece[:2]
    assert found[:3] == spelled("One")
    rest = found[: found.index(END)]
    assert word not in rest and TOK.decode(rest) == "One" + piece[:2]


async def test_a_cancelled_answer_is_not_kept():
    ids = spelled(TEXT)
    engine = Sampler([*ids[:5], 5.0, *ids], [END])
    async with exact(engine) as (server, _), socket_to(server) as websocket:
        await websocket.send(json.dumps({"type": "response.create", "input": "Tell."}))
        await until(websocket, "response.output_text.delta")
        await websocket.send(json.dumps({"type": "response.cancel"}))
        (*_, last) = await until(websocket, "response.incomplete")
        (item,) = last["response"]["output"]
        again = {"type": "response.create", "input": "Go on.", "previous_response_id": last["response"]["id"]}
        await websocket.send(json.dumps(again))
        await until(websocket, "response.completed")
        assert server._app.service.prompts.counts.kept_ids == 0
    first, second = engine.ids
    assert item["content"][0]["text"] == TEXT[:5]
    assert second[len(first) :] == canonical(second[len(first) :])


@pytest.mark.parametrize("kind", [Sampler, Parallel])
async def test_each_of_several_answers_keeps_its_own_ids(kind):
    texts = ["The first weir.", "A second weir."]
    answers = [[*spelled(text), END] for text in texts]
    if kind is Parallel:
        both = [EngineStep([token_id], index=i) for i, ids in enumerate(answers) for token_id in ids]
        engine = Parallel(both, [END], [END])
    else:
        engine = Sampler(*answers, [END], [END])
    async with exact(engine) as (_, client):
        choices = (await complete(client, [USER], n=2))["choices"]
        assert [choice["message"]["content"] for choice in choices] == texts
        for choice in choices:
            await complete(client, [USER, choice["message"], USER])
    first = engine.ids[0]
    for ids, prompt in zip(answers, engine.ids[-2:], strict=True):
        assert prompt[len(first) : len(first) + len(ids)] == ids


async def test_arguments_that_were_serialised_again_are_the_same_message():
    """The template writes other text for them, so what is before the call is kept, and the call's text is the template's."""

    def back(message):
        call = message["tool_calls"][0]
        assert call["function"]["arguments"] == '{"path":"a b"}'
        function = {"name": "read", "arguments": '{ "path" : "a b" }'}
        return message | {"tool_calls": [{"id": "renamed", "type": "function", "function": function}]}

    said = "I look."
    ids = [*spelled(f"{said}\n{CALL}"), END]
    found, message = await second_prompt(ids, back=back, tools=[TOOL])
    assert message["content"].startswith(said)
    assert found[: len(said) - 1] == spelled(said)[:-1]  # there is no cut between a stop and a line feed
    sampled, _ = await second_prompt(ids, back=back, tools=[TOOL], options={"history": "sampled"})
    assert sampled[: len(ids)] == ids


async def test_an_incomplete_call_is_not_kept():
    said = spelled(f"I look.\n{CALL[:40]}")
    found, message = await second_prompt(said, tools=[TOOL])
    assert message["tool_calls"]
    assert found == canonical(found)


async def test_thinking_that_a_client_drops_makes_another_message():
    engine = Sampler([*spelled("<think>\nIt flows.\n</think>\n\nYes."), END], [END])
    async with exact(engine) as (server, client):
        message = (await complete(client, [USER]))["choices"][0]["message"]
        assert message["reasoning_content"].strip() == "It flows."
        await complete(client, [USER, {"role": "assistant", "content": message["content"]}, USER])
        assert server._app.service.prompts.counts.kept_ids == 0
    assert engine.ids[1] == canonical(engine.ids[1])


async def test_what_was_not_delivered_to_this_client_is_canonical():
    ids = [*spelled(TEXT), END]
    for headers, text in (({"authorization": "Bearer two"}, TEXT), ({"authorization": "Bearer one"}, TEXT + "!")):
        engine = Sampler(ids, [END], [END])
        async with exact(engine, api_key=["one", "two"]) as (_, client):
            await complete(client, [USER], headers={"authorization": "Bearer one"})
            await complete(client, [USER, {"role": "assistant", "content": text}, USER], headers=headers)
        assert engine.ids[1] == canonical(engine.ids[1])


async def test_no_store_keeps_an_answer_out():
    engine = Sampler([*spelled(TEXT), END], [END])
    async with exact(engine) as (_, client):
        await complete(client, [USER], headers={"cache-control": "no-store"})
        await complete(client, [USER, {"role": "assistant", "content": TEXT}, USER])
    assert engine.ids[1] == canonical(engine.ids[1])


async def test_ids_that_the_engine_did_not_tell_are_inferred():
    text = spelled(TEXT)
    steps = [text[0], EngineStep([*text[1:4]], inferred=2), *text[4:], END]
    engine = Sampler(steps, [END])
    async with exact(engine) as (server, client):
        message = (await complete(client, [USER]))["choices"][0]["message"]
        prompts = server._app.service.prompts
        found = prompts.render(
            [USER, message],
            template=server._app.service._answer.__self__._engines.template,
            tokenizer=TOK,
            tenant=prompts._store.kept[0].key[0],
            history="exact",
        )
    ((start, _, _),) = found.kept
    assert found.sampled[start : start + 5].tolist() == [1, 2, 2, 1, 1]


@pytest.mark.parametrize("store", [True, False])
async def test_responses_continue_with_the_sampled_ids(store):
    ids = [*spelled(TEXT), END]
    engine = Sampler(ids, [END])
    async with exact(engine) as (_, client):
        first = (await client.post("/v1/responses", json={"input": "Tell."})).json()
        if store:
            body = {"input": "Go on.", "previous_response_id": first["id"]}
        else:
            said = [{"role": "user", "content": "Tell."}, *first["output"]]
            body = {"input": [*said, {"role": "user", "content": "Go on."}]}
        assert (await client.post("/v1/responses", json=body)).status_code == 200
    first, second = engine.ids
    assert second[len(first) : len(first) + len(ids)] == ids


async def test_anthropics_messages_keep_the_sampled_ids():
    ids = [*spelled(TEXT), END]
    engine = Sampler(ids, [END])
    async with exact(engine) as (_, client):
        options = {"path": "/v1/messages", "model": "default", "max_tokens": 99}
        message = await complete(client, [USER], **options)
        await complete(client, [USER, {"role": "assistant", "content": message["content"]}, USER], **options)
    first, second = engine.ids
    assert second[len(first) : len(first) + len(ids)] == ids


async def test_many_turns_leave_one_tape_of_ids():
    turns = 6
    answers = [[*spelled(f"Answer {turn}. " * 30), END] for turn in range(turns)]
    engine = Sampler(*answers, [END])
    async with exact(engine) as (server, client):
        messages = [{"role": "user", "content": "Tell."}]
        for _ in range(turns):
            message = (await complete(client, messages))["choices"][0]["message"]
            messages += [{"role": "assistant", "content": message["content"]}, {"role": "user", "content": "Go on."}]
        await complete(client, messages)
        assert len(server._app.service.prompts) <= 3
    last = engine.ids[-1]
    for ids in answers:
        assert any(last[i : i + len(ids)] == ids for i in range(len(last)))


@pytest.mark.parametrize("options", [{"history": "old"}, {"history": "exact", "prompt_cache": False}])
async def test_a_history_that_cannot_be_is_refused(options):
    with pytest.raises(ValueError, match="history"):
        async with serving(Sampler(), **options):
            pass
