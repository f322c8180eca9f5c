"""The real server of llama.cpp, from xllamacpp, with the small model: its text, its numbers, its refusals."""

from __future__ import annotations

import json
from contextlib import aclosing

import anyio
import httpx
import pytest
from anyio import to_thread
from case_tables import cases
from engine_runs import llama_server, steps_of, text_of
from full_run import FULL
from small_prompts import prompts

from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.chat import chat
from tokenweir.stream.engines.llama_server import LlamaServerEngine
from tokenweir.stream.events.deltas import FinishReason, TextDelta, ToolCallDelta
from tokenweir.stream.events.sampling import Sampling
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

pytestmark = pytest.mark.anyio

MAX_TOKENS = 8


@pytest.fixture(scope="module")
def url(small_model):
    server = llama_server(small_model.model_file(), 1024, slots=2)
    yield server.listening_address
    del server


@pytest.fixture(scope="module")
def small_tok(small_model):
    return Tokenizer.from_file(small_model.model_file())


@pytest.fixture(scope="module")
def engine(url, small_tok):
    return LlamaServerEngine(url, small_tok)


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    return request.param


@pytest.mark.timeout(600)
async def test_text_and_number_are_the_servers_own(engine, url, small_tok):
    """Asked without a stream the server gives all ids; of a character that the end cuts, its stream gives nothing."""
    inferred, wrong = 0, 0
    anew = {"cache_prompt": False}  # what is left of an earlier prompt changes the last bits of the sums
    async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
        for prompt_ids in prompts(small_tok)[25 :: 2 if FULL else 8]:  # each continues in its own script
            steps = await steps_of(engine, prompt_ids, max_tokens=MAX_TOKENS, temperature=0, extra=anew)
            ids = [token_id for step in steps for token_id in step.ids]
            body = {"prompt": prompt_ids, "n_predict": MAX_TOKENS, "temperature": 0, "return_tokens": True}
            own = (await client.post(f"{url}/completion", json=body | anew)).json()
            assert len(ids) == own["tokens_predicted"]
            whole = own["content"].rstrip("\ufffd") == own["content"]
            if whole:
                assert text_of(small_tok, ids) == own["content"] == text_of(small_tok, own["tokens"])
            else:
                cut = text_of(small_tok, ids)
                assert cut.endswith("\ufffd") and own["content"].startswith(cut.rstrip("\ufffd"))
            certain = [
                not guess
                for step in steps
                for guess in [True] * step.inferred + [False] * len(step.ids[step.inferred :])
            ]
            assert len(certain) == len(ids)
            assert all(a == b for a, b, sure in zip(ids, own["tokens"], certain, strict=True) if sure)
            inferred += len(ids) - sum(certain)
            wrong += whole and ids != own["tokens"]
    assert inferred > (20 if FULL else 5)  # or the test has not tested anything
    assert wrong == 0  # what a model writes is what its tokenizer reads, mostly


async def test_closing_frees_the_slot(engine, url):
    def busy():
        return any(slot["is_processing"] for slot in httpx.get(f"{url}/slots", trust_env=False).json())

    async with aclosing(engine.generate([1, 2, 3], Sampling(max_tokens=900, ignore_eos=True))) as steps:
        await anext(steps)
        assert await to_thread.run_sync(busy)
    with anyio.fail_after(60):
        while await to_thread.run_sync(busy):
            await anyio.lowlevel.checkpoint()


async def test_a_grammar_a_schema_and_a_bias_are_honoured(engine, small_tok):
    async def text(**sampling):
        steps = await steps_of(engine, small_tok.encode("Yes or no?"), temperature=0, max_tokens=9, **sampling)
        return text_of(small_tok, [token_id for step in steps for token_id in step.ids])

    assert await text(grammar='root ::= "🎉🎊"') == "🎉🎊"
    assert (await text(json_schema={"type": "boolean"})).strip() in ("true", "false")
    (yes,) = small_tok.encode(" yes")
    assert await text(logit_bias={yes: 100.0}) == " yes" * 9


async def test_its_refusals_are_passed_on(engine):
    with pytest.raises(
        EngineError, match=r"answers 400: request \(600 tokens\) exceeds the available context"
    ) as refusal:
        await steps_of(engine, [1] * 600)
    assert refusal.value.kind == "refused"


async def test_what_it_tells_of_its_model(engine, small_model):
    served = await engine.served()
    assert served.path == str(small_model.model_file())
    assert served.template.startswith("{% for message in messages %}")
    assert served.context_size == engine.context_size == 512


WEATHER = CASES["weather"]


async def test_a_small_model_is_held_to_a_call(engine, small_tok):
    template = ChatTemplate("{% for m in messages %}{{ m.content }}\n{% endfor %}{{ tools | tojson }}\nCall:")
    asked = {"engine": engine, "tokenizer": small_tok, "template": template}
    asked["sampling"] = Sampling(max_tokens=60, temperature=0)
    tools = [{"type": "function", "function": WEATHER}, {"type": "function", "function": {"name": "now"}}]
    messages = [{"role": "user", "content": "How is the weather in Bern?"}]
    choice = {"type": "function", "function": {"name": "weather"}}
    async with chat(messages, tools=tools, tool_choice=choice, **asked) as deltas:
        got = [delta async for delta in deltas]
    call = "".join(delta.arguments for delta in got if isinstance(delta, ToolCallDelta))
    assert [delta.name for delta in got if isinstance(delta, ToolCallDelta) and delta.name] == ["weather"]
    assert json.loads(call)["at"]["city"] in ("Bern", "Rome")
    assert got[-1].reason is FinishReason.TOOL_CALLS
    assert not any(isinstance(delta, TextDelta) and delta.text.strip() for delta in got)
