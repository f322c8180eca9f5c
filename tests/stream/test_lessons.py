"""What other projects got wrong, one short test each. The numbers are those of a survey of their issue trackers; here are
those lessons that concern decoding, stops, thinking and the stages, each with the issue that it comes from."""

from __future__ import annotations

from contextlib import aclosing

import anyio
import pytest
from msgspec.structs import replace

from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.chat_decoder import ChatDecoder
from tokenweir.stream.decode import DecodeStream
from tokenweir.stream.events import Finish, FinishReason, ReasoningDelta, TextDelta
from tokenweir.stream.reasoning import ReasoningParser
from tokenweir.stream.stages import decode_chat
from tokenweir.stream.stops import StopStrings
from tokenweir.templates.reasoning_styles import STYLES


def run(decoder, ids, size=1):
    deltas = [delta for at in range(0, len(ids), size) for delta in decoder.feed(ids[at : at + size])]
    deltas += decoder.finish()
    answer = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    thinking = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    return thinking, answer, deltas[-1]


def answer(tok, ids, **options):
    return run(ChatDecoder(tok, **options), list(ids))[1]


# -- decoding ----------------------------------------------------------------------------------------------------------


def test_lesson_1_a_prompt_that_ends_inside_a_character_is_not_sent_again(tok):  # vllm#48853
    prompt = list("Hello 👩".encode())
    assert answer(tok, prompt[-1:], prompt_ids=prompt[:-1]) == "👩"


def test_lesson_4_a_bad_id_harms_one_stream_only(tok):  # vllm#21951
    other = ChatDecoder(tok)
    for bad in (-1, tok.vocab_size):
        with pytest.raises(TokenIdError, match=f"token id {bad} is outside the vocabulary"):
            ChatDecoder(tok).feed([65, bad])
    assert other.feed([65]) == [TextDelta("A", [65])]


def test_lesson_8_tokens_that_complete_nothing_do_not_pile_up(tok):  # sglang#34740
    stream = DecodeStream(tok)
    assert all(stream.step(0x80) == "\ufffd" and stream.pending == 0 for _ in range(10_000))
    decoder = ChatDecoder(tok)
    assert all(decoder.feed([0x80]) == [TextDelta("\ufffd", [0x80])] for _ in range(1000))


def test_lesson_9_an_added_token_outside_the_byte_alphabet_stands_between_bytes(make_tok):  # mlx-examples#1077
    tok = make_tok(AddedToken("<｜bar｜>"))
    assert answer(tok, [0xE4, tok.token_to_id("<｜bar｜>"), 0xE4]) == "\ufffd<｜bar｜>\ufffd"


def test_lesson_10_incomplete_bytes_before_text_raise_nothing(tok):  # mlx-vlm#1771
    assert answer(tok, [0xF0, 0x9F, *b" a"]) == "\ufffd a"


def test_lesson_11_a_character_cut_between_chunks_is_whole(tok):  # mlx-vlm#1778
    decoder = ChatDecoder(tok)
    first, second = list("👩".encode()[:2]), list("👩".encode()[2:])
    assert decoder.feed(first) == []
    assert decoder.feed(second) == [TextDelta("👩", first + second)]


def test_lesson_12_every_id_that_completes_a_character_gives_a_delta_at_once(think_tok):  # mlx-vlm PR#1129
    decoder = ChatDecoder(think_tok, stop=["zebra"])
    assert all(len(decoder.feed([byte])) == 1 for byte in b"plain text, no line end")


def test_lesson_13_the_first_tokens_space_stays(tok):  # mlx-lm PR#1754
    assert answer(tok, tok.encode(" Alice")) == " Alice"


def test_lesson_14_a_zero_byte_is_a_character(tok):
    assert answer(tok, [65, 0, 66]) == "A\x00B"


def test_lesson_17_text_of_raw_bytes_is_exact(tok):  # vllm#8627
    assert answer(tok, "語と文字 ไทย".encode()) == "語と文字 ไทย"


def test_lesson_18_no_replacement_character_unless_bytes_are_wrong(tok):  # textgen#1603
    decoder = ChatDecoder(tok, stop=["\ufffd\ufffd"])
    texts = [delta.text for byte in "naïve 👩‍👩‍👧 日本".encode() for delta in decoder.feed([byte])]
    assert "".join(texts) == "naïve 👩‍👩‍👧 日本"


def test_lesson_19_invalid_bytes_never_end_an_answer(tok):  # llama.cpp#11738
    for first in range(256):
        for second in (0x20, 0x80, 0xA0, 0xC3, 0xE4, 0xF0, 0xFF):
            assert answer(tok, [first, second]) == bytes([first, second]).decode(errors="replace")


