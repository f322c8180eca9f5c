"""Messages of histories, and the templates at hand that they are rendered by."""

from functools import cache

from template_files import template_files

from tokenweir import ChatTemplate, TemplateError

ROLES = {"bos_token": "<s>", "eos_token": "</s>"}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "d",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "c"}}},
    },
}
ASKED = {"role": "user", "content": "Weather?"}
WRITES_ARGUMENTS = (
    "{% for k, v in messages[-1].tool_calls[0].function.arguments.items() %}{{ k }}={{ v | tojson }};{% endfor %}"
)


@cache
def templates():
    sources = template_files("fidelity-4/templates")
    return {name: ChatTemplate(source, special_tokens=ROLES) for name, source in sources.items()}


def call(arguments, call_id="callAAAAA", name="get_weather"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def said(content="", *calls, **fields):
    message = {"role": "assistant", "content": content, **fields} | ({"tool_calls": list(calls)} if calls else {})
    return {key: value for key, value in message.items() if value is not ...}


def result(content="RES", call_id="callAAAAA"):
    return {"role": "tool", "tool_call_id": call_id, "name": "get_weather", "content": content}


def tidied(template, *messages, **options):
    return template.render(list(messages), tools=[TOOL], tidy=True, **options)


@cache
def with_calls():
    """The templates that take a call and its result, by name."""
    found = {}
    for name, template in templates().items():
        try:
            text = tidied(template, ASKED, said("", call({"city": "BERN"})), result()).text
        except TemplateError:
            continue
        if "BERN" in text and "RES" in text:
            found[name] = template
    return found
