"""Images, sound and files through the server, by each of its interfaces; the engine is a double that takes media."""

import json
from base64 import b64encode
from contextlib import asynccontextmanager
from hashlib import sha256
from threading import get_ident

import openresponses_types as schemas
import pytest
from anthropic import BadRequestError
from anthropic.types import Message
from case_tables import cases
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pictures import TEMPLATE, Sighted, data_url, image, png, sound, text, user, wav
from serving import TOK, Script, anthropic_of, client_of, http_of, metrics_of, say, serving, socket_to, until

from tokenweir.stream.chat import media as media_module
from tokenweir.stream.chat.media import LONG_MEDIA, _decode
from tokenweir.stream.engines.no_engine import NoEngine
from tokenweir.stream.serve.answers import engines
from tokenweir.stream.serve.limits.fair_queue import FairQueue
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.templates.prompt import Prompt

CASES = cases(__file__)

ANSWER = ("A cat.", "<|im_end|>")
PNG = {"type": "base64", "media_type": "image/png", "data": b64encode(png()).decode()}
NOTE = "data:text/plain;base64," + b64encode("wörld".encode()).decode()


def served(engine, **limits):
    return serving(engine, template=TEMPLATE, send_interval=0, **limits)


async def posted(server, path, body):
    async with http_of(server) as client:
        return await client.post(path, json=body)


def prompt(content):
    return f"<|im_start|>user\n{content}<|im_end|>\n<|im_start|>assistant"


async def test_chat_completions_take_images_sound_and_text_files():
    engine = Sighted(*ANSWER)
    note = {"type": "file", "file": {"file_data": NOTE, "filename": "note.txt"}}
    messages = [user(text("Look: "), image(), sound(), note)]
    async with served(engine) as server, client_of(server) as client:
        answer = await client.chat.completions.create(model="default", messages=messages)
    ChatCompletion.model_validate(answer.model_dump())
    assert answer.choices[0].message.content == "A cat."
    assert engine.prompts == [prompt("Look: <image><audio>note.txt:\nwörld\n")]
    (media,) = engine.seen
    assert [each.digest for each in media.media] == [sha256(data).hexdigest() for data in (png(), wav())]


async def test_a_stored_response_keeps_its_image():
    engine = Sighted(*ANSWER)
    asked = [user({"type": "input_text", "text": "What? "}, {"type": "input_image", "image_url": data_url(png())})]
    async with served(engine) as server, client_of(server) as client:
        first = await client.responses.create(model="default", input=asked)
        again = await client.responses.create(model="default", input="Sure?", previous_response_id=first.id)
        held = (await metrics_of(server))["tokenweir:stored_bytes"]
    Response.model_validate(again.model_dump())
    assert again.output_text == "A cat."
    assert engine.prompts[1].count("<image>") == 1
    assert [media.media[0].digest for media in engine.seen] == [sha256(png()).hexdigest()] * 2
    assert held > 2 * len(data_url(png()))  # in both conversations


async def test_the_image_test_of_open_responses_over_the_socket():
    engine = Sighted(*ANSWER)
    content = [
        {"type": "input_text", "text": "What do you see in this image? Answer in one sentence."},
        {"type": "input_image", "image_url": data_url(png())},
    ]
    async with served(engine) as server, socket_to(server) as websocket:
        await say(websocket, input=[{"type": "message", "role": "user", "content": content}])
        events = await until(websocket, "response.completed")
    response = schemas.ResponseResource.model_validate(events[-1]["response"], strict=False)
    assert response.output
    assert len(engine.seen[0].media) == 1


async def test_messages_take_images_also_in_results_of_tools():
    engine = Sighted(*ANSWER)
    use = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [text("Seen: "), {"type": "image", "source": PNG}]}
    document = {
        "type": "document",
        "title": "note",
        "source": {"type": "text", "media_type": "text/plain", "data": "b"},
    }
    messages = [
        user({"type": "image", "source": PNG}, text("a"), document),
        {"role": "assistant", "content": [use]},
        user(result),
    ]
    async with served(engine) as server, anthropic_of(server) as client:
        answer = await client.messages.create(model="default", max_tokens=50, messages=messages)
        counted = await client.messages.count_tokens(model="default", messages=messages)
        with pytest.raises(BadRequestError, match="addresses are not fetched"):
            source = {"type": "url", "url": "https://example.com/a.png"}
            await client.messages.create(
                model="default", max_tokens=5, messages=[user({"type": "image", "source": source})]
            )
    Message.model_validate(answer.model_dump())
    assert "user\n<image>anote:\nb\n<|im_end|>" in engine.prompts[0]
    assert "tool\nSeen: <image><|im_end|>" in engine.prompts[0]
    assert len(engine.seen[0].media) == 2
    assert counted.input_tokens == answer.usage.input_tokens


