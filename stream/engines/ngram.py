"""N-gram model over the embedded vocabulary: a toy for demonstrations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import pairwise

import anyio
import numpy as np
from anyio.lowlevel import checkpoint

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.ngram_table import ORDER, Floats, NgramTable, default_table
from tokenweir.stream.engines.protocol import check_prompt, check_top_k, refuse_several, refuse_unsupported
from tokenweir.stream.events.sampling import Sampling

DEFAULT_TEMPERATURE = 0.8
DEFAULT_MAX_TOKENS = 512
ECHO = 0.05  # probability of copying the id that followed in the prompt


class NgramEngine:
    """Engine that draws each id from an n-gram model of order 4: a toy, not a language model.

    It needs no download and answers any prompt over the embedded vocabulary with language-like text: often a thinking
    block first, and an end token at the end. The prompt has two effects: dialogues whose question shares words with the
    last turn are preferred, and a few words are occasionally repeated.

    Sampling: `max_tokens` (512 if None), `temperature` (0.8 if None; 0 is greedy, which soon repeats itself), `top_k`,
    `top_p`, `seed`, `stop_token_ids` and `min_tokens` are honoured; under `ignore_eos` no end token is drawn. `stop` is
    left to the decoder. `n` above 1 is refused.

    Attributes:
        table: The n-gram counts.
        delay: Seconds before each id.

    """

    supports = frozenset({"temperature", "top_k", "top_p", "seed"})

    def __init__(self, table: NgramTable | None = None, *, delay: float = 0.0) -> None:
        """Make an engine.

        Args:
            table: The counts; None means the package's own.
            delay: Seconds before each id, for visible streaming.

        Raises:
            ValueError: `delay` is negative.

        """
        if not 0 <= delay < float("inf"):
            raise ValueError(f"delay={delay} is not a finite number of at least 0")
        self.table = default_table() if table is None else table
        self.delay = delay

    def __repr__(self) -> str:
        return f"NgramEngine(delay={self.delay})"

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> AsyncGenerator[Sequence[int], None]:
        """Generate from `prompt_ids`, one id at a time.

        Raises:
            EngineError: An id of the prompt is outside the vocabulary, or an option cannot be honoured.

        """
        for token_id in self._draws(prompt_ids, sampling):
            if self.delay:
                await anyio.sleep(self.delay)
            else:
                await checkpoint()
            yield (token_id,)

    def _draws(self, prompt_ids: Sequence[int], sampling: Sampling) -> Iterator[int]:
        table = self.table
        refuse_unsupported("an n-gram engine", sampling, self.supports)
        refuse_several("an n-gram engine", sampling)
        check_top_k(sampling)
        if sampling.seed is not None and sampling.seed < 0:
            raise EngineError(f"seed={sampling.seed} is below 0", kind="unsupported", option="seed")
        check_prompt(prompt_ids, table.vocab_size)
        max_tokens = DEFAULT_MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens
        stop_ids = {*table.end_ids, *sampling.stop_token_ids}
        asked = last_turn(prompt_ids, table.end_ids)
        weights = table.topic_weights(asked)
        unigrams = table.counts((), weights)
        followers = defaultdict(list)
        for token_id, follower in pairwise(asked):
            followers[token_id].append(follower)
        rng = np.random.default_rng(sampling.seed)

        context = list(prompt_ids)
        opening, closing = table.think_ids
        tags = [token_id for token_id in context if token_id in table.think_ids]
        thinking = tags[-1:] == [opening]
        for drawn in range(max_tokens):
            probabilities = table.probabilities(context[-(ORDER - 1) :], weights, unigrams)
            # Tags and end tokens are drawn only where they are valid, by their counts there.
            if thinking:
                rule = [closing]
            else:
                rule = [] if sampling.ignore_eos or drawn < sampling.min_tokens else list(table.end_ids)
                if drawn == 0 and closing not in context[-ORDER:]:
                    rule.append(opening)
            ruled = probabilities[rule]
            if again := followers.get(context[-1] if context else -1):
                probabilities *= 1 - ECHO
                np.add.at(probabilities, again, ECHO / len(again))
            probabilities[table.control_ids] = 0
            probabilities[rule] = ruled
            token_id = draw(probabilities, sampling, rng)
            yield token_id
            if token_id in stop_ids and drawn + 1 >= sampling.min_tokens:
                return
            if token_id in table.think_ids:
                thinking = token_id == opening
            context.append(token_id)


def last_turn(prompt_ids: Sequence[int], end_ids: Sequence[int]) -> Sequence[int]:
    """Return the ids of the last turn: those between the last end token and the one before it.

    Return all ids if there is no end token.
    """
    ends = [position for position, token_id in enumerate(prompt_ids) if token_id in end_ids]
    if not ends:
        return prompt_ids
    return prompt_ids[ends[-2] + 1 if len(ends) > 1 else 0 : ends[-1]]


def draw(probabilities: Floats, sampling: Sampling, rng: np.random.Generator) -> int:
    """Draw an id: apply the temperature first, then keep the `top_k` likeliest, then the nucleus of `top_p`.

    Args:
        probabilities: The probability of each id.
        sampling: The sampling; among equally likely ids the lowest counts as the likeliest.
        rng: The source of random numbers.

    """
    temperature = DEFAULT_TEMPERATURE if sampling.temperature is None else sampling.temperature
    if temperature == 0:
        return int(probabilities.argmax())
    # Normalise by the maximum first, because powers of small numbers underflow at low temperatures.
    weights = (probabilities / probabilities.max()) ** (1 / temperature)
    candidates = np.arange(len(weights))
    if sampling.top_k is not None or sampling.top_p is not None:
        candidates = np.argsort(-weights, kind="stable")[: sampling.top_k]
        weights = weights[candidates]
    cumulated = np.cumsum(weights)
    if sampling.top_p is not None:
        nucleus = int(np.searchsorted(cumulated, sampling.top_p * cumulated[-1])) + 1
        cumulated = cumulated[:nucleus]
    return int(candidates[np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right")])
