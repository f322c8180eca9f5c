"""The options of a decoder: declared, checked and looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Literal, TypedDict, cast

import msgspec
from msgspec import Struct, structs

from tokenweir.encode.decode import ByteFallback, check_byte_fallback, check_tokenizer
from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.ids import as_ids
from tokenweir.encode.options import check_flags, check_integers
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.parsers.schemas import Tools, ToolSchemas, tool_schemas_of
from tokenweir.stream.decode.parsers.tokenizer_cache import once_a_tokenizer
from tokenweir.stream.decode.stops import stop_list
from tokenweir.stream.events.deltas import Channel, FinishReason
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import ReasoningStyle, style_of
from tokenweir.templates.styles.tools import tool_style_of

StopScope = Literal["answer", "reasoning", "all"]

MOST = (1 << 63) - 1
"""Of ids that are counted: what the core's numbers hold."""

SCOPES = {
    "answer": frozenset({Channel.ANSWER}),
    "reasoning": frozenset({Channel.REASONING}),
    "all": frozenset({Channel.ANSWER, Channel.REASONING}),
}
"""The channels on which stop strings count."""


class OutputOptions(TypedDict, total=False):
    """What becomes of an answer's ids: the options of `chat()`, and of every decoder.

    Attributes:
        stop_scope: Where stop strings count: in the "answer" only, the default, so that thinking cannot end it, in the
            thinking only ("reasoning"), or in both ("all"). A stop never reaches over a tag.
        reasoning: "auto", the default, tells thinking from the answer if the template, the vocabulary or the prompt shows
            a style; "strip" does so and drops the thinking; None or "off" leaves all text in the answer; or a style or
            its name.
        tool_style: How tool calls are found in the answer: "auto" by the style that the template or the vocabulary shows,
            or a style or its name; None leaves them in the text. The default is "auto" for `chat()` with tools, and else
            None. Harmony, Inkling and Muse have calls of their own, which are always found.
        include_stop: Keep the stop string, or the text of a stop token, in the text.
        skip_special_tokens: Control tokens give no text, which is the default; tags are found all the same.
        byte_fallback: As for `DecodeStream`.
        alignment: Every delta says how its ids go with its text; see `Alignment`.
        thinking_budget: After so many ids of thinking, tags included, the thinking counts as spent if it still goes
            on. Nothing is cut off: it is for the engine to close it.
        on_thinking_spent: Called then with `index`, once, before the deltas of that id are given.

    """

    stop_scope: StopScope
    reasoning: str | ReasoningStyle | None
    tool_style: str | ToolStyle | None
    include_stop: bool
    skip_special_tokens: bool
    byte_fallback: ByteFallback
    alignment: bool
    thinking_budget: int | None
    on_thinking_spent: Callable[[int], object] | None


class DecoderOptions(OutputOptions, total=False):
    """The options of a decoder: those of `OutputOptions`, and what `chat()` knows from the sampling and the template.

    Attributes:
        eos_ids: The ids that end the answer; None, the default, for the tokenizer's.
        stop_token_ids: More of them, which hold even under `ignore_eos` and are given as `stop_reason`.
        stop: Strings that end the answer; the match that completes earliest wins, ties go by order.
        reasoning_style: The style for "auto" and "strip", known from elsewhere, in place of detection.
        tool_schemas: The tools of the request, as `chat()` takes them. They say of what type an argument is, where a
            style writes arguments in another form than JSON.
        parallel_tool_calls: Whether an answer may have several calls. False ends it when its first one is whole.
        max_tokens: End after so many ids, with reason "length" unless the last one is an end.
        min_tokens: No end token and no stop string counts that comes, or completes, before this many ids.
        ignore_eos: End tokens do not end the answer.
        index: The `index` of every delta.

    """

    eos_ids: Iterable[int] | None
    stop_token_ids: Iterable[int]
    stop: Iterable[str]
    reasoning_style: str | ReasoningStyle | None
    tool_schemas: Tools | None
    parallel_tool_calls: bool
    max_tokens: int | None
    min_tokens: int
    ignore_eos: bool
    index: int


