from __future__ import annotations

from tokenweir.stream.decode.parsers.blocks.text_buffer import HeldText


def test_parts_are_one_text_until_it_is_taken():
    held = HeldText("ab")
    held.add("")
    held.add("é日")
    assert (str(held), held.length) == ("abé日", 4)
    branch = held.copy()
    assert held.take() == "abé日"
    assert (str(held), held.length, held.take()) == ("", 0, "")
    branch.add("!")
    assert (str(branch), branch.length) == ("abé日!", 5)
    held.add("c")
    assert (str(held), held.length) == ("c", 1)
