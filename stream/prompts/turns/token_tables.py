"""Tables with an entry for each id of a tokenizer, computed once a tokenizer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.per_tokenizer import per_tokenizer
from tokenweir.encode.tokenizer import Tokenizer


def prepare(tokenizer: Tokenizer) -> None:
    """Compute the tables `id_lengths` and `control_ids` of a tokenizer ahead of time, so that the first answer need not."""
    id_lengths(tokenizer)
    control_ids(tokenizer)


@per_tokenizer
def id_lengths(tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Return int32[vocab_size]: the number of bytes that each id decodes to."""
    return np.array([len(tokenizer.token_bytes(token_id)) for token_id in range(tokenizer.vocab_size)], np.int32)


@per_tokenizer
def control_ids(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """Return bool[vocab_size]: whether each id is a control token, which user text must never be encoded to."""
    controls = np.zeros(tokenizer.vocab_size, np.bool_)
    for text in tokenizer.control_texts:
        if (token_id := tokenizer.token_to_id(text)) is not None:
            controls[token_id] = True
    return controls
