"""Added tokens, against HuggingFace's library: which text they match, which ids they have, what goes around them."""

from __future__ import annotations

import unicodedata

import pytest
from case_tables import cases
from hypothesis import assume, given
from hypothesis import strategies as st

from tokenweir.encode.components.added_tokens import END_NAMES, inferred_end_ids, with_real_ids
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import BPE, AddedToken, RankBPE, Unigram

CASES = cases(__file__)

NFC = {"type": "NFC"}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
WITHOUT_REGEX = BYTE_LEVEL | {"use_regex": False}
WITH_PREFIX_SPACE = BYTE_LEVEL | {"add_prefix_space": True}
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "start", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "end", "type_id": 0}},
    ],
    "pair": [],
    "special_tokens": {
        "start": {"id": "start", "ids": [1, 2], "tokens": ["s", "t"]},
        "end": {"id": "end", "ids": [3], "tokens": ["e"]},
    },
}
POST_PROCESSORS = [
    None,
    WITH_PREFIX_SPACE,
    BYTE_LEVEL,
    TEMPLATE,
    {"type": "Sequence", "processors": [BYTE_LEVEL, TEMPLATE]},
    {"type": "Sequence", "processors": [TEMPLATE, WITH_PREFIX_SPACE]},
    {"type": "Sequence", "processors": [BYTE_LEVEL, TEMPLATE, WITH_PREFIX_SPACE]},
    {"type": "Sequence", "processors": []},
]
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
CONTENTS = CASES["contents"]
PARTS = [*CONTENTS, "a", "c", "_", " ", "\n", "\u3000", "\u200d", "x", "A\u030a", "É", "本", "1"]

texts = st.lists(st.sampled_from(PARTS), max_size=8).map("".join)
tokens = st.fixed_dictionaries(
    {"content": st.sampled_from(CONTENTS), "id": st.integers(0, 300)} | dict.fromkeys(FLAGS, st.booleans())
)
configurations = st.fixed_dictionaries(
    {
        "added": st.lists(tokens, max_size=5),
        "normalizer": st.sampled_from([None, NFC, {"type": "Sequence", "normalizers": [NFC, NFC]}]),
        "pre_tokenizer": st.sampled_from([BYTE_LEVEL, WITHOUT_REGEX, WITH_PREFIX_SPACE]),
        "post_processor": st.sampled_from(POST_PROCESSORS),
        "model": st.fixed_dictionaries({"ignore_merges": st.booleans()}),
    }
)


def normal_contents(configuration):
    """Each added token's content in NFC; configurations on which the library does not agree with itself are left out.

    Which of two contents that become equal is found is left to a hash, and whether a token is a control token is asked
    of its normalized content and told of the other.
    """
    added = configuration["added"]
    normal = {token["content"]: unicodedata.normalize("NFC", token["content"]) for token in added}
    assume(len(set(normal.values())) == len(normal))
    assume(not any(token["special"] and normal[token["content"]] != token["content"] for token in added))
    return normal


def reference(tok, text, **options):
    """Encode a text by HuggingFace's library; None if it panics.

    It does on a match that `lstrip` moves behind its own end, since `rstrip` of the match before took all of it.
    """
    try:
        return tok.encode(text, **options)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None


@given(configurations, st.lists(texts, min_size=1, max_size=4), st.booleans())
def test_any_configuration_is_huggingfaces(both, configuration, some, add_special_tokens):
    normal = normal_contents(configuration)
    ours, theirs = both(**configuration)
    for text in some:
        found = ours.encode_with_offsets(text, add_special_tokens=add_special_tokens)
        if expected := reference(theirs, text, add_special_tokens=add_special_tokens):
            assert (found.ids, found.offsets) == (expected.ids, expected.offsets), text
        assert found.ids == ours.encode(text, add_special_tokens=add_special_tokens)
    assert [ours.token_to_id(token) for token in PARTS] == [theirs.token_to_id(token) for token in PARTS]
    for token_id in range(ours.vocab_size):
        spelled = ours.id_to_token(token_id)  # as in the file, where theirs has been normalized
        assert normal.get(spelled, spelled) == theirs.id_to_token(token_id) or spelled == theirs.id_to_token(token_id)


@given(configurations, st.data())
def test_any_ids_decode_as_huggingfaces(both, configuration, data):
    normal_contents(configuration)
    ours, theirs = both(**configuration)
    ids = data.draw(st.lists(st.integers(0, ours.vocab_size - 1), max_size=10))
    for skip in (True, False):
        assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)