BLIND = "messages[0].content[0] is an image, and this model's engine takes no image"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [user(image())]}),
        ("/v1/responses", {"input": [user({"type": "input_image", "image_url": data_url(png())})]}),
        ("/v1/messages", {"max_tokens": 5, "messages": [user({"type": "image", "source": PNG})]}),
        ("/v1/chat/completions/render", {"messages": [user(image())]}),
    ],
)
async def test_an_engine_without_vision_refuses_in_one_sentence(path, body):
    engine = Script(*ANSWER)
    async with served(engine) as server:
        reply = await posted(server, path, body)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"] == BLIND
    assert engine.started == 0


@pytest.mark.parametrize(("part", "limits", "said"), CASES["refusals_name_the_part"])
async def test_refusals_name_the_part(part, limits, said):
    engine = Sighted(*ANSWER)
    async with served(engine, **limits) as server:
        reply = await posted(server, "/v1/chat/completions", {"messages": [user(text("a"), part)]})
    error = reply.json()["error"]
    assert reply.status_code == 400
    assert said in error["message"]
    assert error["param"].startswith("messages[0].content[1]")
    assert engine.started == 0


async def test_a_large_image_takes_the_way_of_long_bodies():
    engine = Sighted(*ANSWER)
    data = png() + bytes(500_000)  # what stands behind the end of an image is ignored by readers
    url = data_url(data)
    source = {"type": "base64", "media_type": "image/png", "data": url.partition(",")[2]}
    async with served(engine) as server:
        replies = [
            await posted(server, "/v1/chat/completions", {"messages": [user(text("a"), image(data))]}),
            await posted(server, "/v1/responses", {"input": [user({"type": "input_image", "image_url": url})]}),
            await posted(
                server, "/v1/messages", {"max_tokens": 9, "messages": [user({"type": "image", "source": source})]}
            ),
            await posted(server, "/v1/chat/completions", {"messages": [user(image(data + bytes(500_000)))]}),
        ]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 413]
    assert replies[3].json()["error"]["message"] == "the body is longer than max_message_bytes=1048576"
    assert {seen.media[0].digest for seen in engine.seen} == {sha256(data).hexdigest()}


async def test_a_photograph_passes_where_the_limit_allows_it():
    engine, data = Sighted(*ANSWER), png() + bytes(6_000_000)
    async with served(engine, max_message_bytes=1 << 24) as server:
        reply = await posted(server, "/v1/chat/completions", {"messages": [user(text("a"), image(data))]})
    assert reply.status_code == 200 and engine.seen[0].media[0].digest == sha256(data).hexdigest()


async def test_models_tell_their_media_and_the_longest_message():
    engines = {"sighted": Sighted(*ANSWER), "blind": Script(*ANSWER)}
    async with served(engines, max_message_bytes=5000) as server, http_of(server) as client:
        models = (await client.get("/v1/models")).json()["data"]
    assert [(one["media"], one["max_message_bytes"]) for one in models] == [(["audio", "image"], 5000), ([], 5000)]


async def test_no_interface_decodes_large_media_on_the_event_loop(monkeypatch):
    here, threads = get_ident(), []
    monkeypatch.setattr(media_module, "_decode", lambda *given: threads.append(get_ident()) or _decode(*given))
    url = data_url(png() + bytes(LONG_MEDIA))
    source = {"type": "base64", "media_type": "image/png", "data": url.partition(",")[2]}
    chat = {"messages": [user({"type": "image_url", "image_url": {"url": url}})]}
    response = {"input": [user({"type": "input_image", "image_url": url})]}
    message = {"max_tokens": 9, "messages": [user({"type": "image", "source": source})]}
    async with served(Sighted(*ANSWER)) as server:
        for path, body in (
            ("/v1/chat/completions", chat),
            ("/v1/chat/completions/render", chat),
            ("/tokenize", chat),
            ("/v1/responses", response),
            ("/v1/responses/render", response),
            ("/v1/messages", message),
            ("/v1/messages/render", message),
            ("/v1/messages/count_tokens", {"messages": message["messages"]}),
        ):
            threads.clear()
            reply = await posted(server, path, body)
            assert (reply.status_code, len(threads)) == (200, 1), (path, reply.text[:300])
            assert here not in threads, path


