"""Coalescing of an engine's output: on a busy server several tokens are decoded and sent as one.

A token goes out at once if the pacer's interval has passed since the last frame. If not, its id waits in a list for the first
token after the interval, or for a timer shortly after that. So on a busy server most tokens cost an append to a list; the
decoder's call, the delta, the event and the frame are shared by several. An engine that runs ahead is not polled until the
next frame is due.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from tokenweir.stream.chat.cancellable import Deltas
from tokenweir.stream.events.deltas import Delta, Finish
from tokenweir.stream.serve.answers.pacer import Pacer
from tokenweir.stream.serve.monitoring.metrics import Meter

PATIENCE = 0.75
"""Grace for the next token after a frame is due, as a part of the interval."""
MOST_KEPT = 1024
"""Most pending ids or deltas; at this number they are sent at once."""


class FrameBuffer:
    """Buffer of an engine's output for one answer.

    Tokens that arrive within the pacer's interval are decoded and sent together.

    Args:
        answer: The answer. If output that a timer decodes ends it, its engine is stopped.
        pacer: Sets the interval between frames.
        meter: Counts the tokens.
        give: Callback for the deltas of each frame, except those of the answer's end; must not raise.

    """

    __slots__ = ("_answer", "_deltas", "_due", "_give", "_ids", "_meter", "_pacer", "_pauses", "_runner", "_timed")

    def __init__(self, answer: Deltas, pacer: Pacer, meter: Meter, give: Callable[[Sequence[Delta]], object]) -> None:
        self._answer = answer
        self._runner = answer.runner
        self._pacer = pacer
        self._meter = meter
        self._give = give
        self._ids: list[int] = []
        self._deltas: list[Delta] = []
        self._due = -math.inf
        self._timed = False
        self._pauses = answer.runs_ahead

    def add(self, item: Any) -> None:
        """Add one item of the engine's output: a list of token ids, or another item that the decoder takes."""
        now = monotonic()
        if type(item) is list:
            if item:
                self._meter.arrive(now)
            self._ids += item
        else:
            before, deltas = self.rest(), self._runner.feed(item)
            if deltas and not isinstance(deltas[0], Finish):
                self._meter.arrive(now)
            self._deltas = [*before, *deltas]
        if now < self._due and len(self._ids) + len(self._deltas) < MOST_KEPT:
            if not self._timed:
                self._wait()
        else:
            self._send(now)

    def end(self, failure: Exception | None = None) -> None:
        """Decode all output that is left, after the engine has ended or failed; `rest` then returns the last deltas."""
        self._deltas = [*self.rest(), *self._runner.end(failure)]

    def rest(self) -> list[Delta]:
        """Decode what is buffered; return and clear all deltas that have not been sent."""
        deltas, self._deltas = self._deltas, []
        if ids := self._ids:
            self._ids = []
            deltas += self._runner.feed(ids)
        return deltas

    def _send(self, now: float) -> None:
        deltas: Sequence[Delta] = self._deltas
        if ids := self._ids:  # `rest` inlined: this runs for every frame
            self._ids = []
            given = self._runner.feed(ids)
            deltas = [*deltas, *given] if deltas else given
        self._deltas = []
        if self._runner.ended:  # close the engine before readers see the end
            self._deltas = [*deltas]
            return
        self._due = now + self._pacer.interval
        if self._pauses and self._pacer.busy:
            self._answer.pause(self._pacer.reach(self._due))
        if deltas:
            self._give(deltas)

    def _wait(self) -> None:
        self._timed = True
        self._pacer.call_at(self._due + PATIENCE * self._pacer.interval, self._time)

    def _time(self) -> None:
        self._timed = False
        if not (self._ids or self._deltas):
            return
        if (now := monotonic()) < self._due:  # the timer's output has been sent; this is later output
            self._wait()
            return
        self._send(now)
        if self._runner.ended:
            self._answer.cancel()
