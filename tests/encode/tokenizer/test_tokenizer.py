"""Tokenizer: its options, and that its methods, threads, processes and copies agree with each other.

That ids and offsets are HuggingFace's is tested in test_added_tokens.py and test_parity.py.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import threading
import unicodedata
from collections import UserDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.decode.batch import DecodeBatch
from tokenweir.encode.errors import TextError, TokenIdError, TokenizerFileError
from tokenweir.encode.spec import AddedToken, ByteLevel, RankBPE, TemplateProcessing, TokenizerSpec
from tokenweir.encode.tokenizer import Tokenizer

START, END = {"content": "<s>", "special": True}, {"content": "</s>", "special": True}
PARTS = ["a", "b", "ab", "abc", " ", "  ", "<s>", "</s>", "<m>", "<", "é", "e", "\u0301", "日本", "\n", "A", "\u030a"]
texts = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


@pytest.fixture(scope="module")
def tok(small):
    """Control tokens <s> and </s>; <m> takes white space along, é is searched in normalized text."""
    more = [{"content": "<m>", "lstrip": True, "rstrip": True}, {"content": "éa", "normalized": True}]
    return small(added=[START, END, *more], normalizer={"type": "NFC"})


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
CASES = [  # the post-processor's tokens; the call's options; the tokens then
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


@pytest.mark.parametrize(("processed", "options", "wanted"), CASES)
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
    tok = small(added=[START, END, {"content": "<m>"}])
    text = f"{before}x{user}x{after}"
    first, last = len(before) + 1, len(before) + 1 + len(user)
    found = added_spans(tok, text, range(first, last))
    alone = added_spans(tok, before, ()) + [(i, b + last + 1, e + last + 1) for i, b, e in added_spans(tok, after, ())]
    assert found == alone


@pytest.mark.parametrize(
    ("text", "guarded", "found"),
    [
        ("x  <m>  y", [], [(1, 8)]),
        ("x  <m>  y", [1], [(2, 8)]),  # white space of the user's stays where it is
        ("x  <m>  y", [2, 6], [(3, 6)]),
        ("x  <m>  y", [4], []),
        ("<s><s><s>", [3], [(0, 3), (6, 9)]),
        ("<s></s>", [2], [(3, 7)]),
        ("<s></s>", [3, 4, 5, 6], [(0, 3)]),
        ("éa éa", [3], [(0, 2)]),
        ("e\u0301a e\u0301a", [1], [(4, 7)]),  # é comes from two characters, one of them the user's
        ("e\u0301a", [0], []),
        ("e\u0301a", [2], []),
        ("éa\u0301", [2], []),  # the user's accent makes the a another character
        ("xe\u0301a", [0], [(1, 4)]),
        ("e\u0301e\u0301e\u0301 éa", [5], [(7, 9)]),
    ],
)
def test_guards(tok, text, guarded, found):
    spans = [(start, max(end, start)) for _, start, end in added_spans(tok, text, guarded)]
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


def test_names_that_are_no_text(small):
    assert small().token_to_id("\ud800") is None
    ranks = {bytes([byte]): byte for byte in range(256)}
    assert Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks))).token_to_id("\ud800") is None


# -- many texts, threads, processes ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    return ["".join(PARTS[(i * k + i) % len(PARTS)] for k in range(i % 60)) for i in range(400)] + [
        "ab <m> é日本\n" * 9000
    ]


@pytest.mark.parametrize("threads", [None, 1, 2, 7, 1000])
def test_a_batch_on_any_number_of_threads(tok, many, threads):
    ragged = tok.encode_batch(many, threads=threads)
    assert (ragged.ids.dtype, ragged.offsets.dtype) == (np.int32, np.int64)
    assert [ids.tolist() for ids in ragged] == [tok.encode(text) for text in many]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_with_guarded_characters(tok, many, threads):
    guards = [range(i % 3, len(text), 1 + i % 5) for i, text in enumerate(many)]
    ragged = tok.encode_batch(many, guarded=guards, threads=threads)
    for ids, text, guarded in zip(ragged, many, guards, strict=True):
        assert ids.tolist() == tok.encode(text, guarded=guarded)
    plain = tok.encode_batch(many).ids.tolist()
    assert ragged.ids.tolist() != plain
    assert tok.encode_batch(many, guarded=[()] * len(many)).ids.tolist() == plain


def test_batches_of_nothing(tok):
    assert len(tok.encode_batch([])) == 0
    assert [ids.tolist() for ids in tok.encode_batch(["", ""])] == [[], []]
    assert tok.encode_batch(iter(["a", "b"])).ids.tolist() == [97, 98]


def test_batches_that_make_no_sense(tok):
    with pytest.raises(TypeError, match=r"^texts must be several texts, not one str: write encode_batch\(\[text\]\)$"):
        tok.encode_batch("ab")
    with pytest.raises(ValueError, match=r"^threads must be at least 1, not 0$"):
        tok.encode_batch(["a"], threads=0)
    with pytest.raises(ValueError, match=r"^guarded has 1 entries for 2 texts$"):
        tok.encode_batch(["a", "b"], guarded=[(0,)])
    with pytest.raises(ValueError, match=r"^a guarded offset is past the end of the text$"):
        tok.encode_batch(["a", "b"], guarded=[(0,), (1,)])


def test_from_several_threads_at_once(tok, many):
    expected = [tok.encode(text) for text in many]
    results = {}

    def work(number):
        results[number] = [tok.encode(text) for text in many], [ids.tolist() for ids in tok.encode_batch(many)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[number] == (expected, expected) for number in range(6))


AFTER_FORK = """
import os, threading
from tokenweir.encode.tokenizer import Tokenizer

