"""Decoding as ids come: the pieces join to the whole decode, for any ids and any way of cutting them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.base.options import BYTE_FALLBACK_MODES
from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.decode.batch import DecodeBatch
from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.spec import (
    BPE,
    AddedToken,
    BPEDecoder,
    ByteFallback,
    ByteLevel,
    DecoderSequence,
    Fuse,
    Pattern,
    Replace,
    StripDecoder,
    TokenizerSpec,
    WordPieceDecoder,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import TextDelta

TOKENS = ["ab", "é", "日", "日本", " a", b"\xe6\x97", b"\xa5a", b"\xf0\x9f", b"\x98\x80", b"\xf0\x9f\x98", b"\x80\x80"]
BYTES = [0x61, 0x80, 0xBF, 0xC0, 0xC3, 0xA9, 0xE0, 0xE4, 0xBD, 0xA0, 0xED, 0xF0, 0x9F, 0x98, 0xF4, 0x90, 0xF5, 0xFF]


@pytest.fixture(scope="module")
def tok(spell):
    tokens = [bytes([byte]) for byte in range(256)] + [t if isinstance(t, bytes) else t.encode() for t in TOKENS]
    model = BPE(vocab={spell(token): i for i, token in enumerate(tokens)}, merges=[])
    added = (AddedToken("<|end|>", special=True), AddedToken("<think>"))
    pre_tokenizer = ByteLevel(add_prefix_space=False)
    return Tokenizer.from_spec(
        TokenizerSpec(model=model, pre_tokenizer=pre_tokenizer, decoder=ByteLevel(), added_tokens=added, vocab_size=272)
    )


def test_the_vocabulary(tok):
    assert tok.vocab_size == 272
    assert [tok.token_bytes(i) for i in (256, 267, 268, 271)] == [b"ab", b"<|end|>", b"<think>", b""]


# Mostly bytes that begin, continue and break characters, but anything may come: gaps, control tokens, long tokens.
ids_of_any_kind = st.lists(st.one_of(st.sampled_from(BYTES), st.integers(256, 271), st.integers(0, 271)), max_size=30)


def reference(tok, ids, skip):
    """The bytes of the tokens, decoded by Python."""
    control = tok.special_tokens.values() if skip else ()
    return b"".join(tok.token_bytes(i) for i in ids if i not in control).decode(errors="replace")


@given(ids_of_any_kind, st.booleans())
def test_steps_join_to_the_whole(tok, ids, skip):
    stream = DecodeStream(tok, skip_special_tokens=skip)
    pieces = []
    for token_id in ids:
        pieces.append(stream.step(token_id))
        assert stream.pending <= 3
    pieces.append(stream.flush())
    whole = tok.decode(ids, skip_special_tokens=skip)
    assert "".join(pieces) == whole == reference(tok, ids, skip)
    assert stream.pending == 0
    assert stream.flush() == ""


@given(ids_of_any_kind, st.lists(st.integers(0, 5), max_size=30))
def test_chunks_give_what_their_steps_give(tok, ids, sizes):
    whole, stepped = DecodeStream(tok), DecodeStream(tok)
    at = 0
    for size in [*sizes, len(ids)]:
        chunk = ids[at : at + size]
        at += size
        assert whole.feed(chunk) == "".join(map(stepped.step, chunk))
        assert whole.pending == stepped.pending
    assert whole.flush() == stepped.flush()


@given(ids_of_any_kind, ids_of_any_kind, st.booleans())
def test_after_a_prompt_comes_what_its_whole_characters_are_followed_by(tok, prompt, ids, skip):
    stream = DecodeStream(tok, prompt_ids=prompt, skip_special_tokens=skip)
    before = DecodeStream(tok, skip_special_tokens=skip).feed(prompt)  # the characters that are complete
    assert before + stream.feed(ids) + stream.flush() == tok.decode(prompt + ids, skip_special_tokens=skip)


@given(ids_of_any_kind, ids_of_any_kind, ids_of_any_kind)
def test_reset_is_a_new_stream(tok, before, prompt, ids):
    used, new = DecodeStream(tok), DecodeStream(tok, prompt_ids=prompt)
    used.feed(before)
    used.reset(prompt)
    assert used.pending == new.pending
    assert [used.step(i) for i in ids] == [new.step(i) for i in ids]
    assert used.flush() == new.flush()
    used.reset()
    assert (used.pending, used.flush()) == (0, "")


@given(ids_of_any_kind, ids_of_any_kind, ids_of_any_kind)
def test_a_copy_goes_its_own_way(tok, before, ids, other_ids):
    stream, untouched = DecodeStream(tok), DecodeStream(tok)
    stream.feed(before), untouched.feed(before)
    copy = stream.copy()
    assert type(copy) is DecodeStream
    copy.feed(other_ids)
    assert stream.feed(ids) + stream.flush() == untouched.feed(ids) + untouched.flush()


def test_a_prompt_that_ends_inside_a_character(tok):
    ids = [*b"Hello ", *"👩".encode()]
    stream = DecodeStream(tok, prompt_ids=ids[:-1])
    assert stream.pending == 3
    assert stream.step(ids[-1]) == "👩"


def test_a_character_is_held_until_it_is_whole_or_cannot_be(tok):
    stream = DecodeStream(tok)
    assert [stream.step(i) for i in "日".encode()] == ["", "", "日"]
    assert [stream.step(i) for i in (0xE4, 0xBD, 0x61)] == ["", "", "\ufffda"]
    assert [stream.step(i) for i in (0xF0, 0xF0, 0xFF)] == ["", "\ufffd", "\ufffd\ufffd"]
    assert [stream.step(0xE4), stream.flush()] == ["", "\ufffd"]


def test_bytes_join_across_a_control_token_that_is_skipped(tok):
    ids = [0xE4, 0xBD, tok.special_tokens["<|end|>"], 0xA0]
    assert DecodeStream(tok).feed(ids) == tok.decode(ids) == "你"
    shown = DecodeStream(tok, skip_special_tokens=False).feed(ids)
    assert shown == tok.decode(ids, skip_special_tokens=False) == "\ufffd<|end|>\ufffd"


BAD = [-1, 272, 2**40, 2**63, -(2**63) - 1, 10**40]  # of which arrays of integers hold the first four


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_id_leaves_the_stream_as_it_was(tok, bad):
    stream = DecodeStream(tok)
    stream.feed([0x61, 0xE4])
    message = rf"^token id {bad} is outside the vocabulary"
    for call in (
        lambda: stream.step(bad),
        lambda: stream.feed([0xBD, bad]),
        lambda: stream.feed(np.array([bad]) if -1 <= bad <= 2**63 else [bad]),
        lambda: stream.reset([bad]),
        lambda: DecodeStream(tok, prompt_ids=[bad]),
        lambda: tok.decode([0x61, bad]),
        lambda: tok.decode_bytes([bad]),
        lambda: tok.token_bytes(bad),
    ):
        with pytest.raises(TokenIdError, match=message):
            call()
    assert stream.feed([0xBD, 0xA0]) == "你"


def test_the_message_tells_which_ids_there_are(tok):
    with pytest.raises(TokenIdError, match=r"^token id 272 is outside the vocabulary \(0 to 271\)$"):
        tok.decode([272])


@pytest.mark.parametrize("wrong", ["5", 5.0, None, b"5"])
def test_an_id_is_an_integer(tok, wrong):
    with pytest.raises(TypeError):
        DecodeStream(tok).step(wrong)
    with pytest.raises(TypeError):
        tok.decode([wrong])


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i4"])
def test_an_array_of_any_integers_is_its_list(tok, dtype):
    ids = np.array([*b"naive text", 97], dtype)
    for array in (ids, ids[::2], ids[::-1], ids[:0]):
        assert tok.decode(array) == DecodeStream(tok).feed(array) == tok.decode(array.tolist())
        assert tok.decode_bytes(array) == tok.decode_bytes(array.tolist())
    assert DecodeStream(tok).step(ids[0]) == "n"


def test_arrays_that_are_not_ids(tok):
    with pytest.raises(TypeError, match=r"^ids must be one-dimensional integers, not float64 of shape \(1,\)$"):
        tok.decode(np.zeros(1))
    with pytest.raises(TypeError, match=r"^ids must be one-dimensional integers, not int64 of shape \(1, 2\)$"):
        tok.decode(np.zeros((1, 2), np.int64))


@given(ids_of_any_kind, st.booleans())
def test_offsets_go_with_the_whole_decode(tok, ids, skip):
    text, starts = tok.decode_with_offsets(ids, skip_special_tokens=skip)
    assert text == tok.decode(ids, skip_special_tokens=skip)
    assert len(starts) == len(ids)
    assert starts == sorted(starts)
    assert all(start <= len(text) for start in starts)


@pytest.mark.parametrize("name", ["llama-3.1", "gemma"])
def test_offsets_of_decoding_are_those_of_encoding(data, name):
    tok = Tokenizer.from_file(data(f"tokenizers/{name}/tokenizer.json"))
    text = "ab na\xefve \U0001f600 \u65e5\u672c \u4f60\u597d\u9f98 12345"
    ids, offsets = tok.encode_with_offsets(text, add_special_tokens=False)
    assert tok.decode_with_offsets(np.array(ids)) == (text, [start for start, _ in offsets])
    with pytest.raises(TypeError, match=r"decode\(\) takes token ids, not str"):
        tok.decode_with_offsets("ab")


NO_IDS = [
    ("text", " must be a sequence of int, not str"),
    (b"\x61", " must be a sequence of int, not bytes"),
    (None, " must be a sequence of int, not NoneType"),
    (0x61, " must be a sequence of int, not one int: write [97]"),
    ([[0x61]], "[0] must be int, not list"),
    (("a",), "[0] must be int, not str"),
    (np.array([[0x61]]), " must be one-dimensional integers, not int64 of shape (1, 1)"),
]


@pytest.mark.parametrize(("given", "message"), NO_IDS)
def test_what_holds_no_ids_is_named(tok, given, message):
    for name, call in (
        ("prompt_ids", lambda: DecodeStream(tok, prompt_ids=given)),
        ("prompt_ids", lambda: DecodeStream(tok).reset(given)),
        ("prompt_ids", lambda: DecodeBatch(tok).add(given)),
        ("prompt_ids", lambda: ChatDecoder(tok, prompt_ids=given)),
        ("ids", lambda: DecodeStream(tok).feed(given)),
    ):
        with pytest.raises(TypeError, match=f"^{name}{re.escape(message)}$"):
            call()


def test_a_prompt_is_whatever_holds_ids(tok):
    ids = [0xE4, 0xBD]
    for prompt in (ids, tuple(ids), dict.fromkeys(ids), np.array(ids, np.int16), memoryview(np.array(ids)), iter(ids)):
        assert DecodeStream(tok, prompt_ids=prompt).step(0xA0) == "\u4f60"
    assert DecodeStream(tok, prompt_ids=[]).step(0xA0) == "\ufffd"


def test_both_byte_fallback_modes_are_one_for_bytes(tok):
    ids = [0xE4, 0xBD, 0x61]
    assert tok.decode(ids, byte_fallback="huggingface") == tok.decode(ids) == "\ufffda"
    message = r"^byte_fallback must be one of \('eager', 'huggingface'\), not 'strict'$"
    with pytest.raises(ValueError, match=message):
        tok.decode(ids, byte_fallback="strict")
    with pytest.raises(ValueError, match=message):
        DecodeStream(tok, byte_fallback="strict")


# -- SentencePiece-style chains ----------------------------------------------------------------------------------------

WORDS = ["▁", "▁Hello", "▁world", "▁leading", "天", "\n"]
SPACE, HELLO, WORLD, LEADING, DAY, LINE = (256 + i for i in range(len(WORDS)))
DASH, X = b"-x"
CHAIN = DecoderSequence(
    (Replace(Pattern(String="▁"), " "), ByteFallback(), Fuse(), StripDecoder(content=" ", start=1, stop=0))
)


def fallback(text):
    """The ids of the text's bytes, as `<0xE4>` tokens."""
    return [256 + len(WORDS) + byte for byte in (text.encode() if isinstance(text, str) else text)]


