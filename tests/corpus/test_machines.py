"""Several machines share a folder: together they write the shards of one, however often some are killed."""

from __future__ import annotations

import json
import random
import signal
import time

import pytest
from corpus_files import command, content, start, write_jsonl
from full_run import FULL


def test_shares_one_after_the_other(run, texts, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    options = {"format": "npy", "part_bytes": 4000}
    whole = run([path], "whole", **options)
    assert (whole.shards, whole.missing) > (5, 0)
    for number in (2, 3, 1):
        found = run([path], machine=(number, 3), **options)
        assert found.done == found.total
        assert (tmp_path / "out" / "manifest.jsonl").exists() == (number == 1) == (found.missing == 0)
    assert (found.documents, found.tokens) == (whole.documents, whole.tokens)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert {file.name for file in (tmp_path / "out").iterdir() if file.name.startswith(".")} == {
        f".lock-{number}-of-3" for number in (1, 2, 3)
    }
    again = run([path], machine=(1, 2), **options)  # other shares of the same shards
    assert (again.resumed, again.missing) == (again.total, 0)


def test_what_other_machines_have_left_to_do_is_said(texts, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", texts * 90)
    arguments = (path, "-o", tmp_path / "out", "--format", "npy", "--part-size", 1, "--workers", 1)
    first = command(*arguments, "--machines", "1/2")
    assert first.stdout.endswith("2 shards of other machines not there yet\n"), first.output
    assert json.loads(command(*arguments, "--machines", "2/2", "--json").stdout)["missing"] == 0


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
@pytest.mark.parametrize("seed", range(8 if FULL else 1))
def test_one_of_two_is_killed(run, texts, tmp_path, seed):
    path = write_jsonl(tmp_path / "a.jsonl", texts * 80)
    run([path], "whole", format="npy", part_bytes=1 << 20)
    arguments = (path, "-o", tmp_path / "out", "--part-size", 1, "--format", "npy", "--workers", 1, "--machines")
    other, killed = start(*arguments, "1/2"), start(*arguments, "2/2")
    chooser, deadline = random.Random(seed), time.monotonic() + 60
    while not (tmp_path / "out" / ".run.json").exists() and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(chooser.random() * 0.5)
    killed.kill()
    killed.communicate()
    for process in (other, start(*arguments, "2/2")):
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    assert content(tmp_path / "out") == content(tmp_path / "whole")
