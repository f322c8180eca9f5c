"""A pytest plugin for the suite of renderers: models from ../shared/data, and `TemplateRenderer` if TOKENWEIR_PATCH is set."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import renderers
import renderers.base
from renderers.base import _resolve_renderer_config as resolve_config
from stand_ins import DATA, tags, with_tokens

sys.path += [os.environ["TOKENWEIR_SUITE"], os.path.join(os.environ["TOKENWEIR_SUITE"], "tests")]


class Model(NamedTuple):
    """A model of the suite, made of files of the data's folder.

    Attributes:
        template: Its chat template, in the data's folder.
        end: The token that ends an answer.
        tokenizer: The tokenizer; the tags of the template become tokens of it.
        bos: The token that begins a prompt.
        tokens: Further tokens.

    """

    template: str
    end: str
    tokenizer: str = "qwen3"
    bos: str | None = None
    tokens: tuple[str, ...] = ()


MODELS = {
    "Qwen/Qwen3-8B": Model("templates/Qwen-Qwen3-0.6B", "<|im_end|>"),
    "Qwen/Qwen2.5-0.5B-Instruct": Model("templates/Qwen-Qwen2.5-7B-Instruct", "<|im_end|>"),
    "meta-llama/Llama-3.2-1B-Instruct": Model(
        "templates/meta-llama-Llama-3.1-8B-Instruct", "<|eot_id|>", "llama-3.1", "<|begin_of_text|>"
    ),
    "zai-org/GLM-4.7-Flash": Model("templates-more/GLM-4.7-Flash", "<|user|>"),
    "MiniMaxAI/MiniMax-M2.5": Model("templates-more/MiniMax-M2", "[e~[", tokens=("]~!b[", "]~b]")),
    "moonshotai/Kimi-K2-Instruct": Model("templates/Kimi-K2-Instruct", "<|im_end|>"),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": Model(
        "templates-more/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "<|im_end|>"
    ),
}
"""Models whose templates are at hand. Where the tokenizer is another model's, the library and tokenweir get the same one."""


@cache
def model_folder(name: str) -> Path:
    """Return the folder of a model, made at the first call; skip the test if the model's files are missing."""
    if name not in MODELS:
        pytest.skip(f"no files of {name}")
    model = MODELS[name]
    template = (DATA.parent / f"{model.template}.jinja").read_text("utf-8")
    special = {key: token for key, token in (("eos_token", model.end), ("bos_token", model.bos)) if token}
    tokens = [*tags(template), *model.tokens, *special.values()]
    return with_tokens(model.tokenizer, name, tokens, chat_template=template, **special)


@cache
def load_tokenizer(name: str) -> Any:
    """Return transformers' tokenizer of a model; replaces `renderers.base.load_tokenizer`."""
    import transformers

    found = transformers.AutoTokenizer.from_pretrained(model_folder(name))
    found.name_or_path = name
    return found


@cache
def own_tokenizer(name: str) -> Any:
    """Return tokenweir's tokenizer of a model."""
    from tokenweir import Tokenizer

    return Tokenizer.from_file(model_folder(name))


def create_renderer(tokenizer: Any, config: Any = None, *, chat_template_kwargs: Any = None) -> Any:
    """Return a `TemplateRenderer` for a tokenizer and configuration; replaces the library's function of this name."""
    from tokenweir import ChatTemplate
    from tokenweir.integrations.renderers import TemplateRenderer

    tok = own_tokenizer(tokenizer.name_or_path)
    config = resolve_config(tokenizer, config, chat_template_kwargs=chat_template_kwargs)
    given = config.model_dump(exclude_unset=True, exclude={"name", "tool_parser", "reasoning_parser"})
    keep_thinking = given.pop("thinking_retention", None) == "all"
    found = TemplateRenderer(tok, ChatTemplate.from_tokenizer(tok), keep_thinking=keep_thinking, **given)
    vars(found)["config"] = config  # the suite makes others of it
    return found


# Before the suite's conftest.py, which takes these functions by name.
for module in (renderers, renderers.base):
    module.load_tokenizer = load_tokenizer
    if os.environ.get("TOKENWEIR_PATCH"):
        module.create_renderer = create_renderer
