"""One answer without `async`."""

import inspect

import pytest

import tokenweir
from tokenweir import Finish, FinishReason, Recording, ReplayEngine, Sampling

MESSAGES = [{"role": "user", "content": "Hi"}]


def ask(**options):
    tokenizer = tokenweir.Tokenizer.default()
    ids = tokenizer.encode(
        '<think>\nWell.\n</think>\n\nHi.<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    )
    engine = ReplayEngine([Recording(name="call", prompt="", ids=tuple(ids), waits_ms=(0.0,) * len(ids))], speed=None)
    return tokenweir.ask(
        MESSAGES, engine=engine, tokenizer=tokenizer, reasoning="think", tool_style="hermes", **options
    )


def test_an_answer_is_a_message_and_a_finish():
    answer = ask()
    assert isinstance(answer.finish, Finish)
    assert answer.finish.reason is FinishReason.TOOL_CALLS
    assert answer.text == answer.message["content"]
    assert answer.text.strip() == "Hi."
    assert answer.message["reasoning_content"].strip() == "Well."
    (call,) = answer.message["tool_calls"]
    assert call["function"] == {"name": "add", "arguments": '{"a": 1}'}


def test_it_takes_the_arguments_of_chat():
    ours, chats = inspect.signature(tokenweir.ask), inspect.signature(tokenweir.chat)
    assert ours.parameters == chats.parameters


def test_several_answers_are_refused():
    with pytest.raises(ValueError, match=r"^ask\(\) returns one answer: use chat\(\) for sampling.n above 1$"):
        ask(sampling=Sampling(n=2))


async def test_it_does_not_run_inside_an_event_loop():
    with pytest.raises(RuntimeError, match="[Aa]lready running"):
        ask()
