"""Mistakes of other projects in decoding, as in `test_lessons.py`: over real tokenizers, of pieces and of bytes."""

from __future__ import annotations

import ast
import json
import random
from functools import cache
from itertools import product
from pathlib import Path

import msgspec
import pytest
from full_run import share
from real_tokenizers import real_tokenizer

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import ReasoningDelta, TextDelta
from tokenweir.stream.serve.wire.responses.requests import ResponseCreate
from tokenweir.stream.serve.wire.responses.response_stream import ResponseStream

ROOT = Path(__file__).resolve().parents[3]
PIECES = (
    *("llama-2/tokenizer.json", "llama-2/tokenizer.model", "gemma", "mistral-7b-v0.3/tokenizer.json"),
    "gguf/ggml-vocab-phi-3.gguf",
)
BYTES = ("gpt2", "qwen3", "openai/o200k_base.tiktoken", "mistral-common/tekken_240911.json")
HARD = [*b"a \n", 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xC3, 0xE0, 0xE4, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF]


@pytest.fixture(params=PIECES)
def pieces(request, data):
    """A real tokenizer of SentencePiece's kind, with byte tokens."""
    return real_tokenizer(data(f"tokenizers/{request.param}"))


@pytest.fixture(params=("default", *PIECES, *BYTES))
def real(request, data):
    """A real tokenizer, whose text is pieces or bytes."""
    return Tokenizer.default() if request.param == "default" else real_tokenizer(data(f"tokenizers/{request.param}"))


