from __future__ import annotations

from tokenweir.encode._core import PendingIds


def test_an_id_goes_with_the_last_character_of_its_text():
    pending = PendingIds()
    pending.add([7], "Hello")
    assert pending.take("Hell") == []
    assert pending.take("o") == [7]
    assert pending.rest() == []


def test_an_id_without_text_rides_with_the_next_character():
    pending = PendingIds()
    pending.add([7], "ab")
    pending.add([8], "")
    assert pending.take("ab") == [7]
    pending.add([9], "cde")
    assert pending.take("c") == [8]
    assert pending.take("de") == [9]


def test_an_id_that_ends_inside_a_character_rides_with_it():
    pending = PendingIds()
    pending.add([7], "ab", False)
    assert pending.take("ab") == []
    pending.add([8], "c")
    assert pending.take("c") == [7, 8]


def test_cut_gives_a_piece_for_each_place_where_ids_end():
    pending = PendingIds()
    pending.add([1], "")
    pending.add([2, 3], "abc")
    pending.add([4], "def")
    assert pending.cut("abcde") == [([1], "a"), ([2, 3], "bc"), ([], "de")]
    assert pending.rest() == [4]


def test_cut_leaves_characters_whole():
    pending = PendingIds()
    pending.add([1], "\n", False)
    pending.add([2], "👩é")
    assert pending.cut("\n👩é") == [([1], "\n👩"), ([2], "é")]
    assert pending.cut("") == []
