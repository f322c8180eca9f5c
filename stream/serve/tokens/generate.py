"""Request and response of vLLM 0.33's `POST /inference/v1/generate`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from tokenweir.stream.serve.wire.errors import RequestError

TokenId = Annotated[int, Meta(ge=0, lt=1 << 31)]
Count = Annotated[int, Meta(ge=0)]


class Placeholder(Struct, frozen=True):
    """The ids of a placeholder, as the template writes it; an engine expands them."""

    offset: int
    length: int


class Features(Struct, frozen=True):
    """The media of a prompt by their kind, in the order of their placeholders.

    Attributes:
        mm_hashes: The SHA-256 of their bytes, in hexadecimal.

    """

    mm_hashes: dict[str, list[str]]
    mm_placeholders: dict[str, list[Placeholder]]


class PromptOrigin(Struct, frozen=True, omit_defaults=True):
    """A stretch of a prompt that one origin wrote, as `OriginSpan` has it, by the prompt's ids.

    Attributes:
        end: The id behind its last one.
        origin: `"template"`, `"engine"`, or a path into the template's variables.
        changed: The text is not that of the origin.

    """

    start: int
    end: int
    origin: str
    changed: bool = False
    role: str | None = None


class PromptOrigins(Struct, frozen=True):
    """The origins of a prompt's text.

    Attributes:
        left_out: Paths of texts that the template wrote nothing of; see `Prompt.left_out`.

    """

    spans: list[PromptOrigin]
    left_out: list[str]


class GenerateRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Request to an engine; unset fields are omitted.

    Two fields are extensions: `left_out`, see `MessageHistory`, and `origins`, which `return_origins` asks for.
    """

    request_id: str
    token_ids: list[int]
    sampling_params: dict[str, Any]
    stream: bool
    model: str | None = None
    stream_options: dict[str, bool] | None = None
    return_token_ids: bool = False
    cache_salt: str | None = None
    priority: int = 0
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    features: Features | None = None
    left_out: list[str] = []
    origins: PromptOrigins | None = None


class Candidate(Struct, frozen=True):
    """A token and the logarithm of its probability; `token` is `token_id:N` from servers before October 2026."""

    logprob: float
    token_id: TokenId | None = None
    token: str | None = None
    rank: int | None = None


class Sampled(Candidate, frozen=True):
    """A generated token, and the likeliest tokens in its place."""

    top_logprobs: list[Candidate] = []


class SampledTokens(Struct, frozen=True):
    """Logprobs of an answer: one item for each id."""

    content: list[Sampled] | None = None


class Choice(Struct, frozen=True):
    """One answer, or its new part in a stream."""

    index: Count
    token_ids: list[TokenId] | None = None
    logprobs: SampledTokens | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None


class TokensDetails(Struct, frozen=True):
    """Number of ids of thinking, if the engine reports it."""

    reasoning_tokens: Count | None = None


class PromptDetails(Struct, frozen=True):
    """Number of the prompt's ids that the engine had in its cache, if it tells."""

    cached_tokens: Count | None = None


class EngineUsage(Struct, frozen=True):
    """An engine's counts."""

    prompt_tokens: Count = 0
    completion_tokens: Count | None = 0
    completion_tokens_details: TokensDetails | None = None
    prompt_tokens_details: PromptDetails | None = None


class Generated(Struct, frozen=True):
    """An engine's answer, or a chunk of its stream."""

    choices: list[Choice]
    request_id: str | None = None
    usage: EngineUsage | None = None
    prompt_token_ids: list[TokenId] | None = None
    output_mode: str | None = None


def check_mode(generated: Generated, field: str) -> None:
    """Raise `RequestError` for text that an engine has decoded itself: stop strings are gone from it."""
    if generated.output_mode not in (None, "tokens"):
        raise RequestError(
            f"{field}.output_mode is {generated.output_mode!r}; only answers in tokens can be decoded",
            param=f"{field}.output_mode",
        )
