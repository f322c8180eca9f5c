"""Requests that bring an engine's answer in ids, whole or in chunks, to be decoded."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from tokenweir.stream.serve.wire.vllm.generate import Count, Generated, TokenId


class OneAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Common fields of the bodies that bring one answer, or a chunk of one.

    Attributes:
        stream: Whether the body brings a chunk.
        model: The model's name; None is the default model.
        prompt_tokens: The number of the prompt's ids, for the usage; None counts the ids.
        prompt_token_ids: The prompt's ids; None takes those of the engine's answer, or else of the chat request's
            messages.

    """

    stream: bool = False
    model: str | None = None
    prompt_tokens: Count | None = None
    prompt_token_ids: list[TokenId] | None = None


class DerenderChat(OneAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/chat/completions/derender`.

    `generate_response` is an engine's answer in ids, and `chat_request` the request that it answers.
    """

    generate_response: Generated
    chat_request: dict[str, Any] | None = None


class DerenderCompletion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/completions/derender`: an engine's answers in ids, one for each prompt.

    The lists `prompt_tokens` and `prompt_token_ids` have one item for each prompt as well.
    """

    generate_responses: list[Generated]
    stream: bool = False
    model: str | None = None
    prompt_tokens: list[Count] | None = None
    prompt_token_ids: list[list[TokenId] | None] | None = None
    completion_request: dict[str, Any] | None = None


class StateToken(Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a stream as clients carry it from one call to the next; opaque to them."""

    state: str


class StreamState(Struct, frozen=True, array_like=True):
    """The state of a stream of chunks, inside a `StateToken`.

    Attributes:
        decoder: The decoder's saved state; empty only before the first chunk, and never in a client's `StateToken`.
        id: The completion's id.
        created: Time of the first chunk, in seconds since 1970.
        chars: Number of characters of the answer's text in all chunks so far.
        prompt_tokens: Number of the prompt's ids.

    """

    decoder: Annotated[bytes, Meta(min_length=1)]
    id: str
    created: int
    chars: Count
    prompt_tokens: Count


class AnyChunkRequest(OneAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Common fields of the bodies of chunked derender requests.

    `stream_state` is that of the last call's result, None with the first chunk. The prompt's ids are used with the
    first chunk only.
    """

    generate_chunk: Generated
    stream_state: StateToken | None = None


class ChunkRequest(AnyChunkRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/completions/derender` with `stream`: one chunk of an answer in ids.

    `completion_request` is the request that the chunk answers.
    """

    completion_request: dict[str, Any] | None = None


class ChatChunkRequest(AnyChunkRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/chat/completions/derender` with `stream`: one chunk of an answer in ids.

    `chat_request` is the request that the chunk answers.
    """

    chat_request: dict[str, Any] | None = None
