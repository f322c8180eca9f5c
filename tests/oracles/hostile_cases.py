"""Templates that would fill the memory or take for ever, for tests of the limits and for `bench/hostile_templates.py`."""

from __future__ import annotations

from itertools import product

LONG = "{% set ns = namespace(s='ab< ') %}{% for i in range(22) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"  # 16 MB
WIDE = "{% set ns = namespace(s='é') %}{% for i in range(22) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"
LIST = "{% set ns = namespace(s=range(100000) | list) %}{% set ns.s = ns.s + ns.s %}"
NESTED = "{% set ns = namespace(s=['x']) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}"
KEYED = (
    "{% set ns = namespace(s={'k': 1}) %}{% for i in range(60) %}{% set ns.s = {'a': ns.s, 'b': ns.s} %}{% endfor %}"
)
DEEP = "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}"
TEXTS = LONG + "{% set ns.s = [ns.s] * 200000 %}"
VALUES = {"long": LONG, "wide": WIDE, "list": LIST, "nested": NESTED, "keyed": KEYED, "deep": DEEP, "texts": TEXTS}

# The kinds that passed five seconds before there was a clock.
KINDS = {
    "tojson of lists that hold each other": NESTED + "{{ ns.s | tojson | length }}",
    "comparing them": NESTED + NESTED.replace("ns", "os") + "{{ ns.s == os.s }}",
    "searching them": NESTED + NESTED.replace("ns", "os") + "{{ os.s in ns.s }}",
    "writing them": NESTED + "{{ ns.s }}",
    "searching long text": LONG + "{% for i in range(99999) %}{% if 'b<<' in ns.s %}{% endif %}{% endfor %}",
    "comparing long texts": LONG
    + "{% set a = ns.s + 'a' %}{% set b = ns.s + 'b' %}{% for i in range(99999) %}{% if a == b %}{% endif %}{% endfor %}",
    "sum of lists": "{{ ([[1, 2, 3, 4]] * 99999) | sum(start=[]) | length }}",
    "title of long text": LONG + "{{ ns.s | title | length }}",
    "urlize of long text": LONG + "{{ ns.s | urlize | length }}",
    "many statements": "".join("{% set a = 1 %}" for _ in range(17400)),
    "slices that are kept": "{% set ns = namespace(l=[]) %}{% set s = 'a' * 1000000 %}"
    "{% for i in range(3000) %}{% set ns.l = ns.l + [s[1:]] %}{% endfor %}{{ ns.l | length }}",
}

_FILTERS = [
    "abs",
    "attr('x')",
    "batch(3)",
    "capitalize",
    "center(80)",
    "count",
    "default('x')",
    "dictsort",
    "escape",
    "filesizeformat",
    "first",
    "float",
    "forceescape",
    "format",
    "groupby(0)",
    "indent",
    "int",
    "items",
    "join",
    "join('xxxxxxxxxxxxxxxx')",
    "last",
    "length",
    "list",
    "lower",
    "max",
    "min",
    "pprint",
    "random",
    "reject",
    "rejectattr('a')",
    "replace('a','bbbbbbbb')",
    "replace('','x')",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr('a')",
    "slice(3)",
    "sort",
    "string",
    "striptags",
    "sum",
    "title",
    "tojson",
    "tojson(indent=1000)",
    "trim",
    "trim('ab<')",
    "truncate(99)",
    "unique",
    "upper",
    "urlencode",
    "urlize",
    "wordcount",
    "wordwrap(3)",
    "xmlattr",
    "map('upper')|list",
    "map(attribute='a.b.c')|list",
    "map('tojson')|join",
]
_METHODS = [
    "capitalize()",
    "casefold()",
    "count('b<<')",
    "encode()",
    "endswith('<')",
    "expandtabs(9)",
    "find('<<')",
    "format(ns.s)",
    "index('ab')",
    "isalnum()",
    "join(ns.s)",
    "join('ab')",
    "ljust(99)",
    "lower()",
    "lstrip('ab<')",
    "partition('<')",
    "replace('a',ns.s)",
    "rfind('<<a')",
    "rfind(ns.s[1:9000])",
    "rindex('a')",
    "rpartition('q')",
    "rsplit()",
    "rsplit('<')",
    "rstrip(ns.s)",
    "split()",
    "split('<')",
    "split('<', 5)",
    "splitlines()",
    "strip(ns.s)",
    "swapcase()",
    "title()",
    "translate({})",
    "upper()",
    "zfill(99)",
    "items()",
    "keys()",
    "get('a')",
    "index(1)",
    "count(1)",
    "copy()",
]
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
    uses = (
        [f"ns.s | {use}" for use in _FILTERS]
        + [f"ns.s.{use}" for use in _METHODS]
        + [f"(ns.s | safe).{use}" for use in ("striptags()", "unescape()", "join([ns.s, ns.s])", "split('<')")]
        + _LOOKS
    )
    cases = {}
    for (name, value), use in product(VALUES.items(), uses):
        cases[f"{name}: {use}"] = value + "{{ (" + use + ") is none }}"
        cases[f"{name}, often: {use}"] = value + "{% for i in range(99999) %}{% set x = " + use + " %}{% endfor %}"
    return cases


