"""A process that gets a share of a core only, by a control group of Linux: what a slower machine does to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

PERIOD = 2_000
"""Microseconds in which the process gets its share; short beside the time between two tokens."""
ROOTS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
"""Folders of control groups, of version 1 and of version 2."""


@contextmanager
def core_share(pid: int, share: float) -> Iterator[None]:
    """Limit a process that has just begun to a share of one core.

    Raises:
        OSError: No control group can be made, as without the rights of root.

    """
    root = next(root for root in ROOTS if root.is_dir())
    group = Path(mkdtemp(prefix="share-", dir=root))
    quota = str(round(PERIOD * share))
    try:
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(quota)
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for member in (group / "cgroup.procs").read_text().split():
            (root / "cgroup.procs").write_text(member)
        group.rmdir()
