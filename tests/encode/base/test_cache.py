"""Files of the cache: only this user's own are read, whatever else stands under their names."""

import os
from dataclasses import replace

import pytest

from tokenweir.encode.base.cache import open_own, read_own, store
from tokenweir.encode.pattern import compile_pattern
from tokenweir.encode.reference import find_pieces

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users of POSIX")


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "folder" / "some.file"
    store(path, b"con", b"tent")
    return path


def link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def folder(path):
    path.unlink()
    path.mkdir()


CHANGES = {
    "a link": link,
    "a pipe without a writer": pipe,
    "a folder": folder,
    "a device": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "a file that a group may write": lambda path: path.chmod(0o620),
    "a file that all may write": lambda path: path.chmod(0o602),
    "no file": lambda path: path.unlink(),
}


def test_what_was_stored_is_read(stored):
    assert read_own(stored) == b"content"
    assert stored.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in stored.parent.iterdir()] == ["some.file"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_not_this_user_s_own_file_is_refused(stored, change):
    change(stored)
    opened = set(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError):
        open_own(stored)
    assert set(os.listdir("/proc/self/fd")) == opened


def test_a_file_of_another_user_is_refused(stored, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(OSError, match="is not to be trusted"):
        read_own(stored)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_automaton_is_read_from_an_own_file_only(cache, change):
    """Another user's may be sound, and not of the pattern that it names."""
    words = compile_pattern(r"\w+|\s+", "fancy-regex")
    (path,) = cache.iterdir()
    path.write_bytes(replace(compile_pattern(r"\w|\s", "fancy-regex"), pattern=words.pattern).to_bytes())
    change(path)
    assert find_pieces(compile_pattern(r"\w+|\s+", "fancy-regex"), "ab  c") == find_pieces(words, "ab  c")
