"""The async stages of the pipeline: each takes a source, owns it and closes it.

The first stage takes an async iterable of ids, of sequences or arrays of ids, or of `EngineStep`s. Later stages take the
`Chunk`s of the stage before. The work of a stage is a sans-I/O transform (`transforms.py`); only `drive` awaits. It holds
no task and no cancel scope, so a stage may be abandoned at any `yield`, under asyncio and trio. At its end, or when it is
abandoned, it closes its source before it yields its last items.
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

from tokenweir.encode import _core
from tokenweir.encode.base.options import ByteFallback, check_byte_fallback
from tokenweir.encode.errors import EngineError, TokenIdError
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer, core_of
from tokenweir.encode.values.ids import as_ids
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.chunk import Chunk, IdOrIds
from tokenweir.stream.decode.options import DecoderOptions, StopScope, stop_channels
from tokenweir.stream.decode.parsers.detection import Styles, make_splitter, shown_tokens
from tokenweir.stream.decode.parsers.splitter import Splitter
from tokenweir.stream.decode.stops import StopStrings
from tokenweir.stream.decode.transforms import (
    DecodeChat,
    Detokenize,
    SplitChannels,
    StageRunner,
    StopAt,
    Transform,
    UntilEos,
)
from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.events.step import EngineStep
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import MESSAGES, ReasoningStyle, style_of
from tokenweir.templates.styles.tools import Tools, tool_style_of

IdSource = AsyncIterable[IdOrIds | EngineStep]
ChunkSource = AsyncIterable[Chunk]

T = TypeVar("T")


def until_eos(ids: IdSource, eos_ids: Collection[int]) -> AsyncGenerator[list[int] | Chunk, None]:
    """Yield the ids of a source up to the first end token, which comes last, as a `Chunk` without text.

    Args:
        ids: The source, which is closed here.
        eos_ids: The ids of the end tokens.

    Raises:
        TypeError: The end tokens are not ids.

    """
    return drive(ids, UntilEos(as_ids(eos_ids, "eos_ids")))


def detokenize(
    ids: AsyncIterable[IdOrIds | EngineStep | Chunk],
    tokenizer: Tokenizer,
    *,
    prompt_ids: Sequence[int] = (),
    skip_special_tokens: bool = True,
    byte_fallback: ByteFallback = "eager",
    reasoning: str | ReasoningStyle | None = None,
    tool_style: str | ToolStyle | None = None,
) -> AsyncGenerator[Chunk, None]:
    """Decode ids; yield a chunk for every id that completes a character.

    Args:
        ids: The source; it may contain the output of `until_eos`.
        tokenizer: The tokenizer whose ids these are.
        prompt_ids: As for `DecodeStream`.
        skip_special_tokens: Leave out the text of control tokens.
        byte_fallback: As for `DecodeStream`.
        reasoning: Keep the control tokens of this style's tags in the text, for `split_reasoning`.
        tool_style: Keep those of this style of tool calls, for `split_tool_calls`.

    """
    check_tokenizer(tokenizer)
    check_byte_fallback(byte_fallback)
    shown: dict[int, str] = {}
    if skip_special_tokens:
        shown |= shown_tokens(tokenizer, style_of(reasoning)) if reasoning is not None else {}
        shown |= shown_tokens(tokenizer, tool_style_of(tool_style)) if tool_style is not None else {}
    detok = _core.Detokenizer(
        core_of(tokenizer).tokens,
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
    reasoning: str | ReasoningStyle,
    *,
    inside: bool = False,
    tool_style: str | ToolStyle | None = None,
    tools: Tools = (),
) -> AsyncGenerator[Chunk, None]:
    """Yield chunks in which the text of thinking has the channel `REASONING`, and its tags are cut out of the text.

    The ids of a tag are in a chunk whose `text` is empty, or in the next chunk where an id has text of both.

    Args:
        chunks: The source, of chunks.
        reasoning: The style or its name. With "harmony" and "muse", tool calls are found as well. A stage knows no
            vocabulary: openers that are control tokens count within a line only for a style with `opens_at="anywhere"`,
            which `ChatDecoder` chooses itself.
        inside: Whether the prompt has already opened the thinking.
        tool_style: Also find tool calls of this style, so that tags inside their arguments stay text.
        tools: The tools of the request; see `DecoderOptions`.

    """
    return drive(chunks, SplitChannels(_splitter(reasoning, inside, tool_style, tools)))


def strip_reasoning(
    chunks: ChunkSource,
    reasoning: str | ReasoningStyle,
    *,
    inside: bool = False,
    tool_style: str | ToolStyle | None = None,
    tools: Tools = (),
) -> AsyncGenerator[Chunk, None]:
    """Yield chunks without the text of thinking and without its tags.

    Removed text gives chunks with an empty `text` that carry its ids. An id that has text of both is in the chunk with
    the text that is kept.

    The arguments are as for `split_reasoning`.
    """
    return drive(chunks, SplitChannels(_splitter(reasoning, inside, tool_style, tools), strip=True))


def split_tool_calls(
    chunks: ChunkSource, tool_style: str | ToolStyle, *, tools: Tools = ()
) -> AsyncGenerator[Chunk, None]:
    """Yield chunks in which tool calls have a channel of their own: a call's name, its arguments as they come, and its end.

    Args:
        chunks: The source. Chunks that an earlier stage put on a channel stay there. To find thinking and calls in one
            answer, give `split_reasoning` the `tool_style`: as two stages, a tag inside a call would break the call.
        tool_style: The style or its name. With "harmony" and "muse", thinking is found as well.
        tools: The tools of the request; see `DecoderOptions`.

    """
    return drive(chunks, SplitChannels(_splitter(None, False, tool_style, tools)))


def _splitter(
    reasoning: str | ReasoningStyle | None, inside: bool, tool_style: str | ToolStyle | None, tools: Tools
) -> Splitter:
    thinking = None if reasoning is None else style_of(reasoning)
    calls = None if tool_style is None else tool_style_of(tool_style)
    if calls is not None and calls.name in MESSAGES:  # one splitter finds both
        thinking = style_of(calls.name)
    splitter = make_splitter(Styles(thinking, calls), tools, inside=inside)
    assert splitter is not None  # one of the styles is given
    return splitter


def stop_at(
    chunks: ChunkSource, stop: StopStrings | Iterable[str], *, stop_scope: StopScope = "answer"
) -> AsyncGenerator[Chunk, None]:
    """Yield chunks up to the first stop string, which is cut out of the text.

    The ids whose text was cut come last, in a chunk without text.

    Args:
        chunks: The source, of chunks.
        stop: The stop strings, or a `StopStrings` whose `matched` can be read afterwards.
        stop_scope: The text in which stop strings are looked for: "answer", "reasoning" (thinking) or "all" (both).

    """
    channels = stop_channels(stop_scope)
    return drive(chunks, StopAt(stop if isinstance(stop, StopStrings) else StopStrings(stop), channels))


def decode_chat(
    ids: IdSource, tokenizer: Tokenizer, *, prompt_ids: Sequence[int] = (), **options: Unpack[DecoderOptions]
) -> AsyncGenerator[Delta, None]:
    """Decode an engine's ids and yield the deltas of its answer: all the stages in one.

    Args:
        ids: The source. The `finish_reason` of its last `EngineStep` becomes that of `Finish` if it ends by itself.
        tokenizer: The tokenizer whose ids these are.
        prompt_ids: As for `ChatDecoder`.
        options: See `DecoderOptions`.

    Raises:
        EngineError: The source failed, which is the cause, or yielded something that is not ids. Everything decoded
            before, and a `Finish` with reason "error", have been yielded first.
        TokenIdError: The source yielded an id outside the vocabulary; likewise.

    """
    return drive(ids, DecodeChat(ChatDecoder(tokenizer, prompt_ids=prompt_ids, **options)), engine_error)


# -- the driver --------------------------------------------------------------------------------------------------------


class Owned:
    """An async iterable that is to be closed by its owner; closing it twice is a no-op."""

    def __init__(self, source: AsyncIterable[Any]) -> None:
        self._source = source
        self._open: tuple[Any, ...] = (source,)

    def __aiter__(self) -> AsyncIterator[Any]:
        """Return a new iterator of the source; `aclose` then closes the iterator as well as the source."""
        items = aiter(self._source)
        self._open = (items, self._source)
        return items

    async def aclose(self) -> None:
        """Close the iterator and the source, each if it has a method `aclose`."""
        closables, self._open = self._open, ()
        await close(*closables)


class Stage(AsyncGenerator[T, None]):
    """An async generator that closes its sources even if it was never read.

    A plain generator does not: none of its code runs if it is closed before it has begun.
    """

    def __init__(self, items: AsyncGenerator[T, None], *sources: Owned) -> None:
        self._items = items
        self._sources = sources

    def __aiter__(self) -> AsyncIterator[T]:
        """Return the generator itself, so that reading has no extra cost."""
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
    source: Any, transform: Transform[T], translate: Callable[[Exception], Exception] = lambda failure: failure
) -> Stage[T]:
    """Return an async generator of the items that a transform makes of a source.

    Args:
        source: The source. It is closed when it or the transform has finished, or the reader leaves.
        transform: Makes items for the reader from each item of the source.
        translate: Converts an error of the source or the transform into the error to raise.

    """
    owned = Owned(source)
    return Stage(read_through(owned, StageRunner(transform, translate)), owned)


async def read_through(source: Owned, runner: StageRunner[T]) -> AsyncGenerator[T, None]:
    """Yield the items that a runner's transform makes of a source.

    The source is closed before the last items are yielded, or when the reader leaves. The runner's failure, if any, is raised
    after the last item.
    """
    last: Sequence[T] = ()
    try:
        items = aiter(source)
        while True:
            try:  # not around the `yield`: an exception thrown in by the reader is not the source's
                item = await anext(items)
            except StopAsyncIteration:
                last = runner.end()
            except Exception as error:  # noqa: BLE001 - a source can fail in any way
                last = runner.end(error)
            else:
                last = runner.feed(item)
            if runner.ended:
                break
            for given in last:
                yield given
    finally:  # even if the reader has left, or was cancelled
        await close_source(source, runner)
    for given in last:
        yield given
    runner.check()


async def close_source(source: Owned, runner: StageRunner[Any]) -> None:
    """Close a source.

    An error of closing becomes the runner's failure, unless it has one already. It is raised at once if the runner has
    not ended, because the reader has left.
    """
    try:
        await source.aclose()
    except Exception as error:
        if not runner.ended:
            raise
        runner.failure = runner.failure or error


async def close(*closables: Any) -> None:
    """Await `aclose` of each object that has it, in this order, and only once for an object that is given twice.

    All are closed even if one raises; the last error is raised.
    """
    async with AsyncExitStack() as stack:
        for closable in reversed({id(closable): closable for closable in closables}.values()):
            if (aclose := getattr(closable, "aclose", None)) is not None:
                stack.push_async_callback(aclose)


def engine_error(failure: Exception) -> Exception:
    """Return an `EngineError` for a failure of an engine, with the failure's type and message in its own message.

    An `EngineError` or `TokenIdError` is returned unchanged.
    """
    if isinstance(failure, EngineError | TokenIdError):
        return failure
    return EngineError(f"the engine failed: {type(failure).__name__}: {failure}")