async def test_addresses_go_to_the_engine_where_they_are_allowed():
    engine = Sighted(*ANSWER)
    address = "https://example.com/a.png"
    options = {"template": TEMPLATE, "limits": Limits(send_interval=0, drain_timeout=0.2), "remote_media": True}
    part = {"type": "image_url", "image_url": {"url": address}}
    source = {"type": "url", "url": address}
    async with serving(engine, **options) as server:
        body = {"max_tokens": 5, "messages": [user({"type": "image", "source": source})]}
        replies = [
            await posted(server, "/v1/chat/completions", {"messages": [user(part)]}),
            await posted(server, "/v1/messages", body),
            await posted(
                server, "/v1/chat/completions", {"messages": [user({**part, "image_url": {"url": "file:///x"}})]}
            ),
        ]
    assert [reply.status_code for reply in replies] == [200, 200, 400]
    digest = sha256(address.encode()).hexdigest()
    assert [(each.url, each.digest, each.size) for seen in engine.seen for each in seen.media] == [
        (address, digest, 0)
    ] * 2


async def test_the_media_of_all_answers_are_bounded_and_given_back():
    body = {"messages": [user(image())]}
    size = len(data_url(png()))
    async with served(Sighted(*ANSWER), max_held_media_bytes=size) as server:
        replies = [await posted(server, "/v1/chat/completions", body) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200] * 3
    async with served(Sighted(*ANSWER), max_held_media_bytes=size - 1) as server:
        reply = await posted(server, "/v1/chat/completions", body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "too_much_media")


async def test_render_tells_placeholders_and_hashes():
    messages = [user(text("a"), image(), text("b"), image(png(shade=3)), sound())]
    async with served(NoEngine()) as server:
        rendered = (await posted(server, "/v1/chat/completions/render", {"messages": messages})).json()
        same = (
            await posted(server, "/v1/chat/completions/render", {"messages": messages, "mm_payload": "none"})
        ).json()
        tensors = {"messages": messages, "mm_payload": "tensors"}
        refused = await posted(server, "/v1/chat/completions/render", tensors)
        plain = (await posted(server, "/v1/chat/completions/render", {"messages": [user(text("a"))]})).json()
    features = rendered["features"]
    assert same["features"] == features
    assert features["mm_hashes"] == {
        "image": [sha256(png()).hexdigest(), sha256(png(shade=3)).hexdigest()],
        "audio": [sha256(wav()).hexdigest()],
    }
    ids = rendered["token_ids"]
    for kind, places in features["mm_placeholders"].items():
        for place in places:
            shown = TOK.decode(ids[place["offset"] : place["offset"] + place["length"]])
            assert f"<{kind}" in shown, json.dumps(features)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "mm_payload")
    assert "features" not in plain


async def test_all_work_on_a_long_prompt_with_media_waits_for_its_turn(monkeypatch):
    """Places in the queue are what `max_renders` and `queue_timeout` bound."""
    held, works = [], []
    take = FairQueue.place

    @asynccontextmanager
    async def place(self, cost):
        async with take(self, cost):
            held.append(cost)
            try:
                yield
            finally:
                held.remove(cost)

    def noted(name, work):
        def call(*args):
            works.append((name, bool(held)))
            return work(*args)

        return call

    monkeypatch.setattr(FairQueue, "place", place)
    monkeypatch.setattr(engines, "placed_media", noted("placed_media", engines.placed_media))
    monkeypatch.setattr(Prompt, "media_ids", noted("media_ids", Prompt.media_ids))
    body = {"messages": [user(text("word " * 2000), image())]}
    async with served({"sighted": Sighted(*ANSWER), "none": NoEngine(40960)}) as server:
        for path, model in (("/v1/chat/completions", "sighted"), ("/v1/chat/completions/render", "none")):
            reply = await posted(server, path, body | {"model": model})
            assert reply.status_code == 200, reply.text
    assert works == [("placed_media", True), ("placed_media", True), ("media_ids", True)]