def with_decoder(spell, decoder, *words):
    """A tokenizer whose ids are 256 letters of the byte alphabet, `WORDS`, byte tokens, and `words`; the last is `<s>`."""
    tokens = [spell(bytes([byte])) for byte in range(256)] + WORDS + [f"<0x{byte:02X}>" for byte in range(256)]
    model = BPE(vocab={token: i for i, token in enumerate([*tokens, *words])}, merges=[])
    pre_tokenizer, added = ByteLevel(add_prefix_space=False), (AddedToken("<s>", special=True),)
    return Tokenizer.from_spec(
        TokenizerSpec(model=model, pre_tokenizer=pre_tokenizer, decoder=decoder, added_tokens=added)
    )


@pytest.fixture(scope="module")
def sp(spell):
    return with_decoder(spell, CHAIN)


def steps(tok, ids, **options):
    stream = DecodeStream(tok, **options)
    return [*map(stream.step, ids), stream.flush()]


def test_lesson_1_a_prompt_that_ends_inside_a_character_is_not_sent_again(sp):  # vllm#48853
    prompt = [HELLO, SPACE, *fallback("👩")]
    for mode in BYTE_FALLBACK_MODES:
        assert steps(sp, prompt[-1:], prompt_ids=prompt[:-1], byte_fallback=mode)[-2:] != ["", ""]
        assert "".join(steps(sp, [*prompt[-1:], X], prompt_ids=prompt[:-1], byte_fallback=mode)) == "👩x"
        assert steps(sp, [X], prompt_ids=prompt, byte_fallback=mode) == ["x", ""]


