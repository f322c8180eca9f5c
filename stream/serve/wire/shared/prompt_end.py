"""The end of a prompt: the opening of a new message of the assistant, or the last message, which the answer continues."""

from __future__ import annotations

from typing import Any, Literal

from tokenweir.stream.serve.wire.shared.errors import RequestError

Continued = bool | Literal["content", "reasoning_content"]
"""Value of `continue_final_message`, as vLLM and llama.cpp have it: the field of the last message that the answer continues.

True is its content, False none."""


def prompt_end_kwargs(add_generation_prompt: bool | None, continued: Continued) -> dict[str, Any]:
    """Return the arguments of `ChatTemplate.render` that set how the prompt ends; empty for the usual end.

    Args:
        add_generation_prompt: Whether the prompt ends with the opening of a new message of the assistant. None, which is
            the default of requests, means yes, unless the last message is continued.
        continued: Whether the prompt ends inside the last message, so that the answer is its continuation.

    Raises:
        RequestError: The last message is to be continued and a new one to be opened.

    """
    if continued:
        if add_generation_prompt:
            raise RequestError(
                "the last message is to be continued, and add_generation_prompt, which opens a new one, is true",
                param="add_generation_prompt",
            )
        return {"add_generation_prompt": False, "continue_final_message": continued}
    return {} if add_generation_prompt is not False else {"add_generation_prompt": False}
