"""The page of checked templates says what `tokenweir check` says.

`python tests/docs/test_checked_templates.py` writes it anew.
"""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from written_pages import DOCS, ROOT, check, table, write

from tokenweir.cli import main

PAGE = DOCS / "reference" / "checked-templates.md"
GROUPS = ("reads back", "later turns keep", "spelled tokens stay text", "content", "roles")
FOLDERS = ("templates", "templates-more")


def checked(path: Path) -> dict[str, dict[str, str]]:
    """The findings of the command, by the names of the checks."""
    result = CliRunner().invoke(main, ["check", str(path), "--json"])
    assert result.exit_code in (0, 1), result.output
    return {finding["check"]: finding for finding in json.loads(result.stdout)["findings"]}


def cell(found: dict[str, dict[str, str]], group: str) -> str:
    """The number of checks of a group that hold, and the names of the others."""
    parts = {name.partition(": ")[2]: each for name, each in found.items() if name.startswith(f"{group}: ")}
    applies = {name: each for name, each in parts.items() if each["verdict"] != "absent"}
    if not applies:
        return ""
    rest = [name for name, each in applies.items() if each["verdict"] == "note"]
    faults = [f"**{name}**" for name, each in applies.items() if each["verdict"] == "fault"]
    held = len(applies) - len(rest) - len(faults)
    return f"{held} of {len(applies)}" + (f"; not {', '.join([*faults, *rest])}" if rest or faults else "")


def style(found: dict[str, dict[str, str]], name: str) -> str:
    each = found[name]
    return f"`{each['text'].partition(',')[0]}`" if each["verdict"] != "absent" else "none"


def checks(data: Path) -> str:
    paths = sorted(
        (path for folder in FOLDERS for path in (data / folder).glob("*.jinja")), key=lambda path: path.stem.lower()
    )
    rows = []
    for path in paths:
        found = checked(path)
        cells = [path.stem, style(found, "style of thinking"), style(found, "style of calls")]
        rows.append([*cells, *(cell(found, group) for group in GROUPS)])
    return table(["template", "thinking", "calls", *GROUPS], rows)


def test_the_page_is_written_by_the_command(data):
    data("templates-more")
    check(PAGE, checks=checks(data("templates").parent))


if __name__ == "__main__":
    write(PAGE, checks=checks(ROOT.parent / "shared" / "data"))
