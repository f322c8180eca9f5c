"""Deltas that wait are merged."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tokenweir.stream.events.deltas import Alignment, Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.events.merge import ALIGNED_TOKEN_BYTES, DELTA_BYTES, merge, size_of


def test_neighbours_of_one_kind_become_one():
    finish = Finish(FinishReason.STOP)
    deltas = [ReasoningDelta("h", [1]), ReasoningDelta("m", [2]), TextDelta("a", [3]), TextDelta("b", [4]), finish]
    assert merge(deltas) == [ReasoningDelta("hm", [1, 2]), TextDelta("ab", [3, 4]), finish]


def test_answers_are_kept_apart_and_come_whole():
    deltas = [TextDelta("a", index=0), TextDelta("b", index=1), TextDelta("c", index=0)]
    assert merge(deltas) == [TextDelta("ac", index=0), TextDelta("b", index=1)]


def test_calls_are_kept_apart_and_end_where_they_ended():
    deltas = [
        ToolCallDelta("f", "", [1], id="1"),
        ToolCallDelta("", '{"a":', [2]),
        ToolCallDelta("", "1}", [3]),
        ToolCallDelta("", "", [4], complete=True),
        ToolCallDelta("g", "", [5], call=1),
        ToolCallDelta("", "x", call=1, malformed="no JSON"),
    ]
    assert merge(deltas) == [
        ToolCallDelta("f", '{"a":1}', [1, 2, 3, 4], complete=True, id="1"),
        ToolCallDelta("g", "x", [5], call=1, malformed="no JSON"),
    ]


def test_text_that_is_no_call_after_all_keeps_its_reason():
    deltas = [TextDelta("a"), TextDelta("<call>", malformed="never closed"), TextDelta("b")]
    assert merge(deltas) == deltas


def test_what_goes_with_the_ids_is_joined_too():
    deltas = [TextDelta(c, [n], alignment=Alignment([-n / 2], [c.encode()], n, n)) for n, c in enumerate("abc")]
    (delta,) = merge(deltas)
    assert delta == TextDelta("abc", [0, 1, 2], alignment=Alignment([0, -0.5, -1], [b"a", b"b", b"c"], 0, 0))
    assert size_of(delta) == DELTA_BYTES + 3 + 3 * (4 + ALIGNED_TOKEN_BYTES)


def test_a_size_covers_text_and_ids():
    assert size_of(TextDelta("ab", [1, 2])) == DELTA_BYTES + 2 + 8
    assert size_of(ReasoningDelta("漢")) == DELTA_BYTES + 3
    assert size_of(ToolCallDelta("f", "{}", [1])) == DELTA_BYTES + 3 + 4
    assert size_of(Finish(FinishReason.STOP, token_ids=[1])) == DELTA_BYTES + 4


pieces = st.text(min_size=1, max_size=3)
ids = st.lists(st.integers(0, 9), max_size=2)
indexes = st.integers(0, 1)
deltas = (
    st.builds(TextDelta, pieces, ids, indexes, st.sampled_from([None, "broken"]))
    | st.builds(ReasoningDelta, pieces, ids, indexes)
    | st.builds(ToolCallDelta, st.just(""), pieces, ids, indexes, st.integers(0, 1))
)


def kind(delta):
    return type(delta), delta.index, getattr(delta, "malformed", None), getattr(delta, "call", None)


@given(st.lists(deltas, max_size=12))
def test_merging_keeps_order_text_and_ids_of_each_answer(parts):
    def flat(some, index):
        own = [delta for delta in some if delta.index == index]
        letters = [(kind(d), c) for d in own for c in (d.arguments if isinstance(d, ToolCallDelta) else d.text)]
        return letters, [i for d in own for i in d.token_ids]

    merged = merge(parts)
    for index in (0, 1):
        assert flat(merged, index) == flat(parts, index)
    assert all(kind(one) != kind(other) for one, other in pairwise(merged))
