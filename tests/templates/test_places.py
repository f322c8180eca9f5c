"""`Prompt.places`: where a template writes something for a media part."""

from __future__ import annotations

import pickle

import pytest
from case_tables import cases

from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

IMAGE, VIDEO, TEXT = {"type": "image"}, {"type": "video", "video": "v"}, {"type": "text", "text": "look"}
LOOP = (
    "{% for m in messages %}<|{{ m.role }}|>{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}"
    "{% else %}<|start|>{{ '<|pad|>' }}<|end|>{% endif %}{% endfor %}<|over|>{% endfor %}"
)


def user(*parts):
    return {"role": "user", "content": list(parts)}


def placed(prompt):
    return [(prompt.text[place.start : place.end], place.message, place.part) for place in prompt.places]


def test_places():
    prompt = ChatTemplate(LOOP).render(
        [user(TEXT, IMAGE, TEXT), {"role": "assistant", "content": [TEXT]}, user(IMAGE, VIDEO)]
    )
    whole = "<|start|><|pad|><|end|>"
    assert placed(prompt) == [(whole, 0, 1), (whole, 2, 0), (whole, 2, 1)]
    assert pickle.loads(pickle.dumps(prompt)).places == prompt.places


def test_the_text_is_still_the_templates():
    """Control tokens in it count, and those of the part's own text do not."""
    template = ChatTemplate(LOOP.replace("{{ '<|pad|>' }}", "{{ p.url }}"), control_tokens=["<|start|>", "<|end|>"])
    prompt = template.render([user({"type": "image_url", "url": "<|end|>"})])
    assert [prompt.text[offset:][:7] for offset in prompt.guarded] == ["<|end|>"]
    assert len(prompt.guarded) == 1
    assert placed(prompt) == [("<|start|><|end|><|end|>", 0, 0)]


@pytest.mark.parametrize("source", CASES["ways_to_write_a_placeholder"])
def test_ways_to_write_a_placeholder(source):
    assert placed(ChatTemplate(source).render([user(IMAGE)])) == [("<img>", 0, 0)]


@pytest.mark.parametrize(("parts", "count"), CASES["kinds_of_parts"])
def test_kinds_of_parts(parts, count):
    source = "{% for p in messages[0].content %}<{{ loop.index }}>{% endfor %}"
    assert len(ChatTemplate(source).render([user(*parts)]).places) == count


def test_other_loops_have_no_places():
    source = "{% for m in messages %}<{{ m.role }}>{% for t in tools %}<{{ t.function.name }}>{% endfor %}{% for p in m.content %}{% endfor %}{% endfor %}"
    tool = {"type": "image", "function": {"name": "f"}}
    assert ChatTemplate(source).render([user(TEXT)], tools=[tool]).places == ()


# Templates that write a text for an image in the loop over the content.
VISION = ["google-gemma-4-31B-it", "Mistral-Small-3.2-24B-Instruct-2506", "Apriel-1.6-15b-Thinker-fixed"]


@pytest.mark.parametrize("name", VISION)
def test_real_templates(name, data, template_paths):
    (path,) = (path for path in template_paths if path.endswith(f"/{name}.jinja"))
    template = ChatTemplate.from_file(data(path), special_tokens={"bos_token": "<s>", "eos_token": "</s>"})
    image = {"type": "image", "image": "i", "image_url": {"url": "i"}}
    prompt = template.render([user(TEXT, image), {"role": "assistant", "content": "yes"}, user(image, TEXT, image)])
    assert [(place.message, place.part) for place in prompt.places] == [(0, 1), (2, 0), (2, 2)]
    (written,) = {prompt.text[place.start : place.end].strip() for place in prompt.places}
    assert prompt.text.count(written) == 3
