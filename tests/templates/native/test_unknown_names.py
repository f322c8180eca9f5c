"""Unknown filters and tests: refused at load where transformers refuses them, otherwise where they are reached."""

from __future__ import annotations

import pytest
from jinja_oracle import expected

from tokenweir.encode.errors import TemplateError
from tokenweir.templates._native import Template

WRITTEN = [
    "{{ x|nope }}",
    "{{ x|a.b }}",
    "{{ x is nope }}",
    "{{ [x|nope] }}",
    "{{ y and x|nope }}",
    "{{ f(x|nope) }}",
    "{{ x[y|nope] }}",
    "{{ {'a': x|nope} }}",
    "{{ 1 if x|nope else 2 }}",
    "{{ (x|nope) if y }}",
    "{{ [(x|nope) if y] }}",
    "{{ (1 if y else 2)|nope }}",
    "{% if x %}{{ x|nope }}{% endif %}",
    "{% if x is nope %}a{% endif %}",
    "{% if x %}{% elif y|nope %}{% else %}{{ x|nope }}{% endif %}",
    "{% set a = x|nope %}",
    "{% if x %}{% set a = x|nope %}{% endif %}",
    "{% for a in x %}{{ a|nope }}{% endfor %}",
    "{% for a in x|nope %}{% endfor %}",
    "{% for a in x if a is nope %}{% endfor %}",
    "{% for a in x %}{% else %}{{ x|nope }}{% endfor %}",
    "{% for a in x %}{% if a %}{{ a|nope }}{% endif %}{% endfor %}",
    "{% if x %}{% for a in y %}{{ a|nope }}{% endfor %}{% endif %}",
    "{% if x %}{% for a in y|nope %}{% endfor %}{% endif %}",
    "{% if x %}{% for a in y if a is nope %}{% endfor %}{% endif %}",
    "{% macro m() %}{{ x|nope }}{% endmacro %}",
    "{% if x %}{% macro m() %}{{ x|nope }}{% endmacro %}{% endif %}",
    "{% if x %}{% macro m(a=x|nope) %}{% endmacro %}{% endif %}",
    "{% if x %}{% call m() %}{{ x|nope }}{% endcall %}{% endif %}",
    "{% if x %}{% call m(x|nope) %}{% endcall %}{% endif %}",
    "{% filter nope %}x{% endfilter %}",
    "{% if x %}{% filter nope %}{% endfilter %}{% endif %}",
    "{% if x %}{% set q %}{{ x|nope }}{% endset %}{% endif %}",
    "{% if x %}{% set q | nope %}{{ x }}{% endset %}{% endif %}",
    "{% if x %}{% with a = x|nope %}{% endwith %}{% endif %}",
    "{% if x %}{% with %}{{ x|nope }}{% endwith %}{% endif %}",
    "{% if x %}{% generation %}{{ x|nope }}{% endgeneration %}{% endif %}",
    "{{ x|map('nope') }}",
]


@pytest.mark.parametrize("source", WRITTEN)
def test_where_an_unknown_name_is_refused(source):
    error = expected(source, {}).error
    refused = "TemplateAssertionError" in error and "found." not in error
    if refused:
        with pytest.raises(TemplateError, match=r"^template, line 1: No (filter|test) named '[a-z.]+' found\.$"):
            Template(source)
    else:
        Template(source)


def test_both_happen():
    errors = [expected(source, {}).error for source in WRITTEN]
    assert 10 < sum("TemplateAssertionError" in error for error in errors) < len(WRITTEN) - 5


def test_filters_of_jinja_are_refused_where_they_are_reached():
    template = Template("{% for a in x %}{{ a|urlize }}{% endfor %}")
    assert template.render({"x": []}).text == ""
    with pytest.raises(TemplateError, match="the filter 'urlize' is not supported"):
        template.render({"x": ["a"]})
