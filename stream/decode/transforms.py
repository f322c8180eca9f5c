"""Sans-I/O transforms of the async stages: an item of the source in, final items out.

They use the components of `ChatDecoder`: the core's `Detokenizer`, a splitter, a router.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec.structs import replace

from tokenweir.encode import _core
from tokenweir.encode.errors import EngineError
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.chunk import Chunk, FeedError, engine_ids, id_list
from tokenweir.stream.decode.parsers.pieces import ANSWER, Piece, plain
from tokenweir.stream.decode.parsers.splitter import Splitter
from tokenweir.stream.decode.router import ChunkRouter
from tokenweir.stream.decode.stops import StopStrings
from tokenweir.stream.events.deltas import Channel, Delta, Finish, FinishReason
from tokenweir.stream.events.step import EngineStep

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Transform(Protocol[T_co]):
    """Step of the decoding that does no I/O: it takes items of a source one by one and returns the items that are final."""

    @property
    def finished(self) -> bool:
        """Whether the output has ended, so that no further item need be fed."""
        ...

    def feed(self, item: Any) -> Sequence[T_co]:
        """Process an item of the source, and return the items of the output that are final."""
        ...

    def finish(self, failure: Exception | None) -> Sequence[T_co]:
        """End the output, and return the items that are still held.

        Args:
            failure: The error of the source or of `feed`; None if the source has ended.

        """
        ...


class StageRunner(Generic[T]):
    """Runner of a transform that still returns its held items when the source or the transform fails.

    The error is kept in `failure`, and `check` raises it.

    Args:
        transform: The transform.
        translate: Converts an error of the source or the transform into the error to raise.

    Attributes:
        ended: Whether the output has ended.
        failure: The error of the source or the transform, not translated yet, or None.

    """

    __slots__ = ("_transform", "_translate", "ended", "failure")

    def __init__(
        self, transform: Transform[T], translate: Callable[[Exception], Exception] = lambda failure: failure
    ) -> None:
        self.ended = False
        self.failure: Exception | None = None
        self._transform = transform
        self._translate = translate

    def feed(self, item: Any) -> Sequence[T]:
        """Process an item of the source, and return the items of the output that are final.

        If the transform raises, keep the error in `failure` and return the items that it holds.
        """
        if self.ended:
            return ()
        transform = self._transform
        try:
            given = transform.feed(item)
        except Exception as error:  # noqa: BLE001 - items of a source are untrusted
            return self.end(error)
        self.ended = transform.finished
        return given

    def end(self, failure: Exception | None = None) -> Sequence[T]:
        """End the output and return the items that the transform holds; an empty sequence if it has ended before.

        Args:
            failure: The error of the source; None if the source has ended.

        """
        if self.ended:
            return ()
        self.ended, self.failure = True, failure
        return self._transform.finish(failure)

    def check(self) -> None:
        """Raise the translated `failure` if there is one, and forget it, because its traceback refers to the runner."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raised = self._translate(failure)
            try:
                raise raised from (failure.__cause__ if raised is failure else failure)
            finally:
                del failure, raised  # its traceback refers to this frame


class UntilEos:
    """Transform that ends the stream of ids at an end token, which it passes on as a chunk without text."""

    def __init__(self, eos_ids: Collection[int]) -> None:
        self.finished = False
        self._eos_ids = frozenset(eos_ids)

    def feed(self, item: Any) -> Sequence[list[int] | Chunk]:
        ids = engine_ids(item)
        for place, token_id in enumerate(ids):
            if token_id in self._eos_ids:
                self.finished = True
                return [ids[:place], Chunk([token_id], "")] if place else [Chunk([token_id], "")]
        return [ids]

    def finish(self, failure: Exception | None) -> Sequence[list[int] | Chunk]:
        return []


class Detokenize:
    """Transform that decodes ids into chunks of text."""

    finished = False

    def __init__(self, detok: _core.Detokenizer) -> None:
        self._detok = detok
        self._answer = detok.answer
        self._router = ChunkRouter(self._answer, ANSWER)

    def feed(self, item: Any) -> Sequence[Chunk]:
        if isinstance(item, Chunk):  # the chunk's ids have no text
            self._send(self._detok.flush())
            self._answer.add(item.ids, "")
        else:
            for token_id in engine_ids(item):
                self._send(self._detok.step(token_id))
        return self._router.take()

    def _send(self, text: str) -> None:
        self._router.route([plain(text, ANSWER)], ANSWER)

    def finish(self, failure: Exception | None) -> Sequence[Chunk]:
        self._send(self._detok.flush())
        return self._router.take_all(ANSWER)