tok = Tokenizer.default()
text = "after the fork " * 5000
long = text * 20
expected, expected_long = tok.encode(text), tok.encode_array(long).tolist()
stop = threading.Event()
busy = threading.Thread(target=lambda: [tok.encode_batch([text] * 4) for _ in iter(stop.is_set, True)])
busy.start()
for _ in range(5):
    if not (child := os.fork()):
        fine = tok.encode(text) == expected and tok.encode_batch([text] * 4, threads=3)[3].tolist() == expected
        fine = fine and tok.encode_array(long).tolist() == expected_long
        os._exit(0 if fine and tok.decode(expected) == text else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
busy.join()
"""


@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="a lock in its allocator does not survive a fork"
)
def test_after_a_fork_in_the_middle_of_a_batch():
    subprocess.run([sys.executable, "-W", "ignore", "-c", AFTER_FORK], check=True, timeout=60)


RESIDENT = """
import sys
from tokenweir.encode.tokenizer import Tokenizer
tok = Tokenizer.default()
tok.count("a")
pages = lambda: int(open("/proc/self/statm").read().split()[1])
before = pages()
tok.count("a" * (16 << 20))
print((pages() - before) * 4096 >> 20)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")
def test_a_long_text_leaves_no_memory_behind():
    done = subprocess.run([sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64  # MiB; merging it takes more than 300


def test_pickled(tok, many):
    copy = pickle.loads(pickle.dumps(tok))
    assert [copy.encode(text) for text in many] == [tok.encode(text) for text in many]
    assert (copy.spec, copy.added_tokens, copy.eos_ids) == (tok.spec, tok.added_tokens, tok.eos_ids)


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_names_and_ids(tok):
    assert [tok.token_to_id(name) for name in ("a", "ab", "Ġa", "<s>", "nowhere", "")] == [
        97,
        256,
        258,
        275,
        None,
        None,
    ]
    assert [tok.id_to_token(i) for i in (97, 256, 258, 275, 10**9, -1)] == ["a", "ab", "Ġa", "<s>", None, None]
    assert tok.special_tokens == {"<s>": 275, "</s>": 276}
    assert repr(tok) == "Tokenizer(HuggingFace tokenizer.json, 279 ids, 4 added tokens)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tok: tok.token_to_id(5), "a token is a str, not int"),
        (lambda tok: tok.token_to_id(b"a"), "a token is a str, not bytes"),
        (lambda tok: tok.token_to_id(["a", None]), "a token is a str, not NoneType"),
        (lambda tok: tok.id_to_token("a"), "id_to_token() takes ids, not str; token_to_id() takes tokens"),
        (lambda tok: tok.id_to_token(None), "ids must be a sequence of int, not NoneType"),
        (lambda tok: tok.id_to_token(1.0), "ids must be a sequence of int, not float"),
        (
            lambda tok: tok.id_to_token([[1]]),
            "ids[0] must be int, not list",
        ),
    ],
)
def test_what_is_no_name_and_no_id(tok, call, message):
    with pytest.raises(TypeError) as caught:
        call(tok)
    assert str(caught.value) == message


def test_names_of_a_rank_files_tokens():
    ranks = {bytes([byte]): byte for byte in range(256)} | {"é".encode(): 256, b"\xe4\xbd": 257}
    tok = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks), added_tokens=(AddedToken("<s>", id=300),)))
    assert [tok.token_to_id(name) for name in ("a", "é", "<s>", "日")] == [97, 256, 300, None]
    assert [tok.id_to_token(i) for i in (97, 256, 257, 258, 300)] == ["a", "é", r"\xe4\xbd", None, "<s>"]