def test_lesson_20_two_halves_give_one_delta(tok):  # llama.cpp PR#4118
    halves = [[0xF0, 0x9F], [0x98, 0x80]]
    decoder = ChatDecoder(tok)
    assert [decoder.feed(half) for half in halves] == [[], [TextDelta("😀", [0xF0, 0x9F, 0x98, 0x80])]]


# -- stops and ends ----------------------------------------------------------------------------------------------------


def test_lesson_21_text_before_a_stop_in_the_same_token_is_sent(tok):  # llama.cpp PR#9867
    assert answer(tok, tok.encode("?\n"), stop=["\n"]) == "?"


def test_lesson_22_two_stops_send_no_text_twice(tok):  # llama.cpp#10914
    assert answer(tok, [*tok.encode(" Alice"), *b"!"], stop=["\n", "Alice:"]) == " Alice!"


def test_lesson_23_no_beginning_of_a_stop_leaks_in_any_cutting():  # TGI#1254
    text = "x<stop>y"
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            stops = StopStrings(["<stop>"])
            pieces = [stops.step(part).text for part in (text[:first], text[first:second], text[second:])]
            assert "".join(pieces) + stops.flush() == "x"


def test_lesson_24_a_stop_is_found_inside_a_token(tok):  # vllm#3672
    assert answer(tok, tok.encode("boxes"), stop=["ox"]) == "b"


def test_lesson_25_the_leftmost_occurrence_counts(tok):  # vllm#46113
    assert answer(tok, [*b"Answer", *tok.encode("\n\n")], stop=["\n"]) == "Answer"


def test_lesson_26_held_text_passes_the_later_stages_at_the_end(tok):  # smg#2203
    decoder = ChatDecoder(tok, stop=["<|sep|>"], reasoning="think")
    assert decoder.feed(list(b"\n<|sep|")) == [TextDelta("\n", [10])]
    assert run(decoder, [])[1] == "<|sep|"
    assert answer(tok, b"\n<|sep|", stop=["<|sep"], reasoning="think") == "\n"


def test_lesson_27_a_stop_does_not_cut_a_tag_in_two(tok):  # vllm#45636
    for size in range(1, 9):
        decoder = ChatDecoder(tok, stop=["</s>", "<"], stop_scope="all", reasoning="think")
        assert run(decoder, list(b"<think>ab</think>c"), size)[:2] == ("ab", "c")


def test_lesson_28_thinking_does_not_trigger_a_stop_by_default(think_tok):  # vllm#52393
    ids = think_tok.encode("<think>Question: why</think>because\nQuestion: no")
    assert run(ChatDecoder(think_tok, stop=["Question:"]), ids)[:2] == ("Question: why", "because\n")
    assert run(ChatDecoder(think_tok, stop=["Question:"], stop_scope="all"), ids)[:2] == ("", "")


def test_lesson_29_an_occurrence_ignored_for_min_tokens_stays(tok):  # sglang#40529
    assert answer(tok, b"aXbXc", stop=["X"], min_tokens=3) == "aXb"


def test_lesson_30_nothing_comes_after_a_stop(tok):  # vmlx-swift#109
    decoder = ChatDecoder(tok, stop=["X"])
    decoder.feed(list(b"aXb"))
    assert decoder.feed(list(b"c")) == decoder.finish() == []
    assert decoder.ignored == 2


def test_lesson_42_every_end_token_counts_and_ignore_eos_keeps_stop_ids(tok):  # mlx-vlm#309, vllm#4589
    eos = tok.token_to_id("<eos>")
    for end in (eos, 66):
        assert answer(tok, [65, end, 67], eos_ids=[eos, 66]) == "A"
    assert answer(tok, [65, eos, 67, 66, 68], ignore_eos=True, stop_token_ids=[66]) == "AC"


def test_lesson_43_stop_ids_are_checked_when_the_decoder_is_made(tok):  # gonka#1170
    with pytest.raises(TokenIdError, match=r"^stop_token_ids: token id 99999 is outside the vocabulary \(0 to 303\)$"):
        ChatDecoder(tok, stop_token_ids=[99999], min_tokens=5)


# -- thinking ----------------------------------------------------------------------------------------------------------


def test_lesson_31_tags_in_any_cutting_give_the_same(tok):  # lmdeploy#4754, dynamo#10569
    for text in (b"<think>a < b</think>c</", b"\n<thin<think>", b"<think>a</thin</think>b<"):
        results = {run(ChatDecoder(tok, reasoning="think"), list(text), size)[:2] for size in range(1, len(text) + 1)}
        assert len(results) == 1


