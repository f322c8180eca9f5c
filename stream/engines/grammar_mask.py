"""Masks of a grammar over the logits of `generate`, through llguidance."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tokenweir.encode.errors import EngineError
from tokenweir.stream.events.sampling import Sampling

FIELDS = ("json_schema", "grammar")
"""The fields of `Sampling` that make a grammar."""

SEPARATORS: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""JSON as `json.dumps` writes it: with free white space a weak model may write blanks until its limit."""


class GrammarMask:
    """Logits processor of transformers for one answer to which a grammar applies: only ids that the grammar allows remain.

    `ends` is the stopping criterion to use with it, for models whose own end tokens are others than the grammar's.
    """

    def __init__(self, tokenizer: Any, sampling: Sampling) -> None:
        """Compile the grammar of a sampling.

        Args:
            tokenizer: The model's tokenizer as an `llguidance.LLTokenizer`.
            sampling: The sampling, with a `json_schema` or a `grammar` in llguidance's form of Lark.

        Raises:
            EngineError: The grammar is not valid, there are two of them, or `ignore_eos` or `min_tokens` is set.

        """
        from llguidance import LLMatcher
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        if sampling.json_schema is not None and sampling.grammar is not None:
            raise _refusal("json_schema and grammar exclude each other", "grammar")
        if sampling.ignore_eos or sampling.min_tokens:
            option = "ignore_eos" if sampling.ignore_eos else "min_tokens"
            raise _refusal(f"{option} keeps the answer from ending where its grammar does", option)
        name = "json_schema" if sampling.grammar is None else "grammar"
        try:
            if sampling.grammar is None:
                grammar = LLMatcher.grammar_from_json_schema(json.dumps(sampling.json_schema), defaults=SEPARATORS)
            else:
                grammar = LLMatcher.grammar_from_lark(sampling.grammar)
            self._matcher = LLMatcher(tokenizer, grammar)
        except (TypeError, ValueError, RecursionError) as error:  # too deep, or it has no UTF-8 or no JSON
            raise _refusal(f"it is not valid: {error}", name) from error
        if self._matcher.is_error():
            raise _refusal(f"it is not valid: {self._error()}", name)
        self._fill = fill_next_token_bitmask
        self._bits = allocate_token_bitmask(1, tokenizer.vocab_size)
        self._taken: int | None = None  # ids of the prompt and the answer that have been read

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return `scores` with the logits of all ids that the grammar does not allow next set to minus infinity.

        Args:
            input_ids: The prompt and the answer so far, of shape (1, length).
            scores: The logits of the next id, of shape (1, n); changed in place.

        """
        self._read(input_ids)
        allowed = np.zeros(scores.shape[-1], np.bool_)
        if not self._matcher.is_stopped():
            self._fill(self._matcher, self._bits, 0)
            bits = np.unpackbits(self._bits.view(np.uint8), bitorder="little").view(np.bool_)
            count = min(len(bits), len(allowed))
            allowed[:count] = bits[:count]
        blocked: Any = ~allowed
        if not isinstance(scores, np.ndarray):
            import torch

            blocked = torch.from_numpy(blocked).to(scores.device)
        scores[:, blocked] = float("-inf")
        return scores

    def ends(self, input_ids: Any, scores: Any, **kwargs: Any) -> bool:
        """Return whether the grammar is complete and allows no further id; a stopping criterion of transformers."""
        self._read(input_ids)
        return bool(self._matcher.is_stopped())

    def _read(self, input_ids: Any) -> None:
        """Advance the grammar by the ids that have come since the last call; those of the first call are the prompt's.

        Raises:
            EngineError: The grammar does not allow an id.

        """
        count = input_ids.shape[-1]
        if self._taken is not None:
            for token_id in input_ids[0, self._taken :].tolist():
                if not self._matcher.is_stopped() and not self._matcher.consume_token(token_id):
                    raise EngineError(f"the grammar does not allow id {token_id}: {self._error()}")
        self._taken = count

    def _error(self) -> str:
        """Return the grammar matcher's error message: its first line, without the dump of the matcher's state behind it."""
        lines: list[str] = self._matcher.get_error().splitlines()
        return lines[0] if lines else ""


def _refusal(reason: str, option: str) -> EngineError:
    return EngineError(f"transformers cannot honour {option}: {reason}", kind="unsupported", option=option)
