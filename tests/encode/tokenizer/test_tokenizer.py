"""Tokenizer: its options, and that its methods agree with each other.

That ids and offsets are HuggingFace's is tested in test_added_tokens.py and test_parity.py.
"""

from __future__ import annotations

import inspect
import re
import unicodedata

import numpy as np
import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenweir.encode.errors import TextError, TokenizerFileError
from tokenweir.encode.spec import ByteLevel, RankBPE, TemplateProcessing, TokenizerSpec
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

PARTS = ["a", "b", "ab", "abc", " ", "  ", "<s>", "</s>", "<m>", "<", "é", "e", "\u0301", "日本", "\n", "A", "\u030a"]
texts = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


# -- the methods agree -------------------------------------------------------------------------------------------------


@given(texts, st.booleans(), st.booleans(), st.sets(st.integers(0, 30)))
def test_every_method_finds_the_same_ids(tok, text, parse_special, add_bos, guarded):
    options = {"parse_special": parse_special, "guarded": sorted(i for i in guarded if i < len(text))}
    ids = tok.encode(text, **options)
    array = tok.encode_array(text, **options)
    assert (array.dtype, array.tolist()) == (np.int32, ids)
    assert tok.encode_with_offsets(text, **options).ids == ids
    assert tok.count(text, **options) == len(ids)
    batch = tok.encode_batch(["<s>", text], parse_special=parse_special, guarded=[(), options["guarded"]])
    assert batch[1].tolist() == ids
    assert tok.decode(ids, skip_special_tokens=False) == tok.decode_bytes(ids).decode(errors="replace")


@pytest.mark.parametrize("text", ["", "<s>", "ab <m> <s>", "e\u0301a<s>", "日本<s>ab<m>a", "日本<s>abc<m>ab", "z" * 15])
def test_short_texts_are_known_again_by_their_options(tok, text):
    ways = [{"parse_special": parse, "guarded": g} for parse in (True, False) for g in ([], [0], [len(text) - 1])]
    expected = [tok.encode_with_offsets(text, **way).ids for way in ways if text or not way["guarded"]]
    for _ in range(3):
        assert [tok.encode(text, **way) for way in ways if text or not way["guarded"]] == expected


@given(st.one_of(st.text(), texts))
def test_decoding_gives_back_the_normalized_text(tok, text):
    assert tok.decode(tok.encode(text, parse_special=False)) == unicodedata.normalize("NFC", text)


def test_offsets_are_of_whole_characters(small):
    found = small(words=[]).encode_with_offsets("a日b")
    assert found.ids == [97, *"日".encode(), 98]
    assert found.offsets == [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]


# -- what goes around --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def around(tok):
    """Makes tokenizers with a beginning and an end token whose post-processor puts tokens before and after a text."""
    roles = {"bos_token": "<s>", "eos_token": "</s>"}

    def make(before, after):
        template = TemplateProcessing.around(*([(t, tok.token_to_id(t)) for t in side] for side in (before, after)))
        # A config's flags say the opposite, and change nothing.
        flags = {"add_bos": not before, "add_eos": not after}
        return Tokenizer.from_spec(replace(tok.spec, post_processor=template, special_roles=roles, **flags))

    return make


NONE, TRUE, FALSE = ({f"add_{side}": value for side in ("bos", "eos")} for value in (None, True, False))
OPTIONS = [  # the post-processor's tokens; the call's options; the tokens then
    (("<s>", "</s>"), {}, ("<s>", "</s>")),
    (("<s>", "</s>"), NONE, ("<s>", "</s>")),
    (("<s>", "</s>"), TRUE, ("<s>", "</s>")),  # once
    (("<s>", "</s>"), FALSE, ("", "")),
    (("<s>", "</s>"), {"add_special_tokens": False}, ("", "")),
    (("<s>", "</s>"), {"add_special_tokens": False} | TRUE, ("<s>", "</s>")),
    (("<s>", "</s>"), {"add_special_tokens": False} | FALSE, ("", "")),
    (("", ""), {}, ("", "")),
    (("", ""), TRUE, ("<s>", "</s>")),
    (("", ""), {"add_eos": True}, ("", "</s>")),
    (("<m>", "<m>"), TRUE, ("<s><m>", "<m></s>")),
    (("<m>", "<m>"), FALSE, ("", "")),  # as BERT's, which are no beginning and end tokens
    (("<m><s>", "</s><m>"), TRUE, ("<m><s>", "</s><m>")),
    (("<m><s>", "</s><m>"), FALSE, ("", "")),  # as Command R+'s, which has an end token that is not its `eos_token`
]


@pytest.mark.parametrize(("processed", "options", "wanted"), OPTIONS)
def test_wishes_of_a_call_before_the_post_processor(around, processed, options, wanted):
    sides = [re.findall("<.*?>", side) for side in (*processed, *wanted)]
    tok = around(*sides[:2])
    before, after = ([tok.token_to_id(token) for token in side] for side in sides[2:])
    expected = [*before, *b"a", *after]
    assert tok.encode("a", **options) == expected
    assert tok.encode_array("a", **options).tolist() == expected
    assert tok.encode_batch(["a", ""], **options)[1].tolist() == [*before, *after]
    assert tok.count("a", **options) == len(expected)
    found = tok.encode_with_offsets("a", **options)
    assert found == (expected, [*[(0, 0)] * len(before), (0, 1), *[(0, 0)] * len(after)])


