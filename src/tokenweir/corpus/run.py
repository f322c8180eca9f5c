"""A run: parts to shards, in as many processes as there are cores."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing.connection import wait as wait_for
from multiprocessing.synchronize import Event
from typing import Any, NamedTuple

import msgspec

from tokenweir.corpus.documents import DocumentBatch, DocumentEncoder
from tokenweir.corpus.inputs import ShardPlan, check_path, codec_of, kind_of, plan
from tokenweir.corpus.manifest import Manifest, RunHeader, Shard
from tokenweir.corpus.shards import NAMES, WRITERS, Format, Layout
from tokenweir.corpus.shuffle import shuffled
from tokenweir.corpus.storage import Folder, folder_at, is_url, naming
from tokenweir.encode.base.options import EncodeOptions
from tokenweir.encode.base.platform import usable_cores
from tokenweir.encode.errors import CorpusError
from tokenweir.encode.tokenizer import core_of

VERSION = 3
"""Version to increment with any change of the shards' bytes or of the cutting of inputs."""

REPORT_SECONDS = 1.0
"""Seconds between two reports while no shard is completed."""

BYTES_PER_TOKEN = 4
"""Bytes of input that an id stands for, in the estimate of how much of a shard is done."""

_USUAL_OPTIONS = EncodeOptions(add_special_tokens=True, add_bos=None, add_eos=None, parse_special=True)


class Progress(NamedTuple):
    """Progress of a run.

    Attributes:
        done: Bytes of the inputs in complete shards of this machine's share, and an estimate of those encoded for others.
        total: Bytes of the inputs in its share.
        resumed: Bytes of the inputs in shards of an earlier run.
        documents: Number of documents in complete shards.
        tokens: Number of ids in complete shards, and of those encoded for others.
        shards: Number of complete shards.
        skipped: Number of rows that were left out because they are missing or null.
        missing: Number of shards of the other machines' shares that were not complete when this one looked last.

    """

    done: int
    total: int
    resumed: int
    documents: int
    tokens: int
    shards: int
    skipped: int = 0
    missing: int = 0


