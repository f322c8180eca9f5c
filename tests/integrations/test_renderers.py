"""Renderers for any template: beside the library's own renderers where it is installed, and the bridge beside full renders."""

from __future__ import annotations

import sys
from dataclasses import make_dataclass
from enum import StrEnum
from importlib.util import find_spec
from types import ModuleType

import pytest
from msgspec.structs import replace
from real_tokenizers import real_tokenizer

from tokenweir import ChatTemplate, Tokenizer
from tokenweir.encode.spec import AddedToken
from tokenweir.integrations.renderers import TemplateRenderer
from tokenweir.integrations.verl import TokenBuilder

USER = {"role": "user", "content": "Hi there"}
CALLS = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]
RESULT = {"role": "tool", "content": "res", "tool_call_id": "c1", "name": "f"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "description": "d",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
        },
    }
]
THOUGHT = {"role": "assistant", "content": "Yes", "reasoning_content": "hm"}
CONVERSATIONS = [
    [USER],
    [{"role": "system", "content": "S"}, USER],
    [USER, THOUGHT],
    [USER, THOUGHT, {"role": "user", "content": "Bye"}],
    [USER, {"role": "assistant", "content": "", "tool_calls": CALLS}, RESULT],
    [
        USER,
        {"role": "assistant", "content": "ok", "tool_calls": CALLS},
        RESULT,
        {"role": "assistant", "content": "done"},
    ],
]
MODELS = {
    "qwen3": ("Qwen-Qwen3-0.6B", "<|im_end|>", {}),
    "llama-3.1": ("meta-llama-Llama-3.1-8B-Instruct", "<|eot_id|>", {"date_string": "26 Jul 2024"}),
}


STAND_INS = {
    "RenderedTokens": "token_ids message_indices sampled_mask is_content message_roles message_tool_names",
    "ParsedToolCall": "raw name arguments status",
    "ParsedResponse": "content reasoning_content tool_calls reasoning_complete",
}
"""The classes of the library that take results, and their fields."""


@pytest.fixture(autouse=True)
def library(monkeypatch):
    """The library `renderers`, or stand-ins for the classes that it takes results in."""
    if find_spec("renderers") is not None:
        return
    base = ModuleType("renderers.base")
    base.ToolCallParseStatus = StrEnum("ToolCallParseStatus", ["OK", "INVALID_JSON"])
    for name, names in STAND_INS.items():
        setattr(base, name, make_dataclass(name, names.split()))
    monkeypatch.setitem(sys.modules, "renderers", ModuleType("renderers"))
    monkeypatch.setitem(sys.modules, "renderers.base", base)


@pytest.fixture(params=MODELS)
def model(request, data):
    name, end, kwargs = MODELS[request.param]
    tokenizer = real_tokenizer(data(f"tokenizers/{request.param}"))
    source = data(f"templates/{name}.jinja")
    special = tokenizer.spec.special_roles if request.param == "qwen3" else {"bos_token": "<|begin_of_text|>"}
    template = ChatTemplate.from_file(source, special_tokens=special, control_tokens=tokenizer.control_texts)
    return request.param, tokenizer, template, end, kwargs


def test_turns_and_masks_are_those_of_the_librarys_own_renderers(model, data):
    pytest.importorskip("renderers.qwen3")
    transformers = pytest.importorskip("transformers")
    from renderers.llama_3 import Llama3Renderer
    from renderers.qwen3 import Qwen3Renderer

    name, tokenizer, template, _, kwargs = model
    hf = transformers.AutoTokenizer.from_pretrained(data(f"tokenizers/{name}"))
    theirs = (Qwen3Renderer if name == "qwen3" else Llama3Renderer)(hf)
    ours = TemplateRenderer(tokenizer, template, **kwargs)
    for messages in CONVERSATIONS:
        for tools in (None, TOOLS):
            for generating in (False, True):
                a = theirs.render(messages, tools=tools, add_generation_prompt=generating)
                b = ours.render(messages, tools=tools, add_generation_prompt=generating)
                assert (a.token_ids, a.sampled_mask, a.message_roles) == (b.token_ids, b.sampled_mask, b.message_roles)
                begin = int(name != "qwen3")  # the <|begin_of_text|> before a first message
                assert a.message_indices[begin:] == b.message_indices[begin:]
                if name == "qwen3":  # Llama's template quotes results
                    assert a.is_content == b.is_content


def test_what_a_model_samples_is_marked(model):
    _, tokenizer, template, end, kwargs = model
    renderer = TemplateRenderer(tokenizer, template, **kwargs)
    found = renderer.render([USER, {"role": "assistant", "content": "Yes"}, USER])
    texts = [tokenizer.decode([i], skip_special_tokens=False) for i in found.token_ids]
    assert [text for text, flag in zip(texts, found.sampled_mask, strict=True) if flag] == ["Yes", end]
    assert "".join(t for t, flag in zip(texts, found.is_content, strict=True) if flag) == f"Hi thereYes{end}Hi there"
    assert [number for number in dict.fromkeys(found.message_indices) if number >= 0] == [0, 1, 2]
    assert found.token_ids == renderer.render_ids([USER, {"role": "assistant", "content": "Yes"}, USER])


