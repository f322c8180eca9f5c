"""Ids to deltas: decoding, end tokens, thinking, tool calls and stop strings in one object that does no I/O.

Every id goes the same way: decoding, the splitter into answer, thinking and calls, stop strings, delta. Most ids cannot
concern the splitter, since their text has none of the characters at which something begins for it, or goes on with the
JSON of a call's arguments. The core takes as many of these at once as there are (`encode/core/detokenizer.h`); both ways
give the same, and which one an id takes does not depend on how ids are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import partial
from typing import Literal

import numpy as np

from tokenweir.encode import _core
from tokenweir.encode.decode import check_byte_fallback
from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.alignment import Aligner
from tokenweir.stream.decode.chunk import Ids, id_list, to_id
from tokenweir.stream.decode.fast_path import Skimming
from tokenweir.stream.decode.options import (
    calls_style,
    check_counts,
    end_ids,
    finish_reason,
    stop_channels,
    thinking_style,
)
from tokenweir.stream.decode.parsers.base import Piece, plain
from tokenweir.stream.decode.parsers.detection import find_splitter
from tokenweir.stream.decode.stops import StopStrings
from tokenweir.stream.decode.thinking_budget import ThinkingMeter
from tokenweir.stream.delivery.merge import merge
from tokenweir.stream.events import (
    Channel,
    Delta,
    Finish,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from tokenweir.templates.reasoning_styles import ReasoningStyle
from tokenweir.templates.tool_styles import ToolStyle

ANSWER, REASONING, TOOL_CALL = Channel


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
        tools: str | ToolStyle | None = None,
        max_tokens: int | None = None,
        min_tokens: int = 0,
        ignore_eos: bool = False,
        include_stop: bool = False,
        skip_special_tokens: bool = True,
        byte_fallback: str = "eager",
        index: int = 0,
        alignment: bool = False,
        thinking_budget: int | None = None,
        on_thinking_spent: Callable[[int], object] | None = None,
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
            tools: How tool calls are found in the answer: "auto" by the style that the vocabulary shows, or a style or
                its name; None leaves them in the text. Harmony has calls of its own, which are always found.
            max_tokens: End after so many ids, with reason "length" unless the last one is an end.
            min_tokens: No end token and no stop string counts that comes, or completes, before this many ids.
            ignore_eos: End tokens do not end the answer.
            include_stop: Keep the stop string, or the text of a stop token, in the text.
            skip_special_tokens: Control tokens give no text; tags of thinking are found all the same.
            byte_fallback: As for `DecodeStream`.
            index: The `index` of every delta.
            alignment: Every delta says how its ids go with its text; see `Alignment`.
            thinking_budget: After so many ids of thinking, tags included, the thinking counts as spent if it still goes
                on. Nothing is cut off: it is for the engine to close it.
            on_thinking_spent: Called then with `index`, once, before the deltas of that id are given.

        Raises:
            TokenIdError: An id is outside the vocabulary.
            TypeError: A stop is not a string.
            ValueError: Any other option that cannot be; the message names it and its value.

        """
        self._scope = stop_channels("stop_scope", stop_scope)
        check_counts(min_tokens, max_tokens, thinking_budget)
        check_byte_fallback(byte_fallback)
        self._tok = tok
        self._ends = end_ids(tok, eos_ids, stop_token_ids, ignore_eos)
        self._stops = StopStrings(stop, include=include_stop)
        self._include_stop = include_stop
        self._strip = reasoning == "strip"
        self._style = thinking_style(reasoning, reasoning_style)
        self._tools = calls_style(tools)
        self._max_tokens = max_tokens
        self._min_tokens = min_tokens
        self._thinking_budget = thinking_budget
        self._on_thinking_spent = on_thinking_spent
        self._align = alignment
        self._index = index
        self._skip_special_tokens = skip_special_tokens
        self._whole_runs = byte_fallback == "huggingface"
        self.reset(prompt_ids)

    def reset(self, prompt_ids: Sequence[int] = ()) -> None:
        """Start another answer with the same options; the same as a new object.

        Raises:
            TokenIdError: An id of the prompt is outside the vocabulary.

        """
        if not isinstance(prompt_ids, list | np.ndarray):  # of an array, most ids are never looked at
            prompt_ids = id_list(prompt_ids)
        self._splitter, shown = find_splitter(self._tok, prompt_ids, self._style, self._tools)
        # Control tokens that spell markup, which decoding would skip.
        self._shown = shown if self._skip_special_tokens else {}
        self._detok = _core.Detokenizer(
            self._tok.token_table,
            prompt_ids,
            self._skip_special_tokens,
            self._whole_runs,
            self._stops,
            _core.IdSet([*self._ends, *self._shown]),
            self._min_tokens,
            self._max_tokens,
        )
        self._skim = self._detok.skim
        self._skimming = Skimming(self._detok, self._splitter)
        self._enter(self.channel)
        self._malformed: str | None = None  # of the text that was routed last
        self._thinking = ThinkingMeter(self._thinking_budget, self._max_tokens)
        self._count_thinking(self.channel is REASONING)
        self._at = self.channel  # of what the splitter gave last, or of what comes after it
        self._called = False  # a whole tool call has been given
        self._prompt_tokens = len(prompt_ids)
        self._aligner = Aligner(self._tok) if self._align else None
        self._out: list[Delta] = []  # that have been made and not yet been given
        self.finished = False
        self.ignored = 0
        self._settle()
        self._swift = self._calm and not self._align and self._max_tokens != 0

    def copy(self) -> ChatDecoder:
        """Return an independent decoder in the same state, for an answer that branches."""
        other = copy(self)
        other._detok = _core.Detokenizer(self._detok)
        other._skim = other._detok.skim
        other._splitter = self._splitter.copy() if self._splitter else None
        other._skimming = Skimming(other._detok, other._splitter)
        if self._calm:
            other._settle()
        other._thinking = copy(self._thinking)
        other._aligner = self._aligner.copy() if self._aligner else None
        other._out = self._out.copy()
        return other

    @property
    def channel(self) -> Channel:
        """What the text that comes next belongs to, as far as is known."""
        return self._splitter.channel if self._splitter else ANSWER

    @property
    def thinking_spent(self) -> bool:
        """Whether the thinking has reached its budget."""
        return self._thinking.spent

    def feed(self, ids: Ids, logprobs: Sequence[float | None] | None = None) -> list[Delta]:
        """Take more ids; give what is final, with `Finish` last if they end the answer.

        Neighbouring text on one channel is one delta.

        Args:
            ids: A list of ids, one id, a sequence or an array of them.
            logprobs: One for each id, for the deltas' `alignment`.

        Raises:
            EngineError: It is none of these, or an item of a list is no id; or there are not as many `logprobs`.
            TokenIdError: An id is outside the vocabulary. The ids before a bad one have been consumed, and what they
                gave comes with the next call; the bad one and those after it have not.

        """
        if type(ids) is not list:
            ids = id_list(ids)
        if logprobs is not None or not self._swift:
            return self._feed(ids, logprobs)
        text, taken, place = self._skim(ids, 0)
        if place < len(ids):
            self._emit(text, taken)
            self._take(ids, place)
            return self._deliver()
        return [self._kind(text, taken, self._index)] if text else []

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
            full = self._max_tokens is not None and self._detok.count >= self._max_tokens
            reason = FinishReason.LENGTH if full else FinishReason.STOP
        ended_by = finish_reason(reason)
        if not self.finished:
            self._end(ended_by)
        return self._deliver()

    # -- ids in --------------------------------------------------------------------------------------------------------

    def _feed(self, ids: list[int], logprobs: Sequence[float | None] | None) -> list[Delta]:
        """Do as `feed` does, whatever the state."""
        if logprobs is not None and len(logprobs) != len(ids):
            raise EngineError(f"the engine gave {len(logprobs)} logprobs with {len(ids)} ids")
        before = self._detok.count
        try:
            if self.finished:
                self.ignored += len(ids)
            elif self._max_tokens == 0:
                self._end(FinishReason.LENGTH)
                self.ignored += len(ids)
            else:
                self._take(ids, 0)
        finally:
            if self._aligner is not None:
                self._aligner.add(self._detok.count - before, logprobs)
        return self._deliver()

    def _take(self, ids: list[int], place: int) -> None:
        """Take ids from `place` on, up to the end of the answer."""
        self._swift = False  # should one raise, there are deltas to give
        while place < len(ids):
            if self._calm:
                text, taken, place = self._skim(ids, place)
                self._emit(text, taken)
                if place == len(ids):
                    break
            try:
                self._step(ids[place])
            except TypeError:
                id_list(ids)  # raises the error that says what is no id
                raise
            place += 1
            if self.finished:
                self.ignored += len(ids) - place
                return

    def _step(self, token_id: int) -> None:
        """Take one id, the long way."""
        if type(token_id) is not int:
            token_id = to_id(token_id)
        detok = self._detok
        ends = token_id in self._ends and detok.count + 1 >= self._min_tokens
        stop_reason = self._ends[token_id] if ends else None
        if ends and (stop_reason is None or not self._include_stop):
            self._end(FinishReason.STOP, stop_reason, token_id)
            return
        shown = self._shown.get(token_id)
        self._split(detok.step(token_id) if shown is None else detok.show(token_id, shown))
        if ends or detok.matched is not None:
            self._end(FinishReason.STOP, stop_reason)
        elif detok.count == self._max_tokens:
            self._end(FinishReason.LENGTH)
        else:
            self._check_budget()
            self._settle()

    def _settle(self) -> None:
        """Say whether the next ids may be skimmed."""
        counted = self._thinking.on is (self._channel is REASONING)  # not so after tags with nothing between them
        self._calm = counted and self._malformed is None and self._skimming.prepare(self._channel)

    # -- text through the splitter and the stops -----------------------------------------------------------------------

    def _split(self, text: str) -> None:
        """Send text through the splitter, and its pieces on."""
        splitter = self._splitter
        if splitter is None:
            self._route([plain(text, ANSWER)])
            return
        splitter.skim(self._detok.unshown())
        self._route(splitter.split(text))

    def _route(self, pieces: list[Piece]) -> None:
        """Send pieces out, those of the answer and the thinking through the stops."""
        detok = self._detok
        for place, piece in enumerate(pieces):
            if detok.matched is not None:
                return
            channel = piece.channel
            if channel is not self._channel or piece.malformed != self._malformed:
                self._emit(*detok.release())  # a stop does not reach over markup
            if channel is None:
                after = next((p.channel for p in pieces[place:] if p.channel is not None), self.channel)
                self._count_thinking(REASONING in (self._at, after) and TOOL_CALL not in (self._at, after))
                self._at = after
                detok.drop(piece.source)
                continue
            self._count_thinking(channel is REASONING)
            self._at, self._malformed = channel, piece.malformed
            if channel is not self._channel or piece.name:
                self._enter(channel, piece.call)
            if channel is TOOL_CALL:
                self._called = self._called or piece.complete
                said = piece.call, piece.complete, piece.malformed
                self._out.append(ToolCallDelta(piece.name, piece.text, detok.take(piece.source), self._index, *said))
            else:
                self._emit(*detok.send(piece.text))

    def _enter(self, channel: Channel, call: int = 0) -> None:
        """Go on on another channel, or in another call."""
        self._channel = channel  # of the text that went out last
        self._kind: Callable[[str, list[int], int], Delta]  # makes a delta of more of it
        if channel is TOOL_CALL:
            self._kind = partial(ToolCallDelta, "", call=call)
        else:
            self._kind = ReasoningDelta if channel is REASONING else TextDelta
        self._detok.enter(channel in self._scope, self._strip and channel is REASONING)

    def _emit(self, text: str, ids: list[int]) -> None:
        """Make a delta of text that is final."""
        if text and self._malformed is None:
            self._out.append(self._kind(text, ids, self._index))
        elif text:
            self._out.append(TextDelta(text, ids, self._index, self._malformed))

    # -- the end -------------------------------------------------------------------------------------------------------

    def _end(self, reason: FinishReason, stop_reason: str | int | None = None, last: int | None = None) -> None:
        """Give what is held, each stage's through those after it, and then `Finish`; id `last` gives no text."""
        detok = self._detok
        if detok.matched is None:
            self._split(detok.flush())
            if self._splitter is not None:
                self._route(self._splitter.finish())
        channel = self.channel
        if detok.matched is None:
            self._emit(*detok.release())
        else:
            reason, stop_reason, channel = FinishReason.STOP, detok.matched, self._channel
        if reason is FinishReason.STOP and stop_reason is None and self._called:
            reason = FinishReason.TOOL_CALLS
        self._count_thinking(channel is REASONING)
        if last is not None:
            detok.skip(last)
        rest = detok.finish()
        usage = Usage(self._prompt_tokens, detok.count, self._thinking.tokens(detok.passed))
        self._out.append(Finish(reason, stop_reason, usage, rest, self._index))
        self.finished = True
        self._calm = False

    def _deliver(self) -> list[Delta]:
        """Give the deltas that have been made, one of neighbours on one channel."""
        out, self._out = self._out, []
        if len(out) > 1:
            out = merge(out)
        self._swift = self._calm and self._aligner is None
        return out if self._aligner is None else [self._aligner.align(delta) for delta in out]

    # -- thinking ------------------------------------------------------------------------------------------------------

    def _count_thinking(self, thinking: bool) -> None:
        """Count the ids that go out from here on as thinking, or not."""
        if thinking is not self._thinking.on:
            self._detok.limit = self._thinking.switch(thinking, self._detok.passed)

    def _check_budget(self) -> None:
        """Report, once, that the budget of thinking is spent while thinking goes on."""
        if self._thinking.spends(self._detok.count) and self.channel is REASONING:
            self._detok.limit = self._thinking.spend()
            if self._on_thinking_spent is not None:
                self._on_thinking_spent(self._index)
