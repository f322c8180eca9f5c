"""llama.cpp in this process: a GGUF file by the package xllamacpp.

The package runs llama.cpp's server in threads of its own. Requests are handed to it by a call, so no connection is
made; its HTTP port, which it always opens on the loopback address, answers no one, since nobody has its key.

The stream omits ids of characters that are split over tokens, as the server's does; they are inferred. JSON schemas are
enforced by llguidance. llama.cpp ignores a schema that llguidance cannot read, so each new schema is tried out
first.

Verified with xllamacpp 2026.10.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any

import msgspec
from msgspec import Struct

from tokenweir.encode.errors import EngineError, TokenizerFileError
from tokenweir.encode.formats.gguf.metadata import Metadata
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines.llama_server import (
    NAMES,
    CompletionEvent,
    CompletionSteps,
    LikelyToken,
    Probability,
    Timings,
    completion_body,
)
from tokenweir.stream.engines.protocol import check_top_k, room_behind
from tokenweir.stream.engines.sync import SyncEngine
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

MOST_SEEDS = (1 << 32) - 1
"""llama.cpp takes seeds below; this one itself asks for a random seed."""
KNOWN_SCHEMAS = 256
GUIDANCE = {"x-guidance": {"whitespace_flexible": False, "key_separator": ": ", "item_separator": ", "}}
"""llguidance's options in a schema: one way to space JSON, since small models get lost in white space."""
NEVER_JSON = "x"
"""A text with which no JSON value begins."""

_NEUTRAL = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0}
"""Values in place of llama.cpp's own defaults, so that an unset field asks for nothing."""


class _Token(Struct, frozen=True):
    id: int
    logprob: float | None = None
    top_logprobs: list[LikelyToken] = []


class _Tokens(Struct, frozen=True):
    content: list[_Token] = []


class _Choice(Struct, frozen=True):
    text: str = ""
    logprobs: _Tokens | None = None
    finish_reason: str | None = None


class _Count(Struct, frozen=True):
    predicted_n: int | None = None
    cache_n: int | None = None


class _Usage(Struct, frozen=True):
    completion_tokens: int


class _Failure(Struct, frozen=True):
    message: str = ""
    code: int = 500


class _Chunk(Struct, frozen=True):
    choices: list[_Choice] = []
    timings: _Count = _Count()
    usage: _Usage | None = None
    error: _Failure | None = None


MOST_CONTEXT = 8192
"""Most ids of a context that `from_file` makes room for: memory of keys and values is taken at once."""


