"""Engine of the small model: CTranslate2, which gives every id, and llama.cpp for options that it cannot honour."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from msgspec.structs import replace

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.ctranslate2 import CTranslate2Engine
from tokenweir.stream.engines.protocol import refuse_unsupported
from tokenweir.stream.engines.xllamacpp import XllamacppEngine
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

DEFAULTS = {"temperature": 0.4, "top_p": 0.9}
"""Asking again gives another answer with them; at higher temperatures a small model rambles."""
REPETITION_PENALTY = 1.05
"""Without a penalty, lists and tables of a small model may repeat their rows without end."""
DEFAULT_MAX_TOKENS = 512
"""Most tokens of an answer to a request that sets no limit; the small model seldom says anything of use behind them."""


class LocalEngine:
    """Engine that combines two engines over one model: CTranslate2's, and llama.cpp's for what that one cannot honour.

    A request without `temperature`, `top_p` and `top_k` gets `DEFAULTS`. One without a `repetition_penalty` gets
    `REPETITION_PENALTY`, unless a schema or a grammar bounds the answer, since JSON has to repeat its signs.

    Args:
        plain: Generates if it honours all fields of the sampling.
        constrained: Generates otherwise: for JSON schemas, grammars, penalties and seeds; None refuses these.

    Attributes:
        context_size: Most ids of prompt and answer together.
        default_max_tokens: Most ids of an answer to a request that sets no limit.

    """

    default_max_tokens = DEFAULT_MAX_TOKENS

    def __init__(self, plain: CTranslate2Engine, constrained: XllamacppEngine | None = None) -> None:
        self.plain = plain
        self._constrained = constrained
        self.supports = plain.supports if constrained is None else plain.supports | constrained.supports
        self.context_size = plain.context_size

    def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling
    ) -> AsyncGenerator[Sequence[int] | EngineStep, None]:
        """Generate from `prompt_ids` by the engine that honours the sampling, and raise the errors of that engine."""
        if sampling.temperature is None and sampling.top_p is None and sampling.top_k is None:
            sampling = replace(sampling, **DEFAULTS)
        if sampling.repetition_penalty is None and sampling.json_schema is None and sampling.grammar is None:
            sampling = replace(sampling, repetition_penalty=REPETITION_PENALTY)
        if self._constrained is not None and not self._is_plain(sampling):
            return self._constrained.generate(prompt_ids, sampling)
        return self.plain.generate(prompt_ids, sampling)

    def _is_plain(self, sampling: Sampling) -> bool:
        if sampling.seed is not None and sampling.temperature != 0 and sampling.top_k != 1:
            return False  # CTranslate2 seeds the whole process
        try:
            refuse_unsupported("CTranslate2", sampling, self.plain.supports)
        except EngineError:
            return False
        return True
