"""Tables of a tokenizer's ids, made once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer


def prepare(tokenizer: Tokenizer) -> None:
    """Make the tables of a tokenizer that the first answer would make."""
    id_lengths(tokenizer)
    control_ids(tokenizer)


@lru_cache(maxsize=16)
def id_lengths(tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Return the number of bytes of each id."""
    return np.array([len(tokenizer.token_bytes(token_id)) for token_id in range(tokenizer.vocab_size)], np.int32)


@lru_cache(maxsize=16)
def control_ids(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """Return for each id whether user text must not become it."""
    controls = np.zeros(tokenizer.vocab_size, np.bool_)
    for text in tokenizer.control_texts:
        if (token_id := tokenizer.token_to_id(text)) is not None:
            controls[token_id] = True
    return controls
