"""The format of Inkling: a sequence of typed messages.

    <|message_model|><|content_thinking|>...<|end_message|><|message_model|><|content_text|>...<|end_message|>
    <|message_model|>NAME<|content_invoke_tool_json|>{"name": ..., "args": {...}}<|end_message|>

Follows vLLM's inkling.py and SGLang's inkling_output.py. A function's name before the kind is markup, because the
call repeats it; without a call behind it, the name is answer. `ToolParser` reads the call. Calls with plain text as
arguments have a kind of their own and stay answer, as in vLLM. So does text outside of messages, or in place of a kind.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal

from tokenweir.stream.decode.parsers.messages import CallingMessages
from tokenweir.stream.decode.parsers.pieces import ANSWER, TOOL_CALL, Piece, markup, plain
from tokenweir.stream.decode.parsers.saved import ShortText, check_restored
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.reasoning import INKLING

START = "<|message_model|>"
THINKING, CALL = "<|content_thinking|>", "<|content_invoke_tool_json|>"
TEXTS = ("<|content_text|>", "<|content_invoke_tool_text|>", "<|content_tool_error|>")
ENDS = ("<|end_message|>", "<|content_model_end_sampling|>")
MARKS = (START, THINKING, CALL, *TEXTS, *ENDS)

_HEADER = re.compile(r"\s*+[\w.-]*+\s*+")
_BODY = SkippableText("<")


class Inkling(CallingMessages):
    """Splitter of text in the format of Inkling models into thinking, answer and tool calls.

    The states: "header", between a message's beginning and its kind; "body", text on a channel; and "call".
    """

    MARKS = MARKS
    STYLE = INKLING
    SAVED: ClassVar[dict[str, Any]] = {
        "_state": Literal["header", "body", "call"],
        "_held": ShortText,
        "_unprocessed": ShortText,
        "_channel": Channel,
        "_tools": ToolParser,
    }

    def check(self) -> None:
        super().check()
        named = not self._held or self._state == "header" or bool(self._tools.held)
        check_restored(named, "a function's name is held, and no call")

    @property
    def skippable(self) -> SkippableText | None:
        """Description of the text that may bypass `feed`: a message's text, up to the next `<`; else None."""
        return _BODY if self._state == "body" and not self._unprocessed else None

    def _end(self, out: list[Piece]) -> None:
        self._end_message(out)

    def _text(self, text: str, out: list[Piece]) -> None:
        if self._state == "call":
            self._emit_call(self._tools.feed(text), out)
        elif self._state == "body":
            out.append(plain(text, self._channel))
        else:
            self._held += text
            if len(self._held) > MAX_HEADER or not _HEADER.fullmatch(self._held):
                self._end_message(out)

    def _mark(self, mark: str, out: list[Piece]) -> None:
        if mark not in (START, *ENDS) and self._held.isspace():
            out.append(markup(self._held))
            self._held = ""
        if mark != CALL or self._state != "header":
            self._end_message(out)
        if mark == CALL:  # the held text is the function's name
            self._state = "call"
            self._emit_call(self._tools.feed(mark), out)
            return
        out.append(markup(mark))
        if mark == START:
            self._state = "header"
        elif mark == THINKING:
            self._channel = self._thinking

    def _end_message(self, out: list[Piece]) -> None:
        """End the open message or header, because markup or the end of the answer follows.

        A call is flushed; a header that is incomplete is emitted as answer.
        """
        if self._state == "call":
            self._emit_call(self._tools.finish(), out)
        elif self._held:
            out.append(plain(self._held, ANSWER))
            self._held = ""
        self._state, self._channel = "body", ANSWER

    def _emit_call(self, pieces: list[Piece], out: list[Piece]) -> None:
        """Emit the pieces of a call, and before them the held function name: as markup before a call, else as answer."""
        if pieces and self._held:
            out.append(markup(self._held) if pieces[0].channel is TOOL_CALL else plain(self._held, ANSWER))
            self._held = ""
        out += pieces
