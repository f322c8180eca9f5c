"""The session over a transport in memory."""

import json
import math
from contextlib import aclosing, asynccontextmanager

import anyio
import pytest
from case_tables import cases

from tokenweir.encode.errors import EngineError, TemplateError
from tokenweir.stream.chat.cancellable import Cancellable, Deltas
from tokenweir.stream.decode.transforms import PassOn, StageRunner
from tokenweir.stream.events.deltas import Finish, FinishReason, ReasoningDelta, TextDelta, Usage
from tokenweir.stream.serve.answers.response_task import Responses
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.sockets import session as session_module
from tokenweir.stream.serve.sockets.session import Session

CASES = cases(__file__)

pytestmark = pytest.mark.anyio


STOP = Finish(FinishReason.STOP, usage=Usage(3, 2, 0))
HELD = (TextDelta(" ST"), Finish(FinishReason.CANCELLED, usage=Usage(3, 4, 1)))  # what a decoder gives when cancelled
QUICK = Limits(send_interval=0)


class Answers:
    """An `Answer` that plays deltas and keeps what it was asked; numbers among the deltas are seconds to wait."""

    def __init__(self, *deltas):
        self.deltas = deltas
        self.asked = []
        self.running = 0
        self.begun, self.closed = anyio.Event(), anyio.Event()

    def __call__(self, job, meter):
        self.asked.append((job.model, job.messages, job.sampling, job.template_kwargs, job.tools, job.alignment))
        return self.context()

    @asynccontextmanager
    async def context(self):
        self.running += 1
        self.begun.set()
        try:
            source = Cancellable(self.generate(), HELD)
            async with aclosing(Deltas(source, StageRunner(PassOn()), [source], [1])) as deltas:
                yield deltas
        finally:
            self.running -= 1
            self.closed.set()

    async def until_closed(self):
        with anyio.fail_after(5):
            await self.closed.wait()

    async def generate(self):
        for delta in self.deltas:
            if isinstance(delta, Exception):
                raise delta
            if isinstance(delta, (int, float)):
                await anyio.sleep(delta)
            else:
                yield delta


class Pipe:
    """A transport in memory, and the client at its other end."""

    def __init__(self):
        self.to_server, self.from_client = anyio.create_memory_object_stream(math.inf)
        self.events = []
        self.changed = anyio.Event()
        self.closed = None
        self.gone = anyio.Event()
        self.flowing = anyio.Event()
        self.flowing.set()

    async def receive(self):
        try:
            return await self.from_client.receive()
        except anyio.EndOfStream:
            return None

    async def send(self, data):
        await self.flowing.wait()
        self.events.append(json.loads(data))
        self.changed.set()
        self.changed = anyio.Event()
        await anyio.lowlevel.checkpoint()

    async def close(self, code, reason):
        self.closed = (code, reason)
        self.gone.set()
        self.to_server.close()

    def say(self, message):
        self.to_server.send_nowait(message if isinstance(message, (str, bytes)) else json.dumps(message))

    def create(self, **fields):
        self.say({"type": "response.create", "input": "hi"} | fields)

    async def until_closed(self):
        with anyio.fail_after(5):
            await self.gone.wait()
        return self.closed

    async def until(self, kind, count=1):
        """The `count`-th event of this kind, as soon as it is there."""
        with anyio.fail_after(5):
            while len(found := [event for event in self.events if event["type"] == kind]) < count:
                await self.changed.wait()
        return found[-1]


@asynccontextmanager
async def connected(answers, limits=QUICK):
    responses = Responses(Service(answers, ["demo", "other"], limits))
    async with connection_to(responses) as pipe:
        yield pipe
    await responses.service.close()


@asynccontextmanager
async def connection_to(responses):
    pipe = Pipe()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Session(pipe, responses).run)
        pipe.responses = responses
        yield pipe
        pipe.to_server.close()
    pipe.from_client.close()


