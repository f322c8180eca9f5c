"""Client of vLLM: ids in and out over HTTP, by `/inference/v1/generate` with `/v1/completions` as fallback.

The first exists on servers that run with `--enable-scale-out` or `--tokens-only` (up to 0.29 on all), and on NVIDIA
Dynamo, which takes no `stream`. The second has taken ids as a prompt and returned ids since 0.10.2.

Written by the protocol of vLLM 0.33 (`scale_out/token_in_token_out/protocol.py`); closing the connection ends the
generation there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any

from anyio import move_on_after
from msgspec import Struct, field
from msgspec.structs import replace

from tokenweir.encode.base.options import check_flags
from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.engine_server import (
    SAME_NAMES,
    EngineServer,
    Event,
    ServerError,
    cut_text,
    request_fields,
)
from tokenweir.stream.engines.served_model import ModelCardEngine
from tokenweir.stream.events.media import MediaKind, MediaPrompt
from tokenweir.stream.events.prompt_scores import PromptScores
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep, likeliest

NAMES = SAME_NAMES | {
    name: name for name in ("seed", "n", "max_tokens", "min_tokens", "repetition_penalty", "stop_token_ids", "grammar")
}
REQUEST_EXTRA = frozenset({"model", "cache_salt", "priority", "kv_transfer_params", "ec_transfer_params"})
SAMPLING_EXTRA = frozenset(
    {
        "allowed_token_ids",
        "bad_words",
        "structured_outputs",
        "thinking_token_budget",
        "repetition_detection",
        "extra_args",
    }
)
USAGE_SECONDS = 1.0
"""Most seconds that the last ids of an answer wait for its usage."""
NO_GENERATE = frozenset({403, 404, 405})
"""Statuses of `/inference/v1/generate` on servers that do not have it; newer ones without `--enable-scale-out` forbid it."""
FINISH_REASONS = {"stop": "stop", "length": "length", "repetition": "stop"}


class _Candidate(Struct):
    logprob: float
    token_id: int | None = None
    token: str = ""

    @property
    def id(self) -> int:
        """The token's id; older servers give it as the text `token_id:N` only."""
        return _named_id(self.token) if self.token_id is None else self.token_id


class _TokenLogprob(_Candidate):
    top_logprobs: list[_Candidate] = field(default_factory=list)


class _Logprobs(Struct):
    content: list[_TokenLogprob] | None = None  # in /inference/v1/generate
    token_logprobs: list[float | None] | None = None  # in /v1/completions
    top_logprobs: list[dict[str, float] | None] | None = None  # likewise


