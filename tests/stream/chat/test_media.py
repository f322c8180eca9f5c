"""Media in messages: what reaches the template, what reaches the engine, and what is refused."""

from base64 import b64encode
from hashlib import sha256
from threading import get_ident

import pytest
from case_tables import cases
from pictures import TEMPLATE, Sighted, data_url, image, png, sound, text, user, wav
from serving import TOK, Script

from tokenweir.encode.errors import MediaError
from tokenweir.stream.chat import media as media_module
from tokenweir.stream.chat.chat import chat
from tokenweir.stream.chat.media import (
    CHUNK,
    LONG_MEDIA,
    MediaLimits,
    _decode,
    media_size,
    place_media,
    read_media,
)
from tokenweir.stream.chat.plan import AnswerRequest, plan_answer
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

BLIND = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")
SOUNDS_LAST = ChatTemplate(
    "{% for m in messages %}{% for c in m.content %}{% if c.type == 'image' %}<image>{% endif %}{% endfor %}"
    "{% for c in m.content %}{% if c.type == 'audio' %}<audio>{% endif %} {% endfor %}{% endfor %}"
)


def test_the_template_gets_parts_without_bytes():
    messages = [{"role": "system", "content": "s"}, user(text("a"), image(), sound())]
    shown, media = read_media(messages, TEMPLATE)
    digests = [sha256(data).hexdigest() for data in (png(), wav())]
    assert shown[0] is messages[0]
    assert shown[1]["content"] == [
        text("a"),
        {"type": "image", "id": digests[0]},
        {"type": "audio", "id": digests[1]},
    ]
    assert [(each.kind, each.media_type, each.digest, each.size, each.message, each.part) for each in media] == [
        ("image", "image/png", digests[0], len(png()), 1, 1),
        ("audio", "audio/wav", digests[1], len(wav()), 1, 2),
    ]
    assert media[0].url == data_url(png())


def test_a_template_gets_the_type_that_it_knows():
    template = ChatTemplate(
        "{% for c in messages[0].content %}{% if c.type == 'image_url' %}<i>{% endif %}{% endfor %}"
    )
    shown, _ = read_media([user(image())], template)
    assert shown[0]["content"][0]["type"] == "image_url"


def test_messages_without_addresses_are_left_alone():
    messages = [user({"type": "image"}, text("a"), {"type": "image_url"}), {"role": "user", "content": "b"}]
    assert read_media(messages, TEMPLATE) == (messages, ())


def test_media_stand_in_the_order_of_their_placeholders():
    shown, media = read_media([user(sound(), image())], SOUNDS_LAST)
    placed = place_media(SOUNDS_LAST.render(shown), media, TOK)
    assert [each.kind for each in placed.media] == ["image", "audio"]
    assert [placed.text[start:end].strip() for start, end in placed.places] == ["<image>", "<audio>"]


REFUSED = CASES["refused"]


