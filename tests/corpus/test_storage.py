"""Runs over URLs: the files of a local run, resumed after a fault at any write."""

from __future__ import annotations

import pytest
from corpus_files import READ, WRITE, command, content

from tokenweir import CorpusError
from tokenweir.corpus import storage

fsspec = pytest.importorskip("fsspec")
memory = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem


@pytest.fixture(autouse=True)
def clean():
    yield
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


def uploaded(path):
    """Copy a local file to memory; return its URL."""
    memory().pipe(f"/in/{path.name}", path.read_bytes())
    return f"memory://in/{path.name}"


def in_memory(folder):
    found = memory().ls(folder, detail=False)
    return {
        name.rpartition("/")[2]: memory().cat(name) for name in found if not name.rpartition("/")[2].startswith(".")
    }


def without_manifest(files):
    return {name: data for name, data in files.items() if name != "manifest.jsonl"}


@pytest.mark.parametrize("shard_format", READ)
def test_urls_give_the_shards_of_paths(run, texts, tmp_path, shard_format):
    pytest.importorskip("pyarrow")
    paths = [WRITE[name](tmp_path / name, texts) for name in WRITE]
    options = {"format": shard_format, "part_bytes": 5000}
    run(paths, **options)
    urls = [uploaded(path) for path in paths]
    found = run(urls, "memory://out", **options)
    assert without_manifest(in_memory("/out")) == without_manifest(content(tmp_path / "out"))
    assert (found.done, found.missing) == (found.total, 0)
    assert not [name for name in memory.store if "/." in name]
    again = run(urls, "memory://out", **options)
    assert again.resumed == again.total
    with pytest.raises(CorpusError, match=r"memory://out: has shards of a run with other files"):
        run(urls[:1], "memory://out", **options)


def test_a_command_over_urls_with_wildcards(tok, texts, tmp_path):
    for number in range(3):
        uploaded(WRITE["a.txt"](tmp_path / f"{number}.txt", texts))
    arguments = ("-o", "memory://out", "--format", "npy", "--workers", 1)
    found = command("memory://in/*.txt", *arguments)
    assert (found.exit_code, found.stdout.partition(" documents")[0]) == (0, f"{3 * len(texts):,}")
    assert command("memory://in/*.jsonl", *arguments).stderr == (
        "tokenweir: error: memory://in/*.jsonl: no file has such a name\n"
    )
    assert "memory://in/9.txt: " in command("memory://in/9.txt", *arguments).stderr
    assert "Protocol not known" in command("nothing://in/9.txt", *arguments).stderr


def test_an_input_that_was_replaced_is_another(run, texts, tmp_path):
    url = uploaded(WRITE["a.txt"](tmp_path / "a.txt", texts))
    change = lambda progress: progress.shards == 1 and memory().pipe("/in/a.txt", b"other\n")
    with pytest.raises(CorpusError, match=r"memory://in/a\.txt: has changed since the run began$"):
        run([url], "memory://out", part_bytes=2000, format="npy", report=change)


class Faulty:
    """The file system of memory, of which one of all calls that change something fails."""

    def __init__(self, monkeypatch, at):
        self.left = at
        for name in ("put_file", "cp_file", "rm_file"):
            monkeypatch.setattr(memory, name, self.counted(getattr(memory, name)))

    def counted(self, call):
        def counting(files, *arguments, **options):
            self.left -= 1
            if self.left == 0:
                raise OSError("the store is gone")
            return call(files, *arguments, **options)

        return counting


def test_a_fault_at_any_write_leaves_nothing_that_counts(run, texts, tmp_path):
    path = WRITE["a.txt"](tmp_path / "a.txt", texts)
    url = uploaded(path)
    options = {"format": "npy", "part_bytes": 8000}
    run([url], "memory://whole", **options)
    whole = in_memory("/whole")
    for at in range(1, 1000):
        with pytest.MonkeyPatch.context() as patch:
            faults = Faulty(patch, at)
            try:
                run([url], f"memory://out{at}", **options)
            except CorpusError as error:
                assert str(error) == f"memory://out{at}: the store is gone"
        complete = in_memory(f"/out{at}") if memory().exists(f"/out{at}") else {}
        assert complete.items() <= whole.items(), at
        run([url], f"memory://out{at}", **options)
        assert in_memory(f"/out{at}") == whole, at
        assert not [name for name in memory.store if f"/out{at}/." in name]
        if faults.left > 0:
            break
    assert at > 20


def test_fsspec_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with pytest.raises(CorpusError, match=r"^s3://a: URLs need fsspec: pip install 'tokenweir\[corpus\]'$"):
        storage.at_url("s3://a")
