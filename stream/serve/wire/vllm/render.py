"""Request fields for vLLM-like engines that this server's own interfaces do not have."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from tokenweir.stream.engines.vllm import SAMPLING_EXTRA
from tokenweir.stream.serve.wire.shared.checking import convert
from tokenweir.stream.serve.wire.vllm.generate import TokenId

F = TypeVar("F", bound="EngineFields")

Candidates = Annotated[int, Meta(ge=0, le=20)]


class EngineFields(Struct, frozen=True, kw_only=True):
    """Fields for the engine that every request to render may have; names and meanings are vLLM's.

    Attributes:
        return_origins: Extension: ask for the origins of the prompt's ids, such as the template or a message.

    """

    cache_salt: Annotated[str, Meta(min_length=1, max_length=1024)] | None = None
    priority: int = 0
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    allowed_token_ids: list[TokenId] | None = None
    bad_words: list[str] | None = None
    structured_outputs: dict[str, Any] | None = None
    thinking_token_budget: int | None = None
    repetition_detection: dict[str, Any] | None = None
    mm_payload: Literal["none"] | None = None
    return_origins: bool = False

    def sampling(self) -> dict[str, Any]:
        """Return those fields that are sampling parameters and are set, by their names."""
        names = (name for name in self.__struct_fields__ if name in SAMPLING_EXTRA)
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class ChatEngineFields(EngineFields, frozen=True, kw_only=True):
    """Fields for the engine that a chat request may have besides OpenAI's."""

    top_logprobs: Candidates | None = None
    include_reasoning: bool = True


class CompletionEngineFields(EngineFields, frozen=True, kw_only=True):
    """Fields for the engine that a completion request may have besides OpenAI's."""

    logprobs: Candidates | None = None


def split(body: dict[str, Any], struct: type[F]) -> tuple[F, dict[str, Any]]:
    """Split a request's body into the engine's fields and all others.

    Args:
        body: The decoded JSON object.
        struct: The struct of the engine's fields.

    Returns:
        The engine's fields, validated, and the remaining body.

    Raises:
        RequestError: One of the engine's fields is invalid.

    """
    names = struct.__struct_fields__
    fields = convert({name: body[name] for name in names if body.get(name) is not None}, struct)
    return fields, {name: value for name, value in body.items() if name not in names}
