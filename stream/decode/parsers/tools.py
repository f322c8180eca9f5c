"""Splitter of tool calls from the answer: each call's name first, then its arguments incrementally.

A call's name is emitted when its arguments begin, or when its object ends without arguments. If the text proves not to
be a call before that, it is emitted as answer with the reason. If a call breaks later, a piece reports the reason, and
the rest of the call is emitted as its arguments, as written. Without markup and tools the rest is answer: the object may
be no call. A call is `complete` when the JSON of its object, or of its arguments under a header, has closed and is valid;
closing markup may be missing. If the request has tools, a call of another function is text, with its markup, because models
quote the markup of documents. Arguments are emitted as written: if a model wrote them as a string with JSON in it, that
string is the text. A call without arguments gets `{}`. An opening text may stand twice in a row before a call; both are
markup then.

Held back are: a call in JSON up to its name, at most `JsonBlock.MAX_HELD` characters; a tagged argument that need not be a
string, up to its end; and white space between the parts of markup.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, ClassVar, Self

import msgspec
from msgspec.structs import replace

from tokenweir.encode.base.options import check_texts
from tokenweir.stream.decode.parsers.blocks.either_block import EitherBlock
from tokenweir.stream.decode.parsers.blocks.function_block import CallReader, FunctionBlock
from tokenweir.stream.decode.parsers.blocks.json_block import JsonBlock
from tokenweir.stream.decode.parsers.blocks.literal_block import LiteralBlock
from tokenweir.stream.decode.parsers.blocks.parameter_block import ParameterBlock
from tokenweir.stream.decode.parsers.blocks.python_objects import PythonObjectBlock
from tokenweir.stream.decode.parsers.blocks.stepped_block import FENCE, SteppedBlock
from tokenweir.stream.decode.parsers.blocks.typed_literal_block import TypedLiteralBlock
from tokenweir.stream.decode.parsers.pieces import ANSWER, TOOL_CALL, Piece, markup, plain
from tokenweir.stream.decode.parsers.saved import CallNumber, Count, Saved, ShortText, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas, tool_schemas_of
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import MAX_AT_ONCE, MAX_HEADER, first_of, in_parts, mark_at
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.tools import Tools, tool_style_of

BLOCKS: dict[str, Callable[[ToolStyle, ToolSchemas], SteppedBlock]] = {
    "json": JsonBlock,
    "literals": LiteralBlock,
    "typed literals": TypedLiteralBlock,
    "parameters": ParameterBlock,
    "python objects": PythonObjectBlock,
}
"""Block classes, by a style's `grammar`."""


def register_grammar(name: str, read: CallReader) -> None:
    """Register a grammar of tool calls, which styles of this process then name as their `grammar`.

    A block is held back up to the text that closes it, at most `MAX_BLOCK` characters. Then its calls are emitted. A block
    that is longer, is cut short, has no call, or calls a function that the request does not have is emitted as answer, with
    the reason.

    Args:
        name: The value of `ToolStyle.grammar`.
        read: A function that gets the text between the opening and the closing text of a block, and the JSON schemas of the
            request's tools by function name. It returns the name and the arguments of each call. It raises ValueError for
            a text that is not a call; the message is the reason. Any other exception ends the answer.

    Raises:
        TypeError: `name` is not a str, or `read` not a function.
        ValueError: A grammar has this name already.

    """
    check_texts(name=name)
    if not callable(read):
        raise TypeError(f"read must be a function, not {type(read).__name__}")
    if name in BLOCKS:
        raise ValueError(f"there is a grammar {name!r} already")
    BLOCKS[name] = partial(FunctionBlock, read)


