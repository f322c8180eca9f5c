"""The fast tokenizer libraries behind one face, each loaded from the same file as ours.

`reference` is the reference library of a file, for comparison. A way that a library lacks is None.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tokenweir.encode._core import byte_alphabet
from tokenweir.encode.base.cache import cache_folder, store
from tokenweir.encode.reference import merge
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify.references import OpenAI, SentencePiece, Tekken

Ids = Any  # a list or an array, whichever the library gives


@dataclass(frozen=True)
class Peer:
    """The ways of one loaded tokenizer. Special tokens are not added, and do not occur in the texts.

    Attributes:
        array: One text to an array of ids, or whatever flat thing the library is fastest with.
        list: One text to a list of ids.
        batch: Many texts to ids, on as many threads as the library is told.
        decode: Ids, an array or a list, to text; or to bytes, if the library has nothing else.
        decode_bytes: The same to bytes.

    """

    array: Callable[[str], Ids]
    list: Callable[[str], Ids]
    batch: Callable[[Sequence[str]], Any]
    decode: Callable[[Any], Any] | None
    decode_bytes: Callable[[Any], bytes] | None = None


def tokenweir(path: Path, threads: int, *, cache: bool = True) -> Peer:
    tok = Tokenizer.from_file(path, cache=cache)
    adds = bool(tok.encode(""))  # a plain call needs no options, nor the function of Python that gives them
    return Peer(
        (lambda text: tok.encode_array(text, add_special_tokens=False)) if adds else tok.encode_array,
        (lambda text: tok.encode(text, add_special_tokens=False)) if adds else tok.encode,
        lambda texts: tok.encode_batch(texts, threads=threads, add_special_tokens=False),
        tok.decode,
        tok.decode_bytes,
    )


def gigatoken(path: Path, _threads: int) -> Peer:
    from gigatoken import Tokenizer as Gigatoken

    made = Gigatoken.from_tiktoken(str(path)) if path.suffix == ".tiktoken" else Gigatoken(str(path))
    core = made.backend
    return Peer(
        core.encode, lambda text: core.encode_batch_list([text])[0], core.encode_batch, core.decode, core.decode
    )


def fastokens(path: Path, _threads: int, package: str = "fastokens") -> Peer:
    core = import_module(f"{package}._native").Tokenizer.from_file(str(json_file(path)))
    flat = core.encode_batch_flat
    return Peer(
        lambda text: flat([text], False)[0],
        lambda text: core.encode(text, False).ids,
        lambda texts: flat(texts, False),
        core.decode,
    )


def toktok(path: Path, threads: int) -> Peer | None:
    if path.suffix != ".tiktoken":
        return None
    import toktok

    core = toktok._encoding(path.stem)
    batch = core.encode_batch_to_numpy
    return Peer(
        core.encode_to_numpy,
        core.encode_ordinary,
        lambda texts: batch(texts, threads),
        core.decode_bytes,
        core.decode_bytes,
    )


def splintr(path: Path, _threads: int) -> Peer:
    from splintr import _core

    if path.suffix == ".tiktoken":
        patterns = {"cl100k_base": _core.CL100K_BASE_PATTERN, "o200k_base": _core.O200K_BASE_PATTERN}
        core = _core.Tokenizer(str(path), patterns[path.stem], {})
        return Peer(
            core.encode_flat, core.encode_ordinary, core.encode_batch_flat, core.decode_bytes, core.decode_bytes
        )
    made = _core.from_json(str(path))
    one = getattr(made, "encode_raw", None) or made.encode_ordinary
    many = getattr(made, "encode_batch", None) or (lambda texts: [one(text) for text in texts])
    return Peer(one, one, many, made.decode)


def tokie(path: Path, _threads: int) -> Peer:
    import tokie

    core = tokie.Tokenizer.from_json(str(json_file(path)))
    return Peer(
        lambda text: core.encode(text, False).ids,
        lambda text: core.encode(text, False).ids,
        lambda texts: core.encode_batch(list(texts), False),
        None,
    )


def nanotoken(path: Path, _threads: int) -> Peer:
    """WordPiece alone; other files are refused."""
    from nanotoken import Tokenizer as Nanotoken

    core = Nanotoken(str(path))
    one, many = core.backend.encode, core.backend.encode_batch
    return Peer(
        lambda text: one(text, add_special_tokens=False),
        lambda text: list(one(text, add_special_tokens=False)),
        lambda texts: many(list(texts), add_special_tokens=False),
        core.decode,
    )


LIBRARIES: Mapping[str, Callable[[Path, int], Peer | None]] = {
    "tokenweir": tokenweir,
    "gigatoken": gigatoken,
    "fastokens": fastokens,
    "toktok": toktok,
    "splintr": splintr,
    "tokie": tokie,
    "snaptokens": partial(fastokens, package="snaptokens"),  # a fork of fastokens
    "nanotoken": nanotoken,
}


def reference(path: Path, threads: int) -> Peer:
    """The reference library of the file's format: tiktoken, sentencepiece, mistral-common or tokenizers."""
    if path.suffix == ".tiktoken":
        core = OpenAI.from_file(path).encoding
        batch = partial(core.encode_ordinary_batch, num_threads=threads)
        return Peer(core.encode_to_numpy, core.encode_ordinary, batch, core.decode, core.decode_bytes)
    if path.suffix == ".model":
        model = SentencePiece(path).model
        return Peer(
            model.EncodeAsNumpy, model.EncodeAsIds, partial(model.EncodeAsIds, num_threads=threads), model.Decode
        )
    if path.name.startswith("tekken"):
        plain = Tekken(path).encode_plain
        return Peer(lambda text: plain([text])[0], lambda text: plain([text])[0], plain, None)
    import tokenizers

    tok = tokenizers.Tokenizer.from_file(str(path))
    many = partial(tok.encode_batch_fast, add_special_tokens=False)  # faster than its `encode`
    return Peer(lambda text: many([text])[0].ids, lambda text: many([text])[0].ids, many, tok.decode)


