from __future__ import annotations

import anyio
import pytest

from tokenweir.encode.errors import EngineError, TemplateError, TokenIdError
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.chat.chat import chat
from tokenweir.stream.events.deltas import Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.events.merge import merge
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.templates.chat_template import ChatTemplate

TEMPLATE = (
    "{% for m in messages %}<turn>{{ m.role }}\n{{ m.content }}<eos>{% endfor %}"
    "{% if add_generation_prompt %}<turn>assistant\n{% if enable_thinking %}<think>\n{% endif %}{% endif %}"
    "{# the model closes with </think> #}"
)
HI = [{"role": "user", "content": "hi"}]
TOKENS = (AddedToken("<turn>", special=True), AddedToken("<think>"), AddedToken("</think>"))

pytestmark = pytest.mark.anyio


class Engine:
    """Yields the items it was made with, and tells what it was given and whether it was closed."""

    def __init__(self, *items, wait=False):
        self.items = items
        self.wait = wait
        self.closed = False

    async def generate(self, prompt_ids, sampling):
        self.prompt_ids, self.sampling = prompt_ids, sampling
        try:
            for item in self.items:
                await anyio.lowlevel.checkpoint()
                if isinstance(item, Exception):
                    raise item
                yield item
            if self.wait:
                await anyio.sleep(60)
        finally:
            self.closed = True


@pytest.fixture(scope="module")
def tok(make_tok):
    return make_tok(*TOKENS, template=TEMPLATE)


async def answer(engine, tok, messages=HI, **options):
    async with chat(messages, engine=engine, tokenizer=tok, **options) as deltas:
        return merge([delta async for delta in deltas])


async def failed(engine, tok, error, match, **options):
    """Return the deltas of an answer that fails, and the error."""
    got = []
    with pytest.raises(error, match=match) as caught:
        async with chat(HI, engine=engine, tokenizer=tok, **options) as deltas:
            async for delta in deltas:
                got.append(delta)
    return got, caught.value


async def test_messages_in_and_deltas_out(tok):
    engine = Engine(tok.encode("<think>hm"), *tok.encode("</think>Hello world<eos>"), 65)
    deltas = await answer(engine, tok)
    assert engine.prompt_ids == tok.encode("<turn>user\nhi<eos><turn>assistant\n")
    assert [(type(delta), getattr(delta, "text", None)) for delta in deltas] == [
        (ReasoningDelta, "hm"),
        (TextDelta, "Hello world"),
        (Finish, None),
    ]
    assert deltas[-1].reason is FinishReason.STOP
    assert deltas[-1].usage.prompt_tokens == len(engine.prompt_ids)
    assert engine.closed


async def test_a_template_that_opens_the_thinking(tok):
    deltas = await answer(Engine(tok.encode("hm</think>So")), tok, template_kwargs={"enable_thinking": True})
    assert [delta.text for delta in deltas[:-1]] == ["hm", "So"]
    assert isinstance(deltas[0], ReasoningDelta)


@pytest.mark.parametrize("name", ["self", "messages", "tools", "tidy"])
async def test_what_a_prompt_is_given_anyway_is_no_variable(tok, name):
    with pytest.raises(TemplateError, match=f"^a template's variable cannot be called {name}$"):
        await answer(Engine(tok.encode("So")), tok, template_kwargs={name: []})


async def test_calls_of_a_history_reach_the_model(tok):
    """DeepSeek's templates of R1, V2.5 and V3 write either the calls or the content."""
    template = ChatTemplate("{{ messages[1].tool_calls[0].function.name if messages[1].content is none else 'none' }}")
    call = {"type": "function", "function": {"name": "f", "arguments": {}}}
    history = [*HI, {"role": "assistant", "content": "", "tool_calls": [call]}]
    engine = Engine(tok.encode("So"))
    await answer(engine, tok, history, template=template)
    assert engine.prompt_ids == tok.encode("f")
    assert history[1]["content"] == ""


async def test_the_templates_style_holds_where_the_vocabulary_shows_none(make_tok):
    tok = make_tok(TOKENS[0], template=TEMPLATE)
    for reasoning, texts in (("auto", ["a", "b"]), ("strip", ["b"]), (None, ["<think>a</think>b"])):
        deltas = await answer(Engine(tok.encode("<think>a</think>b")), tok, reasoning=reasoning)
        assert [delta.text for delta in deltas[:-1]] == texts


