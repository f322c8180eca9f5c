"""Digests of what comes before the messages of a conversation."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from tokenweir.stream.prompts.cache.message_digests import digest

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"path": [1, 2.5, None, True]}}}]
OTHERS = [{"type": "function", "function": {"name": "read", "parameters": {"path": [1, 2.5, None, False]}}}]


def test_equal_data_has_one_digest_and_other_data_another():
    assert digest(("source", TOOLS, {})) == digest(("source", [dict(TOOLS[0])], {}))
    values = [None, "source", TOOLS, OTHERS, ("source", TOOLS, {}), ("source", OTHERS, {}), ("other", TOOLS, {})]
    assert len({digest(value) for value in values}) == len(values)


@pytest.mark.parametrize(
    "value", [2**70, "\ud800", MappingProxyType({"a": 1}), {("a", 1): 2}, {1: object}, float("nan")]
)
def test_data_that_is_not_json_has_digests_too(value):
    """msgspec refuses some of these. A template may still take them."""
    assert digest(("source", [value], {})) == digest(("source", [value], {}))
    assert digest(("source", [value], {})) != digest(("source", [value, 1], {}))
