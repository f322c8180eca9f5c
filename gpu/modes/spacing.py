"""The space before each text, which SentencePiece's dummy prefix and HuggingFace's `Metaspace` add, on the device.

Before a document, a byte is inserted for it. Before a text after an added token, that token's last byte becomes the
space, so that such a token must have two bytes. kernels/spaces.cu does both.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import SLACK
from tokenweir.gpu.modes.batch import THREADS, Batch
from tokenweir.gpu.shared import constants

SIGN = "\u2581"

_CONSTANTS = constants("spaces.cu")
NOWHERE, EACH, FIRST = (_CONSTANTS[f"k{where}"] for where in ("Nowhere", "Each", "First"))
"""The texts that get a space before them: `Prefix` of kernels/spaces.cu."""


class Spaced(NamedTuple):
    """A batch with room for the spaces; the fields are the arguments of `Mode.encode`."""

    text: Any
    offsets: Any
    guards: NDArray[np.int64] | None


def check_added(prefix: int, contents: Collection[bytes]) -> None:
    """Raise `UnsupportedTokenizerError` if spaces cannot be put before texts because of an added token.

    Such a token has one byte, where a space must replace its last byte; or it begins with a space, and would match the one
    that is put before a text.

    Args:
        prefix: The texts that get a space, a value of the enumeration `Prefix` of kernels/spaces.cu.
        contents: The UTF-8 of the added tokens.

    """
    if prefix == EACH and min(map(len, contents), default=2) < 2:
        raise UnsupportedTokenizerError("exact mode: an added token of one byte, where a space follows it")
    if prefix != NOWHERE and any(content.startswith(b" ") for content in contents):
        raise UnsupportedTokenizerError("exact mode: an added token that begins with the space before a text")


def with_spaces(device: Device, prefix: int, text: Any, offsets: Any, guards: NDArray[np.int64] | None) -> Spaced:
    """Copy a batch with a space inserted before each document.

    Offsets and guards are moved accordingly. If `prefix` is `NOWHERE`, the batch is returned as it is.
    """
    if prefix == NOWHERE:
        return Spaced(text, offsets, guards)
    if guards is not None:  # a byte for each document that has begun
        guards = guards + np.searchsorted(device.to_host(offsets), guards, "right")
    n, n_documents = int(text.size) - SLACK, int(offsets.size) - 1
    spaced = device.zeros(n + n_documents + SLACK, np.uint8)
    moved = device.empty(n_documents + 1, np.int64)
    blocks = max(-(-n // (THREADS * _CONSTANTS["kSpan"])), -(-n_documents // THREADS))
    given = text, np.uint32(n), offsets, np.uint32(n_documents)
    device.launch("space_documents", blocks, THREADS, *given, spaced, moved)
    return Spaced(spaced, moved, guards)


def begin_texts(batch: Batch, prefix: int, begins: Any) -> None:
    """Put a space before each text that gets one by `prefix`; added tokens must have been found.

    A space that `with_spaces` inserted and that no text follows is marked in `batch.taken`, so that it gets no id.
    `begins` is the bit map of the bytes at which documents begin.
    """
    if prefix == NOWHERE:
        return
    taken, batch.taken = batch.taken, batch.bit_map()
    by_words = batch.text, batch.n, np.uint32(prefix), begins, taken, batch.taken
    batch.launch("begin_texts_by_spaces", -(-batch.n_words // THREADS), *by_words)
