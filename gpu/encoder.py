"""Encoding of batches of texts on a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, NoReturn, TypedDict, Unpack

from tokenweir.encode import _core
from tokenweir.encode.base.options import AffixOptions, check_flags
from tokenweir.encode.base.platform import usable_cores
from tokenweir.encode.tokenizer import Tokenizer, core_of
from tokenweir.gpu.arrow import DeviceDocuments
from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.device_pipeline import DevicePipeline, Mode
from tokenweir.gpu.join import AddedIds, join
from tokenweir.gpu.modes.blockbpe import BlockBpeMode
from tokenweir.gpu.modes.characters import CharacterMode
from tokenweir.gpu.modes.exact import ByteLevelMode, ExactMode
from tokenweir.gpu.modes.unigram import UnigramMode
from tokenweir.gpu.modes.wordpiece import WordPieceMode
from tokenweir.gpu.ragged import DeviceRagged
from tokenweir.gpu.replay import Replays
from tokenweir.gpu.texts import BatchPart, BatchTexts, CpuIds, GuardedText


class ModeOptions(TypedDict, total=False):
    """The options of a mode.

    Attributes:
        max_bytes: In mode "exact", a longer piece goes to the CPU: alone if it is of byte-level BPE, of which the parts
            between two places that no merge crosses count, or else with its document. In mode "blockbpe", a longer
            document does. By default 1 KiB for BPE, 16 KiB for other models, and 64 KiB in mode "blockbpe".
        workers: Only "exact" with BPE: the number of blocks that share the pieces queued for merging; 512 by default.
        block: Only "blockbpe": the number of threads in a block, a multiple of 32 up to 1024; 256 by default.
        literal: Only "blockbpe": whether a pass does one merge, as in the paper's Algorithm 1; a baseline.

    """

    max_bytes: int
    workers: int
    block: int
    literal: bool


def _exact(tokenizer: Tokenizer, device: Device, **options: Any) -> Mode:
    """Make exact mode for the tokenizer's kind of model; raise `UnsupportedTokenizerError` for a kind without one."""
    modes: dict[type, Callable[..., Mode]] = {
        _core.WordPiece: WordPieceMode,
        _core.CharacterBpe: CharacterMode,
        _core.SentencePieceBpe: CharacterMode,
        _core.HuggingFaceUnigram: UnigramMode,
        _core.SentencePieceUnigram: UnigramMode,
    }
    return modes.get(type(core_of(tokenizer).model), ByteLevelMode)(tokenizer, device, **options)


def _replays(device: Device, mode: Mode) -> Replays:
    if not isinstance(mode, ExactMode):
        raise TypeError("replay=True is of exact mode only")
    return Replays(device, mode)


def _devices(device: Device | Sequence[Device] | None) -> tuple[Device, ...]:
    if device is None:
        return (CupyDevice(),)
    if not isinstance(device, Sequence):
        return (device,)
    if not device:
        raise ValueError("device must be one or several, not none")
    return tuple(device)


CPU_BYTES = 32 << 10
"""The bytes of a batch that a core of the CPU encodes about as fast as a device, whose launches take as long whatever the
batch.
"""

REPLAY = True
"""The default of `replay` in exact mode."""

MODES: dict[str, Callable[..., Mode]] = {"exact": _exact, "blockbpe": BlockBpeMode}


@dataclass
class EncoderStats:
    """The counts of an encoder's work so far.

    Attributes:
        documents: The number of texts encoded, those left to the CPU included.
        bytes: The bytes of their UTF-8 form.
        ids: The number of ids returned.
        batches: The number of batches that ran on a device.
        on_cpu: The number of documents left to the CPU, by reason.

    """

    documents: int = 0
    bytes: int = 0
    ids: int = 0
    batches: int = 0
    on_cpu: Counter[str] = field(default_factory=Counter)