async def test_one_response():
    answers = Answers(ReasoningDelta("hm"), 0.001, TextDelta("Hel"), 0.001, TextDelta("lo"), STOP)
    async with connected(answers) as pipe:
        pipe.create(model="other", instructions="be brief", temperature=0, stop="x", reasoning={"effort": "none"})
        done = await pipe.until("response.completed")
    assert [item["content"][0]["text"] for item in done["response"]["output"]] == ["hm", "Hello"]
    assert done["response"]["usage"]["total_tokens"] == 5
    assert [event["sequence_number"] for event in pipe.events] == list(range(len(pipe.events)))
    model, messages, sampling, kwargs, tools, alignment = answers.asked[0]
    assert (model, sampling.temperature, sampling.stop, sampling.max_tokens) == ("other", 0, ("x",), None)
    assert messages == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    assert kwargs == {"enable_thinking": False, "thinking": False}
    assert tools is None and not alignment


async def test_a_second_turn_continues_the_first():
    answers = Answers(ReasoningDelta("hm"), TextDelta("Hello"), STOP)
    async with connected(answers) as pipe:
        pipe.create(instructions="be brief")
        first = await pipe.until("response.completed")
        pipe.create(input="more", previous_response_id=first["response"]["id"])
        second = await pipe.until("response.completed", 2)
        pipe.create(input="or", previous_response_id=first["response"]["id"])  # which need not be the last
        await pipe.until("response.completed", 3)
        pipe.create(store=False)
        unstored = await pipe.until("response.completed", 4)
        pipe.create()
        await pipe.until("response.completed", 5)
        pipe.create(previous_response_id=unstored["response"]["id"])  # no longer the last
        error = await pipe.until("error")
    assert answers.asked[1][1] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello", "reasoning_content": "hm"},
        {"role": "user", "content": "more"},
    ]
    assert [message["content"] for message in answers.asked[2][1]] == ["hi", "Hello", "or"]
    assert not unstored["response"]["store"]
    assert second["response"]["previous_response_id"] == first["response"]["id"]
    assert (error["error"]["code"], error["error"]["param"]) == ("previous_response_not_found", "previous_response_id")


@pytest.mark.parametrize(
    "fields",
    [{"n": 2}, {"input": 1}, {"max_output_tokens": 9000}, {"model": "gpt-9"}, {"input": [{"type": "?"}]}],
)
async def test_what_a_refused_request_would_continue_is_forgotten_unless_stored(fields):
    async with connected(Answers(TextDelta("Hello"), STOP)) as pipe:
        pipe.create()
        stored = await pipe.until("response.completed")
        pipe.create(previous_response_id=stored["response"]["id"], **fields)
        await pipe.until("error")
        pipe.create(previous_response_id=stored["response"]["id"], store=False)
        first = (await pipe.until("response.completed", 2))["response"]["id"]
        pipe.say({"type": "response.cancel", "response_id": first})  # no continuation
        pipe.create(previous_response_id="resp_0", **fields)
        await pipe.until("error", 3)
        pipe.create(previous_response_id=first, **fields)
        await pipe.until("error", 4)
        pipe.create(previous_response_id=first)
        assert (await pipe.until("error", 5))["error"]["code"] == "previous_response_not_found"


async def test_what_a_failed_response_continued_is_forgotten_unless_stored():
    answers = Answers(TextDelta("Hello"), STOP)
    async with connected(answers) as pipe:
        pipe.create(store=False)
        first = (await pipe.until("response.completed"))["response"]["id"]
        answers.deltas = (EngineError("gone"),)
        pipe.create()
        await pipe.until("response.failed")
        pipe.create(previous_response_id=first)  # which the failure did not concern
        await pipe.until("response.failed", 2)
        pipe.create(previous_response_id=first)
        assert (await pipe.until("error"))["error"]["code"] == "previous_response_not_found"


