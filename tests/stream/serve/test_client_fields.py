"""Every field that the `openai` and `anthropic` packages can send is in a table, and does what the table says.

`client_fields.toml` has, for each type of each interface, its fields that are honoured, those that change no prompt and no
sampling (`ignored`), those that the prompt omits and the answer's `left_out` names, and those that are refused. Types of items, blocks
and tools may be in such a list as a whole; those in `as_given` are written to the prompt whatever they hold. A field that a new
release brings is in no list, and fails a test.
"""

import tomllib
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsBase as BetaMessage
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsBase as Message
from case_tables import cases
from client_types import Interface, hints_of, key_of, name_of
from openai.types.chat.completion_create_params import CompletionCreateParamsBase as Chat
from openai.types.completion_create_params import CompletionCreateParamsBase as Completion
from openai.types.responses.response_compact_params import ResponseCompactParams
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from pictures import Sighted, data_url, png, wav
from serving import TOK, http_of, serving

from tokenweir.stream.events.step import EngineStep
from tokenweir.stream.serve.wire.responses.compaction import PackedMessage, pack
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)
TABLE = Path(__file__).with_suffix("").with_name("client_fields.toml")
VERDICTS = ("honoured", "ignored", "left_out", "refused")
WHOLE = ("as_given", "left_out", "refused")
LIKE = {"count_tokens": "messages", "compact": "responses"}
"""Interfaces whose types are those of another one, which has them in the table."""
NOT_ASKED = {"previous_response_id", "ItemReference"}
"""A field and a type whose values have to be ids of the server; other tests send them."""

TEMPLATE = ChatTemplate(
    "{% if enable_thinking %}<think>{{ reasoning_effort }}{% endif %}{{ tool_choice }}"
    "{% for tool in tools or [] %}{{ tool.function | tojson }}\n{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.reasoning_content }}{{ m.name }}{{ m.tool_call_id }}"
    "{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content or [] %}"
    "{% if c.type == 'image' %}<image>{% elif c.type == 'audio' %}<audio>{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %}"
    "{% for call in m.tool_calls or [] %}{{ call.id }}{{ call.function | tojson }}{% endfor %}"
    "<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
TEXT = "data:text/plain;base64," + b64encode(b"text").decode()
CHAT_TOOL = {"type": "function", "function": {"name": "x", "parameters": {"type": "object"}}}
TOOL = {"type": "function", "name": "x", "parameters": {"type": "object"}}
MESSAGE_TOOL = {"name": "x", "input_schema": {"type": "object"}}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "x", "input": {}}]}
HI = {"role": "user", "content": "hi"}
COMMON = {"model": "default", "url": data_url(png()), "name": "x", "max_tokens": 9}


class Willing(Sighted):
    """An engine that honours everything and gives logprobs."""

    supports = frozenset(CASES["supports"])

    async def generate(self, prompt_ids, sampling, **more):
        self.prompts.append((TOK.decode(prompt_ids, skip_special_tokens=False), sampling))
        for token_id in TOK.encode("Hi<|im_end|>"):
            tops = [[(token_id, -0.5)] * sampling.top_logprobs] if sampling.top_logprobs else None
            yield EngineStep(ids=[token_id], logprobs=[-0.5], top_logprobs=tops)


