"""`POST /v1/responses/compact` by the unmodified client: stored conversations, tools, and what can go wrong."""

import asyncio

import pytest
from openai import BadRequestError, InternalServerError
from serving import Endless, Script, client_of, eventually, http_of, serving

from tokenweir.stream.serve.wire.responses.compaction import MOST_TOKENS

HELLO = ("<think>", "hm", "</think>", "Hello!", "<|im_end|>")


async def test_a_stored_conversation_is_compacted_and_goes_on():
    engine = Script(*HELLO)
    async with serving(engine) as server, client_of(server) as client:
        first = await client.responses.create(model="default", input="The code word is slate.")
        compact = await client.responses.compact(
            model="default", previous_response_id=first.id, input="And blue.", instructions="Be brief."
        )
        [item] = compact.output
        assert (compact.object, item.type) == ("response.compaction", "compaction")
        assert compact.usage.output_tokens_details.reasoning_tokens
        again = await client.responses.compact(model="default", input=[item.model_dump()])
        await client.responses.create(
            model="default", input=[*(item.model_dump() for item in again.output), {"role": "user", "content": "On."}]
        )
    asked, last = engine.prompts[1], engine.prompts[-1]
    assert asked.index("Be brief.") < asked.index("slate") < asked.index("And blue.") < asked.index("summary")
    assert "slate" in last and "And blue." in last and last.count("Hello!") == 1
    assert "summary" not in last and "hm" not in last


async def test_an_unknown_response_and_a_foreign_compaction_are_refused():
    async with serving(Script(*HELLO)) as server, client_of(server) as client:
        with pytest.raises(Exception, match="no response 'resp_0' to continue"):
            await client.responses.compact(model="default", previous_response_id="resp_0")
        with pytest.raises(BadRequestError) as caught:
            item = {"type": "compaction", "encrypted_content": "gAAAA"}
            await client.responses.compact(model="default", input=[item])
        assert caught.value.param == "input[0].encrypted_content"
        with pytest.raises(BadRequestError, match="temperature is 1; this server does not offer it"):
            await client.responses.compact(model="default", input="hi", extra_body={"temperature": 1})
        with pytest.raises(BadRequestError, match="input is missing"):
            await client.responses.compact(model="default")


async def test_an_engine_that_fails_or_says_nothing_is_an_error():
    for engine in (Script("Hel", OSError("gone")), Script("<|im_end|>")):
        async with serving(engine) as server, client_of(server) as client:
            with pytest.raises(InternalServerError):
                await client.responses.compact(model="default", input="hi")


async def test_a_summary_without_an_end_is_cut():
    async with serving(Endless()) as server, client_of(server) as client:
        compact = await client.responses.compact(model="default", input="hi")
        assert compact.usage.output_tokens == MOST_TOKENS
        short = await client.responses.create(
            model="default", input=[compact.output[0].model_dump()], max_output_tokens=1
        )
    assert short.usage.input_tokens > 1000


async def test_a_client_that_leaves_stops_the_engine():
    engine = Script("Hel", 60)
    async with serving(engine) as server:
        async with http_of(server) as http:
            body = {"model": "default", "input": "hi"}
            asking = asyncio.ensure_future(http.post("/v1/responses/compact", json=body))
            await eventually(lambda: engine.started)
            asking.cancel()
        await eventually(lambda: engine.closed_at)
