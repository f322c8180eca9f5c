"""vLLM's `EngineClient` as an engine: ids in and out within one process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from vllm.inputs import tokens_input
from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.protocol import refuse_unsupported
from tokenweir.stream.engines.vllm import FINISH_REASONS, NAMES, sampling_fields
from tokenweir.stream.events.prompt_scores import PromptScores
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep, likeliest

CALL_OPTIONS = frozenset({"cache_salt", "priority"})
"""Keys of `Sampling.extra` that are not vLLM's sampling parameters."""

REFUSED = frozenset({"model", "kv_transfer_params", "ec_transfer_params"})
"""Keys of `Sampling.extra` that only vLLM's HTTP server has."""


class ClientEngine:
    """Engine over vLLM's `EngineClient`, in the same process.

    Sampling: every field is honoured. `extra` may have `cache_salt`, `priority`, and vLLM's further sampling parameters, such
    as `bad_words`; other keys, and those in `REFUSED`, raise `EngineError`.

    Attributes:
        thinks_first: Whether `json_schema` and `grammar` hold only behind the thinking, as with a reasoning parser.
        context_size: Most ids of prompt and answer together; None if the client does not tell.

    """

    parallel = True
    runs_ahead = True
    supports = frozenset({*NAMES, "logprobs", "top_logprobs", "extra"})

    def __init__(self, client: Any, *, lora_request: Any = None, thinks_first: bool = False) -> None:
        """Wrap a client.

        Args:
            client: vLLM's `EngineClient`.
            lora_request: The LoRA adapter for all requests; None for the base model.
            thinks_first: Whether the engine has a reasoning parser, behind whose end it applies a schema or a grammar.

        """
        self._client = client
        self._lora_request = lora_request
        self.thinks_first = thinks_first
        self.context_size: int | None = getattr(client.model_config, "max_model_len", None)

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> AsyncGenerator[EngineStep, None]:
        """Generate from `prompt_ids`; yield steps with the new ids of each answer. Closing the generator aborts the request.

        Raise `EngineError` for a field of `sampling` that cannot be honoured, and if vLLM ends an answer by an abort
        or an error.
        """
        parameters, called = _parameters(sampling)
        if sampling.max_tokens == 0:
            return
        async with aclosing(self._outputs(prompt_ids, parameters, called)) as outputs:
            async for output in outputs:
                for answer in output.outputs:
                    yield _step(answer, sampling.top_logprobs, output.num_cached_tokens)

    async def score(self, prompt_ids: Sequence[int], sampling: Sampling) -> PromptScores:
        """Return the logprob of each id of a prompt, and the likeliest ids in its place; see `ScoringEngine`.

        vLLM generates one id behind the prompt, which is not used. Raise `EngineError` if it gives no logprobs.
        """
        most = sampling.top_logprobs
        asked = Sampling(max_tokens=1, temperature=0, extra=sampling.extra)
        parameters, called = _parameters(asked, prompt_logprobs=most)
        async with aclosing(self._outputs(prompt_ids, parameters, called)) as outputs:
            rows = [output.prompt_logprobs async for output in outputs if output.prompt_logprobs]
        if not rows or len(rows[0]) != len(prompt_ids):
            raise EngineError("vLLM gives no logprobs of the prompt")
        places = [row or {} for row in rows[0]]
        logprobs = [row[token_id].logprob if row else None for token_id, row in zip(prompt_ids, places, strict=True)]
        return PromptScores(logprobs, [_likeliest(row, most) for row in places] if most else ())

    def _outputs(self, prompt_ids: Sequence[int], parameters: Any, called: dict[str, Any]) -> AsyncGenerator[Any, None]:
        outputs: AsyncGenerator[Any, None] = self._client.generate(
            tokens_input([int(token_id) for token_id in prompt_ids], cache_salt=called.get("cache_salt")),
            parameters,
            f"tokenweir-{uuid4().hex}",
            lora_request=self._lora_request,
            priority=called.get("priority", 0),
        )
        return outputs


def _parameters(sampling: Sampling, **more: Any) -> tuple[Any, dict[str, Any]]:
    """Convert a sampling to vLLM's `SamplingParams`, with `more` fields, and the further options of its `generate` call.

    Raise `EngineError` for an unsupported field.
    """
    refuse_unsupported("vLLM", sampling, ClientEngine.supports)
    for name in REFUSED & set(sampling.extra):
        raise EngineError(f"vLLM's engine cannot honour extra[{name!r}]", kind="unsupported", option="extra")
    fields = sampling_fields(sampling)
    called = {name: fields.pop(name) for name in CALL_OPTIONS & set(fields)}
    fields.setdefault("max_tokens", None)  # vLLM's own default is 16; None is the rest of the context
    if "structured_outputs" in fields:
        fields["structured_outputs"] = StructuredOutputsParams(**fields["structured_outputs"])
    if "stop_token_ids" in fields:
        fields["stop_token_ids"] = list(fields["stop_token_ids"])
    if sampling.logprobs or sampling.top_logprobs:
        fields["logprobs"] = sampling.top_logprobs
    return SamplingParams(detokenize=False, output_kind=RequestOutputKind.DELTA, **fields, **more), called


def _likeliest(place: Any, most: int) -> list[tuple[int, float]]:
    """Return the `most` likeliest ids of vLLM's candidates for one place."""
    return likeliest(((token_id, candidate.logprob) for token_id, candidate in place.items()), most)


def _step(answer: Any, most: int, cached: int | None) -> EngineStep:
    reason = None
    if answer.finish_reason is not None and (reason := FINISH_REASONS.get(answer.finish_reason)) is None:
        raise EngineError(f"vLLM ended answer {answer.index} by {answer.finish_reason!r}")
    ids, logprobs, tops = list(answer.token_ids), None, None
    if answer.logprobs is not None:
        logprobs = [place[token_id].logprob for token_id, place in zip(ids, answer.logprobs, strict=True)]
        tops = [_likeliest(place, most) for place in answer.logprobs] if most else None
    return EngineStep(ids, logprobs, reason, answer.index, cached=cached, top_logprobs=tops)
