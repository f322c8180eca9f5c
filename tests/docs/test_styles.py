"""The page of styles says what the data says, and so do the numbers in README.

`python tests/docs/test_styles.py` writes both anew.
"""

from __future__ import annotations

import re
from pathlib import Path

from tokenweir.templates.styles.reasoning import MESSAGES, REASONING_FAMILIES, STYLES
from tokenweir.templates.styles.tools import TOOL_FAMILIES, TOOL_STYLES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "styles.md"
README = ROOT / "README.md"
WORDS = {"json": "JSON", "parameters": "tagged parameters", "typed literals": "literals", "python objects": "Python"}
"""Names of grammars on the page that differ from their own."""


def code(text):
    """A text of markup as code, its line ends shown."""
    shown = text.replace("\n", "\\n").replace("|", "\\|")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def listed(texts):
    return ", ".join(code(text) for text in texts)


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def others(families, name):
    return listed(family for family, style in families.items() if style == name)


def page():
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
    return f"""# Styles

Written from the tables in `tokenweir.templates`; a name of either column is one for `tool_style=` and `reasoning=`. `auto`
finds the style that the chat template or the vocabulary shows. Own styles: [how to](../howto/own-style.md).

## Tool calls

{table(["name", "also", "written as", "a call begins with"], calls)}

## Thinking

{table(["name", "also", "opens", "closes"], thinking)}

## Left out

Styles that vLLM 0.33 and SGLang 0.5.23 have and this page has not: `hf` and `response_template`, whose markup is no
style but what a checkpoint's own `response_template` says. `ChatTemplate` reads it from a model folder: it selects one of the
styles above, or makes one for calls in JSON or Python between plain texts. Its regular expressions are compared, never run.

Models whose markup is known and not read: HyperCLOVA X SEED Think 14B (messages that begin `<|im_start|>assistant/think`), CWM
(a command in `<tool: function>`), Granite where it writes lines of Python without tags, GLM 4 of 2024 and April 2025 (the
name of a function on a line of its own), and code for Llama 3.1's interpreter behind `<|python_tag|>`, which stays text.
"""


def test_the_page_is_written_from_the_data():
    assert PAGE.read_text("utf-8") == page()


def readme():
    text = README.read_text("utf-8")
    for before, number in (("the tags of ", len(STYLES) - len(MESSAGES)), ("streamed, ", len(TOOL_STYLES))):
        text, found = re.subn(rf"{before}\d+ styles", f"{before}{number} styles", text)
        assert found == 1
    return text


def test_readme_has_the_numbers():
    assert README.read_text("utf-8") == readme()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    README.write_text(readme(), "utf-8")
