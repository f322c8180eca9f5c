"""Styles that every template of the data shows: the style of its thinking, that of its calls, and when its prompt opens thinking."""

from __future__ import annotations

import pytest

from tokenweir import ChatTemplate, Tokenizer
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.parsers.detection import find_splitter, read_prompt
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.reasoning import STYLES

SHOWN = {
    "templates/ByteDance-Seed-OSS": ("seed-oss", "seed-oss", ""),
    "templates/CohereForAI-c4ai-command-r7b-12-2024-tool_use": ("cohere", "cohere", ""),
    "templates/GLM-4.6": ("think", "glm", ""),
    "templates/HuggingFaceTB-SmolLM3-3B": ("think", None, ""),
    "templates/Kimi-K2-Instruct": (None, "kimi-k2", ""),
    "templates/Kimi-K2-Thinking": ("think", "kimi-k2", ""),
    "templates/MiniMax-M1": (None, "tool-calls", ""),
    "templates/Mistral-Small-3.2-24B-Instruct-2506": (None, "mistral", ""),
    "templates/NVIDIA-Nemotron-Nano-v2": ("think", "nemotron", "always"),
    "templates/NousResearch-Hermes-3-Llama-3.1-8B-tool_use": (None, "hermes", ""),
    "templates/Qwen-QwQ-32B": ("think", "hermes", "asked"),
    "templates/Qwen-Qwen2.5-7B-Instruct": (None, "hermes", ""),
    "templates/Qwen-Qwen3-0.6B": ("think", "hermes", ""),
    "templates/deepseek-ai-DeepSeek-R1-Distill-Llama-8B": ("think", "deepseek", "always"),
    "templates/deepseek-ai-DeepSeek-V3.1": ("think", "deepseek", "asked"),
    "templates/google-gemma-2-2b-it": (None, None, ""),
    "templates/google-gemma-4-31B-it": ("gemma4", "gemma4", ""),
    "templates/ibm-granite-granite-3.3-2B-Instruct": ("think-response", "granite", ""),
    "templates/meetkai-functionary-medium-v3.1": (None, "functionary", ""),
    "templates/meta-llama-Llama-3.1-8B-Instruct": (None, "llama3.1", ""),
    "templates/meta-llama-Llama-3.3-70B-Instruct": (None, "llama3.1", ""),
    "templates/microsoft-Phi-3.5-mini-instruct": (None, None, ""),
    "templates/mistralai-Mistral-Nemo-Instruct-2407": (None, "mistral", ""),
    "templates/openai-gpt-oss-120b": ("harmony", "harmony", ""),
    "templates-more/Apriel-1.6-15b-Thinker-fixed": ("apriel", "tool-calls", "always"),
    "templates-more/GLM-4.7-Flash": ("think", "glm", "unless refused"),
    "templates-more/LFM2-8B-A1B": (None, "lfm2", ""),
    "templates-more/MiniMax-M2": ("think", "minimax-m2", "always"),
    "templates-more/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("think", "qwen3-coder", "unless refused"),
    "templates-more/Qwen3-Coder": (None, "qwen3-coder", ""),
    "templates-more/StepFun3.5-Flash": ("think", "qwen3-coder", "always"),
    "templates-more/deepseek-ai-DeepSeek-V3.2": ("think", "deepseek-v3.2", "asked"),
    "templates-more/google-gemma-4-31B-it-interleaved": ("gemma4", "gemma4", ""),
    "templates-more/meetkai-functionary-medium-v3.2": (None, "functionary-v3.2", ""),
    "templates-more/tencent-Hy3": ("hunyuan", "hunyuan-v3", ""),
    "templates-more/upstage-Solar-Open-100B": ("solar-open", "solar-open", ""),
}
"""The styles of thinking and of calls, and whether thinking has begun where the answer begins: in every prompt, in those
that ask for it, in all but those that ask for none, or (an empty text) in none."""

OPENED = {"": (False, False, False), "asked": (False, True, False), "unless refused": (True, True, False)}
OPENED["always"] = (True, True, True)
ASKED = ({}, {"enable_thinking": True, "thinking": True}, {"enable_thinking": False, "thinking": False})

PARAMETERS = {"type": "object", "properties": {"a": {"type": "string", "description": ""}}}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "", "parameters": PARAMETERS}}]


def tokenizer_of(template):
    """The embedded vocabulary with a template's control tokens."""
    tok = Tokenizer.default()
    new = [token for token in template.control_tokens if tok.token_to_id(token) is None]
    return tok.with_added_tokens([AddedToken(token, special=True) for token in new]) if new else tok


@pytest.mark.parametrize(("name", "shown"), SHOWN.items())
def test_real_templates_show_styles_and_start_state(name, shown, data):
    template = ChatTemplate.from_file(data(f"{name}.jinja"), special_tokens={"bos_token": "<s>"})
    thinking, calls, opened = shown
    assert (template.reasoning, template.tool_style) == (thinking, calls)
    tok = tokenizer_of(template)
    style = STYLES[thinking] if thinking else None
    tools = TOOLS if "tools" in template.variables else None
    for variables, inside in zip(ASKED, OPENED[opened], strict=True):
        prompt = template.render([{"role": "user", "content": "Hello"}], tools=tools, **variables)
        ids = prompt.encode(tok)
        assert read_prompt(tok, ids, style).inside == inside
        if style is not None:
            ending = prompt.text.rstrip().removesuffix(style.label)
            assert ending.endswith(tuple(opener.rstrip() for opener in style.openers)) == inside
            splitter, _ = find_splitter(tok, ids, style)
            assert splitter.channel is (Channel.REASONING if inside else Channel.ANSWER)


def test_every_template_of_the_data_is_in_the_table(data):
    folders = ("templates", "templates-more")
    assert {f"{folder}/{path.stem}" for folder in folders for path in data(folder).glob("*.jinja")} == set(SHOWN)