def test_a_role_token_that_ends_an_answer_belongs_to_it():
    """As in GLM's templates, where the next turn begins with the token that a model generates last."""
    added = [AddedToken(token, special=True) for token in ("<|user|>", "<|assistant|>")]
    tokenizer = Tokenizer.default().with_added_tokens(added)
    end = tokenizer.token_to_id("<|user|>")
    tokenizer = Tokenizer.from_spec(replace(tokenizer.spec, eos_ids=(end,), special_roles={}))
    source = (
        "{% for m in messages %}{% if m.role == 'user' %}<|user|>{% else %}<|assistant|>{% endif %}\n{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    )
    renderer = TemplateRenderer(tokenizer, ChatTemplate(source, control_tokens=tokenizer.control_texts))
    found = renderer.render([USER, {"role": "assistant", "content": "Yes"}, USER])
    ends = [place for place, token_id in enumerate(found.token_ids) if token_id == end]
    assert [found.sampled_mask[place] for place in ends] == [False, True]
    assert [found.message_indices[place] for place in ends] == [0, 1]
    assert [found.message_indices[place + 1] for place in ends] == [0, 2]
    assert all(found.message_indices[at] == 1 for at, flag in enumerate(found.sampled_mask) if flag)


def test_a_model_without_thinking_has_no_state_of_it():
    tokenizer = Tokenizer.default()
    template = ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    parsed = TemplateRenderer(tokenizer, template).parse_response(tokenizer.encode("Yes"))
    assert (parsed.content, parsed.reasoning_content, parsed.reasoning_complete) == ("Yes", None, None)


@pytest.mark.parametrize("tools", [None, TOOLS])
@pytest.mark.parametrize("cut", [False, True])
def test_the_bridge_is_the_full_render(model, tools, cut):
    """Sampled ids that the template writes, too: then earlier ids and new ones are the render of all."""
    _, tokenizer, template, end, kwargs = model
    renderer = TemplateRenderer(tokenizer, template, **kwargs)
    prompt = renderer.render_ids([USER], tools=tools, add_generation_prompt=True)
    completion = tokenizer.encode("Yes, indeed" + ("" if cut else end), add_special_tokens=False)
    new = [{"role": "user", "content": "Bye \U0001f9ca"}]
    found = renderer.bridge_to_next_turn(prompt, completion, new, tools=tools)
    whole = renderer.render(
        [USER, {"role": "assistant", "content": "Yes, indeed"}, *new], tools=tools, add_generation_prompt=True
    )
    assert found.token_ids == whole.token_ids
    assert found.token_ids[: len(prompt) + len(completion)] == prompt + completion
    before = len(prompt) + len(completion)
    assert found.message_indices[before:] == [n - 2 if n >= 2 else -1 for n in whole.message_indices[before:]]
    assert (
        found.is_content[before:]
        == [f and n >= 2 for f, n in zip(whole.is_content, whole.message_indices, strict=True)][before:]
    )
    assert not any(found.sampled_mask)


def test_the_bridge_keeps_spellings_that_no_template_writes(model):
    _, tokenizer, template, end, kwargs = model
    renderer = TemplateRenderer(tokenizer, template, **kwargs)
    prompt = renderer.render_ids([USER], add_generation_prompt=True)
    odd = [i for text in "Yes" for i in tokenizer.encode(text, add_special_tokens=False)]
    completion = odd + tokenizer.encode(end, add_special_tokens=False)
    found = renderer.bridge_to_next_turn(prompt, completion, [USER])
    assert found.token_ids[: len(prompt) + len(completion)] == prompt + completion
    assert tokenizer.decode(found.token_ids[len(prompt) :]) != ""


def test_a_result_follows_a_call(model):
    name, tokenizer, template, end, kwargs = model
    renderer = TemplateRenderer(tokenizer, template, **kwargs)
    prompt = renderer.render_ids([USER], tools=TOOLS, add_generation_prompt=True)
    call = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    text = (call if name == "qwen3" else '{"name": "f", "parameters": {"a": 1}}') + end
    completion = tokenizer.encode(text, add_special_tokens=False)
    found = renderer.bridge_to_next_turn(prompt, completion, [RESULT], tools=TOOLS)
    messages = [USER, {"role": "assistant", "content": "", "tool_calls": CALLS}, RESULT]
    assert found.token_ids == renderer.render_ids(messages, tools=TOOLS, add_generation_prompt=True)
    parsed = renderer.parse_response(completion, tools=TOOLS, prompt_ids=prompt)
    assert [(one.name, one.arguments, one.status) for one in parsed.tool_calls] == [("f", {"a": 1}, "ok")]


def test_what_cannot_be_bridged_is_said(data):
    tokenizer = real_tokenizer(data("tokenizers/qwen3"))
    template = ChatTemplate.from_file(data("templates/Qwen-Qwen3-0.6B.jinja"), control_tokens=tokenizer.control_texts)
    renderer = TemplateRenderer(tokenizer, template)
    prompt = renderer.render_ids([USER], add_generation_prompt=True)
    thought = tokenizer.encode("<think>\nhm\n</think>\n\nYes<|im_end|>")
    cases = [
        (thought, [USER], "the template drops the answer's thinking"),
        (thought, [THOUGHT], "a new message is an assistant's"),
        (thought, [], "there is no answer, or nothing new"),
        ([], [USER], "there is no prompt or no answer"),
        (tokenizer.encode("<think>\nhm"), [USER], "the answer ends inside its thinking"),
        (
            tokenizer.encode('<tool_call>\n{"name": "f", "arguments": {"a'),
            [RESULT],
            "a call of the answer is not complete",
        ),
    ]
    for completion, new, reason in cases:
        assert renderer.bridge_to_next_turn(prompt, completion, new) is None
        assert renderer.declined == reason
    kept = TemplateRenderer(tokenizer, template, keep_thinking=True).bridge_to_next_turn(prompt, thought, [USER])
    assert kept.token_ids[: len(prompt) + len(thought)] == prompt + thought
    parsed = renderer.parse_response(thought, prompt_ids=prompt)
    assert (parsed.content.strip(), parsed.reasoning_content.strip(), parsed.reasoning_complete) == ("Yes", "hm", True)
    assert renderer.parse_response(tokenizer.encode("<think>\nhm")).reasoning_complete is False
    assert renderer.get_stop_token_ids() == sorted(tokenizer.eos_ids)


def test_a_template_that_moves_the_system_message_is_not_bridged(data):
    """Mistral's templates write it into the last user's turn."""
    tokenizer = real_tokenizer(data("tokenizers/qwen3"))
    source = (
        "{% for m in messages %}{% if m.role != 'system' %}<|im_start|>{{ m.role }}\n"
        "{% if loop.last and messages[0].role == 'system' %}{{ messages[0].content }}\n{% endif %}"
        "{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    renderer = TemplateRenderer(tokenizer, ChatTemplate(source, control_tokens=tokenizer.control_texts))
    prompt = renderer.render_ids([USER], add_generation_prompt=True)
    assert renderer.bridge_to_next_turn(prompt, tokenizer.encode("Yes<|im_end|>"), [USER]) is None
    assert renderer.declined == "the template writes messages[0].content behind the answer"


def test_prefix_stability_is_found_by_rendering(model):
    """Qwen3's template drops thinking once a user speaks again; Llama's writes the same text."""
    name, tokenizer, template, _, kwargs = model
    assert TemplateRenderer(tokenizer, template, **kwargs).is_prefix_stable == (name == "llama-3.1")


def test_verls_builder_appends_what_the_template_writes(model):
    _, tokenizer, template, end, kwargs = model
    builder = TokenBuilder(tokenizer, template, chat_template_kwargs=kwargs)
    ids = builder.build_initial_tokens([USER])
    mask, logprobs = [], []
    sampled = tokenizer.encode("Yes" + end, add_special_tokens=False)
    merged = builder.merge_assistant_tokens(ids, sampled)
    mask, logprobs = builder.align_response_metadata(merged, mask, logprobs, assistant_logprobs=[-0.5] * len(sampled))
    answer = {"role": "assistant", "content": "Yes"}
    following = builder.merge_context_tokens([USER, answer], [USER, answer, USER], merged.token_ids)
    whole = template.render([USER, answer, USER], add_generation_prompt=True, **kwargs).encode(tokenizer)
    assert following.token_ids == whole
    mask, logprobs = builder.align_response_metadata(following, mask, logprobs)
    assert len(mask) == len(logprobs) == len(whole) - len(ids)
    assert mask == [1] * len(sampled) + [0] * following.appended_token_count
    cut = builder.merge_context_tokens([USER, answer], [USER, answer, USER], merged.token_ids[:-1])
    assert cut.token_ids == whole
    assert cut.inserted_token_ids == sampled[-1:]
    mask, _ = builder.align_response_metadata(cut, [1])
    assert mask == [1] + [0] * (1 + cut.appended_token_count)
    with pytest.raises(ValueError, match=r"^the updated messages do not begin with the previous ones$"):
        builder.merge_context_tokens([USER, answer], [answer, USER], ids)
    with pytest.raises(ValueError, match=r"^there are 0 assistant_logprobs for \d ids$"):
        builder.align_response_metadata(merged, [], [])
    if others := sorted(tokenizer.eos_ids - {sampled[-1]}):
        with pytest.raises(ValueError, match=r"^the messages cannot be appended: the answer ends with "):
            builder.merge_context_tokens([USER, answer], [USER, answer, USER], [*merged.token_ids[:-1], others[0]])
