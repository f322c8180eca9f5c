"""Which ids cannot concern a splitter: the core, which skims them, is told whenever that changes."""

from __future__ import annotations

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.base import Splitter
from tokenweir.stream.events import Channel


class Skimming:
    """Tells the core what text concerns a splitter."""

    __slots__ = ("_arguments", "_detok", "_splitter", "_starts")

    def __init__(self, detok: _core.Detokenizer, splitter: Splitter | None) -> None:
        self._detok = detok
        self._splitter = splitter
        self._starts: frozenset[str] | None = None  # what `detok` watches for
        self._arguments: _core.JsonValue | None = None  # what it follows
        detok.follow(None)  # of a copy, it follows what belongs to the original

    def prepare(self, channel: Channel) -> bool:
        """Say whether text on a channel, the one that came last, may be skimmed now; if so, the core knows which."""
        splitter = self._splitter
        if splitter is None:
            return True
        if not splitter.calm or splitter.channel is not channel:
            return False
        if splitter.starts != self._starts:
            self._starts = splitter.starts
            self._detok.watch("".join(self._starts))
        if splitter.arguments is not self._arguments:
            self._arguments = splitter.arguments
            self._detok.follow(self._arguments)
        return True
