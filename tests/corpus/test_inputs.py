"""Input files: those that cannot be read in parts, that are there twice, or that change, are refused by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from corpus_files import write_lines

from tokenweir import CorpusError


def test_a_file_under_two_names_is_there_twice(run, tmp_path):
    path = write_lines(tmp_path / "a.txt", ["text"])
    for name, link in (("link.txt", os.symlink), ("hard.txt", os.link)):
        link(path, tmp_path / name)
        with pytest.raises(CorpusError, match=rf"{name}: is there twice, also as .*a\.txt$"):
            run([path, tmp_path / name])


def test_a_library_is_asked_for_where_it_is_needed_and_behind_the_ending(run, tmp_path, monkeypatch):
    monkeypatch.setattr("tokenweir.corpus.run.find_spec", lambda name: None)
    with pytest.raises(CorpusError, match=r"a\.md: the name of an input ends with one of \.parquet"):
        run([tmp_path / "a.md"])
    for name in ("a.parquet", "a.arrow", "a.txt.gz", "a.jsonl.zst"):
        needed = r"^Parquet, Arrow and compressed files need pyarrow: pip install 'tokenweir\[corpus\]'$"
        with pytest.raises(CorpusError, match=needed):
            run([tmp_path / name], format="npy")
    path = write_lines(tmp_path / "a.txt", ["text"])
    needed = r"^the format parquet needs pyarrow: pip install 'tokenweir\[corpus\]', or choose npy or megatron$"
    with pytest.raises(CorpusError, match=needed):
        run([path])
    assert run([path], format="npy").documents == 1


def test_a_pipe_is_refused(run, tmp_path):
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(CorpusError, match=r"a\.txt: is no file on a disk, which can be read in parts$"):
        run([tmp_path / "a.txt"])


@pytest.mark.parametrize(
    ("change", "words"),
    [(lambda path: path.write_text("other\n"), "has changed since the run began"), (Path.unlink, "No such file")],
)
def test_an_input_that_changes_meanwhile(run, texts, tmp_path, change, words):
    path = write_lines(tmp_path / "a.txt", texts)
    with pytest.raises(CorpusError, match=rf"a\.txt: {words}"):
        run([path], part_bytes=2000, report=lambda progress: progress.shards == 1 and change(path))
