"""What a vocabulary and a prompt say about thinking and tool calls: which style, what is open, which ids spell tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from tokenweir.encode import _core
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.parsers.base import ANSWER, REASONING, Splitter
from tokenweir.stream.decode.parsers.combined import ThinkingAndTools
from tokenweir.stream.decode.parsers.harmony import MARKS, START, Harmony
from tokenweir.stream.decode.parsers.inkling import START as MESSAGE_MODEL
from tokenweir.stream.decode.parsers.inkling import Inkling
from tokenweir.stream.decode.parsers.last_turn import LastTurn
from tokenweir.stream.decode.parsers.muse import Muse
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.parsers.schemas import Tools, ToolSchemas
from tokenweir.stream.decode.parsers.tokenizer_cache import once_a_tokenizer
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import HARMONY, INKLING, MESSAGES, STYLES, ReasoningStyle
from tokenweir.templates.styles.tools import TOOL_STYLES

_ROLE = re.compile(r"\s*assistant:[ \t]*", re.IGNORECASE)  # which some templates write with ordinary tokens
_WORD, _WORDED = ":opensource", re.compile(r"<(?:think|tool_calls)(:[^\s<>]+)>")  # in which Hunyuan's tags end

S = TypeVar("S", ReasoningStyle, ToolStyle)


class PromptReading(NamedTuple):
    """What a prompt says about the answer that follows.

    Attributes:
        style: How the model marks its thinking; None if nothing shows a style.
        inside: The prompt has opened the thinking, as where the template ended with `<think>`.

    """

    style: ReasoningStyle | None
    inside: bool


def read_prompt(tok: Tokenizer, prompt_ids: Sequence[int] = (), style: ReasoningStyle | None = None) -> PromptReading:
    """Find out how a model marks its thinking, and whether its prompt has opened it.

    A style that the prompt has opened comes first, then the first whose tags are tokens of the vocabulary. A model that
    spells its tags with ordinary tokens can only be told by a prompt that opens the thinking, or by name.

    What counts in the prompt is the text after its last control token that is no part of a tag, so neither an
    unfinished thought in an earlier turn nor what a user wrote opens the thinking. Ids before that are not looked at.
    Where there is no control token, nobody can tell turns apart, and only an opener that ends the prompt counts.

    Args:
        tok: The model's tokenizer.
        prompt_ids: The prompt.
        style: The style, if it is known.

    Raises:
        TokenIdError: One of those ids is outside the vocabulary.

    """
    style = None if style is None else as_spelled(tok, style)
    candidates = _candidates(tok) if style is None else (style,)
    ends, longest = _turn_ends(tok, style)
    opened = _opened(candidates, LastTurn(tok, prompt_ids, ends), longest)
    if opened:  # of styles with the same tags, the last has nothing else
        return PromptReading(_first_owned(tok, tuple(opened)) or opened[-1], True)
    return PromptReading(vocabulary_style(tok) if style is None else style, False)


class Styles(NamedTuple):
    """How a model marks its thinking, None where it stays in the answer, and how it writes calls, likewise."""

    thinking: ReasoningStyle | None
    calls: ToolStyle | None

    @property
    def names(self) -> tuple[str | None, str | None]:
        """The names of both."""
        return self.thinking.name if self.thinking else None, self.calls.name if self.calls else None

    @property
    def messages(self) -> str | None:
        """The name of a style whose messages are both."""
        return next((name for name in MESSAGES if name in self.names), None)


def find_splitter(
    tok: Tokenizer,
    prompt_ids: Sequence[int] = (),
    reasoning: ReasoningStyle | Literal["auto"] | None = "auto",
    tool_style: ToolStyle | Literal["auto"] | None = None,
    tools: Tools | ToolSchemas = (),
) -> tuple[Splitter | None, Styles]:
    """Make what splits the text that follows a prompt.

    Args:
        tok: The model's tokenizer.
        prompt_ids: The prompt.
        reasoning: The style of the thinking; "auto" finds it as `read_prompt` does; None leaves thinking in the answer.
        tool_style: The style of tool calls; "auto" takes the first whose control tokens are in the vocabulary; None
            leaves calls in the answer. Styles of messages are both: found as either, thinking is split and calls are found.
        tools: The request's tools.

    Returns:
        The splitter, None where nothing is to be split; and the styles that it was made for.

    Raises:
        TokenIdError: One of the prompt's ids is outside the vocabulary.

    """
    style, inside = None, False
    if reasoning is not None:
        style, inside = read_prompt(tok, prompt_ids, None if reasoning == "auto" else reasoning)
    elif (frame := frame_of(tok)) is not None:
        style = frame
    elif tool_style is None and (found := Styles(vocabulary_style(tok), None).messages) is not None:
        tool_style = TOOL_STYLES[found]  # headers are no text, whatever becomes of the thinking
    calls = vocabulary_tools(tok) if tool_style == "auto" else tool_style
    styles = Styles(style, None if calls is None else as_spelled(tok, calls))
    if styles.messages:
        start = MESSAGE_MODEL if styles.messages == INKLING else START
        return _messages(styles, tools, _after_start(tok, prompt_ids, start)), styles
    opener = "" if styles.calls is None or inside else begun_block(tok, prompt_ids, styles.calls)
    return make_splitter(styles, tools, inside=inside, opener=opener), styles


def make_splitter(
    styles: Styles, tools: Tools | ToolSchemas = (), *, inside: bool = False, opener: str = ""
) -> Splitter | None:
    """Make what splits text of known styles; None where nothing is split.

    Args:
        styles: The styles.
        tools: The request's tools.
        inside: The prompt has opened the thinking.
        opener: The text with which the prompt has begun a block of calls, if it has.

    """
    if styles.messages:
        return _messages(styles, tools)
    thinking = None if styles.thinking is None else ReasoningParser(styles.thinking, inside=inside)
    calls = None if styles.calls is None else ToolParser(styles.calls, tools, opener=opener)
    return ThinkingAndTools(thinking, calls) if thinking and calls else thinking or calls


def _messages(styles: Styles, tools: Tools | ToolSchemas, before: Iterable[str] | None = ("assistant",)) -> Splitter:
    thinking = ANSWER if styles.thinking is None else REASONING
    if styles.messages == HARMONY:
        return Harmony(before, thinking=thinking)
    kind = Inkling if styles.messages == INKLING else Muse
    return kind(tools, before, thinking=thinking)


def begun_block(tok: Tokenizer, prompt_ids: Sequence[int], style: ToolStyle) -> str:
    """Find the opening text of calls that a prompt ends with, as where its template begins every answer with one."""
    longest = max(map(len, style.opens))
    ending = tok.decode(prompt_ids[-longest:], skip_special_tokens=False).rstrip()
    return next((opener for opener in style.opens if ending.endswith(opener.rstrip())), "")


def frame_of(tok: Tokenizer) -> ReasoningStyle | None:
    """Find the style of a vocabulary whose answers stand between tags, for a text whose thinking stays in the answer."""
    style = vocabulary_style(tok)
    return replace(style, separate=False) if style is not None and style.framed else None


def found_again(
    tok: Tokenizer,
    names: tuple[str | None, str | None],
    reasoning: ReasoningStyle | Literal["auto"] | None,
    tool_style: ToolStyle | Literal["auto"] | None,
) -> Styles:
    """Look up styles that `find_splitter` found before, with the same options, by their names.

    Raises:
        ValueError: There is none of the name.

    """
    known, (thinking, calls) = {style.name: style for style in _candidates(tok)}, names
    if (thinking is not None and thinking not in known) or (calls is not None and calls not in TOOL_STYLES):
        raise ValueError(f"there are no styles {thinking!r} of thinking and {calls!r} of tool calls")
    if reasoning is None:
        reasoning = frame_of(tok)
    elif reasoning == "auto":
        reasoning = None if thinking is None else known[thinking]
    if tool_style is None or tool_style == "auto":
        tool_style = None if calls is None else TOOL_STYLES[calls]
    return Styles(
        None if reasoning is None else as_spelled(tok, reasoning),
        None if tool_style is None else as_spelled(tok, tool_style),
    )


def shown_texts(tok: Tokenizer, styles: Styles) -> dict[int, str]:
    """Give the text of those special tokens that the markup of some styles consists of, by id."""
    if (name := styles.messages) is not None:
        return shown_tokens(tok, STYLES[name]) | shown_tokens(tok, TOOL_STYLES[name])
    return shown_tokens(tok, styles.thinking) | shown_tokens(tok, styles.calls)


@once_a_tokenizer
def vocabulary_style(tok: Tokenizer) -> ReasoningStyle | None:
    """Find the first style of thinking whose tags are tokens of a vocabulary."""
    return _first_owned(tok, _candidates(tok))


@once_a_tokenizer
def vocabulary_tools(tok: Tokenizer) -> ToolStyle | None:
    """Find the first style of tool calls whose control tokens are in a vocabulary."""
    for style in (as_spelled(tok, style) for style in TOOL_STYLES.values()):
        if style.tokens and _has_all(tok, style.tokens) and not any(_has_all(tok, (text,)) for text in style.unlike):
            return style
    return None


@once_a_tokenizer
def shown_tokens(tok: Tokenizer, style: ReasoningStyle | ToolStyle | None) -> dict[int, str]:
    """Give the text of those special tokens that a style's markup consists of, by id."""
    marks = MARKS if style is not None and style.name == HARMONY else () if style is None else style.marks
    joined = "\0".join(marks)
    return {token_id: text for text, token_id in tok.special_tokens.items() if text in joined}


