"""Input of a connection, parsed in pieces when its client has its turn; the socket is not read while some waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from uvicorn.protocols.http.flow_control import FlowControl

from tokenweir.stream.serve.limits.turns import InputTurns

PIECE_BYTES = 1 << 11
"""Most bytes that are parsed without a look at the clock: a few hundred of the shortest frames."""


class Reader(Protocol):
    """Object with uvicorn's flag that says whether uvicorn has paused reading."""

    read_paused: bool


class PacedInput:
    """Buffer of a connection's input, which is parsed in pieces when its client has its turn.

    The socket is not read while input waits.

    Args:
        turns: Decides when a client has its turn.
        transport: The transport whose reading is paused.
        reader: Has the flag with which uvicorn itself pauses reading.
        parse: Called with each piece of input. If it returns true, the rest waits for `go_on`.
        end: A piece ends behind these bytes, if it has them.

    Attributes:
        held: Whether reading is paused because input waits.

    """

    __slots__ = ("_at", "_data", "_end", "_parse", "_reader", "_stopped", "_transport", "_turns", "held")

    def __init__(
        self,
        turns: InputTurns,
        transport: asyncio.Transport,
        reader: Reader,
        parse: Callable[[bytes], bool | None],
        *,
        end: bytes | None = None,
    ) -> None:
        self.held = self._stopped = False
        self._turns = turns
        self._transport = transport
        self._reader: Reader | None = reader
        self._parse: Callable[[bytes], bool | None] | None = parse
        self._end = end
        self._data = b""
        self._at = 0  # the place in `_data` up to which it is parsed; cutting it off would copy the rest for each piece

    def put(self, client: str, data: bytes) -> None:
        """Add bytes that were read from the socket; parse them at once if `client` has a turn, else later."""
        if self._data:
            self._data += data
        else:
            self._data = data
            self._turns.run(client, self._step)
        if self._data:
            self.hold()

    def go_on(self, client: str) -> None:
        """Parse the rest that `parse` has made wait, if there is any."""
        if self._stopped:
            self._stopped = False
            if self._data:
                self._turns.run(client, self._step)

    def hold(self) -> None:
        """Pause reading if input waits."""
        if self._data:
            self.held = True
            self._transport.pause_reading()

    def clear(self) -> None:
        """Drop the waiting input, and resume reading unless uvicorn has paused it."""
        self._forget()
        self._release()

    def close(self) -> None:
        """Drop the waiting input and the references to the connection; nothing is parsed after this."""
        self._forget()
        self._reader = self._parse = None

    def _step(self) -> bool:
        if self._stopped:
            return False
        end = self._at + PIECE_BYTES
        if self._end is not None and (found := self._data.find(self._end, self._at, end)) >= 0:
            end = found + len(self._end)
        piece = self._data[self._at : end]
        self._at += len(piece)
        if self._at == len(self._data):
            self._forget()
        if piece and self._parse is not None:
            self._stopped = bool(self._parse(piece))
        if not self._data:
            self._release()
        return bool(self._data) and not self._stopped

    def _forget(self) -> None:
        self._data, self._at = b"", 0

    def _release(self) -> None:
        if self.held:
            self.held = False
            if self._reader is not None and not self._reader.read_paused:
                self._transport.resume_reading()


class HeldFlow(FlowControl):
    """uvicorn's flow control of an HTTP connection, which does not resume reading while input waits in `input`."""

    input: PacedInput | None = None

    def resume_reading(self) -> None:
        if self.input is not None and self.input.held:
            self.read_paused = False
        else:
            super().resume_reading()
