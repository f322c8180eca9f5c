"""Shards: files are flushed by a descriptor that may write, and closed before they are removed."""

from __future__ import annotations

import fcntl
import os

import numpy as np
import pytest

from tokenweir.corpus.documents import DocumentBatch
from tokenweir.corpus.shards import WRITERS, Layout
from tokenweir.corpus.storage import folder_at
from tokenweir.encode.values.encoded import Ragged

ROWS = Ragged(np.arange(5, dtype=np.int32), np.array([0, 2, 5]))


def opened():
    """The files in a process that are open."""
    return {
        os.readlink(f"/proc/self/fd/{name}")
        for name in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{name}")
    }


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no list of open files")
@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("kind", WRITERS)
def test_a_failed_shard_leaves_no_open_file(tmp_path, kind, masks):
    pytest.importorskip("pyarrow")
    layout = Layout(kind, 9, masks)
    with pytest.raises(ZeroDivisionError), WRITERS[kind](folder_at(str(tmp_path), "1"), "part-0", layout) as shard:
        shard.write(DocumentBatch(ROWS, np.ones(5, np.uint8) if masks else None, 0))
        assert any(name.startswith(str(tmp_path)) for name in opened())
        raise ZeroDivisionError
    assert not any(name.startswith(str(tmp_path)) for name in opened())
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_finished_shard_is_flushed_by_a_descriptor_that_may_write(tmp_path, kind, monkeypatch):
    """Windows refuses to flush any other."""
    pytest.importorskip("pyarrow")
    modes = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: modes.append(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE)
    )
    with WRITERS[kind](folder_at(str(tmp_path), "1"), "part-0", Layout(kind, 9)) as shard:
        shard.write(DocumentBatch(ROWS, None, 0))
        sizes = shard.close()
    assert sorted(sizes) == sorted(path.name for path in tmp_path.iterdir())
    assert modes == [os.O_RDWR] * len(sizes)
