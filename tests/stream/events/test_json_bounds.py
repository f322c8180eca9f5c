"""Values of JSON are counted before it is parsed, and no number takes long."""

import json
import random

import pytest

from tokenweir.stream.events.json_bounds import (
    as_float,
    count_outside_strings,
    has_more_outside_strings,
    has_more_strings,
    is_deeper,
)

CHARACTERS = ["[", "]", "{", "}", ",", ":", '"', "\\", "\\\\", '\\"', "a", "é", "\U0001f600", "\n", " "]


def drawn(rng, depth=0):
    """A value, and how many arrays, objects and separators of items it has."""
    kind = rng.randrange(3 if depth < 4 else 1)
    if kind == 0:
        return rng.choice(["".join(rng.choices(CHARACTERS, k=rng.randrange(8))), 1, None, 0.5]), 0, 0
    parts = [drawn(rng, depth + 1) for _ in range(rng.randrange(5))]
    containers = 1 + sum(part[1] for part in parts)
    commas = max(0, len(parts) - 1) + sum(part[2] for part in parts)
    if kind == 1:
        return [part[0] for part in parts], containers, commas
    keys = [f"{number}{''.join(rng.choices(CHARACTERS, k=rng.randrange(4)))}" for number in range(len(parts))]
    return {key: part[0] for key, part in zip(keys, parts, strict=True)}, containers, commas


@pytest.mark.parametrize("ascii_", [True, False])
def test_counts_are_those_of_the_values(ascii_):
    rng = random.Random(1)
    for _ in range(2000):
        value, containers, commas = drawn(rng)
        data = json.dumps(value, ensure_ascii=ascii_).encode()
        assert count_outside_strings(data, b"[{") == containers
        assert count_outside_strings(data, b",") == commas
        assert not containers or has_more_outside_strings(data, b",[{", containers + commas - 1)
        assert not has_more_outside_strings(data, b",[{", containers + commas)


def strings_of(value):
    """The number of strings that a value has, keys included."""
    if isinstance(value, dict):
        return len(value) + sum(map(strings_of, value.values()))
    return sum(map(strings_of, value)) if isinstance(value, list) else isinstance(value, str)


@pytest.mark.parametrize("ascii_", [True, False])
def test_strings_are_counted_by_their_quotes(ascii_):
    rng = random.Random(2)
    for _ in range(2000):
        value = drawn(rng)[0]
        data = json.dumps(value, ensure_ascii=ascii_).encode()
        assert not has_more_strings(data, strings_of(value))
        assert not strings_of(value) or has_more_strings(data, strings_of(value) - 1)


def test_numbers_are_those_of_python():
    assert as_float("1.5e300") == 1.5e300
    with pytest.raises(ValueError, match="out of range"):
        as_float("-1e400")


def depth_of(value):
    if not isinstance(value, list | dict):
        return 0
    return 1 + max(map(depth_of, value.values() if isinstance(value, dict) else value), default=0)


@pytest.mark.parametrize("ascii_", [True, False])
def test_the_depth_is_that_of_the_values(ascii_):
    rng = random.Random(2)
    for _ in range(2000):
        value, *_ = drawn(rng)
        data, depth = json.dumps(value, ensure_ascii=ascii_).encode(), depth_of(value)
        assert not is_deeper(data, depth)
        assert depth == 0 or is_deeper(data, depth - 1)
    for deep in (b'{"a":' * 501 + b"1" + b"}" * 501, b"[" * 501 + b"]" * 501):
        assert is_deeper(deep, 500) and not is_deeper(deep, 501)
