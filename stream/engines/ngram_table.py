"""N-gram counts, computed on demand from the training text."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.errors import EngineError

ORDER = 4  # ids in a window: three of context, one to follow
ID_BITS = 13  # of a packed id; ORDER of them fit a signed 64-bit word

# Tuned by reading answers, for coherent sentences; the optimum for perplexity differs.
DISCOUNT = 0.75
DIALOGUE_WEIGHT = 8.0  # weight of a dialogue's ids; prose has weight 1
TOPIC_GAIN = 0.7  # extra weight of dialogues whose question shares words with the prompt

Floats = NDArray[np.float64]


class NgramTable:
    """Counts of the ids that follow one, two or three others, by topic.

    No n-grams are stored. The file is the training text. One sorted array of its windows of four ids, each packed into
    a word, serves every order, because the windows that begin with a context are one range of it.

    Attributes:
        vocab_size: Upper bound of the ids, exclusive.
        control_ids: The added tokens, which only rules emit.
        end_ids: The control ids that end an answer.
        think_ids: The control ids that open and close a thinking block.

    """

    def __init__(self, arrays: Mapping[str, NDArray[np.integer]]) -> None:
        """Build the table.

        Args:
            arrays: `ids`, the training text; `topics`, the topic of each of them, where the last topic is the prose and
                every other one a dialogue; `question_ids` and `question_topics`, the words that call for a dialogue;
                `control_ids`, `end_ids`, `think_ids`; `vocab_size`.

        Raises:
            KeyError: An array is missing.
            ValueError: The arrays are inconsistent.

        """
        self.vocab_size = int(arrays["vocab_size"])
        self.control_ids = arrays["control_ids"].astype(np.int64)
        self.end_ids = tuple(arrays["end_ids"].tolist())
        self.think_ids = tuple(arrays["think_ids"].tolist())
        ids = arrays["ids"].astype(np.int64)
        topics = arrays["topics"].astype(np.int64)
        if not 0 < self.vocab_size <= 1 << ID_BITS:
            raise ValueError(f"vocab_size {self.vocab_size} is not in 1..{1 << ID_BITS}")
        if len(ids) < ORDER or len(ids) != len(topics) or ids.max() >= self.vocab_size:
            raise ValueError(f"{len(ids)} ids up to {ids.max(initial=0)} and {len(topics)} topics")
        if len(self.think_ids) != 2:
            raise ValueError(f"think_ids are {self.think_ids}, not an opening and a closing one")

        windows = np.zeros(len(ids) - ORDER + 1, dtype=np.int64)
        for place in range(ORDER):
            windows = windows << ID_BITS | ids[place : place + len(windows)]
        order = np.argsort(windows, kind="stable")
        self._windows = windows[order]
        self._topics = topics[: len(windows)][order]

        # One row per dialogue, weighted by inverse document frequency.
        asked = np.zeros((int(topics.max()), self.vocab_size), dtype=bool)
        asked[arrays["question_topics"], arrays["question_ids"]] = True
        self._asked = asked
        self._rarity = np.log((len(asked) + 1) / (asked.sum(axis=0) + 1))

    @classmethod
    def from_file(cls, path: str | Path | Traversable) -> NgramTable:
        """Read a table that scripts/train_ngram has written (npz); raise `EngineError` for anything else."""
        try:
            content = (Path(path) if isinstance(path, str) else path).read_bytes()
            with np.load(BytesIO(content)) as arrays:
                return cls(arrays)
        except (OSError, EOFError, ValueError, TypeError, LookupError, BadZipFile, zlib.error) as error:
            raise EngineError(f"{path}: not an n-gram table: {error}") from error

    def topic_weights(self, words: Sequence[int]) -> Floats:
        """Return the weight of each topic for a prompt of these ids; prose has weight 1."""
        present = np.unique(np.asarray(words, dtype=np.int64))
        shared = (self._asked[:, present] * self._rarity[present]).sum(axis=1)
        return np.append(DIALOGUE_WEIGHT * np.exp(TOPIC_GAIN * shared), 1.0)

    def counts(self, context: Sequence[int], weights: Floats) -> Floats:
        """Return the weighted count of each id of the vocabulary after `context` (at most three ids)."""
        free = ID_BITS * (ORDER - len(context))
        prefix = 0
        for token_id in context:
            prefix = prefix << ID_BITS | token_id
        low, high = np.searchsorted(self._windows, (prefix << free, (prefix + 1) << free))
        following = self._windows[low:high] >> (free - ID_BITS) & ((1 << ID_BITS) - 1)
        counts = np.bincount(following, weights=weights[self._topics[low:high]], minlength=self.vocab_size)
        return np.asarray(counts, dtype=np.float64)

    def probabilities(self, context: Sequence[int], weights: Floats, unigrams: Floats) -> Floats:
        """Return probabilities by interpolated absolute discounting (Ney, Essen and Kneser 1994).

        Args:
            context: At most three ids.
            weights: The result of `topic_weights`.
            unigrams: `counts((), weights)`, computed once a generation because it scans the whole text.

        """
        result: Floats = unigrams / unigrams.sum()
        for length in range(1, len(context) + 1):
            counts = self.counts(context[-length:], weights)
            total = counts.sum()
            if total == 0:
                break
            kept = np.maximum(counts - DISCOUNT, 0)
            result = (kept + (total - kept.sum()) * result) / total
        return result


@cache
def default_table() -> NgramTable:
    """Return the package's table: some 80 short dialogues and the first pages of a novel."""
    return NgramTable.from_file(resources.files("tokenweir.stream").joinpath("data/ngram.npz"))