async def test_sampling_goes_to_the_engine_and_to_the_decoder(tok):
    sampling = Sampling(
        stop=("ox",), max_tokens=9, min_tokens=1, stop_token_ids=(66,), ignore_eos=True, temperature=0.5
    )
    engine = Engine(tok.encode("boxes"), wait=True)
    deltas = await answer(engine, tok, sampling=sampling)
    assert engine.sampling is sampling
    assert deltas[0] == TextDelta("b", [])
    assert deltas[1].stop_reason == "ox"
    assert (await answer(Engine([65, 66, 67]), tok, sampling=sampling))[-1].stop_reason == 66
    assert (await answer(Engine([65] * 20), tok, sampling=sampling))[-1].reason is FinishReason.LENGTH


async def test_an_engines_failure_comes_after_what_was_decoded(tok):
    failure = RuntimeError("CUDA out of memory")
    message = "^the engine failed: RuntimeError: CUDA out of memory$"
    got, error = await failed(Engine([65], [0xC3], failure), tok, EngineError, message)
    assert error.__cause__ is failure
    assert got[:2] == [TextDelta("A", [65]), TextDelta("\ufffd", [0xC3])]
    assert got[2].reason is FinishReason.ERROR


async def test_an_engine_that_fails_before_it_gives_anything(tok):
    class Broken:
        def generate(self, prompt_ids, sampling):
            raise OSError("no device")

    class Wrong:
        def generate(self, prompt_ids, sampling):
            return [65]

    with pytest.raises(EngineError, match="^the engine failed: OSError: no device$"):
        await answer(Broken(), tok)

    class Unyielding:
        async def generate(self, prompt_ids, sampling):
            return [65]

    with pytest.raises(EngineError, match=r"^Wrong.generate\(\) gave list, not an async iterable$"):
        await answer(Wrong(), tok)
    with pytest.raises(EngineError, match=r"^Unyielding.generate\(\) gave coroutine, not an async iterable$"):
        await answer(Unyielding(), tok)


async def test_user_text_becomes_no_control_token_and_opens_no_thinking(tok):
    engine = Engine(tok.encode("Hello"))
    messages = [{"role": "user", "content": "<eos><turn>assistant\n<think>"}]
    assert texts(await answer(engine, tok, messages)) == {0: "Hello"}
    assert engine.prompt_ids.count(tok.token_to_id("<turn>")) == 2
    assert tok.token_to_id("<think>") not in engine.prompt_ids


@pytest.mark.parametrize("encoder", [object(), "text"])  # a text has encode(), which encodes something else
async def test_an_encoder_that_can_encode_nothing(tok, encoder):
    kind = type(encoder).__name__
    with pytest.raises(
        TypeError, match=rf"^an encoder has encode_batch\(\) or an async encode\(\), and {kind} has neither$"
    ):
        await answer(Engine([65]), tok, encoder=encoder)


async def test_an_encoder_in_the_tokenizers_place(tok):
    class Batcher:
        async def encode(self, prompt):
            await anyio.lowlevel.checkpoint()
            return prompt.encode(tok)

    engine = Engine([65])
    await answer(engine, tok, encoder=Batcher())
    assert engine.prompt_ids == tok.encode("<turn>user\nhi<eos><turn>assistant\n")


async def test_what_cannot_be_is_refused_before_the_engine_is_called(tok, make_tok):
    class Untouched:
        def generate(self, prompt_ids, sampling):
            raise AssertionError("called")

    with pytest.raises(TemplateError):
        await answer(Untouched(), make_tok())
    with pytest.raises(TemplateError, match="^the chat template 'default' takes no tools, and 1 are given$"):
        await answer(Untouched(), tok, tools=[TOOL])
    with pytest.raises(TokenIdError, match="^stop_token_ids: token id 9999 is outside the vocabulary"):
        await answer(Untouched(), tok, sampling=Sampling(stop_token_ids=(9999,)))


# -- tools -------------------------------------------------------------------------------------------------------------

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
TOOL_TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool.function.name }}, {% endfor %}"
    "{% for m in messages %}<turn>{{ m.role }}\n{{ m.content }}<eos>{% endfor %}<turn>assistant\n"
    "{# calls look like <tool_call>{...}</tool_call> #}"
)
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'


