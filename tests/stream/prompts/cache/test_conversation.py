"""`Conversation`: its prompts are those of its messages, and forks share what they have in common."""

import pytest

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.cache.conversation import Conversation
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.templates.chat_template import ChatTemplate

TOKENIZER = Tokenizer.default()
TEMPLATE = ChatTemplate.from_tokenizer(TOKENIZER)
TOOLS = [{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}}]
LONG = "some words again. " * 100


def test_turns_cost_what_is_new():
    conversation = Conversation(TEMPLATE, TOKENIZER, TOOLS, enable_thinking=False)
    for turn in range(5):
        conversation.add({"role": "user", "content": f"{turn}: {LONG}"})
        found = conversation.prompt()
        expected = TEMPLATE.render(conversation.messages, tools=TOOLS, enable_thinking=False)
        assert found.text == expected.text
        assert found.ids.tolist() == expected.encode(TOKENIZER)
        conversation.add({"role": "assistant", "content": "Yes."})
    assert found.reused.ids > 0.7 * len(found.ids)
    assert repr(conversation) == "Conversation(10 messages)"


def test_forks_go_their_own_way():
    prompts = PromptCache()
    conversation = Conversation(TEMPLATE, TOKENIZER, prompts=prompts, tenant="a")
    conversation.add({"role": "user", "content": LONG})
    conversation.prompt()
    forks = [conversation.fork() for _ in range(3)]
    for number, fork in enumerate(forks):
        fork.add({"role": "assistant", "content": f"Answer {number}"}, {"role": "user", "content": "Go on"})
        found = fork.prompt()
        assert found.ids.tolist() == TEMPLATE.render(fork.messages).encode(TOKENIZER)
        assert found.reused.ids > 300
    assert [len(each.messages) for each in (conversation, *forks)] == [1, 3, 3, 3]


def test_messages_may_be_changed():
    conversation = Conversation(TEMPLATE, TOKENIZER)
    conversation.add({"role": "user", "content": LONG}, {"role": "assistant", "content": "Yes."})
    conversation.add({"role": "user", "content": "Go on"})
    conversation.prompt()
    changes = (
        lambda messages: messages[0].update(content="Other text"),
        lambda messages: messages[1].update(
            tool_calls=[{"type": "function", "function": {"name": "read", "arguments": {}}}]
        ),
        lambda messages: messages[1]["tool_calls"][0]["function"].update(arguments={"x": [1]}),
        lambda messages: messages[1]["tool_calls"][0]["function"]["arguments"]["x"].append(2),
        lambda messages: messages.pop(0),
    )
    for change in changes:
        change(conversation.messages)
        found = conversation.prompt()
        assert found.ids.tolist() == TEMPLATE.render(conversation.messages).encode(TOKENIZER)


def test_answers_keep_their_ids():
    conversation = Conversation(TEMPLATE, TOKENIZER)
    end = TOKENIZER.token_to_id("<|im_end|>")
    answers = []
    for turn in range(3):
        conversation.add({"role": "user", "content": f"Question {turn}"})
        prompt = conversation.prompt()
        ids = [
            *TOKENIZER.encode("Yes", add_special_tokens=False),
            *TOKENIZER.encode("terday", add_special_tokens=False),
            end,
        ]
        assert conversation.answered(ids) == {"role": "assistant", "content": "Yesterday"}
        answers.append(ids)
    final = conversation.prompt(add_generation_prompt=False)
    assert [final.ids[start:end].tolist() for start, end, _ in final.kept] == answers
    assert final.text == TEMPLATE.render(conversation.messages, add_generation_prompt=False).text
    assert len(prompt) < len(final)


def test_an_answer_needs_a_prompt_and_calls_a_message():
    conversation = Conversation(TEMPLATE, TOKENIZER, TOOLS)
    with pytest.raises(ValueError, match="there was no prompt to answer"):
        conversation.answered([1])
    conversation.add({"role": "user", "content": "Hi"})
    conversation.prompt()
    call = '<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call><|im_end|>'
    with pytest.raises(ValueError, match="pass the message"):
        conversation.answered(TOKENIZER.encode(call, add_special_tokens=False))
    conversation.answered([1], {"role": "assistant", "content": "Yes."})
    with pytest.raises(ValueError, match="there was no prompt to answer"):
        conversation.answered([1])


def test_what_is_no_message_or_template_is_refused():
    with pytest.raises(TypeError, match="a message is a mapping, not str"):
        Conversation(TEMPLATE, TOKENIZER).add("Hi")
    with pytest.raises(TypeError, match="template is a str, not a ChatTemplate"):
        Conversation("{{ messages }}", TOKENIZER)
    with pytest.raises(TypeError, match="^prompts is a int, not a PromptCache$"):
        Conversation(TEMPLATE, TOKENIZER, prompts=5)
    with pytest.raises(TypeError, match="^tenant must be str, not NoneType$"):
        Conversation(TEMPLATE, TOKENIZER, tenant=None)
    with pytest.raises(ValueError, match="^history must be one of canonical, exact, sampled, not 'all'$"):
        Conversation(TEMPLATE, TOKENIZER, history="all")


def test_results_are_ordered_and_arguments_mended_if_the_history_is_tidied():
    calls = [
        {"id": each, "type": "function", "function": {"name": "weather", "arguments": given}}
        for each, given in (("a", '{"at": "Bern"}'), ("b", '{"at": "Os'))
    ]
    turns = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "OSLO"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "BERN"}]},
    ]
    conversation = Conversation(TEMPLATE, TOKENIZER, tidy=True)
    for count in (2, 4):
        conversation.messages = turns[:count]
        prompt = conversation.prompt()
        expected = TEMPLATE.render(turns[:count], tidy=True)
        assert prompt.ids.tolist() == expected.encode(TOKENIZER)
    answer = TOKENIZER.encode("Rain.<|im_end|>")
    conversation.answered(answer)
    conversation.add({"role": "user", "content": "Thanks."})
    expected = TEMPLATE.render(conversation.messages, tidy=True)
    assert conversation.prompt().ids.tolist() == expected.encode(TOKENIZER)
    assert conversation.messages[1]["tool_calls"] is calls
