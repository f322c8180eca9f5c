"""A run ends with the same shards however often it was stopped, and leaves alone what is not its own."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from corpus_files import READ, command, content, start, write_jsonl, write_lines, write_parquet
from full_run import FULL

from tokenweir import CorpusError, Tokenizer
from tokenweir.corpus import reading
from tokenweir.corpus import run as corpus_run
from tokenweir.corpus.documents import DocumentEncoder
from tokenweir.corpus.inputs import plan
from tokenweir.corpus.shards import Layout
from tokenweir.corpus.storage import folder_at


def test_an_error_in_a_process_is_told_and_the_rest_stays(run, tmp_path):
    good = [write_lines(tmp_path / f"{i}.txt", [f"fine {i}"]) for i in range(4)]
    bad = tmp_path / "9.txt"
    bad.write_bytes(b"\xff\n")
    with pytest.raises(CorpusError, match=r"9.txt: line 1"):
        run([*good, bad], workers=2)
    bad.write_text("mended\n")
    with pytest.raises(CorpusError, match=r"has shards of a run with other files \(.*9.txt\): choose another folder"):
        run([*good, bad], workers=2)


def test_a_folder_of_something_else(run, tok, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)
    run([path])
    again = run([path])
    assert again.resumed == again.total
    for other, options, what in (
        (None, {"format": "npy"}, "another format"),
        (None, {"part_bytes": 100}, "another part_bytes"),
        (None, {"part_bytes": 100, "format": "npy"}, "another format, another part_bytes"),
        (DocumentEncoder(tok, "text", {"parse_special": False}), {}, "other options"),
        (DocumentEncoder(tok.with_added_tokens(["naïve"]), "text"), {}, "another tokenizer"),
    ):
        with pytest.raises(CorpusError, match=f"has shards of a run with {what}: choose another folder"):
            run([path], "out", other, **options)
    (tmp_path / "out" / "manifest.jsonl").write_text("what\n")
    with pytest.raises(CorpusError, match="is no manifest"):
        run([path])
    with pytest.raises(CorpusError, match=r"is there twice$"):
        run([path, path], "twice")
    odd = os.fsdecode(b"\xff")
    for paths, out in (([tmp_path / f"{odd}.txt"], "out"), ([path], odd)):
        with pytest.raises(CorpusError, match=r": the path is not UTF-8$"):
            run(paths, out)


def test_files_that_are_there_are_not_replaced(run, texts, tmp_path):
    path = write_parquet(tmp_path / "part-00000.parquet", texts)
    before = path.read_bytes()
    with pytest.raises(
        CorpusError, match=r"part-00000.parquet: is there already, and of no run: choose another folder"
    ):
        run([path], tmp_path)
    assert path.read_bytes() == before
    assert not (tmp_path / "manifest.jsonl").exists()


@pytest.mark.parametrize("machine", [(1, 1), (1, 2)])
def test_only_one_run_writes_a_share_of_a_folder(run, texts, tmp_path, machine):
    path = write_lines(tmp_path / "a.txt", texts)

    def second(progress):
        with pytest.raises(CorpusError, match="another run is writing into it"):
            run([path], machine=machine)

    run([path], machine=machine, report=second)


def test_a_shard_that_was_removed_is_made_again(run, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)
    run([path], part_bytes=2000)
    whole = content(tmp_path / "out")
    (tmp_path / "out" / "part-00001.parquet").unlink()
    (tmp_path / "out" / "part-00002.parquet").write_bytes(b"cut")
    run([path], part_bytes=2000)
    assert content(tmp_path / "out") == whole


def test_who_may_read_the_shards_may_read_the_manifest(run, texts, tmp_path):
    run([write_lines(tmp_path / "a.txt", texts)])
    shard, manifest = tmp_path / "out" / "part-00000.parquet", tmp_path / "out" / "manifest.jsonl"
    assert manifest.stat().st_mode == shard.stat().st_mode


WITH_LITTLE_ROOM = """
import resource, sys
from tokenweir.cli import main
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
    sys.exit(main())
