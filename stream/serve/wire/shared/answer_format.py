"""`AnswerFormat`: the answers to a request in the form of one HTTP interface, as a stream or in one piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.events.prompt_scores import EchoedPrompt
from tokenweir.stream.serve.wire.shared.errors import ErrorBody, RequestError, error_detail
from tokenweir.stream.serve.wire.shared.sse import DONE, KEEP_ALIVE, sse


class AnsweredPrompt(NamedTuple):
    """A prompt of a request, once the engine has accepted it.

    Attributes:
        ids: Its ids.
        place: Its index among the prompts of the request.
        echo: The prompt as its answers repeat it; None if the request does not ask for it.

    """

    ids: Sequence[int] = ()
    place: int = 0
    echo: EchoedPrompt | None = None


class AnswerFormat(ABC):
    """Converter of the deltas of a request's answers to the form of one HTTP interface.

    For a stream, send `start`, then `chunks` for each batch of deltas, then `last`, and `END`; if the answers fail, send
    `error` in place of what is left before `END`. For answers in one piece, call `add` for each batch and then `whole`.
    """

    END: ClassVar[bytes] = DONE
    HEARTBEAT: ClassVar[bytes] = KEEP_ALIVE

    id: str

    def start(self, prompt: AnsweredPrompt) -> Iterable[bytes]:
        """Return the events that open a stream; `prompt` is the request's first one."""
        return ()

    @abstractmethod
    def chunks(self, deltas: Iterable[Delta], prompt: AnsweredPrompt) -> list[bytes]:
        """Convert deltas of the answers to a prompt to events.

        Raise `RequestError` if logprobs were asked for and the engine gives none.
        """

    @abstractmethod
    def add(self, deltas: Iterable[Delta], prompt: AnsweredPrompt) -> None:
        """Add deltas of the answers to a prompt to what `whole` returns.

        Raise `RequestError` if logprobs were asked for and the engine gives none.
        """

    @abstractmethod
    def whole(self) -> bytes:
        """Return all that `add` has collected as JSON; each answer's `Finish` must have been added."""

    def last(self) -> bytes:
        """Return the event behind the answers of a stream, or nothing."""
        return b""

    def error(self, error: RequestError) -> bytes:
        """Return the event for an error that ends a stream."""
        return sse(ErrorBody(error_detail(error)))