def encode_files(
    paths: Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    encoder: DocumentEncoder,
    *,
    format: Format = "parquet",
    part_bytes: int = 64 << 20,
    pack: int | None = None,
    shuffle: int | None = None,
    machine: tuple[int, int] = (1, 1),
    workers: int | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Encode files to shards of ids in a folder, and return the final progress.

    Shards that an earlier run with the same files and options has completed are kept. The shards are the same however
    many processes and machines there are, and however often a run was killed and begun again. Memory is bounded: a process has
    `reading.BATCH_BYTES` of text and its ids at a time, or one row, if that is larger; with `shuffle` a shard.

    Args:
        paths: Parquet, Arrow, JSONL or text files; paths or URLs.
        folder: Where the shards and the manifest go; a path or URL.
        encoder: Encodes the documents.
        format: The format of the shards: "parquet", "npy", "megatron" or "datatrove".
        part_bytes: Approximate size of the inputs of a shard.
        pack: The length of sequences into which the documents of a shard are packed; None writes documents.
        shuffle: A seed: a shard's documents come from several random places of the inputs, and are in random order.
        machine: Which machine this is, from 1, and how many there are. Each writes its share of the shards.
        workers: Number of processes; None for as many as there are usable cores. With 1, this process does the work.
        report: Called with the progress at the beginning, about once a second, and after each shard.

    Raises:
        CorpusError: An input cannot be read or encoded, the folder has something else, or a package is needed and not
            installed. Complete shards are kept.

    """
    names, place = [os.fspath(path) for path in paths], os.fspath(folder)
    _check(names, encoder, format, pack)
    check_path(place)
    shards = plan(names, part_bytes, shuffle)
    inputs = {part.input.path: part.input for shard in shards for part in shard.parts}
    settings: dict[str, str | int | bool | None] = {
        "column": encoder.column,
        "format": format,
        "keep": ",".join(encoder.keep),
        "loss_mask": encoder.loss_mask,
        "options": msgspec.json.encode(_USUAL_OPTIONS | encoder.options, order="sorted").decode(),
        "pack": pack,
        "part_bytes": part_bytes,
        "shuffle": shuffle,
        "skip_null": encoder.skip_null,
        "template": None if encoder.template is None else hashlib.sha256(encoder.template.source.encode()).hexdigest(),
    }
    number, machines = machine
    job = _Job(
        encoder,
        folder_at(place, f"{number}-of-{machines}"),
        Layout(format, encoder.tokenizer.vocab_size, encoder.loss_mask, pack, bool(encoder.keep)),
    )
    ordered = tuple(inputs[path] for path in dict.fromkeys(map(_absolute, names)))
    manifest = Manifest(job.folder, RunHeader(VERSION, ordered, _fingerprint(encoder), settings))
    try:
        share = [shard for shard in shards if shard.number % machines == number - 1]
        left = [shard for shard in share if shard.number not in manifest.shards]
        total = sum(shard.size for shard in share)
        resumed = total - sum(shard.size for shard in left)
        kept = sum(shard.tokens for shard in manifest.shards.values())

        def progress(size: int, tokens: int) -> Progress:
            made = manifest.shards.values()
            documents, skipped = sum(shard.documents for shard in made), sum(shard.skipped for shard in made)
            missing = len(shards) - len(made)
            return Progress(resumed + size, total, resumed, documents, kept + tokens, len(made), skipped, missing)

        def tick(size: int, tokens: int) -> None:
            report(progress(size, tokens))

        tick(0, 0)
        size = tokens = 0
        workers = min(len(left), workers or usable_cores())
        with _shards(left, job, workers, tick) as written:
            for shard, size, tokens in written:
                manifest.add(shard)
                tick(size, tokens)
        for file in ordered:
            file.check()
        manifest.finish(len(shards))
        return progress(size, tokens)
    finally:
        manifest.close()


def _absolute(path: str) -> str:
    return path if is_url(path) else os.path.abspath(path)


def _check(paths: Sequence[str], encoder: DocumentEncoder, format: Format, pack: int | None) -> None:
    """Raise `CorpusError` if a package is missing, and `ValueError` for options that do not go together."""
    if pack is not None and format not in ("parquet", "npy"):
        raise ValueError(f"sequences are packed in the formats parquet and npy, not in {format}: its readers cut them")
    kinds, otherwise = {kind_of(path) for path in paths}, ""
    if kinds & {"parquet", "arrow"} or any(map(codec_of, paths)):
        needing = "Parquet, Arrow and compressed files need"
    elif format == "parquet":
        needing, otherwise = "the format parquet needs", ", or choose npy or megatron"
    elif encoder.keep:
        needing = "kept columns need"
    else:
        return
    if find_spec("pyarrow") is None:
        raise CorpusError(f"{needing} pyarrow: pip install 'tokenweir[corpus]'{otherwise}")


def _fingerprint(encoder: DocumentEncoder) -> str:
    """Return a digest of a tokenizer and its options: of the meaning of its ids, and of the ids of sample texts."""
    tokenizer = encoder.tokenizer
    samples = ["Hello, world!\n  naïve café 12345", "你好，世界 \U0001f600", *tokenizer.control_texts[:100]]
    ids = [tokenizer.encode(text, **encoder.options) for text in samples]
    return hashlib.sha256(repr((core_of(tokenizer).tokens.digest(), tokenizer.vocab_size, ids)).encode()).hexdigest()


class _Job(NamedTuple):
    """Settings of a run that all its shards share."""

    encoder: DocumentEncoder
    folder: Folder
    layout: Layout


def _make_shard(job: _Job, planned: ShardPlan, advance: Callable[[int, int], None]) -> Shard:
    """Write a shard.

    Args:
        job: The settings.
        planned: The shard's parts.
        advance: Called with the bytes and the ids of each batch; all bytes add up to the shard's size. What it raises ends the shard.

    """
    for part in planned.parts:
        part.input.check()
    name = f"{NAMES}{planned.number:05d}"
    with naming(job.folder.path), WRITERS[job.layout.format](job.folder, name, job.layout) as writer:
        batches = _measured(_batches(job.encoder, planned), planned.size, advance)
        if planned.seed is not None:
            batches = shuffled([*batches], (planned.seed, planned.number))
        for batch in batches:
            writer.write(batch)
        for part in planned.parts:
            part.input.check()
        return Shard(planned.number, writer.close(), writer.documents, writer.tokens, writer.skipped)


def _batches(encoder: DocumentEncoder, planned: ShardPlan) -> Iterator[DocumentBatch]:
    """Read and encode the documents of a shard; yield them in batches. Errors name the input file."""
    for part in planned.parts:
        with naming(part.input.path):
            yield from encoder.encode(part)


def _measured(
    batches: Iterator[DocumentBatch], size: int, advance: Callable[[int, int], None]
) -> Iterator[DocumentBatch]:
    """Call `advance` before the first batch and after each one; yield the batches."""
    advance(0, 0)
    left = size
    for batch in batches:
        some = min(left, BYTES_PER_TOKEN * len(batch.ids.ids))
        left -= some
        advance(some, len(batch.ids.ids))
        yield batch
    advance(left, 0)


# -- processes ---------------------------------------------------------------------------------------------------------


class _Stopped(Exception):
    """Raised in a worker process when the run has ended."""


_work: _Job  # these three are of a worker process
_counts: Any
_stop: Event


@contextmanager
def _shards(
    plans: Sequence[ShardPlan], job: _Job, workers: int, tick: Callable[[int, int], None]
) -> Iterator[Iterator[tuple[Shard, int, int]]]:
    """Context manager that writes shards in `workers` processes, which end when it is left, at the next batch at the latest.

    It yields an iterator over the finished shards, each with the bytes and the ids so far. `tick` is called with these every
    `REPORT_SECONDS`.
    """
    if workers <= 1:
        yield _here(plans, job, tick)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads, but not the threads
    counts, stop = context.Array("q", 2), context.Event()
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(job, counts, stop))
    try:
        yield _in_pool(pool, plans, workers, counts, tick)
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _here(plans: Sequence[ShardPlan], job: _Job, tick: Callable[[int, int], None]) -> Iterator[tuple[Shard, int, int]]:
    """Write shards in this process."""
    size = tokens = 0
    told = time.monotonic()

    def advance(more: int, ids: int) -> None:
        nonlocal size, tokens, told
        size, tokens = size + more, tokens + ids
        if (now := time.monotonic()) - told >= REPORT_SECONDS:
            told = now
            tick(size, tokens)

    for planned in plans:
        yield _make_shard(job, planned, advance), size, tokens


def _in_pool(
    pool: ProcessPoolExecutor,
    plans: Sequence[ShardPlan],
    workers: int,
    counts: Any,
    tick: Callable[[int, int], None],
) -> Iterator[tuple[Shard, int, int]]:
    waiting = iter(plans)
    running: set[Future[Shard]] = set()
    try:
        while True:
            for planned in waiting:
                running.add(pool.submit(_serve, planned))
                if len(running) > workers:  # one shard is queued, so that no process idles
                    break
            if not running:
                return
            done, running = wait(running, REPORT_SECONDS, FIRST_COMPLETED)
            for future in done:
                yield future.result(), *counts
            if not done:
                tick(*counts)
    except BrokenProcessPool as error:
        raise CorpusError("a process ended by itself, perhaps for want of memory; the same command goes on") from error


def _begin(job: _Job, counts: Any, stop: Event) -> None:
    """Initialise a worker process: keep what it shares, ignore SIGINT, and watch the parent process."""
    global _work, _counts, _stop
    _work, _counts, _stop = job, counts, stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run's own process ends this one
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the end of the parent process, then exit at once; the queues do not report that the parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _serve(planned: ShardPlan) -> Shard:
    return _make_shard(_work, planned, _advance)


def _advance(size: int, ids: int) -> None:
    if _stop.is_set():
        raise _Stopped
    with _counts.get_lock():
        _counts[0] += size
        _counts[1] += ids