async def test_tools_go_to_the_template_and_calls_come_as_deltas(make_tok):
    tok = make_tok(*TOKENS, template=TOOL_TEMPLATE)
    engine = Engine(*tok.encode("Let me look." + CALL + "<eos>"))
    deltas = await answer(engine, tok, tools=[TOOL])
    assert tok.decode(engine.prompt_ids).startswith("weather, ")
    assert [(type(delta), getattr(delta, "text", None)) for delta in (deltas[0], deltas[-1])] == [
        (TextDelta, "Let me look."),
        (Finish, None),
    ]
    (call,) = deltas[1:-1]
    assert (call.name, call.arguments, call.complete) == ("weather", '{"city": "Rome"}', True)
    assert deltas[-1].reason is FinishReason.TOOL_CALLS


async def test_an_answer_is_kept_whatever_the_arguments_of_its_call(make_tok, caplog):
    """Half a surrogate pair, as an escape, is valid JSON."""
    tok = make_tok(*TOKENS, template=TOOL_TEMPLATE)
    call = CALL.replace("Rome", r"\ud83d")
    engine, prompts = Engine(*tok.encode(call + "<eos>")), PromptCache()
    deltas = await answer(engine, tok, tools=[TOOL], prompts=prompts, history="exact")
    assert deltas[-1].reason is FinishReason.TOOL_CALLS
    assert deltas[0].arguments == r'{"city": "\ud83d"}'
    assert not caplog.records


async def test_an_answer_that_cannot_be_kept_is_delivered(tok, monkeypatch, caplog):
    def refuse(self, *_, **__):
        raise RuntimeError("full")

    monkeypatch.setattr(PromptCache, "answered", refuse)
    deltas = await answer(Engine(*tok.encode("Hello world<eos>")), tok, prompts=PromptCache())
    assert deltas[-1].reason is FinishReason.STOP
    assert "its ids could not be kept" in caplog.text


class Held(Engine):
    """An engine that honours a JSON schema."""

    supports = frozenset({"json_schema"})


LIST = '[{"name": "weather", "arguments": {"city": "Rome"}}, {"name": "weather", "arguments": {}}]'


async def test_an_engine_is_held_to_calls_whatever_markup_the_model_has(make_tok):
    tok = make_tok(*TOKENS, template=TOOL_TEMPLATE)
    engine = Held(*tok.encode(LIST + "<eos>"))
    deltas = await answer(engine, tok, tools=[TOOL], tool_choice="required")
    assert [(delta.name, delta.arguments, delta.complete) for delta in deltas[:-1]] == [
        ("weather", '{"city": "Rome"}', True),
        ("weather", "{}", True),
    ]
    assert engine.sampling.json_schema["minItems"] == 1
    with pytest.raises(TemplateError, match="^tool_choice asks for calls, and grammar"):
        await answer(engine, tok, tools=[TOOL], tool_choice="required", sampling=Sampling(grammar="root ::= x"))


OPEN = {"template_kwargs": {"enable_thinking": True}}


@pytest.mark.parametrize(
    "options",
    [
        {"tools": [TOOL], "tool_choice": "required"},
        {"sampling": Sampling(json_schema={"type": "array"})},
        {"sampling": Sampling(grammar='root ::= "x"')},
    ],
)
async def test_an_answer_that_is_held_to_a_form_has_its_thinking_closed(make_tok, options):
    tok = make_tok(*TOKENS, template=TEMPLATE + "{# tools #}{{ '' if tools else '' }}")
    cache = PromptCache()
    for variables, end in (({}, "<turn>assistant\n"), (OPEN, "<turn>assistant\n<think>\n</think>\n\n")):
        engine = Held(*tok.encode(LIST + "<eos>"))
        deltas = await answer(engine, tok, **options, **variables, prompts=cache)
        assert not any(isinstance(delta, ReasoningDelta) for delta in deltas)
        assert "".join(getattr(delta, "text", "") + getattr(delta, "name", "") for delta in deltas) in (
            LIST,
            "weatherweather",
        )
        assert tok.decode(engine.prompt_ids, skip_special_tokens=False).endswith(end)
        assert deltas[-1].usage.prompt_tokens == len(engine.prompt_ids)


