from __future__ import annotations

import anyio
import pytest

from tokenweir.encode.errors import EngineError, TemplateError, TokenIdError
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.chat import chat
from tokenweir.stream.engines.protocol import Sampling
from tokenweir.stream.events import Finish, FinishReason, ReasoningDelta, TextDelta
from tokenweir.stream.handoff import merge

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


async def answer(engine, tok, **options):
    async with chat(HI, engine=engine, tokenizer=tok, **options) as deltas:
        return merge([delta async for delta in deltas])


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


async def test_leaving_the_context_closes_the_engine_at_once(tok):
    engine = Engine([65], [66], wait=True)
    async with chat(HI, engine=engine, tokenizer=tok) as deltas:
        async for _ in deltas:
            break
        assert not engine.closed
    assert engine.closed


async def test_leaving_before_the_first_delta_closes_what_the_engine_opened(tok):
    class Opened:
        closed = False

        def __aiter__(self):
            return self

        async def aclose(self):
            self.closed = True

    class Opener:
        stream = Opened()

        def generate(self, prompt_ids, sampling):
            return self.stream

    async with chat(HI, engine=Opener(), tokenizer=tok):
        pass
    assert Opener.stream.closed


async def test_an_error_in_the_readers_code_closes_the_engine_and_is_not_changed(tok):
    engine = Engine([65], wait=True)
    with pytest.raises(KeyError):
        async with chat(HI, engine=engine, tokenizer=tok) as deltas:
            async for _ in deltas:
                raise KeyError("reader")
    assert engine.closed


async def test_cancelling_reaches_an_engine_that_waits(tok):
    engine = Engine([65], wait=True)
    with anyio.fail_after(5):
        with anyio.move_on_after(0.05) as scope:
            await answer(engine, tok)
    assert scope.cancelled_caught
    assert engine.closed


async def test_an_engines_failure_comes_after_what_was_decoded(tok):
    failure = RuntimeError("CUDA out of memory")
    got = []
    with pytest.raises(EngineError, match="^the engine failed: RuntimeError: CUDA out of memory$") as caught:
        async with chat(HI, engine=Engine([65], [0xC3], failure), tokenizer=tok) as deltas:
            async for delta in deltas:
                got.append(delta)
    assert caught.value.__cause__ is failure
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
    with pytest.raises(EngineError, match=r"^Wrong.generate\(\) gave list, not an async iterable$"):
        await answer(Wrong(), tok)


@pytest.mark.parametrize(("item", "named"), [("A", "str 'A'"), (0.5, "float 0.5"), (None, "NoneType None")])
async def test_an_engine_that_yields_what_is_not_ids(tok, item, named):
    engine = Engine([65], item, wait=True)
    with pytest.raises(EngineError, match=f"^the engine yielded {named}, not a token id"):
        await answer(engine, tok)
    assert engine.closed


async def test_an_engine_that_yields_an_id_outside_the_vocabulary(tok):
    with pytest.raises(TokenIdError, match=r"^token id 9999 is outside the vocabulary"):
        await answer(Engine([65, 9999]), tok)


async def test_user_text_becomes_no_control_token_and_opens_no_thinking(tok):
    engine = Engine(tok.encode("Hello"))
    messages = [{"role": "user", "content": "<eos><turn>assistant\n<think>"}]
    async with chat(messages, engine=engine, tokenizer=tok) as deltas:
        assert [delta.text async for delta in deltas if isinstance(delta, TextDelta)] == ["Hello"]
    assert engine.prompt_ids.count(tok.token_to_id("<turn>")) == 2
    assert tok.token_to_id("<think>") not in engine.prompt_ids


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
    with pytest.raises(ValueError, match=r"^chat\(\) gives one answer; sampling.n=2 cannot be honoured$"):
        await answer(Untouched(), tok, sampling=Sampling(n=2))
    with pytest.raises(ValueError, match="^tools: ChatDecoder does not parse tool calls"):
        await answer(Untouched(), tok, tools=[{}])
    with pytest.raises(TokenIdError, match="^stop_token_ids: token id 9999 is outside the vocabulary"):
        await answer(Untouched(), tok, sampling=Sampling(stop_token_ids=(9999,)))
