"""The reference has every public name and every command, once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import tokenweir
from tokenweir.cli import main

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def documented() -> Counter[str]:
    text = "\n".join(page.read_text("utf-8") for page in REFERENCE.glob("*.md"))
    return Counter(re.findall(r"^\.\. auto\w+:: tokenweir\.(\w+)$", text, re.MULTILINE))


def test_every_public_name_is_in_the_reference_once():
    errors = {name for name in tokenweir.__all__ if name.endswith("Error")}  # a page of their own, by their module
    aliases = {"ByteFallback", "Delta"}
    assert documented() == Counter({*tokenweir.__all__} - errors - aliases)


def test_every_command_is_in_the_reference():
    page = (REFERENCE / "command-line.md").read_text("utf-8")
    assert set(re.findall(r"^\| `tokenweir ([\w-]+)` \|", page, re.MULTILINE)) == set(main.commands)