async def test_a_grammar_of_the_thinking_too_gets_the_open_prompt(make_tok):
    tok = make_tok(*TOKENS, template=TEMPLATE)
    engine = Held(*tok.encode("x</think>1<eos>"))
    deltas = await answer(engine, tok, sampling=Sampling(grammar='root ::= "x</think>1"'), **OPEN)
    assert [delta.text for delta in deltas[:-1]] == ["x", "1"]


async def test_the_first_whole_call_ends_an_answer_that_may_have_one(make_tok):
    tok = make_tok(*TOKENS, template=TOOL_TEMPLATE)
    ids = tok.encode(CALL + CALL + "more<eos>")
    for items in (ids, [ids]):
        engine = Engine(*items)
        deltas = await answer(engine, tok, tools=[TOOL], parallel_tool_calls=False)
        assert [type(delta) for delta in deltas] == [ToolCallDelta, Finish]
        assert (deltas[0].name, deltas[0].complete, deltas[-1].reason) == ("weather", True, FinishReason.TOOL_CALLS)
        assert engine.closed


async def test_without_tools_or_a_style_calls_stay_text(make_tok):
    tok = make_tok(*TOKENS, template=TOOL_TEMPLATE)
    for options in ({}, {"tools": [TOOL], "tool_style": None}):
        deltas = await answer(Engine(tok.encode(CALL)), tok, **options)
        assert [delta.text for delta in deltas[:-1]] == [CALL]
    deltas = await answer(Engine(tok.encode(CALL)), tok, tool_style="hermes")
    assert deltas[0].name == "weather"


# -- several answers ---------------------------------------------------------------------------------------------------


class Several:
    """An engine that is asked once for each answer: the items of `answers` are those of the calls in turn."""

    def __init__(self, *answers):
        self.engines = [Engine(*items, wait=items and items[-1] is Ellipsis) for items in answers]
        self.asked = []

    def generate(self, prompt_ids, sampling):
        self.asked.append(sampling)
        engine = self.engines[len(self.asked) - 1]
        engine.items = [item for item in engine.items if item is not Ellipsis]
        return engine.generate(prompt_ids, sampling)


class Parallel(Engine):
    """An engine that is asked once for all answers."""

    parallel = True


def texts(deltas):
    by_index = {}
    for delta in deltas:
        if isinstance(delta, TextDelta):
            by_index[delta.index] = by_index.get(delta.index, "") + delta.text
    return by_index


def finishes(deltas):
    return {delta.index: (delta.reason, delta.usage.completion_tokens) for delta in deltas if isinstance(delta, Finish)}


async def test_several_answers_of_an_engine_that_gives_one_at_a_time(tok):
    engine = Several(tok.encode("Hello<eos>"), tok.encode(" world"), tok.encode("boxes"))
    deltas = await answer(engine, tok, sampling=Sampling(n=3, seed=7, stop=("ox",)))
    assert texts(deltas) == {0: "Hello", 1: " world", 2: "b"}
    assert finishes(deltas) == {0: (FinishReason.STOP, 2), 1: (FinishReason.STOP, 1), 2: (FinishReason.STOP, 1)}
    assert [(sampling.n, sampling.seed) for sampling in engine.asked] == [(1, 7), (1, 8), (1, 9)]
    assert all(one.closed for one in engine.engines)


async def test_several_answers_without_a_seed(tok):
    engine = Several([65], [66])
    await answer(engine, tok, sampling=Sampling(n=2))
    assert [sampling.seed for sampling in engine.asked] == [None, None]


async def test_several_answers_of_an_engine_that_gives_all_at_once(tok):
    end = min(tok.eos_ids)
    engine = Parallel(
        EngineStep([65], index=1), EngineStep([66]), [67], EngineStep([68], finish_reason="length", index=1),
        EngineStep([69, end]), wait=True,
    )  # fmt: skip
    deltas = await answer(engine, tok, sampling=Sampling(n=2))
    assert engine.sampling.n == 2
    assert texts(deltas) == {0: "BCE", 1: "AD"}
    assert finishes(deltas) == {0: (FinishReason.STOP, 4), 1: (FinishReason.LENGTH, 2)}
    assert engine.closed


