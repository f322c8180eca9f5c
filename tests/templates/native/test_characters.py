"""The engine's tables of characters are those of Python's `str`, except for characters that only one of the two knows."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

from tokenweir.templates._native import Template

TABLES = Path(__file__).resolve().parents[3] / "templates" / "native" / "text" / "character_tables.h"
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) != "Cn"]


def applied(method, texts):
    template = Template("{% for text in texts %}{{ text." + method + "() }}\x00{% endfor %}")
    chunks = [texts[i : i + 50_000] for i in range(0, len(texts), 50_000)]
    return [made for chunk in chunks for made in template.render({"texts": chunk}).text.split("\x00")[:-1]]


@pytest.fixture(scope="module", autouse=True)
def known_version():
    """The tables are of one version of Unicode; characters that a later Python has are not in them."""
    version = re.search(r"Unicode ([0-9.]+)", TABLES.read_text("utf-8"))[1]
    if version != unicodedata.unidata_version:
        pytest.skip(f"the tables are of Unicode {version}, this Python has {unicodedata.unidata_version}")


@pytest.mark.parametrize("method", ["upper", "lower", "title", "capitalize", "swapcase", "casefold"])
def test_case(method):
    texts = [c for c in CHARACTERS if c != "\x00"]
    assert applied(method, texts) == [getattr(c, method)() for c in texts]


@pytest.mark.parametrize(
    "method",
    ["isalpha", "isdecimal", "isdigit", "isnumeric", "isalnum", "isspace", "isprintable"]
    + ["isupper", "islower", "istitle", "isidentifier", "isascii"],
)
def test_classes(method):
    assert applied(method, CHARACTERS) == [str(getattr(c, method)()) for c in CHARACTERS]


@pytest.mark.parametrize("text", ["ΑΣ", "ΑΣ ΑΣΑ Σ", "Α.Σ", "ΑΣ.", "Σ", "aΣ\u0301b", "ΑΣ'Α", "\u0345Σ", "1Σ"])
def test_the_final_sigma(text):
    for method in ("lower", "title", "capitalize"):
        assert applied(method, [text]) == [getattr(text, method)()]


def test_white_space_and_lines():
    for c in CHARACTERS:
        if c.isspace() or c in "\u200b\u2060\ufeff":
            text = f"{c}a{c}b{c}"
            found = Template("{{ [t.strip(), t.split(), t.splitlines()] }}").render({"t": text}).text
            assert found == str([text.strip(), text.split(), text.splitlines()])
