"""The chat templates of real models and the embedded one, one test id each."""

from __future__ import annotations

from pathlib import Path

import pytest

import tokenweir.encode

EMBEDDED = Path(tokenweir.encode.__file__).parent / "data" / "chat_template.jinja"

NAMES = [
    "ByteDance-Seed-OSS",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use",
    "GLM-4.6",
    "HuggingFaceTB-SmolLM3-3B",
    "Kimi-K2-Instruct",
    "Kimi-K2-Thinking",
    "MiniMax-M1",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "NVIDIA-Nemotron-Nano-v2",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
    "Qwen-QwQ-32B",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai-DeepSeek-V3.1",
    "google-gemma-2-2b-it",
    "google-gemma-4-31B-it",
    "ibm-granite-granite-3.3-2B-Instruct",
    "meetkai-functionary-medium-v3.1",
    "meta-llama-Llama-3.1-8B-Instruct",
    "meta-llama-Llama-3.3-70B-Instruct",
    "microsoft-Phi-3.5-mini-instruct",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "openai-gpt-oss-120b",
]

MORE = [
    "Apriel-1.6-15b-Thinker-fixed",
    "GLM-4.7-Flash",
    "LFM2-8B-A1B",
    "MiniMax-M2",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "Qwen3-Coder",
    "StepFun3.5-Flash",
    "deepseek-ai-DeepSeek-V3.2",
    "google-gemma-4-31B-it-interleaved",
    "meetkai-functionary-medium-v3.2",
    "tencent-Hy3",
    "upstage-Solar-Open-100B",
]
FOLDERS = dict.fromkeys(NAMES, "templates") | dict.fromkeys(MORE, "templates-more")


@pytest.fixture(params=["embedded", *FOLDERS])
def source(request, data):
    """Source of a chat template; the test runs once for each template."""
    name = request.param
    path = EMBEDDED if name == "embedded" else data(f"{FOLDERS[name]}/{name}.jinja")
    return path.read_text("utf-8")


@pytest.fixture
def template_paths():
    """Folders of the real chat templates, relative to the folder of test data."""
    return [f"{folder}/{name}.jinja" for name, folder in FOLDERS.items()]
