"""Batches of texts to ids on a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, NoReturn, Protocol, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.options import AffixOptions
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.arrow import DeviceDocuments
from tokenweir.gpu.batch import MAX_BYTES
from tokenweir.gpu.blockbpe import BlockBpeBatch
from tokenweir.gpu.characters import CharacterBatch
from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.encoded import SLACK, Encoded
from tokenweir.gpu.exact import ExactBatch
from tokenweir.gpu.join import Affixes, join
from tokenweir.gpu.ragged import DeviceRagged
from tokenweir.gpu.texts import CpuIds, GuardedText, Part, Texts
from tokenweir.gpu.unigram import UnigramBatch
from tokenweir.gpu.wordpiece import WordPieceBatch

MAX_BATCH_BYTES = 512 << 20
"""Of text, at once on the device, unless told otherwise."""

STEP_BYTES = 32 << 20
"""So much text makes a batch: enough to fill a GPU, little enough that the next one is copied meanwhile."""

SCRATCH = 32
"""Bytes of device memory for a byte of text, ids included; more than any mode takes."""

STAGING_STEP = 4 << 20
"""Pinned memory is had in multiples of this, since every growth takes milliseconds."""

_ALIGNMENT = 256


class Mode(Protocol):
    """Tables of a tokenizer on a device, and the launches that encode a batch by them.

    Attributes:
        tokenizer: Whose ids they are; it encodes what the kernels leave out.

    """

    tokenizer: Tokenizer

    def encode(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Encoded:
        """Encode documents; they may be empty, but not all of them.

        Args:
            text: All documents one after the other and `SLACK` zero bytes; uint8 on the device.
            offsets: Where each begins and the last one ends; int64 on the device.
            parse_special: Match added tokens.
            guards: Sorted offsets in `text` of characters that no control token may cover; None if there are none.

        """
        ...


class ModeOptions(TypedDict, total=False):
    """The options of a mode.

    Attributes:
        max_bytes: What the mode's kernels take at most; see `ExactBatch` and `BlockBpeBatch`.
        workers: Of "exact" for BPE: how many blocks share the pieces that wait for merging.
        block: Of "blockbpe": threads of a block.
        literal: Of "blockbpe": one merge a pass, as in the paper's Algorithm 1; a baseline.

    """

    max_bytes: int
    workers: int
    block: int
    literal: bool


def _exact(tokenizer: Tokenizer, device: Device, **options: Any) -> Mode:
    """The batch for the kind of model; what is none of them, `ExactBatch` refuses by name."""
    batches: dict[type, Callable[..., Mode]] = {
        _core.WordPiece: WordPieceBatch,
        _core.CharacterBpe: CharacterBatch,
        _core.SentencePieceBpe: CharacterBatch,
        _core.HuggingFaceUnigram: UnigramBatch,
        _core.SentencePieceUnigram: UnigramBatch,
    }
    return batches.get(type(tokenizer.core.model), ExactBatch)(tokenizer, device, **options)


MODES: dict[str, Callable[..., Mode]] = {"exact": _exact, "blockbpe": BlockBpeBatch}


@dataclass
class EncoderStats:
    """What an encoder has done so far.

    Attributes:
        documents: Texts that came in.
        bytes: Of their UTF-8 form.
        ids: That went out.
        batches: That ran on the device.
        on_cpu: Documents that were left to the CPU, by reason.

    """

    documents: int = 0
    bytes: int = 0
    ids: int = 0
    batches: int = 0
    on_cpu: Counter[str] = field(default_factory=Counter)


class GpuEncoder:
    """Encodes batches of texts on a GPU. Threads may share one; they take turns.

    In exact mode the ids are those of the tokenizer's own `encode_batch`. A document that the kernels cannot do exactly
    (`stats.on_cpu` says why) is encoded by the CPU and put in its place. In blockbpe mode they are those of the paper
    that `tokenweir.gpu.blockbpe` names, and so are those of the CPU.

    Attributes:
        tokenizer: Whose ids they are.
        device: Where it runs.
        stats: What it has done so far.

    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        mode: Literal["exact", "blockbpe"] = "exact",
        device: Device | None = None,
        max_batch_bytes: int | None = None,
        **options: Unpack[ModeOptions],
    ) -> None:
        """Copy a tokenizer's tables to a device.

        Args:
            tokenizer: A tokenizer of byte-level BPE, of BPE of characters with byte fallback, of Unigram, or of WordPiece as BERT
                has it.
            mode: "exact" or "blockbpe".
            device: None is CuPy's current CUDA device.
            max_batch_bytes: Of text that is on the device at once; a longer document goes to the CPU. None is 512 MiB, or
                less if memory is short.
            options: Of the mode; see `ModeOptions`.

        Raises:
            DeviceError: There is no device, or something that it needs is missing; the message says what.
            UnsupportedTokenizerError: The mode cannot encode by this tokenizer; the message names the construct.
            ValueError: There is no such mode, or `max_batch_bytes` is below 1.

        """
        if mode not in MODES:
            raise ValueError(f"mode must be {' or '.join(map(repr, MODES))}, not {mode!r}")
        if max_batch_bytes is not None and max_batch_bytes < 1:
            raise ValueError(f"max_batch_bytes must be at least 1, not {max_batch_bytes}")
        self.device = CupyDevice() if device is None else device
        self.stats = EncoderStats()
        self._max_batch_bytes = max_batch_bytes
        self._staging = [np.empty(0, np.uint8), np.empty(0, np.uint8)]
        self._lock = Lock()
        with self.device.use():
            self._mode = MODES[mode](tokenizer, self.device, **options)
        self.tokenizer = self._mode.tokenizer

    def encode_batch(
        self,
        texts: Iterable[str | bytes | GuardedText],
        *,
        parse_special: bool = True,
        **options: Unpack[AffixOptions],
    ) -> DeviceRagged:
        """Encode many texts.

        Args:
            texts: `str`, `bytes` (UTF-8; in exact mode, what is none counts as U+FFFD) and `Prompt` objects, or a string array of
                Arrow: whatever has `__arrow_c_array__`, `__arrow_c_stream__` or `__arrow_c_device_array__`. One that lies
                on the device (string, large_string or the same of binary) stays there.
            parse_special: As in `Tokenizer.encode`; it must be True if there are prompts.
            options: As in `Tokenizer.encode`. Nothing is added to prompts, which are encoded as by `Prompt.encode`.

        Raises:
            TextError: A text has a lone surrogate; the message says which.
            TemplateError: A prompt was rendered without a guard against one of this tokenizer's control tokens.
            ValueError: An Arrow array is not one of strings, has a null, or lies on another device; or prompts come with
                `parse_special=False`.
            DeviceError: The device failed or has too little memory.

        """
        prefix, suffix = self.tokenizer.affixes(**options)
        with self.device.use():
            found = Texts(texts, self.tokenizer, self.device)
            if found.prompts and not parse_special:
                raise ValueError(
                    f"parse_special=False, but texts[{min(found.prompts)}] is a prompt, whose special tokens count"
                )
            with self._lock:
                return self._encode(found, parse_special, Affixes(prefix, suffix, found.prompts))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a GpuEncoder stays in its process: make one in each")

    def _encode(self, texts: Texts, parse_special: bool, affixes: Affixes) -> DeviceRagged:
        parts = self._encode_parts(texts, parse_special)
        refused = [number_and_reason for part in parts for number_and_reason in part.refused()]
        on_cpu = self._encode_refused(texts, [i for i, _ in refused], parse_special)
        result = join(self.device, parts, on_cpu, affixes)
        self.stats.batches += sum(part.encoded is not None for part in parts)
        self.stats.on_cpu.update(reason for _, reason in refused)
        self.stats.documents += len(texts)
        self.stats.bytes += int(texts.offsets[-1])
        self.stats.ids += int(result.ids.size)
        return result

    def _encode_parts(self, texts: Texts, parse_special: bool) -> list[Part]:
        """Encode part after part; while the device is at one, the next is copied to it."""
        limit = min(self._max_batch_bytes or MAX_BATCH_BYTES, MAX_BYTES)
        if self._max_batch_bytes is None and texts.offsets[-1] > STEP_BYTES:  # to ask takes a while
            limit = min(limit, self.device.free_bytes() // SCRATCH)
        parts = list(texts.parts(min(STEP_BYTES, limit), limit))
        for_device = [part for part in parts if part.on_device]
        if len(for_device) == 1:  # most often; a thread costs more than it could save
            self._encode_part(texts, for_device[0], self._upload(texts, for_device[0], 0), parse_special)
        elif for_device:
            with ThreadPoolExecutor(1, "tokenweir-upload") as ahead:
                coming = ahead.submit(self._upload_apart, texts, for_device[0], 0)
                for turn, part in enumerate(for_device, 1):
                    copied = coming.result()
                    if turn < len(for_device):
                        coming = ahead.submit(self._upload_apart, texts, for_device[turn], turn % 2)
                    try:
                        self._encode_part(texts, part, copied, parse_special)
                    finally:
                        self.device.synchronize()  # memory of `copied` goes back to the other thread's stream
        return parts

    def _encode_part(self, texts: Texts, part: Part, copied: tuple[Any, Any], parse_special: bool) -> None:
        part.encoded = self._mode.encode(*copied, parse_special=parse_special, guards=texts.guards_of(part))

    def _upload_apart(self, texts: Texts, part: Part, turn: int) -> tuple[Any, Any]:
        with self.device.apart():
            return self._upload(texts, part, turn)

    def _upload(self, texts: Texts, part: Part, turn: int) -> tuple[Any, Any]:
        """Copy a part's text and offsets to the device, in one piece, by way of one of two buffers."""
        if isinstance(texts.documents, DeviceDocuments):
            return texts.documents.part(part.first, part.last)
        room = -(-(part.size + SLACK) // _ALIGNMENT) * _ALIGNMENT
        total = room + (len(part) + 1) * 8
        if self._staging[turn].size < total:
            self._staging[turn] = self.device.pinned(-(-total // STAGING_STEP) * STAGING_STEP)
        staging = self._staging[turn]
        texts.documents.copy(part.first, part.last, staging)
        staging[part.size : part.size + SLACK] = 0
        own = texts.offsets[part.first : part.last + 1]
        np.subtract(own, own[0], out=staging[room:total].view(np.int64))
        copied = self.device.to_device(staging[:total])
        return copied[: part.size + SLACK], copied[room:].view(np.int64)

    def _encode_refused(self, texts: Texts, refused: Sequence[int], parse_special: bool) -> CpuIds:
        if not refused:
            return {}
        plain = [i for i in refused if i not in texts.prompts]
        encoded = self.tokenizer.encode_batch(
            (texts.documents[i].decode("utf-8", "replace") for i in plain),
            add_special_tokens=False,
            parse_special=parse_special,
        )
        return dict(zip(plain, encoded, strict=True)) | {
            i: self.tokenizer.encode_array(
                texts.prompts[i].text, add_special_tokens=False, guarded=texts.prompts[i].guarded
            )
            for i in refused
            if i in texts.prompts
        }
