"""OpenAI's harmony format, which gpt-oss writes: messages on channels, split as they come.

    <|start|>assistant<|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...<|return|>

A message on `analysis` is thinking, one on `final`, on `commentary` or on no channel is answer. One with a recipient
(`to=functions.NAME`, after the role or after the channel) is a tool call, unless it is on `final` or to the assistant itself.
A header to the assistant that another one replaces is removed. The name of a call is emitted with the first character of
its arguments. These must be a JSON object; others, such as code, are emitted as they are written, with the reason. If the
request has tools, a message to another recipient is answer, because models quote headers. Any other header, and the rest of
its message, is emitted as answer with the reason, because its intent is unknown. A header may begin at `<|channel|>` alone,
also inside a message, because models omit the marks before it.

Beam's models write arguments as tags, in messages of the type `xml`:

    <|start|>assistant to=NAME<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="KEY">VALUE</rfl:parameter><|call|>

LLM-jp 4.1 writes a space behind each mark (`<|start|> assistant<|channel|> final<|message|> ...`). The space behind
`<|message|>` is markup if there is one behind `<|channel|>`.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal, Self

import msgspec

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.blocks.parameter_block import ParameterBlock
from tokenweir.stream.decode.parsers.messages import MessageParser, refused_header
from tokenweir.stream.decode.parsers.pieces import ANSWER, TOOL_CALL, Piece, markup, plain
from tokenweir.stream.decode.parsers.saved import CallNumber, ShortText, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas, tool_schemas_of
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, first_match
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.grammars import ParameterStyle
from tokenweir.templates.styles.tools import Tools

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
MARKS = (START, CHANNEL, MESSAGE, CONSTRAIN, *ENDS)

_TYPE = r"(?:<\|constrain\|>\s*+)?(?:[\w.+/-]++\s*+)?"
_HEADER = re.compile(
    rf" ?(?:assistant)?\s*+(?:to=(?P<first>[^\s<]++)\s*+{_TYPE})?"
    rf"(?:<\|channel\|>\s*+(?P<channel>analysis|commentary|final)\s*+(?:to=(?P<second>[^\s<]++)\s*+)?{_TYPE})?"
)
_KIND = r"(?:<\|constrain\|>\s*)?[\w.+/-]*\s*"  # a prefix of `_TYPE`
_BEGINNING = re.compile(
    rf" ?\w*\s*(?:to=[^\s<]*\s*{_KIND}|to?)?(?:<\|channel\|>\s*\w*\s*(?:to=[^\s<]*\s*)?{_KIND})?"
)  # prefixes of headers
# A header to the model itself that another header replaces.
_FALSE_START = re.compile(r" ?(?:assistant)?\s*+<\|channel\|>\s*+(?:analysis|commentary)\s*+to=assistant\s*+")
_XML = re.compile(r"(?:^|[\s>])xml\s*$").search  # the type of arguments in tags
_TAGS = ParameterStyle(  # SGLang's beam.py
    name="beam",
    opens=(START,),
    closes="<|call|>",
    name_ends=(MESSAGE,),
    key_opens='<rfl:parameter name="',
    key_closes=(('">', "schema"),),
    value_closes="</rfl:parameter>",
    trims=True,
)
_OTHER_THAN_SPACE = re.compile(r"\S").search
_BEHIND_CALL = re.compile(r"[^\s}]").search  # a brace too many is markup
_BODY = SkippableText("<")


class Harmony(MessageParser):
    """Splitter of text in OpenAI's harmony format into thinking, answer and tool calls.

    The states: "header"; "spaced", before a body where a space is markup; "body", with its channel; "call" before its
    arguments, "arguments", and "called" after them; "tagged", a call with arguments in tags; "after", between two messages;
    "rest", text of a malformed call, and "broken", malformed text that is answer, both with the reason and up to the next
    markup. A message to a recipient that is no tool of the request is answer, unless the tools are unknown.
    """

    MARKS = MARKS
    SAVED: ClassVar[dict[str, Any]] = {
        "_state": Literal[
            "header", "spaced", "body", "call", "arguments", "called", "tagged", "after", "rest", "broken"
        ],
        "_header": ShortText,
        "_held": ShortText,
        "_unprocessed": ShortText,
        "_channel": Channel,
        "_recipient": ShortText,
        "_reason": ShortText,
        "_call": CallNumber,
        "_value": JsonValue,
    }

    def _start(self, tools: Tools | ToolSchemas) -> None:
        self._tools = tool_schemas_of(tools)
        self._tagged = ParameterBlock(_TAGS, self._tools)
        self._recipient = ""
        self._call = -1
        self._value = JsonValue()

    @property
    def channel(self) -> Channel:
        if self._state == "tagged":
            return ANSWER if self._tagged.broken else TOOL_CALL
        return TOOL_CALL if self._state in ("call", "arguments", "called", "rest") else self._channel

    @property
    def held(self) -> str:
        """The text that was fed and not emitted: a header, or a possible beginning of a mark."""
        return self._held + (self._tagged.held if self._state == "tagged" else "") + self._unprocessed

    @property
    def skippable(self) -> SkippableText | None:
        """Description of the text that may bypass `feed`: a message's text or a call's arguments, up to the next `<`.

        None if all text must be fed.
        """
        if self._unprocessed:
            return None
        if self._state == "arguments":
            return SkippableText("<", self._value)
        if self._state == "tagged" and (skippable := self._tagged.skippable) is not None:
            return skippable if "<" in (skippable.until or "") else None
        return _BODY if self._state == "body" else None

    def finish(self) -> list[Piece]:
        """End the answer: return pieces for the held text. Behind a complete call, the beginning of a mark is removed."""
        if self._state != "called" or not self._unprocessed:
            return super().finish()
        unprocessed, self._unprocessed = self._unprocessed, ""
        return [markup(unprocessed)]

    def state(self) -> Any:
        return [super().state(), self._tagged.state() if self._state == "tagged" else None]

    def restore(self, state: Any) -> None:
        own, tagged = msgspec.convert(state, tuple[Any, Any])
        super().restore(own)
        check_restored((self._state == "tagged") == (tagged is not None), "a call in tags is open, or is not")
        if tagged is not None:
            self._tagged.begin("", self._call)
            self._tagged.restore(tagged)

    def copy(self) -> Self:
        other = super().copy()
        other._tagged = self._tagged.copy()
        return other

    def _end(self, out: list[Piece]) -> None:
        if self._state == "tagged":
            out += self._tagged.finish()
            self._state, self._call = "after", self._tagged.call
        elif self._state == "call":
            self._announce(out)
            self._state = "rest"
        elif self._held:
            self._end_header("the answer ends inside a header", out)

    # -- input by state ------------------------------------------------------------------------------------------------

    def _text(self, text: str, out: list[Piece]) -> None:
        if self._state == "spaced":
            self._state = "body"
            if text[0] == " ":
                out.append(markup(" "))
                text = text[1:]
        if self._state == "body":
            if text:
                out.append(plain(text, self._channel))
        elif self._state == "tagged":
            self._in_tags(text, out)
        elif self._state == "header":
            self._header += text
            self._held += text
            if reason := refused_header(self._header, _BEGINNING):
                self._break(reason, out)
        else:
            search = _BEHIND_CALL if self._state == "called" else _OTHER_THAN_SPACE
            space = first_match(search, text) if self._state in ("call", "called", "after") else 0
            if self._state == "call":
                self._held += text[:space]
                if len(self._held) > MAX_HEADER:
                    self._break(f"no arguments come within {MAX_HEADER} characters", out)
            elif space:
                out.append(markup(text[:space]))
            if space < len(text):
                self._after_space(text[space:], out)

    def _after_space(self, text: str, out: list[Piece]) -> None:
        """Process text that does not begin with white space: of a call, behind a call, or between messages.

        Text behind a call or between messages is emitted as answer, with the reason why it is malformed.
        """
        if self._state == "call":
            self._announce(out)
            self._state = "arguments"
            if text[0] != "{":
                self._fail(f"{text[0]!r} stands where the arguments should begin", out)
        if self._state == "arguments":
            if end := self._value.feed(text):
                out.append(Piece(text[:end], TOOL_CALL, text[:end], call=self._call))
            text = text[end:]
            if self._value.error is not None:
                self._fail(self._value.error, out)
            elif self._value.done:
                self._state = "called"
                out.append(Piece("", TOOL_CALL, "", call=self._call, complete=True))
                if text:
                    self._text(text, out)
                return
        elif self._state in ("called", "after"):
            self._break(f"{text[0]!r} stands outside of a message", out)
        if text and self._state in ("rest", "broken"):
            channel, number = (TOOL_CALL, self._call) if self._state == "rest" else (ANSWER, 0)
            out.append(Piece(text, channel, text, call=number, malformed=self._reason))

    def _in_tags(self, text: str, out: list[Piece]) -> None:
        """Process text of a call with arguments in tags. Text that is no part of it is answer, with the reason."""
        text = self._tagged.feed(text, out)
        self._call = self._tagged.call
        if self._tagged.done:
            self._break(f"{text[0]!r} stands outside of a call", out)
            out.append(Piece(text, ANSWER, text, malformed=self._reason))

    def _mark(self, mark: str, out: list[Piece]) -> None:
        if self._state == "header" and mark in (CONSTRAIN, CHANNEL) and mark not in self._header:
            self._header += mark
            self._held += mark
        elif self._state == "header" and mark == MESSAGE:
            self._held += mark
            self._begin_message(out)
        elif mark in (CONSTRAIN, MESSAGE):
            self._text(mark, out)
        else:
            self._end_message(mark, out)
            if mark in ENDS:
                out.append(markup(mark))
                self._state = "after"
            else:
                self._state, self._held = "header", mark
                self._header = mark if mark == CHANNEL else ""
            self._channel = ANSWER

    def _begin_message(self, out: list[Piece]) -> None:
        """Parse the complete header, and continue with the message's text, or before a call's arguments.

        An invalid header is emitted as answer, with the reason.
        """
        header = _HEADER.fullmatch(self._header)
        if header is None:
            self._break(f"{self._header!r:.80} is no header of a message", out)
            return
        self._channel = self._thinking if header["channel"] == "analysis" else ANSWER
        recipient = header["first"] or header["second"]
        if recipient in (None, "assistant") or header["channel"] == "final":
            self._state = "spaced" if f"{CHANNEL} " in self._header else "body"
            out.append(markup(self._held))
            self._held = ""
        else:
            self._recipient = recipient.removeprefix("functions.")
            if refusal := self._tools.refusal(self._recipient):
                self._break(refusal, out)
            elif _XML(self._header):
                self._tagged.begin_call(self._recipient, self._held, self._call)
                self._state, self._held = "tagged", ""
            else:
                self._state, self._value = "call", JsonValue()

    def _end_message(self, mark: str, out: list[Piece]) -> None:
        """End the open message or header because `mark` follows; an incomplete one is reported as malformed."""
        if self._state == "header" and self._held:
            self._end_header(f"{mark} stands in a header", out)
        elif self._state == "call" and mark == "<|call|>":
            self._announce(out)
            out.append(Piece("", TOOL_CALL, "{}", call=self._call))
            out.append(Piece("", TOOL_CALL, "", call=self._call, complete=True))
        elif self._state == "call":
            self._announce(out)
            self._fail("the call has no arguments", out)
        elif self._state == "arguments":
            self._fail("the JSON is not closed", out)
        elif self._state == "tagged":
            self._tagged.end_call(out)
            self._call = self._tagged.call

    def _end_header(self, reason: str, out: list[Piece]) -> None:
        """Remove a header that is a false start; emit any other one as answer, with the reason why it is malformed."""
        if _FALSE_START.fullmatch(self._header):
            out.append(markup(self._held))
            self._held = ""
        else:
            self._break(reason, out)

    def _announce(self, out: list[Piece]) -> None:
        """Emit the piece with the name of a call; the message's header is its source."""
        self._call += 1
        out.append(Piece(self._held, TOOL_CALL, "", self._recipient, self._call))
        self._held = ""

    def _fail(self, reason: str, out: list[Piece]) -> None:
        """Report why a call whose name has been emitted is malformed. The rest of its message is emitted as written."""
        out.append(Piece("", TOOL_CALL, "", call=self._call, malformed=reason))
        self._state, self._reason = "rest", reason