@pytest.mark.parametrize("mode", BYTE_FALLBACK_MODES)
def test_lesson_2_byte_tokens_between_words_raise_nothing_and_change_nothing_sent(sp, mode):  # vllm#17448
    ids = [LINE, *fallback(b"\xe4"), DAY]
    assert steps(sp, ids, byte_fallback=mode) == ["\n", "", "\ufffd天", ""]
    assert sp.decode(ids, byte_fallback=mode) == "\n\ufffd天"


def test_lesson_5_the_middle_of_a_prompt_is_not_looked_at(sp):  # vllm#16963
    prompt = [HELLO, *[-1] * 100_000, DASH, *fallback("天")[:2]]  # ids that do not exist would raise
    assert steps(sp, fallback("天")[2:], prompt_ids=prompt) == ["天", ""]
    assert steps(sp, fallback("天")[2:], prompt_ids=prompt, byte_fallback="huggingface") == ["", "天"]


@pytest.mark.parametrize("length", [1, 2, 3, 39, 40, 41])
@pytest.mark.parametrize("mode", BYTE_FALLBACK_MODES)
def test_lesson_6_a_prompt_that_ends_in_many_byte_tokens(sp, length, mode):  # vllm PR#51281
    text = "é天👩" * 5
    ids = fallback(text)
    for prompt in (ids[:length], [HELLO, *ids[:length]]):
        complete = len(text.encode()[:length].decode(errors="ignore"))
        assert "".join(steps(sp, ids[length:], prompt_ids=prompt, byte_fallback=mode)) == text[complete:]


