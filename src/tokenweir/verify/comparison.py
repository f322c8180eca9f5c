"""Compares a tokenizer of ours with its reference: every id, offset and decoded character, in every way to encode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from random import Random
from typing import Any

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify.references import Ids, Reference


@dataclass
class Difference:
    """Two results that differ although they must be equal.

    Attributes:
        what: The operation.
        given: Its input: a text, or ids to decode.
        ours: The result of tokenweir.
        theirs: The result of the reference.

    """

    what: str
    given: Any  # str or Sequence[int]
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        """Return a message with both results, from a little before their first difference."""
        lists = isinstance(self.ours, (str, list)) and isinstance(self.theirs, (str, list))
        if not lists:
            return f"{self.what} of {self.given!r}: ours {self.ours!r}, theirs {self.theirs!r}"
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.ours, self.theirs, strict=False)))
        part = slice(max(0, same - 3), same + 20)
        return (
            f"{self.what} of {self.given[:300]!r} (length {len(self.given)}), from position {part.start}:\n"
            f"    ours   {self.ours[part]!r}\n    theirs {self.theirs[part]!r}"
        )


@dataclass
class Row:
    """Result of the comparison on one kind of text.

    Attributes:
        kind: The kind.
        library: The reference library, with its version.
        strings: The number of texts.
        differences: All differences found.

    """

    kind: str
    library: str
    strings: int = 0
    differences: list[Difference] = field(default_factory=list)


def unequal(what: str, given: Iterable[Any], ours: Iterable[Any], theirs: Iterable[Any]) -> Iterator[Difference]:
    """Yield a `Difference` for each input whose two results differ; a result of the reference that is None is skipped."""
    for text, left, right in zip(given, ours, theirs, strict=True):
        if right is not None and left != right:
            yield Difference(what, text, left, right)


def encode_differences(tok: Tokenizer, reference: Reference, texts: Sequence[str]) -> Iterator[Difference]:
    """Encode each text in every way by both tokenizers, and decode the ids; yield the differences."""
    ids = [tok.encode(text) for text in texts]
    same = partial(unequal, given=texts)
    yield from same("ids", ours=ids, theirs=reference.encode(texts, add_special_tokens=True))

    bare = (tok.encode(text, add_special_tokens=False) for text in texts)
    yield from same("ids without special tokens", ours=bare, theirs=reference.encode(texts, add_special_tokens=False))

    plain = (tok.encode(text, add_special_tokens=False, parse_special=False) for text in texts)
    yield from same("ids of plain text", ours=plain, theirs=reference.encode_plain(texts))

    encoded = [tok.encode_with_offsets(text) for text in texts]
    offsets = (one.offsets for one in encoded)
    yield from same("offsets", ours=map(reference.known, offsets), theirs=reference.offsets(texts))

    offsets = (tok.encode_with_offsets(text, add_special_tokens=False).offsets for text in texts)
    theirs = reference.offsets(texts, add_special_tokens=False)
    yield from same("offsets without special tokens", ours=map(reference.known, offsets), theirs=theirs)

    yield from same("encode_with_offsets", ours=(one.ids for one in encoded), theirs=ids)
    yield from same("encode_array", ours=(tok.encode_array(text).tolist() for text in texts), theirs=ids)
    yield from same("encode_batch", ours=(row.tolist() for row in tok.encode_batch(texts, threads=2)), theirs=ids)
    yield from same("count", ours=map(tok.count, texts), theirs=map(len, ids))
    yield from decode_differences(tok, reference, ids)


def decode_differences(tok: Tokenizer, reference: Reference, batch: Ids) -> Iterator[Difference]:
    """Decode each list of ids with and without special tokens, and in both byte-fallback modes; yield the differences.

    The text is compared with the reference's, and that of a `DecodeStream` with the text of `Tokenizer.decode`.
    """
    for skip, what in ((True, "decode"), (False, "decode with special tokens")):
        theirs = reference.decode(batch, skip_special_tokens=skip)
        valid = [None if text is None or "\ufffd" in text else text for text in theirs]  # here, both modes agree
        for mode in ("eager", "huggingface"):
            whole = [tok.decode(ids, skip_special_tokens=skip, byte_fallback=mode) for ids in batch]
            yield from unequal(f"{what}, {mode}", batch, whole, theirs if mode == reference.byte_fallback else valid)
            stream = DecodeStream(tok, skip_special_tokens=skip, byte_fallback=mode)
            streamed = []
            for ids in batch:
                streamed.append("".join(map(stream.step, ids)) + stream.flush())
                stream.reset()
            yield from unequal(f"streamed {what}, {mode}", batch, streamed, whole)


def shrunk(tok: Tokenizer, reference: Reference, difference: Difference) -> Difference:
    """Return a difference of the same operation on a shorter input, found by leaving out ever smaller parts."""

    def find(given: Any) -> Difference | None:
        differences = encode_differences if isinstance(given, str) else decode_differences
        return next((d for d in differences(tok, reference, [given]) if d.what == difference.what), None)

    size = len(difference.given) // 2
    while size:
        given = difference.given
        shorter = (find(given[:start] + given[start + size :]) for start in range(0, len(given), size))
        smaller = next(filter(None, shorter), None)
        difference, size = (smaller, min(size, len(smaller.given) // 2)) if smaller else (difference, size // 2)
    return difference


def random_ids(seed: str, reference: Reference, count: int) -> list[list[int]]:
    """Return random lists of ids, in which characters are cut anywhere and special tokens stand between their bytes."""
    rng = Random(f"{seed}/ids")
    short = reference.ids[:512]  # the single bytes are among the first ids of every byte-level vocabulary
    return [rng.choices(rng.choice((reference.ids, short)), k=rng.randint(0, 30)) for _ in range(count)]


def compare(
    tok: Tokenizer, reference: Reference, kinds: Iterable[tuple[str, list[str]]], ids: list[list[int]]
) -> list[Row]:
    """Compare a tokenizer with its reference; return a row for each kind of text, and one for the ids.

    The first difference of each row is shrunk.
    """
    rows = []
    for kind, texts in kinds:
        row = Row(kind, reference.library, len(texts))
        step = 1 if kind == "corpora whole" else 2000  # what the reference's encodings may take of the memory
        for start in range(0, len(texts), step):
            row.differences += encode_differences(tok, reference, texts[start : start + step])
        rows.append(row)
    rows.append(Row("random ids", reference.library, len(ids), list(decode_differences(tok, reference, ids))))
    for row in rows:
        row.differences[:1] = [shrunk(tok, reference, d) if len(d.given) < 3000 else d for d in row.differences[:1]]
    return rows
