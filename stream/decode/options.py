"""Decoder options: declaration, validation and lookup of styles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Literal, TypedDict, Unpack, cast, get_args

import msgspec
from msgspec import Struct, structs

from tokenweir.encode.base.options import ByteFallback, check_byte_fallback, check_flags, check_integers, check_options
from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.per_tokenizer import per_tokenizer
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer, core_of
from tokenweir.encode.values.ids import as_ids
from tokenweir.stream.decode.parsers.detection import Markup
from tokenweir.stream.decode.parsers.schemas import ToolSchemas, tool_schemas_of
from tokenweir.stream.decode.stops import stop_list
from tokenweir.stream.events.deltas import Channel, FinishReason
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import ReasoningStyle, style_of
from tokenweir.templates.styles.tools import Tools, tool_style_of

StopScope = Literal["answer", "reasoning", "all"]

MOST = (1 << 63) - 1
"""Largest count of ids: the range of the core's integers."""

SCOPES = {
    "answer": frozenset({Channel.ANSWER}),
    "reasoning": frozenset({Channel.REASONING}),
    "all": frozenset({Channel.ANSWER, Channel.REASONING}),
}
"""The channels on which stop strings count."""


class OutputOptions(TypedDict, total=False):
    """Options of the decoded output, for `chat()` and for every decoder.

    Attributes:
        stop_scope: Where stop strings count: in the "answer" only, the default, so that thinking cannot end it, in the
            thinking only ("reasoning"), or in both ("all"). A stop never spans a tag.
        reasoning: "auto", the default, separates thinking from the answer if the template, the vocabulary or the prompt
            shows a style; "strip" also drops the thinking; None or "off" leaves all text in the answer; or a style or
            its name. A style with `strip=True` is dropped too.
        tool_style: How tool calls are found in the answer: "auto" by the style that the template or the vocabulary shows,
            or a style or its name; None leaves them in the text. The default is "auto" for `chat()` with tools, and else
            None. Harmony, Inkling and Muse have calls of their own, which are always found.
        markup: What tags are: "text", the default, however its tokens are cut, or only the "ids" that the vocabulary has for
            them. With "ids", text that a model quotes opens no thinking and no call. A style whose tags are no tokens is
            refused, and calls without an opening tag stay text. The private-use characters from U+10FFC0 on, some of which
            mark tags internally, may become U+10FFFF in text.
        include_stop: Keep the stop string, or the text of a stop token, in the text.
        skip_special_tokens: Control tokens give no text, which is the default; tags are found in either case.
        byte_fallback: The rule for byte-fallback tokens; see `Tokenizer.decode`.
        alignment: Add an `Alignment` of ids and text to every delta.
        thinking_budget: Number of ids of thinking, tags included, after which unfinished thinking counts as spent; None sets
            no bound. `chat()` then ends the thinking: another engine call continues the answer behind the closing tag. With
            `on_thinking_spent`, it leaves that to the caller. A decoder cuts nothing off. For `chat()`, 0 asks for no
            thinking.
        call_ids: Makes the id of each tool call. `chat()` has ids of nine random letters and digits by default; a decoder has
            none, so that equal ids give equal deltas.
        on_thinking_spent: Called once with `index` when the thinking budget is spent, before the deltas of that id are
            returned.

    """

    stop_scope: StopScope
    reasoning: str | ReasoningStyle | None
    tool_style: str | ToolStyle | None
    markup: Markup
    include_stop: bool
    skip_special_tokens: bool
    byte_fallback: ByteFallback
    alignment: bool
    thinking_budget: int | None
    call_ids: Callable[[], str] | None
    on_thinking_spent: Callable[[int], object] | None


class DecoderOptions(OutputOptions, total=False):
    """Options of a decoder: `OutputOptions`, and those that `chat()` takes from the sampling and the template.

    Attributes:
        eos_ids: The ids that end the answer; None, the default, for the tokenizer's.
        stop_token_ids: Further end ids, which count even under `ignore_eos` and are reported as `stop_reason`.
        stop: Strings that end the answer; the match that completes earliest wins, ties go by order. A control token that a
            stop contains counts with its text, also where it gives none.
        tools: The tools of the request, as `chat()` takes them, or their `ToolSchemas`. They give the types of arguments that
            a style does not write as JSON.
        parallel_tool_calls: Whether an answer may have several calls. False ends it after its first complete call.
        max_tokens: End after this many ids, with reason "length" unless the last one is an end token.
        min_tokens: Ignore end tokens, and stop strings that complete, before this many ids.
        ignore_eos: End tokens do not end the answer.
        index: The `index` of every delta.

    """

    eos_ids: Iterable[int] | None
    stop_token_ids: Iterable[int]
    stop: Iterable[str]
    tools: Tools | ToolSchemas | None
    parallel_tool_calls: bool
    max_tokens: int | None
    min_tokens: int
    ignore_eos: bool
    index: int