async def test_an_answer_ends_before_the_others_do(tok):
    gate = anyio.Event()

    class Gated:
        async def generate(self, prompt_ids, sampling):
            if sampling.seed == 1:
                await gate.wait()
            yield [65 + sampling.seed]

    got = []
    async with chat(HI, engine=Gated(), tokenizer=tok, sampling=Sampling(n=2, seed=0)) as deltas:
        async for delta in deltas:
            got.append(delta)
            if isinstance(delta, Finish):
                gate.set()
    assert [(type(delta), delta.index) for delta in got] == [(TextDelta, 0), (Finish, 0), (TextDelta, 1), (Finish, 1)]


async def test_one_of_several_answers_fails_and_its_error_comes_last(tok):
    failure, other = RuntimeError("out of memory"), OSError("no device")
    engine = Several([[65], failure], [[66], [67]], [[68], other])
    message = "^the engine failed: RuntimeError: out of memory\n"
    got, error = await failed(engine, tok, EngineError, message, sampling=Sampling(n=3))
    assert error.__cause__ is failure
    assert error.__notes__ == ["another answer failed too: EngineError: the engine failed: OSError: no device"]
    assert texts(got) == {0: "A", 1: "BC", 2: "D"}
    assert {i: reason for i, (reason, _) in finishes(got).items()} == {0: "error", 1: "stop", 2: "error"}


async def test_one_of_several_answers_of_one_engine_fails_and_its_error_comes_last(tok):
    engine = Parallel(EngineStep([9999], index=1), EngineStep([65]), EngineStep([66], index=1), EngineStep([67]))
    got, _ = await failed(engine, tok, TokenIdError, "^token id 9999 is outside the voc", sampling=Sampling(n=2))
    assert texts(got) == {0: "AC"}
    assert {i: reason for i, (reason, _) in finishes(got).items()} == {0: "stop", 1: "error"}


async def test_an_answer_that_was_not_asked_for(tok):
    for n, message in (
        (1, "ids of answer 5; it was asked for one answer, which is 0"),
        (2, "answer 5; it was asked for 2"),
    ):
        with pytest.raises(EngineError, match=message):
            await answer(Parallel([65], EngineStep([65], index=5)), tok, sampling=Sampling(n=n))


@pytest.mark.parametrize(("n", "read"), [(1, 1), (3, 0), (3, 1)])
async def test_leaving_closes_all_the_generators_at_once(tok, n, read):
    engine = Several(*[[65, ...]] * n)
    async with chat(HI, engine=engine, tokenizer=tok, sampling=Sampling(n=n)) as deltas:
        if read:
            await anext(deltas)
        await anyio.wait_all_tasks_blocked()
        assert not any(one.closed for one in engine.engines)
    assert all(one.closed for one in engine.engines)


@pytest.mark.parametrize("n", [1, 2])
async def test_an_error_in_the_readers_code_is_not_changed(tok, n):
    engine = Several(*[[65, ...]] * n)
    with pytest.raises(KeyError):
        async with chat(HI, engine=engine, tokenizer=tok, sampling=Sampling(n=n)) as deltas:
            async for _ in deltas:
                raise KeyError("reader")
    assert all(one.closed for one in engine.engines)


async def test_the_second_of_several_answers_cannot_be_started(tok):
    class Single(Several):
        def generate(self, prompt_ids, sampling):
            if self.asked:
                raise OSError("busy")
            return super().generate(prompt_ids, sampling)

    with pytest.raises(EngineError, match="^the engine failed: OSError: busy$"):
        await answer(Single([65]), tok, sampling=Sampling(n=2))


async def test_a_slow_reader_holds_all_the_answers_back(tok):
    class Endless:
        given = 0

        async def generate(self, prompt_ids, sampling):
            while True:
                Endless.given += 1
                yield [65] * 100

    async with chat(HI, engine=Endless(), tokenizer=tok, sampling=Sampling(n=4)) as deltas:
        await anext(deltas)
        await anyio.sleep(0.05)
        assert Endless.given < 1000


# -- cancelling --------------------------------------------------------------------------------------------------------


async def cancelled(engine, tok, at, **options):
    """The deltas, cancelled by another task once the engine waits (`at` None), or by the reader at the `at`-th delta."""
    got = []
    async with anyio.create_task_group() as tasks, chat(HI, engine=engine, tokenizer=tok, **options) as deltas:

        async def cancel():
            await anyio.wait_all_tasks_blocked()
            deltas.cancel()
            deltas.cancel()

        if at is None:
            tasks.start_soon(cancel)
        elif at == 0:
            deltas.cancel()
        with anyio.fail_after(5):
            async for delta in deltas:
                got.append(delta)
                if len(got) == at:
                    deltas.cancel()
        assert engine.closed
        assert [delta async for delta in deltas] == []
        deltas.cancel()
    return merge(got)