@cache
def byte_ids(tok):
    """The id of each byte."""
    if tok.token_to_id("<0xE4>") is not None:
        named = [tok.token_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        return [tok.token_to_id(chr(byte)) if token_id is None else token_id for byte, token_id in enumerate(named)]
    by_bytes = {tok.token_bytes(token_id): token_id for token_id in reversed(range(tok.vocab_size))}
    return [by_bytes[bytes([byte])] for byte in range(256)]


def spelled(tok, text):
    """The ids of a text's bytes."""
    return [byte_ids(tok)[byte] for byte in (text.encode() if isinstance(text, str) else text)]


def answer(tok, ids, **options):
    decoder = ChatDecoder(tok, **options)
    deltas = [delta for token_id in ids for delta in decoder.feed([token_id])] + decoder.finish()
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def test_lesson_1_a_prompt_that_ends_inside_a_character_is_not_sent_again(real):  # vllm#48853
    prompt = [*real.encode("Hello ", add_special_tokens=False), *spelled(real, "👩")]
    for cut in range(1, 4):
        assert answer(real, prompt[-cut:], prompt_ids=prompt[:-cut]) == "👩"


def test_lesson_2_a_byte_token_between_others_raises_nothing_and_changes_nothing_sent(pieces):  # vllm#17448, #19449
    ids = [*spelled(pieces, b"\n\xe4"), pieces.token_to_id("天")]
    for mode, text in ("eager", "\n\ufffd天"), ("huggingface", "\ufffd\ufffd天"):
        assert answer(pieces, ids, byte_fallback=mode) == pieces.decode(ids, byte_fallback=mode) == text
    assert [ChatDecoder(pieces).feed(ids[:n]) for n in (1, 2)] == [[TextDelta("\n", ids[:1])]] * 2


def test_lesson_3_no_error_is_told_by_its_message():  # vllm#24159
    """Outside of f-strings, which make new messages, nothing looks into the text of an error that was caught."""
    for path in (ROOT / folder for folder in ("encode", "templates", "gpu", "stream", "src/tokenweir/cli")):
        for file in path.rglob("*.py"):
            for handler in ast.walk(ast.parse(file.read_text())):
                if isinstance(handler, ast.ExceptHandler) and handler.name is not None:
                    asked = [node for node in ast.walk(handler) if isinstance(node, ast.Compare | ast.If | ast.Match)]
                    tests = [node.test if isinstance(node, ast.If) else node for node in asked]
                    assert not any(reads_message(test, handler.name) for test in tests), f"{file}:{handler.lineno}"


def reads_message(node, error):
    """Whether `str(error)`, `repr(error)`, `error.args` or `error.message` stands in an expression."""
    return any(
        (isinstance(part, ast.Call) and ast.unparse(part) in (f"str({error})", f"repr({error})"))
        or (isinstance(part, ast.Attribute) and ast.unparse(part) in (f"{error}.args", f"{error}.message"))
        for part in ast.walk(node)
    )


def test_lesson_4_a_bad_id_harms_one_stream_only(tok):  # vllm#21951
    other = ChatDecoder(tok)
    for bad in (-1, tok.vocab_size, 2**31, 2**40, 2**70):
        with pytest.raises(TokenIdError, match=f"^token id {bad} is outside the vocabulary"):
            ChatDecoder(tok).feed([65, bad])
    assert other.feed([65]) == [TextDelta("A", [65])]


def test_lesson_4_an_id_without_a_token_gives_no_text(data):  # vllm#21951
    tok = real_tokenizer(data("tokenizers/openai/o200k_base.tiktoken"))
    gap = tok.token_to_id("<|endofprompt|>") - 1
    assert tok.id_to_token(gap) is None
    assert answer(tok, [*tok.encode("Hi"), gap, *tok.encode("!")]) == "Hi!"


def test_lesson_5_the_middle_of_a_prompt_is_not_looked_at(pieces, think_tok):  # vllm#16963
    """Ids that do not exist would raise, wherever one is looked at."""
    hello, cut = pieces.encode("Hello", add_special_tokens=False), spelled(pieces, "天")
    for mode in ("eager", "huggingface"):
        stream = DecodeStream(pieces, prompt_ids=[*hello, *[-1] * 100_000, *hello, *cut[:2]], byte_fallback=mode)
        assert stream.step(cut[2]) + stream.flush() == "天"
    turn = think_tok.encode("<eos>user<eos><think>")
    decoder = ChatDecoder(think_tok, prompt_ids=[*turn, *[-1] * 100_000, *turn])
    assert decoder.feed(think_tok.encode("hm</think>")) == [ReasoningDelta("hm", list(b"hm"))]


def test_lesson_6_a_prompt_that_ends_in_many_byte_tokens(pieces):  # vllm PR#51281
    ids = spelled(pieces, "語" * 14)
    for mode in ("eager", "huggingface"):
        for length in (38, 39, 40, 41):
            text = answer(pieces, ids[length:], prompt_ids=ids[:length], byte_fallback=mode)
            assert text == "語" * (14 - length // 3)


def test_lesson_7_text_is_only_added_to(pieces):  # sglang#31598
    ids = [*pieces.encode("A ", add_special_tokens=False), pieces.token_to_id("世")]
    ids += [*spelled(pieces, "世"), *spelled(pieces, "ab")]
    decoder, text = ChatDecoder(pieces), ""
    for token_id in ids:
        text += "".join(delta.text for delta in decoder.feed([token_id]))
        assert "A 世世ab".startswith(text)
    assert text == "A 世世ab"


def test_lesson_8_tokens_that_complete_nothing_do_not_pile_up(real):  # sglang#34740
    stream, bad = DecodeStream(real), spelled(real, b"\x80")[0]
    control = next(iter(real.special_tokens.values()))
    assert all(stream.step(bad) == "\ufffd" and stream.pending == 0 for _ in range(10_000))
    assert all(stream.step(control) == "" and stream.pending == 0 for _ in range(10_000))
    decoder = ChatDecoder(real)
    assert all(decoder.feed([bad]) == [TextDelta("\ufffd", [bad])] for _ in range(1000))


def test_lesson_9_an_added_token_outside_the_byte_alphabet_stands_between_bytes(make_tok):  # mlx-examples#1077
    tok = make_tok(AddedToken("<｜bar｜>"))
    assert answer(tok, [0xE4, tok.token_to_id("<｜bar｜>"), 0xE4]) == "\ufffd<｜bar｜>\ufffd"


def test_lesson_10_incomplete_bytes_before_text_raise_nothing(real):  # mlx-vlm#1771
    space_a = real.encode("b a", add_special_tokens=False)[-1]
    assert real.decode([*real.encode("b", add_special_tokens=False), space_a]) == "b a"
    assert answer(real, [*spelled(real, b"\xf0\x9f"), space_a]) == "\ufffd a"


def test_lesson_11_a_character_cut_between_chunks_is_whole(real):  # mlx-vlm#1778
    decoder, ids = ChatDecoder(real), spelled(real, "👩")
    assert decoder.feed(ids[:2]) == []
    assert decoder.feed(ids[2:]) == [TextDelta("👩", ids)]


def test_lesson_12_every_id_that_completes_a_character_gives_a_delta_at_once(real):  # mlx-vlm PR#1129
    decoder = ChatDecoder(real, stop=["zebra"])
    for token_id in real.encode("Plain text, no line end", add_special_tokens=False):
        assert [delta.token_ids for delta in decoder.feed([token_id])] == [[token_id]]


def test_lesson_13_only_a_space_that_was_added_goes(real):  # mlx-lm PR#1754
    for ids in (real.encode(text, add_special_tokens=False) for text in (" leading", "  leading", "leading")):
        assert answer(real, ids) == real.decode(ids)
        assert answer(real, ids, prompt_ids=real.encode("A")).lstrip(" ") == "leading"
    space, leading = real.token_to_id("▁"), real.token_to_id("▁leading")
    if leading is not None:
        assert answer(real, [space, leading]).endswith(" leading")
        assert answer(real, [leading], prompt_ids=real.encode("A")) == " leading"
    else:
        assert answer(real, real.encode(" a")) == " a"


def test_lesson_14_a_zero_byte_is_a_character(real):
    assert answer(real, spelled(real, b"A\0B")) == "A\0B"


def test_lesson_15_words_keep_their_spaces(real):  # litgpt PR#2326, tokenizers#1141
    ids = real.encode("Hello world, how are you ?", add_special_tokens=False)
    assert answer(real, ids) == "Hello world, how are you ?"


def test_lesson_16_spaces_behind_a_line_end_stay(real):  # transformers' streamers
    ids = real.encode("A list:\n  - x\n\n   y", add_special_tokens=False)
    assert answer(real, ids) == "A list:\n  - x\n\n   y"


def test_lesson_17_text_of_raw_bytes_is_exact(real):  # vllm#8627
    text = "語と文字、我們的 ไทย हिन्दी 한국어 👩‍👩‍👧"
    assert answer(real, real.encode(text, add_special_tokens=False)) == text
    assert answer(real, spelled(real, text)) == text


def test_lesson_18_no_frame_has_a_replacement_character_unless_bytes_are_wrong(real):  # textgen#1603
    text = "naïve 👩‍👩‍👧 日本 ไทย"
    response = ResponseStream(ResponseCreate(type="response.create", input="?"), model="m", max_output_tokens=None)
    decoder, frames = ChatDecoder(real, stop=["\ufffd\ufffd"]), []
    for token_id in spelled(real, text):
        frames += [msgspec.json.encode(event) for delta in decoder.feed([token_id]) for event in response.step(delta)]
    assert "\ufffd" not in b"".join(frames).decode()
    assert "".join(json.loads(frame).get("delta", "") for frame in frames) == text


def test_lesson_19_invalid_bytes_never_end_an_answer(real):  # llama.cpp#11738, unslothai/llama.cpp PR#202
    of, text, stream, rng = byte_ids(real), real.encode("A"), DecodeStream(real), random.Random(19)
    pairs = list(map(bytes, product(range(256), repeat=2)))
    strings = [bytes([byte]) for byte in range(256)] + rng.sample(pairs, share(len(pairs)))
    strings += [bytes(rng.choices(HARD, k=rng.randrange(3, 12))) for _ in range(share(10_000))]
    for string in strings:
        stream.reset(text)
        assert "".join([stream.step(of[byte]) for byte in string]) + stream.flush() == string.decode(errors="replace")


def test_lesson_20_two_halves_give_one_delta(real):  # llama.cpp PR#4118
    decoder, ids = ChatDecoder(real), spelled(real, "😀")
    assert [decoder.feed(half) for half in (ids[:2], ids[2:])] == [[], [TextDelta("😀", ids)]]
