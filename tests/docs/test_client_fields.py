"""The page of clients' fields says what the table of fields says, which the server is tested against.

`python tests/docs/test_client_fields.py` writes it anew.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "client-fields.md"
TABLE = ROOT / "tests" / "stream" / "serve" / "client_fields.toml"

INTERFACES = {
    "chat": "Chat Completions (`openai`)",
    "completions": "Completions (`openai`)",
    "responses": "Responses (`openai`)",
    "compact": "Compaction of responses (`openai`)",
    "messages": "Messages (`anthropic`)",
    "count_tokens": "Counting of tokens (`anthropic`)",
    "beta_messages": "Messages, beta (`anthropic.beta`)",
}
LIKE = {"compact": "Responses", "count_tokens": "Messages"}
EXCEPT = ("ignored", "left_out", "refused")


def names(fields: list[str]) -> str:
    return ", ".join(f"`{name.rpartition('.')[2]}`" for name in sorted(set(fields)))


def section(name: str, part: dict[str, Any]) -> str:
    lines = [f"## {INTERFACES[name]}\n"]
    if name in LIKE:
        lines.append(f"As for {LIKE[name]}, with these differences.\n")
    whole = {
        "left_out": "Left out of the prompt, as `left_out` of the answer says",
        "refused": "Refused, with their place",
        "as_given": "Written to the prompt whatever they hold",
    }
    lines += [f"- {said}: {names(part[key])}." for key, said in whole.items() if key in part]
    rows = [
        f"| `{key.rpartition('.')[2]}` | {' | '.join(names(lists.get(verdict, [])) for verdict in EXCEPT)} |"
        for key, lists in part["fields"].items()
        if any(verdict in lists for verdict in EXCEPT)
    ]
    if rows:
        lines += ["", "| type | without effect | left out | refused |", "|---|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def page() -> str:
    table = tomllib.loads(TABLE.read_text("utf-8"))
    sections = "\n".join(section(name, table[name]) for name in INTERFACES)
    return f"""# Fields of clients

The request types of the packages `openai` 3.57 and `anthropic` 2.14, by interface, with the fields that are not honoured. All
their other fields are. A test goes through the types of the installed packages and sends each field to a server, so a field
that a new release brings is noticed. A type that is refused or left out has no row.

A field without effect changes neither the prompt nor the sampling. Marks for caches (`cache_control`, `prompt_cache_breakpoint`) and
`prediction` have no effect in any interface, also where a package has no such field.

{sections}"""


def test_the_page_is_written_from_the_table() -> None:
    assert PAGE.read_text("utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
