"""Output to a socket: in order, and merged while it is full."""

import asyncio
import json
from itertools import count

import pytest

from tokenweir.stream.chat.broadcast import Broadcast
from tokenweir.stream.chat.replay_buffer import ReplayBuffer
from tokenweir.stream.events.deltas import TextDelta
from tokenweir.stream.serve.sockets.outbox import Outbox, Sender
from tokenweir.stream.serve.wire.responses.events import OutputTextDelta
from tokenweir.stream.serve.wire.responses.kept_events import event_size, merge_events

pytestmark = pytest.mark.anyio


class Wire:
    """A transport that takes what it is given at once, or, while it is shut, when it is opened again."""

    def __init__(self):
        self.sent = []
        self.opened = asyncio.Event()
        self.opened.set()

    def send(self, data):
        self.sent.append(data)
        return None if self.opened.is_set() else self.opened.wait()


class Coroutine(Wire):
    """The same as an `async def`."""

    async def send(self, data):
        await self.opened.wait()
        self.sent.append(data)


async def turns():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("kind", [Wire, Coroutine])
async def test_messages_stay_in_order_while_the_transport_is_full(kind):
    wire, freed = kind(), []
    outbox = Outbox(wire.send)
    wire.opened.clear()
    for number in range(5):
        outbox.put(b"%d" % number)
        outbox.when_free(lambda number=number: freed.append(number))
        await turns()
    assert outbox.full and freed == [] and len(wire.sent) <= 1
    wire.opened.set()
    await outbox.room()
    assert wire.sent == [b"0", b"1", b"2", b"3", b"4"] and freed == list(range(5)) and not outbox.full


async def test_a_closed_outbox_forgets_what_is_left():
    wire = Coroutine()
    outbox = Outbox(wire.send)
    wire.opened.clear()
    outbox.put(b"1")
    outbox.put(b"2")
    await turns()
    outbox.close()
    await outbox.room()
    assert wire.sent == [] and not outbox.full


class Stream:
    """A broadcast whose deltas become events, and a sender that reads it."""

    def __init__(self, wire, *, kept=0):
        numbers = count()

        def make(deltas):
            text = "".join(delta.text for delta in deltas)
            return [OutputTextDelta(sequence_number=next(numbers), item_id="i", output_index=0, delta=text)]

        self.broadcast = Broadcast(ReplayBuffer(kept, merge_events, event_size), make, max_ahead=1 << 18)
        self.subscription = self.broadcast.subscribe()
        self.ended = []
        self.outbox = Outbox(wire.send)
        self.wire = wire
        Sender(self.subscription, self.outbox, on_last=lambda: None, on_end=self.ended.append)

    def add(self, text):
        self.broadcast.add(TextDelta(text))

    @property
    def texts(self):
        return [json.loads(data)["delta"] for data in self.wire.sent]


async def test_events_go_in_the_moment_in_which_they_come():
    stream = Stream(Wire())
    for letter in "abc":
        stream.add(letter)
        assert stream.texts[-1] == letter
    stream.broadcast.close()
    assert stream.texts == ["a", "b", "c"] and stream.ended == [None]


@pytest.mark.parametrize("kind", [Wire, Coroutine])
async def test_nothing_is_taken_while_the_transport_is_full(kind):
    wire = kind()
    stream = Stream(wire)
    wire.opened.clear()
    for letter in "abcdef":
        stream.add(letter)
        await turns()
    assert "".join(stream.texts) in ("", "a")
    wire.opened.set()
    await turns()
    stream.broadcast.close()
    await turns()
    assert stream.texts == ["a", "bcdef"] and stream.ended == [None]


async def test_a_failure_in_sending_harms_nobody_else(caplog):
    class Broken(Wire):
        def send(self, data):
            raise RuntimeError("out of order")

    stream, other = Stream(Broken(), kept=10000), Stream(Wire())
    second = Sender(stream.broadcast.subscribe(), other.outbox, on_last=print, on_end=other.ended.append)
    stream.add("a")  # does not raise
    assert isinstance(stream.ended[0], RuntimeError) and "events could not be sent" in caplog.text
    assert other.texts == ["a"] and second is not None


async def test_a_subscription_that_is_closed_ends_its_sender():
    stream = Stream(Wire())
    stream.subscription.close()
    assert [str(error) for error in stream.ended] == ["this subscription is closed"]
    stream.add("a")
    assert stream.texts == []
