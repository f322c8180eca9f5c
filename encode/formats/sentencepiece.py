"""SentencePiece's model files (sentencepiece 0.2.3, sentencepiece_model.proto).

The library never matches the text of a control piece such as `<s>`. Here control pieces are added tokens, so that what
a chat template writes becomes them; `parse_special=False` gives the library's ids for every text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.protobuf import LENGTH, Schema, fields, read_into
from tokenweir.encode.spec import (
    AddedToken,
    SentencePiece,
    SentencePieceDecoder,
    SentencePieceNormalizer,
    TokenizerSpec,
)
from tokenweir.encode.spec.models import BYTE, CONTROL, UNKNOWN, USER_DEFINED

_NORMALIZER: Schema = {
    2: ("precompiled_charsmap", "bytes"),
    3: ("add_dummy_prefix", "bool"),
    4: ("remove_extra_whitespaces", "bool"),
    5: ("escape_whitespaces", "bool"),
}
_TRAINER: Schema = {
    3: ("model_type", "int32"),
    24: ("treat_whitespace_as_suffix", "bool"),
    35: ("byte_fallback", "bool"),
    44: ("unk_surface", "string"),
    45: ("unk_piece", "string"),
    46: ("bos_piece", "string"),
    47: ("eos_piece", "string"),
    48: ("pad_piece", "string"),
}
_MESSAGES: Mapping[int, tuple[str, Schema]] = {
    2: ("trainer_spec", _TRAINER),
    3: ("normalizer_spec", _NORMALIZER),
    5: ("denormalizer_spec", _NORMALIZER),
}
MAX_BESIDE = 16
"""The most messages that may stand beside the pieces; real files have up to 4."""

_ALGORITHMS: Mapping[int, Literal["BPE", "Unigram"]] = {1: "Unigram", 2: "BPE"}
_ROLES = {"bos": "<s>", "eos": "</s>", "pad": "<pad>"}
"""The control pieces that play a role where the file names no others."""


def looks_like(data: bytes) -> bool:
    """Return whether data may be a SentencePiece model: it begins with a protobuf field that is a piece.

    No rank file does, since its lines are base64 and a number.
    """
    try:
        (first,) = fields(data, 0, min(len(data), 1 << 14), "model", 1)
        if first.number != 1 or first.wire != LENGTH or not isinstance(first.value, tuple):
            return False
        (inner,) = fields(data, *first.value, "pieces[0]", 1)
        return inner.number in (1, 2, 3)
    except (ValueError, TokenizerFileError):
        return False


def read(data: bytes) -> TokenizerSpec:
    """Read a SentencePiece model file; return the spec of the tokenizer.

    Raises:
        TokenizerFileError: The file is damaged, or its pieces are inconsistent.
        UnsupportedTokenizerError: The model is one of words or characters, has two equal pieces, or has a denormalizer.

    """
    pieces, scores, types, rest = _core.sentencepiece_pieces(data)
    messages: dict[str, dict[str, Any]] = {name: {} for name, _ in _MESSAGES.values()}
    beside = (field for start, end in rest for field in fields(data, start, end, "model", MAX_BESIDE + 1))
    for count, field in enumerate(beside):
        if count == MAX_BESIDE:
            raise TokenizerFileError(f"model: more than {MAX_BESIDE} fields beside the pieces, up to byte {field.at}")
        if field.number not in _MESSAGES:
            continue
        name, schema = _MESSAGES[field.number]
        if not isinstance(field.value, tuple) or field.wire != LENGTH:
            raise TokenizerFileError(f"{name}: wire type {field.wire} at byte {field.at}")
        read_into(messages[name], schema, data, field.value, name)
    trainer, normalizer = messages["trainer_spec"], messages["normalizer_spec"]
    if messages["denormalizer_spec"].get("precompiled_charsmap"):
        raise UnsupportedTokenizerError("denormalizer_spec: a precompiled_charsmap, which changes decoded text")
    byte_fallback = trainer.get("byte_fallback", False)
    algorithm = _algorithm(trainer.get("model_type", 1))
    _check(pieces, types, byte_fallback, algorithm)
    add_dummy_prefix = normalizer.get("add_dummy_prefix", True)
    remove_extra_whitespaces = normalizer.get("remove_extra_whitespaces", True)
    surface = {"unk_surface": trainer["unk_surface"]} if "unk_surface" in trainer else {}
    return TokenizerSpec(
        model=SentencePiece(
            algorithm=algorithm,
            pieces=tuple(pieces),
            scores=array("f", scores),
            types=types,
            unk_id=types.index(UNKNOWN),
            byte_fallback=byte_fallback,
            **surface,
        ),
        normalizer=SentencePieceNormalizer(
            charsmap=normalizer.get("precompiled_charsmap", b""),
            add_dummy_prefix=add_dummy_prefix,
            remove_extra_whitespaces=remove_extra_whitespaces,
            escape_whitespaces=normalizer.get("escape_whitespaces", True),
            suffix=trainer.get("treat_whitespace_as_suffix", False),
            user_defined=tuple(pieces[i] for i in _of_type(types, USER_DEFINED)),
        ),
        decoder=SentencePieceDecoder(strip_prefix=add_dummy_prefix, strip_extra=remove_extra_whitespaces),
        added_tokens=tuple(AddedToken(pieces[i], id=i, special=True) for i in _of_type(types, CONTROL)),
        special_roles=dict(_special_roles(trainer, pieces, types)),
        source="SentencePiece model",
    )


def _algorithm(model_type: int) -> Literal["BPE", "Unigram"]:
    if model_type not in _ALGORITHMS:
        names = {3: "words", 4: "characters"}
        raise UnsupportedTokenizerError(f"trainer_spec.model_type: a model of {names.get(model_type, model_type)}")
    return _ALGORITHMS[model_type]


def _of_type(types: bytes, wanted: int) -> Iterator[int]:
    at = -1
    while (at := types.find(wanted, at + 1)) >= 0:
        yield at


def _special_roles(trainer: Mapping[str, Any], pieces: list[str], types: bytes) -> Iterator[tuple[str, str]]:
    """Yield (role, piece) for the unknown piece and the control pieces that play roles, such as ("bos_token", "<s>").

    As in sentencepiece, control pieces are found by their names, and the ids in trainer_spec do not count.

    Args:
        trainer: The fields of the model's trainer_spec.
        pieces: The pieces by id.
        types: The type of each piece, a byte.

    """
    yield "unk_token", pieces[types.index(UNKNOWN)]
    control = {pieces[i] for i in _of_type(types, CONTROL)}
    for role, default in _ROLES.items():
        if (name := trainer.get(f"{role}_piece") or default) in control:
            yield f"{role}_token", name


def _check(pieces: list[str], types: bytes, byte_fallback: bool, algorithm: str) -> None:
    """Raise for pieces that sentencepiece's loader (model_interface.cc) rejects but `_core` would accept.

    Examples: not exactly one unknown piece, equal pieces, or only some of the 256 byte pieces.
    """
    if (unknown := types.count(UNKNOWN)) != 1:
        raise TokenizerFileError(f"pieces: {unknown} of type unknown; exactly one is needed")
    if len(set(pieces)) != len(pieces):
        _refuse_equal_pieces(pieces, types, algorithm)
    byte_pieces = {pieces[i]: i for i in _of_type(types, BYTE)}
    if byte_pieces and not byte_fallback:
        raise TokenizerFileError(f"pieces[{min(byte_pieces.values())}]: a byte, but trainer_spec has no byte_fallback")
    bytes_spelled = [f"<0x{byte:02X}>" for byte in range(256)]
    for piece, i in byte_pieces.items():
        if piece not in bytes_spelled:
            raise TokenizerFileError(f"pieces[{i}]: {piece!r:.60} is no byte")
    if byte_fallback and len(byte_pieces) != 256:
        missing = next(spelled for spelled in bytes_spelled if spelled not in byte_pieces)
        raise TokenizerFileError(f"pieces: no byte {missing}, but trainer_spec has byte_fallback")


def _refuse_equal_pieces(pieces: list[str], types: bytes, algorithm: str) -> None:
    seen: dict[str, int] = {}
    for i, piece in enumerate(pieces):
        if (first := seen.setdefault(piece, i)) == i:
            continue
        message = f"pieces[{i}]: {piece!r:.60} is pieces[{first}] already"
        reserved = {types[j] in (UNKNOWN, CONTROL, BYTE) for j in (i, first)}
        if algorithm == "Unigram" and len(reserved) == 2:  # which sentencepiece keeps apart
            raise UnsupportedTokenizerError(message)
        raise TokenizerFileError(message)
