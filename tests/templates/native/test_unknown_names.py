"""Unknown filters and tests: refused at load where transformers refuses them, otherwise where they are reached."""

from __future__ import annotations

import pytest
from case_tables import cases
from jinja_oracle import expected

from tokenweir.encode.errors import TemplateError
from tokenweir.templates._native import Template

CASES = cases(__file__)

WRITTEN = CASES["written"]


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
