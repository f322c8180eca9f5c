"""Constructs that are left out raise an error that names them and their line, once they are reached."""

from __future__ import annotations

import pytest
from jinja_oracle import expected
from native_rendering import outcome
from template_probes import LEFT_OUT, REFUSED_BY_BOTH, VARIABLES

from tokenweir.encode.errors import TemplateError
from tokenweir.templates._native import Template


@pytest.mark.parametrize("source", LEFT_OUT)
def test_refused_by_name(source):
    assert expected(source, VARIABLES).text is not None  # or it is not left out
    with pytest.raises(TemplateError, match=LEFT_OUT[source]) as error:
        Template(source).render(VARIABLES)
    assert "line 2: " in str(error.value)


@pytest.mark.parametrize("source", LEFT_OUT)
def test_only_if_it_is_reached(source):
    """A template with a construct that is left out is loaded, and renders as long as that is not reached."""
    unreached = "{% if no %}" + source + "{% endif %}ok"
    assert outcome(unreached, VARIABLES).text == expected(unreached, VARIABLES).text


@pytest.mark.parametrize("source", REFUSED_BY_BOTH)
def test_refused_by_both(source):
    assert expected(source, VARIABLES).text is None
    with pytest.raises(TemplateError, match=REFUSED_BY_BOTH[source]) as error:
        Template(source).render(VARIABLES)
    assert "line 2: " in str(error.value)
