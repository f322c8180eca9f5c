"""Structured output and forced tools with the small model, by unmodified clients."""

import asyncio
import json
import os
from importlib import import_module
from typing import Literal

import pytest
from case_tables import cases
from pydantic import BaseModel, Field
from serving import anthropic_of, client_of

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.transport.server import serve

CASES = cases(__file__)

ASKED = [{"role": "user", "content": "How is the weather in Rome? Answer as JSON."}]
TOOL = CASES["tool"]


class Weather(BaseModel):
    """The weather; without other fields, of which a small model would find no end."""

    model_config = {"extra": "forbid"}

    sky: Literal["sunny", "cloudy"]
    degrees: int = Field(ge=0, le=40)


@pytest.fixture(scope="module")
def small(small_model):
    pytest.importorskip("xllamacpp")
    return small_model.load_engine(), Tokenizer.from_file(small_model.model_file())


def serving(small):
    engine, tokenizer = small
    return serve(engine=engine, tokenizer=tokenizer, port=0, limits=Limits(drain_timeout=0.2, max_output_tokens=200))


def url(server):
    return f"http://127.0.0.1:{server.port}/v1"


def imported(name):
    """Import a client; skip the test where it is absent, unless REQUIRE_CLIENTS=1."""
    return import_module(name) if os.environ.get("REQUIRE_CLIENTS") == "1" else pytest.importorskip(name)


async def test_the_openai_client(small):
    async with serving(small) as server, client_of(server) as client:
        parsed = await client.chat.completions.parse(model="default", messages=ASKED, response_format=Weather, seed=1)
        response = await client.responses.parse(model="default", input=ASKED, text_format=Weather)
        loose = await client.chat.completions.create(
            model="default", messages=ASKED, response_format={"type": "json_object"}, max_tokens=150
        )
    assert isinstance(parsed.choices[0].message.parsed, Weather)
    assert isinstance(response.output_parsed, Weather)
    if loose.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(loose.choices[0].message.content), dict)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "report"}}])
async def test_tools_are_forced(small, choice):
    tools = [{"type": "function", "function": TOOL}]
    async with serving(small) as server, client_of(server) as client:
        completion = await client.chat.completions.create(
            model="default", messages=ASKED, tools=tools, tool_choice=choice, parallel_tool_calls=False
        )
    (call,) = completion.choices[0].message.tool_calls
    assert call.function.name == "report"
    Weather.model_validate_json(call.function.arguments)


GREEDY = {"temperature": 0}
"""Makes the answer the same each time: this client moves the bounds of numbers from the schema to the descriptions."""


async def test_the_anthropic_client(small):
    tool = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}
    async with serving(small) as server, anthropic_of(server) as client:
        message = await client.messages.create(
            model="default",
            max_tokens=100,
            extra_body=GREEDY,
            messages=ASKED,
            tools=[tool],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
        )
        parsed = await client.messages.parse(
            model="default", max_tokens=100, messages=ASKED, output_format=Weather, extra_body=GREEDY
        )
    assert message.stop_reason == "tool_use"
    Weather.model_validate(message.content[0].input)
    assert isinstance(parsed.parsed_output, Weather)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
async def test_langchain(small, method):
    langchain = imported("langchain_openai")
    async with serving(small) as server:
        model = langchain.ChatOpenAI(base_url=url(server), api_key="k", model="default", max_retries=0)
        weather = await model.with_structured_output(Weather, method=method).ainvoke("How is the weather in Rome?")
    assert isinstance(weather, Weather)


@pytest.mark.parametrize("mode", ["TOOLS", "JSON_SCHEMA"])
async def test_instructor(small, mode):
    instructor = imported("instructor")
    async with serving(small) as server, client_of(server) as client:
        patched = instructor.from_openai(client, mode=instructor.Mode[mode])
        weather = await patched.chat.completions.create(
            model="default", messages=ASKED, response_model=Weather, max_tokens=100
        )
    assert isinstance(weather, Weather)


@pytest.mark.parametrize("output", ["ToolOutput", "NativeOutput"])
async def test_pydantic_ai(small, output):
    pydantic_ai = imported("pydantic_ai")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with serving(small) as server, client_of(server) as client:
        model = OpenAIChatModel("default", provider=OpenAIProvider(openai_client=client))
        agent = pydantic_ai.Agent(model, output_type=getattr(pydantic_ai, output)(Weather))
        result = await agent.run("How is the weather in Rome?")
    assert isinstance(result.output, Weather)


async def test_asking_again_gives_another_answer(small):
    asked = {"model": "default", "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 24}
    async with serving(small) as server, client_of(server) as client:
        told = await asyncio.gather(*(client.chat.completions.create(**asked) for _ in range(3)))
        seeded = [await client.chat.completions.create(**asked, seed=7) for _ in range(2)]
    assert len({completion.choices[0].message.content for completion in told}) > 1
    assert seeded[0].choices[0].message.content == seeded[1].choices[0].message.content
