"""BlockBPE (You, 2025): a batch of strings without pre-tokenization, each merged as a whole by one block of threads.

For comparison with the paper, and for models that were trained on such ids. They are not those of the tokenizer, whose
pattern is ignored: `unsplit` gives the tokenizer whose ids they are. kernels/blockbpe.cu says how they are found.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.added_tokens import is_control
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import (
    BPE,
    AddedToken,
    ByteLevel,
    Digits,
    PreTokenizer,
    PreTokenizerSequence,
    Punctuation,
    RankBPE,
    Split,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import Encoded

MAX_BYTES = 1 << 16
"""Of a string, unless told otherwise: its time grows with the square of its length."""

REASONS = {
    1: "longer than {longest} bytes",
    2: "it has an added token that takes white space along, wants no word beside it, or overlaps others",
}
"""Why a string is left out, by the kernel's `Refusal`."""


def unsplit(tok: Tokenizer) -> Tokenizer:
    """The tokenizer whose ids are BlockBPE's: added tokens are looked up, and what is between them is merged as one.

    Raises:
        UnsupportedTokenizerError: It is no byte-level BPE, or changes text before it is cut.

    """
    spec = tok.spec
    if not isinstance(spec.model, BPE | RankBPE):
        raise UnsupportedTokenizerError(f"blockbpe: {type(spec.model).__name__}; only byte-level BPE is possible")
    if spec.normalizer is not None:
        raise UnsupportedTokenizerError(f"blockbpe: the normalizer {type(spec.normalizer).__name__}")
    byte_level = isinstance(spec.model, RankBPE)
    for part in _parts(spec.pre_tokenizer):
        match part:
            case ByteLevel(add_prefix_space=False):
                byte_level = True
            case Split() | Digits() | Punctuation():
                pass
            case _:
                raise UnsupportedTokenizerError(f"blockbpe: the pre-tokenizer {part!r:.200}")
    if not byte_level:
        raise UnsupportedTokenizerError("blockbpe: BPE without a ByteLevel pre-tokenizer")
    model = replace(spec.model, ignore_merges=False)
    return Tokenizer(replace(spec, model=model, pre_tokenizer=ByteLevel(add_prefix_space=False, use_regex=False)))


def _parts(pre_tokenizer: PreTokenizer | None) -> Iterator[PreTokenizer]:
    if isinstance(pre_tokenizer, PreTokenizerSequence):
        for part in pre_tokenizer.pretokenizers:
            yield from _parts(part)
    elif pre_tokenizer is not None:
        yield pre_tokenizer


