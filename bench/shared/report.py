"""Tables of results, for the terminal and for the pages that quote them."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row", bound=Sequence[str])
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "RESULTS.md"
SERVING_RESULTS = ROOT / "bench" / "serving" / "RESULTS.md"
PAGES = (
    RESULTS,
    SERVING_RESULTS,
    ROOT / "docs" / "explanation" / "streaming-bugs.md",
    ROOT / "docs" / "explanation" / "injections.md",
)
"""The pages with tables that benchmarks write, each between marks of its own."""
DATA = Path(os.environ.get("TOKENWEIR_DATA") or ROOT.parent / "shared" / "data")


def arguments(doc: str | None, *positional: tuple[str, dict[str, Any]], **options: Any) -> argparse.Namespace:
    """Parse the arguments of a benchmark: `--write`, and each keyword's option.

    Args:
        doc: The description, which is the benchmark's docstring.
        *positional: The name of each argument without a flag, and the keywords of `add_argument`.
        **options: The default of each; a pair of that and what the option does; or the keywords of `add_argument`.

    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, keywords in positional:
        parser.add_argument(name, **keywords)
    for name, given in options.items():
        default, keywords = given, {}
        if isinstance(given, tuple):
            default, keywords["help"] = given
        if isinstance(given, dict):
            keywords = given
        elif default is False:
            keywords["action"] = "store_true"
        elif isinstance(default, list):
            keywords |= {"default": default, "nargs": "+", "type": type(default[0])}
        else:
            keywords |= {"default": default, "type": type(default)}
        parser.add_argument(f"--{name.replace('_', '-')}", **keywords)
    parser.add_argument("--write", action="store_true", help="write the tables into the page that has them")
    return parser.parse_args()


def several(known: Iterable[str]) -> dict[str, Any]:
    """Return the keywords of an argument that takes some of the known names; all without any."""
    names = [*known]

    def one(name: str) -> str:
        if name not in names:
            raise argparse.ArgumentTypeError(f"no {name}; there are {', '.join(names)}")
        return name

    return {"nargs": "*", "type": one, "default": names, "help": f"of {', '.join(names)} (all)"}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up; all but the first column are right-aligned."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    def line(cells: Sequence[str]) -> str:
        padded = [cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]
        return f"| {' | '.join(padded)} |"

    return "\n".join((line(header), line(rule), *map(line, rows)))


def told(row: Row) -> Row:
    """Print a row of a table, which is shown when it is measured; return it."""
    print(*row, sep="  ", file=sys.stderr, flush=True)
    return row


def machine() -> str:
    """One line: the date, the processor, its cores, the Python version."""
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    name = model[1] if model else platform.processor() or platform.machine()
    return f"{datetime.now(UTC):%Y-%m-%d}, {name}, {os.cpu_count()} cores, Python {platform.python_version()}"


def heading(section: Callable[..., object]) -> str:
    """Return the heading of a section's table: the docstring of the function that measures it, on one line."""
    return " ".join((section.__doc__ or "").split())


def publish(name: str, result: str, write: bool = False) -> None:
    """Print a result; if it is to be written, put it between its marks in the page that has them."""
    print(f"## {name}\n\n{result}\n", flush=True)
    if write:
        marked = (page for page in PAGES if f"<!-- {name}:begin -->" in page.read_text(encoding="utf-8"))
        write_between(next(marked, RESULTS), name, result)


def write_between(path: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name:begin -->` and `<!-- name:end -->` in a page.

    Raises:
        ValueError: The page does not have both marks exactly once.

    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = path.read_text(encoding="utf-8")
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"{path} must contain {begin} and {end} exactly once")
    before, _, rest = page.partition(begin)
    after = rest.partition(end)[2]
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
