"""JSONL to the indexed dataset that Megatron-LM's `tools/preprocess_data.py` writes, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.corpus.encode import why_invalid
from tokenweir.corpus.inputs import Input, InputPart
from tokenweir.corpus.reading import json_lines, place
from tokenweir.corpus.shards import Indexed, megatron_type
from tokenweir.corpus.storage import folder_at, naming
from tokenweir.encode.errors import CorpusError
from tokenweir.encode.tokenizer import Tokenizer


def preprocess(
    path: str,
    prefix: str,
    tokenizer: Tokenizer,
    *,
    keys: Sequence[str] = ("text",),
    eod: int | None = None,
    threads: int | None = None,
    report: Callable[[int], None] = lambda documents: None,
) -> int:
    """Write `PREFIX_KEY_document.bin` and `.idx` for each key of a JSONL file; return the number of documents.

    A value is a text, or a list of texts, each of which is a sequence. A sequence without ids is left out; its document stays.
    The files appear when they are complete.

    Args:
        path: A file, perhaps compressed; a path or URL.
        prefix: The beginning of the files' names; a path or URL.
        tokenizer: The tokenizer.
        keys: The fields to encode.
        eod: An id behind the last one of each document that has any; None for none.
        threads: As for `Tokenizer.encode_batch`.
        report: Called with the number of documents so far.

    Raises:
        CorpusError: A line is not JSON, a value is no text, or a file cannot be read or written.

    """
    above, _, name = prefix.replace("\\", "/").rpartition("/")
    folder = folder_at(above or ".", "preprocess")
    with naming(path):
        file = Input.at(path)
    part = InputPart(file, 0, file.size, file.size)
    dtype = megatron_type(len(tokenizer.vocab))
    names = [f"{name}_{key}_document{ending}" for key in keys for ending in (".bin", ".idx")]
    documents = 0
    with ExitStack() as opened, naming(folder.path):
        folder.create()
        opened.callback(folder.discard, names)
        writers = {}
        for key, data, index in zip(keys, names[::2], names[1::2], strict=True):
            file_of_ids = opened.enter_context(open(folder.staged(data), "wb"))
            writers[key] = Indexed(file_of_ids, folder.staged(index), dtype)
        with naming(path):
            for values, numbers in json_lines(part, keys):
                for key, writer in writers.items():
                    writer.write(*_encoded(tokenizer, values[key], eod, threads, key, part, numbers))
                documents += len(numbers)
                report(documents)
            file.check()
        for writer in writers.values():
            writer.close()
        folder.publish(names)  # an index is moved after its ids, so that it never stands alone
    return documents


def _encoded(
    tokenizer: Tokenizer,
    values: Sequence[Any],
    eod: int | None,
    threads: int | None,
    key: str,
    part: InputPart,
    numbers: Sequence[int],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the ids of documents, the sizes of the sequences, and the number of sequences of each document."""
    texts = [value if isinstance(value, list) else [value] for value in values]
    for number, several in zip(numbers, texts, strict=True):
        for text in several:
            if (why := why_invalid(text)) is not None:
                raise CorpusError(f"{place(part, number)}: {key!r}: {why}")
    rows = tokenizer.encode_batch([text for one in texts for text in one], threads=threads, add_special_tokens=False)
    of = np.repeat(np.arange(len(texts)), [len(several) for several in texts])
    sizes = np.diff(rows.offsets)
    there = sizes > 0
    ids, sizes, of, ends = rows.ids, sizes[there], of[there], rows.offsets[1:][there]
    if eod is not None:
        is_last = np.append(of[1:] != of[:-1], True)[: len(of)]
        ids, sizes = np.insert(ids, ends[is_last], eod), sizes + is_last
    return ids, sizes, np.bincount(of, minlength=len(texts))
