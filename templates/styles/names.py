"""Styles by name: their own, or that of a family of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

REASONING_FAMILIES: dict[str, str] = {
    "gpt-oss": "harmony",
    "beam": "harmony",
    "qwen3": "think",
    "qwq": "think",
    "deepseek": "think",
    "deepseek-r1": "think",
    "deepseek-v3": "think",
    "deepseek-v4": "think",
    "glm": "think",
    "glm45": "think",
    "exaone4": "think",
    "exaone-deep": "thought",
    "holo2": "think",
    "granite": "think-response",
    "interns1": "think",
    "kimi-k2": "think",
    "kimi-k25": "think",
    "spark3": "think",
    "ling": "think",
    "mirothinker": "think",
    "mimo": "think",
    "minimax": "think",
    "minimax-m2": "think",
    "nemotron": "think",
    "nemotron-3": "think",
    "olmo3": "think",
    "poolside-v1": "think",
    "smollm3": "think",
    "step3": "think",
    "step3p5": "think",
    "telechat4": "think",
    "berrylm": "think",
    "kolibri1": "think",
    "apertus2509": "apertus",
    "cohere-command3": "cohere",
    "cohere-command4": "cohere",
    "command-a": "cohere",
    "ernie45": "think-response",
    "gemma": "gemma4",
    "hy-v3": "hunyuan",
    "hy-v4": "hunyuan",
    "gigachat35": "think",
    "iquest-q1": "think",
    "nanbeige": "think",
    "dots": "think",
    "deepseek-v41": "think",
    "k2-horizon": "k2-v3",
    "muse-glimmer": "muse",
    "musespark1x": "muse",
    "kimi": "kimi-vl",
    "minicpm3": "minicpm4",
    "magistral": "mistral",
    "seed": "seed-oss",
    "glm47": "think",
    "ling3": "think",
    "openai-gptoss": "harmony",
    "nemotron-v3": "think",
    "granite-thinking-parser": "think-response",
    "minicpmv": "think",
    "minimax-append-think": "think",
    "minimax-m2-append-think": "think",
    "step5": "think",
    "qwen3-thinking": "think",
}
"""The name of a family's style of thinking, for families of models that share one."""

TOOL_FAMILIES: dict[str, str] = {
    "gpt-oss": "harmony",
    "beam": "harmony",
    "functionary-v3.1": "functionary",
    "deepseek-r1": "deepseek",
    "deepseek-v3": "deepseek",
    "deepseek-v31": "deepseek",
    "deepseek-v32": "deepseek-v3.2",
    "glm45": "glm",
    "glm46": "glm",
    "glm47": "glm",
    "glm53-flash": "glm",
    "hy-v3": "hunyuan-v3",
    "hy-v4": "hunyuan-v3",
    "deepseek-v41": "deepseek-v4.1",
    "iquest-coder-v2": "iquest-coder",
    "hyperclovax-seed-think": "glm",
    "gigachat35": "gigachat3.5",
    "nanbeige": "qwen3-coder",
    "berrylm": "qwen3-coder",
    "kolibri1": "qwen3-coder",
    "step5": "qwen3-coder",
    "trinity": "hermes",
    "granite4": "hermes",
    "k2-horizon": "k2-v3",
    "muse-glimmer": "muse",
    "poolside-v1": "glm",
    "ling3": "glm",
    "nemotron-3": "qwen3-coder",
    "qwen35": "qwen3-coder",
    "qwen36": "qwen3-coder",
    "step3p5": "qwen3-coder",
    "gemma": "gemma4",
    "llama4": "pythonic",
    "minimax": "minimax-m2",
    "minimax-m2-sanitized": "minimax-m2",
    "seed": "seed-oss",
    "ernie45": "hermes",
    "qwen": "hermes",
    "qwen25": "hermes",
    "qwen3": "hermes",
    "smollm3": "hermes",
    "hunyuan-a13b": "tool-calls",
    "jamba": "tool-calls",
    "minimax-m1": "tool-calls",
    "llama": "llama3",
    "llama3-json": "llama3",
    "llama31": "llama3.1",
    "llama32": "llama3",
    "command-a": "cohere",
    "command-r7b": "cohere",
    "kimi": "kimi-k2",
    "kimi-k25": "kimi-k2",
    "minicpm3": "minicpm4",
    "cohere-command3": "cohere",
    "cohere-command4": "cohere",
    "llama4-json": "llama3",
    "llama4-pythonic": "pythonic",
    "mimo": "qwen3-coder",
    "openai": "harmony",
    "phi4-mini-json": "phi4-functools",
    "qwen3-json": "hermes",
    "qwen3-xml": "qwen3-coder",
    "musespark1x": "muse",
    "apertus2509": "apertus",
    "deepseekv3": "deepseek",
    "deepseekv31": "deepseek",
    "deepseekv32": "deepseek-v3.2",
    "deepseekv4": "deepseek-v4",
    "deepseekv41": "deepseek-v4.1",
    "interns1": "internlm",
    "hunyuan": "hunyuan-v3",
    "nemotron-json": "nemotron",
    "openpangu-v2": "lfm2",
    "qwen25-coder": "qwen2.5-coder",
    "rwkv": "rwkv7",
    "spark25": "glm",
    "spark3": "glm",
}
"""The name of a family's style of tool calls, likewise."""


def named_style(name: str, kind: str, styles: Mapping[str, T], families: Mapping[str, str]) -> T:
    """Look up a style by its name or that of a family of models; case and `_` for `-` make no difference.

    Args:
        name: The style's name, or a family's.
        kind: The noun for such a style in error messages.
        styles: The styles by their names.
        families: For each name of a family the name of its style.

    Raises:
        TypeError: The name is no string.
        ValueError: No style has the name; the message lists those that exist.

    """
    if not isinstance(name, str):
        raise TypeError(
            f"a {kind} is given by its name or as an object of its own, not as {type(name).__name__} {name!r:.80}"
        )
    key = name.lower().replace("_", "-")
    found = styles.get(families.get(key, key))
    if found is None:
        raise ValueError(f"unknown {kind} {name!r}; known are {', '.join([*styles, *families])}")
    return found