async def test_a_conversation_too_long_to_keep_is_forgotten():
    async with connected(Answers(TextDelta("x" * 50), STOP), Limits(send_interval=0, max_message_bytes=40)) as pipe:
        pipe.create()
        first = await pipe.until("response.completed")
        pipe.create(previous_response_id=first["response"]["id"])
        error = await pipe.until("error")
    assert "each up to max_message_bytes=40" in error["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "code", "param", "text"),
    [
        *CASES["refused_and_the_connection_lives_on"],
        ({"input": ["a"] * 3000}, "too_many_items", "input", "input has 3000 items and parts; this server takes 2048"),
    ],
)
async def test_refused_and_the_connection_lives_on(fields, code, param, text):
    async with connected(Answers(STOP)) as pipe:
        pipe.create(**fields)
        error = (await pipe.until("error"))["error"]
        assert (error["code"], error["param"]) == (code, param)
        assert text in error["message"]
        pipe.create()
        await pipe.until("response.completed")
    assert pipe.closed is None


@pytest.mark.parametrize("message", [b"\x00", "{", "[]", '"x"', "{}"])
async def test_nonsense_is_answered_and_the_connection_lives_on(message):
    async with connected(Answers(STOP)) as pipe:
        pipe.say(message)
        await pipe.until("error")
        pipe.create()
        await pipe.until("response.completed")


async def test_one_response_at_a_time():
    answers = Answers(TextDelta("a"), 60)
    async with connected(answers) as pipe:
        pipe.create()
        created = await pipe.until("response.created")
        pipe.create()
        error = await pipe.until("error")
    assert error["error"]["code"] == "conversation_already_has_active_response"
    assert created["response"]["id"] in error["error"]["message"]
    assert len(answers.asked) == 1


async def test_cancel():
    answers = Answers(ReasoningDelta("hm"), TextDelta("Hel"), 60)
    async with connected(answers) as pipe:
        pipe.create()
        await pipe.until("response.output_text.delta")
        pipe.say({"type": "response.cancel", "response_id": "resp_other"})
        assert "'resp_other' is in flight" in (await pipe.until("error"))["error"]["message"]
        pipe.say({"type": "response.cancel"})
        end = (await pipe.until("response.incomplete"))["response"]
        assert answers.running == 0
        assert (end["status"], end["incomplete_details"]) == ("cancelled", {"reason": "cancelled"})
        assert (end["usage"]["total_tokens"], end["usage"]["output_tokens_details"]) == (7, {"reasoning_tokens": 1})
        assert end["output"][1]["content"][0]["text"] == "Hel ST"
        pipe.create(input="on", previous_response_id=end["id"])
        await pipe.until("response.output_text.delta", 3)
    assert answers.asked[1][1][1] == {"role": "assistant", "content": "Hel ST", "reasoning_content": "hm"}


async def test_cancel_before_the_engine_was_asked():
    class Encoding(Answers):
        @asynccontextmanager
        async def context(self):
            self.running += 1
            try:
                await anyio.sleep(60)
                yield
            finally:
                self.running -= 1

    answers = Encoding()
    async with connected(answers) as pipe:
        pipe.create()
        await pipe.until("response.in_progress")
        await anyio.wait_all_tasks_blocked()
        assert answers.running == 1
        pipe.say({"type": "response.cancel"})
        end = (await pipe.until("response.incomplete"))["response"]
    assert (answers.running, end["status"], end["usage"]) == (0, "cancelled", None)


async def test_cancel_stops_the_engine_at_once_although_the_reader_is_slow():
    answers = Answers(TextDelta("a"), *[TextDelta("x" * 100)] * 5000, 60)  # a busy server may keep a thousand
    async with connected(answers, Limits(send_interval=0, max_pending_bytes=500)) as pipe:
        pipe.flowing = anyio.Event()
        pipe.create()
        with anyio.fail_after(5):
            await answers.begun.wait()
        await anyio.wait_all_tasks_blocked()
        assert answers.running == 1
        pipe.say({"type": "response.cancel"})
        with anyio.move_on_after(5):
            await answers.closed.wait()
        assert answers.running == 0
        pipe.flowing.set()
        end = (await pipe.until("response.incomplete"))["response"]
    text = end["output"][0]["content"][0]["text"]
    assert text.startswith("axxx") and text.endswith("x ST")
    assert len(text) < 5000 * 100
    assert end["usage"]["total_tokens"] == 7