class Settings(Struct, frozen=True, kw_only=True):
    """Validated options of a decoder, styles looked up. Decoders with equal settings can exchange states.

    Attributes:
        ends: The ids that end an answer, each with its `stop_reason`.
        strip: Drop the thinking.
        reasoning: The style of thinking; None leaves thinking in the answer.
        tool_style: The style of tool calls; None leaves calls in the answer.
        tools: The request's tools, by name.

    The others are the options of the same name, with their defaults.

    """

    ends: dict[int, int | None]
    stop: list[str]
    strip: bool
    reasoning: ReasoningStyle | Literal["auto"] | None
    tool_style: ToolStyle | Literal["auto"] | None
    tools: ToolSchemas
    stop_scope: StopScope = "answer"
    markup: Markup = "text"
    parallel_tool_calls: bool = True
    max_tokens: int | None = None
    min_tokens: int = 0
    include_stop: bool = False
    skip_special_tokens: bool = True
    byte_fallback: ByteFallback = "eager"
    index: int = 0
    alignment: bool = False
    thinking_budget: int | None = None
    call_ids: Callable[[], str] | None = None
    on_thinking_spent: Callable[[int], object] | None = None

    def digest(self, tokenizer: Tokenizer) -> bytes:
        """Return a 16-byte digest of these settings and a tokenizer, to tell whether a saved state belongs to both."""
        functions = {"call_ids": None, "on_thinking_spent": None}
        said = structs.asdict(self) | {"ends": sorted(self.ends.items()), "tools": dict(self.tools)} | functions
        data = msgspec.json.encode([_digest(tokenizer), said], order="deterministic")
        return blake2b(data, digest_size=16).digest()


_LOOKED_UP = frozenset({"eos_ids", "stop_token_ids", "ignore_eos", "stop", "reasoning", "tool_style", "tools"})
"""Options that `Settings` has in another form."""
_LEAST = {"min_tokens": 0, "max_tokens": 0, "thinking_budget": 1, "index": 0}
"""The least value of each option that is a count."""
_FLAGS = ("parallel_tool_calls", "include_stop", "skip_special_tokens", "alignment")


def settings_of(tokenizer: Tokenizer, **options: Unpack[DecoderOptions]) -> Settings:
    """Validate the options of a decoder and look up the styles they name; return them as `Settings`.

    Raises:
        TokenIdError: An id is outside the vocabulary.
        TypeError: An option is of the wrong type.
        ValueError: An option has an invalid value; the message names both.

    """
    check_tokenizer(tokenizer)
    ignore_eos = options.get("ignore_eos", False)
    check_flags(ignore_eos=ignore_eos)
    strip, reasoning = thinking_style(options.get("reasoning", "auto"))
    plain: dict[str, Any] = {name: value for name, value in options.items() if name not in _LOOKED_UP}
    settings = Settings(
        ends=end_ids(tokenizer, options.get("eos_ids"), options.get("stop_token_ids", ()), ignore_eos),
        stop=stop_list(options.get("stop", ())),
        strip=strip,
        reasoning=reasoning,
        tool_style=calls_style(options.get("tool_style")),
        tools=tool_schemas_of(options.get("tools")),
        **plain,
    )
    stop_channels(settings.stop_scope)
    if settings.markup not in get_args(Markup):
        raise ValueError(f"markup must be one of {', '.join(get_args(Markup))}, not {settings.markup!r}")
    _check_counts(settings)
    check_flags(**{name: getattr(settings, name) for name in _FLAGS})
    check_byte_fallback(settings.byte_fallback)
    for name in ("call_ids", "on_thinking_spent"):
        if (function := getattr(settings, name)) is not None and not callable(function):
            raise TypeError(f"{name} is a {type(function).__name__}, not a function")
    return settings


