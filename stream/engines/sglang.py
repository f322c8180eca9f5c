"""Client of SGLang: ids in and out over HTTP, by `/generate`; works with `--skip-tokenizer-init`.

Its stream repeats all ids in every chunk, unless the server runs with `--incremental-streaming-output`. The mode is
detected by `completion_tokens`. Written by the protocol of SGLang 0.5.23 (`io_struct.py`);
closing the connection ends the generation there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Struct

from tokenweir.encode.base.options import check_flags
from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.engine_server import SAME_NAMES, EngineServer, Event, cut_text, request_fields
from tokenweir.stream.engines.protocol import refuse_several
from tokenweir.stream.engines.served_model import ModelCardEngine
from tokenweir.stream.events.media import MediaKind, MediaPrompt
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep, likeliest

NAMES = SAME_NAMES | {
    "max_tokens": "max_new_tokens",
    "min_tokens": "min_new_tokens",
    "seed": "sampling_seed",
    "grammar": "ebnf",
    "repetition_penalty": "repetition_penalty",
    "stop_token_ids": "stop_token_ids",
}
REQUEST_EXTRA = frozenset({"lora_path", "cache_salt", "extra_key", "priority"})
SAMPLING_EXTRA = frozenset({"regex", "stop_regex", "structural_tag", "stream_interval"})
FINISH_REASONS = {"stop": "stop", "length": "length"}


class _End(Struct):
    type: str
    message: str = ""


class _Meta(Struct):
    completion_tokens: int
    finish_reason: _End | None = None
    cached_tokens: int | None = None
    output_token_logprobs: list[tuple[float | None, int, Any]] | None = None
    output_top_logprobs: list[list[tuple[float | None, int, Any]] | None] | None = None


class _SglangChunk(Event):
    meta_info: _Meta | None = None
    output_ids: list[int] | None = None
    index: int = 0


class SglangEngine(ModelCardEngine):
    """Engine over an SGLang server.

    Sampling: every field is honoured; `grammar` is EBNF. `extra` may have `lora_path`, `cache_salt`, `extra_key`, `priority`,
    `regex`, `stop_regex`, `structural_tag`. `stop` is not sent: the decoder, which knows what is thinking, finds stop
    strings and closes. `n` above 1 becomes that many requests. Media go as `image_data`, `audio_data` and `video_data`
    beside the ids: the server expands the placeholders, and refuses media that its model does not take.

    Attributes:
        thinks_first: Whether `json_schema` and `grammar` hold only behind the thinking.
        context_size: Most ids of prompt and answer together, known after a call of `served`.

    """

    media: frozenset[MediaKind] = frozenset({"image", "audio", "video"})
    supports = frozenset({*NAMES, "logprobs", "top_logprobs", "extra"})
    cache_salt = "extra_key"

    def __init__(self, url: str, *, logprobs: bool = False, thinks_first: bool = False, **options: Any) -> None:
        """Configure the client; nothing is sent yet.

        Args:
            url: The server's address, such as `http://127.0.0.1:30000`.
            logprobs: Ask for the logprob of every id.
            thinks_first: Ask the server to apply a schema or a grammar behind the thinking only (`require_reasoning`), for
                which it must run with `--reasoning-parser`.
            **options: As for `EngineServer`: `api_key`, `connect_timeout`, `read_timeout`.

        Raises:
            EngineError: httpx is not installed, or the address is invalid.
            TypeError: An argument is of the wrong type.

        """
        check_flags(logprobs=logprobs, thinks_first=thinks_first)
        super().__init__(EngineServer("SGLang", url, **options), logprobs)
        self.thinks_first = thinks_first

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, media: MediaPrompt | None = None
    ) -> AsyncGenerator[EngineStep, None]:
        """Generate from `prompt_ids`; yields ids as the server sends them.

        Raises:
            EngineError: A field cannot be honoured, or the server cannot be reached, refuses or fails; see its `kind`.

        """
        refuse_several("SGLang", sampling)
        fields = sampling_fields(sampling)
        if sampling.max_tokens == 0:
            return
        if sampling.max_tokens is None and (rest := await self._rest_of_context(len(prompt_ids))) is not None:
            fields["max_new_tokens"] = rest  # the server's default is 128
        body = {name: fields.pop(name) for name in REQUEST_EXTRA & set(fields)}
        body |= {"input_ids": list(prompt_ids), "sampling_params": fields, "stream": True}
        for each in () if media is None else media.media:
            body.setdefault(f"{each.kind}_data", []).append(each.url)
        if self.thinks_first and not fields.keys().isdisjoint(("json_schema", "ebnf")):
            body["require_reasoning"] = True
        most = sampling.top_logprobs
        if self._logprobs or sampling.logprobs or most:
            body["return_logprob"] = True
        if most:
            body["top_logprobs_num"] = most
        given = 0
        async with aclosing(self._server.events("/generate", body, _SglangChunk)) as events:
            async for chunk in events:
                step = _step(chunk, given, most)
                given += len(step.ids)
                yield step
                if step.finish_reason is not None:
                    return
        raise EngineError("SGLang's stream ended before the answer did")


def sampling_fields(sampling: Sampling) -> dict[str, Any]:
    """Return the fields of a sampling as SGLang names them, and those of its `extra`; without stop strings.

    Raises:
        EngineError: A field cannot be honoured, or a key of `extra` is unknown to SGLang.

    """
    fields = request_fields("SGLang", sampling, NAMES, REQUEST_EXTRA | SAMPLING_EXTRA)
    if "json_schema" in fields:
        fields["json_schema"] = msgspec.json.encode(fields["json_schema"]).decode()
    return fields


def _step(chunk: _SglangChunk, given: int, most: int) -> EngineStep:
    """Return the step with the new ids of a chunk of SGLang's stream.

    Args:
        chunk: The chunk, which has either the new ids or all ids of the answer.
        given: The number of ids in the steps so far.
        most: Most candidates of an id to report.

    Raises:
        EngineError: The chunk is incomplete or contradicts the ids before it.

    """
    meta = chunk.meta_info
    if meta is None or chunk.output_ids is None:
        raise EngineError("SGLang sends a chunk without output_ids and meta_info")
    end = meta.finish_reason
    if end is not None and end.type not in FINISH_REASONS:
        raise EngineError(f"SGLang ended the answer by {cut_text(end.type)!r}: {cut_text(end.message)}")
    ids = chunk.output_ids
    if len(ids) == meta.completion_tokens:
        ids = ids[given:]  # the chunk repeats all ids
    elif given + len(ids) != meta.completion_tokens:  # the chunk has the new ids only
        raise EngineError(f"SGLang sends {len(ids)} ids after {given} and counts {meta.completion_tokens}")
    logprobs = None
    if meta.output_token_logprobs is not None and ids:
        logprobs = [logprob for logprob, _, _ in meta.output_token_logprobs[-len(ids) :]]
    tops = None
    if most and meta.output_top_logprobs is not None and ids:
        rows = meta.output_top_logprobs[-len(ids) :]
        tops = [likeliest(((token_id, logprob) for logprob, token_id, _ in row or ()), most) for row in rows]
    reason = None if end is None else FINISH_REASONS[end.type]
    return EngineStep(ids, logprobs, reason, cached=meta.cached_tokens, top_logprobs=tops)