def test_lesson_8_tokens_that_complete_nothing_do_not_pile_up(sp):  # sglang#34740
    for mode in BYTE_FALLBACK_MODES:
        stream = DecodeStream(sp, byte_fallback=mode)
        bad, control = fallback(b"\x80")[0], sp.special_tokens["<s>"]
        assert [stream.step(control) for _ in range(10_000)] == [""] * 10_000
        assert [stream.step(bad) for _ in range(10_000)] == ["\ufffd"] * 10_000
        assert stream.pending == 0


def test_lesson_13_and_15_only_the_texts_first_space_goes(sp):  # mlx-lm PR#1754, litgpt PR#2326
    assert sp.decode([SPACE, LEADING]) == " leading"
    assert steps(sp, [SPACE, LEADING]) == ["", " leading", ""]
    assert steps(sp, [HELLO, WORLD]) == ["Hello", " world", ""]
    assert steps(sp, [sp.special_tokens["<s>"], HELLO]) == ["", "Hello", ""]
    assert steps(sp, [sp.special_tokens["<s>"], HELLO], skip_special_tokens=False) == ["<s>", " Hello", ""]
    assert steps(sp, [WORLD], prompt_ids=[HELLO]) == [" world", ""]
    assert steps(sp, [WORLD], prompt_ids=[sp.special_tokens["<s>"]]) == ["world", ""]
    assert steps(sp, [HELLO], prompt_ids=[SPACE]) == [" Hello", ""]


