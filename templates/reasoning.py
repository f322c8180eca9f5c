"""How a template's model marks its thinking."""

from __future__ import annotations

# Style to the tags round the thinking; the names are those of `stream.styles`, where parsing is described. The more
# particular come first, since a template of one of these styles may mention `<think>` as well.
TAGS = {
    "gemma4": ("<|channel>", "<channel|>"),
    "seed-oss": ("<seed:think>", "</seed:think>"),
    "cohere": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "mistral": ("[THINK]", "[/THINK]"),
    "kimi-vl": ("◁think▷", "◁/think▷"),
    "minimax-m3": ("<mm:think>", "</mm:think>"),
    "longcat": ("<longcat_think>", "</longcat_think>"),
    "apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "solar-open": ("<|think:start|>", "<|think:end|>"),
    "think": ("<think>", "</think>"),
}


def reasoning_style(source: str) -> str | None:
    """The style whose opening or closing tag stands in the template, or None."""
    return next((style for style, tags in TAGS.items() if any(tag in source for tag in tags)), None)


def content_tags(source: str) -> tuple[str, ...]:
    """The tags that the template may look for in an assistant's content, to cut old thinking away."""
    return tuple(tag for tags in TAGS.values() for tag in tags if tag in source)