def _first_owned(tok: Tokenizer, styles: tuple[ReasoningStyle, ...]) -> ReasoningStyle | None:
    return next((style for style in styles if style.tokens and _has_all(tok, style.tokens)), None)


def _has_all(tok: Tokenizer, tokens: Iterable[str]) -> bool:
    return all(tok.token_to_id(token) is not None for token in tokens)


@once_a_tokenizer
def _candidates(tok: Tokenizer) -> tuple[ReasoningStyle, ...]:
    """All styles, their tags as the vocabulary has them."""
    return tuple(as_spelled(tok, style) for style in STYLES.values())


def as_spelled(tok: Tokenizer, style: S) -> S:
    """Give a style its tags as a vocabulary has them: Hunyuan's may end in any word (`<think:WORD>`)."""
    word = _tag_word(tok)
    if word in (None, _WORD) or not any(_WORD in tag for tag in style.marks):
        return style
    fields = {name: _with_word(getattr(style, name), word) for name in style.__struct_fields__}
    return replace(style, **fields)


def _with_word(value: Any, word: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_word(part, word) for part in value)
    return value.replace(_WORD, word) if isinstance(value, str) else value


@once_a_tokenizer
def _tag_word(tok: Tokenizer) -> str | None:
    """Find the word in which Hunyuan's tags end, if a vocabulary has such tags."""
    return next((found[1] for text in tok.control_texts if (found := _WORDED.fullmatch(text))), None)


