"""Styles of thinking: the table `reasoning.toml` of tags and policies.

A style is a pair of tags with a policy for each case in which tags do not pair. The tags are those of the models' own
chat templates and of vLLM 0.33, SGLang 0.5.23, mlx-lm 0.32.2, llama.cpp and Ollama. `shown.py` searches
templates for them, and `stream/decode/parsers/reasoning.py` finds them in what a model generates.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args

from msgspec import Struct, convert
from msgspec.structs import replace

from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.names import named_style, read_table

OpensAt = Literal["line", "start", "anywhere"]
UnmatchedCloser = Literal["keep", "drop_first", "drop"]
RepeatedOpener = Literal["drop_first", "keep", "drop"]
AfterCloser = Literal["keep", "strip_newlines", "strip"]


class ReasoningStyle(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A style of thinking: the tags around it in a model's answer, and the policies for tags that do not pair.

    A tag that counts is removed from the text. Thinking without a closing tag, because the answer was cut short, is still
    thinking.
    `msgspec.structs.replace(STYLES["think"], opens_at="anywhere")` makes a style with another policy.

    Attributes:
        name: The style's name, as in `STYLES`.
        openers: Texts that begin the thinking.
        closers: Texts that end the thinking; each closes any opener, anywhere.
        tokens: The control tokens of the tags. A vocabulary that has all of them uses the style, and they are found
            even if special tokens are skipped.
        opens_at: The places where an opener in the answer counts. `line`: only white space precedes it on its line, so
            a tag mentioned in a sentence stays text. `start`: only white space precedes it in the answer. `anywhere`:
            any place.
        unmatched_closer: The treatment of a closer in the answer. `keep`: it stays as text. `drop_first`: it is removed
            if only white space precedes it. `drop`: it is removed. The first one after a call that has ended the
            thinking is always removed.
        repeated_opener: The treatment of an opener inside the thinking. `drop_first`: it is removed if only white space
            precedes it, because template and model have both opened the thinking. `keep`: it stays as text. `drop`: it
            is removed. Thinking does not nest: the first closer ends it.
        after_closer: The treatment of white space after a closer: it stays (`keep`), or line ends (`strip_newlines`) or
            all of it (`strip`) are removed.
        after_opener: The treatment of white space after an opener, likewise.
        label: A word that may follow an opener and is removed with it.
        wrappers: Control tokens around the answer itself, which are removed anywhere.
        envelope: A pair of texts around the whole answer, or empty. They are removed if the first begins the answer;
            elsewhere they are text.
        enders: Texts that end the thinking without a closer, and are kept: the start of a tool call or of an answer.
            They count at the beginning of a line, or before an object, a tag or a name with a tag, so that thinking may
            mention them.
        token_enders: Enders that are control tokens, which count anywhere.
        framed: Whether the answer itself is between tags that are ordinary text. They are removed even if the caller
            wants the thinking left in the answer.
        separate: Whether the thinking is separated from the answer. If not, it is part of the answer, without the tags
            and wrappers.
        strip: Whether the thinking is dropped.
        shows: Texts that together show the style in a template or its output; if empty, its marks show it.
        unlike: Texts that exclude the style in a template.

    Raises:
        ValueError: No tags, an empty tag, a tag that is the beginning of another, or an unknown policy.

    """

    name: str
    openers: tuple[str, ...]
    closers: tuple[str, ...]
    tokens: tuple[str, ...] = ()
    opens_at: OpensAt = "line"
    unmatched_closer: UnmatchedCloser = "keep"
    repeated_opener: RepeatedOpener = "drop_first"
    after_closer: AfterCloser = "keep"
    after_opener: AfterCloser = "keep"
    label: str = ""
    wrappers: tuple[str, ...] = ()
    envelope: tuple[str, ...] = ()
    enders: tuple[str, ...] = ()
    token_enders: tuple[str, ...] = ()
    framed: bool = False
    separate: bool = True
    strip: bool = False
    shows: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """All texts of the style that are removed from an answer: openers, closers, wrappers and envelope."""
        return self.openers + self.closers + self.wrappers + self.envelope

    def __post_init__(self) -> None:
        """Raise `ValueError` for invalid fields; the class lists the cases."""
        tags = self.openers + self.closers + self.wrappers + self.envelope + self.enders + self.token_enders
        if len(self.envelope) not in (0, 2):
            raise ValueError(f"reasoning style {self.name!r}: envelope {self.envelope} is no pair of texts")
        if not self.openers or not self.closers or "" in tags:
            raise ValueError(f"reasoning style {self.name!r} lacks an opener or a closer, or has an empty one: {tags}")
        for place, tag in enumerate(tags):
            for other in tags[:place] + tags[place + 1 :]:
                if other.startswith(tag):
                    raise ValueError(f"reasoning style {self.name!r}: tag {tag!r} is the beginning of tag {other!r}")
        for field, allowed in (
            ("opens_at", OpensAt),
            ("unmatched_closer", UnmatchedCloser),
            ("repeated_opener", RepeatedOpener),
            ("after_closer", AfterCloser),
            ("after_opener", AfterCloser),
        ):
            value = getattr(self, field)
            if value not in get_args(allowed):
                known = ", ".join(get_args(allowed))
                raise ValueError(f"reasoning style {self.name!r}: {field} is {value!r}, not one of {known}")


@cache
def ended_by_calls(style: ReasoningStyle, calls: ToolStyle) -> ReasoningStyle:
    """Return a copy of a style of thinking whose thinking also ends where a tool call begins.

    The opening texts of `calls` are added: control tokens to `token_enders`, which count anywhere, and others to `enders`.
    `doubtful` ones, and those that share a beginning with a tag of the style, are left out.
    """
    tags = [*style.marks, *style.enders, *style.token_enders]
    found: dict[bool, list[str]] = {True: [], False: []}
    for opener in calls.opens:
        if opener not in calls.doubtful and not any(opener.startswith(tag) or tag.startswith(opener) for tag in tags):
            found[opener in calls.tokens].append(opener)
            tags.append(opener)
    if not any(found.values()):
        return style
    return replace(style, enders=(*style.enders, *found[False]), token_enders=(*style.token_enders, *found[True]))


HARMONY, INKLING, MUSE = "harmony", "inkling", "muse"
MESSAGES = (HARMONY, INKLING, MUSE)
"""Styles that are more than pairs of tags: thinking, calls and answer are messages, which one splitter reads."""


_ROWS, REASONING_FAMILIES = read_table("reasoning.toml")

STYLES: dict[str, ReasoningStyle] = {name: convert(row, ReasoningStyle) for name, row in _ROWS.items()}
"""Every style by its name. The particular come first: where several are shown, the first is taken."""


def style_of(style: str | ReasoningStyle) -> ReasoningStyle:
    """Look up a style by its own name or that of a family of models; case and `_` for `-` make no difference.

    Args:
        style: A name, or a style, which is given back.

    Raises:
        TypeError: It is neither.
        ValueError: No style has the name; the message lists those that exist.

    """
    return (
        style
        if isinstance(style, ReasoningStyle)
        else named_style(style, "reasoning style", STYLES, REASONING_FAMILIES)
    )