def test_more_added_tokens(tok):
    more = tok.with_added_tokens(["<n>", AddedToken("<s>", rstrip=True, special=True), "ab"])
    assert [(t.content, t.id) for t in more.added_tokens] == [
        ("<s>", 275),
        ("</s>", 276),
        ("<m>", 277),
        ("éa", 278),
        ("<n>", 279),
        ("ab", 256),
    ]
    assert more.encode("<n><s> ab") == [279, 275, 256]
    assert tok.token_to_id("<n>") is None
    assert tok.encode_with_offsets("<s> ").offsets[0] == (0, 3)


def test_one_token_is_not_several(tok):
    with pytest.raises(
        TypeError, match=r"^tokens must be several tokens, not one str: write with_added_tokens\(\[token\]\)"
    ):
        tok.with_added_tokens("<n>")
    with pytest.raises(TypeError, match=r"^a token is a str or an AddedToken, not int"):
        tok.with_added_tokens(["<n>", 5])
    with pytest.raises(TypeError, match=r"^a token's content is a str, not int"):
        tok.with_added_tokens([AddedToken(5)])
    with pytest.raises(TypeError, match=r"^tokens must be several tokens, not int"):
        tok.with_added_tokens(5)


def test_more_added_tokens_do_not_move_those_that_play_a_role(small):
    spec = small().spec
    tok = Tokenizer.from_spec(
        TokenizerSpec(model=spec.model, pre_tokenizer=spec.pre_tokenizer, special_roles={"pad_token": "<pad>"})
    )
    more = tok.with_added_tokens(["<n>"])
    assert (tok.pad_id, more.pad_id, more.token_to_id("<n>")) == (275, 275, 276)
    assert more.special_tokens == {"<pad>": 275}


def test_more_added_tokens_beside_ranks():
    ranks = {bytes([byte]): byte for byte in range(256)}
    tok = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks), added_tokens=(AddedToken("<s>", id=300),)))
    more = tok.with_added_tokens(["<m>", AddedToken("<s>", lstrip=True), AddedToken("<k>", id=280), "<n>"])
    assert {t.content: t.id for t in more.added_tokens} == {"<s>": 300, "<m>": 301, "<k>": 280, "<n>": 302}
    assert more.encode("a <s><n>") == [97, 300, 302]


def test_a_description_without_a_pre_tokenizer_for_ranks():
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"a b": 256}
    assert Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks))).encode("a b") == [256]


def test_a_prefix_space_for_every_stretch(both):
    pre_tokenizer = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    ours, theirs = both(added=[START], pre_tokenizer=pre_tokenizer)
    for text in ("a<s>a", " a<s> a", "<s>", "日<s>日", "\na", "\u00a0a"):
        expected = theirs.encode(text)
        assert ours.encode_with_offsets(text) == (expected.ids, expected.offsets)


def test_components_may_be_given_as_objects(tok):
    spec = TokenizerSpec(model=tok.spec.model, pre_tokenizer=ByteLevel(add_prefix_space=False))
    assert Tokenizer.from_spec(spec).encode("ab") == [256]


# -- what one may ask for ----------------------------------------------------------------------------------------------


def test_many_rows_are_decoded_as_one_is(tok, many):
    rows = tok.encode_batch(many)
    assert tok.decode_batch(rows) == [tok.decode(row) for row in rows]
    assert tok.decode_batch([[1], (), np.array([2, 3])], skip_special_tokens=False) == [
        tok.decode(ids, skip_special_tokens=False) for ids in ([1], [], [2, 3])
    ]


def test_the_vocabulary_is_a_mapping_that_cannot_be_changed(tok):
    assert all(tok.token_to_id(token) == token_id for token, token_id in tok.vocab.items())
    assert set(tok.vocab.values()) == {i for i in range(tok.vocab_size) if tok.id_to_token(i) is not None}
    assert tok.vocab["<s>"] == tok.special_tokens["<s>"]
    with pytest.raises(TypeError):
        tok.vocab["new"] = 1


