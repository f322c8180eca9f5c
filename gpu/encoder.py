"""Batches of texts to ids on a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, NoReturn, TypedDict, Unpack

from tokenweir.encode import _core
from tokenweir.encode.options import AffixOptions, refuse_texts
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.join import Affixes, join
from tokenweir.gpu.lane import Lane, Mode
from tokenweir.gpu.modes.blockbpe import BlockBpeMode
from tokenweir.gpu.modes.characters import CharacterMode
from tokenweir.gpu.modes.exact import ByteLevelMode, ExactMode
from tokenweir.gpu.modes.unigram import UnigramMode
from tokenweir.gpu.modes.wordpiece import WordPieceMode
from tokenweir.gpu.ragged import DeviceRagged
from tokenweir.gpu.replay import Replays
from tokenweir.gpu.texts import CpuIds, GuardedText, Part, Texts


class ModeOptions(TypedDict, total=False):
    """The options of a mode.

    Attributes:
        max_bytes: Bytes of a piece ("exact", 64 KiB unless told otherwise) or of a document ("blockbpe", likewise) beyond
            which a document is left to the CPU.
        workers: Of "exact" for BPE: how many blocks share the pieces that wait for merging; 512 unless told otherwise.
        block: Of "blockbpe": threads of a block, a multiple of 32 up to 1024; 256 unless told otherwise.
        literal: Of "blockbpe": one merge a pass, as in the paper's Algorithm 1; a baseline.

    """

    max_bytes: int
    workers: int
    block: int
    literal: bool


def _exact(tokenizer: Tokenizer, device: Device, **options: Any) -> Mode:
    """Exact mode for the kind of model; `ByteLevelMode` refuses by name what none is for."""
    modes: dict[type, Callable[..., Mode]] = {
        _core.WordPiece: WordPieceMode,
        _core.CharacterBpe: CharacterMode,
        _core.SentencePieceBpe: CharacterMode,
        _core.HuggingFaceUnigram: UnigramMode,
        _core.SentencePieceUnigram: UnigramMode,
    }
    return modes.get(type(tokenizer.core.model), ByteLevelMode)(tokenizer, device, **options)


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


MODES: dict[str, Callable[..., Mode]] = {"exact": _exact, "blockbpe": BlockBpeMode}


@dataclass
class EncoderStats:
    """What an encoder has done so far.

    Attributes:
        documents: How many texts came in.
        bytes: How many bytes their UTF-8 form has.
        ids: How many ids went out.
        batches: How many batches ran on a device.
        on_cpu: How many documents were left to the CPU, by reason.

    """

    documents: int = 0
    bytes: int = 0
    ids: int = 0
    batches: int = 0
    on_cpu: Counter[str] = field(default_factory=Counter)


class GpuEncoder:
    """Encodes batches of texts on a GPU. Threads may share one; they take turns.

    In exact mode the ids are those of the tokenizer's own `encode_batch`. A document that the kernels cannot do exactly
    (`stats.on_cpu` says why) is encoded by the CPU and put in its place. In blockbpe mode all ids are those of the paper
    that `tokenweir.gpu.modes.blockbpe` names, also where the CPU finds them.

    Attributes:
        tokenizer: Whose ids they are.
        devices: Where it runs.
        device: The first of them, where the ids are.
        stats: What it has done so far.

    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        mode: Literal["exact", "blockbpe"] = "exact",
        device: Device | Sequence[Device] | None = None,
        max_batch_bytes: int | None = None,
        replay: bool = False,
        **options: Unpack[ModeOptions],
    ) -> None:
        """Copy a tokenizer's tables to a device, or several.

        Args:
            tokenizer: A tokenizer of byte-level BPE, of BPE of characters with byte fallback, of Unigram, or of
                WordPiece as BERT has it.
            mode: "exact" or "blockbpe".
            device: None is CuPy's current CUDA device. Several share each batch of `SHARE_BYTES` a device or more, by its
                bytes; the ids come to the first.
            max_batch_bytes: Of text that is on a device at once; a longer document goes to the CPU. None is 512 MiB, or
                less if memory is short.
            replay: Whether the kernels for a batch of up to 256 documents and 64 KiB, without guarded text and not on the
                device yet, are started by one launch of a CUDA graph, which is recorded when the first comes; of exact
                mode. The ids are the same; how much time it saves has not been measured yet.
            options: Of the mode; see `ModeOptions`.

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
        self.devices = _devices(device)
        self.device = self.devices[0]
        self.stats = EncoderStats()
        self._lock = Lock()
        self._lanes: list[Lane] = []
        for one in self.devices:
            with one.use():
                made = MODES[mode](tokenizer, one, **options)
                self._lanes.append(Lane(one, made, max_batch_bytes, _replays(one, made) if replay else None))
                one.synchronize()  # the tables are for every thread, whose streams do not wait for this one's
        self.tokenizer = self._lanes[0].mode.tokenizer

    def encode_batch(
        self,
        texts: Iterable[str | bytes | GuardedText],
        *,
        parse_special: bool = True,
        **options: Unpack[AffixOptions],
    ) -> DeviceRagged:
        """Encode many texts.

        Args:
            texts: `str`, `bytes` (UTF-8; in exact mode, what is none counts as U+FFFD) and `Prompt` objects, or a
                string array of Arrow: whatever has `__arrow_c_array__`, `__arrow_c_stream__` or
                `__arrow_c_device_array__`. One that lies on the device (string, large_string or the same of binary)
                stays there.
            parse_special: As in `Tokenizer.encode`; it must be True if there are prompts.
            options: As in `Tokenizer.encode`. Nothing is added to prompts, which are encoded as by `Prompt.encode`.

        Raises:
            TextError: A text has a lone surrogate; the message says which.
            TemplateError: A prompt was rendered without a guard against one of this tokenizer's control tokens.
            ValueError: An Arrow array is not one of strings, has a null, or lies on another device; or prompts come with
                `parse_special=False`.
            DeviceError: The device failed or has too little memory.

        """
        refuse_texts(parse_special=parse_special)
        prefix, suffix = self.tokenizer.affixes(**options)
        with self.device.use():
            found = Texts(texts, self.tokenizer, self.devices)
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
        """Encode the share of each device; all ids come to the first."""
        shares = texts.shares(self.devices)
        busy = [(lane, share) for lane, share in zip(self._lanes[1:], shares[1:], strict=True) if share]
        if not busy:
            return self._lanes[0].encode(texts, shares[0], parse_special)
        with ThreadPoolExecutor(len(busy), "tokenweir-device") as threads:
            coming = [threads.submit(lane.encode_to_end, texts, share, parse_special) for lane, share in busy]
            parts = self._lanes[0].encode(texts, shares[0], parse_special)
            for future in coming:
                parts += map(self._moved, future.result())
        return parts

    def _moved(self, part: Part) -> Part:
        """A part of another device."""
        if part.encoded is not None:
            ids, offsets = self.device.copied(part.encoded.ids), self.device.copied(part.encoded.offsets)
            part.encoded = part.encoded._replace(ids=ids, offsets=offsets)
        return part

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
            i: self.tokenizer.encode_array(texts.prompts[i].text, add_special_tokens=False, guarded=texts.guarded[i])
            for i in refused
            if i in texts.prompts
        }