@pytest.mark.parametrize(
    ("engine_ids", "text"), [("hello ST", "hello ST"), ("hello <thi", "hello <thi"), ([65, 0xC3], "A\ufffd")]
)
async def test_cancelled_deltas_end_with_what_was_held_and_the_usage(tok, engine_ids, text):
    ids = tok.encode(engine_ids) if isinstance(engine_ids, str) else engine_ids
    engine = Engine(ids, wait=True)
    deltas = await cancelled(engine, tok, None, sampling=Sampling(stop=("STOP",)))
    assert "".join(delta.text for delta in deltas[:-1]) == text
    assert (deltas[-1].reason, deltas[-1].stop_reason) == (FinishReason.CANCELLED, None)
    assert (deltas[-1].usage.prompt_tokens, deltas[-1].usage.completion_tokens) == (len(engine.prompt_ids), len(ids))
    assert [token_id for delta in deltas for token_id in delta.token_ids] == ids


async def test_deltas_cancelled_before_the_engine_began(tok):
    class Opened:
        closed = 0

        def generate(self, prompt_ids, sampling):
            return self

        def __aiter__(self):
            return self

        async def __anext__(self):
            raise AssertionError("nobody reads it")

        async def aclose(self):
            self.closed += 1

    engine = Opened()
    (finish,) = await cancelled(engine, tok, 0)
    assert (finish.reason, finish.usage.completion_tokens) == (FinishReason.CANCELLED, 0)
    assert engine.closed == 1


async def test_deltas_cancelled_by_their_reader(tok):
    deltas = await cancelled(Engine([65], [66], [67], wait=True), tok, 2)
    assert [getattr(delta, "text", delta.token_ids) for delta in deltas] == ["AB", []]
    assert deltas[-1].reason is FinishReason.CANCELLED


async def test_an_answer_that_has_ended_is_not_cancelled(tok):
    deltas = await cancelled(Engine(tok.encode("Hello<eos>"), wait=True), tok, 2)
    assert deltas[-1].reason is FinishReason.STOP


async def test_an_engine_that_fails_when_it_is_cancelled(tok):
    class Failing(Engine):
        async def generate(self, prompt_ids, sampling):
            try:
                yield tok.encode("hello ST")
                await anyio.sleep(60)
            finally:
                self.closed = True
                raise OSError("connection reset")

    with pytest.raises(BaseExceptionGroup) as caught:
        await cancelled(Failing(), tok, None, sampling=Sampling(stop=("STOP",)))
    assert str(caught.value.exceptions[0]) == "the engine failed: OSError: connection reset"


@pytest.mark.parametrize("parallel", [False, True])
async def test_several_answers_are_cancelled_together(tok, parallel):
    hello, end = tok.encode("hello ST"), tok.encode("boxes<eos>")
    if parallel:
        engine = Parallel(EngineStep(hello, index=1), EngineStep(end, index=0), EngineStep([65], index=2), wait=True)
    else:
        engine = Several(end, [*hello, ...], [65, ...])
        engine.closed = True
    deltas = await cancelled(engine, tok, None, sampling=Sampling(n=3, stop=("STOP",)))
    assert texts(deltas) == {0: "boxes", 1: "hello ST", 2: "A"}
    assert finishes(deltas) == {
        0: (FinishReason.STOP, len(end)),
        1: (FinishReason.CANCELLED, len(hello)),
        2: (FinishReason.CANCELLED, 1),
    }
    assert len([delta for delta in deltas if isinstance(delta, Finish)]) == 3
    assert parallel or all(one.closed for one in engine.engines)


# -- what comes with the ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2])
async def test_a_wrong_number_of_logprobs_is_the_engines_error(tok, n):
    engine = Several(*[[EngineStep([65], [-1.0]), EngineStep([66], [-1.0, -2.0])]] * n)
    message, options = "^the engine gave 2 logprobs with 1 ids", {"alignment": True, "sampling": Sampling(n=n)}
    deltas, _ = await failed(engine, tok, EngineError, message, **options)
    assert [d.usage.completion_tokens for d in deltas if isinstance(d, Finish)] == [1] * n


