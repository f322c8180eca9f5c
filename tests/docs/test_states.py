"""The page of states, and its drawings, say what the tables of the blocks of tool calls say.

`python tests/docs/test_states.py` writes them anew.
"""

from __future__ import annotations

import pytest
from written_pages import DOCS, check, write

from tokenweir.stream.decode.parsers.blocks.function_block import FunctionBlock
from tokenweir.stream.decode.parsers.tools import BLOCKS

PAGE = DOCS / "reference" / "block-states.md"
GRAMMARS = {name: BLOCKS[name] for name in ("json", "parameters", "literals", "typed literals", "python objects")} | {
    "a registered function": FunctionBlock
}
LINE = 26
"""Height of a state in a drawing."""


def drawing(name):
    return DOCS / "images" / f"states-{name.replace(' ', '-')}.svg"


def drawn(states):
    """Draw states one below the other: transitions to later ones are arcs at the right, to earlier ones at the left."""
    places = {state: LINE * (number + 1) for number, state in enumerate(states)}
    width, height = 22 * len(states) + 180, LINE * (len(states) + 1)
    middle, lines = width // 2, []
    for state, place in places.items():
        lines.append(f'<text x="{middle}" y="{place + 4}">{state}</text>')
        for then in states[state].then:
            side = 1 if places[then] > place else -1
            begin, bend = middle + 52 * side, 11 * (abs(places[then] - place) // LINE + 1) * side
            lines.append(
                f'<path d="M{begin} {place} C{begin + bend} {place} {begin + bend} {places[then]} {begin} {places[then]}"/>'
            )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<style>text {{ font: 13px sans-serif; text-anchor: middle; fill: #777 }} path {{ fill: none; stroke: #999; marker-end: url(#end) }}</style>
<marker id="end" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" style="fill: #999; stroke: none"/></marker>
{chr(10).join(lines)}
</svg>
"""


def section(name):
    states = GRAMMARS[name].STATES
    rows = [
        f"| `{state}` | {of.where} | {', '.join(f'`{then}`' for then in of.then)} |" for state, of in states.items()
    ]
    title = "JSON" if name == "json" else name.capitalize()
    image = f"![Transitions between the states](../images/{drawing(name).name})"
    table = "\n".join(["| state | place in the text | next |", "| --- | --- | --- |", *rows])
    return f"## {title}\n\n{table}\n\n{image}\n"


def states():
    return "\n".join(section(name) for name in GRAMMARS).rstrip()


def test_the_page_is_written_from_the_tables():
    check(PAGE, states=states())


@pytest.mark.parametrize("name", GRAMMARS)
def test_drawings_are_made_of_the_tables(name):
    assert drawing(name).read_text("utf-8") == drawn(GRAMMARS[name].STATES)


@pytest.mark.parametrize("name", GRAMMARS)
def test_every_state_is_reached_and_leads_to_the_end(name):
    states = GRAMMARS[name].STATES
    reached = ["opened"]
    for state in reached:
        reached += [then for then in states[state].then if then not in reached]
    assert set(reached) == set(states)
    ends = {"done"}
    for _ in states:
        ends |= {state for state, of in states.items() if ends.intersection(of.then)}
    assert ends == set(states)


if __name__ == "__main__":
    write(PAGE, states=states())
    for name in GRAMMARS:
        drawing(name).write_text(drawn(GRAMMARS[name].STATES), "utf-8")