def test_a_rank_files_vocabulary_has_the_tokens_that_are_text():
    ranks = {bytes([byte]): byte for byte in range(256)} | {"é".encode(): 256}
    tok = Tokenizer(TokenizerSpec(model=RankBPE(ranks)))
    assert tok.vocab == {chr(byte): byte for byte in range(128)} | {"é": 256}
    assert all(tok.token_to_id(token) == token_id for token, token_id in tok.vocab.items())


def test_lists_of_tokens_and_ids(tok):
    ids = tok.encode("<s>abc 日本")
    tokens = [tok.id_to_token(token_id) for token_id in ids]
    assert tok.id_to_token(ids) == tok.id_to_token(np.array(ids)) == tokens
    assert tok.token_to_id(tokens) == ids
    assert tok.token_to_id(["no such token", *tokens[:1]]) == [None, ids[0]]
    assert tok.id_to_token(np.int32(ids[0])) == tokens[0]
    assert tok.id_to_token([]) == tok.token_to_id(()) == []


# -- what one gets wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda tok: Tokenizer("a/model"),
            "Tokenizer() takes a TokenizerSpec, not str: write Tokenizer.from_file('a/model')",
        ),
        (lambda tok: Tokenizer(None), "Tokenizer() takes a TokenizerSpec, not NoneType"),
        (lambda tok: tok.encode(b"text"), "text must be str, not bytes"),
        (lambda tok: tok.encode(["a"]), "text must be one str, not several: encode_batch() takes those"),
        (lambda tok: tok.encode("a", guarded=[-1]), "guarded must be ascending offsets of characters, from 0 on"),
        (
            lambda tok: tok.encode_batch(["a"], guarded="x"),
            "guarded must be ascending offsets of characters, from 0 on",
        ),
        (lambda tok: tok.token_bytes(None), "'NoneType' object cannot be interpreted as an integer"),
        (lambda tok: DecodeStream(tok).step(None), "'NoneType' object cannot be interpreted as an integer"),
        (lambda tok: DecodeStream(tok).feed(None), "ids must be a sequence of int, not NoneType"),
        (lambda tok: DecodeStream(tok, prompt_ids=None), "prompt_ids must be a sequence of int, not NoneType"),
        (lambda tok: DecodeStream("path"), "tokenizer is a str, not a Tokenizer such as Tokenizer.from_file() gives"),
        (
            lambda tok: DecodeStream(tok, skip_special_tokens="no"),
            "skip_special_tokens='no' is neither True nor False",
        ),
        (lambda tok: DecodeBatch(tok, skip_special_tokens=1), "skip_special_tokens=1 is neither True nor False"),
        (lambda tok: DecodeBatch(None), "tokenizer is a NoneType, not a Tokenizer such as Tokenizer.from_file() gives"),
        (lambda tok: tok.count(None), "text must be str, not NoneType"),
        (lambda tok: tok.encode_batch("text"), "texts must be several texts, not one str: write encode_batch([text])"),
        (lambda tok: tok.encode_batch(None), "texts must be several texts, not NoneType"),
        (lambda tok: tok.encode_batch(["a", None]), "texts[1] must be str or bytes, not NoneType"),
        (lambda tok: tok.decode("text"), "decode() takes token ids, not str; encode() takes text"),
        (lambda tok: tok.decode(""), "decode() takes token ids, not str; encode() takes text"),
        (lambda tok: tok.encode_batch({"text": ["a"]}), "texts must be several texts, not dict"),
        (lambda tok: tok.encode_batch(["a"], threads="2"), "'str' object cannot be interpreted as an integer"),
        (lambda tok: tok.encode_batch(["a"], threads=2.5), "'float' object cannot be interpreted as an integer"),
        (
            lambda tok: tok.encode_table({"text": ["a"]}, "text"),
            "encode_table() takes a table of pyarrow's, not dict; encode_batch() takes texts",
        ),
        (
            lambda tok: tok.encode_batch(["a"]).padded(None),
            "pad_id must be int, not None: for a tokenizer without one use any id, such as 0, and the mask",
        ),
        (lambda tok: tok.encode_batch(["a"]).padded(0.5), "'float' object cannot be interpreted as an integer"),
        (lambda tok: tok.encode_batch(["a"]).padded(0, "3"), "'str' object cannot be interpreted as an integer"),
        (lambda tok: tok.encode_batch(["a"])[0:1], "'slice' object cannot be interpreted as an integer"),
        (lambda tok: tok.decode(5), "ids must be a sequence of int, not one int: write [5]"),
        (lambda tok: tok.decode(b"\1"), "decode() takes token ids, not bytes; encode() takes text"),
        (lambda tok: tok.decode({1, 2}), "ids must be a sequence of int, not set"),
        (lambda tok: tok.decode(UserDict(input_ids=[1, 2])), "ids must be a sequence of int, not UserDict"),
        (lambda tok: tok.decode({"input_ids": [1]}), "ids must be a sequence of int, not dict"),
        (lambda tok: tok.decode_bytes(bytearray(b"a")), "ids must be a sequence of int, not bytearray"),
        (lambda tok: tok.decode([1], skip_special_tokens="no"), "skip_special_tokens='no' is neither True nor False"),
        (lambda tok: tok.encode("a", parse_special="no"), "parse_special='no' is neither True nor False"),
        (lambda tok: tok.encode_batch(["a"], parse_special="no"), "parse_special='no' is neither True nor False"),
        (lambda tok: tok.count("a", add_special_tokens="no"), "add_special_tokens='no' is neither True nor False"),
        (lambda tok: tok.encode("a", add_bos="no"), "add_bos='no' is neither True nor False"),
        (lambda tok: tok.decode_batch(None), "rows must be several rows of ids, not NoneType"),
        (lambda tok: tok.id_to_token(["a"]), "ids[0] must be int, not str"),
        (lambda tok: tok.id_to_token([1.0]), "ids[0] must be int, not float"),
        (lambda tok: tok.id_to_token(b"a"), "ids must be a sequence of int, not bytes"),
        (lambda tok: tok.decode_batch([1, 2]), "rows[0]: ids must be a sequence of int, not one int: write [1]"),
        (
            lambda tok: tok.decode_batch([[1], ["a"]]),
            "rows[1]: ids[0] must be int, not str; decode_batch() takes the ids of many texts",
        ),
        (lambda tok: tok.decode(None), "ids must be a sequence of int, not NoneType"),
        (lambda tok: tok.decode([1, 2.5]), "ids[1] must be int, not float"),
        (
            lambda tok: tok.decode([[1], [2]]),
            "ids[0] must be int, not list; decode_batch() takes the ids of many texts",
        ),
        (
            lambda tok: tok.decode(tok.encode_batch(["a", "b"])),
            "decode() takes the ids of one text, not a Ragged; decode_batch() takes those of many",
        ),
        (lambda tok: tok.decode_bytes("text"), "decode() takes token ids, not str; encode() takes text"),
    ],
)
def test_mistakes_are_told_with_what_to_write_instead(tok, call, message):
    with pytest.raises(TypeError) as caught:
        call(tok)
    assert str(caught.value) == message