"""


@pytest.fixture
def with_little_room(tmp_path):
    """Run the command where files have so many bytes at most."""
    script = tmp_path / "with_little_room.py"
    script.write_text(WITH_LITTLE_ROOM)

    def start(room, *arguments):
        program = [sys.executable, script, str(room), "encode-files", *map(str, arguments)]
        return subprocess.run(program, check=False, capture_output=True, text=True)

    return start


@pytest.mark.parametrize(
    ("shard_format", "workers"), itertools.product(READ, [1, 2]) if FULL else [("parquet", 2), ("megatron", 1)]
)
def test_a_full_disk_is_told_and_left_in_order(with_little_room, tok, texts, tmp_path, shard_format, workers):
    many = [f"{n} {text}" for n in range(200 if FULL else 50) for text in texts]
    path = write_lines(tmp_path / "a.txt", many)
    arguments = (path, "--part-size", 1, "--format", shard_format, "--workers", workers, "-o", tmp_path / "out")
    found = with_little_room(20_000, *arguments)
    assert found.returncode == 1
    assert re.fullmatch(rf"tokenweir: error: {re.escape(str(tmp_path / 'out'))}: .*File too large.*\n", found.stderr)
    assert {file.name for file in (tmp_path / "out").iterdir()} == {".lock-1-of-1", ".run.json"}
    assert command(*arguments, "--workers", 1).exit_code == 0
    assert READ[shard_format](tmp_path / "out")[0] == [tok.encode(text) for text in many]


def test_a_disk_that_is_full_for_the_manifest_is_told(with_little_room, tmp_path):
    paths = [write_lines(tmp_path / f"{i}.txt", ["text"]) for i in range(2)]
    arguments = (*paths, "--format", "npy", "--workers", 1, "-o")
    assert command(*arguments, tmp_path / "out").exit_code == 0
    whole = content(tmp_path / "out")
    first_line = whole["manifest.jsonl"].index(b"\n")
    for room in (first_line - 5, first_line + 5):
        out = tmp_path / str(room)
        found = with_little_room(room, *arguments, out)
        assert (found.returncode, found.stderr) == (1, f"tokenweir: error: {out}: File too large\n")
        assert command(*arguments, out).exit_code == 0
        assert content(out) == whole


# -- progress and stopping ---------------------------------------------------------------------------------------------


def test_progress_moves_within_a_shard(run, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_BYTES", 2000)
    monkeypatch.setattr(corpus_run, "REPORT_SECONDS", 0.0)
    path = write_jsonl(tmp_path / "a.jsonl", texts * 10)
    told = []
    final = run([path], report=told.append)
    within = [progress for progress in told if progress.shards == 0]
    assert len({progress.done for progress in within}) > 10
    assert len({progress.tokens for progress in within}) > 10
    assert told == sorted(told, key=lambda progress: (progress.done, progress.tokens))
    assert final == told[-1]
    assert final.done == final.total


@pytest.mark.parametrize("shuffle", [None, 7])
def test_a_stop_takes_effect_at_the_next_batch(run, texts, tmp_path, monkeypatch, shuffle):
    monkeypatch.setattr(reading, "BATCH_BYTES", 2000)
    monkeypatch.setattr(corpus_run, "REPORT_SECONDS", 0.0)
    path = write_jsonl(tmp_path / "a.jsonl", texts * 10)
    options = {"shuffle": shuffle, "format": "npy"}
    run([path], "whole", **options)
    begun, encode = [], Tokenizer.encode_batch
    monkeypatch.setattr(Tokenizer, "encode_batch", lambda *given, **named: begun.append(1) or encode(*given, **named))

    def stop(progress):
        if len(begun) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([path], **options, report=stop)
    assert len(begun) == 3
    assert not list((tmp_path / "out").glob("*part-*"))
    run([path], **options)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_worker_begins_no_batch_after_the_stop(tok, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BATCH_BYTES", 2000)
    path = write_jsonl(tmp_path / "a.jsonl", texts * 10)
    begun, encode, stopped = [], Tokenizer.encode_batch, threading.Event()

    def batch(*given, **named):
        begun.append(1)
        if len(begun) == 3:
            stopped.set()
        return encode(*given, **named)

    monkeypatch.setattr(Tokenizer, "encode_batch", batch)
    (tmp_path / "out").mkdir()
    job = corpus_run._Job(
        DocumentEncoder(tok, "text"), folder_at(str(tmp_path / "out"), "1-of-1"), Layout("npy", tok.vocab_size)
    )
    for name, value in (("_work", job), ("_counts", multiprocessing.Array("q", 2)), ("_stop", stopped)):
        monkeypatch.setattr(corpus_run, name, value, raising=False)
    (planned,) = plan([str(path)], 1 << 30)
    for _ in range(2):  # the shard that is being written, and one that was queued
        with pytest.raises(corpus_run._Stopped):
            corpus_run._serve(planned)
    assert len(begun) == 3


def test_leaving_a_run_stops_its_processes(run, texts, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", texts * 200)
    calls = []

    def stop(progress):
        calls.append(progress)
        if progress.shards:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([path], part_bytes=1 << 20, workers=2, format="npy", report=stop)
    assert not multiprocessing.active_children()
    run([path], part_bytes=1 << 20, format="npy")
    run([path], "whole", part_bytes=1 << 20, format="npy")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


# -- killed ------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of POSIX")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_before_any_change_of_the_folder_it_goes_on(run, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)

    def whole_run(folder):
        return run([path], folder, part_bytes=3000 if FULL else 12_000, format="npy")

    whole_run(tmp_path / "whole")
    for step in range(1, 1000):
        folder = tmp_path / f"{step}"
        child = os.fork()
        if child == 0:
            left = iter(range(step - 1))
            for name in ("replace", "fsync", "unlink"):
                setattr(os, name, killed_after(left, getattr(os, name)))
            whole_run(folder)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            break
        done = whole_run(folder)
        assert done.done == done.total
        assert content(folder) == content(tmp_path / "whole"), step
    assert step > 10


def killed_after(left, call):
    """The call, which kills its process when nothing is left."""

    def maybe(*arguments):
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments)

    return maybe


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
@pytest.mark.parametrize("shard_format", READ if FULL else ["parquet", "npy"])
def test_killed_again_and_again_it_ends_with_the_same_shards(run, texts, tmp_path, shard_format):
    times, workers = (17, 2) if FULL else (2, 2) if shard_format == "parquet" else (1, 1)
    path = write_jsonl(tmp_path / "a.jsonl", texts * 40)
    run([path], "whole", part_bytes=1 << 20, format=shard_format)
    arguments = (path, "-o", tmp_path / "out", "--part-size", 1, "--format", shard_format, "--workers", workers)
    chooser = random.Random(shard_format)
    killed = 0
    while killed < times:
        process = start(*arguments)
        manifest = tmp_path / "out" / "manifest.jsonl"
        deadline = time.monotonic() + 60
        while not manifest.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(chooser.random() * 0.6)
        if process.poll() is not None:  # it was done first
            process.communicate()
            for shard in (tmp_path / "out").glob("part-*"):
                shard.unlink()
            continue
        process.kill()
        process.communicate()
        killed += 1
    process = start(*arguments)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not list((tmp_path / "out").glob(".tmp-*"))


def test_no_process_outlives_a_killed_run(texts, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", texts * 200)
    process = start(path, "-o", tmp_path / "out", "--part-size", 1, "--workers", 2)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out").glob(".tmp-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    group = os.getpgid(process.pid)
    process.kill()
    process.communicate()
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a process of the run is still there")
