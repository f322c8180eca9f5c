"""`PromptCache`: its ids are those of a prompt without a cache, its memory has bounds, and tenants share nothing."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from case_tables import cases
from growing_conversations import TOOLS, WRONG, random_requests, scenarios, wrong_answers
from hypothesis import given, settings
from hypothesis import strategies as st
from real_tokenizers import real_tokenizer
from template_files import template_files

from tokenweir.encode import _core
from tokenweir.encode.errors import TemplateError
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.cache import prompt_cache
from tokenweir.stream.prompts.cache.ledger import ENTRY_BYTES, Ledger
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

TOKENIZERS = (
    "qwen3", "llama-3.1", "gpt2", "deepseek-litellm", "phi-3-mini", "llama-2", "gemma", "mistral-7b-v0.3", "t5-small",
    "openai/o200k_base.tiktoken", "mistral-common/tekken_240911.json",
)  # fmt: skip
PARTS = ["x", "<|im_start|>", "〈|", "|〉", "〈|EOS|〉"][1:]


@pytest.fixture(scope="module")
def tokenizer():
    """The embedded vocabulary, with tokens that overlap."""
    return Tokenizer.default().with_added_tokens([AddedToken(content, special=True) for content in PARTS])


@pytest.fixture(scope="module")
def template(tokenizer):
    return ChatTemplate.from_tokenizer(tokenizer)


def messages_of(*texts):
    return [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(texts)]


@pytest.fixture(scope="module")
def render(template, tokenizer):
    """A function that renders a conversation of texts by a cache."""
    return lambda cache, *texts, **options: cache.render(
        messages_of(*texts), template=template, tokenizer=tokenizer, **options
    )


# -- ids ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", scenarios())
def test_ids_are_those_without_a_cache(name, template, tokenizer):
    cache = PromptCache()
    for request in scenarios()[name]:
        found = cache.render(request["messages"], template=template, tokenizer=tokenizer, tools=request.get("tools"))
        assert found.ids.tolist() == template.render(**request).encode(tokenizer)
        assert found.text == template.render(**request).text


@pytest.mark.parametrize("wrong", WRONG)
def test_the_scenarios_catch_a_wrong_cache(wrong, template, tokenizer):
    assert sum(wrong_answers(wrong(tokenizer), template, tokenizer, each) for each in scenarios().values())


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 32), of=st.integers(0, 1 << 16), by=st.sampled_from(TOKENIZERS))
def test_random_conversations_of_real_templates(data, seed, of, by):
    tokenizer = real_tokenizer(data(f"tokenizers/{by}"))
    sources = sorted(template_files().items())
    template = compiled(*sources[of % len(sources)])
    cache = PromptCache()
    for request in random_requests(random.Random(seed), 8):
        try:
            expected = template.render(**request).encode(tokenizer)
        except TemplateError as refused:
            with pytest.raises(TemplateError) as again:
                cache.render(request["messages"], template=template, tokenizer=tokenizer, tools=request["tools"])
            assert str(again.value) == str(refused)
        else:
            found = cache.render(request["messages"], template=template, tokenizer=tokenizer, tools=request["tools"])
            assert found.ids.tolist() == expected


_compiled: dict[str, ChatTemplate] = {}


def compiled(name, source):
    if name not in _compiled:
        _compiled[name] = ChatTemplate(source, special_tokens={"bos_token": "<s>", "eos_token": "</s>"})
    return _compiled[name]


def test_a_clock_in_the_template_is_seen(tokenizer):
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    source = "{{ strftime_now('%d %B %Y') }}{% for m in messages %}{{ m.content }}{% endfor %}"
    template = ChatTemplate(source, clock=lambda: now[0])
    cache = PromptCache()
    for day in (1, 1, 2):
        now[0] = now[0].replace(day=day)
        found = cache.render(messages_of("a"), template=template, tokenizer=tokenizer)
        assert found.text == f"0{day} January 2026a"
        assert found.ids.tolist() == template.render(messages_of("a")).encode(tokenizer)


# -- what is said of a prompt ------------------------------------------------------------------------------------------


def test_what_was_taken_over_is_said(render):
    cache = PromptCache()
    texts = [f"Message {i}: " + "some words again. " * 60 for i in range(20)]
    first = render(cache, *texts[:19])
    assert first.reused == (0, 0)
    assert first.differs == (0, "new")
    same = render(cache, *texts[:19])
    assert same.reused == (len(first.ids), len(first.text))
    assert same.differs is None
    assert same.ids.ctypes.data == first.ids.ctypes.data
    later = render(cache, *texts, "More?")
    assert later.reused.ids > 0.9 * len(first.ids)
    assert later.reused.chars <= len(later.text)
    assert later.differs.message == 19
    edited = render(cache, *texts[:7], "other words", *texts[8:], "More?")
    assert edited.differs == (7, "text")
    assert edited.reused.ids > 0.9 * (len(edited.ids) - 200)
    assert "reused=" in repr(edited)


def test_other_tools_and_another_system_prompt_keep_what_follows(template, tokenizer):
    cache = PromptCache()
    texts = messages_of(*[f"Message {i}: " + "some words again. " * 60 for i in range(9)])
    for system in ("You help.", "You help a lot, and politely."):
        for tools in (TOOLS[:1], TOOLS):
            found = cache.render(
                [{"role": "system", "content": system}, *texts], template=template, tokenizer=tokenizer, tools=tools
            )
    assert found.reused.ids > 0.8 * len(found.ids)


def test_ids_are_read_only_int32(render):
    found = render(PromptCache(), "Hi")
    assert found.ids.dtype == np.int32
    assert not found.ids.flags.writeable
    assert len(found) == len(found.ids)


def test_messages_of_ids(render, template, tokenizer):
    found = render(PromptCache(), "Hi there", "Yes", "Bye")
    assert found.message_indices == template.render(messages_of("Hi there", "Yes", "Bye")).message_indices(tokenizer)
    assert found.is_content == [number >= 0 for number in found.message_indices]
    assert set(found.message_indices) == {-1, 0, 1, 2}


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_a_growing_conversation_is_kept_once(render):
    cache = PromptCache()
    texts = []
    for i in range(30):
        texts.append(f"Message {i}: " + "some words again. " * 60)
        found = render(cache, *texts)
    assert len(cache) == 1
    assert cache.held_bytes < 2.5 * len(found.text.encode())
    rewound = render(cache, *texts[:9])
    assert rewound.reused.ids > 0.8 * len(rewound.ids)
    assert len(cache) == 1
    branch = render(cache, *texts[:9], "another answer", "and on " * 900)
    assert branch.reused.ids > 0.5 * len(rewound.ids)
    assert len(cache) == 2


def test_tenants_share_nothing(render):
    cache = PromptCache()
    text = "some words again. " * 100
    render(cache, text, tenant="a")
    assert render(cache, text, tenant="b").reused == (0, 0)
    assert render(cache, text, tenant="a").differs is None
    cache.clear("a")
    assert render(cache, text, tenant="b").differs is None
    assert render(cache, text, tenant="a").reused == (0, 0)


def test_the_oldest_prompt_of_the_tenant_that_holds_most_goes(render):
    words = "some words again. " * 200
    size = PromptCache()
    render(size, words)
    cache = PromptCache(4 * (size.held_bytes + ENTRY_BYTES + 100))
    render(cache, "b" + words, tenant="b")
    for i in range(12):
        render(cache, f"{i}" + words, tenant="a")
    assert len(cache) <= 4
    assert cache.held_bytes <= 4 * (size.held_bytes + 100)
    assert render(cache, "b" + words, tenant="b").differs is None
    assert render(cache, "11" + words, tenant="a").differs is None


def test_a_prompt_larger_than_the_bound_is_not_kept(render):
    cache = PromptCache(2000)
    for _ in range(2):
        found = render(cache, "some words " * 1000)
        assert found.reused == (0, 0)
    assert len(cache) == cache.held_bytes == 0


def test_unused_prompts_are_dropped_by_age(render):
    now = [0.0]
    ledger = Ledger(1 << 20)
    cache = PromptCache(ledger=ledger, max_age=600, clock=lambda: now[0])
    render(cache, "a")
    now[0] = 500
    render(cache, "b")
    render(cache, "a")
    now[0] = 1099
    assert render(cache, "a").differs is None
    now[0] = 1101
    render(cache, "c")
    assert len(cache) == len(ledger) == 2
    cache.clear()
    assert len(cache) == len(ledger) == ledger.bytes == 0


def test_a_shared_ledger_takes_the_room(render):
    ledger = Ledger(1 << 20)
    cache = PromptCache(ledger=ledger)
    render(cache, "some words " * 1000, tenant="a")
    assert ledger.held("a") > 11000
    ledger.enter("b", (1 << 20) - 2000, lambda: None)
    ledger.enter("a", 1000, lambda: None)
    assert len(cache) == 1 - (ledger.held("a") < 11000)


def test_threads_may_share_a_cache(template, tokenizer):
    cache = PromptCache(200_000)
    failures = []

    def work(seed):
        for request in random_requests(random.Random(seed), 40):
            try:
                found = cache.render(
                    request["messages"],
                    template=template,
                    tokenizer=tokenizer,
                    tools=request["tools"],
                    tenant=str(seed % 2),
                )
                if found.ids.tolist() != template.render(**request).encode(tokenizer):
                    failures.append(request)
            except Exception as error:  # noqa: BLE001 - any is a failure
                failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    cache.clear()
    assert cache._store._ledger.bytes == len(cache._store._ledger) == 0


def test_messages_of_a_wrong_type_are_refused():
    cache = PromptCache()
    with pytest.raises(TemplateError, match="^messages must be a list, not NoneType"):
        cache.render(None, template=ChatTemplate("{{ messages }}"), tokenizer=Tokenizer.default())
    assert len(cache) == 0


@pytest.mark.parametrize(("options", "message"), [({"max_bytes": 0}, "max_bytes=0 is below 1"), ({"max_age": 0}, "max_age=0 is not above 0"), ({"check_every": -1}, "check_every=-1 is below 0")])  # fmt: skip
def test_bounds_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        PromptCache(**options)


@pytest.mark.parametrize(("options", "message"), CASES["arguments_of_another_type_are_named"])
def test_arguments_of_another_type_are_named(options, message):
    cache = PromptCache()
    given = {"template": ChatTemplate("{{ messages }}"), "tokenizer": Tokenizer.default()} | options
    with pytest.raises(TypeError, match=message):
        cache.render([{"role": "user", "content": "Hi"}], **given)
    assert len(cache) == cache.held_bytes == 0


# -- checks of a share of the prompts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("check_every", "wrong"), [(0, []), (1, [1, 2, 3, 4, 5]), (2, [1, 3, 5]), (3, [2, 5])])
def test_every_so_many_prompts_are_checked(check_every, wrong, template, tokenizer, monkeypatch, caplog):
    """The core resumes at a wrong place, so that each prompt behind a kept one has the ids of another text."""

    def tape(encoder, text, guarded, earlier):
        return _core.tape(encoder, text if earlier is None else b"other", [], None)

    monkeypatch.setattr(prompt_cache, "_core", SimpleNamespace(tape=tape))
    cache, found = PromptCache(check_every=check_every), []
    for number in range(6):
        messages = messages_of(*"abcdefghijkl"[: 2 * number + 1])
        before = cache.counts.wrong
        ids = cache.render(messages, template=template, tokenizer=tokenizer).ids.tolist()
        if cache.counts.wrong > before:
            found.append(number)
            assert ids == template.render(messages).encode(tokenizer) and len(cache) == 1
    assert found == wrong
    assert len(caplog.records) == len(wrong)
    assert all("had wrong ids" in record.message for record in caplog.records)
