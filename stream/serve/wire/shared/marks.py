"""Fields of clients that have no effect on a message, a part of its content, an item or a tool."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct


class CacheMarks(Struct, frozen=True, kw_only=True):
    """Base of structs that may have marks for a provider's cache of prompts.

    `cache_control` is Anthropic's mark, which clients such as OpenCode and LiteLLM send in every interface;
    `prompt_cache_breakpoint` is OpenAI's. The prompt cache of this server needs neither, so they are not read.
    """

    cache_control: Any = UNSET
    prompt_cache_breakpoint: Any = UNSET
