"""Each rule of the language, by a small template of its own, against transformers' environment."""

from __future__ import annotations

import pytest
from jinja_oracle import expected
from native_rendering import as_json, check_origins, outcome, rendered
from template_probes import VARIABLES, probes

from tokenweir.templates._native import Template

PROBES = dict(probes())


def test_number_of_probes():
    assert len(PROBES) >= 890


@pytest.mark.parametrize("name", PROBES)
def test_probe(name):
    source = PROBES[name]
    reference = expected(source, VARIABLES)
    for variables in (VARIABLES, as_json(VARIABLES)):
        ours = outcome(source, variables)
        assert (ours.text, ours.generation) == (reference.text, reference.generation), (reference.error, ours.error)
        if reference.line is not None:
            assert ours.line == reference.line, (reference.error, ours.error)
    if reference.text is not None:
        check_origins(rendered(Template(source), VARIABLES), VARIABLES)