class ToolParser(Saved):
    """Splitter of an answer's text into text and tool calls.

    Attributes:
        in_block: Whether a block of calls is open.

    """

    SAVED: ClassVar[dict[str, Any]] = {
        "_bare": bool,
        "_behind": bool,
        "_unprocessed": ShortText,
        "_call": CallNumber,
        "_refusal": ShortText,
        "_refused": Count,
    }

    def __init__(self, style: str | ToolStyle, schemas: Tools | ToolSchemas = (), *, opener: str = "") -> None:
        """Start at the beginning of an answer.

        Args:
            style: The style of calls, or the name of a style in `TOOL_STYLES` or of a family of models.
            schemas: The tools of the request, which may declare the types of arguments.
            opener: The opening text of a block that the prompt has begun, if any.

        Raises:
            TypeError: The tools do not have the form that templates take.
            ValueError: No style has the name, or its grammar is unknown.

        """
        self._style = style = tool_style_of(style)
        if style.grammar not in BLOCKS:
            known = ", ".join(BLOCKS)
            raise ValueError(
                f"tool style {style.name!r}: nothing reads the grammar {style.grammar!r}; known are {known}"
            )
        functions = self._functions = tool_schemas_of(schemas)
        self._bounded = bool(functions)  # whether the functions are known, to which calls are bounded
        reads = BLOCKS[style.grammar]
        self._block: SteppedBlock | EitherBlock = (
            EitherBlock(reads, style, functions) if style.or_json else reads(style, functions)
        )
        self._begins = first_of((*style.opens, *style.bare))
        self._ends = first_of(tuple(text[-1] for text in (*style.opens, *style.bare)))
        # Calls in JSON name themselves as such; other text in brackets may be code, unless it names one of the tools.
        self._strewn = style.strewn and (style.grammar == "json" or style.or_json or bool(functions))
        self._skippables = _skippables(style, self._strewn)
        self._strays = tuple(filter(None, (style.closes, style.call_closes, *style.strays)))
        self._behind = False  # only white space so far behind a block with calls, where its end may stand a second time
        self._bare = bool(style.bare)  # only white space so far: a block may begin without opening text
        self._unprocessed = ""  # a possible prefix of an opening text
        self._call = -1  # the number of the last call
        self._refusal = ""  # why the current call of the block is text; empty if it is a call
        self._refused = 0  # calls of the block that are text
        self.in_block = False
        if opener:
            self._begin(opener)
            self._block.leave_opener()

    @property
    def openers(self) -> tuple[str, ...]:
        """Texts that open a block of tool calls."""
        return self._style.opens

    @property
    def channel(self) -> Channel:
        return TOOL_CALL if self.in_block and not (self._block.broken or self._refusal) else ANSWER

    @property
    def held(self) -> str:
        """The text that was fed and not emitted, because it may still be part of a call or its markup."""
        return self._block.held if self.in_block else self._unprocessed

    @property
    def skippable(self) -> SkippableText | None:
        """Description of the text that may bypass `feed`; None if all text must be fed.

        Outside of blocks it has none of the characters with which blocks begin. In a block, the block describes it.
        """
        if self.in_block:
            return None if self._refusal else self._block.skippable
        return None if self._unprocessed or self._behind else self._skippables[self._bare]

    @property
    def answer_skippables(self) -> tuple[SkippableText, SkippableText]:
        """The values that `skippable` can have outside of blocks of calls, other than None."""
        return self._skippables

    def opening_end(self, text: str) -> int:
        """Return the index behind the first character with which an opening text may end, or the length of the text."""
        found = self._ends(text)
        return found.end() if found else len(text)

    def take_tag(self, tag: str) -> None:
        """Continue behind a tag that was found without `feed`, and that begins or ends a block of calls."""
        if self.in_block:
            self._end_block()
        else:
            self._begin(tag)

    def feed(self, text: str) -> list[Piece]:
        if len(text) > MAX_AT_ONCE:
            return [piece for part in in_parts(text) for piece in self.feed(part)]
        out: list[Piece] = []
        while text:
            text = self.feed_block(text, out) if self.in_block else self._split_answer(text, out)
        return out

    def feed_block(self, text: str, out: list[Piece]) -> str:
        """Process text of the open block, append the final pieces to `out`, and return the text after the block.

        Return an empty text while the block is open.
        """
        given = len(out)
        text = self._block.feed(text, out)
        if self._bounded:
            out[given:] = self._refuse_undeclared(out[given:])
        if self._block.done:
            self._end_block()
        return text

    def leave_block(self) -> None:
        """Leave the block, if one is open, which has had no call; the caller has all of its text."""
        if self.in_block:
            self._end_block()
        self._behind = False

    def finish(self) -> list[Piece]:
        """End the answer: return pieces for the held text, which cannot become a complete call any more."""
        if self.in_block:
            pieces = self._refuse_undeclared(self._block.finish())
            self._end_block()
            self._behind = False
            return pieces
        unprocessed, self._unprocessed, self._behind = self._unprocessed, "", False
        return [plain(unprocessed, ANSWER)] if unprocessed else []

    def copy(self) -> Self:
        """Return an independent parser in the same state."""
        other = super().copy()
        other._block = self._block.copy()
        return other

    def state(self) -> Any:
        return [super().state(), self._block.state() if self.in_block else None]

    def restore(self, state: Any) -> None:
        own, block = msgspec.convert(state, tuple[Any, Any])
        super().restore(own)
        self.in_block = block is not None
        marks = (*self._style.opens, *(self._strays if self._behind else ()))
        unprocessed = self._unprocessed.lstrip() if self._behind else self._unprocessed
        may_open = not self.in_block and any(mark.startswith(unprocessed) for mark in marks)
        check_restored(not self._unprocessed or may_open, "text is held that opens no block")
        check_restored(self.in_block or not self._refused, "a call of a block is refused that has ended")
        check_restored(self._bounded or not self._refused, "a call is refused where no function is declared")
        check_restored(bool(self._refused or not self._refusal), "a call is refused that has not come")
        if self.in_block:
            self._block.begin("", self._call)
            self._block.restore(block)
            check_restored(self._block.call - self._refused >= self._call, "more calls are refused than have come")

    def _begin(self, opener: str) -> None:
        """Start a block of calls behind its opening text, which is empty if the block has no such text."""
        self._bare = self._behind = False
        self._refusal, self._refused = "", 0
        self.in_block = True
        self._block.begin(opener, self._call)

    def _end_block(self) -> None:
        """Leave the block of calls that has ended, and take over the number of its last call."""
        call = self._block.call - self._refused
        self._behind = call > self._call
        self._call, self.in_block = call, False
        self._refusal, self._refused = "", 0

    def _refuse_undeclared(self, pieces: list[Piece]) -> list[Piece]:
        """Return the pieces of the block, those of a call that the request has no function for as text of the answer."""
        if not self._bounded or not (self._refused or any(piece.name for piece in pieces)):
            return pieces
        out: list[Piece] = []
        for piece in pieces:
            if piece.name:
                self._refusal = self._functions.refusal(piece.name)
                self._refused += bool(self._refusal)
            if self._refusal and piece.channel is not ANSWER:
                if piece.source:
                    out.append(Piece(piece.source, ANSWER, piece.source, malformed=self._refusal))
            elif self._refused and piece.channel is TOOL_CALL:
                out.append(replace(piece, call=piece.call - self._refused))
            else:
                out.append(piece)
        return out

    def _split_answer(self, text: str, out: list[Piece]) -> str:
        """Process text outside of blocks, append the final pieces to `out`, and start the next block of calls if one comes.

        Return the text after its opening text, or an empty text.
        """
        text = self._unprocessed + text
        self._unprocessed = ""
        if self._behind:
            start = len(text) - len(text.lstrip())
            stray, partial = mark_at(text, start, self._strays)
            if start <= MAX_HEADER and (stray or partial) and not (start and stray == FENCE):
                end = start + len(stray)
                out += [markup(text[:end])] * bool(stray)
                self._unprocessed = text * partial
                return text[end:] if stray else ""
            self._behind = False
        at, opener, partial, bare = 0, "", False, False
        while (begin := self._begins(text, at)) is not None:
            at = begin.start()
            bare = text[at] in self._style.bare and (self._strewn or (self._bare and not text[:at].strip()))
            opener, partial = mark_at(text, at, self._style.opens)
            if opener or partial or bare:
                break
            at += 1
        else:
            at = len(text)
        if at:
            self._bare = self._bare and not text[:at].strip()
            out.append(plain(text[:at], ANSWER))
        if opener or (bare and not partial):
            self._begin(opener)
            return text[at + len(opener) :]
        self._unprocessed = text[at:]
        return ""


@cache
def _skippables(style: ToolStyle, strewn: bool) -> tuple[SkippableText, SkippableText]:
    """Return descriptions of the text outside of blocks that may bypass `feed`.

    The first is for the middle of an answer, the second for an answer of nothing but white space so far.

    Args:
        style: The style of tool calls.
        strewn: Whether calls without opening text may begin anywhere in the answer.

    """
    starts = "".join(sorted({text[0] for text in style.opens}))
    if strewn:
        anywhere = SkippableText(starts + style.bare, openers=style.opens)
        return anywhere, anywhere
    return SkippableText(starts, openers=style.opens), SkippableText(
        starts + style.bare, openers=style.opens, bare=True
    )
