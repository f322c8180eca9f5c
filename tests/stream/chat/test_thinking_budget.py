"""A budget of thinking with an engine that thinks on and on: what each generation gets, and what the answer has."""

from __future__ import annotations

from contextlib import aclosing

import anyio
import pytest
from msgspec.structs import replace

from tokenweir.encode.errors import EngineError
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.chat.chat import chat
from tokenweir.stream.chat.thinking_budget import BudgetedEngine
from tokenweir.stream.events.deltas import Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.events.merge import merge
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.templates.chat_template import ChatTemplate

TEMPLATE = (
    "{% for m in messages %}<turn>{{ m.role }}\n{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n"
    "{% endif %}{{ m.content }}<eos>{% endfor %}{{ tools | tojson if tools }}{# <tool_call> #}"
    "{% if add_generation_prompt %}<turn>assistant\n{{ '<think>\n' if open }}{% endif %}"
)
HI = [{"role": "user", "content": "hi"}]
OPEN = {"template_kwargs": {"open": True}}
CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def tok(make_tok):
    return make_tok(
        AddedToken("<turn>", special=True), AddedToken("<think>"), AddedToken("</think>"), template=TEMPLATE
    )


class Thinker:
    """An engine that yields a text for its prompt's end: `inside` the thinking, or `behind` it, in steps of some ids."""

    def __init__(self, tok, inside, behind="So.<eos>", *, step=1, **attributes):
        self.tok, self.inside, self.behind, self.step = tok, inside, behind, step
        self.calls, self.open = [], 0
        vars(self).update(attributes)

    async def generate(self, prompt_ids, sampling):
        self.calls.append(
            (self.tok.decode(prompt_ids, skip_special_tokens=False).rpartition("assistant\n")[2], sampling)
        )
        behind = self.calls[-1][0].rstrip().endswith("</think>")
        ids = self.tok.encode(self.behind if behind else self.inside)
        self.open += 1
        try:
            for at in range(0, len(ids), self.step):
                await anyio.lowlevel.checkpoint()
                part = ids[at : at + self.step]
                yield EngineStep(part, [-1.0] * len(part), cached=len(prompt_ids))
        finally:
            self.open -= 1


async def answer(engine, tok, **options):
    async with chat(HI, engine=engine, tokenizer=tok, **options) as deltas:
        return merge([delta async for delta in deltas])


def texts(deltas):
    kinds = {TextDelta: "A", ReasoningDelta: "T"}
    return [(kinds[type(delta)], delta.text) for delta in deltas if type(delta) in kinds]


@pytest.mark.parametrize("step", [1, 3, 100])
async def test_the_thinking_ends_at_its_budget_and_the_answer_follows(tok, step):
    engine = Thinker(tok, "a" * 50, step=step)
    deltas = await answer(engine, tok, **OPEN, thinking_budget=7)
    assert texts(deltas) == [("T", "aaaaaaa\n"), ("A", "\n\nSo.")]
    assert [prompt for prompt, _ in engine.calls] == ["<think>\n", "<think>\naaaaaaa\n</think>\n\n"]
    assert engine.open == 0
    usage = deltas[-1].usage
    ids = [token_id for delta in deltas for token_id in delta.token_ids]
    assert ids == tok.encode("aaaaaaa\n</think>\n\nSo.<eos>")
    assert (usage.completion_tokens, usage.cached_tokens) == (len(ids), usage.prompt_tokens)
    assert usage.reasoning_tokens == 9


async def test_a_model_that_opens_the_thinking_itself(tok):
    engine = Thinker(tok, "<think>\n" + "b" * 50, step=4)
    deltas = await answer(engine, tok, thinking_budget=5)
    assert texts(deltas) == [("T", "\nbbb\n"), ("A", "\n\nSo.")]


@pytest.mark.parametrize("inside", ["ab</think>So.<eos>", f"a{CALL}<eos>", "So.<eos>", "abc<eos>"])
async def test_thinking_within_its_budget_is_left_alone(tok, inside):
    engine = Thinker(tok, inside, step=2)
    deltas = await answer(engine, tok, **OPEN, thinking_budget=30, tools=[TOOL])
    assert len(engine.calls) == 1
    assert [token_id for delta in deltas for token_id in delta.token_ids] == tok.encode(inside)
    assert (deltas[-1].reason is FinishReason.TOOL_CALLS) is any(isinstance(d, ToolCallDelta) for d in deltas)


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.ERROR, FinishReason.STOP])
async def test_an_answer_that_the_engine_ends_at_the_budget_has_ended(tok, reason):
    class Ending(Thinker):
        async def generate(self, prompt_ids, sampling):
            async with aclosing(super().generate(prompt_ids, sampling)) as steps:
                async for step in steps:
                    yield EngineStep(step.ids, finish_reason=reason)

    engine = Ending(tok, "abc", step=3)
    deltas = await answer(engine, tok, **OPEN, thinking_budget=3)
    assert (len(engine.calls), texts(deltas), deltas[-1].reason) == (1, [("T", "abc")], reason)


async def test_limits_and_seeds_count_what_was_given(tok):
    engine = Thinker(tok, "a" * 50)
    sampling = Sampling(max_tokens=20, min_tokens=8, seed=5, stop=("o",), logprobs=True, top_logprobs=1)
    deltas = await answer(engine, tok, **OPEN, thinking_budget=4, sampling=sampling)
    end = len(tok.encode("\n</think>\n\n"))
    assert [(s.max_tokens, s.min_tokens, s.seed) for _, s in engine.calls] == [(20, 8, 5), (16 - end, 4 - end, 5)]
    assert deltas[-1].stop_reason == "o"
    assert [logprob for delta in deltas for logprob in delta.alignment.logprobs][4 : 4 + end] == [0.0] * end