def test_lesson_32_text_before_the_opener_is_routed_one_way(tok):  # sglang#35083
    for text, expected in (
        (b"\n<think>abc</think>answer", ("abc", "\nanswer")),
        (b"Sure. <think>abc</think>answer", ("", "Sure. <think>abc</think>answer")),
    ):
        for size in (1, 2, 3, len(text)):
            assert run(ChatDecoder(tok, reasoning="think"), list(text), size)[:2] == expected


def test_lesson_33_a_bare_closer_is_kept_or_dropped_whole(tok):  # sglang#36285
    drop = replace(STYLES["think"], unmatched_closer="drop")
    for size in range(1, 12):
        assert run(ChatDecoder(tok, reasoning="think"), list(b"a</think>b"), size)[1] == "a</think>b"
        assert run(ChatDecoder(tok, reasoning=drop), list(b"a</think>b"), size)[1] == "ab"


def test_lesson_34_several_ids_a_step_give_what_single_ones_give(think_tok):  # vllm#55195
    ids = think_tok.encode("<think>Hello\n</think>\n world<eos>")
    one_by_one = run(ChatDecoder(think_tok), ids)
    assert all(run(ChatDecoder(think_tok), ids, size) == one_by_one for size in range(1, 9))


def test_lesson_35_a_tag_as_id_or_as_text_is_the_same(mistral_tok):  # vllm#45609
    as_id = mistral_tok.encode("[THINK]a[/THINK]b")
    as_text = list(b"[THINK]a[/THINK]b")
    assert as_id != as_text
    assert run(ChatDecoder(mistral_tok), as_id)[:2] == run(ChatDecoder(mistral_tok), as_text)[:2] == ("a", "b")


def test_lesson_36_tags_that_are_control_tokens_are_found_while_these_are_skipped(mistral_tok):  # vllm#57232
    ids = mistral_tok.encode("[THINK]a<skip>[/THINK]b<skip>")
    assert run(ChatDecoder(mistral_tok, skip_special_tokens=True), ids)[:2] == ("a", "b")
    assert run(ChatDecoder(mistral_tok, skip_special_tokens=False), ids)[:2] == ("a<skip>", "b<skip>")


def test_lesson_37_an_end_token_inside_the_thinking_adds_no_text(think_tok):  # vllm#48748
    thinking, text, finish = run(ChatDecoder(think_tok), think_tok.encode("<think>hm<eos>"))
    assert (thinking, text, finish.reason) == ("hm", "", FinishReason.STOP)


def test_lesson_38_truncated_thinking_is_not_sent_again_as_the_answer(think_tok):  # omlx#2457
    thinking, text, finish = run(ChatDecoder(think_tok, max_tokens=3), think_tok.encode("<think>hmm</think>"))
    assert (thinking, text, finish.reason) == ("hm", "", FinishReason.LENGTH)


def test_lesson_39_a_tag_mentioned_in_a_sentence_stays_text(think_tok):  # hermes-agent#6958
    text = "Put it between `<think>` and `</think>` tags."
    assert answer(think_tok, think_tok.encode(text)) == text


def test_lesson_41_a_decoder_that_is_reset_knows_nothing_of_the_last_answer(think_tok):  # sglang#8914
    decoder = ChatDecoder(think_tok, stop=["zz"])
    decoder.feed([*think_tok.encode("<think>a"), 0xF0, 122])
    decoder.reset()
    assert run(decoder, [122, 65])[:2] == ("", "zA")


def test_lesson_44_the_bytes_of_the_ids_are_the_bytes_of_the_text(tok):  # vllm#27300
    ids = list("é👩".encode())
    deltas = ChatDecoder(tok).feed(ids)
    assert b"".join(tok.token_bytes(token_id) for d in deltas for token_id in d.token_ids) == "é👩".encode()


def test_lesson_48_two_tags_in_one_chunk():  # litellm#14121
    assert [text for _, text in ReasoningParser("think").step("<think>a</think>b")] == ["a", "b"]


# -- closing -----------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_lesson_45_leaving_closes_an_idle_engine(tok):  # sglang#36475
    closed = anyio.Event()

    async def idle_engine():
        try:
            yield [65]
            await anyio.sleep_forever()
        finally:
            closed.set()

    async with aclosing(decode_chat(idle_engine(), tok)) as deltas:
        assert not isinstance(await anext(deltas), Finish)
    with anyio.fail_after(0.1):
        await closed.wait()