@once_a_tokenizer
def _turn_ends(tok: Tokenizer, style: ReasoningStyle | None) -> tuple[_core.IdSet, int]:
    """Find the control tokens that are no part of a style's tags, or of any's; and how long an opener may be."""
    styles = _candidates(tok) if style is None else (style,)
    tags = {token for style in styles for token in style.tokens}
    # What begins every text ends no turn: behind it, where it is the only one (Llama 2), stands what a user wrote.
    ids = {tok.token_to_id(text) for text in tok.control_texts if text not in tags} - {tok.bos_id, *tok.affixes()[0]}
    # End tokens too: DeepSeek's and others' role tokens are not special ones.
    ends = _core.IdSet([token_id for token_id in tok.eos_ids | ids if token_id is not None])
    return ends, max(len(opener + style.label) for style in styles for opener in style.openers)


def _after_start(tok: Tokenizer, prompt_ids: Sequence[int], start: str) -> Iterator[str] | None:
    """Decode what comes after a prompt's last token that begins a message; None if there is none."""
    start_id = tok.token_to_id(start)
    if start_id is None:
        return None
    turn = LastTurn(tok, prompt_ids, _core.IdSet([start_id]))
    return turn.texts() if turn.begins else None


def _opened(candidates: Sequence[ReasoningStyle], turn: LastTurn, longest: int) -> list[ReasoningStyle]:
    """List the styles whose thinking is open at the end of a turn; no opener has more than `longest` characters."""
    # An opener that ends the prompt opens the thinking wherever it stands on its line ("Assistant: <think>"); one with
    # text after it is the beginning of an answer that the model continues, and obeys the style's policy.
    ending = turn.ending(longest)
    open_at_end = {c.name for c in candidates if ending.removesuffix(c.label).endswith(c.openers)}
    parsers: dict[str, ReasoningParser] = {}
    if turn.begins:
        openers = {opener for candidate in candidates for opener in candidate.openers}
        found = _found(openers, turn.texts(), longest)
        parsers = {c.name: ReasoningParser(c) for c in candidates if not found.isdisjoint(c.openers)}
    for place, text in enumerate(turn.texts() if parsers else ()):
        role = None if place else _ROLE.match(text)
        content = text[role.end() :] if role else text
        for parser in parsers.values():
            parser.feed(content)
    thinking = {name for name, parser in parsers.items() if parser.channel is REASONING}
    return [candidate for candidate in candidates if candidate.name in open_at_end | thinking]


def _found(marks: Iterable[str], texts: Iterable[str], longest: int) -> set[str]:
    """Find out which of some marks are in a text that comes in parts; none has more than `longest` characters."""
    found: set[str] = set()
    before = ""
    for part in texts:
        text = before + part
        found |= {mark for mark in marks if mark in text}
        before = text[max(0, len(text) - longest + 1) :]
    return found
