"""Speed of encoding beside the fastest libraries that load the same vocabularies. Prints tables; --write keeps them.

    python bench/encode.py [throughput] [families] [messages] [runs] [batch] [large] [decode] [load] [--only cl100k]
        [--beside gigatoken,fastokens] [--rounds 1] [--write]

Each library has a process of its own: the tokenizer is loaded and encodes "Hi", then text that it has not seen is encoded
(cold), then encoded once more (again), then other text of the same kind (unseen). Libraries divide the work between
loading, "Hi" and that text in different ways, so there is also the speed from the start of loading to the end of the text
(with load). What can be measured again, such as the first text (warm), is measured when the
processes of all libraries are there: these take turns, so that all have the same minutes of a machine that changes its
speed, and the best of 15 turns counts. A number is the median of the rounds. Time is CPU time of the process; for
`batch`, which is about threads, wall time. MB are 10^6 bytes of UTF-8. A cell has ours, the best peer's and its name, and
ours divided by it; on a busy machine take no ratio within 15 % of 1 for a difference. A peer whose ids differ from ours is
named. `--beside reference` compares with the reference library of each file, in `families` with those of more files.
"""

from __future__ import annotations

import gc
import math
import mmap
import os
import random
import resource
import statistics
import string
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import count, groupby
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from shared.peers import LIBRARIES, ids_of, json_file, reference, tokenweir
from shared.processes import memory
from shared.report import DATA, arguments, heading, machine, publish, several, table
from shared.texts import chat, documents, of_kind

VOCABULARIES = {
    "cl100k": "openai/cl100k_base.tiktoken",
    "o200k": "openai/o200k_base.tiktoken",
    "Llama-3": "llama-3.1/tokenizer.json",
    "Qwen3": "qwen3/tokenizer.json",
}
OTHERS = {
    "Llama-2": "llama-2/tokenizer.json",
    "Gemma": "gemma/tokenizer.json",
    "T5": "t5-small/tokenizer.json",
    "BERT": "bert-base-uncased/tokenizer.json",
}
REFERENCED = {
    "GPT-2": "gpt2/tokenizer.json",
    "Llama-2.model": "llama-2/tokenizer.model",
    "Unigram-ja.model": "sp-test-unigram-ja/tokenizer.model",
    "tekken": "mistral-common/tekken_240911.json",
}
EVERY = {**LIBRARIES, "reference": reference}
KINDS = ("English", "code", "math", "Chinese", "Japanese")
PACKAGES = {library: library for library in LIBRARIES} | {"toktok": "toktok-rs", "splintr": "splintr-rs"}
DOCUMENT = 20_000  # characters
TURNS = 15
LARGE, SMALL, CALLS = 64_000_000, 2_000_000, 6  # bytes of two batches, and calls with each
SLOW = 100.0  # ms for a short run, where a long one might take minutes
HAN = "".join(map(chr, range(0x4E00, 0x9FA6)))
CHOSEN = [*LIBRARIES]
LESS = ("messages", "runs", "load")  # the sections whose numbers are times, so that less is better


class Job(NamedTuple):
    """One measuring process: its section, library, vocabulary and text."""

    section: str
    library: str
    vocabulary: str
    text: str = ""


Measured = dict[str, float]  # by the name of the measurement; "ids" is a checksum


class Measurements(NamedTuple):
    """The results of a process, and the measurements that it can repeat on request."""

    once: Measured
    again: Mapping[str, Callable[[], float]]


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    start = clock()
    work()
    return clock() - start


def checksum(ids: Iterable[Any]) -> int:
    total = 0
    for some in ids:
        total = zlib.crc32(ids_of(some).tobytes(), total)
    return total


def serve(job: Job, asked: Connection) -> None:
    """Measure once in a process of its own, and then repeat each measurement that is requested by name, until the names end."""
    made = measure(job)
    asked.send(made and (made.once, [*made.again]))
    while made and (name := asked.recv()):
        asked.send(made.again[name]())


