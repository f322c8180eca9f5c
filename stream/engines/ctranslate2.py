"""Engine for a CTranslate2 model folder on the local CPU or GPU (extra `ctranslate2`).

CTranslate2 takes token *strings*, and silently maps unknown ones to `unk`. Ids and strings are therefore translated
here by the folder's own vocabulary, whose order gives the ids. An id outside it is an error.

Verified with ctranslate2 4.8.5. Its `async_generate_tokens` is asyncio only and polls, so its blocking
`generate_tokens` runs in a thread instead.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import get_ident
from typing import Any

from tokenweir.encode.base.options import check_flags
from tokenweir.encode.errors import EngineError, without_path
from tokenweir.stream.engines.protocol import (
    check_prompt,
    check_top_k,
    refuse_seed,
    refuse_several,
    refuse_unsupported,
    room_behind,
)
from tokenweir.stream.engines.sync import SyncEngine
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

DEFAULT_MAX_TOKENS = 512  # CTranslate2's own
CONTEXT_SIZE = "context_size"
"""Key of the context size in `config.json`, written by `gguf_conversion`."""


class CTranslate2Engine:
    """Engine over a decoder-only CTranslate2 model.

    Sampling: `temperature`, `top_p`, `top_k`, `max_tokens` (512 if None), `min_tokens`, `ignore_eos` and
    `stop_token_ids` are honoured, and `repetition_penalty`. Decoding is greedy if `temperature`, `top_p` and `top_k` are
    None. `seed` is refused unless decoding is greedy, because CTranslate2 seeds its threads once for the whole process.
    `n` above 1 is refused too.

    Closing the generator ends the generation at the model's next token. While a long prompt is being read there is no
    next token yet; the engine is free again when that is done.
    """

    supports = frozenset({"temperature", "top_p", "top_k", "seed", "repetition_penalty", "logprobs"})

    context_size: int | None
    """Most ids of prompt and answer together, if `config.json` has them; CTranslate2 itself has no limit."""

    def __init__(self, folder: str | Path, *, logprobs: bool = False, **options: Any) -> None:
        """Load the model.

        Args:
            folder: Folder of a converted model: `model.bin`, `config.json`, `vocabulary.json`.
            logprobs: Report the logprob of every id, over the full vocabulary.
            **options: Options of `ctranslate2.Generator`, such as `device="cuda"`, `compute_type="int8"`,
                `inter_threads=4` (concurrent generations, 1 by default; more wait in a queue).

        Raises:
            EngineError: ctranslate2 is not installed, or the folder does not hold a usable model.

        """
        try:
            import ctranslate2
        except ModuleNotFoundError as error:
            raise EngineError(
                "the CTranslate2 engine needs ctranslate2: pip install 'tokenweir[ctranslate2]'"
            ) from error
        check_flags(logprobs=logprobs)
        folder = Path(folder)
        self.tokens = read_vocabulary(folder)
        config = read_config(folder)
        self.eos_ids = eos_ids(config, self.tokens)
        self.context_size = config.get(CONTEXT_SIZE)
        try:
            self._generator = ctranslate2.Generator(str(folder), **options)
        except (RuntimeError, ValueError, TypeError) as error:
            raise EngineError(f"{folder}: CTranslate2 cannot load the model: {error}") from error
        self._logprobs = logprobs
        self._live: set[int] = set()  # ids of generating threads
        self._engine = SyncEngine(self._steps, max_concurrency=options.get("inter_threads", 1))

    @property
    def vocab_size(self) -> int:
        """Number of ids in the model's vocabulary."""
        return len(self.tokens)

    def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling
    ) -> AsyncGenerator[Sequence[int] | EngineStep, None]:
        """Generate from `prompt_ids`, one id a step; the end token is the last id.

        Raises:
            EngineError: The prompt is empty, fills the context or has an id outside the model's vocabulary; an option
                cannot be honoured (the message names it and its value); or the model itself fails.

        """
        return self._engine.generate(prompt_ids, sampling)

    def _steps(self, prompt_ids: Sequence[int], sampling: Sampling) -> Iterator[EngineStep]:
        prompt = self._prompt(prompt_ids)
        room = None if self.context_size is None else room_behind(prompt_ids, self.context_size)
        options = self._options(sampling, room)
        if options["max_length"] == 0:
            return
        end_ids = frozenset(options["end_token"])
        self._live.add(get_ident())
        try:
            with closing(self._generator.generate_tokens(prompt, **options)) as results:
                for result in results:
                    reason = None
                    if result.is_last:
                        reason = "stop" if result.token_id in end_ids else "length"
                    yield EngineStep(
                        [result.token_id], [result.log_prob] if options["return_log_prob"] else None, reason
                    )
        except (RuntimeError, ValueError) as error:
            raise EngineError(f"CTranslate2 failed: {error}") from error
        finally:
            self._live.discard(get_ident())
            # The results end shortly before CTranslate2 drops its Python callback. A process that exits in between is
            # aborted, so the generation waits for the drop, and SyncEngine makes process exit wait for the generation.
            while self._generator.num_active_batches > len(self._live):
                time.sleep(0.0005)

    def _prompt(self, prompt_ids: Sequence[int]) -> list[str]:
        if len(prompt_ids) == 0:
            raise EngineError("CTranslate2 needs a prompt of at least one id")
        check_prompt(prompt_ids, len(self.tokens), "the model's vocabulary")
        return [self.tokens[token_id] for token_id in prompt_ids]

    def _options(self, sampling: Sampling, room: int | None) -> dict[str, Any]:
        refuse_unsupported("CTranslate2", sampling, self.supports)
        temperature, top_p, top_k = sampling.temperature, sampling.top_p, sampling.top_k
        greedy = temperature == 0 or top_k == 1 or (temperature is None and top_p is None and top_k is None)
        refuse_several("CTranslate2", sampling)
        if not greedy:
            refuse_seed("CTranslate2", sampling)
        check_top_k(sampling)
        max_tokens = DEFAULT_MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens
        max_tokens = max_tokens if room is None else min(max_tokens, room)
        repetition_penalty = 1.0 if sampling.repetition_penalty is None else sampling.repetition_penalty
        if not 0 < repetition_penalty < float("inf"):
            raise EngineError(f"repetition_penalty={repetition_penalty} is not a finite number above 0")
        end_ids = (*(() if sampling.ignore_eos else self.eos_ids), *sampling.stop_token_ids)
        options: dict[str, Any] = {
            "max_length": max_tokens,
            "min_length": min(sampling.min_tokens, max_tokens),
            "end_token": [token_id for token_id in end_ids if 0 <= token_id < len(self.tokens)],
            "sampling_topk": 1,
            "repetition_penalty": repetition_penalty,
            "return_log_prob": self._logprobs or sampling.logprobs,
        }
        if not greedy:
            options["sampling_topk"] = 0 if top_k is None else min(top_k, len(self.tokens))  # 0 means all
            options["sampling_topp"] = 1.0 if top_p is None else top_p
            options["sampling_temperature"] = 1.0 if temperature is None else temperature
        return options


