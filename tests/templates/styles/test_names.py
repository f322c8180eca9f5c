from __future__ import annotations

import pytest

from tokenweir.templates.styles.names import named_style

STYLES, FAMILIES = {"one-way": 1, "other": 2}, {"kin": "other"}


@pytest.mark.parametrize(("name", "found"), [("one-way", 1), ("One_Way", 1), ("OTHER", 2), ("kin", 2)])
def test_a_style_is_found_by_its_own_name_or_its_familys(name, found):
    assert named_style(name, "style", STYLES, FAMILIES) == found


def test_an_unknown_name_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match="^unknown tag style 'on'; known are one-way, other, kin$"):
        named_style("on", "tag style", STYLES, FAMILIES)
