"""The page of styles says what the data says, and so do the numbers in README.

`python tests/docs/test_styles.py` writes both anew.
"""

from __future__ import annotations

import re

from written_pages import DOCS, ROOT, check, table, write

from tokenweir.templates.styles.reasoning import MESSAGES, REASONING_FAMILIES, STYLES
from tokenweir.templates.styles.tools import TOOL_FAMILIES, TOOL_STYLES

PAGE = DOCS / "reference" / "styles.md"
README = ROOT / "README.md"
WORDS = {"json": "JSON", "parameters": "tagged parameters", "typed literals": "literals", "python objects": "Python"}
"""Names of grammars on the page that differ from their own."""


def code(text):
    """A text of markup as code, its line ends shown."""
    shown = text.replace("\n", "\\n").replace("|", "\\|")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def listed(texts):
    return ", ".join(code(text) for text in texts)


def others(families, name):
    return listed(family for family, style in families.items() if style == name)


def parts():
    calls = [
        [
            code(style.name),
            others(TOOL_FAMILIES, style.name),
            "channels" if style.name == "harmony" else WORDS.get(style.grammar, style.grammar),
            listed(style.opens) + (f"; or {listed(style.bare)}" if style.bare else ""),
        ]
        for style in TOOL_STYLES.values()
    ]
    thinking = [
        [code(style.name), others(REASONING_FAMILIES, style.name), listed(style.openers), listed(style.closers)]
        for style in STYLES.values()
    ]
    return {
        "calls": table(["name", "also", "written as", "a call begins with"], calls),
        "thinking": table(["name", "also", "opens", "closes"], thinking),
    }


def test_the_page_is_written_from_the_data():
    check(PAGE, **parts())


def readme():
    text = README.read_text("utf-8")
    for before, number in (("the tags of ", len(STYLES) - len(MESSAGES)), ("streamed, ", len(TOOL_STYLES))):
        text, found = re.subn(rf"{before}\d+ styles", f"{before}{number} styles", text)
        assert found == 1
    return text


def test_readme_has_the_numbers():
    assert README.read_text("utf-8") == readme()


if __name__ == "__main__":
    write(PAGE, **parts())
    README.write_text(readme(), "utf-8")
