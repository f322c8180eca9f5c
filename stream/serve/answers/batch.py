"""What an engine gave since the readers of an answer were told: on a busy server, several tokens are decoded and sent as one.

A token goes at once if the last ones went long enough ago. If not, it waits, as the id that it is, for the next token that
comes after that time; and a timer that all answers share sees to it that it does not wait much longer. So most tokens of a
busy server cost a place in a list, and a call of the decoder, a delta, an event and a frame are for several. An engine that
runs ahead is not even asked until the next frame is due.
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
"""The part of an interval for which what is due waits for the next token."""
MOST_KEPT = 1024
"""Ids, or deltas, that wait for no interval."""


class Batch:
    """Collects what an engine gives for an answer, and decodes it when its time has come.

    Args:
        answer: The answer. Should it end by what is decoded between two tokens, its engine is stopped.
        pacer: Says how long anything may wait.
        meter: Counts the tokens.
        give: Takes the deltas, but for the last ones; it must not raise.

    """

    __slots__ = ("_answer", "_deltas", "_due", "_give", "_ids", "_meter", "_pacer", "_part", "_pauses", "_timed")

    def __init__(self, answer: Deltas, pacer: Pacer, meter: Meter, give: Callable[[Sequence[Delta]], object]) -> None:
        self._answer = answer
        self._part = answer.part
        self._pacer = pacer
        self._meter = meter
        self._give = give
        self._ids: list[int] = []
        self._deltas: list[Delta] = []
        self._due = -math.inf
        self._timed = False
        self._pauses = answer.runs_ahead

    def add(self, item: Any) -> None:
        """Take what the engine gave."""
        now = monotonic()
        if type(item) is list:
            if item:
                self._meter.arrive(now)
            self._ids += item
        else:
            before, deltas = self.rest(), self._part.feed(item)
            if deltas and not isinstance(deltas[0], Finish):
                self._meter.arrive(now)
            self._deltas = [*before, *deltas]
        if now < self._due and len(self._ids) + len(self._deltas) < MOST_KEPT:
            if not self._timed:
                self._wait()
        else:
            self._send(now)

    def end(self, failure: Exception | None = None) -> None:
        """The engine has ended, or failed: decode what is left, and leave it to `rest`."""
        self._deltas = [*self.rest(), *self._part.end(failure)]

    def rest(self) -> list[Delta]:
        """What has not been given out, which is forgotten here."""
        deltas, self._deltas = self._deltas, []
        if ids := self._ids:
            self._ids = []
            deltas += self._part.feed(ids)
        return deltas

    def _send(self, now: float) -> None:
        deltas: Sequence[Delta] = self._deltas
        if ids := self._ids:  # `rest`, written out, since this is done for every frame
            self._ids = []
            given = self._part.feed(ids)
            deltas = [*deltas, *given] if deltas else given
        self._deltas = []
        if self._part.ended:  # the engine is closed before anybody is told
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
        if (now := monotonic()) < self._due:  # what the timer was for has gone; this came after it
            self._wait()
            return
        self._send(now)
        if self._part.ended:
            self._answer.cancel()