class _VllmChoice(Struct):
    index: int = 0
    token_ids: list[int] | None = None
    text: str = ""
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _PromptDetails(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens_details: _PromptDetails | None = None


class _VllmChunk(Event):
    choices: list[_VllmChoice] = field(default_factory=list)
    usage: _Usage | None = None

    @property
    def cached(self) -> int | None:
        """The number of ids of the prompt that the engine had in its prefix cache; None if the chunk does not tell."""
        details = None if self.usage is None else self.usage.prompt_tokens_details
        return None if details is None else details.cached_tokens


class VllmEngine(ModelCardEngine):
    """Engine over a vLLM server, or one with the same protocol.

    Sampling: every field is honoured. `json_schema` and `grammar` become `structured_outputs`. `extra` may have `model`
    (a LoRA adapter's name), `cache_salt`, `priority`, `kv_transfer_params`, and vLLM's further sampling parameters, such
    as `bad_words`. Media go as `content_parts` beside the ids: the server expands the placeholders. It needs
    `/inference/v1/generate` for them, and refuses those that its model does not take. `stop` is not sent: the decoder, which knows what is thinking, finds stop strings and closes.

    Attributes:
        thinks_first: Whether `json_schema` and `grammar` hold only behind the thinking.
        thinking_budget: The server's own parameter for a budget of thinking, or None.
        context_size: Most ids of prompt and answer together, known after a call of `served`.

    """

    media: frozenset[MediaKind] = frozenset({"image", "audio", "video"})
    parallel = True
    cache_salt = "cache_salt"
    supports = frozenset({*NAMES, "logprobs", "top_logprobs", "extra"})

    def __init__(
        self,
        url: str,
        *,
        logprobs: bool = False,
        stream: bool = True,
        thinks_first: bool = False,
        thinking_budget: bool = False,
        **options: Any,
    ) -> None:
        """Configure the client; nothing is sent yet.

        Args:
            url: The server's address without `/v1`, such as `http://127.0.0.1:8000`.
            logprobs: Ask for the logprob of every id.
            stream: False for servers that cannot stream ids, such as Dynamo; the answer then arrives at once.
            thinks_first: Whether the server runs with `--reasoning-parser`: it then applies a schema or a grammar behind the
                thinking only.
            thinking_budget: Whether the server runs with `--reasoning-config`: it then bounds the thinking itself, by
                `thinking_token_budget`.
            **options: As for `EngineServer`: `api_key`, `connect_timeout`, `read_timeout`.

        Raises:
            EngineError: httpx is not installed, or the address is invalid.
            TypeError: An argument is of the wrong type.

        """
        check_flags(logprobs=logprobs, stream=stream, thinks_first=thinks_first, thinking_budget=thinking_budget)
        super().__init__(EngineServer("vLLM", url, **options), logprobs)
        self._stream = stream
        self.thinks_first = thinks_first
        self.thinking_budget = "thinking_token_budget" if thinking_budget else None
        self._has_generate: bool | None = None  # unknown before the first request

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, media: MediaPrompt | None = None
    ) -> AsyncGenerator[EngineStep, None]:
        """Generate from `prompt_ids`; yields ids as the server sends them.

        Raises:
            EngineError: A field cannot be honoured, or the server cannot be reached, refuses or fails; see its `kind`.

        """
        fields = sampling_fields(sampling)
        if sampling.max_tokens == 0:
            return
        request = {name: fields.pop(name) for name in REQUEST_EXTRA & set(fields)} | {"stream": self._stream}
        if self._stream:
            request["stream_options"] = {"include_usage": True}
        most = sampling.top_logprobs
        if self._logprobs or sampling.logprobs or most:
            fields["logprobs"] = most
        ends: set[int] = set()
        if self._has_generate is not False:
            body = request | {"token_ids": list(prompt_ids), "sampling_params": fields | {"detokenize": False}}
            if media is not None:
                body["content_parts"] = content_parts(media)
            try:
                async with aclosing(self._steps("/inference/v1/generate", body, ends, sampling.n, most)) as steps:
                    async for step in steps:
                        self._has_generate = True
                        yield step
            except ServerError as error:
                if error.status not in NO_GENERATE or self._has_generate:
                    raise
                self._has_generate = False
        if self._has_generate is False:
            if media is not None:
                raise EngineError(
                    f"vLLM takes no {media.media[0].kind} beside ids without /inference/v1/generate: "
                    "start it with --enable-scale-out",
                    kind="unsupported",
                )
            if sampling.max_tokens is None and (rest := await self._rest_of_context(len(prompt_ids))) is not None:
                fields["max_tokens"] = rest  # the server's default is 16
            body = request | fields | {"prompt": list(prompt_ids), "return_token_ids": True}
            if most:
                body["return_tokens_as_token_ids"] = True
            async with aclosing(self._steps("/v1/completions", body, ends, sampling.n, most)) as steps:
                async for step in steps:
                    yield step
        if len(ends) < sampling.n:
            raise EngineError(f"vLLM's stream ended before {sampling.n - len(ends)} of {sampling.n} answers did")

    async def score(self, prompt_ids: Sequence[int], sampling: Sampling) -> PromptScores:
        """Return the logprob of each id of a prompt, and the likeliest ids in its place; see `ScoringEngine`.

        The server's `/v1/completions` repeats the prompt with its logprobs, and one id behind it that is not used.

        Raises:
            EngineError: The server cannot be reached, refuses or fails, or does not repeat the prompt.

        """
        fields, most = sampling_fields(sampling), sampling.top_logprobs
        body = {name: fields[name] for name in REQUEST_EXTRA & set(fields)} | {
            "prompt": list(prompt_ids),
            "echo": True,
            "stream": False,
            "logprobs": most,
            "max_tokens": 1,
            "temperature": 0,
            "return_tokens_as_token_ids": True,
        }
        async with aclosing(self._server.events("/v1/completions", body, _VllmChunk)) as events:
            chunk = await anext(events, None)
        given = None if chunk is None or not chunk.choices else chunk.choices[0].logprobs
        scores = None if given is None else given.token_logprobs
        tops = _tops(given, most) if most and given is not None else ()
        count = len(prompt_ids)
        if scores is None or len(scores) < count or None in scores[1:count] or (most and len(tops) < count):
            raise EngineError("vLLM gives no logprobs of the prompt")
        return PromptScores(scores[:count], tops[:count])

    async def _steps(
        self, path: str, body: dict[str, Any], ends: set[int], answers: int, most: int
    ) -> AsyncGenerator[EngineStep, None]:
        """Yield the steps of a request, and add the index of each answer that ends to `ends`.

        The server sends the number of cached ids behind the last ids, where the reader has closed the stream. So the
        last step waits for it, at most `USAGE_SECONDS`.

        Args:
            path: The path of the endpoint.
            body: The request.
            ends: The set of the answers that have ended.
            answers: The number of answers that were asked for.
            most: Most candidates of an id to report.

        """
        async with aclosing(self._server.events(path, body, _VllmChunk)) as events:
            async for chunk in events:
                cached = chunk.cached
                for choice in chunk.choices:
                    if choice.finish_reason is not None:
                        ends.add(choice.index)
                    if cached is None and len(ends) == answers and choice is chunk.choices[-1]:
                        with move_on_after(USAGE_SECONDS), suppress(EngineError):  # the answer is whole without it
                            last = await anext(events, None)
                            cached = None if last is None else last.cached
                        yield replace(_step(choice, most), cached=cached)
                        return
                    yield replace(_step(choice, most), cached=cached)


