"""Random templates of the grammar, by Hypothesis: mostly of matching types, so that most of them render."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

_WORDS = tomllib.loads(Path(__file__).with_name("template_grammar.toml").read_text(encoding="utf-8"))
TEXTS, NUMBERS, LISTS, DICTS, LOCALS = (_WORDS[name] for name in ("texts", "numbers", "lists", "dicts", "locals"))
_LITERALS, _SMALL, _TESTS = _WORDS["literals"], _WORDS["small"], _WORDS["tests"]
_TEXT_FILTERS, _TEXT_METHODS = _WORDS["text_filters"], _WORDS["text_methods"]
_LIST_FILTERS, _DICT_FILTERS = _WORDS["list_filters"], _WORDS["dict_filters"]
_ANY_NAMES = [*TEXTS, *NUMBERS, *LISTS, *DICTS, *LOCALS, "nothing", "zz", "big", "huge"]


def _texts(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    names = st.sampled_from(
        TEXTS
    )  # alone are cut: Jinja folds constants, and a slice of a constant number is undefined there
    literals = st.sampled_from(_LITERALS)
    atom = st.one_of(names, literals, st.builds("({})".format, inner))
    return st.one_of(
        atom,
        st.builds("{}|{}".format, atom, st.sampled_from(_TEXT_FILTERS)),
        st.builds("{}.{}".format, atom, st.sampled_from(_TEXT_METHODS)),
        st.builds(
            "{}[{}]".format,
            st.one_of(names, literals),
            st.sampled_from(("0", "-1", "1:", ":2", "::-1", "1:-1", "99", "::2", "-3:")),
        ),
        st.builds("{} ~ {}".format, atom, atom),
        st.builds("{} + {}".format, atom, atom),
        st.builds("{} * {}".format, atom, st.sampled_from(_SMALL)),
        st.builds("{} in {}".format, atom, atom),
        st.builds("{} % {}".format, atom, atom),
    )


def _numbers(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    small = st.sampled_from(_SMALL)
    atom = st.one_of(st.sampled_from(NUMBERS), small, st.sampled_from(("1.5", "0.0", "1e3", "10", "big")))
    operators = st.sampled_from(("+", "-", "*", "/", "//", "%", "<", ">=", "==", "!=", "~"))
    return st.one_of(
        atom,
        st.builds("{} {} {}".format, atom, operators, atom),
        st.builds("({} {} {}) {} {}".format, atom, operators, atom, operators, atom),
        st.builds("-{}".format, atom),
        st.builds("{} ** {}".format, atom, st.sampled_from(("0", "1", "2", "-1"))),
        st.builds(
            "{}|{}".format, atom, st.sampled_from(("abs", "round", "round(1)", "int", "float", "string", "tojson"))
        ),
        st.builds("({})|int".format, inner),
        st.builds("{} < {} <= {}".format, atom, atom, atom),
    )


def _lists(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    literal = st.builds("[{}]".format, st.lists(inner, max_size=3).map(", ".join))
    pair = st.builds("({}, {})".format, inner, inner)
    atom = st.one_of(
        st.sampled_from(LISTS), literal, pair, st.sampled_from(("range(3)", "range(4, 0, -1)", "'ab c'.split()"))
    )
    return st.one_of(
        atom,
        st.builds("{}|{}".format, atom, st.sampled_from(_LIST_FILTERS)),
        st.builds("{}[{}]".format, atom, st.sampled_from(("0", "-1", "1:", ":-1", "::-1", "9", "0:2"))),
        st.builds("{}[0]{}".format, atom, st.sampled_from((".role", "['name']", ".zz", "[0]", ".at.x"))),
        st.builds("{} + {}".format, atom, atom),
        st.builds("{} in {}".format, inner, atom),
        st.builds("{} == {}".format, atom, atom),
    )


def _dicts(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    key = st.sampled_from(("'a'", "'items'", "'b'", "1", "text", "none", "true"))
    literal = st.builds("{{{}: {}, {}: {}}}".format, key, inner, key, inner)
    atom = st.one_of(st.sampled_from(DICTS), literal)
    return st.one_of(
        atom,
        st.builds("{}|{}".format, atom, st.sampled_from(_DICT_FILTERS)),
        st.builds(
            "{}{}".format,
            atom,
            st.sampled_from(
                (
                    ".a",
                    "['a']",
                    ".items()|list",
                    "['items']",
                    ".get('b')",
                    ".keys()|list",
                    ".zz",
                    ".values()|list",
                    "['k']['x']",
                    ".type",
                )
            ),
        ),
        st.builds("'a' in {}".format, atom),
    )


def _combined(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    wrapped = st.builds("({})".format, inner)
    return st.one_of(
        _texts(inner),
        _numbers(inner),
        _lists(inner),
        _dicts(inner),
        st.builds("{} is {}".format, wrapped, st.sampled_from(_TESTS)),
        st.builds("{} is not {}".format, wrapped, st.sampled_from(_TESTS)),
        st.builds("not {}".format, inner),
        st.builds("{} and {}".format, inner, inner),
        st.builds("{} or {}".format, inner, inner),
        st.builds("{} if {} else {}".format, inner, inner, inner),
        st.builds("{} if {}".format, inner, inner),
        st.builds("{}|default({})".format, wrapped, inner),
        st.builds(
            "{} {} {}".format, wrapped, st.sampled_from(("==", "!=", "<", ">", "in", "not in", "~", "+")), wrapped
        ),
        st.builds("{}|{}".format, wrapped, st.sampled_from(_TEXT_FILTERS + _LIST_FILTERS + _DICT_FILTERS)),
        st.builds("{}.{}".format, wrapped, st.sampled_from(_TEXT_METHODS)),
    )


expressions = st.recursive(st.sampled_from(_ANY_NAMES + _LITERALS + _SMALL), _combined, max_leaves=6)

_GAPS = ("", "", " ", "\n", "\n\n", "  \n  ", "é ", "<|im_end|>", " x\n", "\u00a0", "\r\n")
_OPENS, _CLOSES = ("{%", "{%", "{%-", "{%+"), ("%}", "%}", "-%}", "+%}")


@st.composite
def _tag(draw: DrawFn, inside: str) -> str:
    close = draw(st.sampled_from(_CLOSES))
    return f"{draw(st.sampled_from(_OPENS))} {inside} {close}"


@st.composite
def _statement(draw: DrawFn, body: SearchStrategy[str]) -> str:
    def expression() -> str:
        return draw(expressions)

    def tag(inside: str) -> str:
        return draw(_tag(inside))

    name = draw(st.sampled_from(LOCALS))
    kind = draw(st.integers(0, 14))
    if kind <= 2:
        return f"{draw(st.sampled_from(('{{', '{{-')))} {expression()} {draw(st.sampled_from(('}}', '-}}')))}"
    if kind == 3:
        return tag(f"set {name} = {expression()}")
    if kind == 4:
        return tag(f"if {expression()}") + draw(body) + tag("endif")
    if kind == 5:
        other = draw(st.sampled_from(("else", f"elif {expression()}")))
        return tag(f"if {expression()}") + draw(body) + tag(other) + draw(body) + tag("endif")
    if kind in (6, 7):
        items = draw(_lists(st.sampled_from(_ANY_NAMES + _SMALL)))
        condition = draw(st.sampled_from(("", "", f" if {name}", f" if {name} is string", f" if {name} != 1")))
        ends = draw(st.sampled_from(("", "", tag("break"), tag("if loop.index > 1") + tag("continue") + tag("endif"))))
        loop = draw(
            st.sampled_from(("", "{{ loop.index }}", "{{ loop.last }}", "{{ loop.previtem }}", "{{ loop.length }}"))
        )
        other = draw(st.sampled_from(("", "", tag("else") + "E")))
        return tag(f"for {name} in {items}{condition}") + loop + draw(body) + ends + other + tag("endfor")
    if kind == 8:
        pairs = draw(st.sampled_from(("pairs", "plain.items()", "plain|items", "record|dictsort", "nested.items()")))
        return tag(f"for x, y in {pairs}") + draw(body) + "{{ x }}{{ y }}" + tag("endfor")
    if kind == 9:
        filters = draw(st.sampled_from(("", "", " | upper", " | trim", " | replace('a', 'b')")))
        return tag(f"set {name}{filters}") + draw(body) + tag("endset")
    if kind == 10:
        use = draw(st.sampled_from(("{{ m() }}", "{{ m(1, y=2) }}", "{{ m(text)|trim }}", "{{ m(z, x) ~ m() }}")))
        default = draw(st.sampled_from(("none", "x", "text", "[]")))
        return tag(f"macro m(x, y={default})") + draw(body) + tag("endmacro") + use
    if kind == 11:
        return tag("macro c()") + "<{{ caller() }}>" + tag("endmacro") + tag("call c()") + draw(body) + tag("endcall")
    if kind == 12:
        return tag(f"with {name} = {expression()}") + draw(body) + tag("endwith")
    if kind == 13:
        return (
            tag(f"filter {draw(st.sampled_from(('upper', 'trim', 'title', 'indent(1)', 'e')))}")
            + draw(body)
            + tag("endfilter")
        )
    start = tag("set ns = namespace(v=0)")
    step = tag(f"set ns.v = {expression()}")
    return start + tag("for q in numbers") + step + draw(body) + tag("endfor") + "{{ ns.v }}"


@st.composite
def _sequence(draw: DrawFn, inner: SearchStrategy[str]) -> str:
    parts: list[Any] = []
    for _ in range(draw(st.integers(1, 3))):
        parts += [draw(st.sampled_from(_GAPS)), draw(_statement(inner)), draw(st.sampled_from(_GAPS))]
    return "".join(parts)


templates = st.recursive(
    st.sampled_from(_GAPS + ("{{ x }}", "{{ y }}", "{# c #}", "{{ z|string }}")), _sequence, max_leaves=4
)
"""Sources of whole templates; a name may be bound in one scope and read in another."""