def reusable_options(options: DecoderOptions) -> DecoderOptions:
    """Return options with lists in place of iterators, so that they can be read again.

    Raises:
        TypeError: An option does not exist.

    """
    check_options(options, DecoderOptions.__optional_keys__, "a decoder")
    read = {name: list(value) if isinstance(value, Iterator) else value for name, value in options.items()}
    return cast(DecoderOptions, read)


def stop_channels(scope: str) -> frozenset[Channel]:
    """Return the channels in which stop strings count for a `stop_scope` ("answer", "reasoning" or "all").

    Raise `ValueError` for an unknown scope.
    """
    if not isinstance(scope, str) or scope not in SCOPES:
        raise ValueError(f"stop_scope must be one of {', '.join(SCOPES)}, not {scope!r}")
    return SCOPES[scope]


def finish_reason(reason: str) -> FinishReason:
    """Return the member of `FinishReason` with a value such as "stop"; raise `ValueError` for an unknown one."""
    if reason not in list(FinishReason):
        raise ValueError(f"unknown finish reason {reason!r}; known are {', '.join(FinishReason)}")
    return FinishReason(reason)


def _check_counts(settings: Settings) -> None:
    """Raise `TypeError` if an option is not an int (or None where allowed), and `ValueError` if it is out of range.

    `min_tokens` above `max_tokens` is out of range, too.
    """
    for name, least in _LEAST.items():
        number = getattr(settings, name)
        if number is None and name in ("max_tokens", "thinking_budget"):
            continue
        check_integers(**{name: number})
        if number < least:
            raise ValueError(f"{name}={number} is below {least}")
        if number > MOST:
            raise ValueError(f"{name}={number} is above {MOST}; leave it out for no limit")
    if settings.max_tokens is not None and settings.min_tokens > settings.max_tokens:
        raise ValueError(f"min_tokens={settings.min_tokens} is above max_tokens={settings.max_tokens}")


def end_ids(
    tokenizer: Tokenizer, eos_ids: Iterable[int] | None, stop_token_ids: Iterable[int], ignore_eos: bool
) -> dict[int, int | None]:
    """Return the ids that end an answer, each with the `stop_reason` to report: None for end tokens, else the id itself.

    Args:
        tokenizer: The tokenizer.
        eos_ids: The end tokens; None for the tokenizer's.
        stop_token_ids: Further ids that end an answer.
        ignore_eos: Leave out the end tokens.

    Raises:
        TokenIdError: An id is outside the vocabulary.

    """
    ends: dict[int, int | None] = {}
    if not ignore_eos:
        ends |= dict.fromkeys(_checked_ids(tokenizer, "eos_ids", tokenizer.eos_ids if eos_ids is None else eos_ids))
    return ends | {token_id: token_id for token_id in _checked_ids(tokenizer, "stop_token_ids", stop_token_ids)}


def thinking_style(
    reasoning: str | ReasoningStyle | None,
) -> tuple[bool, ReasoningStyle | Literal["auto"] | None]:
    """Interpret the option `reasoning`; raise `ValueError` for an unknown name.

    Returns:
        Whether thinking is dropped; and the style, "auto" to detect it, or None to leave thinking in the answer.

    """
    if reasoning is None or reasoning == "off":
        return False, None
    if reasoning in ("auto", "strip"):
        return reasoning == "strip", "auto"
    style = style_of(reasoning)
    return style.strip, structs.replace(style, strip=False) if style.strip else style


def calls_style(style: str | ToolStyle | None) -> ToolStyle | Literal["auto"] | None:
    """Interpret the option `tool_style`: return the style, "auto" to detect it, or None to leave calls in the answer.

    Raise `ValueError` for an unknown name.
    """
    return None if style is None else "auto" if style == "auto" else tool_style_of(style)


@per_tokenizer
def _digest(tokenizer: Tokenizer) -> int:
    return core_of(tokenizer).tokens.digest()


def _checked_ids(tokenizer: Tokenizer, option: str, ids: Iterable[int]) -> Sequence[int]:
    checked = as_ids(ids, option)
    if (bad := next((i for i in checked if not 0 <= i < tokenizer.vocab_size), None)) is not None:
        raise TokenIdError(f"{option}: token id {bad} is outside the vocabulary (0 to {tokenizer.vocab_size - 1})")
    return checked