def test_lesson_16_spaces_after_a_line_end_stay(sp):  # transformers' streamers
    ids = [HELLO, LINE, SPACE, SPACE, DASH, SPACE, X]
    assert steps(sp, ids) == ["Hello", "\n", " ", " ", "-", " ", "x", ""]
    assert sp.decode(ids) == "Hello\n  - x"


def test_flush_in_mid_text_goes_on_as_after_a_prompt(sp):
    for mode in BYTE_FALLBACK_MODES:
        stream = DecodeStream(sp, byte_fallback=mode)
        assert stream.flush() == ""
        assert stream.feed([HELLO, *fallback(b"\xe4\xbd")]) + stream.flush() == "Hello\ufffd" + "\ufffd" * (
            mode != "eager"
        )
        assert [stream.step(i) for i in (WORLD, *fallback(b"\xa0"), SPACE)] == [" world", "\ufffd", " "]


def test_a_run_that_is_wrong_as_a_whole(sp):
    ids = [HELLO, *fallback("天\n".encode() + b"\xe4"), X]
    assert sp.decode(ids) == "Hello天\n\ufffdx"
    assert sp.decode(ids, byte_fallback="huggingface") == "Hello\ufffd\ufffd\ufffd\ufffd\ufffdx"
    assert steps(sp, ids) == ["Hello", "", "", "天", "\n", "", "\ufffdx", ""]
    assert steps(sp, ids, byte_fallback="huggingface") == ["Hello", *[""] * 5, "\ufffd\ufffd\ufffd\ufffd\ufffdx", ""]
    wrong = [*fallback(b"a\xff\xffa"), X]  # from the first wrong byte on, nothing is held
    assert steps(sp, wrong, byte_fallback="huggingface") == ["", "\ufffd\ufffd", "\ufffd", "\ufffd", "x", ""]


byte_runs = st.lists(st.sampled_from([*"é天👩a".encode(), 0xFF, 0xE4]), max_size=9).map(bytes)


@given(byte_runs, byte_runs, st.booleans())
def test_a_run_that_the_prompt_cuts_is_sent_from_its_first_unfinished_character(sp, before, after, ended):
    """Characters that the prompt completed are not repeated, however the run ends."""
    prompt, ids = [HELLO, *fallback(before)], [*fallback(after), *[X] * ended]
    rest = "".join(steps(sp, ids, prompt_ids=prompt, byte_fallback="huggingface"))
    whole = sp.decode(prompt + ids, byte_fallback="huggingface")
    run = before + after
    try:
        before.decode()
        complete, wrong = len(before), False
    except UnicodeDecodeError as error:
        wrong = error.reason != "unexpected end of data"
        complete = len(before) if wrong else error.start
    valid = run.decode(errors="replace").encode() == run
    sent = len(before[:complete].decode()) if valid and not wrong else complete
    assert whole[len("Hello") + sent :] == rest