@pytest.mark.parametrize(
    ("failure", "code", "text"),
    [
        (EngineError("the engine ran dry"), "server_error", "the engine failed; the server's log says why, under "),
        (
            EngineError("vLLM at http://10.0.0.1 answers 403: no", kind="refused"),
            "engine_refused",
            "the engine's server refused the request; the server's log says why, under ",
        ),
        (
            EngineError("vLLM at http://10.0.0.1 has gone silent", kind="timeout"),
            "engine_timeout",
            "the engine's server did not answer in time; the server's log says why, under ",
        ),
        (
            EngineError("vLLM at http://10.0.0.1 cannot be reached", kind="unreachable"),
            "engine_unreachable",
            "the engine's server cannot be reached",
        ),
        (TemplateError("no role 'x'"), "invalid_prompt", "no role 'x'"),
        (KeyError("secret"), "server_error", "the engine failed; the server's log says why, under "),
        (None, "server_error", "the answer ended without a finish"),
    ],
)
async def test_a_dying_engine_fails_the_response_and_nothing_else(failure, code, text):
    error = Finish(FinishReason.ERROR, usage=Usage(3, 1, 0))
    answers = Answers(TextDelta("Hel"), *([error, failure] if failure else []))
    async with connected(answers) as pipe:
        pipe.create()
        end = (await pipe.until("response.failed"))["response"]
        text += end["id"] if text.endswith(" ") else ""
        assert end["error"] == {"code": code, "message": text}
        assert end["output"][0]["content"][0]["text"] == "Hel"
        assert (end["usage"] or {}).get("total_tokens") == (4 if failure else None)
        answers.deltas = (TextDelta("Hello"), STOP)
        pipe.create()
        await pipe.until("response.completed")
    assert answers.running == 0


async def test_a_client_that_asks_and_leaves_at_once_stops_the_engine():
    answers = Answers(60)
    with anyio.fail_after(5):
        async with connected(answers) as pipe:
            pipe.create()
    assert answers.running == 0


async def test_deltas_are_merged_over_the_send_interval_but_the_first_goes_at_once():
    answers = Answers(TextDelta("a"), 0.02, TextDelta("b"), 0.02, TextDelta("c"), 0.5, STOP)
    async with connected(answers, Limits(send_interval=0.3)) as pipe:
        pipe.create()
        assert (await pipe.until("response.output_text.delta"))["delta"] == "a"
        assert (await pipe.until("response.output_text.delta", 2))["delta"] == "bc"


@pytest.mark.parametrize(("limits", "text"), CASES["limits_that_cannot_be"])
async def test_limits_that_cannot_be(limits, text):
    with pytest.raises((ValueError, TypeError), match=text):
        Limits(**limits)
    Limits(send_interval=0, drain_timeout=0)


async def test_a_delta_that_no_event_can_carry_fails_the_response_and_nothing_else():
    answers = Answers(TextDelta("a"), TextDelta("b", index=1), 60)
    async with connected(answers) as pipe:
        pipe.create()
        end = (await pipe.until("response.failed"))["response"]
        assert end["error"]["message"] == "a Responses stream carries one answer, not answer 1"
        await answers.until_closed()
        answers.deltas = (STOP,)
        pipe.create()
        await pipe.until("response.completed")


class Clock:
    """A clock that is moved on by hand; the session looks at it forty times a second of real time."""

    idle = Limits(send_interval=0, idle_timeout=0.1)

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(session_module, "monotonic", lambda: self.now)

    async def move(self):
        await anyio.wait_all_tasks_blocked()
        self.now += 100
        await anyio.sleep(0.1)


async def test_an_idle_connection_is_closed_by_name_but_not_during_a_response(monkeypatch):
    clock = Clock(monkeypatch)
    answers, gate = gated(TextDelta("a"), TextDelta("b"), STOP)
    async with connected(answers, clock.idle) as pipe:
        pipe.create()
        await pipe.until("response.output_text.delta")
        await clock.move()
        gate.set()
        await pipe.until("response.completed")
        with anyio.fail_after(5):
            while not pipe.gone.is_set():
                await clock.move()
        assert pipe.closed == (1000, "idle: no request came for 0.1 s")


