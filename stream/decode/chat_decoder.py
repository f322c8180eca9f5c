"""Ids to deltas: decoding, end tokens, thinking, tool calls and stop strings in one object that does no I/O.

Each id passes decoding, the splitter into answer, thinking and calls, the stop matcher, and ends in a delta. The core
does decoding and stop matching (`encode/core/chat_decoder/detokenizer.h`). Ids whose text cannot affect the splitter take a
fast path, a run at a time (`fast_path.py`). Both paths give the same deltas, however the ids are cut into chunks.

`feed` hands ids to the core, which returns at the first one that it cannot take. `_decode_rest` emits the text before it, and gives its
text to the splitter (`_split`), or its tag (`_take_tag`). Either leaves the fast path open for text that the splitter skips there:
`_adjust_fast_path` behind text, `_open_fast_path` behind a tag. `_end` closes it. `_delivered` is true while no delta waits and none
needs alignment, up to the end of the answer. `feed` then returns the core's text directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Unpack

from tokenweir.encode import _core
from tokenweir.encode.errors import StateError
from tokenweir.encode.tokenizer import Tokenizer, core_of
from tokenweir.encode.values.ids import as_ids
from tokenweir.stream.decode.alignment import Aligner, Candidates, check_candidates, check_logprobs
from tokenweir.stream.decode.chunk import IdOrIds, id_list, to_id
from tokenweir.stream.decode.fast_path import FastPath
from tokenweir.stream.decode.limits import Limits
from tokenweir.stream.decode.options import SCOPES, DecoderOptions, finish_reason, reusable_options, settings_of
from tokenweir.stream.decode.parsers.detection import (
    Styles,
    find_splitter,
    look_up_styles,
    make_splitter,
    shown_texts,
    with_ids,
)
from tokenweir.stream.decode.parsers.pieces import ANSWER, REASONING, TOOL_CALL, plain
from tokenweir.stream.decode.parsers.splitter import Splitter
from tokenweir.stream.decode.router import Router
from tokenweir.stream.decode.saved_state import DecoderState, check_consistent, read_state, write_state
from tokenweir.stream.decode.stops import StopStrings, control_tokens_in
from tokenweir.stream.events.deltas import Channel, Delta, Finish, FinishReason, Usage
from tokenweir.stream.events.merge import merge
from tokenweir.templates.styles.reasoning import ReasoningStyle


class ChatDecoder:
    """Decoder of the ids of one answer into deltas; every delta is final.

    The joined texts do not depend on how the ids are cut into chunks, and every id that is consumed is in the
    `token_ids` of exactly one delta (see `chunk.py`). After the end, `feed` returns no deltas and counts ignored ids.

    Attributes:
        finished: Whether `Finish` has been returned.
        ignored: Number of ids after the end.

    """

    def __init__(
        self, tokenizer: Tokenizer, *, prompt_ids: Sequence[int] = (), **options: Unpack[DecoderOptions]
    ) -> None:
        """Make a decoder for one answer.

        Args:
            tokenizer: The model's tokenizer.
            prompt_ids: The prompt, which decides where text and thinking start.
            options: See `DecoderOptions`.

        Raises:
            TokenIdError: An id is outside the vocabulary.
            TypeError: A stop is not a string, `prompt_ids` has a wrong type, or an option does not exist.
            ValueError: An option has an invalid value; the message names both.

        """
        self._tokenizer = tokenizer
        self._options = options = reusable_options(options)
        self._settings = settings_of(tokenizer, **options)
        self._stops = StopStrings(self._settings.stop, include=self._settings.include_stop)
        self.reset(prompt_ids)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"ChatDecoder({self._tokenizer}{options}; {'finished' if self.finished else 'open'})"

    def reset(self, prompt_ids: Sequence[int] = ()) -> None:
        """Start another answer with the same options; equivalent to a new object.

        Raises:
            TokenIdError: An id of the prompt is outside the vocabulary.

        """
        prompt_ids = as_ids(prompt_ids, "prompt_ids")
        settings = self._settings
        splitter, styles = find_splitter(
            self._tokenizer, prompt_ids, settings.reasoning, settings.tool_style, settings.tools, settings.markup
        )
        self._begin(prompt_ids, splitter, styles)

    def _begin(self, prompt_ids: Sequence[int], splitter: Splitter | None, styles: Styles) -> None:
        """Start an answer with a known splitter.

        Args:
            prompt_ids: The prompt, which decides how the first text is decoded.
            splitter: Separates the text into channels; None if all of it is answer.
            styles: The styles of the splitter.

        """
        settings, tokenizer = self._settings, self._tokenizer
        self._splitter, self._styles = splitter, styles
        self._tags = tags = styles.tags
        shown = shown_texts(tokenizer, styles) if settings.skip_special_tokens else {}
        shown |= tags.shown
        hides = settings.skip_special_tokens and settings.stop
        self._hidden = control_tokens_in(tokenizer, settings.stop, shown) if hides else {}
        self._detok = _core.Detokenizer(
            core_of(tokenizer).tokens,
            prompt_ids,
            settings.skip_special_tokens,
            settings.byte_fallback == "huggingface",
            self._stops,
            [*settings.ends, *self._hidden, *tags.marked],
            shown,
            splitter is not None,
            settings.min_tokens,
            settings.max_tokens,
            trims=splitter is not None,
        )
        self._scope = scope = SCOPES[settings.stop_scope] if settings.stop else frozenset()
        one_call = not settings.parallel_tool_calls
        self._answer = self._detok.answer
        self._router = Router(
            self._answer,
            scope,
            settings.strip,
            settings.index,
            self.channel,
            one_call=one_call,
            call_ids=settings.call_ids,
            back=tags.back,
        )
        self._limits = Limits(settings.max_tokens, settings.thinking_budget)
        self._aligner = Aligner(tokenizer) if settings.alignment else None
        if settings.alignment:
            self._answer.record()
        self._prompt_tokens = len(prompt_ids)
        self.finished = False
        self.ignored = 0
        self._connect()

    def _connect(self) -> None:
        """Connect the components and configure the fast path."""
        self._fast = FastPath(self._detok, "".join(map(chr, self._tags.back)))
        self._core_feed = self._detok.feed
        settings = self._settings
        self._index = settings.index
        self._unaligned = self._aligner is None and settings.max_tokens != 0
        self._make = self._router.make
        if not self.finished:
            self._adjust_fast_path()
        self._delivered = self._unaligned and not self.finished and not self._router.out

    def copy(self) -> ChatDecoder:
        """Return an independent decoder in the same state, to continue one answer in two ways."""
        self._show_unseen()
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._detok = self._detok.copy()
        other._splitter = self._splitter.copy() if self._splitter else None
        other._answer = other._detok.answer
        other._router = self._router.copy_with(other._answer)
        other._limits = self._limits.copy()
        other._aligner = self._aligner.copy() if self._aligner else None
        other._connect()
        return other

    def state(self) -> bytes:
        """Return the decoder's state, for `from_state`: at most 1 KB, plus the text that is held back."""
        self._show_unseen()
        said = DecoderState(
            styles=self._styles.names,
            core=self._detok.state(),
            splitter=self._splitter.state() if self._splitter else None,
            router=self._router.state(),
            limits=self._limits.state(),
            aligner=self._aligner.state() if self._aligner else None,
            prompt_tokens=self._prompt_tokens,
            finished=self.finished,
            ignored=self.ignored,
        )
        return write_state(said, self._settings.digest(self._tokenizer))

    @classmethod
    def from_state(cls, tokenizer: Tokenizer, state: bytes, **options: Unpack[DecoderOptions]) -> ChatDecoder:
        """Make a decoder from the saved state of another; the prompt is not needed again.

        Args:
            tokenizer: The tokenizer of the other decoder.
            state: The result of its `state`. It is not trusted: its values are bounded and checked for consistency.
            options: The options of the other decoder; only `call_ids` and `on_thinking_spent` may differ.

        Raises:
            StateError: The state is damaged, or has another version, tokenizer or other options.

        """
        decoder = cls(tokenizer, **options)
        said = read_state(state, decoder._settings.digest(tokenizer))
        try:
            decoder._restore(said)
        except (ValueError, TypeError, LookupError, OverflowError, RuntimeError) as error:
            raise StateError(f"the state is damaged: {error}") from error
        return decoder

    def __reduce__(self) -> tuple[Callable[..., ChatDecoder], tuple[object, ...]]:
        return partial(type(self).from_state, **self._options), (self._tokenizer, self.state())

    def _restore(self, said: DecoderState) -> None:
        settings = self._settings
        styles = look_up_styles(self._tokenizer, said.styles, settings.reasoning, settings.tool_style)
        styles = with_ids(self._tokenizer, styles) if settings.markup == "ids" else styles
        self._begin((), make_splitter(styles, settings.tools), styles)
        self._detok.restore(said.core)
        if self._splitter is not None:
            self._splitter.restore(said.splitter)
        self._router.restore(said.router)
        self._limits.restore(said.limits)
        if self._aligner is not None:
            self._aligner.restore(said.aligner)
        self._prompt_tokens, self.finished, self.ignored = said.prompt_tokens, said.finished, said.ignored
        check_consistent(
            self._answer,
            self._router,
            self._splitter,
            self._aligner,
            finished=self.finished,
            vocab_size=self._tokenizer.vocab_size,
        )
        self._connect()

    @property
    def channel(self) -> Channel:
        """The channel of the next text (thinking, answer or tool calls), as far as the text so far tells."""
        return self._splitter.channel if self._splitter else ANSWER

    @property
    def consumed(self) -> int:
        """The number of ids of the answer that were decoded; ids behind its end do not count."""
        return self._answer.count

    @property
    def reasoning(self) -> ReasoningStyle | None:
        """The style of the thinking that is separated from the answer, as it was given or detected; None without one."""
        return self._styles.thinking

    @property
    def thinking_spent(self) -> bool:
        """Whether the thinking budget is used up."""
        return self._limits.spent

    def feed(
        self,
        ids: IdOrIds,
        logprobs: Sequence[float | None] | None = None,
        top_logprobs: Sequence[Candidates] | None = None,
    ) -> list[Delta]:
        """Decode more ids and return the final deltas, with `Finish` last if the ids end the answer.

        Neighbouring text on one channel is one delta.

        Args:
            ids: A list of ids, one id, a sequence or an array of them.
            logprobs: One logprob or None for each id, for the deltas' `alignment`.
            top_logprobs: For each id the likeliest tokens in its place, each an id and its logprob; likewise.

        Raises:
            TypeError: `ids` or an item of it is not a token id, or a logprob is not a number.
            ValueError: There are more or fewer logprobs or candidates than ids.
            TokenIdError: An id or a candidate is outside the vocabulary. The ids before it have been consumed, and the next call
                returns their deltas. The invalid id and those after it have not been consumed.

        """
        if type(ids) is not list:
            ids = id_list(ids)
        if logprobs is not None or top_logprobs is not None or not self._delivered:
            return self._feed(ids, logprobs, top_logprobs)
        text, taken, place, given = self._core_feed(ids, 0)
        if place == len(ids):
            if given is None:
                return [self._make(text, taken, self._index)] if text else []
            if given[1] and not text:  # a tag without text before it
                self._take_tag(given[0])
                return []
        self._decode_rest(ids, text, taken, place, given)
        return self._deliver()

    def finish(self, reason: FinishReason | str | None = None) -> list[Delta]:
        """End the answer: return deltas for all held text, and `Finish`.

        Args:
            reason: Why the answer ends; None means that the engine stopped by itself. A stop string in the held text
                takes precedence.

        Returns:
            The last deltas; an empty list if the answer has already ended.

        Raises:
            ValueError: The reason is unknown.

        """
        if reason is None:
            reason = FinishReason.LENGTH if self._limits.reached(self._answer) else FinishReason.STOP
        ended_by = finish_reason(reason)
        if not self.finished:
            self._end(ended_by)
        return self._deliver()

    # -- input ids -----------------------------------------------------------------------------------------------------

    def _feed(
        self, ids: list[int], logprobs: Sequence[float | None] | None, tops: Sequence[Candidates] | None
    ) -> list[Delta]:
        """Check logprobs and candidates, decode ids, and return the final deltas: `feed` without its shortcut."""
        if logprobs is not None:
            check_logprobs(logprobs, len(ids))
        if tops is not None:
            check_candidates(tops, len(ids), self._tokenizer.vocab_size)
        before = self._answer.count
        try:
            if self.finished:
                self.ignored += len(ids)
            elif self._settings.max_tokens == 0:
                self._end(FinishReason.LENGTH)
                self.ignored += len(ids)
            else:
                self._decode_rest(ids, "", [], 0, None)
        finally:
            if self._aligner is not None:
                self._aligner.add(self._answer.count - before, logprobs, tops)
        return self._deliver()

    def _decode_rest(
        self, ids: list[int], text: str, taken: list[int], place: int, given: tuple[str, bool] | None
    ) -> None:
        """Decode the ids from index `place` on, up to the last one or the end of the answer, and queue the deltas.

        Args:
            ids: All ids of the call of `feed`.
            text: The text that the core has decoded on the fast path and that is not emitted yet.
            taken: The ids of `text`.
            place: The index of the first id that the core has not taken.
            given: Text for the splitter, or a tag that the core has found and a true flag; None if the core has
                neither.

        """
        self._delivered = False  # if an id raises, deltas are pending
        while True:
            if text:
                self._router.emit(text, taken)
            if given is not None:
                if given[1]:
                    self._take_tag(given[0])
                else:
                    self._split(given[0])
            elif place < len(ids):
                self._take(ids, place)
                place += 1
            if self.finished:
                self.ignored += len(ids) - place
                return
            if place == len(ids):
                return
            text, taken, place, given = self._core_feed(ids, place)

    def _take(self, ids: list[int], place: int) -> None:
        """Decode `ids[place]`, which the core has left: an end, a tag, a control token that a stop contains, or not an int."""
        try:
            token_id = to_id(ids[place])
        except TypeError:
            id_list(ids)  # raises an error that names the invalid item
            raise
        settings, detok = self._settings, self._detok
        if token_id not in settings.ends or self._answer.count + 1 < settings.min_tokens:
            hidden = self._hidden.get(token_id, "")
            if hidden or token_id in self._tags.marked:
                self._show_unseen()
            if token_id in self._tags.marked:
                self._split(detok.step(token_id), token_id)
                return
            self._split(detok.step(token_id, hidden if self.channel in self._scope else ""))
            return
        stop_reason = settings.ends[token_id]
        if stop_reason is None or not settings.include_stop:
            self._end(FinishReason.STOP, stop_reason, token_id)
        else:
            self._route(detok.step(token_id))
            self._end(FinishReason.STOP, stop_reason)

    # -- text through the splitter and the stops -----------------------------------------------------------------------

    def _split(self, text: str, tag_id: int | None = None) -> None:
        """Pass decoded text to the splitter and queue deltas; end the answer at a stop string or a token limit.

        Args:
            text: The text.
            tag_id: The id of the tag at the end of the text, if tags count as ids.

        """
        self._route(text, tag_id)
        if self._router.stopped:
            self._end(FinishReason.STOP)
        elif self._limits.any and self._limits.reached(self._answer):
            self._end(FinishReason.LENGTH)
        else:
            if self._limits.any:
                self._check_budget()
            self._adjust_fast_path()

    def _take_tag(self, tag: str) -> None:
        """Tell the splitter that the core has found and removed `tag`, and switch to the channel that follows it."""
        splitter = self._splitter
        assert splitter is not None
        splitter.take_tag(tag)
        channel = splitter.channel
        if channel is TOOL_CALL:  # no delta, and no fast path
            self._fast.close()
            return
        self._router.switch_to(channel)
        if self._limits.any:
            self._check_budget()
        self._open_fast_path(True)

    def _route(self, text: str, tag_id: int | None = None) -> None:
        """Pass decoded text to the splitter, and queue deltas for the pieces that it returns; `tag_id` as for `_split`."""
        splitter, tags = self._splitter, self._tags
        if tags.ordinary:
            tag = "" if tag_id is None else tags.shown[tag_id]
            marked = "" if tag_id is None else tags.marked[tag_id]
            text = text.removesuffix(tag).translate(tags.ordinary) + marked
        if splitter is None:
            self._router.route([plain(text, ANSWER)], ANSWER)
        else:
            self._router.route(splitter.feed(text), splitter.channel)

    def _show_unseen(self) -> None:
        """Feed the splitter the text that the core has kept for it on the fast path, so that its state is complete."""
        if text := self._detok.unseen():
            self._route(text)
            self._adjust_fast_path()

    def _adjust_fast_path(self) -> None:
        """Open or close the fast path for the text that comes next, by what the splitter allows."""
        router, splitter = self._router, self._splitter
        self._open_fast_path(router.malformed is None and (splitter is None or router.try_switch_to(splitter.channel)))

    def _open_fast_path(self, continues: bool) -> None:
        """Open the fast path, if the splitter allows it.

        Args:
            continues: Text on the fast path continues the last delta. Otherwise only text that the splitter would hold
                back may take the fast path.

        """
        self._make = self._router.make
        if self._limits.any:
            self._detok.limit = self._limits.next(self._answer)
        self._fast.open(self._splitter, continues)

    def _check_budget(self) -> None:
        """Call `on_thinking_spent` if the last id has used up the thinking budget and the thinking has not ended."""
        report = self._settings.on_thinking_spent
        if self.channel is REASONING and self._limits.spend(self._answer) and report is not None:
            report(self._index)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _end(self, reason: FinishReason, stop_reason: str | int | None = None, last: int | None = None) -> None:
        """End the answer: queue deltas for all held text, and `Finish`.

        Args:
            reason: Why the answer ends; a stop string in the held text takes precedence.
            stop_reason: The stop string or stop token that ended it; None for other ends.
            last: The end token, which gives no text; None if no id is left.

        """
        answer, router = self._answer, self._router
        if not router.stopped:
            self._route(self._detok.flush())
            if self._splitter is not None and not router.stopped:
                router.route(self._splitter.finish(), self._splitter.channel)
            if not router.stopped:
                router.release()
        channel = self.channel
        if router.stopped:
            reason, stop_reason, channel = FinishReason.STOP, answer.matched, router.channel
        if reason is FinishReason.STOP and stop_reason is None and router.called:
            reason = FinishReason.TOOL_CALLS
        answer.think(channel is REASONING)
        if last is not None:
            answer.add([last], "")
        rest = answer.finish()
        usage = Usage(self._prompt_tokens, answer.count, answer.thinking)
        router.out.append(Finish(reason, stop_reason, usage, rest, self._settings.index))
        self.finished = True
        self._fast.close()

    def _deliver(self) -> list[Delta]:
        """Return the queued deltas, neighbours on one channel merged, with alignments if requested; clear the queue."""
        self._delivered = self._unaligned and not self.finished
        out = self._router.out
        if not out:
            return []
        self._router.out = []
        if self._aligner is not None:
            self._aligner.mark(self._answer.take_in_text())
        if len(out) > 1:
            out = merge(out)
        return out if self._aligner is None else [self._aligner.align(delta) for delta in out]
