"""Decoding of batches of ids on a GPU."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tokenweir.encode._core import DeviceContents
from tokenweir.encode.errors import TokenIdError, UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer, core_of
from tokenweir.encode.values.encoded import Ragged
from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.ragged import DeviceRagged, DeviceRows
from tokenweir.gpu.shared import constants, fields
from tokenweir.gpu.structs import Structs

MAX_IDS = (1 << 31) - (1 << 20)
"""The most ids of a batch: places in it are 32-bit numbers."""

_CONSTANTS = constants("decode.cu")
_THREADS, _TILE = _CONSTANTS["kThreads"], _CONSTANTS["kTile"]


class DeviceTexts(DeviceRows):
    """The bytes of many texts, in one array on a device.

    They are the bytes of the tokens: where ids were cut inside a character, a text begins or ends with part of one. On
    a CUDA device the arrays are CuPy's, like those of a `DeviceRagged`.

    Attributes:
        bytes: uint8[total], all texts one after the other.
        offsets: int64[n + 1]; text i has `bytes[offsets[i]:offsets[i + 1]]`.

    """

    @property
    def bytes(self) -> Any:
        """The bytes of all texts; see the attributes."""
        return self._values

    def to_host(self) -> list[str]:
        """Copy the texts to the host, one `str` for each. Invalid UTF-8 becomes U+FFFD, as with `errors="replace"`.

        Raises:
            DeviceError: The device failed.

        """
        with self._device.use():
            data = self._device.to_host(self.bytes).tobytes()
        ends = self._host_offsets.tolist()
        return [data[begin:end].decode("utf-8", "replace") for begin, end in pairwise(ends)]

    def __repr__(self) -> str:
        return f"DeviceTexts({len(self)} texts, {self.bytes.size} bytes, on {self._device.name})"


class GpuDecoder:
    """Decodes batches of ids on a GPU, to the same texts as the tokenizer's `decode_batch`. Threads may share one.

    Attributes:
        tokenizer: The tokenizer whose ids are decoded.
        device: The device on which the kernels run.

    """

    def __init__(self, tokenizer: Tokenizer, *, skip_special_tokens: bool = True, device: Device | None = None) -> None:
        """Copy the tokenizer's decoding table, the bytes of each id, to a device.

        Args:
            tokenizer: A tokenizer whose decoder joins the bytes of its tokens: any byte-level vocabulary, SentencePiece
                with or without byte fallback, or WordPiece.
            skip_special_tokens: As in `Tokenizer.decode`.
            device: None is CuPy's current CUDA device.

        Raises:
            DeviceError: There is no device, or something that it needs is missing; the message says what.
            UnsupportedTokenizerError: The decoder does more than to join bytes; the message names the step.

        """
        check_tokenizer(tokenizer)
        try:
            found = DeviceContents(core_of(tokenizer).tokens, skip_special_tokens)
        except UnsupportedTokenizerError as error:
            raise UnsupportedTokenizerError(f"GpuDecoder: {error}") from None
        self.tokenizer = tokenizer
        self.device = CupyDevice() if device is None else device
        with self.device.use():
            self._tables = _DecodeTables(found, self.device)
            self.device.synchronize()  # the tables are for every thread, whose streams do not wait for this one's

    def decode_batch(self, rows: DeviceRagged | Ragged) -> DeviceTexts:
        """Decode many rows of ids to their bytes, on the device.

        Args:
            rows: Rows on this device, such as a `GpuEncoder` returns; or rows on the host, which are copied to it.

        Returns:
            One text for each row.

        Raises:
            TokenIdError: An id is outside the vocabulary; the message names the id and the row.
            ValueError: The rows lie on another device; the offsets of rows on the host do not ascend within the ids; or
                there are more than `MAX_IDS` ids.
            DeviceError: The device failed or has too little memory.

        """
        with self.device.use():
            ids, offsets = self._to_device(rows) if isinstance(rows, Ragged) else self._checked(rows)
            n, n_texts = int(ids.size), int(offsets.size) - 1
            if n > MAX_IDS:
                raise ValueError(f"a batch of {n} ids; up to {MAX_IDS} are possible")
            out_offsets = self.device.zeros(n_texts + 1, np.int64)
            if not n:
                return DeviceTexts(self.device.empty(0, np.uint8), out_offsets, self.device)
            contents, before, counters, tiles = self._measure(ids, offsets)
            found = self.device.to_host(counters).tolist()
            if bad := found[_CONSTANTS["kBadIds"]]:
                self._refuse(ids, offsets, n - bad)
            out = self.device.empty(found[_CONSTANTS["kBytesLow"]] | found[_CONSTANTS["kBytesHigh"]] << 32, np.uint8)
            n_blocks = -(-n // _THREADS)
            self.device.launch(
                "write_texts",
                n_blocks + n_texts // _THREADS + 1,
                _THREADS,
                self._tables.struct,
                contents,
                np.uint32(n),
                np.uint32(n_blocks),
                before,
                tiles,
                offsets,
                np.uint32(n_texts),
                out,
                out_offsets,
            )
            return DeviceTexts(out, out_offsets, self.device)

    def _checked(self, rows: DeviceRagged) -> tuple[Any, Any]:
        if not (self.device.holds(rows.ids) and self.device.holds(rows.offsets)):
            raise ValueError(f"the rows lie on another device than this decoder's, {self.device.name}: use to_host()")
        return rows.ids, rows.offsets

    def _to_device(self, rows: Ragged) -> tuple[Any, Any]:
        offsets = np.ascontiguousarray(rows.offsets, np.int64)
        if not offsets.size or offsets[0] < 0 or offsets[-1] > len(rows.ids) or (np.diff(offsets) < 0).any():
            raise ValueError(f"offsets that do not ascend from 0 to {len(rows.ids)}")
        ids = np.ascontiguousarray(rows.ids[offsets[0] : offsets[-1]], np.int32)
        return self.device.to_device(ids), self.device.to_device(offsets - offsets[0])

    def _measure(self, ids: Any, offsets: Any) -> tuple[Any, Any, Any, Any]:
        """Look up the bytes of each id, and compute where they go in the output.

        A tile is a run of ids that one block of threads handles.

        Args:
            ids: The ids of all rows; int32 on the device.
            offsets: The place in `ids` at which each row begins and the last one ends; int64 on the device.

        Returns:
            Four arrays on the device: for each id the place and size of its bytes in the decoding table; for each id the
            byte at which it begins within its tile's output; the counters of decode.cu, with the number of bytes in all;
            and the byte of the output at which each tile begins and the last one ends.

        """
        n, n_texts = int(ids.size), int(offsets.size) - 1
        n_tiles = -(-n // _TILE)
        (counters,) = self.device.words([_CONSTANTS["kCounters"]], zero=True)
        contents, before, tiles = self.device.words([2 * n, n, 2 * (n_tiles + 1)])
        tiles = tiles.view(np.int64)
        by_ids = self._tables.struct, ids
        self.device.launch("find_contents", -(-n // _THREADS), _THREADS, *by_ids, np.uint32(n), contents, counters)
        if self._tables.differs_at_begin:
            blocks = -(-n_texts // _THREADS)
            self.device.launch("begin_texts", blocks, _THREADS, *by_ids, offsets, np.uint32(n_texts), contents)
        self.device.launch("count_bytes", n_tiles, _THREADS, contents, np.uint32(n), before, tiles, counters)
        return contents, before, counters, tiles

    def _refuse(self, ids: Any, offsets: Any, place: int) -> None:
        token_id = int(self.device.to_host(ids[place : place + 1])[0])
        row = int(np.searchsorted(self.device.to_host(offsets), place, "right")) - 1
        raise TokenIdError(
            f"row {row}: token id {token_id} is outside the vocabulary (0 to {self.tokenizer.vocab_size - 1})"
        )


class _DecodeTables(Structs):
    """The decoding table on a device: the bytes of each id.

    Attributes:
        struct: The struct `DecodeTables` of decode.cu, as an array on the device.
        differs_at_begin: Whether some id decodes to other bytes at the beginning of a text than within it.

    """

    def __init__(self, found: DeviceContents, device: Device) -> None:
        super().__init__(device)
        stripped, most = found.stripped
        self.differs_at_begin = bool(found.first.size or most)
        self.struct = self._struct(
            fields("decode.cu", "DecodeTables"),
            {
                "contents": found.contents,
                "first": found.first if found.first.size else 0,
                "bytes": found.bytes,
                "n_ids": len(found.contents),
                "stripped": stripped,
                "most_stripped": most,
            },
        )