class XllamacppEngine:
    """Engine over a GGUF file in this process.

    Sampling: as for `LlamaServerEngine`; unset fields ask for nothing, and an unset temperature for llama.cpp's 0.8.
    One generation runs at a time; more wait in a queue.

    The model is loaded by the first generation.

    Attributes:
        context_size: Most ids of prompt and answer together.

    """

    supports = frozenset({*NAMES, "logprobs", "top_logprobs", "extra"})

    def __init__(self, path: Path, tokenizer: Tokenizer, *, context_size: int, threads: int = 1) -> None:
        """Configure the engine.

        Args:
            path: The GGUF file.
            tokenizer: Its tokenizer.
            context_size: Most ids of prompt and answer together.
            threads: Threads that compute.

        """
        self.context_size = context_size
        self._path = path
        self._tokenizer = tokenizer
        self._threads = threads
        self._steps_of = CompletionSteps(tokenizer)
        self._loading = Lock()
        self._loaded: Any = None
        self._enforces = lru_cache(KNOWN_SCHEMAS)(self._tried_out)
        self._engine = SyncEngine(self._steps)

    @classmethod
    def from_file(cls, path: Path) -> XllamacppEngine:
        """Return the engine of a GGUF file, with the tokenizer in the file, on all cores.

        The context is the model's, up to `MOST_CONTEXT` ids.

        Raises:
            EngineError: xllamacpp is not installed.
            TokenizerFileError: The file is no GGUF file, or has no length of a context.

        """
        if find_spec("xllamacpp") is None:
            raise EngineError("a GGUF file needs xllamacpp: pip install 'tokenweir[local]'")
        metadata = Metadata.from_file(path)
        context = metadata.integer(f"{metadata.string('general.architecture')}.context_length")
        if context is None:
            raise TokenizerFileError(f"{path}: the file has no context_length")
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(path, Tokenizer.from_file(path), context_size=min(context, MOST_CONTEXT), threads=threads)

    def __repr__(self) -> str:
        return f"XllamacppEngine({str(self._path)!r})"

    def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling
    ) -> AsyncGenerator[Sequence[int] | EngineStep, None]:
        """Generate from `prompt_ids`; the end token is the last id.

        Raises:
            EngineError: A field or a schema is not supported, the prompt is too long, or the model fails.

        """
        return self._engine.generate(prompt_ids, sampling)

    def _steps(self, prompt_ids: Sequence[int], sampling: Sampling) -> Iterator[EngineStep]:
        if sampling.max_tokens == 0:
            return
        check_top_k(sampling)
        room = room_behind(prompt_ids, self.context_size)
        body = _NEUTRAL | {"repeat_last_n": self.context_size} | completion_body(prompt_ids, sampling)
        body["n_predict"] = min(room, body.get("n_predict", room))
        if sampling.seed is not None:
            body["seed"] = sampling.seed % MOST_SEEDS
        if sampling.json_schema is not None:
            body["json_schema"] = schema = sampling.json_schema | GUIDANCE
            if not self._enforces(msgspec.json.encode(schema)):
                raise EngineError(
                    f"llama.cpp cannot hold an answer to json_schema={sampling.json_schema!r:.80}",
                    kind="unsupported",
                    option="json_schema",
                )
        body["n_probs"] = max(1, sampling.top_logprobs)
        given = 0
        for event in self._events(body):
            step = self._steps_of.step(event, given, sampling.top_logprobs)
            given += len(step.ids)
            yield step

    def _events(self, body: dict[str, Any]) -> Iterator[CompletionEvent]:
        """Run a completion, and yield its events as they come. Closing the iterator stops the completion at its next token.

        Args:
            body: The request, as `/completion` of llama.cpp's server takes it.

        """
        server = self._server()
        chunks: SimpleQueue[_Chunk | BaseException | None] = SimpleQueue()  # bounded by `n_predict`
        closed = Event()

        def take(chunk: dict[str, Any]) -> bool:
            chunks.put(msgspec.convert(chunk, _Chunk))
            return closed.is_set()

        def run() -> None:
            end: BaseException | None = None
            try:
                server.handle_completions({"n_probs": 1} | body | {"timings_per_token": True}, take)
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread that reads
                end = error
            chunks.put(end)

        thread = Thread(target=run, name="tokenweir-llama.cpp", daemon=True)
        thread.start()
        try:
            while isinstance(chunk := chunks.get(), _Chunk):
                if chunk.error is not None:
                    refused = chunk.error.code == 400
                    raise EngineError(f"llama.cpp: {chunk.error.message:.200}", kind="refused" if refused else "failed")
                yield _event_of(chunk)
            if chunk is not None:
                raise EngineError(f"llama.cpp failed: {chunk}") from chunk
        finally:
            closed.set()
            thread.join()

    def _tried_out(self, schema: bytes) -> bool:
        """Return whether llama.cpp enforces a JSON schema, found out by a short generation.

        It asks for a token with which no JSON begins. If that token is generated, the schema is ignored.
        """
        (wrong,) = self._tokenizer.encode(NEVER_JSON, add_special_tokens=False)
        body = {
            "prompt": [wrong],
            "stream": True,
            "n_predict": 1,
            "temperature": 0.0,
            "logit_bias": [[wrong, 1000.0]],
            "json_schema": msgspec.json.decode(schema),
        }
        return all(wrong not in event.tokens for event in self._events(body))

    def _server(self) -> Any:
        """Return llama.cpp's server with the model; the first call loads it."""
        with self._loading:
            if self._loaded is None:
                import xllamacpp

                parameters = xllamacpp.CommonParams()
                parameters.model.path = str(self._path)
                parameters.n_ctx, parameters.n_parallel = self.context_size, 1
                parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = self._threads
                parameters.api_keys = [secrets.token_hex(32)]
                parameters.ui = parameters.endpoint_slots = parameters.warmup = False
                parameters.verbosity = -1
                try:
                    self._loaded = xllamacpp.Server(parameters)
                except RuntimeError as error:
                    raise EngineError(f"{self._path.name}: llama.cpp cannot load the model: {error}") from error
            return self._loaded


def _event_of(chunk: _Chunk) -> CompletionEvent:
    """Convert a chunk of the package's stream into the event that `/completion` of llama.cpp's server would have sent."""
    choice = chunk.choices[0]
    rows = [] if choice.logprobs is None else choice.logprobs.content
    count = chunk.timings.predicted_n if chunk.usage is None else chunk.usage.completion_tokens
    return CompletionEvent(
        content=choice.text,
        tokens=[row.id for row in rows],
        tokens_predicted=count,
        completion_probabilities=[Probability(row.logprob, row.top_logprobs) for row in rows],
        stop=choice.finish_reason is not None,
        stop_type={None: "", "stop": "eos"}.get(choice.finish_reason, "limit"),
        timings=Timings(chunk.timings.cache_n),
    )
