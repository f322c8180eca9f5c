"""Ids to deltas: decoding, end tokens, thinking and stop strings in one object that does no I/O.

Every id goes the same way: DecodeStream, ReasoningParser, StopStrings, delta. Most ids cannot concern the last three:
nothing is held back and the text has none of the characters that tags and stops begin with. These take a short way, about
0.7 µs for a `feed` of one id; both ways give the same, and which one an id takes does not depend on how ids are cut.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Literal

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chunk import Ids, PendingIds, id_list
from tokenweir.stream.detection import read_prompt, shown_tokens
from tokenweir.stream.events import Channel, Delta, Finish, FinishReason, ReasoningDelta, TextDelta, Usage
from tokenweir.stream.reasoning import ReasoningParser
from tokenweir.stream.stops import StopStrings, stop_tuple
from tokenweir.templates.reasoning_styles import ReasoningStyle, style_of

ANSWER, REASONING = Channel.ANSWER, Channel.REASONING
SCOPES = {"answer": frozenset({ANSWER}), "reasoning": frozenset({REASONING}), "all": frozenset(Channel)}

_Run = tuple[Channel, list[str], list[int]]


class ChatDecoder:
    """Turns the ids of one answer into deltas; every delta is final.

    The joined texts do not depend on how the ids are cut into chunks, and every id that is consumed is in the
    `token_ids` of exactly one delta (see `chunk.py`). After the end, `feed` gives nothing and counts what it ignores.

    Attributes:
        finished: Whether `Finish` has been given.
        ignored: How many ids came after the end.

    """

    def __init__(
        self,
        tok: Tokenizer,
        *,
        prompt_ids: Sequence[int] = (),
        eos_ids: Iterable[int] | None = None,
        stop_token_ids: Iterable[int] = (),
        stop: Iterable[str] = (),
        stop_scope: Literal["answer", "reasoning", "all"] = "answer",
        reasoning: str | ReasoningStyle | None = "auto",
        reasoning_style: str | ReasoningStyle | None = None,
        tools: None = None,
        max_tokens: int | None = None,
        min_tokens: int = 0,
        ignore_eos: bool = False,
        include_stop: bool = False,
        skip_special_tokens: bool = True,
        byte_fallback: str = "eager",
        index: int = 0,
    ) -> None:
        """Make a decoder for one answer.

        Args:
            tok: The tokenizer whose ids come.
            prompt_ids: What comes before; it decides where text and thinking start.
            eos_ids: The ids that end the answer, in place of the tokenizer's.
            stop_token_ids: More of them, which hold even under `ignore_eos` and are given as `stop_reason`.
            stop: Strings that end the answer; the match that completes earliest wins, ties go by order.
            stop_scope: Where stop strings count: in the answer only, so that thinking cannot end it, in the thinking
                only, or in both. A stop never reaches over a tag.
            reasoning: "auto" tells thinking from the answer if the vocabulary or the prompt shows a style; "strip"
                does so and drops the thinking; None or "off" leaves all text in the answer; or a style or its name.
            reasoning_style: The style for "auto" and "strip", known from elsewhere, in place of detection.
            tools: Must be None: tool calls are not parsed.
            max_tokens: End after so many ids, with reason "length" unless the last one is an end.
            min_tokens: No end token and no stop string counts that comes, or completes, before this many ids.
            ignore_eos: End tokens do not end the answer.
            include_stop: Keep the stop string, or the text of a stop token, in the text.
            skip_special_tokens: Control tokens give no text; tags of thinking are found all the same.
            byte_fallback: As for `DecodeStream`.
            index: The `index` of every delta.

        Raises:
            TokenIdError: An id is outside the vocabulary.
            TypeError: A stop is not a string.
            ValueError: Any other option that cannot be; the message names it and its value.

        """
        if tools is not None:
            raise ValueError("tools: ChatDecoder does not parse tool calls; tools must be None")
        if stop_scope not in SCOPES:
            raise ValueError(f"stop_scope must be one of {', '.join(SCOPES)}, not {stop_scope!r}")
        for name, tokens in ("min_tokens", min_tokens), ("max_tokens", max_tokens):
            if tokens is not None and tokens < 0:
                raise ValueError(f"{name}={tokens} is below 0")
        if max_tokens is not None and min_tokens > max_tokens:
            raise ValueError(f"min_tokens={min_tokens} is above max_tokens={max_tokens}")
        self._tok = tok
        self._ends: dict[int, int | None] = {}  # each id that ends the answer, with the `stop_reason` it gives
        if not ignore_eos:
            self._ends |= dict.fromkeys(_checked_ids(tok, "eos_ids", tok.eos_ids if eos_ids is None else eos_ids))
        self._ends |= {token_id: token_id for token_id in _checked_ids(tok, "stop_token_ids", stop_token_ids)}
        self._stop = stop_tuple(stop)
        self._scope = SCOPES[stop_scope] if self._stop else frozenset()
        self._include_stop = include_stop
        self._strip = reasoning == "strip"
        self._style: ReasoningStyle | Literal["auto"] | None = "auto"
        if reasoning is None or reasoning == "off":
            self._style = None
        elif reasoning not in ("auto", "strip"):
            self._style = style_of(reasoning)
        elif reasoning_style is not None:
            self._style = style_of(reasoning_style)
        self._max_tokens = sys.maxsize if max_tokens is None else max_tokens
        self._min_tokens = min_tokens
        self._index = index
        self._skip_special_tokens = skip_special_tokens
        self._stream = DecodeStream(tok, skip_special_tokens=skip_special_tokens, byte_fallback=byte_fallback)
        self.reset(prompt_ids)

    def reset(self, prompt_ids: Sequence[int] = ()) -> None:
        """Start another answer with the same options; the same as a new object.

        Raises:
            TokenIdError: An id of the prompt is outside the vocabulary.

        """
        if type(prompt_ids) is not list:
            prompt_ids = id_list(prompt_ids)
        self._stream.reset(prompt_ids)
        self._parser: ReasoningParser | None = None
        self._shown: dict[int, str] = {}  # control tokens that spell tags, which the stream would skip
        if self._style is not None:
            style, inside = read_prompt(self._tok, prompt_ids, None if self._style == "auto" else self._style)
            if style is not None:
                self._parser = ReasoningParser(style, inside=inside)
                self._shown = shown_tokens(style, self._tok) if self._skip_special_tokens else {}
        self._stops = StopStrings(self._stop, include=self._include_stop)
        self._controls = self._ends.keys() | self._shown.keys()
        self._channel = self._parser.channel if self._parser else ANSWER  # of the text that was routed last
        self._pending = PendingIds()
        self._carry: list[int] = []  # ids that the next delta takes along
        self._routed = 0  # position in the text up to which it has been routed
        self._floor = 0  # position before which no stop may complete, once `min_tokens` have come
        self._count = 0
        self._prompt_tokens = len(prompt_ids)
        self._reasoning_tokens = 0
        self._undelivered: list[Delta] = []
        self._finish: Finish | None = None
        self.finished = False
        self.ignored = 0
        self._calm = self._quiet = False
        self._settle()

    def copy(self) -> ChatDecoder:
        """Return an independent decoder in the same state, for an answer that branches."""
        other = copy(self)
        other._stream = self._stream.copy()
        other._parser, other._stops = copy(self._parser), copy(self._stops)
        other._pending, other._carry = self._pending.copy(), self._carry.copy()
        other._undelivered = self._undelivered.copy()
        return other

    def feed(self, ids: Ids) -> list[Delta]:
        """Take more ids; give what is final, with `Finish` last if they end the answer.

        Neighbouring text on one channel is one delta.

        Args:
            ids: A list of ids, one id, a sequence or an array of them.

        Raises:
            EngineError: It is none of these, or an item of a list is no id.
            TokenIdError: An id is outside the vocabulary. The ids before a bad one have been consumed, and what they
                gave comes with the next call; the bad one and those after it have not.

        """
        if type(ids) is not list:
            ids = id_list(ids)
        if self.finished:
            self.ignored += len(ids)
            return []
        stream, parser, carry, calm, quiet = self._stream, self._parser, self._carry, self._calm, self._quiet
        step, controls, starts, stirs = stream.step, self._controls, self._starts, self._starts_or_line_end
        hidden = self._strip and self._channel is REASONING
        count = mark = first = self._count
        room = self._max_tokens - count
        runs: list[_Run] = []
        run, run_ids = "", []  # what came the short way since the count was at `mark`
        try:
            for token_id in ids if len(ids) <= room else ids[:room]:
                text = None
                if calm and token_id not in controls:
                    text = step(token_id)
                    short = quiet and stirs.isdisjoint(text)
                    if not short and parser is not None and starts.isdisjoint(text):
                        parser.skim(text)
                        quiet, short = parser.settled, True
                    if short:
                        count += 1
                        if hidden or not text:
                            carry.append(token_id)
                            continue
                        if carry:
                            run_ids += carry
                            carry.clear()
                        run += text
                        (carry if stream.pending else run_ids).append(token_id)
                        continue
                self._push(run, run_ids, count - mark, runs)
                run, run_ids = "", []
                self._count = mark = count
                self._consume(token_id, text, runs)
                count = mark = self._count
                if self.finished:
                    break
                calm, quiet = self._calm, self._quiet
                starts, stirs = self._starts, self._starts_or_line_end
                hidden = self._strip and self._channel is REASONING
        except Exception as error:
            self._count, self._quiet = count, quiet
            self._push(run, run_ids, count - mark, runs)
            self._undelivered = self._deliver(runs)
            if isinstance(error, TypeError):
                id_list(ids)  # raises the error that says what is no id
            raise
        self._count, self._quiet = count, quiet
        if run and not runs and count < self._max_tokens and not self._undelivered:
            if self._channel is ANSWER:
                return [TextDelta(run, run_ids, self._index)]
            self._reasoning_tokens += count - mark
            return [ReasoningDelta(run, run_ids, self._index)]
        self._push(run, run_ids, count - mark, runs)
        if count >= self._max_tokens and not self.finished:
            self._end(FinishReason.LENGTH, None, (), runs)
        if self.finished:
            self.ignored += len(ids) - (count - first)
        return self._deliver(runs)

    def finish(self, reason: FinishReason | str | None = None) -> list[Delta]:
        """End the answer where the ids end: give all that is held, and `Finish`.

        Args:
            reason: Why it ends; None means that the engine stopped by itself. A stop string that only shows in the
                held text wins over it.

        Returns:
            The last deltas; nothing if the answer had ended before.

        Raises:
            ValueError: There is no such reason.

        """
        if reason is None:
            reason = FinishReason.LENGTH if self._count >= self._max_tokens else FinishReason.STOP
        elif reason not in list(FinishReason):
            raise ValueError(f"unknown finish reason {reason!r}; known are {', '.join(FinishReason)}")
        runs: list[_Run] = []
        if not self.finished:
            self._end(FinishReason(reason), None, (), runs)
        return self._deliver(runs)

    # -- one id, the long way ------------------------------------------------------------------------------------------

    def _consume(self, token_id: int, text: str | None, runs: list[_Run]) -> None:
        """Take one id; `text` is what the stream gave for it, if it has been asked."""
        count = self._count + 1
        ends = token_id in self._ends and count >= self._min_tokens
        stop_reason = self._ends[token_id] if ends else None
        silent = ends and (stop_reason is None or not self._include_stop)
        if text is None and not silent:
            if token_id in self._shown:
                text = self._stream.flush() + self._shown[token_id]
            else:
                text = self._stream.step(token_id)
        self._count = count
        if count == self._min_tokens:
            self._floor = self._pending.end
        if text is not None:
            self._pending.add((token_id,), len(text), whole=not self._stream.pending)
            self._advance(text, runs)
        if ends or self._stops.matched is not None:
            self._end(FinishReason.STOP, stop_reason, (token_id,) if text is None else (), runs)
        else:
            self._settle()

    def _advance(self, text: str, runs: list[_Run]) -> None:
        """Send text through the parser and the stops."""
        if self._parser is None:
            self._route(self._channel, text, runs)
        else:
            for piece in self._parser.split(text):
                self._route(piece.channel, piece.source, runs)

    def _route(self, channel: Channel | None, piece: str, runs: list[_Run]) -> None:
        """Send a piece that the parser gave, a tag if `channel` is None, through the stops."""
        if self._stops.matched is not None:
            return
        if channel is not self._channel:  # a stop does not reach over a tag
            self._release(self._stops.flush(), runs)
        start = self._routed
        self._routed += len(piece)
        if channel is None:
            ids = self._pending.take(len(piece))
            self._reasoning_tokens += len(ids)
            self._carry += ids
            return
        self._channel = channel
        if channel in self._scope:
            early = len(piece) if self._count < self._min_tokens else self._floor - start
            piece = self._stops.step(piece, ignore=early).text
        self._release(piece, runs)

    def _release(self, text: str, runs: list[_Run]) -> None:
        """Put final text of the channel and its ids into the runs."""
        if not text:
            return
        ids = self._pending.take(len(text))
        if self._channel is REASONING:
            self._reasoning_tokens += len(ids)
            if self._strip:
                self._carry += ids
                return
        runs.append((self._channel, [text], [*self._carry, *ids]))
        self._carry.clear()

    def _end(
        self, reason: FinishReason, stop_reason: str | int | None, last: tuple[int, ...], runs: list[_Run]
    ) -> None:
        """Give what is held, each stage's through those after it, and make the `Finish`."""
        channel = self._channel
        if self._stops.matched is None:
            self._advance(self._stream.flush(), runs)
            if self._parser is not None:
                for held_on, held in self._parser.flush():
                    self._route(held_on, held, runs)
                channel = self._parser.channel
        if self._stops.matched is None:
            self._release(self._stops.flush(), runs)
        else:
            reason, stop_reason, channel = FinishReason.STOP, self._stops.matched, self._channel
        rest = [*self._pending.rest(), *last]
        if channel is REASONING:
            self._reasoning_tokens += len(rest)
        usage = Usage(self._prompt_tokens, self._count, self._reasoning_tokens)
        self._finish = Finish(reason, stop_reason, usage, [*self._carry, *rest], self._index)
        self.finished = True

    # -- the short way -------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Say whether the next ids may take the short way: nothing is held, and no minimum is to be reached.

        Then text with none of the characters that tags and stops begin with goes out whole. The parser must see it all
        the same at a line end and while it is not settled; the decoder is quiet when it need not.
        """
        parser = self._parser
        self._calm = not self._stops.held and self._count >= self._min_tokens
        self._quiet = self._calm
        self._starts = self._starts_or_line_end = self._stops.starts
        if parser is not None:
            self._calm = self._calm and parser.calm and parser.channel is self._channel
            self._quiet = self._calm and parser.settled
            self._starts |= parser.starts
            self._starts_or_line_end = self._starts | {"\n"}
        if self._calm:
            rest = self._pending.rest()
            self._carry += rest
            if self._channel is REASONING:
                self._reasoning_tokens += len(rest)

    def _push(self, text: str, ids: list[int], taken: int, runs: list[_Run]) -> None:
        """Put into the runs what came the short way: the text, its ids, and how many ids were taken."""
        if self._channel is REASONING:
            self._reasoning_tokens += taken
        if text:
            runs.append((self._channel, [text], ids))

    def _deliver(self, runs: list[_Run]) -> list[Delta]:
        """Make deltas of the runs, one of neighbours on one channel, after what an error kept back."""
        deltas, self._undelivered = self._undelivered, []
        place = 0
        while place < len(runs):
            channel, texts, ids = runs[place]
            place += 1
            while place < len(runs) and runs[place][0] is channel:
                texts += runs[place][1]
                ids += runs[place][2]
                place += 1
            kind = TextDelta if channel is ANSWER else ReasoningDelta
            deltas.append(kind("".join(texts), ids, self._index))
        if self._finish is not None:
            deltas.append(self._finish)
            self._finish = None
        return deltas


def _checked_ids(tok: Tokenizer, option: str, ids: Iterable[int]) -> list[int]:
    """Check that ids are in the vocabulary."""
    checked = list(ids)
    if (bad := next((i for i in checked if not 0 <= i < tok.vocab_size), None)) is not None:
        raise TokenIdError(f"{option}: token id {bad} is outside the vocabulary (0 to {tok.vocab_size - 1})")
    return checked