class BlockBpeBatch:
    """A tokenizer's tables on a device, and the launches that encode a batch by them.

    Attributes:
        tokenizer: The tokenizer whose ids these are, for the strings that are left out.
        block: Threads a block.
        longest: Bytes of the longest string that is not left out.

    """

    def __init__(self, tok: Tokenizer, device: Device, *, block: int = 256, longest: int = MAX_BYTES) -> None:
        """Copy the tables to the device.

        Args:
            tok: A byte-level BPE tokenizer without a normalizer.
            device: Where the kernels run.
            block: Threads a block, a multiple of 32 up to 1024; the paper has 256, 512 and 1024. The more a string has
                bytes, the more threads it is worth; the more strings there are, the fewer.
            longest: Bytes of the longest string that is not left out.

        Raises:
            UnsupportedTokenizerError: For another tokenizer.
            ValueError: For another block or a negative length.

        """
        if block not in range(32, 1025, 32):
            raise ValueError(f"block must be a multiple of 32 up to 1024, not {block}")
        if not 0 <= longest < 1 << 31:
            raise ValueError(f"longest must be from 0 to {(1 << 31) - 1}, not {longest}")
        self.tokenizer = unsplit(tok)
        self.block = block
        self.longest = longest
        self._device = device
        self._arrays: list[Any] = []  # that the tables point to
        self._tables = device.to_device(self._table_words())

    def encode(
        self, text: Any, offsets: Any, *, parse_special: bool = True, guards: NDArray[np.int64] | None = None
    ) -> Encoded:
        """Encode the strings of a batch.

        Args:
            text: All of them, one after the other; uint8 on the device.
            offsets: Where each begins and the last one ends, in bytes; int64 on the device.
            parse_special: Match added tokens; if not, no control token comes of text.
            guards: Sorted offsets in `text` of characters that no added token may cover.

        """
        device, n = self._device, offsets.size - 1
        far = [device.empty(text.size, np.uint32) for _ in range(4)]
        counts, refusals = device.empty(n, np.uint32), device.empty(n, np.uint8)
        starts = device.zeros(n + 1, np.int64)
        guards = np.zeros(0, np.int64) if guards is None else guards
        if n:
            device.launch(
                "blockbpe",
                n,
                self.block,
                self._tables,
                text,
                offsets,
                device.to_device(guards),
                np.int64(guards.size),
                np.int32(parse_special),
                np.uint32(self.longest),
                *far,
                counts,
                refusals,
            )
            device.launch("blockbpe_offsets", 1, 1024, counts, np.int64(n), starts)
        ids = device.empty(int(device.to_host(starts[n:])[0]), np.int32)
        if n:
            device.launch("blockbpe_gather", n, 256, far[0], offsets, starts, ids)
        codes = device.to_host(refusals)
        refused = np.flatnonzero(codes)
        reasons = tuple(REASONS[code].format(longest=self.longest) for code in codes[refused].tolist())
        return Encoded(ids, starts, refused, reasons)

    def _table_words(self) -> NDArray[np.uint64]:
        """`Tables` of kernels/blockbpe.cu, in words of 8 bytes."""
        model = self.tokenizer.model
        assert isinstance(model, _core.Bpe)
        slots, results = model.pairs, model.merged
        control = [token.id or 0 for token in self.tokenizer.added_tokens if is_control(token)]
        results[np.isin(results, control)] |= np.uint32(1 << 31)
        shift = 65 - slots.size.bit_length()
        pairs = [self._address(slots), self._address(results), shift | (slots.size - 1) << 32]
        tokens = sorted(self.tokenizer.added_tokens, key=lambda token: token.content.encode())
        contents = [token.content.encode() for token in tokens]
        overlap = may_overlap(contents)
        kinds = {token.normalized for token in tokens}
        ids = [(token.id or 0) | _is_odd(token, overlap and len(kinds) == 2) << 31 for token in tokens]
        starts = np.cumsum([0, *map(len, contents)])
        first = np.searchsorted([content[0] for content in contents], np.arange(257))
        special = [
            self._address(np.frombuffer(b"".join(contents) or b"\0", np.uint8)),
            self._address(starts.astype(np.uint32)),
            self._address(np.array(ids or [0], np.uint32)),
            self._address(first.astype(np.uint32)),
            max(map(len, contents), default=0) | overlap << 32,
        ]
        return np.array([*pairs, self._address(model.byte_ids), *special], np.uint64)

    def _address(self, host: NDArray[Any]) -> int:
        self._arrays.append(self._device.to_device(host))
        return self._device.address(self._arrays[-1])


def may_overlap(tokens: Sequence[bytes]) -> bool:
    """Whether one of the tokens can begin inside another, wholly or with more behind it."""
    begins = sorted(tokens)
    whole = frozenset(tokens)
    lengths = sorted({len(token) for token in tokens})
    first = frozenset(token[:1] for token in tokens)

    def meets(rest: bytes) -> bool:
        at = bisect_left(begins, rest)
        starts = at < len(begins) and begins[at].startswith(rest)
        return starts or any(rest[:length] in whole for length in lengths)

    return any(meets(token[at:]) for token in tokens for at in range(1, len(token)) if token[at : at + 1] in first)


def _is_odd(token: AddedToken, second: bool) -> bool:
    """Whether only the host can match it; `second`: tokens of normalized text come after others, which they overlap."""
    return token.lstrip or token.rstrip or token.single_word or (token.normalized and second)
