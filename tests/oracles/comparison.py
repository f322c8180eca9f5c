"""Compares a tokenizer of ours with its reference: every id, offset and decoded character, in every way to encode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import Any

import adversarial
from common_prefix import common_length
from references import Ids, Original, Reference, load_reference

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.tokenizer import Tokenizer

TOKENIZERS = (
    "llama-3.1/tokenizer.json",
    "gguf/ggml-vocab-llama-bpe.gguf",
    "qwen3/tokenizer.json",
    "gguf/ggml-vocab-qwen2.gguf",
    "deepseek-litellm/tokenizer.json",
    "gpt2/tokenizer.json",
    "gguf/ggml-vocab-gpt-2.gguf",
    "gpt2/tokenizer.gigatoken.json",
    "openai/cl100k_base.tiktoken",
    "openai/o200k_base.tiktoken",
    "openai/gpt2.tiktoken",
    "llama-2/tokenizer.json",
    "phi-3-mini/tokenizer.json",
    "mistral-7b-v0.3/tokenizer.json",
    "gemma/tokenizer.json",
    "t5-small/tokenizer.json",
    "bert-base-uncased/tokenizer.json",
    "gguf/ggml-vocab-bert-bge.gguf",
    "llama-2/tokenizer.model",
    "gguf/ggml-vocab-phi-3.gguf",
    "gguf/ggml-vocab-llama-spm.gguf",
    "mistral-common/tokenizer.model.v1",
    "mistral-7b-v0.3/tokenizer.model",
    "sp-test-unigram-en/tokenizer.model",
    "sp-test-unigram-ja/tokenizer.model",
    "mistral-common/tekken_240911.json",
)
ORIGINALS = {
    "gguf/ggml-vocab-gpt-2.gguf": "gpt2/tokenizer.json",
    "gguf/ggml-vocab-llama-bpe.gguf": "llama-3.1/tokenizer.json",
    "gguf/ggml-vocab-qwen2.gguf": "qwen3/tokenizer.json",
    "gguf/ggml-vocab-llama-spm.gguf": "llama-2/tokenizer.model",
    "gguf/ggml-vocab-phi-3.gguf": "llama-2/tokenizer.model",
    "gguf/ggml-vocab-bert-bge.gguf": "bert-base-uncased/tokenizer.json",
}
"""Source files of GGUF files; each stands before them above."""

_reference = lru_cache(maxsize=1)(load_reference)


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
        same = common_length([list(self.ours), list(self.theirs)])
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
    """Decode each list of ids, whole and as a stream, with and without special tokens; yield the differences."""
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


def texts_by_kind(
    data: Path, seed: str, reference: Reference, fuzz: int, every: int
) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each kind of text and its texts.

    Of the corpora, only one in `every` lines is used and, if `every` is above 1, the beginnings instead of whole files.
    """
    corpora = [path.read_bytes().decode() for path in sorted((data / "corpora").rglob("*.*"))]
    yield "corpus lines", [line for text in corpora for line in text.splitlines(keepends=True)][::every]
    if every == 1:
        yield "corpora whole", corpora
    else:
        yield "beginnings of corpora", [text[:2000] for text in corpora]
    vectors = (data / "vectors" / "ggml-vocab-gpt-2.gguf.inp").read_bytes().decode()  # the others hold the same texts
    yield "vectors", vectors.split("\n__ggml_vocab_test__\n")[:-1]
    yield "code points by 64", adversarial.every_code_point(every)
    sample = Random(seed).sample(reference.ids, min(5000, len(reference.ids)))
    vocabulary = list(filter(None, reference.decode([[i] for i in sample], skip_special_tokens=True)))
    kinds = adversarial.strings(fuzz, seed=seed, special_tokens=reference.special_tokens, vocabulary=vocabulary)
    yield from kinds.items()


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


def check(data: Path, name: str, *, fuzz: int, every: int = 1, seed: str = "") -> list[Row]:
    """Compare one of `TOKENIZERS` with its reference; return the rows of `compare`.

    The texts are one in `every` lines of the corpora and `fuzz` adversarial strings; a fifth as many lists of random
    ids are decoded.
    """
    tok = Tokenizer.from_file(data / "tokenizers" / name)
    if name in ORIGINALS:
        original = _reference(data / "tokenizers" / ORIGINALS[name])
        reference: Reference = Original(original, {token.content: token.id for token in tok.added_tokens})
    else:
        reference = _reference(data / "tokenizers" / name)
    seed += name
    kinds = texts_by_kind(data, seed, reference, fuzz, every)
    return compare(tok, reference, kinds, random_ids(seed, reference, fuzz // 5))
