from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tokenweir.templates import ChatTemplate
from tokenweir.templates.tool_styles import TOOL_FAMILIES, TOOL_STYLES, tool_style_of


def test_names_and_families_find_their_style():
    assert tool_style_of("hermes") is tool_style_of("Qwen3") is TOOL_STYLES["hermes"]
    assert tool_style_of("deepseek_v31") is TOOL_STYLES["deepseek"]
    assert tool_style_of(TOOL_STYLES["llama3"]).bare
    assert set(TOOL_FAMILIES.values()) <= set(TOOL_STYLES)
    assert not set(TOOL_FAMILIES) & set(TOOL_STYLES)


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(ValueError, match=r"^unknown tool style 'xml'; known are harmony, deepseek, kimi-k2, "):
        tool_style_of("xml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"opens": ()}, r"tool style 'hermes': nothing opens a block, or the empty text does: \(\)"),
        ({"opens": ("",)}, r"tool style 'hermes': nothing opens a block, or the empty text does: \('',\)"),
        ({"header": "(a)"}, r"tool style 'hermes': header '\(a\)' has no group 'name'"),
    ],
)
def test_a_style_that_no_text_could_have_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TOOL_STYLES["hermes"], **change)


@pytest.mark.parametrize("style", TOOL_STYLES.values(), ids=lambda style: style.name)
def test_no_text_of_a_style_is_the_beginning_of_another(style):
    marks = [*style.opens, style.closes, style.call_opens, style.call_closes, *style.tails, *style.separators]
    marks = list(filter(None, marks))
    for mark in marks:
        assert [other for other in marks if other.startswith(mark)] == [mark]
    assert re.compile(style.header)


@pytest.mark.parametrize(
    ("name", "style"),
    [
        ("Qwen-Qwen3-0.6B", "hermes"),
        ("Qwen-Qwen2.5-7B-Instruct", "hermes"),
        ("NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes"),
        ("meta-llama-Llama-3.1-8B-Instruct", "llama3"),
        ("mistralai-Mistral-Nemo-Instruct-2407", "mistral"),
        ("Mistral-Small-3.2-24B-Instruct-2506", "mistral"),
        ("deepseek-ai-DeepSeek-V3.1", "deepseek"),
        ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek"),
        ("Kimi-K2-Instruct", "kimi-k2"),
        ("MiniMax-M1", "tool-calls"),
        ("NVIDIA-Nemotron-Nano-v2", "nemotron"),
        ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "cohere"),
        ("ibm-granite-granite-3.3-2B-Instruct", "granite"),
        ("meetkai-functionary-medium-v3.1", "functionary"),
        ("openai-gpt-oss-120b", "harmony"),
        ("GLM-4.6", None),
        ("ByteDance-Seed-OSS", None),
        ("google-gemma-4-31B-it", None),
        ("google-gemma-2-2b-it", None),
    ],
)
def test_real_templates_show_their_style(name, style, data):
    assert ChatTemplate.from_file(data(f"templates/{name}.jinja")).tool_style == style
