"""How models mark their thinking: a table of styles, as data.

A style is a pair of tags with a policy for each case in which tags do not simply pair. The tags are those that the
models' own chat templates and vLLM 0.33, SGLang 0.5.23, mlx-lm 0.32.2 and Ollama use.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

OpensAt = Literal["line", "start", "anywhere"]
UnmatchedCloser = Literal["keep", "drop"]
RepeatedOpener = Literal["drop_first", "keep", "drop"]


class ReasoningStyle(Struct, frozen=True, kw_only=True):
    """Tags round the thinking, and what happens where they do not pair.

    A tag that counts is cut out; white space round it stays. Thinking that is cut short stays thinking.
    `msgspec.structs.replace(STYLES["think"], opens_at="anywhere")` makes a style with another policy.

    Attributes:
        name: The name it has in `STYLES`.
        openers: Texts that begin the thinking.
        closers: Texts that end it; any of them closes any opener, wherever it stands.
        tokens: The control tokens that the tags consist of. A vocabulary that has them all is taken to use the style,
            and they are found even where special tokens are skipped.
        opens_at: Where an opener in the answer counts: `line`, first on its line but for white space (a tag that is
            mentioned in a sentence stays text); `start`, before any of the answer but white space; or `anywhere`.
        unmatched_closer: A closer in the answer stays as text (`keep`) or is cut out (`drop`).
        repeated_opener: An opener inside the thinking is cut out where only white space comes before it (`drop_first`:
            the template has opened the thinking and the model opens it again), stays as text everywhere (`keep`), or
            is cut out everywhere (`drop`). Thinking does not nest: the first closer ends it.

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

    def __post_init__(self) -> None:
        """Refuse a style that could not be parsed the same way however its text is cut."""
        tags = self.openers + self.closers
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
        ):
            value = getattr(self, field)
            if value not in get_args(allowed):
                known = ", ".join(get_args(allowed))
                raise ValueError(f"reasoning style {self.name!r}: {field} is {value!r}, not one of {known}")


def _pair(name: str, opener: str, closer: str, *tokens: str) -> ReasoningStyle:
    return ReasoningStyle(name=name, openers=(opener,), closers=(closer,), tokens=tokens or (opener, closer))


STYLES: dict[str, ReasoningStyle] = {
    style.name: style
    for style in (
        _pair("think", "<think>", "</think>"),
        _pair("mistral", "[THINK]", "[/THINK]"),
        _pair("seed-oss", "<seed:think>", "</seed:think>"),
        _pair("kimi-vl", "◁think▷", "◁/think▷"),
        _pair("gemma4", "<|channel>thought\n", "<channel|>", "<|channel>", "<channel|>"),
        _pair("cohere", "<|START_THINKING|>", "<|END_THINKING|>"),
        _pair("minimax-m3", "<mm:think>", "</mm:think>"),
        ReasoningStyle(
            name="k2-v3",
            openers=("<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"),
            closers=("</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>"),
            tokens=("<ifm|think>", "</ifm|think>"),
        ),
        _pair(
            "plamo3",
            "<|plamo:begin_think:plamo|>",
            "<|plamo:end_think:plamo|>",
            "<|plamo:begin_",
            "<|plamo:end_",
            ":plamo|>",
        ),
        _pair("longcat", "<longcat_think>", "</longcat_think>"),
        _pair("apertus", "<|inner_prefix|>", "<|inner_suffix|>"),
        _pair("solar-open", "<|think:start|>", "<|think:end|>"),
    )
}
"""Every style by its name, the commonest first: where a vocabulary shows several, the first is taken."""

FAMILIES: dict[str, str] = {
    "qwen3": "think",
    "qwq": "think",
    "deepseek": "think",
    "deepseek-r1": "think",
    "deepseek-v3": "think",
    "glm": "think",
    "glm45": "think",
    "granite": "think",
    "interns1": "think",
    "kimi-k2": "think",
    "ling": "think",
    "minimax-m2": "think",
    "nemotron": "think",
    "smollm3": "think",
    "step3": "think",
    "command-a": "cohere",
    "gemma": "gemma4",
    "kimi": "kimi-vl",
    "magistral": "mistral",
    "seed": "seed-oss",
}
"""Families of models by the name of their style, for those that share one."""


def style_of(style: str | ReasoningStyle) -> ReasoningStyle:
    """Look up a style by its own name or that of a family of models; case and `_` for `-` make no difference.

    Args:
        style: A name, or a style, which is given back.

    Raises:
        ValueError: No style has the name; the message lists those that exist.

    """
    if isinstance(style, ReasoningStyle):
        return style
    key = style.lower().replace("_", "-")
    found = STYLES.get(FAMILIES.get(key, key))
    if found is None:
        known = ", ".join([*STYLES, *FAMILIES])
        raise ValueError(f"unknown reasoning style {style!r}; known are {known}")
    return found