def test_a_wish_for_a_token_that_is_not_there(small):
    for option in ("add_bos", "add_eos"):
        with pytest.raises(ValueError, match=rf"^{option}: this tokenizer has no such token$"):
            small().encode("a", **{option: True})
        assert small().encode("a", **{option: False}) == [97]


def test_end_tokens_outside_the_vocabulary(small):
    spec = small().spec
    with pytest.raises(TokenizerFileError, match=r"^end token id 999 is outside the vocabulary \(0 to 274\)$"):
        Tokenizer.from_spec(TokenizerSpec(model=spec.model, pre_tokenizer=spec.pre_tokenizer, eos_ids=(999,)))


# -- user text is data -------------------------------------------------------------------------------------------------


@given(texts)
def test_plain_data_has_no_added_tokens(tok, text):
    ids = tok.encode(text, parse_special=False)
    assert not set(ids) & {token.id for token in tok.added_tokens}
    assert ids == tok.encode(text, guarded=range(len(text)))


def added_spans(tok, text, guarded):
    """(id, start, end) of every added token that was found."""
    added = {token.id for token in tok.added_tokens}
    found = tok.encode_with_offsets(text, guarded=guarded)
    return [(i, *span) for i, span in zip(found.ids, found.offsets, strict=True) if i in added]


@given(texts, st.sets(st.integers(0, 30)))
def test_no_added_token_covers_a_guarded_character(tok, text, some):
    guarded = sorted(i for i in some if i < len(text))
    for _, start, end in added_spans(tok, text, guarded):
        assert not any(start <= i < end for i in guarded)


@given(texts, texts, texts)
def test_added_tokens_outside_the_guarded_text_are_found(small, before, user, after):
    """`x` touches nothing: what is before and after is found as if it stood alone."""
    tok = small(added=[*({"content": name, "special": True} for name in ("<s>", "</s>")), {"content": "<m>"}])
    text = f"{before}x{user}x{after}"
    first, last = len(before) + 1, len(before) + 1 + len(user)
    found = added_spans(tok, text, range(first, last))
    alone = added_spans(tok, before, ()) + [(i, b + last + 1, e + last + 1) for i, b, e in added_spans(tok, after, ())]
    assert found == alone


@pytest.mark.parametrize(("text", "guarded", "found"), CASES["guards"])
def test_guards(tok, text, guarded, found):
    spans = [[start, max(end, start)] for _, start, end in added_spans(tok, text, guarded)]
    assert spans == found
    assert tok.encode(text, guarded=guarded) == tok.encode_with_offsets(text, guarded=guarded).ids


def test_guards_have_to_ascend_and_to_be_in_the_text(tok):
    with pytest.raises(ValueError, match=r"^guarded offsets must ascend$"):
        tok.encode("abc", guarded=[2, 1])
    with pytest.raises(ValueError, match=r"^a guarded offset is past the end of the text$"):
        tok.encode("abc", guarded=[3])
    with pytest.raises(TypeError):
        tok.encode("abc", guarded=[-1])
    assert tok.encode("日é", guarded=[0, 1, 1]) == tok.encode("日é", parse_special=False)


# -- invalid text ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["encode", "encode_array", "encode_with_offsets", "count"])
def test_lone_surrogates(tok, method):
    with pytest.raises(TextError, match=r"^text has a lone surrogate U\+DC80 at character 2$"):
        getattr(tok, method)("é\U0001f600\udc80")
    with pytest.raises(TypeError, match=r"^text must be str, not NoneType$"):
        getattr(tok, method)(None)
    with pytest.raises(TypeError, match=r"^text must be str, not bytes$"):
        getattr(tok, method)(b"a")


def test_lone_surrogates_in_a_batch(tok):
    with pytest.raises(TextError, match=r"^texts\[1\] has a lone surrogate U\+D800 at character 0$"):
        tok.encode_batch(["a", "\ud800"])
    with pytest.raises(TypeError, match=r"^texts\[0\] must be str or bytes, not NoneType$"):
        tok.encode_batch([None])


# -- specs ------------------------------------------------------------------------------------------------------------


def test_a_description_without_a_pre_tokenizer_for_ranks():
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"a b": 256}
    assert Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks))).encode("a b") == [256]


def test_a_prefix_space_for_every_stretch(both):
    pre_tokenizer = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    ours, theirs = both(added=[{"content": "<s>", "special": True}], pre_tokenizer=pre_tokenizer)
    for text in ("a<s>a", " a<s> a", "<s>", "日<s>日", "\na", "\u00a0a"):
        expected = theirs.encode(text)
        assert ours.encode_with_offsets(text) == (expected.ids, expected.offsets)


def test_components_may_be_given_as_objects(tok):
    spec = TokenizerSpec(model=tok.spec.model, pre_tokenizer=ByteLevel(add_prefix_space=False))
    assert Tokenizer.from_spec(spec).encode("ab") == [256]


def test_options_are_truth_values(tok):
    assert tok.encode("a<s>", parse_special=0) == tok.encode("a<s>", parse_special=False)
    assert tok.decode([275], skip_special_tokens=np.bool_(False)) == "<s>"


def test_public_attributes_are_those_that_the_docstring_lists(tok):
    listed = set(re.findall(r"^ {4}(\w+): ", inspect.getdoc(Tokenizer).partition("Attributes:")[2], re.MULTILINE))
    fresh = Tokenizer.from_spec(tok.spec)  # one that was used has `vocab` too, which is made when it is asked for
    public = {name for name in vars(fresh) if not name.startswith("_")}
    assert public == listed | {"unk_id", "pad_id"}  # named in the entry of `bos_id`
