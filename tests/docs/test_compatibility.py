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

from tokenweir.cli import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
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


def page() -> str:
    columns = ("with", "version", "run", "command", "date")
    lines = [
        ("with", "version", "what was run", "command that repeats it", "last run"),
        ("---",) * 5,
        *(
            tuple(f"`{row[name]}`" if name == "command" else row[name] for name in columns)
            for row in [*ROWS, *recordings()]
        ),
    ]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"""# Compatibility

Written from `tests/docs/compatibility.toml` and from the recordings of clients. "Every change" means that the command is a part of
`scripts/test`, with the newest release that the test environment had; `pytest` stands for `.venv-test/bin/python -P -m pytest` in a
checkout. SOURCES are unpacked source packages. [Verify a model](../howto/verify.md) does the same with a model and texts of yours.

{table}
"""


def test_the_page_is_written_from_the_table() -> None:
    assert PAGE.read_text("utf-8") == page()


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
    PAGE.write_text(page(), "utf-8")