@pytest.mark.parametrize(
    ("added", "text"),
    [
        ([("a", {}), ("ab", {}), ("abc", {"single_word": True})], "abcd abc ab"),  # the shorter one is not tried
        ([("<m>", {"single_word": True})], "_<m> <m>1 é<m> \u200d<m> <m>\u0301 <m> .<m>,"),
        ([("<m>", {"rstrip": True}), ("  ", {})], "<m>   x"),  # begins inside white space that is taken: both
        ([("<m>", {"lstrip": True, "rstrip": True})], "\u3000\n <m>\u00a0\u1680<m>\u200b<m> "),
        ([("ab", {}), ("ba", {})], "ababa"),
        ([("aab", {}), ("ab", {})], "aaab"),
        ([("<m>", {"normalized": True}), ("m>x", {})], "<m>x"),  # what is not normalized comes first
    ],
)
def test_overlapping_matches(both, added, text):
    ours, theirs = both(added=[{"content": content, **flags} for content, flags in added])
    expected = theirs.encode(text)
    assert ours.encode_with_offsets(text) == (expected.ids, expected.offsets)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    "text", ["e\u0301 ", " é", "é", "\u00a0\n", "Â\u00a0", "\u00a0Â\u2003", "\n", "Ċ", "\nĊ", "a\n\nĊ\n"]
)
def test_offsets_are_trimmed_by_the_text_that_a_match_took(both, normalized, text):
    """These contents are tokens of the model as well: of bytes that others may be made of."""
    flags = {"lstrip": True, "rstrip": True, "normalized": normalized}
    ours, theirs = both(
        added=[{"content": content, **flags} for content in ("é", "Â", "Ċ")],
        normalizer=NFC,
        post_processor=BYTE_LEVEL,
    )
    expected = theirs.encode(text)
    assert ours.encode_with_offsets(text) == (expected.ids, expected.offsets)


def test_a_match_that_has_been_taken_whole_is_none(small):
    tok = small(added=[{"content": " ", "lstrip": True, "rstrip": True, "single_word": True, "normalized": True}])
    space = tok.token_to_id(" ")
    assert tok.encode_with_offsets("é    _") == (
        [tok.token_to_id("Ã©"), space, ord("_")],
        [(0, 1), (1, 5), (5, 6)],
    )


def test_white_space_at_the_end_that_has_been_taken(small):
    """Matches behind the end of what is left, in a text that the normalizer changes."""
    tok = small(
        added=[{"content": " ", "lstrip": True, "rstrip": True, "normalized": True}], normalizer={"type": "NFC"}
    )
    assert tok.encode_with_offsets("e\u0301     ").offsets == [(0, 1), (2, 7)]


def test_an_added_token_with_the_id_of_a_models_token_does_not_change_its_offsets(both):
    """The vocabulary has a gap, and the next free id, by their number, is in use."""
    ours, theirs = both(words=[], merges=[("a", "b")], vocab={"ab": 257}, added=[{"content": "<a long one>"}])
    text = "ab ab<a long one>ab"
    expected = theirs.encode(text)
    assert expected.ids == [257, 32, 257, 257, 257]
    assert ours.encode_with_offsets(text) == (expected.ids, expected.offsets)
    assert ours.decode(expected.ids) == theirs.decode(expected.ids)


@pytest.mark.parametrize("flag", ["lstrip", "rstrip"])
def test_white_space_is_looked_at_once(small, flag):
    """If each match looked at all of it, this would take minutes."""
    tok = small(added=[{"content": " ", flag: True}])
    n = 1_000_000
    assert tok.count(" " * n) == n


def model(**vocab):
    return BPE(vocab=vocab, merges=[])


def test_ids_in_the_file_are_not_trusted():
    listed = [AddedToken("<a>", id=7), AddedToken("y", id=5), AddedToken(""), AddedToken("<b>", id=10**30)]
    assert [(t.content, t.id) for t in with_real_ids(listed, model(x=0, y=1))] == [("<a>", 2), ("y", 1), ("<b>", 3)]


def test_of_tokens_listed_twice_the_later_flags_hold_but_special_stays(both):
    first, second = {"content": "<m>", "special": True}, {"content": "<m>", "lstrip": True}
    ours, theirs = both(added=[first, second])
    assert [(t.lstrip, t.special) for t in ours.added_tokens] == [(True, True)]
    assert ours.encode(" <m>") == theirs.encode(" <m>").ids == [ours.token_to_id("<m>")]
    assert ours.decode([ours.token_to_id("<m>")]) == theirs.decode([theirs.token_to_id("<m>")]) == ""


