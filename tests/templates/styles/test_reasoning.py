from __future__ import annotations

import pytest
from msgspec.structs import replace

from tokenweir.templates.styles.reasoning import REASONING_FAMILIES, STYLES, style_of


def test_names_and_families_find_their_style():
    assert style_of("think") is style_of("Qwen3") is style_of("deepseek_r1") is STYLES["think"]
    assert style_of("magistral").openers == ("[THINK]",)
    assert style_of(STYLES["seed-oss"]).closers == ("</seed:think>",)
    assert set(REASONING_FAMILIES.values()) <= set(STYLES)
    assert not set(REASONING_FAMILIES) & set(STYLES)


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(ValueError, match=r"^unknown reasoning style 'thinks'; known are harmony, "):
        style_of("thinks")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"openers": ()}, r"reasoning style 'think' lacks an opener or a closer, or has an empty one: \('</think>', "),
        ({"closers": ("",)}, r"reasoning style 'think' lacks an opener or a closer, or has an empty one"),
        ({"openers": ("<t", "<t>")}, r"reasoning style 'think': tag '<t' is the beginning of tag '<t>'"),
        ({"closers": ("<think>",)}, r"reasoning style 'think': tag '<think>' is the beginning of tag '<think>'"),
        ({"opens_at": "middle"}, r"reasoning style 'think': opens_at is 'middle', not one of line, start, anywhere"),
        ({"unmatched_closer": "x"}, r"unmatched_closer is 'x', not one of keep, drop"),
        ({"repeated_opener": "x"}, r"repeated_opener is 'x', not one of drop_first, keep, drop"),
    ],
)
def test_a_style_that_could_not_be_parsed_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(STYLES["think"], **change)