LANGUAGE = {
    "nested loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "a big body": "{% for i in range(99999) %}" + "{{ i }}" * 5000 + "{% endfor %}",
    "a big body of sets": "{% for i in range(99999) %}" + "{% set a = [1] %}" * 2000 + "{% endfor %}",
    "a loop's condition": "{% for i in range(99999) if range(99999) | select('odd') | list | length < 0 %}{% endfor %}",
    "recursion": "{% for i in range(60) recursive %}{{ loop(range(60)) if loop.depth < 9 }}{% endfor %}",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "callers": "{% macro m(n) %}{% if n %}{% call m(n - 1) %}{% endcall %}{{ caller() }}{% call m(n - 1) %}{% endcall %}"
    "{% endif %}{% endmacro %}{% call m(60) %}x{% endcall %}",
    "blocks": "{% block b %}{% set x = 1 %}{{ self.b() }}{{ self.b() }}{% endblock %}",
    "kept literals": "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}"
    + "{% set ns.l = [ns.l, {'a': 1, 'b': 2, 'c': 3}, [1, 2, 3], 'x' ~ i] %}" * 200
    + "{% endfor %}",
    "kept texts": "{% set ns = namespace(l=[]) %}{% set s = 'a' * 240 %}{% for i in range(99999) %}"
    + "{% set ns.l = [ns.l, s ~ i, s ~ 'a' ~ i, s ~ 'b' ~ i] %}" * 100
    + "{% endfor %}",
    "cyclers": "{% set c = cycler(*range(9999)) %}{% for i in range(99999) %}{{ c.next() }}{% set d = cycler(*range(9999)) %}"
    "{% endfor %}",
    "changed": NESTED + "{% for i in range(99999) %}{% if loop.changed(ns.s[0:]) %}{% endif %}{% endfor %}",
    "groups": "{% for i in range(99999) %}{% set g = range(9999) | map('string') | groupby(0) %}{% endfor %}",
    "numbers": "{% set ns = namespace(n=3) %}{% for i in range(99999) %}{% set ns.n = ns.n * 3 %}{% endfor %}",
    "powers": "{{ 10 ** (10 ** 8) }}{{ 2 ** 2 ** 2 ** 2 ** 2 ** 2 }}",
    "a chain of names": "".join(f"{{% set a{i} = a{i + 1} %}}" for i in range(3000, 0, -1))
    + "{% set a3000 = m.content %}",
    "a chain of names the other way": "".join(f"{{% set a{i} = a{i + 1} %}}" for i in range(3000))
    + "{% set a3000 = m.content %}",
    "one long expression": "{{ 1" + " + 1" * 4000 + " }}",
    "wide literals": "{% for i in range(99999) %}{% set x = [" + "[1]," * 3000 + "] %}{% endfor %}",
    "constants": "{{ " + "'a' * 16000000 ~ " * 200 + "'' }}",
    "brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "ifs": "{% if a %}" * 300 + "{% endif %}" * 300,
    "branches": "".join(f"{{% if a{i} %}}{{% set b{i} = 1 %}}{{% elif c{i} %}}{{% endif %}}" for i in range(1500)),
    "macros in number": "".join(f"{{% macro m{i}(a, b) %}}{{{{ a }}}}{{% endmacro %}}" for i in range(700)),
    "unclosed": "{{ 'a" * 60000,
    "comments": "{#" * 120000,
    "braces": "{" * 250000,
    "blank": "\n \t" * 80000 + "{{ 1 }}",
}

