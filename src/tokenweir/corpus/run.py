"""A run: parts to shards, in as many processes as there are cores."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import NamedTuple

import msgspec

from tokenweir.corpus.documents import DocumentBatch, DocumentEncoder
from tokenweir.corpus.inputs import InputPart, check_path, kind_of, naming, plan
from tokenweir.corpus.manifest import Manifest, RunHeader, Shard
from tokenweir.corpus.shards import NAMES, WRITERS, Format
from tokenweir.encode.build import core_of
from tokenweir.encode.errors import CorpusError
from tokenweir.encode.options import EncodeOptions
from tokenweir.encode.platform import usable_cores

VERSION = 2
"""Version to increment with any change of the shards' bytes or of the cutting of inputs."""

_USUAL_OPTIONS = EncodeOptions(add_special_tokens=True, add_bos=None, add_eos=None, parse_special=True)


class Progress(NamedTuple):
    """Progress of a run.

    Attributes:
        done: Bytes of the inputs in complete shards.
        total: Bytes of all inputs.
        resumed: Bytes of the inputs in shards of an earlier run.
        documents: Number of documents in complete shards.
        tokens: Number of ids in complete shards.
        shards: Number of complete shards.
        skipped: Number of rows that were left out because they are missing or null.

    """

    done: int
    total: int
    resumed: int
    documents: int
    tokens: int
    shards: int
    skipped: int = 0


def encode_files(
    paths: Sequence[Path],
    folder: Path,
    encoder: DocumentEncoder,
    *,
    format: Format = "parquet",
    part_bytes: int = 64 << 20,
    workers: int | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Encode files to shards of ids in a folder, and return the final progress.

    Shards that an earlier run with the same files and options has completed are kept. The shards are the same however
    many processes there are, and however often a run was killed and begun again. Memory is bounded: a process has
    `reading.BATCH_BYTES` of text and its ids at a time, or one row, if that is larger.

    Args:
        paths: Parquet, Arrow, JSONL or text files.
        folder: Where the shards, one for each part, and the manifest go.
        encoder: Encodes the documents.
        format: The format of the shards: "parquet", "npy" or "megatron".
        part_bytes: Approximate size of a part of an input.
        workers: Number of processes; None for as many as there are usable cores. With 1, this process does the work.
        report: Called with the progress at the beginning and after each shard.

    Raises:
        CorpusError: An input cannot be read or encoded, the folder has something else, or pyarrow is needed and not
            installed. Complete shards are kept.

    """
    _check_installed(paths, format)
    check_path(folder)
    parts = plan(paths, part_bytes)
    inputs = tuple({part.input.path: part.input for part in parts}.values())
    settings: dict[str, str | int | bool | None] = {
        "column": encoder.column,
        "format": format,
        "loss_mask": encoder.loss_mask,
        "options": msgspec.json.encode(_USUAL_OPTIONS | encoder.options, order="sorted").decode(),
        "part_bytes": part_bytes,
        "template": None if encoder.template is None else hashlib.sha256(encoder.template.source.encode()).hexdigest(),
    }
    if encoder.skip_null:  # left out otherwise, so that older manifests are the same
        settings["skip_null"] = True
    manifest = Manifest(folder, RunHeader(VERSION, inputs, _fingerprint(encoder), settings))
    finished = False
    try:
        left = [part for part in parts if part.number not in manifest.shards]
        total = sum(part.size for part in parts)
        resumed = total - sum(part.size for part in left)
        done = resumed

        def progress() -> Progress:
            shards = manifest.shards.values()
            documents, tokens = sum(shard.documents for shard in shards), sum(shard.tokens for shard in shards)
            skipped = sum(shard.skipped for shard in shards)
            return Progress(done, total, resumed, documents, tokens, len(shards), skipped)

        report(progress())
        workers = min(len(left), workers or usable_cores())
        with _shards(left, folder, encoder, format, workers) as shards:
            for part, shard in shards:
                manifest.add(shard)
                done += part.size
                report(progress())
        for file in inputs:
            file.check()
        finished = True
        return progress()
    finally:
        manifest.close(finished=finished)


def _check_installed(paths: Sequence[Path], format: Format) -> None:
    arrow_files = {kind_of(path) for path in paths} & {"parquet", "arrow"}
    if not (arrow_files or format == "parquet") or find_spec("pyarrow") is not None:
        return
    if arrow_files:
        raise CorpusError("Parquet and Arrow files need pyarrow: pip install 'tokenweir[arrow]'")
    raise CorpusError("the format parquet needs pyarrow: pip install 'tokenweir[arrow]', or choose npy or megatron")


def _fingerprint(encoder: DocumentEncoder) -> str:
    """Return a digest of a tokenizer and its options: of the meaning of its ids, and of the ids of sample texts."""
    tokenizer = encoder.tokenizer
    samples = ["Hello, world!\n  naïve café 12345", "你好，世界 \U0001f600", *tokenizer.control_texts[:100]]
    ids = [tokenizer.encode(text, **encoder.options) for text in samples]
    return hashlib.sha256(repr((core_of(tokenizer).tokens.digest(), tokenizer.vocab_size, ids)).encode()).hexdigest()


def _make_shard(encoder: DocumentEncoder, folder: Path, format: Format, part: InputPart) -> Shard:
    part.input.check()
    name = f"{NAMES}{part.number:05d}"
    with naming(folder), WRITERS[format](folder, name, encoder.tokenizer.vocab_size, masks=encoder.loss_mask) as writer:
        for batch in _batches(encoder, part):
            writer.write(batch)
        part.input.check()
        return Shard(part.number, writer.close(), writer.documents, writer.tokens, writer.skipped)


def _batches(encoder: DocumentEncoder, part: InputPart) -> Iterator[DocumentBatch]:
    """Read and encode the documents of a part; yield them in batches. Errors name the input file."""
    with naming(part.input.path):
        yield from encoder.encode(part)


# -- processes ---------------------------------------------------------------------------------------------------------

_work: tuple[DocumentEncoder, Path, Format]  # of a worker process


@contextmanager
def _shards(
    parts: Sequence[InputPart], folder: Path, encoder: DocumentEncoder, format: Format, workers: int
) -> Iterator[Iterator[tuple[InputPart, Shard]]]:
    """Context manager that writes a shard for each part, in `workers` processes, which end when it is left.

    It yields an iterator over pairs of part and finished shard.
    """
    if workers <= 1:
        yield ((part, _make_shard(encoder, folder, format, part)) for part in parts)
        return
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),  # a fork would copy the locks of threads, but not the threads
        initializer=_begin,
        initargs=(encoder, folder, format),
    )
    try:
        yield _in_pool(pool, parts, workers)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_pool(pool: ProcessPoolExecutor, parts: Sequence[InputPart], workers: int) -> Iterator[tuple[InputPart, Shard]]:
    waiting = iter(parts)
    running: dict[Future[Shard], InputPart] = {}
    try:
        while True:
            for part in waiting:
                running[pool.submit(_serve, part)] = part
                if len(running) > workers:  # one part is queued, so that no process idles
                    break
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    except BrokenProcessPool as error:
        raise CorpusError("a process ended by itself, perhaps for want of memory; the same command goes on") from error


def _begin(encoder: DocumentEncoder, folder: Path, format: Format) -> None:
    """Initialise a worker process: keep the arguments, ignore SIGINT, and watch the parent process."""
    global _work
    _work = encoder, folder, format
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run's own process ends this one
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the end of the parent process, then exit at once; the queues do not report that the parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _serve(part: InputPart) -> Shard:
    encoder, folder, format = _work
    return _make_shard(encoder, folder, format, part)
