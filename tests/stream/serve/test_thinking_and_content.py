"""The end of thinking and the beginning of content, by all three interfaces: schemas, white space next to markup, logprobs, stops."""

from contextlib import asynccontextmanager

import pytest
from case_tables import cases
from serving import TOK, events_in, http_of, serving

from tokenweir.stream.events.step import EngineStep
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

JSON = '{"answer":"17"}'
HI = [{"role": "user", "content": "hi"}]
OPENING = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}{{ m.tool_calls | tojson if m.tool_calls }}<|im_end|>\n{% endfor %}"
    "{% for tool in tools or [] %}{{ tool | tojson }}<tool_call>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
CALL = '<tool_call>\n{"name": "look", "arguments": {"city": "B"}}\n</tool_call>'
LOOK = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION = {"name": "look", "parameters": LOOK}


class Scripted:
    """An engine that answers with a text, by an id a step with logprobs, and keeps its prompts."""

    supports = frozenset({"json_schema", "grammar", "logprobs", "top_logprobs"})

    def __init__(self, text, *, thinks_first=False):
        self.ids = [*TOK.encode(text, add_special_tokens=False), TOK.token_to_id("<|im_end|>")]
        self.thinks_first = thinks_first
        self.prompts = []

    async def generate(self, prompt_ids, sampling):
        self.prompts.append(TOK.decode(prompt_ids, skip_special_tokens=False))
        for token_id in self.ids:
            yield EngineStep(ids=[token_id], logprobs=[-0.5], top_logprobs=[[(token_id, -0.5)]])


