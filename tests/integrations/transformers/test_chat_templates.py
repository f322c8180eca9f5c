"""`apply_chat_template` under the patch gives what it gives without."""

from __future__ import annotations

import pytest
from case_tables import cases

import tokenweir
from tokenweir import integrations

CASES = cases(__file__)

transformers = pytest.importorskip("transformers")

MARKED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>"
    "{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}"
)
MESSAGES = CASES["messages"]
CALLS = CASES["calls"]


@pytest.fixture(scope="module")
def tokenizer(data):
    return transformers.AutoTokenizer.from_pretrained(data("tokenizers/qwen3"))


def values(found):
    items = found.items() if hasattr(found, "items") else [("", found)]
    return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in items}


@pytest.mark.parametrize("options", CALLS)
def test_every_call_gives_the_same(tokenizer, options):
    expected = values(tokenizer.apply_chat_template(MESSAGES, **options))
    integrations.report(reset=True)
    with tokenweir.patch_transformers():
        assert values(tokenizer.apply_chat_template(MESSAGES, **options)) == expected
        several = tokenizer.apply_chat_template([MESSAGES, MESSAGES[:2]], **options)
    assert values(several) == values(tokenizer.apply_chat_template([MESSAGES, MESSAGES[:2]], **options))
    renders = {route.reason for route in integrations.report() if route.call.startswith("render")}
    assert renders == {None}


def test_the_mask_is_of_what_the_assistant_wrote(tokenizer):
    with tokenweir.patch_transformers():
        found = tokenizer.apply_chat_template(
            MESSAGES, chat_template=MARKED, return_assistant_tokens_mask=True, return_dict=True
        )
    chosen = [i for i, own in zip(found["input_ids"], found["assistant_masks"], strict=True) if own]
    assert tokenizer.decode(chosen) == "A low dam.<|im_end|>"


def test_the_final_message_is_continued(tokenizer):
    options = {"continue_final_message": True, "tokenize": False}
    expected = tokenizer.apply_chat_template(MESSAGES[:3], **options)
    with tokenweir.patch_transformers():
        assert tokenizer.apply_chat_template(MESSAGES[:3], **options) == expected


def test_errors_are_those_of_the_template(tokenizer):
    import jinja2

    with tokenweir.patch_transformers():
        with pytest.raises(jinja2.TemplateError, match="^no$"):
            tokenizer.apply_chat_template(MESSAGES, chat_template="{{ raise_exception('no') }}")
        with pytest.raises(jinja2.TemplateError):
            tokenizer.apply_chat_template(MESSAGES, chat_template="{% if %}")


def test_values_that_the_engine_does_not_take_are_rendered_by_jinja2(tokenizer):
    options = {"chat_template": "{{ odd|length }} {{ messages[0].content }}", "odd": "\ud800", "tokenize": False}
    integrations.report(reset=True)
    with tokenweir.patch_transformers():
        assert tokenizer.apply_chat_template(MESSAGES, **options) == "1 Be brief."
    (route,) = [route for route in integrations.report() if route.reason is not None]
    assert route.call == "render" and "surrogate" in route.reason
