"""Instructions of ten micro-cases, in this version of the package and in an earlier one. Prints a table.

    python bench/instructions.py HEAD [BASE] [--most 3] [--write]

HEAD and BASE are Python interpreters of environments with one version each, both compiled by the same compiler. Without BASE the
counts are compared with those of `bench/instructions.json`, which --write replaces. They hold for one compiler and one Python;
with others the exit status is 3, and `scripts/check --instructions` compiles the revision that the file is from.

Callgrind counts, so neither the machine's speed nor its load matters, and the scanner is the one with AVX2, which callgrind can
run. Instructions of the package's modules and of the interpreter count; those of the C library and of numpy do not, because they
depend on the machine. Fails if a case takes more than `--most` percent more.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shared.report import arguments, table

CASES = Path(__file__).with_name("instruction_cases.py")
KEPT = Path(__file__).with_name("instructions.json")
OBJECT = re.compile(r"ob=(\(\d+\))(?: (.*))?")
COUNTED = re.compile(r"(_core|_native)\.|(lib)?python[\d.]")
"""Beginnings of the names of files whose instructions count."""
COSTS = {*"0123456789+-*"}
"""First characters of the lines that have a cost."""
SETTINGS = {"PYTHONHASHSEED": "0", "TOKENWEIR_SCANNER": "avx2"}
OTHER_MACHINE = 3
"""Exit status: the kept counts are those of another compiler or Python."""


def instructions(lines: Iterable[str]) -> int:
    """Sum the instructions that the counted files took by themselves, in one of callgrind's dumps."""
    names: dict[str, str] = {}
    total, counts, is_call = 0, False, False
    for line in lines:
        if found := OBJECT.search(line):
            number, name = found.groups()
            if name is not None:
                names[number] = name
            if line.startswith("ob="):
                counts = COUNTED.match(Path(names[number]).name) is not None
        elif counts and not is_call and line[:1] in COSTS:  # the cost of a call is that of the function
            total += int(line.split()[1])
        is_call = line.startswith("calls=")
    return total


def count(python: str) -> dict[str, int]:
    """Count the instructions of each case in an environment."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={folder}/counts"]
        done = subprocess.run(
            [*command, python, "-P", str(CASES)],
            env=os.environ | SETTINGS,
            capture_output=True,
            check=False,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{python} failed under callgrind:\n{done.stderr[-4000:]}")
        parts = sorted(Path(folder).glob("counts.*"), key=lambda part: int(part.suffix[1:]))
        totals = [instructions(part.read_text().splitlines()) for part in parts]
    names = done.stdout.splitlines()
    counted = totals[1::2]  # the others are start, warming up and the end
    if len(counted) != len(names):
        raise SystemExit(f"callgrind counted {len(counted)} cases of {len(names)}")
    return dict(zip(names, counted, strict=True))


def made_by(python: str) -> dict[str, str]:
    """Return the compiler and the Python that counts hold for."""
    compiler = [os.environ.get("CXX", "g++"), "--version"]
    version = [python, "-c", "import sys; print(sys.version)"]
    first, own = (subprocess.run(one, capture_output=True, check=True, text=True).stdout for one in (compiler, version))
    return {"compiler": first.splitlines()[0], "python": own.strip()}


def kept_counts(maker: dict[str, str]) -> dict[str, int] | None:
    """Return the counts of the file, or None if another compiler or Python made them."""
    kept: dict[str, Any] = json.loads(KEPT.read_text())
    return kept["instructions"] if kept["made_by"] == maker else None


def main() -> int:
    """Count and compare."""
    options = arguments(
        __doc__,
        ("head", {"help": "Python with the newer version"}),
        ("base", {"nargs": "?", "help": "Python with the older version; the kept counts by default"}),
        most=(3.0, "percent of a rise that is permitted"),
    )
    maker = made_by(options.head)
    if options.write:
        KEPT.write_text(json.dumps({"made_by": maker, "instructions": count(options.head)}, indent=2) + "\n")
        return 0
    base = count(options.base) if options.base else kept_counts(maker)
    if base is None:
        print(f"{KEPT} is of another compiler or Python than {maker}", file=sys.stderr)
        return OTHER_MACHINE
    head = count(options.head)
    more = {name: 100 * (head[name] / base[name] - 1) for name in head if name in base}
    rows = [[name, f"{base[name]:,}", f"{head[name]:,}", f"{rise:+.1f} %"] for name, rise in more.items()]
    print(table(["instructions", "base", "head", "change"], rows))
    risen = [name for name, rise in more.items() if rise > options.most]
    if risen:
        print(f"FAILED: more than {options.most:g} % above the base: {', '.join(risen)}", file=sys.stderr)
    return 1 if risen else 0


if __name__ == "__main__":
    sys.exit(main())
