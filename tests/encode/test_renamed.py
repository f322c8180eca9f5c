from __future__ import annotations

import pytest

from tokenweir.encode.renamed import renamed_keywords


@renamed_keywords(old="new")
def doubled(value=0, *, new=1):
    return value, new * 2


def test_an_old_keyword_warns_where_it_was_written_and_means_the_new_one():
    with pytest.warns(DeprecationWarning, match="^'old' is deprecated: write 'new'$") as caught:
        assert doubled(5, old=3) == (5, 6)
    assert caught[0].filename == __file__


def test_the_new_keyword_does_not_warn():
    assert doubled(new=3) == (0, 6)


def test_both_names_are_refused():
    with pytest.raises(TypeError, match="^'old' is the deprecated name of 'new', and both are given$"):
        doubled(old=1, new=2)
