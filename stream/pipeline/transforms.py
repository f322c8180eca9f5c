"""What each stage does, without I/O: take an item of the source, give the items that are final."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from tokenweir.encode import _core
from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.errors import EngineError
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.chunk import Chunk, id_list
from tokenweir.stream.decode.parsers.base import ANSWER, REASONING, Piece, Splitter
from tokenweir.stream.decode.stops import StopStrings
from tokenweir.stream.engines.protocol import EngineStep
from tokenweir.stream.events import Channel, Delta, FinishReason

T_co = TypeVar("T_co", covariant=True)


class Part(Protocol[T_co]):
    """What a stage does with the items of its source."""

    @property
    def finished(self) -> bool:
        """Whether nothing more is given."""
        ...

    def feed(self, item: Any) -> Sequence[T_co]:
        """Take an item."""
        ...

    def finish(self, failure: Exception | None) -> Sequence[T_co]:
        """Give what is held: the source has ended, or it or `feed` has failed."""
        ...


class UntilEos:
    """Ends at an end token."""

    def __init__(self, eos_ids: Collection[int]) -> None:
        self.finished = False
        self._eos_ids = frozenset(eos_ids)

    def feed(self, item: Any) -> Sequence[list[int] | Chunk]:
        ids = id_list(item)
        for place, token_id in enumerate(ids):
            if token_id in self._eos_ids:
                self.finished = True
                return [ids[:place], Chunk([token_id], "")] if place else [Chunk([token_id], "")]
        return [ids]

    def finish(self, failure: Exception | None) -> Sequence[list[int] | Chunk]:
        return []


class ChunkPart:
    """A part that gives chunks: the ids whose text it holds, and the end of the stream."""

    def __init__(self) -> None:
        self.finished = False
        self._pending = _core.PendingIds()

    def _cut(self, text: str, channel: Channel) -> list[Chunk]:
        return [Chunk(ids, piece, channel) for ids, piece in self._pending.cut(text)]

    def _rest(self, channel: Channel) -> list[Chunk]:
        ids = self._pending.rest()
        return [Chunk(ids, "", channel)] if ids else []


class Detokenize(ChunkPart):
    """Turns ids into chunks."""

    def __init__(self, stream: DecodeStream, shown: Mapping[int, str]) -> None:
        super().__init__()
        self._stream = stream
        self._shown = shown
        self._out: list[Chunk] = []

    def feed(self, item: Any) -> Sequence[Chunk]:
        if isinstance(item, Chunk):  # its ids have no text
            self._step(self._stream.flush(), ())
            self._pending.add(item.ids, "")
        else:
            for token_id in id_list(item):
                if token_id in self._shown:
                    text = self._stream.flush() + self._shown[token_id]
                else:
                    text = self._stream.step(token_id)
                self._step(text, (token_id,))
        out, self._out = self._out, []
        return out

    def _step(self, text: str, ids: tuple[int, ...]) -> None:
        self._pending.add(ids, text, not self._stream.pending)
        self._out += self._cut(text, ANSWER)

    def finish(self, failure: Exception | None) -> Sequence[Chunk]:
        self._step(self._stream.flush(), ())
        return [*self._out, *self._rest(ANSWER)]


class Split(ChunkPart):
    """Puts the answer's chunks on channels, by what a splitter makes of their text."""

    def __init__(self, splitter: Splitter, *, strip: bool = False) -> None:
        super().__init__()
        self._splitter = splitter
        self._strip = strip

    def feed(self, item: Any) -> Sequence[Chunk]:
        chunk = _chunk(item)
        if chunk.channel is ANSWER and chunk.text and chunk.malformed is None:
            self._pending.add(chunk.ids, chunk.text)
            return self._chunks(self._splitter.feed(chunk.text))
        # Another splitter has decided on it; no markup reaches over that.
        out = self._chunks(self._splitter.finish())
        return [*out, replace(chunk, ids=[*self._pending.rest(), *chunk.ids])]

    def _chunks(self, pieces: Iterable[Piece]) -> list[Chunk]:
        out: list[Chunk] = []
        for piece in pieces:
            channel = piece.channel
            if channel is None or (self._strip and channel is REASONING):
                # Without text, but not left out: the next stage must know that the text is not of one piece here.
                out.append(Chunk(self._pending.take(piece.source), "", channel or self._splitter.channel))
            elif piece.text == piece.source != "":
                cut = self._cut(piece.text, channel)
                out += cut if piece.call == 0 and piece.malformed is None else [_as_piece(c, piece) for c in cut]
            else:
                out.append(_as_piece(Chunk(self._pending.take(piece.source), piece.text, channel), piece))
        return out

    def finish(self, failure: Exception | None) -> Sequence[Chunk]:
        return [*self._chunks(self._splitter.finish()), *self._rest(self._splitter.channel)]


class StopAt(ChunkPart):
    """Ends at a stop string."""

    def __init__(self, stops: StopStrings, scope: Collection[Channel]) -> None:
        super().__init__()
        self._stops = stops
        self._scope = scope
        self._last = Chunk((), "")  # of which there may be held text

    def feed(self, item: Any) -> Sequence[Chunk]:
        chunk = _chunk(item)
        out: list[Chunk] = []
        if not chunk.text or (chunk.channel, chunk.malformed) != (self._last.channel, self._last.malformed):
            out += self._release()  # a stop does not reach over markup
        self._last = chunk
        if chunk.channel not in self._scope:
            return [*out, replace(chunk, ids=[*self._pending.rest(), *chunk.ids])]
        self._pending.add(chunk.ids, chunk.text)
        step = self._stops.step(chunk.text)
        out += self._given(step.text)
        if step.matched is not None:
            self.finished = True
            out += self._rest(chunk.channel)
        return out

    def _given(self, text: str) -> list[Chunk]:
        last = self._last
        cut = self._cut(text, last.channel)
        return cut if last.malformed is None else [replace(chunk, malformed=last.malformed) for chunk in cut]

    def _release(self) -> list[Chunk]:
        return self._given(self._stops.flush())

    def finish(self, failure: Exception | None) -> Sequence[Chunk]:
        return [*self._release(), *self._rest(self._last.channel)]


class DecodeChat:
    """Turns ids into deltas."""

    def __init__(self, decoder: ChatDecoder) -> None:
        self._decoder = decoder
        self._reason: str | None = None

    @property
    def finished(self) -> bool:
        return self._decoder.finished

    def feed(self, item: Any) -> Sequence[Delta]:
        if not isinstance(item, EngineStep):
            return self._decoder.feed(item)
        if item.index:
            raise EngineError(f"the engine gave ids of answer {item.index}; it was asked for one answer, which is 0")
        if item.finish_reason is not None:
            if item.finish_reason not in list(FinishReason):
                known = ", ".join(FinishReason)
                raise EngineError(f"the engine gave finish_reason {item.finish_reason!r}; known are {known}")
            self._reason = item.finish_reason
        return self._decoder.feed(id_list(item), item.logprobs)

    def finish(self, failure: Exception | None) -> Sequence[Delta]:
        return self._decoder.finish(FinishReason.ERROR if failure else self._reason)


def _as_piece(chunk: Chunk, piece: Piece) -> Chunk:
    return replace(chunk, name=piece.name, call=piece.call, complete=piece.complete, malformed=piece.malformed)


def _chunk(item: Any) -> Chunk:
    if not isinstance(item, Chunk):
        raise TypeError(f"this stage takes chunks, such as detokenize gives, not {type(item).__name__} {item!r:.80}")
    return item