class Settings(Struct, frozen=True):
    """The options of a decoder, checked and looked up. Of equal ones, states can be exchanged.

    Attributes:
        ends: The ids that end an answer, each with the `stop_reason` that it gives.
        stop: The stop strings.
        stop_scope: Where they count.
        strip: Drop the thinking.
        reasoning: The style of thinking, None to leave it in the answer.
        tool_style: The style of tool calls, likewise.
        tool_schemas: The request's tools, by name.

    The others are the options of the same name.

    """

    ends: dict[int, int | None]
    stop: list[str]
    stop_scope: StopScope
    strip: bool
    reasoning: ReasoningStyle | Literal["auto"] | None
    tool_style: ToolStyle | Literal["auto"] | None
    tool_schemas: ToolSchemas
    parallel_tool_calls: bool
    max_tokens: int | None
    min_tokens: int
    include_stop: bool
    skip_special_tokens: bool
    byte_fallback: ByteFallback
    index: int
    alignment: bool
    thinking_budget: int | None
    on_thinking_spent: Callable[[int], object] | None = None

    def digest(self, tokenizer: Tokenizer) -> bytes:
        """Return 16 bytes that stand for these settings with a tokenizer."""
        said = structs.asdict(self) | {"ends": sorted(self.ends.items()), "on_thinking_spent": None}
        data = msgspec.json.encode([_digest(tokenizer), said], order="deterministic")
        return blake2b(data, digest_size=16).digest()


def settings_of(
    tokenizer: Tokenizer,
    *,
    eos_ids: Iterable[int] | None = None,
    stop_token_ids: Iterable[int] = (),
    stop: Iterable[str] = (),
    stop_scope: StopScope = "answer",
    reasoning: str | ReasoningStyle | None = "auto",
    reasoning_style: str | ReasoningStyle | None = None,
    tool_style: str | ToolStyle | None = None,
    tool_schemas: Tools | None = None,
    parallel_tool_calls: bool = True,
    max_tokens: int | None = None,
    min_tokens: int = 0,
    ignore_eos: bool = False,
    include_stop: bool = False,
    skip_special_tokens: bool = True,
    byte_fallback: ByteFallback = "eager",
    index: int = 0,
    alignment: bool = False,
    thinking_budget: int | None = None,
    on_thinking_spent: Callable[[int], object] | None = None,
) -> Settings:
    """Check the options of a decoder, and look up what they name.

    Raises:
        TokenIdError: An id is outside the vocabulary.
        TypeError: An option is of the wrong type.
        ValueError: An option cannot be; the message names it and its value.

    """
    check_tokenizer(tokenizer)
    stop_channels(stop_scope)
    check_counts(min_tokens=min_tokens, max_tokens=max_tokens, thinking_budget=thinking_budget, index=index)
    check_flags(
        parallel_tool_calls=parallel_tool_calls,
        ignore_eos=ignore_eos,
        include_stop=include_stop,
        skip_special_tokens=skip_special_tokens,
        alignment=alignment,
    )
    check_byte_fallback(byte_fallback)
    if on_thinking_spent is not None and not callable(on_thinking_spent):
        raise TypeError(f"on_thinking_spent is a {type(on_thinking_spent).__name__}, not a function")
    return Settings(
        ends=end_ids(tokenizer, eos_ids, stop_token_ids, ignore_eos),
        stop=stop_list(stop),
        stop_scope=stop_scope,
        strip=reasoning == "strip",
        reasoning=thinking_style(reasoning, reasoning_style),
        tool_style=calls_style(tool_style),
        tool_schemas=tool_schemas_of(tool_schemas),
        parallel_tool_calls=parallel_tool_calls,
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        include_stop=include_stop,
        skip_special_tokens=skip_special_tokens,
        byte_fallback=byte_fallback,
        index=index,
        alignment=alignment,
        thinking_budget=thinking_budget,
        on_thinking_spent=on_thinking_spent,
    )