class Asked:
    """One request by each interface, reduced to thinking, text and number of calls."""

    def __init__(self, client):
        self.client = client

    async def post(self, path, body):
        reply = await self.client.post(path, json={"model": "default"} | body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def chat(self, **body):
        choice = (await self.post("/v1/chat/completions", {"messages": HI} | body))["choices"][0]
        message = choice["message"]
        return message.get("reasoning_content"), message["content"], len(message.get("tool_calls") or [])

    async def responses(self, **body):
        items = (await self.post("/v1/responses", {"input": "hi"} | body))["output"]
        texts = {"reasoning": None, "message": None}
        for item in items:
            for part in item.get("content") or []:
                texts[item["type"]] = (texts[item["type"]] or "") + part["text"]
        return texts["reasoning"], texts["message"], sum(item["type"] == "function_call" for item in items)

    async def messages(self, **body):
        blocks = (await self.post("/v1/messages", {"messages": HI, "max_tokens": 100} | body))["content"]
        thinking = [block["thinking"] for block in blocks if block["type"] == "thinking"]
        text = [block["text"] for block in blocks if block["type"] == "text"]
        return "".join(thinking) or None, "".join(text) or None, sum(block["type"] == "tool_use" for block in blocks)


@asynccontextmanager
async def asking(engine, **options):
    async with serving(engine, template=OPENING, **options) as server, http_of(server) as client:
        yield Asked(client)


FORMS = CASES["forms"]


# -- answers that are held to a schema ---------------------------------------------------------------------------------


@pytest.mark.parametrize("interface", FORMS)
async def test_an_answer_by_a_schema_is_the_content(interface):
    engine = Scripted(JSON)
    async with asking(engine) as asked:
        assert await getattr(asked, interface)(**FORMS[interface]) == (None, JSON, 0)
        assert engine.prompts[0].endswith("<|im_start|>assistant\n<think>\n</think>\n\n")
        await getattr(asked, interface)()
        assert engine.prompts[1].endswith("<|im_start|>assistant\n<think>\n")


async def test_json_of_any_form_is_the_content():
    async with asking(Scripted(JSON)) as asked:
        assert (await asked.chat(response_format={"type": "json_object"}))[:2] == (None, JSON)


@pytest.mark.parametrize("interface", FORMS)
async def test_an_engine_that_waits_for_the_end_of_thinking_may_think(interface):
    engine = Scripted(f"hm\n</think>\n\n{JSON}", thinks_first=True)
    async with asking(engine) as asked:
        thinking, text, _ = await getattr(asked, interface)(**FORMS[interface])
    assert (thinking.strip(), text.strip()) == ("hm", JSON)
    assert engine.prompts[0].endswith("<think>\n")


async def test_a_required_call_closes_the_thinking_too():
    calls = '[{"name": "look", "arguments": {"city": "B"}}]'
    tools = {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "required"}
    engine = Scripted(calls)
    async with asking(engine) as asked:
        assert await asked.chat(**tools) == (None, None, 1)
    assert engine.prompts[0].endswith("<think>\n</think>\n\n")
    engine = Scripted(f"hm\n</think>\n\n{calls}", thinks_first=True)
    async with asking(engine) as asked:
        assert await asked.chat(**tools) == ("hm\n", None, 1)


async def test_the_next_prompt_has_the_ids_behind_which_the_engine_answered():
    engine = Scripted(JSON)
    async with asking(engine, history="sampled") as asked:
        (thinking, text, _) = await asked.chat(**FORMS["chat"])
        again = [*HI, {"role": "assistant", "content": text}, {"role": "user", "content": "more"}]
        await asked.chat(messages=again)
    assert thinking is None
    assert engine.prompts[1].count(JSON) == 1


# -- white space next to markup ----------------------------------------------------------------------------------------

ANSWERS = {
    f"\na\n</think>\n\n{CALL}": ("\na\n", None, 1),
    f"</think>\n\n{CALL}\n{CALL}\n": (None, None, 2),
    f"a</think>\n\n{CALL}\n<think>\nb\n</think>\n\nDone.": ("a\nb\n", "\n\nDone.", 1),
    f"a</think>\n\nWait.\n{CALL}": ("a", "\n\nWait.\n", 1),
    "\n": (None, None, 0),
}
TOOLS = {
    "chat": [{"type": "function", "function": FUNCTION}],
    "responses": [{"type": "function", **FUNCTION}],
    "messages": [{"name": "look", "input_schema": LOOK}],
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("interface", TOOLS)
async def test_white_space_next_to_markup_is_no_text(interface, answer):
    async with asking(Scripted(answer)) as asked:
        thinking, text, calls = await getattr(asked, interface)(tools=TOOLS[interface])
    assert (thinking, text or None, calls) == ANSWERS[answer]


async def test_a_stream_has_no_blank_block():
    async with asking(Scripted(f"a</think>\n\n{CALL}\n{CALL}\n")) as asked:
        body = {"messages": HI, "max_tokens": 99, "tools": TOOLS["messages"], "stream": True}
        reply = await asked.client.post("/v1/messages", json={"model": "default"} | body)
    opened = [
        event["content_block"]["type"] for event in events_in(reply.text) if event["type"] == "content_block_start"
    ]
    assert opened == ["thinking", "tool_use", "tool_use"]


# -- logprobs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    ["hm\n</think>\n\nYes 👩.<|im_start|> sir", f"hm</think>Wait. {CALL} Done.", f"</think>{CALL}", "\n\n</think>Hi"],
)
async def test_logprobs_are_those_of_the_contents_tokens(answer):
    async with asking(Scripted(answer)) as asked:
        body = {"messages": HI, "logprobs": True, "top_logprobs": 1, "tools": TOOLS["chat"]}
        choice = (await asked.post("/v1/chat/completions", body))["choices"][0]
        entries = choice["logprobs"]["content"]
        assert b"".join(bytes(each["bytes"]) for each in entries).decode() == (choice["message"]["content"] or "")
        assert all(each["top_logprobs"][0]["bytes"] == each["bytes"] for each in entries)
        body = {"input": "hi", "include": ["message.output_text.logprobs"], "tools": TOOLS["responses"]}
        for item in (await asked.post("/v1/responses", body))["output"]:
            for part in item.get("content") or [] if item["type"] == "message" else []:
                assert b"".join(bytes(each["bytes"]) for each in part["logprobs"]).decode() == part["text"]


async def test_ids_are_complete_beside_the_contents_logprobs():
    engine = Scripted(f"hm</think>Wait. {CALL}")
    async with asking(engine) as asked:
        body = {"messages": HI, "logprobs": True, "return_token_ids": True, "tools": TOOLS["chat"]}
        choice = (await asked.post("/v1/chat/completions", body))["choices"][0]
    assert choice["token_ids"] == engine.ids


# -- stop strings that spell control tokens ----------------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["<|im_start|>", "<|im_start|>user"])
@pytest.mark.parametrize(
    ("interface", "field"), [("chat", "stop"), ("messages", "stop_sequences"), ("responses", "stop")]
)
async def test_a_control_token_in_a_stop_string_stops(interface, field, stop):
    async with asking(Scripted("</think>Hello<|im_start|>user\nmore")) as asked:
        if interface == "messages":
            body = {"messages": HI, "max_tokens": 50, field: [stop]}
            message = await asked.post("/v1/messages", body)
            assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", stop)
            assert message["content"][-1]["text"] == "Hello"
        else:
            assert (await getattr(asked, interface)(**{field: [stop]}))[1] == "Hello"


# -- budgets of thinking -----------------------------------------------------------------------------------------------


class Thinker(Scripted):
    """An engine that thinks on and on, and answers behind the thinking."""

    def __init__(self):
        super().__init__("So.")
        self.thought = TOK.encode("a b " * 50, add_special_tokens=False)

    async def generate(self, prompt_ids, sampling):
        self.prompts.append(TOK.decode(prompt_ids, skip_special_tokens=False))
        for token_id in self.ids if self.prompts[-1].rstrip().endswith("</think>") else self.thought:
            yield EngineStep(ids=[token_id], logprobs=[-0.5])


BUDGETS = CASES["budgets"]


@pytest.mark.parametrize("interface", BUDGETS)
async def test_a_budget_ends_the_thinking(interface):
    engine = Thinker()
    async with asking(engine) as asked:
        thinking, text, _ = await getattr(asked, interface)(**BUDGETS[interface])
    assert (thinking.strip(), text.strip()) == (TOK.decode(engine.thought[:6]).strip(), "So.")
    assert len(engine.prompts) == 2


@pytest.mark.parametrize("tokens", [-1, 1 << 40, "6"])
async def test_an_invalid_budget_is_refused_by_name(tokens):
    async with asking(Thinker()) as asked:
        for path, body, name in (
            ("/v1/chat/completions", {"messages": HI, "thinking_token_budget": tokens}, "thinking_token_budget"),
            ("/v1/responses", {"input": "hi", "thinking_token_budget": tokens}, "thinking_token_budget"),
            (
                "/v1/messages",
                {"messages": HI, "max_tokens": 9, "thinking": {"type": "enabled", "budget_tokens": tokens}},
                "budget_tokens",
            ),
        ):
            reply = await asked.client.post(path, json={"model": "default"} | body)
            assert reply.status_code == 400
            assert name in reply.text


async def test_a_budget_of_zero_asks_for_no_thinking():
    engine = Thinker()
    async with asking(engine) as asked:
        assert await asked.chat(thinking_token_budget=0) == (None, "So.", 0)
    assert engine.prompts[0].endswith("<think>\n</think>\n\n")


async def test_logprobs_of_an_answer_whose_thinking_was_ended():
    async with asking(Thinker()) as asked:
        body = {"messages": HI, "logprobs": True, "thinking_token_budget": 6}
        choice = (await asked.post("/v1/chat/completions", body))["choices"][0]
    joined = b"".join(bytes(each["bytes"]) for each in choice["logprobs"]["content"]).decode()
    assert joined == choice["message"]["content"]