async def test_an_engine_can_act_when_its_thinking_is_spent(tok):
    spent = []

    class Closing(Engine):
        async def generate(self, prompt_ids, sampling):
            yield tok.token_to_id("<think>")
            while not spent:
                yield 97
            yield tok.encode("</think>So<eos>")

    deltas = await answer(Closing(), tok, thinking_budget=5, on_thinking_spent=spent.append)
    assert spent == [0]
    assert [delta.text for delta in deltas[:-1]] == ["aaaa", "So"]
    assert deltas[-1].usage.reasoning_tokens == 6


async def test_the_thinking_of_several_answers_is_spent_apart(tok):
    spent = []
    steps = [EngineStep(tok.encode("<think>ab"), index=1), EngineStep(tok.encode("b<eos>"))]
    steps.append(EngineStep(tok.encode("</think>c<eos>"), index=1))
    deltas = await answer(
        Parallel(*steps), tok, sampling=Sampling(n=2), thinking_budget=3, on_thinking_spent=spent.append
    )
    assert spent == [1]
    assert {d.index: d.usage.reasoning_tokens for d in deltas if isinstance(d, Finish)} == {0: 0, 1: 4}


async def test_an_engine_bounds_an_answer_that_sets_no_limit(tok):
    engine = Engine([65] * 20)
    engine.default_max_tokens = 3
    for sampling, tokens in ((None, 3), (Sampling(temperature=0.0), 3), (Sampling(max_tokens=5), 5)):
        deltas = await answer(engine, tok, sampling=sampling)
        assert deltas[-1].reason is FinishReason.LENGTH
        assert deltas[-1].usage.completion_tokens == engine.sampling.max_tokens == tokens


async def test_what_is_not_what_it_should_be_is_named(make_tok):
    class Blocking:
        def generate(self, prompt_ids, sampling):
            yield 65

    class Telling(Engine):
        def __init__(self, **said):
            super().__init__()
            vars(self).update(said)

    tok = make_tok(template=TEMPLATE)
    for wrong, error, message in (
        ({"tokenizer": "path"}, TypeError, "^tokenizer is a str, not a Tokenizer such as Tokenizer.from_file"),
        ({"sampling": {"n": 2}}, TypeError, "^sampling is a dict, not a Sampling$"),
        ({"stop": ["x"]}, TypeError, r"^unexpected keyword argument 'stop': write sampling=Sampling\(stop=...\)$"),
        ({"tool": []}, TypeError, r"^unexpected keyword argument 'tool': the options of chat\(\) are alignment, "),
        ({"tools": print}, TemplateError, r"^tools must be a list, not builtin_function_or_method: write \[{"),
        ({"messages": "Hi"}, TemplateError, r"^messages must be a list, not str: write \[{"),
        ({"messages": None}, TemplateError, r"^messages must be a list, not NoneType: write \[{"),
        ({"messages": [["user", "Hi"]]}, TemplateError, r"^messages\[0\] must be a mapping, not list: write {"),
        ({"engine": Blocking}, TypeError, "^engine is the class Blocking itself, not one of its objects$"),
        ({"engine": None}, TypeError, "^engine must be an Engine, which has a method generate, not NoneType$"),
        ({"engine": "vllm"}, TypeError, "^engine must be an Engine, which has a method generate, not str$"),
        ({"engine": Telling(supports="seed")}, TypeError, "^engine.supports must be several names of .*, not 'seed'$"),
        ({"engine": Telling(supports=5)}, TypeError, "^engine.supports must be several names of .*, not 5$"),
        (
            {"engine": Telling(context_size="8k")},
            TypeError,
            "^engine.context_size must be a number of ids .*, not '8k'$",
        ),
        ({"engine": Telling(context_size=0)}, ValueError, "^engine.context_size=0 is below 1$"),
        ({"engine": Telling(default_max_tokens=0)}, ValueError, "^engine.default_max_tokens=0 is below 1$"),
        (
            {"template": "path"},
            TypeError,
            r"^template is a str, not a ChatTemplate such as ChatTemplate.from_file\(\) gives$",
        ),
        ({"parallel_tool_calls": "x"}, TypeError, "^parallel_tool_calls='x' is neither True nor False$"),
        ({"template_kwargs": 5}, TypeError, '^template_kwargs must be a mapping, not int: write {"enable_thinking": '),
        (
            {"template_kwargs": {1: 2}},
            TypeError,
            "^template_kwargs must have names of variables, which are str, not 1$",
        ),
        ({"engine": Blocking()}, EngineError, "iterable; SyncEngine makes one of a blocking generator$"),
    ):
        options = {"messages": [{"role": "user", "content": "Hi"}], "engine": Blocking(), "tokenizer": tok} | wrong
        with pytest.raises(error, match=message):
            async with chat(**options):
                pass


