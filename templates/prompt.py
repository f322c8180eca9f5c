"""A rendered prompt, which knows who wrote each character of it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer
from tokenweir.templates import masks
from tokenweir.templates._native import Rendering, Utf8
from tokenweir.templates.guard import guard_of, search_for


class Segment(NamedTuple):
    """A part of a prompt: a control token of the template, or the text between two.

    Attributes:
        text: The characters.
        control: Whether it is a control token that the template wrote.

    """

    text: str
    control: bool


class OriginSpan(NamedTuple):
    """A stretch of a prompt that one origin wrote.

    Attributes:
        start: Its first character.
        end: The character behind it.
        origin: `"template"`, `"engine"` (digits, JSON's punctuation), or a path into the variables, such as
            `messages[3].content`; that of a key ends in ` (key)`.
        changed: The text is not that of the origin: escaped, of another case, or a number's digits.

    """

    start: int
    end: int
    origin: str
    changed: bool


class MediaPlace(NamedTuple):
    """The placeholder of an image, a video or sound: the stretch of a prompt that the template wrote for it.

    Attributes:
        start: Its first character.
        end: The character behind it.
        message: The number of the message.
        part: The number of the part in the message's content.

    """

    start: int
    end: int
    message: int
    part: int


class Prompt:
    """The text of a rendered prompt, with the origin of each character.

    Attributes:
        control_tokens: The texts of the control tokens that the template was given or that its source has.
        generated: Ascending (start, end) of the characters that a model is to generate, if `render` was asked to find them.

    """

    def __init__(
        self,
        text: str = "",
        guarded: tuple[int, ...] | None = None,
        control_tokens: tuple[str, ...] = (),
        generated: tuple[tuple[int, int], ...] = (),
        *,
        rendering: Rendering | None = None,
        exempt: tuple[str, ...] = (),
    ) -> None:
        """Build a prompt.

        Args:
            text: The text, if there is no `rendering`.
            guarded: Ascending offsets of characters over which no control token may match, whatever the tokenizer; None:
                they are derived from the origins in `rendering`, and without it no character is guarded.
            control_tokens: The texts of control tokens, for `segments`.
            generated: Ascending (start, end) of the characters that a model is to generate, for `encode_with_mask`.
            rendering: A template's output, with its origins.
            exempt: Control tokens allowed inside an assistant's content (thinking tags).

        """
        self._text = text
        self.control_tokens = control_tokens
        self.generated = generated
        self._guarded = () if guarded is None and rendering is None else guarded
        self._found: tuple[int, ...] | None = None  # by the origins, for `guarded`
        self._rendering = rendering
        self._exempt = exempt

    def _key(self) -> tuple[object, ...]:
        return self.text, self.guarded, self.control_tokens, self.generated

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Prompt) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Prompt({self.text!r}, guarded={self.guarded!r}, control_tokens={self.control_tokens!r}, generated={self.generated!r})"

    @property
    def rendering(self) -> Rendering | None:
        """The template's output, with the origins of its text; None if the prompt was built from a str."""
        return self._rendering

    @property
    def text(self) -> str:
        """The text that the template rendered."""
        return self._text if self._rendering is None else self._rendering.text

    @property
    def encoded_text(self) -> str | Utf8:
        """The text for encoders: a read-only UTF-8 buffer if a template rendered it, otherwise the str. Not a copy."""
        return self._text if self._rendering is None else self._rendering.utf8

    @property
    def guarded(self) -> tuple[int, ...]:
        """Offsets, ascending, of characters over which none of `control_tokens` may match."""
        if self._guarded is not None or self._rendering is None:
            return self._guarded or ()
        if self._found is None:
            self._found = self._rendering.guarded(search_for(self.control_tokens, self._exempt))
        return self._found

    def guarded_for(self, tokenizer: Tokenizer) -> tuple[int, ...]:
        """Find the characters over which no control token of a tokenizer may match.

        For callers that encode the text themselves; `encode` does this by itself.

        Args:
            tokenizer: The tokenizer that encodes the prompt.

        Returns:
            The ascending offsets of characters, one for each control token in the text that is not wholly the template's.
            It is the token's first character that is not.

        """
        check_tokenizer(tokenizer)
        if self._guarded is not None or self._rendering is None:
            return self._guarded or ()
        return guard_of(tokenizer).guarded(self._rendering, tokenizer, self._exempt)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The text, split at the control tokens that the template wrote; joined, the segments are the text."""
        if not self.control_tokens:
            return (Segment(self.text, False),) if self.text else ()
        longest_first = sorted(self.control_tokens, key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, longest_first)))
        guarded = set(self.guarded)
        segments = []
        done = start = 0
        while found := pattern.search(self.text, start):
            if not guarded.isdisjoint(range(*found.span())):
                start = found.start() + 1
                continue
            if found.start() > done:
                segments.append(Segment(self.text[done : found.start()], False))
            segments.append(Segment(found[0], True))
            done = start = found.end()
        if done < len(self.text):
            segments.append(Segment(self.text[done:], False))
        return tuple(segments)

    @cached_property
    def origins(self) -> tuple[OriginSpan, ...]:
        """The origin of each span of the text, without gaps; empty for a prompt that no template made."""
        if self._rendering is None:
            return ()
        name = self._rendering.origin
        paths = {origin: name(origin) for _, _, origin, _ in self._rendering.character_spans}
        return tuple(
            OriginSpan(start, end, paths[origin], changed)
            for start, end, origin, changed in self._rendering.character_spans
        )

    @property
    def roles(self) -> tuple[str, ...]:
        """The role of each message, in order; empty for a prompt that no template made."""
        return () if self._rendering is None else self._rendering.roles

    def origin_ids(self, tokenizer: Tokenizer) -> list[tuple[OriginSpan, int, int]]:
        """Return each span of `origins` with the range of ids that cover it.

        An id that covers text of several spans belongs to each of them.

        Args:
            tokenizer: The model's tokenizer.

        Returns:
            A tuple (span, first, last) for each span, where `first` is the index in `encode(tokenizer)` of its first id and
            `last` the index after its last one.

        """
        return [(span, *ids) for span, ids in zip(self.origins, self._ids_of(self.origins, tokenizer), strict=True)]

    def message_end(self, number: int) -> int:
        """Return the offset, in bytes of the UTF-8 text, at which the last text of a message ends.

        `number` is the message's index. 0 if the prompt has no text of the message.
        """
        if self._rendering is None:
            return 0
        name, path = self._rendering.origin, f"messages[{number}]."
        return next((end for _, end, origin, *_ in reversed(self._rendering.spans) if name(origin).startswith(path)), 0)

    @cached_property
    def places(self) -> tuple[MediaPlace, ...]:
        """The placeholders of media parts of messages' contents, in the order of the text.

        A media part has `image`, `video` or `audio` in its type or in a key. Its placeholder is the text that the template
        writes for it in its loop over the content.
        """
        return () if self._rendering is None else tuple(MediaPlace(*place) for place in self._rendering.places)

    def media_ids(self, tokenizer: Tokenizer) -> list[tuple[MediaPlace, int, int]]:
        """Return each placeholder of `places` with the range of ids that cover it.

        An id that covers the end of a placeholder and text behind it belongs to the placeholder.

        Args:
            tokenizer: The model's tokenizer.

        Returns:
            A tuple (place, first, last) for each placeholder, where `first` is the index in `encode(tokenizer)` of its first
            id and `last` the index after its last one.

        """
        return [(place, *ids) for place, ids in zip(self.places, self._ids_of(self.places, tokenizer), strict=True)]

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Paths of input texts that are absent from the prompt, such as a system message that the template drops.

        Roles, types and ids are not counted. Reasoning that a message has under several names is listed once. Arguments of a
        call that `tidy` of `ChatTemplate.render` has made an object are listed if some of their text is not in it.
        """
        if self._rendering is None:
            return ()
        written = {span.origin for span in self.origins}
        return tuple(path for path in self._rendering.left_out if masks.is_content(path, written))

    @property
    def mended_calls(self) -> tuple[str, ...]:
        """Paths of arguments of calls that `tidy` has made an object, and of which `left_out` has text."""
        return () if self._rendering is None else self._rendering.mended

    def message_indices(self, tokenizer: Tokenizer) -> list[int]:
        """Find the message that each id belongs to.

        Args:
            tokenizer: The model's tokenizer.

        Returns:
            For each id of `encode` the index of the first message whose text it covers; -1 if it covers only text of the
            template, of tools or of other variables.

        """
        return masks.message_indices(self.origins, self._encoded_offsets(tokenizer)[1])

    def loss_mask(
        self,
        tokenizer: Tokenizer,
        roles: Collection[str] = ("assistant",),
        *,
        thinking: bool = True,
        tool_calls: bool = True,
        end_tokens: bool = False,
    ) -> list[int]:
        """Return a training mask: the ids of certain messages, for any template, whether it has `{% generation %}` or not.

        The mask covers the ids from the first to the last text of a message, with the template's markup between these and
        directly behind them, up to the token that ends the turn.

        Args:
            tokenizer: The model's tokenizer.
            roles: The roles whose messages count.
            thinking: Count the reasoning fields of messages.
            tool_calls: Count their calls.
            end_tokens: Count the token that ends a turn, one of `tokenizer.eos_ids`.

        Returns:
            For each id of `encode` 1 if the model learns it, else 0.

        """
        ids, offsets = self._encoded_offsets(tokenizer)
        fields = masks.Fields(self.roles, frozenset(roles), thinking=thinking, tool_calls=tool_calls)
        return masks.loss_mask(self.origins, ids, offsets, tokenizer.eos_ids, fields, end_tokens=end_tokens)

    def encode(self, tokenizer: Tokenizer) -> list[int]:
        """Encode the prompt to ids.

        Control tokens are matched only where the template wrote all of them. The text is encoded as a whole and not in
        parts, so the ids are otherwise those of the plain text. No ids are added around it, since templates write their
        own `<s>`.

        Args:
            tokenizer: The model's tokenizer.

        """
        return tokenizer.encode(self.text, add_special_tokens=False, guarded=self.guarded_for(tokenizer))

    def encode_with_mask(self, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
        """Encode the prompt to ids, with a mask of those that a model learns to generate.

        Args:
            tokenizer: The model's tokenizer.

        Returns:
            The ids of `encode`, and for each 1 if it covers a character of `generated`, else 0. This is the mask that
            transformers returns for `return_assistant_tokens_mask`.

        """
        ids, offsets = self._encoded_offsets(tokenizer)
        ends = [end for _, end in self.generated]
        mask = []
        for start, end in offsets:
            at = bisect_right(ends, start)  # the first stretch that ends after the id's first character
            mask.append(int(start < end and at < len(ends) and self.generated[at][0] < end))
        return ids, mask

    def _ids_of(
        self, spans: tuple[OriginSpan, ...] | tuple[MediaPlace, ...], tokenizer: Tokenizer
    ) -> list[tuple[int, int]]:
        """Return for each span the index of the first id that covers text of it, and the index after the last one."""
        if not spans:
            return []
        offsets = self._encoded_offsets(tokenizer)[1]
        starts, ends = [start for start, _ in offsets], [end for _, end in offsets]
        return [(bisect_right(ends, span.start), bisect_left(starts, span.end)) for span in spans]

    def _encoded_offsets(self, tokenizer: Tokenizer) -> tuple[list[int], list[tuple[int, int]]]:
        guarded = self.guarded_for(tokenizer)
        encoded = tokenizer.encode_with_offsets(self.text, add_special_tokens=False, guarded=guarded)
        return encoded.ids, encoded.offsets