_COUNT = "{% for i in range(100000) %}"
_GROW = "{% set ns = namespace(s='') %}" + _COUNT
_NEST = "{% set ns = namespace(s=[]) %}{% set os = namespace(s=[]) %}" + _COUNT
_DEEP = _NEST + "{% set ns.s = [ns.s] %}{% set os.s = [os.s] %}{% endfor %}"

STRUCTURES = {
    "a text searched while it grows": _GROW
    + "{% set ns.s = ns.s + 'ab' %}{% if 'zz' in ns.s %}{% endif %}{% endfor %}",
    "a text measured while it grows": _GROW
    + "{% set ns.s = ns.s + 'é' %}{% if ns.s|length == 3 %}{% endif %}{% endfor %}",
    "a text indexed while it grows": _GROW + "{% set ns.s = ns.s + 'é' %}{{ ns.s[-1] }}{% endfor %}",
    "a text cut while it grows": _GROW + "{% set ns.s = ns.s[1:] + 'éa' %}{% endfor %}",
    "a text replaced while it grows": _GROW + "{% set ns.s = (ns.s + 'ab').replace('b', 'bb') %}{% endfor %}",
    "generators of generators": "{% set ns = namespace(g=[1]) %}"
    + _COUNT
    + "{% set ns.g = ns.g|map('string') %}{% endfor %}{{ ns.g|list }}",
    "selections of selections": "{% set ns = namespace(g=[1]) %}"
    + _COUNT
    + "{% set ns.g = ns.g|select %}{% endfor %}{{ ns.g|first }}",
    "comparing deep lists": _DEEP + "{{ ns.s == os.s }}",
    "JSON of deep lists": _DEEP + "{{ ns.s|tojson }}",
    "writing deep lists": _DEEP + "{{ ns.s }}",
    "sorting deep lists": _DEEP + "{{ [ns.s, os.s, [ns.s]]|sort|length }}",
    "a deep key": "{% set ns = namespace(s=(1,)) %}"
    + _COUNT
    + "{% set ns.s = (ns.s, 1) %}{% endfor %}{{ {ns.s: 1}|length }}",
    "indented JSON": NESTED + "{{ ns.s | tojson(indent=1000) }}",
    "characters": "{{ ('a' * 60000000)|list|length }}",
    "words": "{{ ('a ' * 30000000).split()|length }}",
    "joining by long text": "{% set s = 'a' * 1000000 %}{{ (range(100000)|join(s))|length }}",
    "replacing by long text": "{% set s = 'a' * 100000 %}{{ s.replace('a', s)|length }}",
    "a width of %": "{{ '%99999999999d' % 1 }}",
    "a width of format": "{{ '{:99999999999}'.format(1) }}",
    "a width in braces": "{{ '{:{w}}'.format(1, w=99999999) }}",
    "many long arguments": "{% set s = 'a' * 30000000 %}{{ '%s%s%s' % (s, s, s) }}",
    "ljust": "{{ 'a'.ljust(99999999999) }}",
    "center": "{{ 'a'|center(99999999999)|length }}",
    "tabs": "{{ ('\\t' * 1000000).expandtabs(100000)|length }}",
    "indenting blank lines": "{{ ('\\n' * 1000000)|indent(100000, blank=true)|length }}",
    "filling a batch": "{{ [1]|batch(99999999999, 'x')|list|length }}",
    "filling slices": "{{ [1]|slice(99999999, 'x')|list|length }}",
    "a number of many digits": "{{ ('9' * 60000000)|int }}",
    "a long power": "{{ 7 ** 999999999 }}",
    "products of long numbers": "{% set b = 2 ** 240000 %}" + _COUNT + "{% set c = b * b %}{% endfor %}",
    "quotients of long numbers": "{% set b = 2 ** 480000 + 1 %}"
    + _COUNT
    + "{% set c = b // (2 ** 240000 + 3) %}{% endfor %}",
    "sorting long texts": "{% set l = ['a' * 10000] * 100000 %}" + _COUNT + "{% set m = l|sort %}{% endfor %}",
    "unique long texts": "{% set l = ['a' * 100000] * 100000 %}{{ l|unique|list|length }}",
    "adding to a list": "{% set ns = namespace(l=[]) %}" + _COUNT + "{% set ns.l = ns.l + [i] %}{% endfor %}",
    "searching a list": "{% set l = range(100000)|list %}" + _COUNT + "{% if 'x' in l %}{% endif %}{% endfor %}",
    "the worst needle": "{% set s = 'a' * 10000000 %}{% set p = 'a' * 5000000 + 'b' %}{{ p in s }}{{ s.find(p) }}{{ s.rfind('b' + p) }}",
    "the worst separator": "{% set s = 'a' * 10000000 %}{{ s.split('a' * 5000 + 'b')|length }}{{ s.rsplit('b' + 'a' * 5000) }}",
    "many characters to strip": "{{ ('é' * 10000000).strip('abcdefghijklmnopqrstuvwxyz' * 10000 + 'é')|length }}",
    "the case of a sigma": "{{ (('Σ' + '\\u0301' * 1000) * 10000).lower()|length }}",
    "a default that calls": "{% macro m(x=m()) %}{% endmacro %}{{ m() }}",
    "a macro in itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "a capture in itself": "{% macro m() %}{% set x %}{{ m() }}{% endset %}{{ x }}{% endmacro %}{{ m() }}",
    "a loop in itself": "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "signs": "{{ " + "-" * 100000 + "1 }}",
    "negations": "{{ " + "not " * 100000 + "1 }}",
    "calls of calls": "{{ a" + "()" * 10000 + " }}",
    "items of items": "{{ a" + "[0]" * 10000 + " }}",
    "conditions of conditions": "{{ " + "1 if 1 else " * 10000 + "1 }}",
    "captures in a loop": _COUNT + "{% set x %}{% for j in range(100) %}{{ j }}{% endfor %}{% endset %}{% endfor %}",
    "a long output": "{% set s = 'a' * 1000000 %}" + _COUNT + "{{ s }}{% endfor %}",
    "escapes of Python": "{{ ['\\x01' * 10000000]|string|length }}",
    "escapes of HTML": "{{ ('<' * 20000000)|e|length }}",
    "escapes of JSON": "{{ ('\\x01' * 20000000)|tojson|length }}",
    "deep JSON": "{{ ('[' * 1000000)|from_json }}",
    "wide JSON": "{{ ('[' ~ '1,' * 10000000 ~ '1]')|from_json|length }}",
    "iterating ranges": _COUNT + "{% set x = range(100000)|sum %}{% endfor %}",
    "changed": _COUNT + "{{ loop.changed(range(1000)|list) }}{% endfor %}",
}
"""Programs aimed at the engine's own structures: ropes, generators, recursion, widths, long numbers."""