async def test_a_connection_is_not_idle_before_the_last_event_is_sent(monkeypatch):
    clock = Clock(monkeypatch)
    answers, gate = gated(TextDelta("a"), TextDelta("b"), STOP)
    async with connected(answers, clock.idle) as pipe:
        pipe.create()
        await pipe.until("response.output_text.delta")
        pipe.flowing = anyio.Event()  # the client reads nothing for a while
        gate.set()
        await clock.move()
        pipe.flowing.set()
        await pipe.until("response.completed")


async def test_a_connection_whose_request_is_being_read_is_not_idle(monkeypatch):
    clock = Clock(monkeypatch)
    taken, gate = anyio.Event(), anyio.Event()

    async def take(size):
        taken.set()
        await gate.wait()

    async with connected(Answers(TextDelta("a"), STOP), clock.idle) as pipe:
        monkeypatch.setattr(pipe.responses.service.turns, "take", take)
        pipe.create()
        await taken.wait()
        await clock.move()
        gate.set()
        await pipe.until("response.completed")


# -- responses that outlive a connection -------------------------------------------------------------------------------


def text_of(*pipes):
    return "".join(event["delta"] for pipe in pipes for event in pipe.events if "delta" in event)


async def lose(pipe):
    pipe.to_server.close()
    await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def background(answers, limits=QUICK):
    """A connection with a background response, of which the first delta has arrived."""
    async with connected(answers, limits) as pipe:
        pipe.create(background=True)
        await pipe.until("response.output_text.delta")
        yield pipe


def gated(*deltas):
    """Deltas of which the last two wait for the gate."""
    gate = anyio.Event()
    answers = Answers()

    async def generate():
        for delta in deltas[:-2]:
            yield delta
        await gate.wait()
        for delta in deltas[-2:]:
            yield delta

    answers.generate = generate
    return answers, gate


async def test_a_response_is_resumed_where_the_connection_was_lost():
    answers, gate = gated(TextDelta("Hel"), TextDelta("lo"), STOP)
    async with background(answers) as lost:
        seen, response = lost.events[-1]["sequence_number"], lost.events[0]["response"]
        assert response["background"]
        await lose(lost)
        assert answers.running == 1
        async with connection_to(lost.responses) as pipe:
            pipe.say({"type": "response.resume", "response_id": response["id"], "starting_after": seen})
            await anyio.wait_all_tasks_blocked()
            assert pipe.events == []
            gate.set()
            done = await pipe.until("response.completed")
            assert done["response"]["output"][0]["content"][0]["text"] == "Hello"
            assert text_of(lost, pipe) == "Hello"
            numbers = [event["sequence_number"] for event in lost.events + pipe.events]
            assert numbers == list(range(len(numbers)))
            pipe.create(input="more", previous_response_id=response["id"])
            await pipe.until("response.completed", 2)
    assert [message["content"] for message in answers.asked[1][1]] == ["hi", "Hello", "more"]


async def test_a_response_that_has_ended_can_be_resumed_too_and_comes_merged():
    async with connected(Answers(*[TextDelta(letter) for letter in "abcdef"], STOP)) as pipe:
        pipe.create(background=True)
        response_id = (await pipe.until("response.completed"))["response"]["id"]
        pipe.say({"type": "response.resume", "response_id": response_id})
        await pipe.until("response.completed", 2)
        half = len(pipe.events) // 2
        deltas = [event for event in pipe.events if "delta" in event]
    assert deltas[-1]["delta"] == "abcdef"
    assert pipe.events[-1] == next(event for event in pipe.events if event["type"] == "response.completed")
    assert len(pipe.events[half:]) <= half


async def test_the_engine_is_stopped_when_the_grace_is_over():
    answers = Answers(TextDelta("a"), 60)
    async with background(answers, Limits(send_interval=0, resume_grace=0.1)) as lost:
        await lose(lost)
        await answers.until_closed()
        async with connection_to(lost.responses) as pipe:
            pipe.say({"type": "response.resume", "response_id": lost.events[0]["response"]["id"]})
            error = (await pipe.until("error"))["error"]
    assert (error["code"], error["param"]) == ("response_not_found", "response_id")
    assert "it was not created with background, or nobody has read it for 0.1 s" in error["message"]