CHAT = Interface(
    "/v1/chat/completions",
    Chat,
    COMMON
    | CASES["chat"]
    | {
        "messages": [HI],
        "CompletionCreateParamsBase.tools": [CHAT_TOOL],
        "InputAudio.data": b64encode(wav()).decode(),
        "file_data": TEXT,
        "ChatCompletionAllowedToolsParam.tools": [CHAT_TOOL],
    },
    always={"FileFile": {"file_data": TEXT}},
    before={"ChatCompletionToolMessageParam": [{"role": "assistant", "tool_calls": [CHAT_TOOL | {"id": "x"}]}]},
    beside={
        "CompletionCreateParamsBase.top_logprobs": {"logprobs": True},
        "CompletionCreateParamsBase.tool_choice": {"tools": [CHAT_TOOL]},
        "CompletionCreateParamsBase.parallel_tool_calls": {"tools": [CHAT_TOOL]},
    },
)
COMPLETIONS = Interface("/v1/completions", Completion, COMMON | CASES["completions"])
RESPONSES = Interface(
    "/v1/responses",
    ResponseCreateParamsBase,
    COMMON
    | CASES["responses"]
    | {
        "input": [HI],
        "ResponseCreateParamsBase.tools": [TOOL],
        "ToolChoiceAllowedParam.tools": [TOOL],
        "file_data": TEXT,
        "image_url": data_url(png()),
        "ResponseCompactionItemParamParam.encrypted_content": pack([PackedMessage("user", "x")]),
    },
    always={
        "FunctionCallOutput": {"call_id": "x"},
        "ResponseInputImageParam": {"image_url": data_url(png())},
        "ResponseInputFileParam": {"file_data": TEXT},
        "ResponseInputImageContentParam": {"image_url": data_url(png())},
        "ResponseInputFileContentParam": {"file_data": TEXT},
        "ResponseComputerToolCallOutputScreenshotParam": {"image_url": data_url(png())},
        "McpCall": {"output": "x"},
        "ResponseFileSearchToolCallParam": {"results": []},
    },
    before={key: [HI] for key in CASES["left_out"]}
    | {key: [{"type": "function_call", "call_id": "x", "name": "x", "arguments": "{}"}] for key in CASES["outputs"]},
    beside={
        "ResponseCreateParamsBase.tool_choice": {"tools": [TOOL]},
        "ResponseCreateParamsBase.parallel_tool_calls": {"tools": [TOOL]},
        "ResponseCreateParamsBase": {"input": [HI]},
    },
    history="input",
)
COMPACT = Interface(
    "/v1/responses/compact",
    ResponseCompactParams,
    RESPONSES.samples,
    RESPONSES.before,
    {"ResponseCompactParams": {"input": [HI]}},
    always=RESPONSES.always,
    history="input",
)
PLAIN = {"type": "text", "media_type": "text/plain", "data": "x"}
OF_ASSISTANT = [f"{prefix}{name}BlockParam" for prefix in ("", "Beta") for name in CASES["of_assistant"]]
MESSAGES = Interface(
    "/v1/messages",
    Message,
    COMMON
    | CASES["messages"]
    | {
        "messages": [HI],
        "Base64ImageSourceParam.data": b64encode(png()).decode(),
        "BetaBase64ImageSourceParam.data": b64encode(png()).decode(),
        "MessageCreateParamsBase.tools": [MESSAGE_TOOL],
        "DocumentBlockParam.source": PLAIN,
        "BetaRequestDocumentBlockParam.source": PLAIN,
    },
    before={"ToolResultBlockParam": [HI, USE], "BetaToolResultBlockParam": [HI, USE]},
    beside={"MessageCreateParamsBase.tool_choice": {"tools": [MESSAGE_TOOL]}},
    after={name: [HI] for name in OF_ASSISTANT},
    always={"BetaSystemMessageParam": {"content": "x"}},
    roles=dict.fromkeys(OF_ASSISTANT, "assistant"),
)
COUNT = replace(MESSAGES, path="/v1/messages/count_tokens", root=MessageCountTokensParams)
BETA = replace(MESSAGES, root=BetaMessage)
INTERFACES = {
    "chat": CHAT,
    "completions": COMPLETIONS,
    "responses": RESPONSES,
    "compact": COMPACT,
    "messages": MESSAGES,
    "count_tokens": COUNT,
    "beta_messages": BETA,
}


class Table:
    """The part of the table for one interface.

    Args:
        name: The name of the interface.

    """

    def __init__(self, name):
        table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
        parts = [table[each] for each in (name, LIKE.get(name)) if each is not None]
        self.whole = {key: verdict for part in parts for verdict in WHOLE for key in part.get(verdict, ())}
        self.fields = {}
        for part in reversed(parts):
            for key, lists in part["fields"].items():
                self.fields[key] = {field: verdict for verdict in VERDICTS for field in lists.get(verdict, ())}

    def enters(self, kind, field):
        """Whether to walk into a type, or into one of its fields."""
        if field is None:
            return key_of(kind) not in self.whole
        return self.fields.get(key_of(kind), {}).get(field) == "honoured"


@pytest.mark.parametrize("name", INTERFACES)
def test_every_field_of_the_packages_is_in_the_table(name):
    table = Table(name)
    known = {(key, field) for key, fields in table.fields.items() for field in fields} | {
        (key, None) for key in table.whole
    }
    found = set(walked(name))
    assert sorted(map(str, found - known)) == []
    if name not in LIKE:
        others = {field for each, like in LIKE.items() if like == name for field in walked(each)}
        assert sorted(map(str, known - found - others)) == []


def walked(name):
    table = Table(name)
    for kind, _ in INTERFACES[name].walk(table.enters):
        yield from (
            [(key_of(kind), None)]
            if key_of(kind) in table.whole
            else [(key_of(kind), field) for field in hints_of(kind)]
        )


@pytest.mark.parametrize("name", INTERFACES)
async def test_the_server_does_what_the_table_says(name):
    table, interface, engine = Table(name), INTERFACES[name], Willing()
    wrong = []
    async with serving(engine, template=TEMPLATE, send_interval=0) as server, http_of(server) as client:

        async def asked(body):
            """Return the verdict of the server on a request, its prompts with their sampling, and its error."""
            first = len(engine.prompts)
            answer = await client.post(interface.path, json=body)
            if answer.status_code != 200:
                return "refused" if answer.status_code == 400 else str(answer.status_code), None, answer.text
            return "left_out" if "left_out" in answer.json() else "honoured", engine.prompts[first:], ""

        for kind, place in interface.walk(table.enters):
            if name_of(kind) in NOT_ASKED:
                continue
            key, base = key_of(kind), interface.minimal(kind)
            if (expected := table.whole.get(key)) is not None:
                verdict, _, error = await asked(interface.request(kind, place, base))
                if verdict != ("honoured" if expected == "as_given" else expected):
                    wrong.append((key, expected, verdict, error))
                continue
            for field, hint in hints_of(kind).items():
                expected = table.fields[key][field]
                value = base | {field: interface.sample(hint, name_of(kind), field)}
                verdict, prompts, error = await asked(interface.request(kind, place, value, field))
                if expected == "ignored" and verdict == "honoured":
                    _, without, _ = await asked(interface.request(kind, place, base, field))
                    verdict = "ignored" if prompts == without else "honoured"
                if field in NOT_ASKED or (verdict == expected and (verdict != "refused" or field in error)):
                    continue
                wrong.append((key, field, expected, verdict, error))
    assert wrong == []
