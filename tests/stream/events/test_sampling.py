"""The fields of a sampling: names, types and ranges."""

import pytest
from case_tables import cases

from tokenweir import Sampling

CASES = cases(__file__)


@pytest.mark.parametrize(("fields", "message"), CASES["a_number_out_of_range"])
def test_a_number_out_of_range(fields, message):
    with pytest.raises(ValueError) as refused:
        Sampling(**fields)
    assert str(refused.value) == message


def test_the_ends_of_the_ranges():
    Sampling(max_tokens=0, min_tokens=0, n=1, top_logprobs=0, temperature=0, top_p=1, min_p=1, top_k=-1)


def test_an_unknown_field_is_refused_by_the_names_of_the_others():
    with pytest.raises(TypeError, match="^Sampling has no field 'max_new_tokens'; it has max_tokens, temperature, "):
        Sampling(max_new_tokens=3)


def test_repr_has_the_given_fields():
    assert repr(Sampling(max_tokens=3, stop=["."])) == "Sampling(max_tokens=3, stop=['.'])"
    assert repr(Sampling()) == "Sampling()"