def content_parts(media: MediaPrompt) -> list[dict[str, str]]:
    """Return media as the field `content_parts` of a request to `/inference/v1/generate`.

    The digest of each is its `uuid`, by which the engine caches it.
    """
    return [{"type": f"{each.kind}_url", "url": each.url, "uuid": each.digest} for each in media.media]


def sampling_fields(sampling: Sampling) -> dict[str, Any]:
    """Return the fields of a sampling as vLLM names them, and those of its `extra`; without stop strings.

    Raises:
        EngineError: A field cannot be honoured, or a key of `extra` is unknown to vLLM.

    """
    fields = request_fields("vLLM", sampling, NAMES, REQUEST_EXTRA | SAMPLING_EXTRA)
    for name, theirs in (("json_schema", "json"), ("grammar", "grammar")):
        if name in fields:
            fields["structured_outputs"] = {theirs: fields.pop(name)}
    return fields


def _named_id(token: str) -> int:
    """Return the id N of a token that vLLM names `token_id:N`; raise `EngineError` for any other text."""
    number = token.removeprefix("token_id:")
    if number == token or not (number.isascii() and number.isdigit() and len(number) < 10):
        raise EngineError(f"vLLM gives a candidate without its id: {cut_text(token)!r}")
    return int(number)


def _tops(given: _Logprobs, most: int) -> list[list[tuple[int, float]]]:
    if given.content is not None:
        return [likeliest(((each.id, each.logprob) for each in row.top_logprobs), most) for row in given.content]
    rows = ((row or {}).items() for row in given.top_logprobs or ())
    return [likeliest(((_named_id(token), logprob) for token, logprob in row), most) for row in rows]


def _step(choice: _VllmChoice, most: int) -> EngineStep:
    if choice.token_ids is None and choice.text:
        raise EngineError("vLLM gives text without ids: return_token_ids needs 0.10.2 or later")
    ids = choice.token_ids or []
    reason = None
    if choice.finish_reason is not None and (reason := FINISH_REASONS.get(choice.finish_reason)) is None:
        raise EngineError(f"vLLM ended answer {choice.index} by {cut_text(choice.finish_reason)!r}")
    logprobs: list[float | None] | None = None
    tops = None
    if choice.logprobs is not None:
        tops = _tops(choice.logprobs, most) if most else None
        given = choice.logprobs.token_logprobs
        logprobs = given if given is not None else [token.logprob for token in choice.logprobs.content or ()]
    return EngineStep(ids, logprobs, reason, choice.index, top_logprobs=tops)
