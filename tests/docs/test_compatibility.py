"""The page of compatibility is written from its table and from the recordings of clients.

`python tests/docs/test_compatibility.py` writes it anew.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from written_pages import DOCS, ROOT, check, table, write

from tokenweir.cli import main

PAGE = DOCS / "reference" / "compatibility.md"
RECORDED = ROOT / "tests" / "stream" / "serve" / "recorded"
ROWS = tomllib.loads((Path(__file__).with_suffix("").parent / "compatibility.toml").read_text("utf-8"))["row"]
EACH = "every change"


def recordings() -> list[dict[str, str]]:
    """A row for each recording of a client, from what it says of its source."""
    rows = []
    for path in sorted(RECORDED.glob("*.json")):
        source = json.loads(path.read_text("utf-8"))["source"]
        day = re.search(r"\d{4}-\d\d-\d\d", source)
        client = source.partition(" (PyPI)")[0].partition(" (npm")[0].partition(" with ")[0]
        name, _, release = client.rpartition(" ") if " and " not in client else (client, "", "")
        assert day is not None
        rows.append(
            {
                "with": name,
                "version": release,
                "run": "recorded with the unmodified client against this server; the requests are sent again at every change",
                "command": "pytest tests/stream/serve/test_recorded_clients.py tests/stream/serve/test_recorded_libraries.py",
                "date": day[0],
            }
        )
    return rows


def runs() -> str:
    header = ("with", "version", "what was run", "command that repeats it", "last run")
    rows = [*ROWS, *recordings()]
    return table(
        header, [(row["with"], row["version"], row["run"], f"`{row['command']}`", row["date"]) for row in rows]
    )


def test_the_page_is_written_from_the_table() -> None:
    check(PAGE, runs=runs())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['with']}: {row['command']}")
def test_a_command_names_what_exists(row: dict[str, str]) -> None:
    words = [word for word in shlex.split(row["command"]) if "=" not in word]
    if words[0] == "tokenweir":
        assert words[1] in main.commands
    elif words[0] != "pytest":
        assert (ROOT / words[0]).is_file()
    for word in words[1:]:
        if "/" in word and not word.startswith("OTHER"):
            assert (ROOT / word).exists(), word
    assert row["date"] == EACH or date.fromisoformat(row["date"]) <= date.today()


@pytest.mark.parametrize("row", [row for row in ROWS if row["date"] == EACH], ids=lambda row: row["with"])
def test_the_versions_of_the_test_environment_are_not_older(row: dict[str, str]) -> None:
    """A row may lag behind the environment, never name a release that it has not."""
    names, releases = row["with"].split(", "), row["version"].split(", ")
    for name, release in zip(names, releases, strict=False):
        try:
            installed = version(name)
        except PackageNotFoundError:
            continue
        named = re.match(r"[\d.]+", release)
        assert named is None or _numbers(installed) >= _numbers(named[0]), name


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


if __name__ == "__main__":
    write(PAGE, runs=runs())
