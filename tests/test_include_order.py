"""The folders of C++ code include one way, in the order of the table in the README beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE, NATIVE = ROOT / "encode" / "core", ROOT / "templates" / "native"


def order_of(code: Path) -> list[str]:
    return re.findall(r"^\| `(\w+)/` \|", (code / "README.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("code", [CORE, NATIVE], ids=["core", "native"])
def test_the_table_lists_every_folder(code):
    assert sorted(order_of(code)) == sorted({path.relative_to(code).parts[0] for path in code.rglob("*.[hc]*")})


@pytest.mark.parametrize("code", [CORE, NATIVE], ids=["core", "native"])
def test_a_folder_includes_only_folders_below_it(code):
    order = order_of(code)
    wrong = []
    for path in sorted([*code.rglob("*.h"), *code.rglob("*.cpp")]):
        folder = path.relative_to(code).parts[0]
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            included = re.match(r'#include "(.+)"', line)
            if not included or (code == NATIVE and included[1].startswith("base/")):
                continue
            room, _, rest = included[1].partition("/")
            if not rest or room not in order or order.index(room) < order.index(folder):
                wrong.append(f"{path.relative_to(code)}:{number}: {line}")
    assert not wrong