def measure(job: Job) -> Measurements | None:
    """Return the results of one process, or None if the library lacks the vocabulary."""
    threads = 2 if job.section == "batch" else 1
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    path = DATA / "tokenizers" / (VOCABULARIES | OTHERS | REFERENCED)[job.vocabulary]
    if job.library in LIBRARIES and job.library != "tokenweir":  # which is imported here already
        __import__(job.library)
        json_file(path)
    begun = time.process_time()
    try:
        if job.section == "load":
            return _load(job, path)
        peer = EVERY[job.library](path, threads)
    except (ValueError, NotImplementedError, OSError, RuntimeError):
        return None
    if peer is None:
        return None
    peer.array("Hi")
    loading = time.process_time() - begun
    gc.disable()
    sections: dict[str, Callable[[Any, Job], Measurements | None]] = {
        "throughput": partial(_throughput, loading=loading),
        "messages": _messages,
        "runs": _runs,
        "batch": _batch,
        "large": _large,
        "decode": _decode,
    }
    return sections[job.section](peer, job)


def _throughput(peer: Any, job: Job, loading: float) -> Measurements:
    first, second = of_kind(job.text)
    texts, others = documents(first, DOCUMENT), documents(second, DOCUMENT)

    def rate(way: Callable[[str], object], text: str, some: Sequence[str]) -> float:
        return len(text.encode()) / seconds(lambda: deque(map(way, some), maxlen=0)) / 1e6

    found = {what: rate(peer.array, first, texts) for what in ("cold", "again")}
    size = len(first.encode()) / 1e6
    found = {"with load": size / (loading + size / found["cold"]), **found}
    found["unseen"] = rate(peer.array, second, others)
    found["ids"] = checksum(map(peer.array, texts)) ^ checksum(map(peer.list, others))
    return Measurements(
        found, {"warm": partial(rate, peer.array, first, texts), "list": partial(rate, peer.list, first, texts)}
    )


def _messages(peer: Any, job: Job) -> Measurements:
    texts = chat()
    message = min(texts, key=lambda text: abs(len(text.encode()) - 237))

    def each(way: Callable[[str], object], some: Sequence[str]) -> float:
        return seconds(lambda: deque(map(way, some), maxlen=0)) / len(some) * 1e6

    deque(map(peer.array, texts), maxlen=0)
    return Measurements(
        {"ids": checksum(map(peer.list, texts))},
        {
            "237 bytes, array": partial(each, peer.array, [message] * 2000),
            "237 bytes, list": partial(each, peer.list, [message] * 2000),
            '"Hi", array': partial(each, peer.array, ["Hi"] * 2000),
            '"Hi", list': partial(each, peer.list, ["Hi"] * 2000),
            "1,319 questions, list": partial(each, peer.list, texts),
        },
    )


def _runs(peer: Any, job: Job) -> Measurements:
    pick, shorter = random.Random(1), count()
    characters = {"a": "a", "spaces": " ", "random letters": string.ascii_lowercase, "random Han": HAN}

    def each(some: str, length: int = 400_000) -> float:
        text = "".join(pick.choices(some, k=length - next(shorter)))  # new each time
        return seconds(partial(peer.array, text)) * 1e3

    ways = {name: partial(each, some) for name, some in characters.items() if each(some, 20_000) < SLOW}
    return Measurements({"ids": checksum([peer.array("aaaa  日本")])}, ways)


def _batch(peer: Any, job: Job) -> Measurements:
    text = "".join(of_kind("English"))
    whole = text.encode()
    kilobytes = [whole[i : i + 1024].decode(errors="ignore") for i in range(0, 1 << 20, 1024)]
    long = "".join("".join(of_kind(kind, 10_000_000)) for kind in KINDS)  # no passage twice

    def rate(way: Callable[[Any], object], given: Any, size: int) -> float:
        return size / seconds(partial(way, given), time.perf_counter) / 1e6

    peer.batch(kilobytes)
    return Measurements(
        {"ids": checksum([peer.array(long)])},
        {
            "1024 x 1 KB": partial(rate, peer.batch, kilobytes, sum(len(t.encode()) for t in kilobytes)),
            "one of 10 MB": partial(rate, peer.array, long, len(long.encode())),
        },
    )


def _sample_threads(parent: int, shared: memoryview) -> None:
    """Count, while shared[0] is set, how often one thread of the parent is ready to run, and how often several are."""
    folder = Path(f"/proc/{parent}/task")
    while os.getppid() == parent:
        time.sleep(0.0005)
        if not shared[0]:
            continue
        try:
            states = [path.read_text().rpartition(") ")[2][0] for path in folder.glob("*/stat")]
        except OSError:  # a thread has ended
            continue
        if ready := states.count("R"):
            shared[1 + (ready > 1)] += 1


