"""Detection of thinking and tool calls from vocabulary and prompt: the style, open blocks, the ids of tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from tokenweir.encode import _core
from tokenweir.encode.per_tokenizer import per_tokenizer
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.parsers.combined import ThinkingAndTools
from tokenweir.stream.decode.parsers.harmony import Harmony
from tokenweir.stream.decode.parsers.inkling import Inkling
from tokenweir.stream.decode.parsers.last_turn import LastTurn
from tokenweir.stream.decode.parsers.markup_ids import NO_TAGS, TagIds, spelled_styles, tags_of, tags_of_styles
from tokenweir.stream.decode.parsers.muse import Muse
from tokenweir.stream.decode.parsers.pieces import ANSWER, REASONING
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.splitter import Splitter
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import (
    HARMONY,
    INKLING,
    MESSAGES,
    MUSE,
    STYLES,
    ReasoningStyle,
    ended_by_calls,
)
from tokenweir.templates.styles.tools import TOOL_STYLES, Tools

_ROLE = re.compile(r"\s*assistant:[ \t]*", re.IGNORECASE)  # some templates write it with ordinary tokens
_WORD, _WORDED = ":opensource", re.compile(r"<(?:think|tool_calls)(:[^\s<>]+)>")  # the ends of Hunyuan's tags

_MESSAGES: dict[str, type[Harmony | Inkling | Muse]] = {HARMONY: Harmony, INKLING: Inkling, MUSE: Muse}

S = TypeVar("S", ReasoningStyle, ToolStyle)
Markup = Literal["text", "ids"]


class PromptReading(NamedTuple):
    """Style of a model's thinking, and the state of the thinking at the end of a prompt.

    Attributes:
        style: The style of thinking; None if no style is detected.
        inside: The prompt has opened the thinking, for example by a template that ends with `<think>`.

    """

    style: ReasoningStyle | None
    inside: bool


def read_prompt(tok: Tokenizer, prompt_ids: Sequence[int] = (), style: ReasoningStyle | None = None) -> PromptReading:
    """Detect the style of a model's thinking, and whether the prompt has opened it.

    A style that the prompt has opened takes precedence, then the first whose tags are tokens of the vocabulary. If a
    model spells its tags with ordinary tokens, its style is detected only by a prompt that opens the thinking.

    Only the text after the prompt's last control token (tags excepted) counts, so neither an unfinished thought in an
    earlier turn nor a user's text opens the thinking. Without control tokens, turns cannot be separated, and only an
    opener at the end of the prompt counts.

    Raises:
        TokenIdError: An id of the last turn is outside the vocabulary.

    """
    style = None if style is None else as_spelled(tok, style)
    candidates = _candidates(tok) if style is None else (style,)
    ends, longest = _turn_ends(tok, style)
    opened = _opened(candidates, LastTurn(tok, prompt_ids, ends), longest)
    if opened:  # of styles with equal tags, the last is the plainest
        return PromptReading(_first_owned(tok, tuple(opened)) or opened[-1], True)
    return PromptReading(vocabulary_style(tok) if style is None else style, False)


class Styles(NamedTuple):
    """Markup styles of a model's thinking and of its tool calls; with None, that part stays in the answer.

    `tags` are the ids as which alone the styles' tags count; without any, tags count as text.
    """

    thinking: ReasoningStyle | None
    calls: ToolStyle | None
    tags: TagIds = NO_TAGS

    @property
    def names(self) -> tuple[str | None, str | None]:
        """The names of the styles of thinking and of tool calls; None in place of a style that is None."""
        return self.thinking.name if self.thinking else None, self.calls.name if self.calls else None

    @property
    def messages(self) -> str | None:
        """The name of the message format (such as gpt-oss's harmony) if either style is one; None otherwise."""
        return next((name for name in MESSAGES if name in self.names), None)


def find_splitter(
    tok: Tokenizer,
    prompt_ids: Sequence[int] = (),
    reasoning: ReasoningStyle | Literal["auto"] | None = "auto",
    tool_style: ToolStyle | Literal["auto"] | None = None,
    tools: Tools | ToolSchemas = (),
    markup: Markup = "text",
) -> tuple[Splitter | None, Styles]:
    """Make the splitter of the text that follows a prompt.

    Args:
        tok: The tokenizer of the model.
        prompt_ids: The prompt.
        reasoning: The style of thinking; "auto" detects it by `read_prompt`; None leaves thinking in the answer, but
            tags are still removed if `unseparated_style` has a style for the vocabulary.
        tool_style: The style of tool calls; "auto" takes the first whose control tokens are in the vocabulary; None
            leaves calls in the answer. A message format covers both: detected as either, it splits thinking and calls.
            If both arguments are None and the vocabulary has a message format, its headers are removed and its calls
            are split all the same; only the thinking stays in the answer.
        tools: The tools of the request, or their JSON schemas by function name.
        markup: Whether tags count as "text", or as "ids" alone.

    Returns:
        The splitter, or None if nothing is to be split; and the styles that it uses, which may differ from the
        arguments.

    Raises:
        TokenIdError: An id of the prompt is outside the vocabulary.
        ValueError: Tags are to count as ids, and a style's are no tokens of the vocabulary.

    """
    style, inside = None, False
    if reasoning is not None:
        style, inside = read_prompt(tok, prompt_ids, None if reasoning == "auto" else reasoning)
    elif (unseparated := unseparated_style(tok)) is not None:
        style = unseparated
    elif tool_style is None and (found := Styles(vocabulary_style(tok), None).messages) is not None:
        tool_style = TOOL_STYLES[found]  # headers are markup even if thinking stays in the answer
    calls = vocabulary_tools(tok) if tool_style == "auto" else tool_style
    styles = Styles(style, None if calls is None else as_spelled(tok, calls))
    styles = with_ids(tok, styles) if markup == "ids" else styles
    opener, before = "", None
    if styles.messages:
        start, *_ = _MESSAGES[styles.messages].MARKS
        before = _after_start(tok, prompt_ids, start)
    elif styles.calls is not None and not inside:
        opener = begun_block(tok, prompt_ids, styles.calls)
    return make_splitter(styles, tools, inside=inside, opener=opener, before=before), styles


def with_ids(tok: Tokenizer, styles: Styles) -> Styles:
    """Return styles with the ids of their tags; raise `ValueError` if a style's tags are no tokens of the vocabulary."""
    if styles.messages is None:
        return styles._replace(tags=tags_of_styles(tok, styles.thinking, styles.calls))
    if not _has_all(tok, STYLES[styles.messages].tokens):
        raise ValueError(
            f"markup='ids': the marks of style {styles.messages!r} are no tokens of the vocabulary; use 'text'"
        )
    return styles._replace(tags=tags_of(tok, _MESSAGES[styles.messages].MARKS, shown=False))


def make_splitter(
    styles: Styles,
    tools: Tools | ToolSchemas = (),
    *,
    inside: bool = False,
    opener: str = "",
    before: Iterable[str] | None = ("assistant",),
) -> Splitter | None:
    """Make the splitter for known styles; return None if both are None, since nothing is to be split.

    Args:
        styles: The styles of thinking and of tool calls.
        tools: The tools of the request, or their JSON schemas by function name.
        inside: The prompt has opened the thinking.
        opener: The opening text of a block of calls that the prompt has begun, if any.
        before: The prompt's text after its last mark that begins a message, in parts; None if it has no such mark.

    """
    if styles.messages:
        channel = ANSWER if styles.thinking is None else REASONING
        messages = _MESSAGES[styles.messages](before, thinking=channel, tools=tools)
        messages.spell_marks(styles.tags.spellings)
        return messages
    style, call_style = styles.thinking, styles.calls
    if spellings := styles.tags.spellings:
        style, call_style = spelled_styles(style, call_style, styles.tags)
        opener = spellings.get(opener, "")
    if style is not None and call_style is not None:
        style = ended_by_calls(style, call_style)
    thinking = None if style is None else ReasoningParser(style, inside=inside)
    calls = None if call_style is None else ToolParser(call_style, tools, opener=opener)
    return ThinkingAndTools(thinking, calls) if thinking and calls else thinking or calls


def begun_block(tok: Tokenizer, prompt_ids: Sequence[int], style: ToolStyle) -> str:
    """Return the text that opens a block of tool calls if the prompt ends with it, else an empty text."""
    longest = max(map(len, style.opens))
    ending = tok.decode(prompt_ids[-longest:], skip_special_tokens=False).rstrip()
    return next((opener for opener in style.opens if ending.endswith(opener.rstrip())), "")


def unseparated_style(tok: Tokenizer) -> ReasoningStyle | None:
    """Return a style that removes all tags but leaves the thinking in the answer; None if no such style is needed.

    It is needed if the vocabulary's style of thinking puts the answer itself between tags (`framed`).
    """
    style = vocabulary_style(tok)
    return replace(style, separate=False) if style is not None and style.framed else None


def look_up_styles(
    tok: Tokenizer,
    names: tuple[str | None, str | None],
    reasoning: ReasoningStyle | Literal["auto"] | None,
    tool_style: ToolStyle | Literal["auto"] | None,
) -> Styles:
    """Look up styles by the names that `find_splitter` detected earlier.

    Args:
        tok: The tokenizer of the model.
        names: The names of the styles of thinking and of calls.
        reasoning: The requested style of thinking, which takes precedence; "auto" for the detected one.
        tool_style: The requested style of calls, which takes precedence; "auto" or None for the detected one.

    Raises:
        ValueError: A name is unknown.

    """
    known, (thinking, calls) = {style.name: style for style in _candidates(tok)}, names
    found_thinking, found_calls = reasoning == "auto", tool_style is None or tool_style == "auto"
    if (found_thinking and thinking is not None and thinking not in known) or (
        found_calls and calls is not None and calls not in TOOL_STYLES
    ):
        raise ValueError(f"there are no styles {thinking!r} of thinking and {calls!r} of tool calls")
    if reasoning is None:
        reasoning = unseparated_style(tok)
    elif reasoning == "auto":
        reasoning = None if thinking is None else known[thinking]
    if tool_style is None or tool_style == "auto":
        tool_style = None if calls is None else TOOL_STYLES[calls]
    return Styles(
        None if reasoning is None else as_spelled(tok, reasoning),
        None if tool_style is None else as_spelled(tok, tool_style),
    )


def shown_texts(tok: Tokenizer, styles: Styles) -> dict[int, str]:
    """Return the special tokens that occur in the markup of the two styles: a mapping of token id to text."""
    if (name := styles.messages) is not None:
        return shown_tokens(tok, STYLES[name]) | shown_tokens(tok, TOOL_STYLES[name])
    return shown_tokens(tok, styles.thinking) | shown_tokens(tok, styles.calls)


@per_tokenizer
def vocabulary_style(tok: Tokenizer) -> ReasoningStyle | None:
    """Return the first style of thinking whose tags are all tokens of the vocabulary; None if no style's are."""
    return _first_owned(tok, _candidates(tok))


@per_tokenizer
def vocabulary_tools(tok: Tokenizer) -> ToolStyle | None:
    """Return the first style of tool calls whose control tokens are all in the vocabulary; None if no style's are."""
    for style in (as_spelled(tok, style) for style in TOOL_STYLES.values()):
        if style.tokens and _has_all(tok, style.tokens) and not any(_has_all(tok, (text,)) for text in style.unlike):
            return style
    return None


@per_tokenizer
def shown_tokens(tok: Tokenizer, style: ReasoningStyle | ToolStyle | None) -> dict[int, str]:
    """Return the special tokens that occur in a style's markup: a mapping of token id to text, empty for None."""
    marks = Harmony.MARKS if style is not None and style.name == HARMONY else () if style is None else style.marks
    joined = "\0".join(marks)
    return {token_id: text for text, token_id in tok.special_tokens.items() if text in joined}


def _first_owned(tok: Tokenizer, styles: tuple[ReasoningStyle, ...]) -> ReasoningStyle | None:
    return next((style for style in styles if style.tokens and _has_all(tok, style.tokens)), None)


def _has_all(tok: Tokenizer, tokens: Iterable[str]) -> bool:
    return all(tok.token_to_id(token) is not None for token in tokens)


@per_tokenizer
def _candidates(tok: Tokenizer) -> tuple[ReasoningStyle, ...]:
    """Return all styles of thinking, with the tags as the vocabulary spells them."""
    return tuple(as_spelled(tok, style) for style in STYLES.values())


def as_spelled(tok: Tokenizer, style: S) -> S:
    """Return a style with its tags, and the places where openers count, as the vocabulary has them.

    Hunyuan's tags end in a word of the model's own (`<think:WORD>`). An opener of thinking that is a control token
    counts anywhere on its line, because a model does not quote it. `<think>` is the exception, even as a control token:
    prose mentions it, in ordinary tokens. Other styles are returned unchanged.
    """
    word = _tag_word(tok)
    if word not in (None, _WORD) and any(_WORD in tag for tag in style.marks):
        fields = {name: _with_word(getattr(style, name), word) for name in style.__struct_fields__}
        style = replace(style, **fields)
    if isinstance(style, ReasoningStyle) and style.opens_at == "line" and _are_never_quoted(tok, style.openers):
        return replace(style, opens_at="anywhere")
    return style


@per_tokenizer
def _are_never_quoted(tok: Tokenizer, openers: tuple[str, ...]) -> bool:
    """Return whether all openers are control tokens that prose does not mention."""
    return all(opener in tok.special_tokens and opener != "<think>" for opener in openers)


def _with_word(value: Any, word: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_word(part, word) for part in value)
    return value.replace(_WORD, word) if isinstance(value, str) else value


@per_tokenizer
def _tag_word(tok: Tokenizer) -> str | None:
    """Return the end of Hunyuan's tags in the vocabulary (`:WORD` of `<think:WORD>`); None if it has no such tags."""
    return next((found[1] for text in tok.control_texts if (found := _WORDED.fullmatch(text))), None)


@per_tokenizer
def _turn_ends(tok: Tokenizer, style: ReasoningStyle | None) -> tuple[_core.IdSet, int]:
    """Return the ids of the control tokens that end a turn of a prompt, and the length of the longest opening tag.

    Tags of `style`, or of any style if it is None, do not end a turn.
    """
    styles = _candidates(tok) if style is None else (style,)
    tags = {token for style in styles for token in style.tokens}
    # The BOS token does not end a turn: where it is the only control token (Llama 2), a user's text follows it.
    ids = {tok.token_to_id(text) for text in tok.control_texts if text not in tags} - {tok.bos_id, *tok.affixes()[0]}
    # End tokens count too, because the role tokens of DeepSeek and others are not special tokens.
    ends = _core.IdSet([token_id for token_id in tok.eos_ids | ids if token_id is not None])
    return ends, max(len(opener + style.label) for style in styles for opener in style.openers)


def _after_start(tok: Tokenizer, prompt_ids: Sequence[int], start: str) -> Iterator[str] | None:
    """Decode the prompt after its last token `start`, which begins a message; None if it has no such token.

    Return the text in parts.
    """
    start_id = tok.token_to_id(start)
    if start_id is None:
        return None
    turn = LastTurn(tok, prompt_ids, _core.IdSet([start_id]))
    return turn.texts() if turn.begins else None


def _opened(candidates: Sequence[ReasoningStyle], turn: LastTurn, longest: int) -> list[ReasoningStyle]:
    """Return the candidate styles in which the text of a turn leaves the thinking open.

    Args:
        candidates: The styles to try.
        turn: The last turn of a prompt.
        longest: Most characters of an opening tag.

    """
    # An opener that ends the prompt opens the thinking wherever it stands on its line ("Assistant: <think>"); one with
    # text after it is the beginning of an answer that the model continues, and obeys the style's policy.
    ending = turn.ending(longest)
    open_at_end = {
        c.name
        for c in candidates
        if ending.removesuffix(c.label).endswith(tuple(opener.rstrip() for opener in c.openers))
    }
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
    """Return those of `marks` that occur in a text that is given in parts; no mark has more than `longest` characters."""
    found: set[str] = set()
    before = ""
    for part in texts:
        text = before + part
        found |= {mark for mark in marks if mark in text}
        before = text[max(0, len(text) - longest + 1) :]
    return found