def test_ids_ride_with_the_text_that_is_held(sp):
    decoder = ChatDecoder(sp, byte_fallback="huggingface", reasoning=None)
    run = fallback("天地")
    assert decoder.feed([HELLO, *run]) == [TextDelta("Hello", [HELLO])]
    assert decoder.feed([X]) == [TextDelta("天地x", [*run, X])]
    decoder.feed(run)
    assert decoder.finish()[0].text == "天地"


# -- other decoders ----------------------------------------------------------------------------------------------------


def test_a_wordpiece_answer(spell):
    tok = with_decoder(spell, WordPieceDecoder(), "un", "##aff", "do", "n't")
    un, aff, do, not_ = (tok.token_to_id(token) for token in ("un", "##aff", "do", "n't"))
    assert steps(tok, [un, aff, do, not_]) == ["un", "aff", " do", "n't", ""]
    assert steps(tok, [aff, un]) == ["##aff", " un", ""]
    assert steps(tok, [aff, un], prompt_ids=[do]) == ["aff", " un", ""]
    assert tok.token_bytes(un) == b" un"


def test_the_end_of_a_word_is_held_until_another_follows(spell):
    tok = with_decoder(spell, BPEDecoder(), "ab</w>", "</w>")
    ab, c, end = (tok.token_to_id(token) for token in ("ab</w>", "c", "</w>"))
    assert steps(tok, [ab, c, ab]) == ["ab", " c", "ab", ""]
    assert steps(tok, [ab, end, end]) == ["ab", " ", " ", ""]
    assert steps(tok, [c], prompt_ids=[c, ab]) == [" c", ""]
    stream = DecodeStream(tok)
    assert (stream.step(ab), stream.pending) == ("ab", 1)
    decoder = ChatDecoder(tok, reasoning=None)
    assert decoder.feed([ab]) == [TextDelta("ab", [])]
    assert decoder.feed([c]) == [TextDelta(" c", [ab, c])]


def test_spaces_that_the_end_of_the_text_takes_are_held(spell):
    tok = with_decoder(spell, DecoderSequence((Replace(Pattern(String="▁"), " "), Fuse(), StripDecoder(" ", 0, 2))))
    assert steps(tok, [X, SPACE, SPACE, SPACE, X, SPACE]) == ["x", "", "", " ", "  x", "", ""]
    assert steps(tok, [SPACE, X], prompt_ids=[X, SPACE, SPACE]) == [" ", "  x", ""]


def test_a_pattern_that_begins_in_one_token_and_ends_in_another(spell):
    tok = with_decoder(spell, DecoderSequence((Fuse(), Replace(Pattern(String="xxx-"), "天"))))
    assert steps(tok, [X, X, X, X, DASH, X, X]) == ["", "", "", "x", "天", "", "", "xx"]


def test_a_control_token_is_skipped_by_its_normalized_spelling(both):
    added = [{"content": "e\u0301", "normalized": True, "special": True}, {"content": "<s>", "special": True}]
    mine, theirs = both(added=added, normalizer={"type": "NFC"})
    ids = [mine.token_to_id(token["content"]) for token in added]
    for skip in (True, False):
        assert mine.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)


def test_an_id_that_decodes_while_it_is_asked_for_its_number(tok):
    """The bytes of two calls of one thread are apart."""

    class Id:
        def __index__(self):
            assert tok.decode(inner) == "some other text" * 10
            return ids[1]

    inner, ids = tok.encode("some other text" * 10), tok.encode("a longer text, and more of it")
    for _ in range(2):
        assert tok.decode([ids[0], Id(), *ids[2:]]) == "a longer text, and more of it"
        assert tok.decode_bytes([ids[0], Id(), *ids[2:]]) == b"a longer text, and more of it"
