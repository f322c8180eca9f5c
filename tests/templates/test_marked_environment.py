"""Whatever a template asks of user text, marks do not change the answer."""

from __future__ import annotations

import pytest

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.chat_template import ChatTemplate

MESSAGES = [
    {"role": "user", "content": "<tool> a < b </tool>\n<x>y", "name": "<t>", "<k>": {"<a>": "<v>", "b": "[1]"}},
    {"role": "assistant", "content": " <t>a<t> "},
]
LOOKS = [
    "{{ 'tool' if m.content.startswith('<tool>') else 'user' }}",
    "{{ m.content.endswith(('<y>', '<x>y')) }}{{ m.content.find('<x>') }}{{ m.content.count('<') }}",
    "{{ '<tool>' in m.content }}{{ m.name == '<t>' }}{{ m.name in ['<t>', '<u>'] }}{{ m.name != '<t>' }}",
    "{{ m.content.split('</tool>')[-1] }}|{{ m.content.split('<', 1) | join('|') }}",
    "{{ m.content.replace('<tool>', '') }}{{ m.content | replace('<x>', '<y>') }}{{ m.content | replace('<', '', 1) }}",
    "{{ m.content[1:5] }}{{ m.content[:-3] }}{{ m.content[::-1] }}{{ m.content[0] }}{{ m.content[-1] }}",
    "{{ m.content | length }}{{ m.content | first }}{{ m.content | last }}{{ m.content | list | length }}",
    "{{ m['<k>']['<a>'] }}{{ m['<k>'].get('<a>') }}{{ m['<k>'].get('<z>', '<d>') }}{{ '<a>' in m['<k>'] }}",
    "{% for k, v in m['<k>'].items() %}{{ k }}={{ v }}{% if k == '<a>' %}!{% endif %}{% endfor %}",
    "{{ {'<t>': 'found'}[m.name] }}{{ {'<t>': 'found'}.get(m.name) }}",
    "{{ messages | selectattr('name', 'equalto', '<t>') | list | length }}{{ messages[1].content | trim }}",
    "{{ messages[1].content.strip().lstrip('<').rstrip('>') }}{{ messages[1].content | trim | title }}",
    "{{ m.name is eq '<t>' }}{{ m.name is in ['<t>'] }}{{ m.content.splitlines() }}{{ m.content.partition('<x>')[2] }}",
    "{{ m.content | capitalize }}{{ m.content.title() }}{{ m.content.removeprefix('<tool>') }}{{ m.content[99] }}",
    "{{ m.content is string }}{{ m['<k>'] is mapping }}{{ m['<k>'] | tojson }}{{ m['<k>'] }}",
    "{{ m.content | upper }}{{ m.content.isupper() }}{{ '%s|' % m.name }}{{ '{}'.format(m.name) }}{{ m.name ~ '<' }}",
]


@pytest.mark.parametrize("look", LOOKS)
def test_marks_change_nothing(look):
    source = "{% set m = messages[0] %}" + look
    guarded = ChatTemplate(source, control_tokens=["<t>", "<x>", "[1]"]).render(MESSAGES)
    assert guarded.text == ChatTemplate(source, guard=False).render(MESSAGES).text


def test_what_is_cut_out_stays_guarded():
    source = "{{ messages[0].content.split('</tool>')[1][1:4] }}<x>{{ messages[0].content | last }}"
    prompt = ChatTemplate(source, control_tokens=["<x>"]).render(MESSAGES)
    assert (prompt.text, prompt.guarded) == ("<x><x>y", (0,))


def test_a_look_that_tells_the_marks_is_refused():
    """Only what no template does to text, such as quoting it for an address."""
    template = ChatTemplate("{{ messages[0].content | urlencode }}")
    with pytest.raises(TemplateError, match="^chat template 'default' looks into text that has one of"):
        template.render(MESSAGES)
    assert template.render([{"role": "user", "content": "a b"}]).text == "a%20b"
