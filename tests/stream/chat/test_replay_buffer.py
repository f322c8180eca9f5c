"""The last part of a stream: numbers, merging, and the bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.chat.replay_buffer import ReplayBuffer


def letters(max_bytes):
    """A buffer of texts: merging joins them, and a letter is a byte."""
    return ReplayBuffer(max_bytes, lambda items: ["".join(items)], len)


def test_what_was_dropped_and_what_is_not_there_yet_are_refused_by_name():
    buffer = letters(2)
    buffer.append(["a", "b", "c"])
    assert buffer.since(0) == ["abc"]  # nothing is dropped before it is said
    buffer.trim(3)
    with pytest.raises(DeliveryError, match="^too far behind: item 0 is no longer kept, the oldest is 1$") as caught:
        buffer.since(0)
    assert caught.value.outcome == "too_far_behind"
    with pytest.raises(ValueError, match="^there is no item 4 yet; the next is 3$"):
        buffer.since(4)


def test_what_nobody_took_is_not_dropped():
    buffer = letters(0)
    buffer.append(["a", "b"])
    buffer.trim(1)
    assert (buffer.first, buffer.next, buffer.since(1)) == (1, 2, ["b"])
    buffer.trim(2)
    assert (buffer.first, buffer.bytes) == (2, 0)


@given(st.lists(st.text("abc", min_size=1, max_size=4), max_size=20), st.integers(0, 12), st.data())
def test_every_number_that_is_kept_gives_the_rest(texts, max_bytes, data):
    buffer = letters(max_bytes)
    for number, text in enumerate(texts):
        buffer.append([text])
        buffer.trim(number + 1)
        assert buffer.bytes <= max_bytes
    start = data.draw(st.integers(0, len(texts)))
    if start < buffer.first:
        with pytest.raises(DeliveryError):
            buffer.since(start)
    else:
        assert "".join(buffer.since(start)) == "".join(texts[start:])
    assert sum(map(len, texts[max(buffer.first - 1, 0) :])) > max_bytes or buffer.first == 0