def test_new_tokens_go_where_the_ids_of_a_vocabulary_have_gaps(both):
    ours, theirs = both(vocab={"x y": 1000}, added=[{"content": "x y"}, {"content": "<a>"}, {"content": "<b>"}])
    ids = ours.encode("<a>x y<b>")
    assert ids == theirs.encode("<a>x y<b>").ids
    assert ids[1] == 1000 > ids[0] == ids[2] - 1
    assert ours.decode(ids) == theirs.decode(ids)


def test_new_tokens_come_after_all_of_unigrams_equal_pieces():
    vocab = (("<unk>", 0.0), ("a", -1.0), ("b", -2.0), ("a", -3.0))
    assert [t.id for t in with_real_ids([AddedToken("<m>"), AddedToken("a")], Unigram(vocab, 0))] == [4, 3]


def test_two_added_tokens_with_one_id_are_refused():
    with pytest.raises(UnsupportedTokenizerError, match=r"^added tokens '<a>' and 'y' have one id, 2$"):
        with_real_ids([AddedToken("<a>"), AddedToken("y")], model(x=0, y=2))


@pytest.mark.parametrize("first", [True, False])
def test_a_token_once_listed_as_normalized_decodes_as_such(both, first):
    listed = [{"content": "ABC", "normalized": normalized} for normalized in (first, not first)]
    ours, theirs = both(added=listed, normalizer={"type": "Lowercase"})
    ids = [ours.token_to_id("ABC")]
    assert ours.decode(ids) == theirs.decode(ids) == "abc"
    for text in ("ABC", "abc", "Abc ABC"):
        assert ours.encode(text) == theirs.encode(text).ids


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ([AddedToken("<a>")], r"^special token '<a>' has no valid id \(None\)$"),
        ([AddedToken("<a>", id=-1)], r"^special token '<a>' has no valid id \(-1\)$"),
        ([AddedToken("<a>", id=0)], r"^special token '<a>' has the id 0 of b'x'$"),
    ],
)
def test_ids_beside_ranks_have_to_be_right(listed, message):
    with pytest.raises(TokenizerFileError, match=message):
        with_real_ids(listed, RankBPE({b"x": 0}))


def test_two_special_tokens_beside_ranks_may_share_an_id():
    listed = (AddedToken("<a>", id=5), AddedToken("<b>", id=5))
    assert with_real_ids(listed, RankBPE({b"x": 0})) == listed


@pytest.mark.parametrize(
    ("normalizer", "first", "second", "spelled"),
    [
        ({"type": "Lowercase"}, "AB", "ab", "ab"),
        ({"type": "NFC"}, "é", "e\u0301", "é"),
        ({"type": "Replace", "pattern": {"String": "-"}, "content": ""}, "a-b", "-ab", "ab"),
    ],
)
def test_two_added_tokens_that_normalize_to_one_spelling_are_refused(small, normalizer, first, second, spelled):
    def added(*normalized):
        return [{"content": text, "normalized": flag} for text, flag in zip((first, second), normalized, strict=True)]

    message = rf"^added tokens {first!r} and {second!r} are one spelling in normalized text, {spelled!r}$"
    with pytest.raises(UnsupportedTokenizerError, match=message):
        small(added=added(True, True), normalizer=normalizer)
    for flags in ((True, False), (False, True), (False, False)):
        tok = small(added=added(*flags), normalizer=normalizer)
        assert tok.encode(first) == [tok.token_to_id(first)]


def test_end_tokens_are_known_by_name_among_control_tokens_only():
    listed = [AddedToken(name, id=i, special=i % 2 == 0) for i, name in enumerate(sorted(END_NAMES - {"<|return|>"}))]
    assert inferred_end_ids([*listed, AddedToken("<|im_start|>", id=99, special=True)]) == tuple(
        range(0, len(listed), 2)
    )


def test_an_end_token_of_messages_ends_no_generation_where_another_one_does():
    names = ["<|end|>", "<|return|>", "<|call|>"]
    gpt_oss = [AddedToken(name, id=i, special=True) for i, name in enumerate(names)]
    assert inferred_end_ids(gpt_oss) == (1, 2)
    assert inferred_end_ids(gpt_oss[:1]) == (0,)


def test_muse_ends_a_message_by_a_token_that_ends_no_answer():
    names = ["<|start|>", "<|message|>", "<|eom|>", "<|eot|>"]
    muse = [AddedToken(name, id=number, special=True) for number, name in enumerate(names)]
    assert inferred_end_ids(muse) == (3,)
    assert inferred_end_ids(muse[2:]) == (2, 3)  # Llama 4
    assert inferred_end_ids(muse[:3]) == (2,)