async def test_a_resume_that_is_refused_does_not_end_the_grace():
    answers = Answers(TextDelta("a"), 60)
    async with background(answers, Limits(send_interval=0, resume_grace=0.2)) as lost:
        await lose(lost)
        async with connection_to(lost.responses) as pipe:
            response_id = lost.events[0]["response"]["id"]
            pipe.say({"type": "response.resume", "response_id": response_id, "starting_after": 500})
            assert (await pipe.until("error"))["error"]["code"] == "invalid_value"
        await answers.until_closed()


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_response_that_ends_without_a_reader_is_forgotten_after_the_grace(cancelled):
    answers, gate = gated(TextDelta("a"), TextDelta("b"), STOP)
    async with background(answers, Limits(send_interval=0, resume_grace=0.1)) as lost:
        task = lost.responses.find(lost.events[0]["response"]["id"], "")
        if cancelled:
            task.generation.cancel()
        await lose(lost)
        gate.set()
        with anyio.fail_after(5):
            await answers.closed.wait()
            while lost.responses.resumable:  # noqa: ASYNC110 - no event tells
                await anyio.sleep(0.01)


async def test_a_cancelled_response_is_forgotten_after_its_last_reader_and_the_grace():
    async with background(Answers(TextDelta("a"), 60), Limits(send_interval=0, resume_grace=0.1)) as pipe:
        pipe.say({"type": "response.cancel"})
        await pipe.until("response.incomplete")
        with anyio.fail_after(5):
            while pipe.responses.resumable:  # noqa: ASYNC110 - no event tells
                await anyio.sleep(0.01)


async def test_what_cannot_be_resumed_is_refused_by_name():
    limits = Limits(send_interval=0, max_replay_bytes=200)
    answers = Answers(TextDelta("a"), 0.02, TextDelta("b"), 0.02, TextDelta("c"), 60)
    async with background(answers, limits) as one, connection_to(one.responses) as pipe:
        await one.until("response.output_text.delta", 3)
        response_id = one.events[0]["response"]["id"]
        for number, code, text in [
            (None, "too_far_behind", "starting_after=-1: too far behind: item 0 is no longer kept, the oldest is"),
            (500, "invalid_value", "starting_after=500: there is no item 501 yet; the next is 7"),
        ]:
            pipe.say({"type": "response.resume", "response_id": response_id, "starting_after": number})
            error = (await pipe.until("error", 1 if number is None else 2))["error"]
            assert (error["code"], error["param"]) == (code, "starting_after")
            assert text in error["message"]
        one.say({"type": "response.resume", "response_id": response_id})
        assert (await one.until("error"))["error"]["code"] == "conversation_already_has_active_response"


async def test_a_response_that_is_not_in_the_background_is_found_by_nobody():
    async with connected(Answers(TextDelta("a"), 60)) as one, connection_to(one.responses) as other:
        one.create()
        created = await one.until("response.created")
        other.say({"type": "response.resume", "response_id": created["response"]["id"]})
        assert (await other.until("error"))["error"]["code"] == "response_not_found"


async def test_a_reader_too_far_behind_is_closed_by_name_and_the_other_goes_on():
    letters = [delta for letter in "abcdefghij" for delta in (TextDelta(letter * 50), 0.01)]
    answers = Answers(TextDelta("0"), 0.1, *letters, STOP)
    limits = Limits(send_interval=0, max_replay_bytes=600)
    async with background(answers, limits) as fast, connection_to(fast.responses) as slow:
        slow.say({"type": "response.resume", "response_id": fast.events[0]["response"]["id"], "starting_after": 3})
        await slow.until("response.output_text.delta")
        slow.flowing = anyio.Event()
        await fast.until("response.completed")
        slow.flowing.set()
        code, reason = await slow.until_closed()
        assert code == 1008
        assert reason.startswith("too far behind: item ")
    assert len(text_of(fast)) == 501
