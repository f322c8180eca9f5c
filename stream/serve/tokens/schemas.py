"""The two schemas in which requests are rendered: vLLM's, and that of SGLang's renderer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from tokenweir.stream.engines.vllm import sampling_fields
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.options import RenderSchemaName
from tokenweir.stream.serve.wire.anthropic.requests import MessageCreate
from tokenweir.stream.serve.wire.openai.chat import SamplingFields
from tokenweir.stream.serve.wire.sglang.generate import (
    SglangChatFields,
    SglangCompletionFields,
    SglangFields,
    SglangRequest,
    sampling_params,
)
from tokenweir.stream.serve.wire.shared.errors import unsupported_parameter
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.vllm.generate import Features, GenerateRequest, PromptOrigins
from tokenweir.stream.serve.wire.vllm.render import ChatEngineFields, CompletionEngineFields, EngineFields

RenderedRequest = GenerateRequest | SglangRequest

_CONSTRAINTS = ("json_schema", "regex", "ebnf")
"""Sampling parameters that SGLang applies behind the thinking if `require_reasoning` is set."""


class Rendered(NamedTuple):
    """A request whose prompt is encoded.

    Attributes:
        prefix: The beginning of a new id, such as `chatcmpl`.
        asked: The request's body, without the fields of the engine.
        fields: The fields of the engine.
        sampling: The sampling.
        ids: The prompt.
        logprobs: How many candidates the client wants beside each id; None for no logprobs.
        salt: The salt that keeps the client apart in the engine's prefix cache.
        features: The media of the prompt.
        origins: The origins of the prompt's ids, if the client wants them.
        left_out: Paths of the request's parts that the prompt omits.
        thinks_first: Whether the engine applies constraints behind the thinking only.

    """

    prefix: str
    asked: Any
    fields: Any
    sampling: Sampling
    ids: list[int]
    logprobs: int | None
    salt: str | None
    features: Features | None
    origins: PromptOrigins | None
    left_out: list[str]
    thinks_first: bool


class RenderSchema(NamedTuple):
    """One schema.

    Attributes:
        fields: The engine's fields of any request.
        chat_fields: Those of a chat request.
        completion_fields: Those of a completion request.
        write: Returns the request in ids.
        fan_out: Returns the requests for several choices of each prompt.
        chat_choices: Whether a chat request may ask for several choices.

    """

    fields: type[Any]
    chat_fields: type[Any]
    completion_fields: type[Any]
    write: Callable[[Rendered], RenderedRequest]
    fan_out: Callable[[list[Any], int], list[Any]]
    chat_choices: bool


def with_left_out(request: RenderedRequest, paths: list[str]) -> RenderedRequest:
    """Return a request whose `left_out` begins with further paths."""
    every = [*paths, *(request.left_out or [])]
    return replace(request, left_out=every) if every else request


def _vllm_request(rendered: Rendered) -> GenerateRequest:
    asked, fields = rendered.asked, rendered.fields
    parameters = sampling_fields(rendered.sampling) | fields.sampling()
    if rendered.sampling.stop:
        parameters["stop"] = list(rendered.sampling.stop)
    if rendered.logprobs is not None:
        parameters["logprobs"] = rendered.logprobs
    request: dict[str, Any] = {}
    if isinstance(asked, SamplingFields):
        if asked.include_stop_str_in_output:
            parameters["include_stop_str_in_output"] = True
        if not asked.skip_special_tokens:
            parameters["skip_special_tokens"] = False
        request["return_token_ids"] = asked.return_token_ids
        if asked.stream:
            request["stream_options"] = {"include_usage": asked.stream_options.include_usage}
    elif isinstance(asked, MessageCreate) and asked.stream:  # a stream of messages ends with its usage
        request["stream_options"] = {"include_usage": True}
    return GenerateRequest(
        request_id=new_id(rendered.prefix),
        token_ids=rendered.ids,
        sampling_params=parameters,
        stream=bool(asked.stream),
        model=asked.model,
        cache_salt=rendered.salt,
        priority=fields.priority,
        kv_transfer_params=fields.kv_transfer_params,
        ec_transfer_params=fields.ec_transfer_params,
        left_out=rendered.left_out,
        features=rendered.features,
        origins=rendered.origins,
        **request,
    )


def _sglang_request(rendered: Rendered) -> SglangRequest:
    """Write a request for `POST /generate`.

    Raises:
        RequestError: The request has media, which the schema has no place for.

    """
    asked, fields = rendered.asked, rendered.fields
    if rendered.features is not None:
        raise unsupported_parameter("media: requests in SGLang's schema have text only")
    given = fields.sampling()
    if isinstance(asked, SamplingFields):
        given["skip_special_tokens"] = asked.skip_special_tokens
        if asked.include_stop_str_in_output:
            given["no_stop_trim"] = True
    parameters = sampling_params(rendered.sampling, given)
    constrained = any(parameters[name] is not None for name in _CONSTRAINTS)
    return SglangRequest(
        rid=fields.rid or new_id(rendered.prefix),
        model=UNSET if asked.model is None else asked.model,
        cache_salt=UNSET if rendered.salt is None else rendered.salt,
        input_ids=rendered.ids,
        require_reasoning=rendered.thinks_first and constrained,
        sampling_params=parameters,
        stream=bool(asked.stream),
        return_logprob=rendered.logprobs is not None,
        top_logprobs_num=rendered.logprobs or 0,
        left_out=rendered.left_out or UNSET,
        origins=UNSET if rendered.origins is None else rendered.origins,
        **fields.metadata(),
    )


def _one_each(requests: list[SglangRequest], choices: int) -> list[SglangRequest]:
    """Return a request for each choice, whose id is that of the first request with a number."""
    every = [request for request in requests for _ in range(choices)]
    one = [request.sampling_params | {"n": 1} for request in every]
    rid = requests[0].rid
    return [
        replace(request, rid=f"{rid}-{number}", sampling_params=parameters)
        for number, (request, parameters) in enumerate(zip(every, one, strict=True))
    ]


SCHEMAS: dict[RenderSchemaName, RenderSchema] = {
    "vllm": RenderSchema(
        EngineFields,
        ChatEngineFields,
        CompletionEngineFields,
        _vllm_request,
        lambda requests, choices: requests,
        True,
    ),
    "sglang": RenderSchema(SglangFields, SglangChatFields, SglangCompletionFields, _sglang_request, _one_each, False),
}
