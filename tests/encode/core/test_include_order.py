"""The folders of encode/core include one way, in the order of the table in its README."""

from __future__ import annotations

import re
from pathlib import Path

CORE = Path(__file__).resolve().parents[3] / "encode" / "core"
ORDER = re.findall(r"^\| `(\w+)/` \|", (CORE / "README.md").read_text("utf-8"), re.MULTILINE)


def test_the_table_lists_every_folder():
    assert sorted(ORDER) == sorted({path.relative_to(CORE).parts[0] for path in CORE.rglob("*.h")})


def test_a_folder_includes_only_folders_below_it():
    wrong = []
    for path in sorted([*CORE.rglob("*.h"), *CORE.rglob("*.cpp")]):
        folder = path.relative_to(CORE).parts[0]
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            included = re.match(r'#include "(\w+)/', line)
            if included and ORDER.index(included[1]) < ORDER.index(folder):
                wrong.append(f"{path.relative_to(CORE)}:{number}: {line}")
    assert not wrong
