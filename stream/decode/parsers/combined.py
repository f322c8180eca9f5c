"""Combined splitter of thinking and tool calls.

Text goes through the parser of thinking, and the answer in it through the parser of calls. A block of calls goes to
the latter alone, so that tags in arguments stay text. When thinking begins, text held as a possible block is emitted,
because no match spans the markup of the other parser. A block that begins inside the thinking ends it with its first call.
A block without a call is a mention: the thinking goes on, and the text behind the opening text is read again.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import msgspec

from tokenweir.stream.decode.parsers.pieces import ANSWER, REASONING, TOOL_CALL, Piece, plain
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.parsers.saved import check_restored
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import MAX_AT_ONCE, in_parts
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel

_MENTION = 64
"""Characters that a block inside the thinking is fed at a time: what follows a mention is read again."""


class ThinkingAndTools:
    """Splitter of text into thinking, answer and tool calls, made of two splitters that it owns.

    Attributes:
        channel: The channel of the next text.
        skippable: Description of the text that may bypass `feed`: outside of calls what both parsers allow, in a block
            of calls, where tags of thinking are text, what the parser of calls allows; None if all text must be fed.

    """

    def __init__(self, reasoning: ReasoningParser, tools: ToolParser) -> None:
        self._reasoning = reasoning
        self._tools = tools
        # The opening texts that `skippable` may name: they and the tags are not prefixes of each other.
        self._openers = () if reasoning.has_tags_like(tools.openers) else tools.openers
        self._both = _both(reasoning.answer_skippables, tools.answer_skippables, self._openers)
        self._calls: SkippableText | None  # that of the parser of calls
        self._interrupts = False  # the block has begun inside the thinking, and no call has come
        self.channel: Channel
        self.skippable: SkippableText | None
        self._look()

    @property
    def held(self) -> str:
        """The text that was fed and not emitted, because it may still become markup or a call."""
        return self._tools.held + self._reasoning.held

    def take_tag(self, tag: str) -> None:
        """Continue behind a complete tag that was found without `feed`: a tag of thinking, or at either end of a block."""
        tools = self._tools
        if tools.in_block:
            tools.take_tag(tag)
            self._reasoning.see(tag)
            self._interrupts = False
            self._look()
        elif tag in self._openers:
            tools.take_tag(tag)
            self._reasoning.begin_block(tag)
            self.channel, self.skippable = TOOL_CALL, None
        else:
            self._reasoning.take_tag(tag)
            self._look_at_thinking()

    def feed(self, text: str) -> list[Piece]:
        if len(text) > MAX_AT_ONCE:
            return [piece for part in in_parts(text) for piece in self.feed(part)]
        out: list[Piece] = []
        while text:
            if self._tools.in_block:
                given = len(out)
                part = text[:_MENTION] if self._interrupts else text
                text = self._tools.feed_block(part, out) + text[len(part) :]
                if self._interrupts:
                    text = self._resume_thinking(text, out, given)
                for piece in out[given:]:
                    see = self._reasoning.see_answer if piece.channel is ANSWER else self._reasoning.see
                    see(piece.source)
            else:  # up to the place where a block may begin
                end = 1 if self._reasoning.waits else self._tools.opening_end(text)
                thinks = self._reasoning.channel is REASONING
                pieces = self._reasoning.feed(text[:end])
                text = text[end:]
                # The tag that opens the thinking may come with the opening text.
                thinks = thinks or any(piece.channel is not ANSWER for piece in pieces)
                interrupts = (
                    thinks and self._reasoning.interrupted and self._reasoning.begins_with_ender(pieces[-1].text)
                )
                behind = ""  # text scanned behind the opening text, which belongs to the block
                if interrupts:
                    opener, behind = self._reasoning.split_ender(pieces.pop().text)
                    pieces.append(plain(opener, ANSWER))
                self._answer(pieces, out)
                if self._tools.in_block:
                    self._reasoning.begin_block(self._tools.held)
                    text = behind + self._reasoning.release() + text
                    self._interrupts = interrupts
                elif behind:
                    self._answer([plain(behind, ANSWER)], out)
        self._look()
        return out

    def finish(self) -> list[Piece]:
        out: list[Piece] = []
        self._answer(self._reasoning.finish(), out)
        given = len(out)
        out += self._tools.finish()
        if self._interrupts and (rest := self._resume_thinking("", out, given)):
            self._answer(self._reasoning.feed(rest) + self._reasoning.finish(), out)
            out += self._tools.finish()
        self._look()
        return out

    def copy(self) -> Self:
        other = type(self)(self._reasoning.copy(), self._tools.copy())
        other._interrupts = self._interrupts
        return other

    def state(self) -> Any:
        return [self._reasoning.state(), self._tools.state(), self._interrupts]

    def restore(self, state: Any) -> None:
        thinking, calls, self._interrupts = msgspec.convert(state, tuple[Any, Any, bool])
        self._reasoning.restore(thinking)
        self._tools.restore(calls)
        tools, thinking_apart = self._tools, self._reasoning.channel is ANSWER
        check_restored(thinking_apart or not (tools.in_block or tools.held), "thinking goes on within a call")
        check_restored(not (tools.in_block and self._reasoning.held), "what is held in a call may be a tag of thinking")
        check_restored(not self._interrupts or (tools.in_block and self._reasoning.interrupted), "no block interrupts")
        self._look()

    def _resume_thinking(self, text: str, out: list[Piece], given: int) -> str:
        """Go on with the thinking if the block that has interrupted it proves to have no call; end it if a call has come.

        Args:
            text: The text behind what the block was fed.
            out: The pieces so far; those of a block without calls are taken out again, except its opening text.
            given: The index of the first piece of what the block was fed.

        Returns:
            The text to process next, with the block's text behind its opening text in a block without calls.

        """
        fresh = out[given:]
        self._interrupts = not fresh and self._tools.in_block
        if not any(piece.channel is ANSWER for piece in fresh) or any(piece.channel is TOOL_CALL for piece in fresh):
            return text
        text = "".join(piece.source for piece in fresh) + self._tools.held + text
        self._tools.leave_block()
        opener, text = self._reasoning.split_ender(text)
        self._reasoning.resume(opener)
        out[given:] = [plain(opener, REASONING)]
        return text

    def _look(self) -> None:
        """Update `channel` and `skippable` for the next text, from the states of both parsers."""
        self._calls = self._tools.skippable
        if self._tools.in_block:
            self.channel, self.skippable = self._tools.channel, self._calls
        else:
            self._look_at_thinking()

    def _look_at_thinking(self) -> None:
        """Update `channel` and `skippable` outside of blocks, when the state of the parser of calls has not changed."""
        self.channel, self.skippable = self._reasoning.channel, self._reasoning.skippable
        if self.channel is ANSWER:
            self.skippable = self._both.get((self.skippable, self._calls))

    def _answer(self, pieces: list[Piece], out: list[Piece]) -> None:
        """Append to `out` the pieces of the parser of thinking; those of the answer pass through the parser of calls."""
        for piece in pieces:
            if piece.channel is ANSWER:
                out += self._tools.feed(piece.text)
            else:
                if self._tools.held:
                    out += self._tools.finish()
                out.append(piece)


@cache
def _both(
    thinking: tuple[SkippableText, ...], calls: tuple[SkippableText, ...], openers: tuple[str, ...]
) -> dict[tuple[SkippableText | None, SkippableText | None], SkippableText]:
    """Return the text that may bypass `feed` in the answer, for each pair of what the two parsers allow.

    Args:
        thinking: What the parser of thinking may allow.
        calls: What the parser of calls may allow.
        openers: The opening texts of blocks that the fast path may report as tags.

    """
    return {(one, other): _joined(one, other, openers) for one in thinking for other in calls}


def _joined(thinking: SkippableText, calls: SkippableText, openers: tuple[str, ...]) -> SkippableText:
    """Return a description of the text that both `thinking` and `calls` allow to bypass `feed`.

    Neither of them may be limited to white space. `openers` are the opening texts of blocks to report as tags.
    """
    until = "".join(sorted({*(thinking.until or ""), *(calls.until or "")}))
    # Calls that may begin bare need the text before a tag, which decides whether they do.
    tags, line_tags = ((), ()) if calls.bare else (thinking.tags, thinking.line_tags)
    return SkippableText(
        until, tags=tags, line_tags=line_tags, openers=openers, bare=thinking.bare, line_until=thinking.line_until
    )
