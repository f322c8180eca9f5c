"""The async stages of the pipeline: each takes a source, owns it and closes it.

The first stage takes any async iterable of ids, of sequences or arrays of ids, or of `EngineStep`s; those after it take
the `Chunk`s of the stage before. What a stage does is a part that does no I/O (`transforms.py`); `drive` is all that awaits.
It holds no task and no cancel scope, so a stage may be left at any `yield`, under asyncio and trio alike. Whether it is
left or ends, it closes its source at once, before it gives its last items.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Sequence,
)
from contextlib import AsyncExitStack
from typing import Any, TypeVar, Unpack

from tokenweir.stream.events.step import EngineStep

from tokenweir.encode import _core
from tokenweir.encode.decode import ByteFallback, check_byte_fallback, check_tokenizer
from tokenweir.encode.errors import EngineError, TokenIdError
from tokenweir.encode.ids import as_ids
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.chunk import Chunk, Ids
from tokenweir.stream.decode.options import DecoderOptions, StopScope, stop_channels
from tokenweir.stream.decode.parsers.base import Splitter
from tokenweir.stream.decode.parsers.detection import Styles, make_splitter, shown_tokens
from tokenweir.stream.decode.parsers.schemas import Tools
from tokenweir.stream.decode.stops import StopStrings
from tokenweir.stream.decode.transforms import DecodeChat, Detokenize, Driven, Part, Split, StopAt, UntilEos
from tokenweir.stream.events.deltas import Delta
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import MESSAGES, ReasoningStyle, style_of
from tokenweir.templates.styles.tools import tool_style_of

IdSource = AsyncIterable[Ids | EngineStep]
ChunkSource = AsyncIterable[Chunk]

T = TypeVar("T")


def until_eos(ids: IdSource, eos_ids: Collection[int]) -> AsyncGenerator[list[int] | Chunk, None]:
    """Pass ids on until an end token; that one comes last, as a `Chunk` without text.

    Args:
        ids: The source.
        eos_ids: The end tokens.

    Raises:
        TypeError: The end tokens are no ids.

    """
    return drive(ids, UntilEos(as_ids(eos_ids, "eos_ids")))


def detokenize(
    ids: AsyncIterable[Ids | EngineStep | Chunk],
    tokenizer: Tokenizer,
    *,
    prompt_ids: Sequence[int] = (),
    skip_special_tokens: bool = True,
    byte_fallback: ByteFallback = "eager",
    style: str | ReasoningStyle | None = None,
    tool_style: str | ToolStyle | None = None,
) -> AsyncGenerator[Chunk, None]:
    """Decode ids; a chunk goes out with every id that ends a character.

    Args:
        ids: The source. What `until_eos` gives may be among it.
        tokenizer: The tokenizer whose ids these are.
        prompt_ids: As for `DecodeStream`.
        skip_special_tokens: Control tokens give no text.
        byte_fallback: As for `DecodeStream`.
        style: Show the control tokens of this style's tags all the same, for `split_reasoning` to find.
        tool_style: Likewise those of this style of tool calls, for `split_tool_calls`.

    """
    check_tokenizer(tokenizer)
    check_byte_fallback(byte_fallback)
    shown: dict[int, str] = {}
    if skip_special_tokens:
        shown |= shown_tokens(tokenizer, style_of(style)) if style is not None else {}
        shown |= shown_tokens(tokenizer, tool_style_of(tool_style)) if tool_style is not None else {}
    detok = _core.Detokenizer(
        tokenizer.token_table,
        as_ids(prompt_ids, "prompt_ids"),
        skip_special_tokens,
        byte_fallback == "huggingface",
        _core.StopStrings(()),
        (),
        shown,
        splits=False,
        min_tokens=0,
        limit=None,
    )
    return drive(ids, Detokenize(detok))


def split_reasoning(
    chunks: ChunkSource,
    style: str | ReasoningStyle,
    *,
    inside: bool = False,
    tool_style: str | ToolStyle | None = None,
    tool_schemas: Tools = (),
) -> AsyncGenerator[Chunk, None]:
    """Put thinking on its own channel and cut out the tags; their ids travel with what comes next.

    Args:
        chunks: The source, of chunks.
        style: The tags and policies, or their name. Of "harmony" and "muse", tool calls are found as well.
        inside: The prompt has already opened the thinking.
        tool_style: Find the tool calls of this style too, so that tags in their arguments stay what they are.
        tool_schemas: The tools of the request; see `DecoderOptions`.

    """
    return drive(chunks, Split(_splitter(style, inside, tool_style, tool_schemas)))


def strip_reasoning(
    chunks: ChunkSource,
    style: str | ReasoningStyle,
    *,
    inside: bool = False,
    tool_style: str | ToolStyle | None = None,
    tool_schemas: Tools = (),
) -> AsyncGenerator[Chunk, None]:
    """Drop thinking and tags; their ids travel with what comes next. Arguments as for `split_reasoning`."""
    return drive(chunks, Split(_splitter(style, inside, tool_style, tool_schemas), strip=True))


def split_tool_calls(
    chunks: ChunkSource, style: str | ToolStyle, *, tool_schemas: Tools = ()
) -> AsyncGenerator[Chunk, None]:
    """Put tool calls on their own channel: chunks with a call's name, its arguments as they come, and its end.

    Args:
        chunks: The source, of chunks. What an earlier stage has put on a channel stays there; tags of thinking that
            such a stage finds inside a call break it, so `split_reasoning` can find both.
        style: How the model writes calls, or the style's name. Of "harmony" and "muse", thinking is found as well.
        tool_schemas: The tools of the request; see `DecoderOptions`.

    """
    return drive(chunks, Split(_splitter(None, False, style, tool_schemas)))


def _splitter(
    style: str | ReasoningStyle | None, inside: bool, tool_style: str | ToolStyle | None, tool_schemas: Tools
) -> Splitter:
    thinking = None if style is None else style_of(style)
    calls = None if tool_style is None else tool_style_of(tool_style)
    if calls is not None and calls.name in MESSAGES:  # which is both
        thinking = style_of(calls.name)
    splitter = make_splitter(Styles(thinking, calls), tool_schemas, inside=inside)
    assert splitter is not None  # one of the styles is given
    return splitter


def stop_at(
    chunks: ChunkSource, stops: StopStrings | Iterable[str], *, stop_scope: StopScope = "answer"
) -> AsyncGenerator[Chunk, None]:
    """End the text at the first stop string; the ids of what is cut off come last, in a chunk without text.

    Args:
        chunks: The source, of chunks.
        stops: The stop strings, or a `StopStrings` whose `matched` can be read afterwards.
        stop_scope: Where they count: in the "answer", the "reasoning" or in "all".

    """
    channels = stop_channels(stop_scope)
    return drive(chunks, StopAt(stops if isinstance(stops, StopStrings) else StopStrings(stops), channels))


def decode_chat(
    ids: IdSource, tokenizer: Tokenizer, *, prompt_ids: Sequence[int] = (), **options: Unpack[DecoderOptions]
) -> AsyncGenerator[Delta, None]:
    """Decode an engine's ids to deltas: all the stages in one.

    Args:
        ids: The source. The `finish_reason` of its last `EngineStep` becomes that of `Finish` if it ends by itself.
        tokenizer: The tokenizer whose ids these are.
        prompt_ids: As for `ChatDecoder`.
        options: See `DecoderOptions`.

    Raises:
        EngineError: The source failed, which is the cause; or it yielded what is not ids. What was decoded before,
            and a `Finish` with reason "error", have been given first.
        TokenIdError: The source yielded an id outside the vocabulary; likewise.

    """
    return drive(ids, DecodeChat(ChatDecoder(tokenizer, prompt_ids=prompt_ids, **options)), engine_error)


# -- the driver --------------------------------------------------------------------------------------------------------


class Owned:
    """A source that is closed once, by whoever comes first."""

    def __init__(self, source: AsyncIterable[Any]) -> None:
        self._source = source
        self._open: tuple[Any, ...] = (source,)

    def __aiter__(self) -> AsyncIterator[Any]:
        """Begin to read it; its iterator is closed as well."""
        items = aiter(self._source)
        self._open = (items, self._source)
        return items

    async def aclose(self) -> None:
        """Close what can be closed of the source and its iterator."""
        closables, self._open = self._open, ()
        await close(*closables)


class Stage(AsyncGenerator[T, None]):
    """A stage as its reader has it: an async generator that closes its source even if nothing was ever read of it.

    A bare generator would not: none of its code runs if it is closed before it has begun.
    """

    def __init__(self, items: AsyncGenerator[T, None], *sources: Owned) -> None:
        self._items = items
        self._sources = sources

    def __aiter__(self) -> AsyncIterator[T]:
        """Give the generator itself, so that reading costs nothing more."""
        return aiter(self._items)

    def __anext__(self) -> Coroutine[Any, Any, T]:
        return self._items.__anext__()

    def asend(self, value: None) -> Coroutine[Any, Any, T]:
        return self._items.asend(value)

    def athrow(self, *error: Any) -> Coroutine[Any, Any, T]:
        return self._items.athrow(*error)

    async def aclose(self) -> None:
        await close(self._items, *self._sources)


def drive(
    source: Any, part: Part[T], translate: Callable[[Exception], Exception] = lambda failure: failure
) -> Stage[T]:
    """Run a part over a source.

    Args:
        source: What to read; it is closed once the part or the source is finished, or the reader leaves.
        part: What makes items of those of the source.
        translate: Makes the error that is raised of one that the source or the part raised.

    """
    owned = Owned(source)
    return Stage(read_through(owned, Driven(part, translate)), owned)


async def read_through(source: Owned, part: Driven[T]) -> AsyncGenerator[T, None]:
    """Give what a part makes of a source, which is closed before the last items, or once the reader has left."""
    last: Sequence[T] = ()
    try:
        items = aiter(source)
        while True:
            try:  # not round the `yield`, where what the reader throws in would come out
                item = await anext(items)
            except StopAsyncIteration:
                last = part.end()
            except Exception as error:  # noqa: BLE001 - a source can fail in any way
                last = part.end(error)
            else:
                last = part.feed(item)
            if part.ended:
                break
            for given in last:
                yield given
    finally:  # even if the reader has left, or was cancelled
        await close_source(source, part)
    for given in last:
        yield given
    part.check()


async def close_source(source: Owned, part: Driven[Any]) -> None:
    """Close the source of a part; what it fails with then is the failure, unless there was one before."""
    try:
        await source.aclose()
    except Exception as error:
        if not part.ended:
            raise
        part.failure = part.failure or error


async def close(*closables: Any) -> None:
    """Close what can be closed, in this order and once; an iterator and its source are often the same object.

    All are closed even if one fails to; what the last of these raises is raised.
    """
    async with AsyncExitStack() as stack:
        for closable in reversed({id(closable): closable for closable in closables}.values()):
            if (aclose := getattr(closable, "aclose", None)) is not None:
                stack.push_async_callback(aclose)


def engine_error(failure: Exception) -> Exception:
    """Say that an engine failed, unless the failure says so itself."""
    if isinstance(failure, EngineError | TokenIdError):
        return failure
    return EngineError(f"the engine failed: {type(failure).__name__}: {failure}")
