"""Instructions of ten micro-cases, in two versions of the package: how many more the newer one takes. Prints a table.

    python bench/instructions.py BASE HEAD [--most 3]

BASE and HEAD are Python interpreters of environments with one version each, both compiled by the same compiler;
`scripts/check --instructions REVISION` makes them. Callgrind counts, so neither the machine's speed nor its load matters,
and the scanner is the one with AVX2, which callgrind can run. Fails if a case takes more than `--most` percent more.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from shared.report import table

CASES = Path(__file__).with_name("instruction_cases.py")
TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)
SETTINGS = {"PYTHONHASHSEED": "0", "TOKENWEIR_SCANNER": "avx2"}


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
        totals = [int(TOTAL.findall(part.read_text())[0]) for part in parts]
    names = done.stdout.splitlines()
    counted = totals[1::2]  # the others are start, warming up and the end
    if len(counted) != len(names):
        raise SystemExit(f"callgrind counted {len(counted)} cases of {len(names)}")
    return dict(zip(names, counted, strict=True))


def main() -> int:
    """Count both versions and compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="Python with the older version")
    parser.add_argument("head", help="Python with the newer version")
    parser.add_argument("--most", type=float, default=3.0, metavar="PERCENT", help="rise that is permitted")
    options = parser.parse_args()
    base, head = count(options.base), count(options.head)
    more = {name: 100 * (head[name] / base[name] - 1) for name in head if name in base}
    rows = [[name, f"{base[name]:,}", f"{head[name]:,}", f"{rise:+.1f} %"] for name, rise in more.items()]
    print(table(["instructions", "base", "head", "change"], rows))
    risen = [name for name, rise in more.items() if rise > options.most]
    if risen:
        print(f"FAILED: more than {options.most:g} % above the base: {', '.join(risen)}", file=sys.stderr)
    return 1 if risen else 0


if __name__ == "__main__":
    sys.exit(main())