def _large(_peer: Any, job: Job) -> Measurements:
    """Measure batches of documents of 62,500 bytes. Each call gets new strings, whose conversion to UTF-8 is a part of it."""
    text = "".join(of_kind(job.text)).encode()
    whole, size = text * (LARGE // len(text) + 1), LARGE // 1024
    parts = [whole[start : start + size].decode(errors="ignore").encode() for start in range(0, LARGE, size)]
    path = DATA / "tokenizers" / VOCABULARIES[job.vocabulary]

    class Call(NamedTuple):
        cpu: float
        kernel: float
        faults: int

    shared = memoryview(mmap.mmap(-1, 3 * 8)).cast(
        "q"
    )  # whether a call runs, and the samples of one thread and of several
    measured = os.getpid()
    if os.fork() == 0:
        _sample_threads(measured, shared)
        os._exit(0)

    def calls(threads: int, total: int) -> list[Call]:
        encode = tokenweir(path, threads).batch
        found = []
        for number in range(CALLS):
            texts = [part.decode() for part in parts[: total // size]]
            before = resource.getrusage(resource.RUSAGE_SELF)
            shared[0] = threads > 1 and number > 0
            encode(texts)
            shared[0] = 0
            after = resource.getrusage(resource.RUSAGE_SELF)
            kernel = after.ru_stime - before.ru_stime
            cpu = kernel + after.ru_utime - before.ru_utime
            found.append(Call(cpu, kernel, after.ru_minflt - before.ru_minflt))
        return found[1:]

    small, one, two = calls(1, SMALL), calls(1, LARGE), calls(2, LARGE)
    rate, small_rate = LARGE / min(call.cpu for call in one) / 1e6, SMALL / min(call.cpu for call in small) / 1e6
    return Measurements(
        {
            "2 MB, MB/s": small_rate,
            "64 MB, MB/s": rate,
            "64 MB / 2 MB": rate / small_rate,
            "page faults": max(call.faults for call in (*one, *two)),
            "kernel, %": 100 * sum(call.kernel for call in (*one, *two)) / sum(call.cpu for call in (*one, *two)),
            "serial, %": 100 * shared[1] / (shared[1] + shared[2]),
            "ids": 0,
        },
        {},
    )


def _decode(peer: Any, job: Job) -> Measurements | None:
    if peer.decode is None:
        return None
    text = of_kind(job.text)[0]
    array = ids_of(peer.array(text))
    size = len(text.encode()) / 1e6

    def to_text(given: Any) -> str:
        decoded = peer.decode(given)
        return decoded if isinstance(decoded, str) else decoded.decode(errors="replace")

    def rate(way: Callable[[Any], object], forms: Sequence[Any]) -> float:
        return size / min(seconds(partial(way, form)) for form in forms)

    ways: dict[str, Callable[[Any], object]] = {"text": to_text}
    if peer.decode_bytes is not None:
        ways["bytes"] = peer.decode_bytes
    again = {}
    for title, forms in ("a list", [array.tolist()]), ("an array", [array.astype("int32"), array.astype("uint32")]):
        for name, way in ways.items():
            if taken := [form for form in forms if _takes(way, form)]:
                again[f"{title} to {name}"] = partial(rate, way, taken)
    return Measurements({"ids": zlib.crc32(to_text(array.tolist()).encode(), zlib.crc32(array.tobytes()))}, again)


def _takes(way: Callable[[Any], object], form: Any) -> bool:
    try:
        way(form)
    except (TypeError, ValueError):
        return False
    return True


def _load(job: Job, path: Any) -> Measurements | None:
    """`job.text` is "cache" for ours from the cache of loaded tokenizers, "file" for a reading of the file itself."""
    make = EVERY[job.library]
    if job.library == "tokenweir":
        make = partial(tokenweir, cache=job.text == "cache")
    before, clocks = memory(), (time.process_time(), time.perf_counter())
    made = make(path, 1)
    if made is None:
        return None
    made.list("Hi")
    after = time.process_time(), time.perf_counter()
    cpu, wall = ((end - start) * 1e3 for start, end in zip(clocks, after, strict=True))
    loaded = memory()
    made.array(of_kind("English")[0])
    return Measurements(
        {"CPU ms": cpu, "wall ms": wall, "MB": loaded - before, "MB a thread": memory() - loaded, "ids": 0}, {}
    )


def take_turns(jobs: Sequence[Job]) -> dict[Job, Measured]:
    """Run a process for each job; those that can repeat their measurement do so in turns."""
    context = get_context("spawn")
    found: dict[Job, Measured] = {}
    again: dict[Job, tuple[Connection, list[str]]] = {}
    processes = []
    for job in jobs:  # each loads alone
        ask, asked = context.Pipe()
        process = context.Process(target=serve, args=(job, asked), daemon=True)
        process.start()
        asked.close()
        processes.append(process)
        if made := ask.recv():
            found[job], names = made
            again[job] = ask, names
    for _ in range(TURNS):
        for job, (ask, names) in again.items():
            best = min if job.section in LESS else max
            for name in names:
                ask.send(name)
                number = ask.recv()
                found[job][name] = best(found[job].get(name, number), number)
    for ask, _ in again.values():
        ask.send("")
    for process in processes:
        process.join()
    return found


def measure_all(jobs: Sequence[Job], rounds: int) -> dict[Job, Measured]:
    """The median of the rounds for each job. Those with the same vocabulary and text, which are neighbours, take turns. A job
    whose library lacks the vocabulary is left out.
    """
    found: dict[Job, list[Measured]] = {}
    for _ in range(rounds):
        for _, group in groupby(jobs, key=lambda job: (job.vocabulary, job.text)):
            for job, one in take_turns([*group]).items():
                found.setdefault(job, []).append(one)
    medians = {
        job: {name: statistics.median(one[name] for one in several) for name in several[0]}
        for job, several in found.items()
    }
    for job, one in medians.items():
        ours = medians[job._replace(library="tokenweir")]
        if one["ids"] != ours["ids"]:
            print(f"{job.library} gives other ids for {job.vocabulary}, {job.text}", file=sys.stderr)
    return medians


def cells(found: dict[Job, Measured], section: str, vocabulary: str, text: str) -> list[list[str]]:
    """Return a row for each measurement: its name, ours, the best peer's, the peer, our speed divided by its."""
    less = section in LESS
    ours = found[Job(section, "tokenweir", vocabulary, text)]
    rows = []
    for name, mine in ours.items():
        if name == "ids":
            continue
        theirs = {
            job.library: one[name]
            for job, one in found.items()
            if job[0] == section and job[2:] == (vocabulary, text) and job.library != "tokenweir" and name in one
        }
        library = (min if less else max)(theirs, key=theirs.__getitem__)
        ratio = theirs[library] / mine if less else mine / theirs[library]
        digits = 2 if mine < 10 else 0
        rows.append([name, f"{mine:.{digits}f}", f"{theirs[library]:.{digits}f}", library, f"{ratio:.2f}"])
    return rows


def throughput(names: Sequence[str], rounds: int) -> str:
    """One text at a time, in documents of 20,000 characters; MB/s of CPU time, ours / best peer = ratio. `again`:
    the second pass over the texts of `cold`; `with load`: `cold`, and all the time since loading began; `list`: to a
    list, warm.
    """
    return beside("throughput", names, rounds, KINDS)


def families(names: Sequence[str], rounds: int) -> str:
    """Throughput of other families: SentencePiece BPE (Llama-2, Gemma), Unigram (T5), WordPiece (BERT)."""
    return beside("throughput", names, rounds, ("English", "code", "Chinese"))


def beside(
    section: str, names: Sequence[str], rounds: int, kinds: Sequence[str] = ("",), left_out: Sequence[str] = ()
) -> str:
    """A row for each vocabulary and kind of text, a column for each measurement: ours / best peer = ratio."""
    able = [who for who in CHOSEN if who not in left_out]
    found = measure_all([Job(section, who, name, kind) for name in names for kind in kinds for who in able], rounds)
    rows, heads = [], [""]
    for name in names:
        for kind in kinds:
            some = cells(found, section, name, kind)
            heads[1:] = [what for what, *_ in some]
            rows.append(
                [
                    f"{name}, {kind}" if kind else name,
                    *(f"{ours}/{best} {who} = {ratio}" for _, ours, best, who, ratio in some),
                ]
            )
    return table(heads, rows)


def messages(names: Sequence[str], rounds: int) -> str:
    """Short texts, warm: microseconds of CPU time a call; the ratio is of speeds."""
    return beside("messages", names, rounds)


def runs(names: Sequence[str], rounds: int) -> str:
    """A text of 400,000 characters without a boundary, new each time: milliseconds of CPU time, the best of 15; the ratio is
    of speeds. tokie is left out, which panics on some of these.
    """
    return beside("runs", names, rounds, left_out=("tokie",))


def batch(names: Sequence[str], rounds: int) -> str:
    """Two threads, warm: MB/s of wall time, the best of several; other work on the machine shows. The text of 10 MB has all
    kinds one after the other.
    """
    return beside("batch", names, rounds)


def large(names: Sequence[str], rounds: int) -> str:
    """64 MB in 1,024 documents, beside 2 MB in 32. MB/s are of one thread's CPU time. The other columns are about the calls
    after the first, with one thread and with two: the most page faults of one call; the kernel's share of the CPU time;
    and how much of a call's time only one of two threads is ready to run, by samples of their states.
    """
    jobs = [Job("large", "tokenweir", name, kind) for name in names for kind in ("English", "Chinese", "Japanese")]
    found = measure_all(jobs, rounds)
    heads = [*found[jobs[0]]][:-1]
    rows = [[f"{job.vocabulary}, {job.text}", *(f"{found[job][head]:.4g}" for head in heads)] for job in jobs]
    return table(["", *heads], rows)


def decode(names: Sequence[str], rounds: int) -> str:
    """Whole texts of 1 MB; MB/s of CPU time of the text. gigatoken, toktok and splintr give bytes; to text, Python's own
    decoding of these is included.
    """
    return beside("decode", names, rounds, ("English", "Chinese"))


def load(names: Sequence[str], rounds: int) -> str:
    """From a file to the first ids, in a process that has imported the library and nothing else: ours from the file and
    from its cache of loaded tokenizers, splintr, and the best of all peers. A ratio is what that peer needs, divided by
    ours. CPU ms / wall ms / MB / MB more after a megabyte of English, which each thread needs.
    """
    cached = [Job("load", "tokenweir", name, "cache") for name in names]
    measure_all(cached, 1)  # so that the cache has them
    found = measure_all([Job("load", who, name, "file") for name in names for who in CHOSEN], rounds)
    kept = measure_all(cached, rounds)
    rows = []
    for name in names:
        measured = []
        for what, ours, best, who, ratio in cells(found, "load", name, "file"):
            from_cache = kept[Job("load", "tokenweir", name, "cache")][what]
            splintr = found.get(Job("load", "splintr", name, "file"), {}).get(what, math.nan)
            fast = f"{float(best) / from_cache:.1f}"
            measured.append((ours, f"{from_cache:.1f}", f"{splintr:.0f}", f"{best} {who}", ratio, fast))
        rows.append([name, *map(" / ".join, zip(*measured, strict=True))])
    heads = ("", "from the file", "from the cache", "splintr", "best peer", "file's ratio", "cache's ratio")
    return table(heads, rows)


SECTIONS = {section.__name__: section for section in (throughput, families, messages, runs, batch, large, decode, load)}
OWN = {  # the vocabularies of a section, if not VOCABULARIES
    "families": [*OTHERS],
    "large": ["cl100k", "Qwen3"],
    "runs": ["cl100k", "Qwen3", "Llama-2", "Gemma"],
    "load": [*VOCABULARIES, "Gemma"],
}


def main() -> int:
    options = arguments(
        __doc__,
        ("sections", several(SECTIONS)),
        only=("", "only vocabularies whose name contains this"),
        beside=(",".join(LIBRARIES), "only these peers, by commas (all but reference)"),
        rounds=(1, "processes for each number (1)"),
    )
    CHOSEN[:] = [who for who in EVERY if who == "tokenweir" or who in options.beside.split(",")]
    packages = [PACKAGES[who] for who in CHOSEN if who in LIBRARIES and who != "tokenweir"]
    if "reference" in CHOSEN:
        packages += ["tiktoken", "tokenizers", "sentencepiece", "mistral-common"]
        OWN["families"] += REFERENCED
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # idle ones count as CPU time for some 30 ms after numpy's import
    for title in options.sections:
        section = SECTIONS[title]
        names = [name for name in OWN.get(title, VOCABULARIES) if options.only.lower() in name.lower()]
        if not names:
            continue
        result = f"{heading(section)}\n\n{section(names, options.rounds)}\n\n{machine()}; {versions}"
        publish(f"fastest-{title}", result, options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
