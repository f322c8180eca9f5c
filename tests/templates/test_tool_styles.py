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
    marks = list(dict.fromkeys(filter(None, marks)))
    for mark in marks:
        assert [other for other in marks if other.startswith(mark)] == [mark]
    assert re.compile(style.header)


SHOWN = {
    "templates/ByteDance-Seed-OSS": ("seed-oss", "seed-oss"),
    "templates/CohereForAI-c4ai-command-r7b-12-2024-tool_use": ("cohere", "cohere"),
    "templates/GLM-4.6": ("think", "glm"),
    "templates/HuggingFaceTB-SmolLM3-3B": ("think", None),
    "templates/Kimi-K2-Instruct": (None, "kimi-k2"),
    "templates/Kimi-K2-Thinking": ("think", "kimi-k2"),
    "templates/MiniMax-M1": (None, "tool-calls"),
    "templates/Mistral-Small-3.2-24B-Instruct-2506": (None, "mistral"),
    "templates/NVIDIA-Nemotron-Nano-v2": ("think", "nemotron"),
    "templates/NousResearch-Hermes-3-Llama-3.1-8B-tool_use": (None, "hermes"),
    "templates/Qwen-QwQ-32B": ("think", "hermes"),
    "templates/Qwen-Qwen2.5-7B-Instruct": (None, "hermes"),
    "templates/Qwen-Qwen3-0.6B": ("think", "hermes"),
    "templates/deepseek-ai-DeepSeek-R1-Distill-Llama-8B": ("think", "deepseek"),
    "templates/deepseek-ai-DeepSeek-V3.1": ("think", "deepseek"),
    "templates/google-gemma-2-2b-it": (None, None),
    "templates/google-gemma-4-31B-it": ("gemma4", "gemma4"),
    "templates/ibm-granite-granite-3.3-2B-Instruct": ("think-response", "granite"),
    "templates/meetkai-functionary-medium-v3.1": (None, "functionary"),
    "templates/meta-llama-Llama-3.1-8B-Instruct": (None, "llama3"),
    "templates/meta-llama-Llama-3.3-70B-Instruct": (None, "llama3"),
    "templates/microsoft-Phi-3.5-mini-instruct": (None, None),
    "templates/mistralai-Mistral-Nemo-Instruct-2407": (None, "mistral"),
    "templates/openai-gpt-oss-120b": ("harmony", "harmony"),
    "templates-more/Apriel-1.6-15b-Thinker-fixed": ("apriel", "tool-calls"),
    "templates-more/GLM-4.7-Flash": ("think", "glm"),
    "templates-more/LFM2-8B-A1B": (None, "lfm2"),
    "templates-more/MiniMax-M2": ("think", "minimax-m2"),
    "templates-more/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("think", "qwen3-coder"),
    "templates-more/Qwen3-Coder": (None, "qwen3-coder"),
    "templates-more/StepFun3.5-Flash": ("think", "qwen3-coder"),
    "templates-more/deepseek-ai-DeepSeek-V3.2": ("think", "deepseek-v3.2"),
    "templates-more/google-gemma-4-31B-it-interleaved": ("gemma4", "gemma4"),
    "templates-more/meetkai-functionary-medium-v3.2": (None, None),
    "templates-more/tencent-Hy3": ("hunyuan", "hunyuan-v3"),
    "templates-more/upstage-Solar-Open-100B": ("solar-open", "solar-open"),
}
"""The styles of thinking and of calls that each template shows."""


@pytest.mark.parametrize(("name", "styles"), SHOWN.items())
def test_real_templates_show_their_styles(name, styles, data):
    template = ChatTemplate.from_file(data(f"{name}.jinja"))
    assert (template.reasoning, template.tool_style) == styles


def test_every_template_of_the_data_is_in_the_table(data):
    folders = ("templates", "templates-more")
    assert {f"{folder}/{path.stem}" for folder in folders for path in data(folder).glob("*.jinja")} == set(SHOWN)
