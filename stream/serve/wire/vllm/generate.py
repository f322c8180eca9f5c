"""Request and response of vLLM 0.33's `POST /inference/v1/generate`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from tokenweir.stream.serve.wire.shared.errors import RequestError

TokenId = Annotated[int, Meta(ge=0, lt=1 << 31)]
Count = Annotated[int, Meta(ge=0)]


class Placeholder(Struct, frozen=True):
    """A stretch of a prompt's ids that stands for an image or another medium; the engine replaces it."""

    offset: int
    length: int


class Features(Struct, frozen=True):
    """The media of a prompt, in lists by their kind such as `image`, in the order of their placeholders.

    Attributes:
        mm_hashes: The SHA-256 of each medium's bytes, in hexadecimal.
        mm_placeholders: The place of each medium in the prompt's ids.

    """

    mm_hashes: dict[str, list[str]]
    mm_placeholders: dict[str, list[Placeholder]]


class PromptOrigin(Struct, frozen=True, omit_defaults=True):
    """A stretch of a prompt's ids whose text comes from one origin.

    Attributes:
        start: Index of its first id.
        end: Index of the id after its last one.
        origin: `"template"`, `"engine"` (written by the template engine), or a path into the template's variables such
            as `messages[3].content`.
        changed: Whether the text differs from that of the origin, for example by escapes.
        role: The role of the message it comes from; None if it comes from no message.

    """

    start: int
    end: int
    origin: str
    changed: bool = False
    role: str | None = None


class PromptOrigins(Struct, frozen=True):
    """The origins of a prompt's text.

    Attributes:
        spans: The stretches of the prompt's ids.
        left_out: Paths of texts that do not appear in the prompt; see `Prompt.left_out`.

    """

    spans: list[PromptOrigin]
    left_out: list[str]


class GenerateRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of `POST /inference/v1/generate`, a request in ids to an engine; unset fields are omitted.

    Two fields are extensions: `left_out`, the paths of the request's parts that the prompt omits, and `origins`, which
    `return_origins` asks for.
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
    """A token and the natural logarithm of its probability.

    Servers before October 2026 send `token_id:N` in `token` instead of a `token_id`.
    """

    logprob: float
    token_id: TokenId | None = None
    token: str | None = None
    rank: int | None = None


class Sampled(Candidate, frozen=True):
    """A generated token, and the likeliest tokens in its place."""

    top_logprobs: list[Candidate] = []


class SampledTokens(Struct, frozen=True):
    """Logprobs of an answer: one item for each of its ids."""

    content: list[Sampled] | None = None


class Choice(Struct, frozen=True):
    """One answer of an engine in ids, or an increment of it in a stream."""

    index: Count
    token_ids: list[TokenId] | None = None
    logprobs: SampledTokens | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None


class TokensDetails(Struct, frozen=True):
    """Number of ids of thinking; None if the engine does not report it."""

    reasoning_tokens: Count | None = None


class PromptDetails(Struct, frozen=True):
    """Number of the prompt's ids that the engine had in its cache; None if it does not report that."""

    cached_tokens: Count | None = None


class EngineUsage(Struct, frozen=True):
    """Token counts that an engine reports."""

    prompt_tokens: Count = 0
    completion_tokens: Count | None = 0
    completion_tokens_details: TokensDetails | None = None
    prompt_tokens_details: PromptDetails | None = None


class Generated(Struct, frozen=True):
    """The response of `POST /inference/v1/generate`: an engine's answers in ids, or a chunk of a stream of them."""

    choices: list[Choice]
    request_id: str | None = None
    usage: EngineUsage | None = None
    prompt_token_ids: list[TokenId] | None = None
    output_mode: str | None = None


def check_mode(generated: Generated, field: str) -> None:
    """Raise `RequestError` if the engine has decoded the answer to text itself.

    Only answers in ids can be decoded here. `field` is the answer's path in the request.
    """
    if generated.output_mode not in (None, "tokens"):
        raise RequestError(
            f"{field}.output_mode is {generated.output_mode!r}; only answers in tokens can be decoded",
            param=f"{field}.output_mode",
        )
