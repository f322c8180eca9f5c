"""Small SentencePiece files: a trainer's, a protobuf message's fields to change them, and character maps from rules."""

from __future__ import annotations

import io
import struct

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
CORPUS = [
    *["the quick brown fox jumps over the lazy dog.", "hello world! こんにちは世界 가나다 ﬁ ① カ é naïve <sep> a  b"]
    * 50,
    *[f"{w} {i} word{i * 7 % 13}" for i, w in enumerate(WORDS * 20)],
]
USER_DEFINED = (
    *("<sep>", "<sep>x", "▁▁", "▁▁▁", "  ", "a b", " c", "d ", "é", "ﬁ", "①①", "aaa", "aa", "日本", "▁the", "\u3000"),
)

PIECES, TRAINER, NORMALIZER = 1, 2, 3  # fields of a model
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # types of pieces
UNIGRAM, BPE = 1, 2  # types of models


def train(**options):
    """Train a small model by the library `sentencepiece`; return the bytes of its file."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        **{
            "sentence_iterator": iter(CORPUS),
            "model_writer": model,
            "model_type": "bpe",
            "vocab_size": 180,
            "hard_vocab_limit": False,
            "character_coverage": 1.0,
            "minloglevel": 2,
            **options,
        }
    )
    return model.getvalue()


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    """Encode a protobuf field; the type of the value decides its wire type."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(message):
    """Yield (number, value) of each field of a well-formed protobuf message."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            shift += 7
            at += 1
            if message[at - 1] < 128:
                return value

    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
            continue
        length = 4 if tag & 7 == 5 else number()
        raw = message[at : at + length]
        at += length
        yield tag >> 3, struct.unpack("<f", raw)[0] if tag & 7 == 5 else raw


def edited(model, message, changes):
    """Return a model with `changes` (field number to value) in the message of number `message`."""
    out = b""
    for number, value in fields(model):
        if number == message:
            kept = b"".join(field(n, v) for n, v in fields(value) if n not in changes)
            value = kept + b"".join(field(n, v) for n, v in changes.items())
        out += field(number, value)
    return out


def piece(text, score=0.0, kind=None):
    return field(PIECES, field(1, text) + field(2, score) + (b"" if kind is None else field(3, kind)))


def small_model(*more, trainer=(), normalizer=(), unknown=True):
    """Return the bytes of a model of a few pieces, with `more` encoded pieces and changed trainer and normalizer fields."""
    pieces = [
        *([piece("<unk>", 0.0, UNKNOWN)] if unknown else []),
        *(piece(text, 0.0, CONTROL) for text in ("<s>", "</s>")),
        *(piece(text, -1.0 - i) for i, text in enumerate(["▁", "a", "b", "▁a", "ab", "▁ab"])),
    ]
    messages = [(TRAINER, {3: 2, **dict(trainer)}), (NORMALIZER, dict(normalizer))]
    return b"".join([*pieces, *more]) + b"".join(
        field(number, b"".join(field(n, v) for n, v in message.items())) for number, message in messages
    )


def unknown_of(pieces):
    """Return the id of the unknown piece of (piece, score, type)."""
    return next(i for i, (_, _, kind) in enumerate(pieces) if kind == UNKNOWN)


def processor_of(algorithm, pieces, byte_fallback, *, escape_whitespaces):
    """Return the library's processor of (piece, score, type), whose normalizer changes nothing but spaces."""
    import sentencepiece

    trainer = {3: algorithm, 35: int(byte_fallback), 40: unknown_of(pieces)}
    normalizer = {1: "identity", 3: 0, 4: 0, 5: int(escape_whitespaces)}
    proto = b"".join(piece(*row) for row in pieces) + b"".join(
        field(number, b"".join(field(n, v) for n, v in message.items()))
        for number, message in ((TRAINER, trainer), (NORMALIZER, normalizer))
    )
    return sentencepiece.SentencePieceProcessor(model_proto=proto)


def charsmap_of(model):
    return dict(fields(dict(fields(model))[NORMALIZER])).get(2, b"")


def charsmap(rules):
    """Return SentencePiece's precompiled form of `{key: replacement}`, keys as str or bytes: a double array, built by first fit."""
    keys = {(k.encode() if isinstance(k, str) else k): v.encode() for k, v in rules.items()}
    replacements, values = b"", {}
    for key, replacement in keys.items():
        values[key] = len(replacements)
        replacements += replacement + b"\0"
    prefixes = {key[:n] for key in keys for n in range(len(key) + 1)}
    children = {prefix: set() for prefix in prefixes}
    for prefix in prefixes - {b""}:
        children[prefix[:-1]].add(prefix[-1])
    units, bases = {0: 0}, set()
    free = 1

    def place(prefix, node):
        nonlocal free
        labels = sorted(children[prefix]) + ([0] if prefix in keys else [])
        while free in units:
            free += 1
        base = free
        while base in bases or any(base ^ label in units for label in labels):
            base += 1
        bases.add(base)
        for label in labels:
            units[base ^ label] = label
        units[node] |= (node ^ base) << 10 | (prefix in keys) << 8
        if prefix in keys:
            units[base] = 1 << 31 | values[prefix]
        for label in sorted(children[prefix]):
            place(prefix + bytes([label]), base ^ label)

    place(b"", 0)
    size = (max(units) + 256) // 256 * 256
    trie = struct.pack(f"<{size}I", *(units.get(i, 1 << 31) for i in range(size)))
    return struct.pack("<I", len(trie)) + trie + replacements