def ids_of(given: Any) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return ids as an int32 array, from a list, an array or bytes of uint32."""
    if isinstance(given, bytes | bytearray | memoryview):
        return np.frombuffer(given, np.uint32).astype(np.int32)
    return np.asarray(given).astype(np.int32)


_PATTERNS = {
    # As HuggingFace's files of the same tokenizers have it, which fastokens knows; possessive loops make it slow.
    "cl100k_base": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+",
    "o200k_base": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def json_file(path: Path) -> Path:
    """The file itself or, for a rank file, the same tokenizer as a tokenizer.json, kept for later runs."""
    if path.suffix != ".tiktoken":
        return path
    made = cache_folder() / "bench" / f"{path.stem}.json"
    if not made.exists():
        store(made, json.dumps(_as_json(path)).encode())
    return made


def _as_json(path: Path) -> dict[str, Any]:
    """A rank file as a tokenizer.json: the merges are each token's parts when only lower ranks have merged."""
    ranks = {base64.b64decode(t): int(r) for t, r in (line.split() for line in path.read_bytes().splitlines() if line)}
    alphabet = byte_alphabet()
    spelled = {token: "".join(alphabet[byte] for byte in token) for token in ranks}
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = merge(token, partial(_lower, ranks, rank))
        if len(parts) == 2:
            merges.append([spelled[part] for part in parts])
    split = {"type": "Split", "pattern": {"Regex": _PATTERNS[path.stem]}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "post_processor": None,
        "decoder": level | {"use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {spelled[token]: rank for token, rank in ranks.items()},
            "merges": merges,
        },
    }


def _lower(ranks: Mapping[bytes, int], below: int, pair: tuple[bytes, bytes]) -> int | None:
    rank = ranks.get(pair[0] + pair[1], below)
    return rank if rank < below else None
