"""The guard: what it marks, and what it reads from the marks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.spec import AddedToken
from tokenweir.templates.guard import MARK, Guard, control_texts, telltale

ALPHABET = "<|>im_end/think[] \n\\ufd0a1"


def test_marks_follow_their_character():
    assert Guard(["<|end|>"]).mark("a<b|c>") == f"a<{MARK}b|c>"


def test_marks_reach_keys_and_nested_values():
    guard = Guard(["<|end|>", "[INST]"])
    assert guard.mark({"<a": ["[b", {"c": None, "d": 1.5}]}) == {f"<{MARK}a": [f"[{MARK}b", {"c": None, "d": 1.5}]}


def test_lookalikes_are_marked():
    """A normalizer may turn full-width forms, small forms and characters with a stroke into the real thing."""
    guard = Guard(["<s>", "[X]", "|e|"])
    for character in "＜﹤≮［﹇｜":
        assert guard.mark(character) == character + MARK


def test_letters_are_marked_in_every_form():
    """Lower case and compatibility forms: a normalizer may turn one into another."""
    guard = Guard(["EOS"])
    for character in "EeＥｅ𝐄éÉ":
        assert guard.mark(character) == character + MARK
    assert guard.mark("os") == "os"
    assert Guard(["｜end｜"]).mark("|") == f"|{MARK}"


def test_tags_stay_unmarked_in_an_assistants_content():
    guard = Guard(["<think>", "</think>", "<s>"], exempt=["<think>", "</think>"])
    assert guard.mark_assistant("<think>a<b</think><s>") == f"<think>a<{MARK}b</think><{MARK}s>"
    assert guard.mark("<think>") == f"<{MARK}think>"


def test_no_control_tokens():
    guard = Guard([])
    assert guard.mark("a < b [c]") == "a < b [c]"
    assert guard.locate("a", "a") == ()


@pytest.mark.parametrize(
    ("token", "character"),
    [
        ("<|end|>", "<"),
        ("[INST]", "["),
        ("_<EOT>", "<"),
        ("▁<PRE>", "<"),
        ("▁EOT", "E"),
        ("EOS", "E"),
        (" x", "x"),
        ("]~b]", "]"),
    ],
)
def test_telltale(token, character):
    assert telltale(token) == character


def test_control_texts():
    added = [
        AddedToken("<|end|>", special=True),
        AddedToken("<think>"),
        AddedToken("PAD", special=True),
        AddedToken("\n\n"),
        AddedToken("word2"),
        AddedToken("語"),
    ]
    assert control_texts(added) == ("<|end|>", "<think>", "PAD")


def test_locate():
    guard = Guard(["<s>"])
    assert guard.locate(f"<s>user <{MARK}s> <{MARK}", "<s>user <s> <") == (8, 12)


def test_locate_reads_escaped_marks():
    """Templates that print a list or dict escape the mark, as Python's repr or as JSON."""
    guard = Guard(["<s>"])
    value = guard.mark(["<s>", "x"])
    for write in (repr, json.dumps, lambda v: repr(repr(v))):
        assert guard.locate(write(value), write(["<s>", "x"])) == (write(["<s>", "x"]).index("<"),)


def test_locate_leaves_text_that_spells_an_escape_alone():
    assert Guard(["<s>"]).locate(f"\\ufdd0 <{MARK}s>", "\\ufdd0 <s>") == (7,)


def test_a_mark_whose_character_was_removed_guards_nothing():
    """Else a user could switch off the template's own control tokens."""
    assert Guard(["<s>"]).locate(f"<|user|>{MARK}s", "<|user|>s") == ()


def test_locate_finds_a_rendering_that_the_marks_changed():
    guard = Guard(["<s>"])
    assert guard.locate(f"long: <{MARK}s>", "short: <s>") is None
    assert guard.locate(f"<{MARK}", "<s>") is None


def test_uncovered():
    assert Guard(["<s>"]).uncovered(["<x>", "a<b", "[INST]", "{x}"]) == "[INST]"
    assert Guard(["<s>", "[A]"]).uncovered(["<x>", "[INST]"]) is None


@given(st.lists(st.text(ALPHABET, max_size=12), max_size=5), st.sampled_from(["", "<", "/think", "<s>"]))
def test_marks_are_found_wherever_text_is_pasted(texts, removed):
    """Whatever is pasted and removed: text that spells a control token holds a guarded character."""
    guard = Guard(["<|im_end|>", "<s>"])

    def template(values):
        return "<s>" + "<s>".join(value.replace(removed, "") if removed else value for value in values)

    plain = template(texts)
    guarded = guard.locate(template([guard.mark(text) for text in texts]), plain)
    if guarded is None:
        assert removed in ("<", "<s>")  # a template that looks for what is marked
        return
    own = set()
    place = 0
    for text in texts or [""]:
        own.add(place)
        place += 3 + len(text.replace(removed, "") if removed else text)
    for start in range(len(plain)):
        for token in ("<s>", "<|im_end|>"):
            if plain.startswith(token, start):
                assert (start in guarded) != (start in own and token == "<s>")
