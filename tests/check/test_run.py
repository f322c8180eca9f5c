"""Each check finds its fault in a template that has it, and none in the embedded one."""

from __future__ import annotations

import pytest

from tokenweir.check.model import Model, template_alone
from tokenweir.check.run import run_checks
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content or '' }}"
    '{% for c in m.tool_calls %}<tool_call>\n{"name": "{{ c.function.name }}", '
    '"arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def findings(source, **options):
    tok = Tokenizer.default()
    template = ChatTemplate(source, special_tokens={}, control_tokens=tok.control_texts, **options)
    return {finding.check: finding for finding in run_checks(Model(tok, template))}


def verdicts(source, **options):
    return {name: finding.verdict for name, finding in findings(source, **options).items()}


def test_a_sound_template():
    found = findings(CHATML)
    assert {name for name, finding in found.items() if finding.verdict == "fault"} == set()
    names = ("content", "thinking", "a call", "a call behind content", "a call behind thinking", "two calls")
    assert {found[f"reads back: {name}"].verdict for name in names} == {"ok"}
    assert {found[f"later turns keep: {name}"].verdict for name in ("answers", "answers with thinking", "calls")} == {
        "ok"
    }
    assert found["style of thinking"].text.startswith(
        "think, by the template's <think>, </think>; its tags are control"
    )
    assert found["style of calls"].text.startswith("hermes, by the template's <tool_call>")
    assert found["an answer ends with an end token"].text == "<|im_end|>"
    assert found["spelled tokens stay text: a user's message"].text.startswith("12 of 12 would be control tokens")


def test_a_template_that_renders_nothing():
    (finding,) = findings("{{ raise_exception('no') }}").values()
    assert (finding.check, finding.verdict) == ("renders", "fault")
    assert finding.example.endswith("no")


def test_a_template_that_needs_tools():
    found = findings("{% for t in tools %}{{ t.function.name }}{% endfor %}" + CHATML)
    assert found["renders"].verdict == "note"
    assert found["reads back: content"].verdict == "ok"


def test_calls_that_do_not_come_back():
    found = findings(CHATML.replace('"name": "{{', '"called": "{{'))
    assert found["reads back: a call"].verdict == "fault"
    assert '"calls": [["look_up", {"city": "Bern", "days": 3}]]}, read ' in found["reads back: a call"].example
    assert found["reads back: content"].verdict == "ok"


def test_several_calls_of_a_template_of_single_calls():
    """Tidying writes them as several messages, which are no answer of one."""
    refusal = "{% if m.tool_calls | length > 1 %}{{ raise_exception('one call') }}{% endif %}"
    found = findings(CHATML.replace("{% for c in", refusal + "{% for c in"))["reads back: two calls"]
    assert (found.verdict, found.text) == ("note", "written by tidying alone, as several messages")


def test_content_that_is_written_as_thinking():
    source = CHATML.replace(
        "{{ m.content or '' }}", "{% if m.role == 'assistant' %}<think>{% endif %}{{ m.content or '' }}"
    )
    assert findings(source)["reads back: content"].text == "the template writes the content as thinking"


def test_an_opening_that_histories_lack():
    source = CHATML.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
    assert verdicts(source)["reads back: thinking"] == "ok"


def test_thinking_that_is_dropped():
    source = CHATML.replace("and m.reasoning_content", "and m.reasoning_content and loop.last")
    found = findings(source)["later turns keep: answers with thinking"]
    assert found.verdict == "note"
    assert found.example.startswith("behind 62 characters: '<think>\\nI look around.")


def test_spelled_tokens_without_the_guard(monkeypatch):
    found = verdicts(CHATML, guard=False)
    assert found["spelled tokens stay text: a user's message"] == "fault"
    assert found["spelled tokens stay text: a result"] == "fault"
    assert found["spelled tokens stay text: a tool's description"] == "absent"


@pytest.mark.parametrize(
    ("begins", "verdict"), [("<s>", "ok"), ("<s><s>", "fault"), ("", "absent")], ids=["once", "twice", "never"]
)
def test_begin_tokens(begins, verdict):
    tok = Tokenizer.default().with_added_tokens([AddedToken("<s>", special=True)])
    spec = tok.spec
    from msgspec.structs import replace

    tok = Tokenizer.from_spec(replace(spec, special_roles={**spec.special_roles, "bos_token": "<s>"}))
    template = ChatTemplate(begins + CHATML, control_tokens=tok.control_texts)
    found = {finding.check: finding.verdict for finding in run_checks(Model(tok, template))}
    assert found["one begin-of-text token"] == verdict


def test_an_answer_without_an_end_token():
    assert verdicts(CHATML.replace("<|im_end|>", "[end]"))["an answer ends with an end token"] == "note"


def test_results_in_another_order():
    by_ids = CHATML.replace("{{ m.content or '' }}", "{{ m.tool_call_id }}{{ m.content or '' }}").replace(
        '{"name"', '{"id": "{{ c.id }}", "name"'
    )
    found = findings(by_ids)
    assert found["results are tied to calls"].text == "by the ids of the calls"
    assert findings(CHATML)["results are tied to calls"].text == "by their order, which tidying keeps"


def test_contents_that_become_words():
    found = verdicts(CHATML.replace("{{ m.content or '' }}", "{{ m.content }}"))
    assert found["content: None beside a call"] in ("note", "ok")  # tidying gives an empty text
    assert found["content: parts of a user"] == "ok"


def test_roles_that_are_left_out():
    source = CHATML.replace("{% for m in messages %}", "{% for m in messages if m.role != 'system' %}")
    found = findings(source)["roles: a system message"]
    assert (found.verdict, found.text) == ("note", "left out: 'Be brief.'")


def test_a_template_alone_brings_its_tokens(tmp_path):
    path = tmp_path / "a.jinja"
    path.write_text(CHATML.replace("<|im_end|>", "{{ '<|the_' ~ 'end|>' }}"))
    model = template_alone(path)
    assert model.tokenizer.token_to_id("<|the_end|>") is not None
    found = {finding.check: finding for finding in run_checks(model)}
    assert found["reads back: a call"].verdict == "ok"
    assert found["an answer ends with an end token"].verdict == "absent"
