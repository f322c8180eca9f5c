"""Streams that are interrupted wherever they can be: at every suspension and at every item, in every way there is.

Each test runs one body again and again, interrupted at its first suspension, its second, and so on, until a run is
over before its turn comes. After each run, what the source has opened is closed, exactly once; no task is left; and
nothing has been warned of.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from itertools import count
from random import Random

import anyio
import pytest
from anyio.lowlevel import checkpoint
from full_run import FULL, share
from interrupting import (
    INTERRUPTED,
    LOOPS,
    SHORTLY,
    Suspended,
    Watch,
    by_scope,
    in_loop,
    interrupt_everywhere,
    no_warning,
)

from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat import broadcast
from tokenweir.stream.chat.chat import chat
from tokenweir.stream.chat.fan_out import fan_out
from tokenweir.stream.chat.prompt_stage import encode_prompts
from tokenweir.stream.chat.stages import decode_chat, detokenize, split_reasoning, stop_at, strip_reasoning, until_eos
from tokenweir.stream.engines.ngram import NgramEngine
from tokenweir.stream.engines.replay import Recording, ReplayEngine
from tokenweir.stream.engines.sync import SyncEngine
from tokenweir.stream.events.deltas import Finish, FinishReason
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep
from tokenweir.stream.prompts.batching.batcher import PromptBatcher

TEMPLATE = "{% for m in messages %}<turn>{{ m.content }}<eos>{% endfor %}<turn>{# <think> </think> #}"
HI = [{"role": "user", "content": "hi"}]
ANSWER = "<think>hm</think>\nboxes 👩stop<eos>"


@pytest.fixture(scope="module")
def tok(make_tok):
    return make_tok(
        AddedToken("<turn>", special=True), AddedToken("<think>"), AddedToken("</think>"), template=TEMPLATE
    )


# -- what is interrupted -----------------------------------------------------------------------------------------------


class Generated:
    """An engine that is an async generator."""

    def __init__(self, watch, ids):
        self.watch, self.ids = watch, ids

    async def generate(self, prompt_ids=(), sampling=None):
        async with self.watch.open():
            for token_id in self.ids:
                await checkpoint()
                yield [token_id]


class Opened:
    """An engine that has opened what it reads before anybody reads it, as an HTTP client has; closing it twice shows."""

    def __init__(self, watch, ids):
        self.watch, self.ids = watch, ids
        self.left = iter(ids)

    def generate(self, prompt_ids=(), sampling=None):
        self.watch.opened += 1
        return Opened(self.watch, list(self.ids))

    def __aiter__(self):
        return self

    async def __anext__(self):
        await checkpoint()
        for token_id in self.left:
            return token_id
        raise StopAsyncIteration

    async def aclose(self):
        self.watch.closed += 1
        await checkpoint()


def composed(ids, tok, *, strip=False):
    text = detokenize(until_eos(ids, tok.eos_ids), tok, reasoning="think")
    return stop_at((strip_reasoning if strip else split_reasoning)(text, "think"), ["stop"])


STAGES = {
    "until_eos": lambda ids, tok: until_eos(ids, tok.eos_ids),
    "detokenize": lambda ids, tok: detokenize(ids, tok),
    "split_reasoning": lambda ids, tok: split_reasoning(detokenize(ids, tok), "think"),
    "composed": composed,
    "composed, stripped": lambda ids, tok: composed(ids, tok, strip=True),
    "decode_chat": lambda ids, tok: decode_chat(ids, tok, stop=["stop"]),
    "decode_chat to the end": lambda ids, tok: decode_chat(ids, tok),
}


@pytest.mark.parametrize("engine", [Generated, Opened])
@pytest.mark.parametrize("stage", STAGES)
@SHORTLY
def test_stages(tok, loop, way, stage, engine):
    ids = tok.encode(ANSWER)

    async def body(watch):
        async with aclosing(STAGES[stage](engine(watch, ids).generate(), tok)) as items:
            await checkpoint()  # the source is owned before anything is read
            async for _ in items:
                await checkpoint()

    interrupt_everywhere(loop, way, body, at_least=len(ids))


class Parallel(Generated):
    """An engine that gives several answers by itself."""

    parallel = True

    async def generate(self, prompt_ids, sampling):
        async with self.watch.open():
            for token_id in self.ids:
                await checkpoint()
                for index in range(sampling.n):
                    yield EngineStep([token_id], index=index)


CHATS = [(Generated, 1), (Opened, 3), (Parallel, 3), (Opened, 1), (Generated, 3)]


@pytest.mark.parametrize(("engine", "n"), CHATS if FULL else CHATS[:3])
@INTERRUPTED
def test_chat(tok, loop, way, engine, n):
    async def body(watch):
        sampling = Sampling(stop=("stop",), n=n)
        made = engine(watch, tok.encode(ANSWER))
        async with chat(HI, engine=made, tokenizer=tok, sampling=sampling) as deltas:
            await checkpoint()
            async for _ in deltas:
                await checkpoint()

    interrupt_everywhere(loop, way, body, opens=1 if engine is Parallel else n)


@pytest.mark.parametrize("engine", [Generated, Opened])
@pytest.mark.parametrize("loop", LOOPS)
def test_chat_at_any_pace(tok, loop, engine, monkeypatch):
    """The hand-off yields by the clock, so where a reader waits depends on the machine; here it depends on a seed."""

    async def body(watch):
        made = engine(watch, tok.encode(ANSWER))
        async with chat(HI, engine=made, tokenizer=tok, sampling=Sampling(stop=("stop",), n=3)) as deltas:
            async for _ in deltas:
                await checkpoint()

    for seed in range(share(12)):
        monkeypatch.setattr(broadcast, "monotonic", Random(seed).random)
        interrupt_everywhere(loop, by_scope, body, opens=3)


@pytest.mark.parametrize(("engine", "n"), CHATS)
@pytest.mark.parametrize("loop", LOOPS)
def test_deltas_cancelled_at_every_suspension(tok, loop, engine, n):
    ids = tok.encode(ANSWER)

    async def read(watch, at):
        got = []
        made = engine(watch, ids)
        async with chat(HI, engine=made, tokenizer=tok, sampling=Sampling(stop=("stop",), n=n)) as deltas:

            async def body():
                async for delta in deltas:
                    got.append(delta)
                    await checkpoint()

            run = Suspended(body(), at, deltas.cancel)
            await run
            assert run.over
            assert watch.closed == watch.opened
        return run.count < at, got

    async def runs():
        idle = len(anyio.get_running_tasks())
        for at in count(1):
            watch = Watch()
            over, got = await read(watch, at)
            ends = [delta for delta in got if isinstance(delta, Finish)]
            assert sorted(end.index for end in ends) == list(range(n))
            for end in ends:
                given = [token_id for delta in got if delta.index == end.index for token_id in delta.token_ids]
                assert given == ids[: end.usage.completion_tokens]
            assert len(anyio.get_running_tasks()) == idle
            if over:
                return at, {end.reason for end in ends}

    at, reasons = no_warning(lambda: in_loop(loop, runs))
    assert at > 3 and reasons == {FinishReason.STOP}


@pytest.mark.parametrize("engine", [Generated, Opened])
@INTERRUPTED
def test_several_readers(tok, loop, way, engine):
    async def read(stream):
        with stream.subscribe() as subscription:
            async for _ in subscription:
                await checkpoint()

    async def body(watch):
        async with (
            fan_out(decode_chat(engine(watch, tok.encode(ANSWER)).generate(), tok)) as stream,
            anyio.create_task_group() as readers,
        ):
            readers.start_soon(read, stream)
            await read(stream)

    interrupt_everywhere(loop, way, body)


class Batch:
    """Encodes many prompts in a blocking call."""

    def __init__(self, tok):
        self.tok = tok

    def encode_batch(self, prompts):
        return self.tok.encode_batch(prompts)


class OneByOne:
    """Encodes one prompt in a call that waits."""

    def __init__(self, tok):
        self.tok = tok

    async def encode(self, prompt):
        await checkpoint()
        return self.tok.encode(prompt)


@pytest.mark.parametrize("encoder", [lambda tok: tok, Batch, OneByOne], ids=["tokenizer", "batch", "one by one"])
@INTERRUPTED
def test_encode_prompts(tok, loop, way, encoder):
    async def prompts(watch):
        async with watch.open():
            for text in ("a", "boxes", "👩", "Hello", "User"):
                await checkpoint()
                yield text

    async def body(watch):
        async with aclosing(encode_prompts(prompts(watch), encoder(tok), batch_size=2)) as items:
            async for _ in items:
                await checkpoint()

    interrupt_everywhere(loop, way, body)


@INTERRUPTED
def test_encode_prompts_in_batches_of_many_callers(tok, loop, way):
    async def prompts(watch):
        async with watch.open():
            for text in ("a", "boxes", "👩"):
                await checkpoint()
                yield text

    async def body(watch):
        async with (
            PromptBatcher(Batch(tok), max_batch=2, max_delay=0.0) as batcher,
            aclosing(encode_prompts(prompts(watch), batcher, batch_size=2)) as items,
        ):
            async for _ in items:
                await checkpoint()

    interrupt_everywhere(loop, way, body)


def blocking(watch):
    def generate(prompt_ids, sampling):
        watch.opened += 1
        try:
            yield from [[72], [73], [74]]
        finally:
            watch.closed += 1

    return SyncEngine(generate, buffer=1)


def thread_ended(watch):
    """The blocking generator ends in its own thread, shortly after."""
    for thread in threading.enumerate():
        if thread.name == "tokenweir-engine":
            thread.join(5)


RECORDED = Recording(name="three", prompt="", ids=(72, 73, 74), waits_ms=(0.0, 0.01, 0.01))
ENGINES = {
    "replay": lambda watch: ReplayEngine([RECORDED]),
    "replay at once": lambda watch: ReplayEngine([RECORDED], speed=None),
    "n-gram": lambda watch: NgramEngine(),
    "n-gram with a delay": lambda watch: NgramEngine(delay=1e-5),
    "sync": blocking,
}


@pytest.mark.parametrize("engine", ENGINES)
@INTERRUPTED
def test_engines(loop, way, engine):
    tok = Tokenizer.default()

    async def body(watch):
        ids = ENGINES[engine](watch).generate([5, 6], Sampling(max_tokens=3, ignore_eos=True, seed=1))
        async with aclosing(decode_chat(ids, tok)) as deltas:
            async for _ in deltas:
                await checkpoint()

    interrupt_everywhere(loop, way, body, opens=int(engine == "sync"), settled=thread_ended)


# -- leaving at an item ------------------------------------------------------------------------------------------------


async def by_break(deltas, at):
    seen = 0
    async with aclosing(deltas):
        async for _ in deltas:
            seen += 1
            if seen == at:
                break
    return seen


async def by_raise(deltas, at):
    seen = 0
    try:
        async with aclosing(deltas):
            async for _ in deltas:
                seen += 1
                if seen == at:
                    raise KeyError("reader")
    except KeyError:
        pass
    return seen


async def by_aclose(deltas, at):
    seen = 0
    async for _ in deltas:
        seen += 1
        if seen == at:
            await deltas.aclose()
    await deltas.aclose()
    return seen


async def by_throw(deltas, at, error=GeneratorExit):
    seen = 0
    async for _ in deltas:
        seen += 1
        if seen == at:
            with pytest.raises(error):
                await deltas.athrow(error())
    return seen


async def by_throw_cancelled(deltas, at):
    return await by_throw(deltas, at, asyncio.CancelledError)


async def by_break_alone(deltas, at):
    """The event loop closes it when the generator is collected."""
    seen = 0
    async for _ in deltas:
        seen += 1
        if seen == at:
            break
    del deltas, _
    for _ in range(10):
        await checkpoint()
    return seen


LEAVING = (by_break, by_raise, by_aclose, by_throw, by_throw_cancelled, by_break_alone)  # the last warns under trio


@pytest.mark.parametrize("engine", [Generated, Opened])
@pytest.mark.parametrize("stage", ["composed", "decode_chat"])
@pytest.mark.parametrize(
    ("loop", "leave"), [(loop, leave) for loop in LOOPS for leave in LEAVING[: -1 if loop == "trio" else None]]
)
def test_leaving_at_every_item(tok, loop, leave, stage, engine):
    async def runs():
        idle = len(anyio.get_running_tasks())
        for at in count(1):
            watch = Watch()
            seen = await leave(STAGES[stage](engine(watch, tok.encode(ANSWER)).generate(), tok), at)
            assert (watch.opened, watch.closed) == (1, 1), f"left at item {at}"
            assert len(anyio.get_running_tasks()) == idle
            if seen < at:
                return at

    assert no_warning(lambda: in_loop(loop, runs)) > 5
