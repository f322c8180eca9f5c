"""Mistakes of other projects, a short test or two for each. The numbers are those of a survey of their issue trackers;
each test names the issue that it comes from. Those that concern decoding are in `test_lessons_decoding.py`, and those that
concern serving among the server's tests."""

from __future__ import annotations

import re
from contextlib import aclosing
from itertools import combinations
from pathlib import Path

import anyio
import pytest
from drawn_answers import text_of
from msgspec.structs import replace

from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.stages import decode_chat
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.stops import StopStrings
from tokenweir.stream.events.deltas import Finish, FinishReason, ReasoningDelta, TextDelta
from tokenweir.templates.styles.reasoning import STYLES

ROOT = Path(__file__).resolve().parents[2]
HARMONY = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>")


@pytest.fixture
def gpt_oss(make_tok):
    return make_tok(*(AddedToken(mark, special=True) for mark in HARMONY))


def run(decoder, ids, size=1):
    deltas = [delta for at in range(0, len(ids), size) for delta in decoder.feed(ids[at : at + size])]
    deltas += decoder.finish()
    return text_of(deltas, ReasoningDelta), text_of(deltas, TextDelta), deltas[-1]


def answer(tok, ids, **options):
    return run(ChatDecoder(tok, **options), list(ids))[1]


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


def test_lesson_42_the_end_tokens_of_all_files_are_one_set(data, tmp_path):  # mlx-vlm#2112
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).symlink_to(data(f"tokenizers/qwen3/{name}"))
    (tmp_path / "config.json").write_text('{"eos_token_id": 151643}')
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [151643, 151662]}')
    qwen = Tokenizer.from_file(tmp_path)
    assert qwen.eos_ids == {151643, 151645, 151662}
    for end in qwen.eos_ids:
        assert answer(qwen, [*qwen.encode("Hi"), end, *qwen.encode("!")]) == "Hi"


def test_lesson_43_stop_ids_are_checked_when_the_decoder_is_made(tok):  # gonka#1170
    with pytest.raises(TokenIdError, match=r"^stop_token_ids: token id 99999 is outside the vocabulary \(0 to 303\)$"):
        ChatDecoder(tok, stop_token_ids=[99999], min_tokens=5)


# -- thinking ----------------------------------------------------------------------------------------------------------


def test_lesson_31_tags_in_any_cutting_give_the_same(tok):  # lmdeploy#4754, dynamo#10569
    for text in (b"<think>a < b</think>c</", b"\n<thin<think>", b"<think>a</thin</think>b<"):
        results = set()
        for first, second in combinations(range(len(text) + 1), 2):
            decoder = ChatDecoder(tok, reasoning="think")
            cut = decoder.feed(list(text[:first])) + decoder.feed(list(text[first:second]))
            thinking, rest, _ = run(decoder, list(text[second:]), len(text))
            results.add((text_of(cut, ReasoningDelta) + thinking, text_of(cut, TextDelta) + rest))
        assert len(results) == 1


def test_lesson_32_text_before_the_opener_is_routed_one_way(tok):  # sglang#35083
    for text, expected in (
        (b"\n<think>abc</think>answer", ("abc", "answer")),
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


def test_lesson_40_a_malformed_header_surfaces_as_text_with_the_reason(gpt_oss):  # harmony#38, vllm#51977
    for header in ("<|channel|>analysis to=<|message|>", "<|channel|>musing<|message|>", "<|channel|>final<|channel|>"):
        ids = gpt_oss.encode(header + "so<|end|><|start|>assistant<|channel|>final<|message|>Hello")
        for size in (1, 3, len(ids)):
            decoder = ChatDecoder(gpt_oss)
            deltas = [delta for at in range(0, len(ids), size) for delta in decoder.feed(ids[at : at + size])]
            deltas += decoder.finish()
            assert text_of([delta for delta in deltas if getattr(delta, "malformed", None)], TextDelta) == header + "so"
            assert text_of([delta for delta in deltas if not getattr(delta, "malformed", 1)], TextDelta) == "Hello"
            assert deltas[-1].reason is FinishReason.STOP


def test_lesson_41_bad_bytes_swallow_nothing_and_no_state_is_left(gpt_oss):  # harmony PR#83
    ids = [*gpt_oss.encode("<|channel|>final<|message|>a"), 0xE4, *gpt_oss.encode("b<|end|>")]
    decoder = ChatDecoder(gpt_oss)
    assert run(decoder, ids)[:2] == ("", "a\ufffdb")
    decoder.reset()
    assert run(decoder, gpt_oss.encode("<|channel|>analysis<|message|>hm"))[:2] == ("hm", "")


def test_lesson_41_a_decoder_that_is_reset_knows_nothing_of_the_last_answer(think_tok):  # sglang#8914
    decoder = ChatDecoder(think_tok, stop=["zz"])
    decoder.feed([*think_tok.encode("<think>a"), 0xF0, 122])
    decoder.reset()
    assert run(decoder, [122, 65])[:2] == ("", "zA")


def test_lesson_44_the_bytes_of_the_ids_are_the_bytes_of_the_text(tok):  # vllm#27300
    text = "é👩 boxes 日本!"
    ids = [*"é👩".encode(), *tok.encode(" boxes 日本!")]
    logprobs = [-float(number) for number in range(len(ids))]
    for size in range(1, len(ids) + 1):
        decoder = ChatDecoder(tok, alignment=True)
        given = [decoder.feed(ids[at : at + size], logprobs[at : at + size]) for at in range(0, len(ids), size)]
        parts = [delta.alignment for deltas in [*given, decoder.finish()] for delta in deltas]
        assert b"".join(token for part in parts for token in part.token_bytes) == text.encode()
        assert [logprob for part in parts for logprob in part.logprobs] == logprobs


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


def test_every_lesson_has_its_test():
    names = [
        name for file in ROOT.rglob("test_*.py") for name in re.findall(r"def test_lesson_(\w+)", file.read_text())
    ]
    assert {int(number) for name in names for number in re.findall(r"(?:^|_and_)(\d+)", name)} == {*range(1, 49)}