def test_an_id_that_is_none_is_told_with_its_row(tok):
    with pytest.raises(TokenIdError, match=r"^rows\[1\]: token id -1 is outside the vocabulary"):
        tok.decode_batch([[1], [-1]])


def test_options_are_truth_values(tok):
    assert tok.encode("a<s>", parse_special=0) == tok.encode("a<s>", parse_special=False)
    assert tok.decode([275], skip_special_tokens=np.bool_(False)) == "<s>"


def test_an_option_that_does_not_exist(tok):
    plain = "add_bos, add_eos, add_special_tokens"
    for call, names in (
        (tok.encode, f"{plain}, disallowed_special, parse_special"),
        (tok.count, f"{plain}, disallowed_special, parse_special"),
        (lambda text, **options: tok.encode_batch([text], **options), f"{plain}, disallowed_special, parse_special"),
        (lambda text, **options: tok.affixes(**options), plain),
    ):
        with pytest.raises(TypeError) as caught:
            call("text", special=True)
        assert str(caught.value) == f"unexpected keyword argument 'special': the options of encoding are {names}"


def test_public_attributes_are_those_that_the_docstring_lists(tok):
    listed = set(re.findall(r"^ {8}(\w+): ", Tokenizer.__doc__.partition("Attributes:")[2], re.MULTILINE))
    fresh = Tokenizer.from_spec(tok.spec)  # one that was used has `vocab` too, which is made when it is asked for
    public = {name for name in vars(fresh) if not name.startswith("_")}
    assert public == listed | {"unk_id", "pad_id"}  # named in the entry of `bos_id`
