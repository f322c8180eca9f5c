"""The format of Muse: messages to recipients, split as they come.

    <|start|>assistant to=self<|message|>...<|eom|><|start|>assistant to=user<|message|>...<|eot|>

A message to `self` is thinking. One to `user`, as `commentary`, or without a recipient is answer. Any other is a
tool call, whose tags `ToolParser` reads; tags in a thought or an answer are text. An invalid header, and the rest of
its message, is emitted as answer with the reason, because its intent is unknown. The header of a message to a tool is
held until a call begins; before anything else, the header is answer too, with the reason.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal

from tokenweir.stream.decode.parsers.messages import CallingMessages, refused_header
from tokenweir.stream.decode.parsers.pieces import ANSWER, Piece, markup, plain
from tokenweir.stream.decode.parsers.saved import ShortText
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, first_match
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.reasoning import MUSE

START, MESSAGE = "<|start|>", "<|message|>"
ENDS = ("<|eom|>", "<|eot|>")
MARKS = (START, MESSAGE, *ENDS)

_HEADER = re.compile(r"(?:assistant)?\s*+(?:to=(?P<recipient>[^\s<]++))?\s*+")
_BEGINNING = re.compile(
    r"(?:(?:assistant)?to=[^\s<]*|[a-z]*(?:\s+(?:t(?:o(?:=[^\s<]*)?)?)?)?)\s*"
)  # prefixes of headers
_ANSWERED = ("user", "commentary", None)  # recipients of messages that are answer
_OTHER_THAN_SPACE = re.compile(r"\S").search
_BODY = SkippableText("<")


class Muse(CallingMessages):
    """Splitter of text in the format of Muse models into thinking, answer and tool calls.

    The states: "header"; "body", with its channel; "call", a message to a tool; "after", between two messages; and
    "broken", text that is emitted as answer with a reason, up to the next markup.
    """

    MARKS = MARKS
    STYLE = MUSE
    SAVED: ClassVar[dict[str, Any]] = {
        "_state": Literal["header", "body", "call", "after", "broken"],
        "_header": ShortText,
        "_held": ShortText,
        "_unprocessed": ShortText,
        "_channel": Channel,
        "_reason": ShortText,
        "_tools": ToolParser,
    }

    @property
    def skippable(self) -> SkippableText | None:
        """Description of the text that may bypass `feed`; None if all text must be fed.

        It is a message's text up to the next `<`, or in a message to a tool what the parser of calls allows.
        """
        if self._unprocessed:
            return None
        if self._state == "call":
            return None if self._held else self._tools.skippable
        return _BODY if self._state == "body" else None

    def take_tag(self, tag: str) -> None:
        """Continue behind a tag that was found without `feed`, and that begins or ends the calls of a message to a tool."""
        self._tools.take_tag(tag)

    def _end(self, out: list[Piece]) -> None:
        self._end_message("the end", out)

    def _text(self, text: str, out: list[Piece]) -> None:
        if self._state == "body":
            out.append(plain(text, self._channel))
        elif self._state == "call":
            self._emit_message(self._tools.feed(text), out)
        elif self._state == "header":
            self._header += text
            self._held += text
            if reason := refused_header(self._header, _BEGINNING):
                self._break(reason, out)
        else:
            space = first_match(_OTHER_THAN_SPACE, text) if self._state == "after" else 0
            if space:
                out.append(markup(text[:space]))
            if space < len(text):
                if self._state == "after":
                    self._break(f"{text[space]!r} stands outside of a message", out)
                out.append(Piece(text[space:], ANSWER, text[space:], malformed=self._reason))

    def _mark(self, mark: str, out: list[Piece]) -> None:
        if mark == MESSAGE and self._state == "header":
            self._held += mark
            self._begin_message(out)
        elif mark == MESSAGE:
            self._text(mark, out)
        else:
            self._end_message(mark, out)
            self._channel, self._header = ANSWER, ""
            if mark == START:
                self._state, self._held = "header", mark
            else:
                out.append(markup(mark))
                self._state = "after"

    def _begin_message(self, out: list[Piece]) -> None:
        """Parse the complete header, and continue with the message's text, or with the calls of a message to a tool.

        An invalid header is emitted as answer, with the reason.
        """
        header = _HEADER.fullmatch(self._header)
        if header is None:
            self._break(f"{self._header!r:.80} is no header of a message", out)
            return
        recipient = header["recipient"]
        if recipient != "self" and recipient not in _ANSWERED:
            self._state = "call"
        else:
            self._state, self._channel = "body", self._thinking if recipient == "self" else ANSWER
            out.append(markup(self._held))
            self._held = ""

    def _emit_message(self, pieces: list[Piece], out: list[Piece]) -> None:
        """Emit pieces of a message to a tool, with the held header before them.

        `_emit_header` decides whether the header is markup or answer. White space that comes first is held with it.
        """
        for piece in pieces:
            rest = self._emit_header(piece, out) if self._held else piece
            if rest is not None:
                out.append(rest)

    def _emit_header(self, piece: Piece, out: list[Piece]) -> Piece | None:
        """Emit the held header before a piece, and return the rest of the piece; None if nothing of it is left.

        The header is markup before a call, and answer with the reason before other text. White space is held together with
        the header, because a call may follow.
        """
        if piece.channel is not ANSWER:
            out.append(markup(self._held))
            self._held = ""
            return piece
        space = piece.source[: max(0, MAX_HEADER - len(self._held))]
        if space and not space.strip():
            self._held += space
            piece = plain(piece.source[len(space) :], ANSWER)
            if not piece.source:
                return None
        self._give_header(out)
        return piece

    def _give_header(self, out: list[Piece]) -> None:
        """Emit the held header of a message to a tool as answer, with the reason: no call has come in the message."""
        out.append(Piece(self._held, ANSWER, self._held, malformed="no call comes in a message to a tool"))
        self._held = ""

    def _end_message(self, mark: str, out: list[Piece]) -> None:
        """End the open message or header because `mark` follows; an incomplete header is reported as malformed."""
        if self._state == "call":
            self._emit_message(self._tools.finish(), out)
            if self._held:
                self._give_header(out)
        elif self._held:
            self._break(f"{mark} stands in a header", out)