def reusable(options: DecoderOptions) -> DecoderOptions:
    """The same options, of which each iterator is a list, since a copy of a decoder reads them again."""
    read = {name: list(value) if isinstance(value, Iterator) else value for name, value in options.items()}
    return cast(DecoderOptions, read)


def stop_channels(scope: str) -> frozenset[Channel]:
    """Look up the channels of a scope of stop strings.

    Raises:
        ValueError: There is no such scope.

    """
    if not isinstance(scope, str) or scope not in SCOPES:
        raise ValueError(f"stop_scope must be one of {', '.join(SCOPES)}, not {scope!r}")
    return SCOPES[scope]


def finish_reason(reason: str) -> FinishReason:
    """Look up why an answer ends.

    Raises:
        ValueError: There is no such reason.

    """
    if reason not in list(FinishReason):
        raise ValueError(f"unknown finish reason {reason!r}; known are {', '.join(FinishReason)}")
    return FinishReason(reason)


def check_counts(*, min_tokens: int, max_tokens: int | None, thinking_budget: int | None, index: int) -> None:
    """Refuse numbers that cannot be.

    Raises:
        TypeError: One is of the wrong type.
        ValueError: One is below or above what it may be, or the least is above the most.

    """
    for name, number, least in (
        ("min_tokens", min_tokens, 0),
        ("max_tokens", max_tokens, 0),
        ("thinking_budget", thinking_budget, 1),
        ("index", index, 0),
    ):
        if number is None and name in ("max_tokens", "thinking_budget"):
            continue
        check_integers(**{name: number})
        assert number is not None
        if number < least:
            raise ValueError(f"{name}={number} is below {least}")
        if number > MOST:
            raise ValueError(f"{name}={number} is above {MOST}; leave it out for no limit")
    if max_tokens is not None and min_tokens > max_tokens:
        raise ValueError(f"min_tokens={min_tokens} is above max_tokens={max_tokens}")


def end_ids(
    tokenizer: Tokenizer, eos_ids: Iterable[int] | None, stop_token_ids: Iterable[int], ignore_eos: bool
) -> dict[int, int | None]:
    """List the ids that end an answer, each with the `stop_reason` that it gives.

    Raises:
        TokenIdError: One is outside the vocabulary.

    """
    ends: dict[int, int | None] = {}
    if not ignore_eos:
        ends |= dict.fromkeys(_checked_ids(tokenizer, "eos_ids", tokenizer.eos_ids if eos_ids is None else eos_ids))
    return ends | {token_id: token_id for token_id in _checked_ids(tokenizer, "stop_token_ids", stop_token_ids)}


def thinking_style(
    reasoning: str | ReasoningStyle | None, known: str | ReasoningStyle | None
) -> ReasoningStyle | Literal["auto"] | None:
    """Look up the style of thinking that is asked for; `known` is that for "auto" and "strip".

    Raises:
        ValueError: No style has the name.

    """
    if reasoning is None or reasoning == "off":
        return None
    if reasoning not in ("auto", "strip"):
        return style_of(reasoning)
    return "auto" if known is None else style_of(known)


def calls_style(style: str | ToolStyle | None) -> ToolStyle | Literal["auto"] | None:
    """Look up the style of tool calls that is asked for.

    Raises:
        ValueError: No style has the name.

    """
    return None if style is None else "auto" if style == "auto" else tool_style_of(style)


@once_a_tokenizer
def _digest(tokenizer: Tokenizer) -> int:
    return tokenizer.token_table.digest()


def _checked_ids(tokenizer: Tokenizer, option: str, ids: Iterable[int]) -> Sequence[int]:
    checked = as_ids(ids, option)
    if (bad := next((i for i in checked if not 0 <= i < tokenizer.vocab_size), None)) is not None:
        raise TokenIdError(f"{option}: token id {bad} is outside the vocabulary (0 to {tokenizer.vocab_size - 1})")
    return checked