class SplitChannels:
    """Transform that assigns chunks of the answer to channels (thinking, answer, tool calls) by a splitter."""

    finished = False

    def __init__(self, splitter: Splitter, *, strip: bool = False) -> None:
        self._splitter = splitter
        self._answer = _core.AnswerText(_core.StopStrings(()), trims=True)
        self._router = ChunkRouter(self._answer, splitter.channel, strip=strip)

    def feed(self, item: Any) -> Sequence[Chunk]:
        chunk = _chunk(item)
        if chunk.channel is ANSWER and chunk.text and chunk.malformed is None:
            self._answer.add(chunk.ids, chunk.text)
            self._router.route(self._splitter.feed(chunk.text), self._splitter.channel)
        else:  # already assigned by another splitter; markup does not span it
            self._router.route(self._splitter.finish(), self._splitter.channel)
            self._router.pass_on(chunk)
        return self._router.take()

    def finish(self, failure: Exception | None) -> Sequence[Chunk]:
        self._router.route(self._splitter.finish(), self._splitter.channel)
        self._router.release()
        return self._router.take_all(self._splitter.channel)


class StopAt:
    """Transform that ends the stream of chunks at a stop string."""

    def __init__(self, stops: StopStrings, scope: frozenset[Channel]) -> None:
        self.finished = False
        self._scope = scope
        self._answer = _core.AnswerText(stops)
        self._router = ChunkRouter(self._answer, ANSWER, scope=scope)

    def feed(self, item: Any) -> Sequence[Chunk]:
        chunk = _chunk(item)
        if not chunk.text or chunk.channel not in self._scope:
            self._router.pass_on(chunk)
            return self._router.take()
        self._answer.add(chunk.ids, chunk.text)
        self._router.route([Piece(chunk.text, chunk.channel, chunk.text, malformed=chunk.malformed)], chunk.channel)
        if not self._router.stopped:
            return self._router.take()
        self.finished = True
        return self._router.take_all(chunk.channel)

    def finish(self, failure: Exception | None) -> Sequence[Chunk]:
        self._router.release()
        return self._router.take_all(self._router.channel)


class DecodeChat:
    """Transform that decodes ids, or steps of an engine, into deltas by a `ChatDecoder`."""

    __slots__ = ("_cached", "_decoder", "_reason", "finished")

    def __init__(self, decoder: ChatDecoder) -> None:
        self.finished = decoder.finished
        self._decoder = decoder
        self._reason: str | None = None
        self._cached = 0

    @property
    def consumed(self) -> int:
        """The number of ids of the answer that were decoded; ids behind its end do not count."""
        return self._decoder.consumed

    def feed(self, item: Any) -> Sequence[Delta]:
        try:
            deltas = self._decoder.feed(item) if not isinstance(item, EngineStep) else self._feed_step(item)
        except FeedError as error:
            raise error.engine_error from None
        self.finished = self._decoder.finished
        return self._counted(deltas) if self._cached else deltas

    def _feed_step(self, item: EngineStep) -> Sequence[Delta]:
        if item.index:
            raise EngineError(f"the engine gave ids of answer {item.index}; it was asked for one answer, which is 0")
        if item.finish_reason is not None:
            if item.finish_reason not in list(FinishReason):
                known = ", ".join(FinishReason)
                raise EngineError(f"the engine gave finish_reason {item.finish_reason!r}; known are {known}")
            self._reason = item.finish_reason
        if item.cached is not None:
            self._cached = max(0, item.cached)
        return self._decoder.feed(id_list(item), item.logprobs, item.top_logprobs)

    def finish(self, failure: Exception | None) -> Sequence[Delta]:
        deltas = self._decoder.finish(FinishReason.ERROR if failure else self._reason)
        self.finished = True
        return self._counted(deltas) if self._cached else deltas

    def _counted(self, deltas: Sequence[Delta]) -> Sequence[Delta]:
        """Return the deltas; a `Finish` at the end gets the number of prompt ids that the engine had cached."""
        if not deltas or not isinstance(finish := deltas[-1], Finish):
            return deltas
        usage = finish.usage
        usage = replace(usage, cached_tokens=min(self._cached, usage.prompt_tokens))
        return [*deltas[:-1], replace(finish, usage=usage)]


class PassOn:
    """Transform that returns every item unchanged."""

    finished = False

    def feed(self, item: Any) -> Sequence[Any]:
        return (item,)

    def finish(self, failure: Exception | None) -> Sequence[Any]:
        return ()


def _chunk(item: Any) -> Chunk:
    if not isinstance(item, Chunk):
        raise TypeError(f"this stage takes chunks, such as detokenize gives, not {type(item).__name__} {item!r:.80}")
    return item