@pytest.mark.parametrize(("address", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_image_is_refused_with_its_place(address, said):
    messages = [user(text("a")), user(text("b"), {"type": "image_url", "image_url": address})]
    with pytest.raises(MediaError) as refused:
        read_media(messages, TEMPLATE, MediaLimits())
    assert said in str(refused.value)
    assert refused.value.place == "messages[1].content[1]"
    assert str(refused.value).startswith("messages[1].content[1]")


def test_base64_is_read_in_chunks_as_in_one_piece():
    for size in (0, 1, 2, 3, CHUNK // 4 * 3 - 1, CHUNK // 4 * 3, CHUNK // 4 * 3 + 1, 200_000):
        data = png() + bytes(range(256)) * (size // 256) + bytes(size % 256)
        _, (media,) = read_media([user(image(data))], TEMPLATE, MediaLimits())
        assert (media.size, media.digest) == (len(data), sha256(data).hexdigest())
    padded = b64encode(png() + bytes(CHUNK // 4 * 3 - len(png()) - 1)).decode()
    assert len(padded) == CHUNK and padded.endswith("=")
    for url in (padded + "AAAA", padded + padded):
        part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{url}"}}
        with pytest.raises(MediaError, match="is not base64: Excess data after padding"):
            read_media([user(part)], TEMPLATE, MediaLimits())


def test_the_size_of_media_counts_their_characters():
    messages = [user(text("a" * 100), image()), {"role": "user", "content": "b" * 100}, user(sound())]
    given = len(data_url(png())) + len(sound()["input_audio"]["data"])
    assert media_size(messages) == given
    assert media_size([user({"type": "image_url", "image_url": data_url(png())})]) == len(data_url(png()))
    assert media_size([user({"type": 5}, {"type": "image_url"}, {"type": "image"})]) == 0


async def test_large_media_are_decoded_off_the_event_loop(monkeypatch):
    threads = []
    monkeypatch.setattr(media_module, "_decode", lambda *given: threads.append(get_ident()) or _decode(*given))
    for data, is_here in ((png(), True), (png() + bytes(LONG_MEDIA), False)):
        engine = Sighted("A cat.", "<|im_end|>")
        async with chat([user(image(data))], engine=engine, tokenizer=TOK, template=TEMPLATE) as deltas:
            async for _ in deltas:
                pass
        assert (threads.pop() == get_ident()) is is_here
        assert engine.seen[0].media[0].size == len(data)


def test_number_and_bytes_are_bounded():
    with pytest.raises(MediaError, match=r"messages\[0\].content\[2\]: a conversation may have 2 images"):
        read_media([user(image(), image(), image())], TEMPLATE, MediaLimits(items=2))
    most = 2 * len(png())
    read_media([user(image(), image())], TEMPLATE, MediaLimits(bytes=most))
    with pytest.raises(MediaError, match=rf"content\[1\]: the media of a conversation may have {most - 1} bytes"):
        read_media([user(image(), image())], TEMPLATE, MediaLimits(bytes=most - 1))


def test_a_type_that_is_another_kind_is_refused():
    part = {"type": "audio_url", "audio_url": {"url": data_url(png())}}
    with pytest.raises(MediaError, match="is of type audio, and its data URL of image/png"):
        read_media([user(part)], TEMPLATE)


@pytest.mark.parametrize(
    ("engine", "template", "said"),
    [
        (Script("a"), TEMPLATE, "messages[0].content[1] is an image, and this model's engine takes no image"),
        (Sighted("a"), BLIND, "messages[0].content[1] is an image, and the chat template 'default' takes no image"),
    ],
    ids=["engine", "template"],
)
async def test_who_takes_no_images_says_so(engine, template, said):
    with pytest.raises(MediaError) as refused:
        async with chat([user(text("a"), image())], engine=engine, tokenizer=TOK, template=template):
            pass
    assert str(refused.value) == said
    assert engine.started == 0


async def test_a_placeholder_that_is_not_written_is_refused():
    silent = ChatTemplate(
        "{% for m in messages %}{% for c in m.content %}{% if c.type != 'image' %}x{% endif %}{% endfor %}{% endfor %}"
    )
    with pytest.raises(MediaError, match="writes no placeholder for it there"):
        async with chat([user(image())], engine=Sighted("a"), tokenizer=TOK, template=silent):
            pass


async def test_the_engine_gets_media_beside_the_ids():
    engine = Sighted("A cat.", "<|im_end|>")
    async with chat([user(text("What? "), image())], engine=engine, tokenizer=TOK, template=TEMPLATE) as deltas:
        said = "".join([delta.text async for delta in deltas if hasattr(delta, "text")])
    assert said == "A cat."
    assert engine.prompts == ["<|im_start|>user\nWhat? <image><|im_end|>\n<|im_start|>assistant"]
    (media,) = engine.seen
    assert [media.text[start:end] for start, end in media.places] == ["<image>"]
    assert media.guarded is False
    async with chat([user(text("hi"))], engine=engine, tokenizer=TOK, template=TEMPLATE) as deltas:
        [_ async for _ in deltas]
    assert engine.seen[1] is None


def test_control_tokens_of_a_user_are_told():
    shown, media = read_media([user(text("<|im_end|>"), image())], TEMPLATE)
    assert place_media(TEMPLATE.render(shown), media, TOK).guarded is True


def test_another_picture_is_another_conversation():
    cache = PromptCache()
    made = []
    for data in (png(), png(), png(shade=9)):
        shown, _ = read_media([user(text("a" * 40), image(data))], TEMPLATE)
        made.append(cache.render(shown, template=TEMPLATE, tokenizer=TOK))
    assert [list(prompt.ids) for prompt in made[1:]] == [list(made[0].ids)] * 2
    first, second, third = (prompt.source[1] for prompt in made)
    assert first == second
    assert first[-1] != third[-1]


def test_block_keys_end_before_the_first_placeholder():
    shown, _ = read_media([user(text("word" + " word" * 39), image(), text("word " * 40))], TEMPLATE)
    with_image = PromptCache().render(shown, template=TEMPLATE, tokenizer=TOK)
    plain = PromptCache().render([user(text("word" + " word" * 39 + "<image>"))], template=TEMPLATE, tokenizer=TOK)
    (place, start, end) = with_image.prompt.media_ids(TOK)[0]
    assert TOK.decode(with_image.ids[start:end], skip_special_tokens=False) == "<image>"
    assert (place.message, place.part) == (0, 1)
    keys = with_image.block_keys(8)
    assert len(keys) == start // 8
    assert keys == plain.block_keys(8)[: len(keys)]


def test_media_of_results_go_with_the_order_of_the_calls():
    calls = [{"id": each, "type": "function", "function": {"name": "look", "arguments": "{}"}} for each in "ab"]
    messages = [
        user(text("Look.")),
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": [text("b"), text("b"), image(png(2, 1))]},
        {"role": "tool", "tool_call_id": "a", "content": [image(png(1, 2))]},
    ]
    template = ChatTemplate(
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}"
        "{% if c.type == 'image' %}<image>{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %};{% endfor %}"
    )
    plan = plan_answer(AnswerRequest(messages=messages), template, engine=Sighted("Yes."))
    placed = place_media(plan.render(), plan.media, TOK)
    assert placed.text == "Look.;;<image>;bb<image>;"
    assert [placed.text[start:end] for start, end in placed.places] == ["<image>"] * 2
    assert [(each.message, each.part) for each in placed.media] == [(3, 0), (2, 2)]
    assert [each.digest for each in placed.media] == [sha256(png(1, 2)).hexdigest(), sha256(png(2, 1)).hexdigest()]
