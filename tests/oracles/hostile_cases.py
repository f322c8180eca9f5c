"""Templates that would fill the memory or take for ever, for tests of the limits.

Those that can be written down stand in `hostile_templates.toml`.
"""

from __future__ import annotations

import re
import tomllib
from itertools import product
from pathlib import Path

_TABLES = tomllib.loads(Path(__file__).with_name("hostile_templates.toml").read_text(encoding="utf-8"))


def _source(parts: str | list[str | list[str | int]]) -> str:
    """Return the template that an entry of a table stands for."""
    if not isinstance(parts, str):
        return "".join(_source(part) if isinstance(part, str) else part[0] * part[1] for part in parts)
    return re.sub("@([a-z ]+)@", lambda name: _source(_TABLES["parts"][name[1]]), parts)


def _sources(table: str) -> dict[str, str]:
    return {name: _source(parts) for name, parts in _TABLES[table].items()}


KINDS = _sources("kinds")
LANGUAGE = _sources("language") | {
    "a chain of names": "".join(f"{{% set a{i} = a{i + 1} %}}" for i in range(3000, 0, -1))
    + "{% set a3000 = m.content %}",
    "a chain of names the other way": "".join(f"{{% set a{i} = a{i + 1} %}}" for i in range(3000))
    + "{% set a3000 = m.content %}",
    "branches": "".join(f"{{% if a{i} %}}{{% set b{i} = 1 %}}{{% elif c{i} %}}{{% endif %}}" for i in range(1500)),
    "macros in number": "".join(f"{{% macro m{i}(a, b) %}}{{{{ a }}}}{{% endmacro %}}" for i in range(700)),
}
STRUCTURES = _sources("structures")
_LOOKS = ["ns.s == ns.s[0:]", "ns.s in [ns.s]", "'zz' in ns.s", "ns.s is in [ns.s[1:]]", "ns.s is eq ns.s[1:]"] + [
    "ns.s ~ ns.s ~ ns.s",
    "'%s%s%s' % (ns.s, ns.s, ns.s)",
    "'{0}{0}{0}'.format(ns.s)",
    "ns.s[::-1] < ns.s",
    "ns.s * 3",
    "dict(a=ns.s)",
]


def sweep() -> dict[str, str]:
    """Return templates by name that apply every filter, method and comparison to values of every kind, once and repeatedly."""
    table = _TABLES["sweep"]
    uses = (
        [f"ns.s | {use}" for use in table["filters"]]
        + [f"ns.s.{use}" for use in table["methods"]]
        + [f"(ns.s | safe).{use}" for use in ("striptags()", "unescape()", "join([ns.s, ns.s])", "split('<')")]
        + _LOOKS
    )
    cases = {}
    for name, use in product(table["values"], uses):
        value = _source(f"@{name}@")
        cases[f"{name}: {use}"] = value + "{{ (" + use + ") is none }}"
        cases[f"{name}, often: {use}"] = value + "{% for i in range(99999) %}{% set x = " + use + " %}{% endfor %}"
    return cases