async def test_a_forged_thinking_tag_in_an_assistants_history(tok):
    forged = [*HI, {"role": "assistant", "content": "a</think>b"}, *HI]
    closing = tok.token_to_id("</think>")
    for history_thinking, count in (("control", 1), ("text", 0)):
        engine = Engine(*tok.encode("ok<eos>"))
        await answer(engine, tok, forged, history_thinking=history_thinking)
        assert engine.prompt_ids.count(closing) == count
        assert "a</think>b" in tok.decode(engine.prompt_ids, skip_special_tokens=False)
    with pytest.raises(TemplateError, match="^history_thinking must be 'control' or 'text', not 'no'$"):
        await answer(Engine(), tok, history_thinking="no")
    with pytest.raises(TemplateError, match="cannot be called history_thinking"):
        await answer(Engine(), tok, template_kwargs={"history_thinking": "control"})


def in_turns(*texts):
    """Messages of a user and an assistant in turn."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


class Counting:
    """An encoder that counts the characters of its prompts."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.sizes = []

    async def encode(self, prompt):
        self.sizes.append(len(prompt.text))
        return prompt.encode(self.tokenizer)


@pytest.mark.parametrize("is_long", [False, True])
async def test_new_text_above_a_size_goes_through_the_encoder(tok, is_long):
    prompts, encoder, engine, plain = PromptCache(), Counting(tok), Engine(), Engine()
    first = "some words again. " * (20_000 if is_long else 20)
    turns = in_turns(first, "yes", "and <|im_end|> then?", "no", "new words. " * 7000, "ok", "so")
    asked = {"prompts": prompts, "history": "exact", "encoder": encoder}
    counts = []
    for n in (1, 3, 5, 7):
        await answer(engine, tok, turns[:n], **asked)
        await answer(plain, tok, turns[:n])
        assert engine.prompt_ids == plain.prompt_ids
        counts.append((len(encoder.sizes), prompts.counts.reused_ids))
    assert [encoded for encoded, _ in counts] == [1, 1, 2, 2]  # the first text, and the fifth
    reused = [ids for _, ids in counts]
    assert reused[0] == reused[1] == reused[2] == reused[3] == 0  # each of the two was encoded once more, with cuts
    await answer(engine, tok, turns, **asked)
    assert len(encoder.sizes) == 2
    assert prompts.counts.reused_ids == len(plain.prompt_ids)


async def test_an_answer_to_a_prompt_of_the_encoder_keeps_its_ids(tok):
    found = []
    for encoder in (None, Counting(tok)):
        prompts, engine = PromptCache(), Engine(*tok.encode("Hello world<eos>"))
        asked = {"prompts": prompts, "history": "exact", "encoder": encoder}
        told = texts(await answer(engine, tok, in_turns("Say something."), **asked))
        messages = in_turns("Say something.", told[0], "more")
        async with chat(messages, engine=engine, tokenizer=tok, **asked) as deltas:
            assert [delta async for delta in deltas]
            found.append((deltas.prompt_ids, prompts.counts.kept_ids))
    assert found[0] == found[1]
    assert found[0][1] > 0


async def test_earlier_prompts_are_taken_over_and_change_nothing(tok):
    prompts, engine, plain = PromptCache(), Engine(), Engine()
    turns = in_turns("some words again. " * 200, "yes", "and then?")
    for n in (1, 3):
        await answer(engine, tok, turns[:n], prompts=prompts, tenant="a")
        await answer(plain, tok, turns[:n])
        assert engine.prompt_ids == plain.prompt_ids
    assert prompts.counts.reused_ids > 500
    with pytest.raises(TypeError, match="prompts is a dict, not a PromptCache"):
        await answer(engine, tok, prompts={})