def read_vocabulary(folder: Path) -> list[str]:
    """Read the tokens of a CTranslate2 model from `vocabulary.json`, in the order of their ids.

    Raises:
        EngineError: The file is missing or invalid, or lists a token twice.

    """
    path = folder / "vocabulary.json"
    tokens = _read_json(path, "vocabulary")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise EngineError(f"{path}: not a list of strings")
    first_id: dict[str, int] = {}
    for token_id, token in enumerate(tokens):
        if first_id.setdefault(token, token_id) != token_id:
            raise EngineError(f"{path}: token {token!r} has the ids {first_id[token]} and {token_id}")
    return tokens


def read_config(folder: Path) -> dict[str, Any]:
    """Read `config.json` of a CTranslate2 model; raise `EngineError` if it is missing or invalid."""
    path = folder / "config.json"
    config = _read_json(path, "configuration")
    if not isinstance(config, dict):
        raise EngineError(f"{path}: not a CTranslate2 configuration: no JSON object")
    if not isinstance(size := config.get(CONTEXT_SIZE), int | None):
        raise EngineError(f"{path}: {CONTEXT_SIZE} must be int, not {size!r:.80}")
    return config


def _read_json(path: Path, what: str) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise EngineError(f"{path}: not a CTranslate2 {what}: {without_path(error)}") from error


def eos_ids(config: Mapping[str, Any], tokens: Sequence[str]) -> tuple[int, ...]:
    """Return the ids of the end tokens that `config` names.

    Args:
        config: The content of the model's `config.json`.
        tokens: The model's tokens, in the order of their ids.

    """
    eos = config.get("eos_token")
    names = eos if isinstance(eos, list) else [eos]
    return tuple(tokens.index(name) for name in names if name in tokens)
