"""Completions as they go out: the offsets of tokens go on from one delta to the next."""

from __future__ import annotations

import json

import pytest

from tokenweir.stream.events.deltas import Alignment, Finish, FinishReason, TextDelta
from tokenweir.stream.events.prompt_scores import EchoedPrompt
from tokenweir.stream.serve.wire.openai.completions import CompletionAnswer, parse_completion
from tokenweir.stream.serve.wire.shared.answer_format import AnsweredPrompt


def delta(text, start):
    tokens = [letter.encode() for letter in text]
    size = len(tokens)
    return TextDelta(
        text, list(range(size)), 0, alignment=Alignment([-0.5] * size, tokens, start, start, [], [True] * size)
    )


@pytest.mark.parametrize("echo", [None, EchoedPrompt("Once", None)])
def test_offsets_go_on_from_delta_to_delta(echo):
    deltas = [delta("ab", 0), delta("c", 2), delta("de", 3), Finish(FinishReason.STOP)]
    request = parse_completion({"prompt": "Once", "logprobs": 1, "echo": echo is not None})
    whole, streamed = (CompletionAnswer(request, "m", 1) for _ in range(2))
    prompt = AnsweredPrompt(echo=echo)
    whole.add(deltas, prompt)
    before = 0 if echo is None else 4
    expected = [before + at for at in range(5)]
    choice = json.loads(whole.whole())["choices"][0]
    assert choice["logprobs"]["text_offset"] == expected
    assert (choice["text"], choice["logprobs"]["tokens"]) == ("Once" * bool(before) + "abcde", list("abcde"))
    events = [json.loads(event.removeprefix(b"data: ")) for event in streamed.chunks(deltas, prompt)]
    rows = [event["choices"][0]["logprobs"] for event in events]
    assert [offset for row in rows if row for offset in row["text_offset"]] == expected
