"""Output that waits for the next frame: when it goes, that it is decoded in one go, and that nothing of it is lost."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tokenweir import EngineStep, Sampling, Tokenizer
from tokenweir.encode.errors import TokenweirError
from tokenweir.stream.chat.chat import answer
from tokenweir.stream.chat.replay_buffer import ReplayBuffer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import Finish, FinishReason
from tokenweir.stream.events.merge import merge, size_of
from tokenweir.stream.serve.answers import frame_buffer
from tokenweir.stream.serve.answers.frame_buffer import MOST_KEPT, PATIENCE
from tokenweir.stream.serve.answers.generation import Generation, abandoned
from tokenweir.stream.serve.answers.pacer import Pacer
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.monitoring.metrics import Metrics

pytestmark = pytest.mark.anyio

INTERVAL = 5.0
TOKENIZER = Tokenizer.default()


class Engine:
    """Gives what it is told to."""

    def __init__(self):
        self._items = asyncio.Queue()
        self.closed = False

    async def generate(self, prompt_ids, sampling):
        try:
            while (item := await self._items.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.closed = True

    @property
    def waiting(self):
        """Return the number of items that were not requested yet."""
        return self._items.qsize()

    async def give(self, item):
        self._items.put_nowait(TOKENIZER.encode(item) if isinstance(item, str) else item)
        for _ in range(10):
            await asyncio.sleep(0)


class Clock(Pacer):
    """A pacer whose time goes by hand."""

    def __init__(self):
        super().__init__(INTERVAL)
        self.now = 100.0
        self.calls = []

    def call_at(self, when, call):
        self.calls.append((when, call))

    def go_on(self, seconds):
        self.now += seconds
        due = [each for each in self.calls if each[0] <= self.now]
        self.calls = [each for each in self.calls if each[0] > self.now]
        for _, call in due:
            call()


class Stream:
    """A generation, and all that a reader who takes at once was told."""

    def __init__(self, engine, clock, metrics, **sampling):
        self.metrics = metrics
        self.engine = engine
        self.clock = clock
        self.deltas = []
        self.reading = True
        self.failures = []
        self.generation = Generation(
            "a",
            answer(
                [],
                {"stop": sampling.get("stop", ())},
                engine=engine,
                tokenizer=TOKENIZER,
                sampling=Sampling(**sampling),
            ),
            replay=ReplayBuffer(0, merge, size_of),
            make=merge,
            limits=Limits(max_pending_bytes=2000),
            pacer=clock,
            meter=metrics.meter("m"),
        )
        self.subscription = self.generation.subscribe()
        self.subscription.listen(self.take)
        self.generation.start()

    def take(self):
        if not self.reading:
            return
        try:
            self.deltas += self.subscription.take_now()
        except TokenweirError as error:
            self.failures.append(str(error))

    async def until_ended(self):
        async with asyncio.timeout(5):
            await self.generation.ended.wait()
        assert self.engine.closed

    @property
    def texts(self):
        return [delta.text for delta in self.deltas if not isinstance(delta, Finish)]

    @property
    def finish(self):
        last = self.deltas[-1]
        assert isinstance(last, Finish)
        return last

    @property
    def arrivals(self):
        return sum(self.metrics.models["m"].inter_token.counts)


@asynccontextmanager
async def streaming(monkeypatch, **sampling):
    clock = Clock()
    monkeypatch.setattr(frame_buffer, "monotonic", lambda: clock.now)
    metrics = Metrics.of(["m"])
    stream = Stream(Engine(), clock, metrics, **sampling)
    stream.generation._meter.start(1)
    yield stream
    stream.generation.drop()
    await stream.until_ended()


async def test_what_comes_too_early_goes_with_the_next_that_may(monkeypatch):
    async with streaming(monkeypatch) as stream:
        engine, clock = stream.engine, stream.clock
        await engine.give("a")  # the first goes at once
        assert stream.texts == ["a"]
        await engine.give("b")
        clock.go_on(3)
        await engine.give("c")
        assert stream.texts == ["a"] and len(clock.calls) == 1
        clock.go_on(3)  # the interval is over: the next token takes the others along
        await engine.give("d")
        assert stream.texts == ["a", "bcd"]
        assert stream.arrivals == 3  # each token has its own latency, although they went together
        [(when, _)] = clock.calls
        assert when == 100 + INTERVAL + INTERVAL * PATIENCE
        clock.go_on(when - clock.now)  # there is nothing left to do
        assert stream.texts == ["a", "bcd"] and clock.calls == []
        await engine.give("e")
        [(when, _)] = clock.calls
        clock.go_on(when - clock.now)  # no token came, so that the timer sends it
        assert stream.texts == ["a", "bcd", "e"]
        clock.go_on(100)  # after a pause a token goes at once
        await engine.give("f")
        assert stream.texts[-1] == "f"


async def test_the_end_token_of_a_step_is_no_arrival(monkeypatch):
    async with streaming(monkeypatch) as stream:
        await stream.engine.give(EngineStep(TOKENIZER.encode("a")))
        stream.clock.go_on(INTERVAL)
        await stream.engine.give(EngineStep(TOKENIZER.encode("b")))
        stream.clock.go_on(INTERVAL)
        await stream.engine.give(EngineStep(sorted(TOKENIZER.eos_ids)[:1]))
        assert stream.finish.usage.completion_tokens == 3
        assert stream.arrivals == 1  # after the first


async def test_a_timer_that_finds_nothing_does_not_put_off_the_next_frame(monkeypatch):
    async with streaming(monkeypatch) as stream:
        engine, clock = stream.engine, stream.clock
        await engine.give("a")
        await engine.give("b")  # sets the timer
        clock.go_on(INTERVAL)
        await engine.give("c")
        assert stream.texts == ["a", "bc"]
        clock.go_on(INTERVAL * PATIENCE)  # its time; there is nothing left to do
        clock.go_on(INTERVAL * (1 - PATIENCE))  # an interval since the last frame
        await engine.give("d")
        assert stream.texts == ["a", "bc", "d"]


async def test_a_timer_that_comes_too_early_for_what_it_finds_waits_once_more(monkeypatch):
    async with streaming(monkeypatch) as stream:
        engine, clock = stream.engine, stream.clock
        await engine.give("a")
        await engine.give("b")
        clock.go_on(INTERVAL)
        await engine.give("c")
        await engine.give("d")  # after that frame, and before the timer of the last one
        clock.go_on(INTERVAL * PATIENCE)
        assert stream.texts == ["a", "bc"]
        [(when, _)] = clock.calls
        clock.go_on(when - clock.now)
        assert stream.texts == ["a", "bc", "d"]


@pytest.mark.parametrize("end", [None, EngineStep([], finish_reason="length")])
async def test_the_end_waits_for_no_interval(monkeypatch, end):
    async with streaming(monkeypatch) as stream:
        for item in ("a", "b", EngineStep(TOKENIZER.encode("c")), "d", end, None):
            await stream.engine.give(item)
        assert "".join(stream.texts) == "abcd" and stream.texts[0] == "a"
        assert stream.finish.reason == ("stop" if end is None else "length")
        assert stream.finish.usage.completion_tokens == 4


async def test_the_tokens_of_a_batch_are_decoded_in_one_call(monkeypatch):
    async with streaming(monkeypatch) as stream:
        fed, feed = [], ChatDecoder.feed
        monkeypatch.setattr(ChatDecoder, "feed", lambda self, ids: fed.append(len(ids)) or feed(self, ids))
        await stream.engine.give("a")
        for _ in range(5):
            await stream.engine.give(" and")
        assert fed == [1]
        stream.clock.go_on(2 * INTERVAL)
        assert fed == [1, 5 * len(TOKENIZER.encode(" and"))]
        assert stream.texts == ["a", " and" * 5]


async def test_an_engine_that_runs_ahead_is_asked_once_a_frame_of_a_busy_server(monkeypatch):
    monkeypatch.setattr(Engine, "runs_ahead", True, raising=False)
    async with streaming(monkeypatch) as stream:
        engine, clock = stream.engine, stream.clock
        await engine.give("a")
        await engine.give("b")
        assert stream.texts == ["a"] and engine.waiting == 0  # the loop has time: it is asked at once
        clock.busy = True
        clock.go_on(INTERVAL)
        await engine.give("c")
        assert stream.texts == ["a", "bc"]
        await engine.give("d")
        clock.go_on(INTERVAL - 1)
        await engine.give("")
        assert stream.texts == ["a", "bc"] and engine.waiting > 0  # and is left alone until the next frame is due
        clock.go_on(1)
        await engine.give("")
        assert stream.texts == ["a", "bc", "d"] and engine.waiting == 0


@pytest.mark.parametrize("sampling", [{"n": 2}, {}], ids=["several answers", "one answer"])
async def test_an_engine_that_does_not_run_ahead_is_always_asked(monkeypatch, sampling):
    if sampling:
        monkeypatch.setattr(Engine, "runs_ahead", True, raising=False)
    async with streaming(monkeypatch, **sampling) as stream:
        stream.clock.busy = True
        for _ in range(3):
            await stream.engine.give("a")
        assert stream.engine.waiting == 0


async def test_cancelling_does_not_wait_for_the_next_frame(monkeypatch):
    monkeypatch.setattr(Engine, "runs_ahead", True, raising=False)
    async with streaming(monkeypatch) as stream:
        stream.clock.busy = True
        await stream.engine.give("a")
        stream.generation.cancel()
        await stream.until_ended()
        assert stream.texts == ["a"] and stream.finish.reason is FinishReason.CANCELLED


async def test_a_stop_string_between_two_tokens_stops_the_engine(monkeypatch):
    async with streaming(monkeypatch, stop=["X"]) as stream:
        for item in ("a", "b", "X", "c"):
            await stream.engine.give(item)
        assert not stream.engine.closed  # no reader has looked yet
        stream.clock.go_on(2 * INTERVAL)
        await stream.until_ended()
        assert "".join(stream.texts) == "ab"
        assert (stream.finish.reason, stream.finish.stop_reason) == ("stop", "X")


async def test_cancelling_gives_what_waited(monkeypatch):
    async with streaming(monkeypatch) as stream:
        for item in ("a", "b", "c"):
            await stream.engine.give(item)
        stream.generation.cancel()
        await stream.until_ended()
        assert "".join(stream.texts) == "abc"
        assert stream.finish.reason is FinishReason.CANCELLED and stream.finish.usage.completion_tokens == 3


class Panic(BaseException):
    """Such as PyO3 makes of a panic of Rust."""


@pytest.mark.parametrize("failure", [RuntimeError("broken"), Panic("broken"), asyncio.CancelledError()])
async def test_what_waited_comes_before_a_failure(monkeypatch, failure):
    async with streaming(monkeypatch) as stream:
        for item in ("a", "b", "c"):
            await stream.engine.give(item)
        await stream.engine.give(failure)
        await stream.until_ended()
        assert "".join(stream.texts) == "abc" and len(stream.failures) == 1


async def test_an_id_outside_the_vocabulary_fails_after_what_came_before(monkeypatch, caplog):
    async with streaming(monkeypatch) as stream:
        await stream.engine.give("a")
        await stream.engine.give("b")
        await stream.engine.give([10**9])
        stream.clock.go_on(2 * INTERVAL)
        await stream.until_ended()
        assert "".join(stream.texts) == "ab"
        assert len(stream.failures) == 1 and "id 1000000000 is outside the vocabulary" in caplog.text


async def test_a_reader_that_takes_nothing_holds_back_what_only_the_timer_gives(monkeypatch):
    async with streaming(monkeypatch) as stream:
        await stream.engine.give("a")
        stream.reading = False
        for _ in range(100):
            await stream.engine.give(" and")  # too early each time
            stream.clock.go_on(INTERVAL * (1 + PATIENCE))
        assert stream.engine.waiting > 50
        stream.reading = True
        stream.take()
        for _ in range(1000):
            await asyncio.sleep(0)
        stream.clock.go_on(INTERVAL * (1 + PATIENCE))
        assert stream.engine.waiting == 0 and "".join(stream.texts) == "a" + " and" * 100


async def test_a_fast_engine_waits_for_no_interval(monkeypatch):
    async with streaming(monkeypatch) as stream:
        await stream.engine.give("a")
        token = TOKENIZER.encode(" and")
        await stream.engine.give(token * (MOST_KEPT // len(token)))
        assert "".join(stream.texts) == "a" + " and" * (MOST_KEPT // len(token))


@pytest.mark.parametrize("stop", [Generation.drop, Generation.cancel])
async def test_an_answer_that_is_stopped_before_its_task_has_begun_has_ended(stop):
    stream = Stream(Engine(), Clock(), Metrics.of(["m"]))
    stop(stream.generation)
    for _ in range(10):
        await asyncio.sleep(0)
    assert stream.generation.ended.is_set()  # and no timer has to resume its engine
    assert abandoned() == 0