class GpuEncoder:
    """Encodes batches of texts on a GPU. Threads may share one; they take turns.

    In exact mode the ids are those of the tokenizer's `encode_batch`. A document that the kernels cannot encode exactly
    is encoded by the CPU instead (`stats.on_cpu` counts the reasons). In blockbpe mode all ids, also those of documents
    left to the CPU, are those of the paper that `tokenweir.gpu.modes.blockbpe` cites.

    Attributes:
        tokenizer: The tokenizer whose ids these are.
        devices: The devices on which kernels run.
        device: The first of them, which holds the ids.
        stats: The counts of its work so far.
        min_bytes: The bytes of text from which a batch goes to the device.

    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        mode: Literal["exact", "blockbpe"] = "exact",
        device: Device | Sequence[Device] | None = None,
        max_batch_bytes: int | None = None,
        min_bytes: int | None = None,
        replay: bool | None = None,
        **options: Unpack[ModeOptions],
    ) -> None:
        """Copy a tokenizer's tables to a device, or several.

        Args:
            tokenizer: A tokenizer of byte-level BPE, of BPE of characters with byte fallback, of Unigram, or of
                WordPiece as BERT has it.
            mode: "exact" or "blockbpe".
            device: The device or devices; None is CuPy's current CUDA device. Several share a batch evenly by bytes, if
                it has at least `SHARE_BYTES` for each; the ids are gathered on the first.
            max_batch_bytes: The most bytes of text on a device at once; a longer document goes to the CPU. None is
                512 MiB, or less if memory is short.
            min_bytes: The bytes of text from which a batch goes to the device; the CPU encodes smaller ones (exact mode
                only; texts on a device always stay there). None is `CPU_BYTES` for each core of the process; 0 is for
                an encoder that is to have all batches.
            replay: Whether to launch the kernels of small batches as one CUDA graph, which the first batch of about the
                same size records: batches of up to 1 MiB, on the host, without guarded text. None is True in exact
                mode, and False in another, which does not have it.
            options: Options of the mode; see `ModeOptions`.

        Raises:
            DeviceError: There is no device, or something that it needs is missing; the message says what.
            TypeError: The mode does not have one of the options.
            UnsupportedTokenizerError: The mode cannot encode by this tokenizer; the message names the construct.
            ValueError: There is no such mode or no device, or a number is out of range.

        """
        if mode not in MODES:
            raise ValueError(f"mode must be {' or '.join(map(repr, MODES))}, not {mode!r}")
        if max_batch_bytes is not None and max_batch_bytes < 1:
            raise ValueError(f"max_batch_bytes must be at least 1, not {max_batch_bytes}")
        if min_bytes is not None and min_bytes < 0:
            raise ValueError(f"min_bytes must be at least 0, not {min_bytes}")
        exact = mode == "exact"
        self.min_bytes = (CPU_BYTES * usable_cores() if min_bytes is None else min_bytes) if exact else 0
        replay = REPLAY and exact if replay is None else replay
        self.devices = _devices(device)
        self.device = self.devices[0]
        self.stats = EncoderStats()
        self._lock = Lock()
        self._pipelines: list[DevicePipeline] = []
        for one in self.devices:
            with one.use():
                made = MODES[mode](tokenizer, one, **options)
                self._pipelines.append(
                    DevicePipeline(one, made, max_batch_bytes, _replays(one, made) if replay else None)
                )
                one.synchronize()  # the tables are for every thread, whose streams do not wait for this one's
        self.tokenizer = self._pipelines[0].mode.tokenizer

    def encode_batch(
        self,
        texts: Iterable[str | bytes | GuardedText],
        *,
        parse_special: bool = True,
        **options: Unpack[AffixOptions],
    ) -> DeviceRagged:
        """Encode many texts.

        Args:
            texts: `str`, `bytes` (UTF-8; in exact mode, invalid bytes count as U+FFFD) and `Prompt` objects, or a
                string array of Arrow: whatever has `__arrow_c_array__`, `__arrow_c_stream__` or
                `__arrow_c_device_array__`. An array that lies on the device (of type string, large_string, binary or
                large_binary) is not copied to the host.
            parse_special: As in `Tokenizer.encode`; it must be True if there are prompts.
            options: As in `Tokenizer.encode`. Nothing is added to prompts, which are encoded as by `Prompt.encode`.

        Returns:
            The ids of each text, on the first device.

        Raises:
            TextError: A text has a lone surrogate; the message says which.
            ValueError: An Arrow array is not one of strings, has a null, or lies on another device; or prompts come
                with `parse_special=False`.
            DeviceError: The device failed or has too little memory.

        """
        check_flags(parse_special=parse_special)
        prefix, suffix = self.tokenizer.affixes(**options)
        with self.device.use():
            found = BatchTexts(texts, self.tokenizer, self.devices)
            if found.prompts and not parse_special:
                raise ValueError(
                    f"parse_special=False, but texts[{min(found.prompts)}] is a prompt, whose special tokens count"
                )
            with self._lock:
                return self._encode(found, parse_special, AddedIds(prefix, suffix, found.prompts))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a GpuEncoder stays in its process: make one in each")

    def _encode(self, texts: BatchTexts, parse_special: bool, affixes: AddedIds) -> DeviceRagged:
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

    def _encode_parts(self, texts: BatchTexts, parse_special: bool) -> list[BatchPart]:
        """Encode each device's share; return all parts in the documents' order, with their ids on the first device."""
        size = int(texts.offsets[-1])
        if size < self.min_bytes and not isinstance(texts.documents, DeviceDocuments):
            return [BatchPart(0, len(texts), size, f"a batch of less than {self.min_bytes} bytes")]
        shares = texts.shares(self.devices)
        busy = [(pipeline, share) for pipeline, share in zip(self._pipelines[1:], shares[1:], strict=True) if share]
        if not busy:
            return self._pipelines[0].encode(texts, shares[0], parse_special)
        with ThreadPoolExecutor(len(busy), "tokenweir-device") as threads:
            coming = [threads.submit(pipeline.encode_to_end, texts, share, parse_special) for pipeline, share in busy]
            parts = self._pipelines[0].encode(texts, shares[0], parse_special)
            for future in coming:
                parts += map(self._moved, future.result())
        return parts

    def _moved(self, part: BatchPart) -> BatchPart:
        """Copy the ids of a part that another device encoded to the first device; return the part, which is changed."""
        if part.encoded is not None:
            ids, offsets = self.device.copied(part.encoded.ids), self.device.copied(part.encoded.offsets)
            part.encoded = part.encoded._replace(ids=ids, offsets=offsets)
        return part

    def _encode_refused(self, texts: BatchTexts, refused: Sequence[int], parse_special: bool) -> CpuIds:
        if not refused:
            return {}
        plain = [i for i in refused if i not in texts.prompts]
        encoded = self.tokenizer.encode_batch(
            (texts.documents[i].decode("utf-8", "replace") for i in plain),
            add_special_tokens=False,
            parse_special=parse_special,
        )
        return dict(zip(plain, encoded, strict=True)) | {
            i: self.tokenizer.encode_array(texts.prompts[i].text, add_special_tokens=False, guarded=texts.guarded[i])
            for i in refused
            if i in texts.prompts
        }
