"""Input files: those that cannot be read in parts, that are there twice, or that change, are refused by name."""

from __future__ import annotations

import os

import pytest
from corpus_files import write_lines

from tokenweir import CorpusError
from tokenweir.corpus.documents import DocumentEncoder
from tokenweir.corpus.inputs import Input
from tokenweir.corpus.run import encode_files as run


def test_a_file_under_two_names_is_there_twice(tok, tmp_path):
    path = write_lines(tmp_path / "a.txt", ["text"])
    for name, link in (("link.txt", os.symlink), ("hard.txt", os.link)):
        link(path, tmp_path / name)
        with pytest.raises(CorpusError, match=rf"{name}: is there twice, also as .*a\.txt$"):
            run([path, tmp_path / name], tmp_path / "out", DocumentEncoder(tok, "text"), workers=1)


def test_the_ending_is_refused_before_a_library_is_asked_for(tok, tmp_path, monkeypatch):
    monkeypatch.setattr("tokenweir.corpus.run.find_spec", lambda name: None)
    encoder = DocumentEncoder(tok, "text")
    with pytest.raises(CorpusError, match=r"a\.md: the name of an input ends with one of \.parquet"):
        run([tmp_path / "a.md"], tmp_path / "out", encoder)
    for name in ("a.arrow", "a.txt.gz", "a.jsonl.zst"):
        with pytest.raises(CorpusError, match="Parquet, Arrow and compressed files need pyarrow"):
            run([tmp_path / name], tmp_path / "out", encoder, format="npy")


def test_no_library_is_looked_for_where_none_is_needed(tok, tmp_path, monkeypatch):
    def find(name):
        raise AssertionError(f"{name} is not needed")

    monkeypatch.setattr("tokenweir.corpus.run.find_spec", find)
    path = write_lines(tmp_path / "a.txt", ["text"])
    run([path], tmp_path / "out", DocumentEncoder(tok, "text"), format="npy", workers=1)


def test_a_pipe_is_refused(tok, tmp_path):
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(CorpusError, match=r"a\.txt: is no file on a disk, which can be read in parts$"):
        run([tmp_path / "a.txt"], tmp_path / "out", DocumentEncoder(tok, "text"), workers=1)


def test_an_input_that_changes_meanwhile(tok, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)

    def change(progress):
        if progress.shards == 1:
            write_lines(path, texts[1:])

    with pytest.raises(CorpusError, match="has changed since the run began"):
        run([path], tmp_path / "out", DocumentEncoder(tok, "text"), part_bytes=2000, workers=1, report=change)


def test_an_input_that_goes_meanwhile(tok, texts, tmp_path):
    path = write_lines(tmp_path / "a.txt", texts)

    def remove(progress):
        if progress.shards == 1:
            path.unlink()

    with pytest.raises(CorpusError, match=r"a\.txt: No such file"):
        run([path], tmp_path / "out", DocumentEncoder(tok, "text"), part_bytes=2000, workers=1, report=remove)


def test_an_input_knows_itself(tmp_path):
    path = write_lines(tmp_path / "a.txt", ["a"])
    Input.at(str(path)).check()