async def test_max_tokens_may_leave_nothing_to_continue(tok):
    engine = Thinker(tok, "a" * 50)
    deltas = await answer(engine, tok, **OPEN, thinking_budget=4, sampling=Sampling(max_tokens=6))
    assert (deltas[-1].reason, deltas[-1].usage.completion_tokens, len(engine.calls)) == (FinishReason.LENGTH, 6, 1)


async def test_thinking_that_begins_again_is_ended_again(tok):
    engine = Thinker(tok, "a" * 50, behind="<think>\n" + "b" * 50)
    deltas = await answer(engine, tok, **OPEN, thinking_budget=4, sampling=Sampling(max_tokens=500))
    assert deltas[-1].usage.completion_tokens < 500
    assert len(engine.calls) == 9


async def test_each_of_several_answers_has_its_own_budget(tok):
    engine = Thinker(tok, "a" * 50, parallel=True)
    deltas = await answer(engine, tok, **OPEN, thinking_budget=3, sampling=Sampling(n=2, seed=1))
    finishes = [delta for delta in deltas if isinstance(delta, Finish)]
    assert sorted(s.seed for _, s in engine.calls) == [1, 1, 2, 2]
    assert [finish.usage.reasoning_tokens for finish in finishes] == [5, 5]


async def test_an_engine_with_a_budget_of_its_own_gets_it(tok):
    engine = Thinker(tok, "ab</think>So.<eos>", thinking_budget="thinking_token_budget")
    await answer(engine, tok, **OPEN, thinking_budget=1)
    assert [s.extra for _, s in engine.calls] == [{"thinking_token_budget": 1}]


async def test_a_budget_of_zero_closes_the_thinking_in_the_prompt(tok):
    engine = Thinker(tok, "a" * 50)
    deltas = await answer(engine, tok, **OPEN, thinking_budget=0)
    assert [prompt for prompt, _ in engine.calls] == ["<think>\n</think>\n\n"]
    assert texts(deltas) == [("A", "So.")]


@pytest.mark.parametrize("name", ["frequency_penalty", "presence_penalty"])
async def test_penalties_that_count_the_answer_are_refused(tok, name):
    with pytest.raises(EngineError, match=f"^a thinking budget cannot be honoured with {name}: ") as raised:
        await answer(Thinker(tok, "a"), tok, thinking_budget=3, sampling=Sampling(**{name: 0.5}))
    assert (raised.value.kind, raised.value.option) == ("unsupported", name)


@pytest.mark.parametrize("history", ["exact", "sampled"])
async def test_the_next_prompt_has_the_ids_of_the_answer(tok, history):
    cache, engine = PromptCache(), Thinker(tok, "a" * 50)
    deltas = await answer(engine, tok, **OPEN, thinking_budget=4, prompts=cache, history=history)
    given = [token_id for delta in deltas for token_id in delta.token_ids]
    message = {"role": "assistant", "content": deltas[1].text, "reasoning_content": deltas[0].text}
    template = ChatTemplate.from_tokenizer(tok)
    prompt = cache.render([*HI, message, *HI], template=template, tokenizer=tok, history=history, open=True)
    ids = prompt.ids.tolist()
    if history == "sampled":
        assert any(ids[at : at + len(given)] == given for at in range(len(ids)))


async def test_an_engine_that_fails_behind_the_thinking_fails_the_answer(tok):
    class Failing(Thinker):
        async def generate(self, prompt_ids, sampling):
            if self.calls:
                raise EngineError("no more")
            async with aclosing(super().generate(prompt_ids, sampling)) as steps:
                async for step in steps:
                    yield step

    deltas = []
    with pytest.raises(EngineError, match="no more"):
        async with chat(HI, engine=Failing(tok, "a" * 9), tokenizer=tok, **OPEN, thinking_budget=2) as answers:
            async for delta in answers:
                deltas.append(delta)
    assert deltas[-1].reason is FinishReason.ERROR


async def test_cancelling_closes_the_engine(tok):
    engine = Thinker(tok, "a" * 50, behind="b" * 1000)
    async with chat(HI, engine=engine, tokenizer=tok, **OPEN, thinking_budget=3) as deltas:
        async for delta in deltas:
            if isinstance(delta, TextDelta):
                deltas.cancel()
    assert (engine.open, len(engine.calls), delta.reason) == (0, 2, FinishReason.CANCELLED)


@pytest.mark.parametrize("step", [1, 3, 100])
async def test_ids_that_were_inferred_stay_so_up_to_the_budget(tok, step):
    class Inferring(Thinker):
        async def generate(self, prompt_ids, sampling):
            async with aclosing(super().generate(prompt_ids, sampling)) as items:
                async for item in items:
                    yield replace(item, inferred=len(item.ids))

    engine = BudgetedEngine(
        Inferring(tok, "a" * 50, step=step), {"thinking_budget": 7}, tok, ChatTemplate.from_tokenizer(tok)
    )
    prompt = tok.encode("<turn>assistant\n<think>\n")
    items = [item async for item in engine.generate(prompt, Sampling())]
    assert [item.inferred for item in items] == [len(item.ids) for item in items]
    assert tok.decode([token_id for item in items for token_id in item.ids]).count("a") == 7
