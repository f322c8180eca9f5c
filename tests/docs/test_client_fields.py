"""The page of clients' fields says what the table of fields says, which the server is tested against.

`python tests/docs/test_client_fields.py` writes it anew.
"""

from __future__ import annotations

import tomllib
from typing import Any

from written_pages import DOCS, ROOT, check, write

PAGE = DOCS / "reference" / "client-fields.md"
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


def sections() -> str:
    table = tomllib.loads(TABLE.read_text("utf-8"))
    return "\n".join(section(name, table[name]) for name in INTERFACES).rstrip()


def test_the_page_is_written_from_the_table() -> None:
    check(PAGE, fields=sections())


if __name__ == "__main__":
    write(PAGE, fields=sections())
