"""The prefix cache of the real llama-server, over a conversation whose prompts keep the ids that were sampled."""

from __future__ import annotations

from contextlib import aclosing

import httpx
import pytest
from case_tables import cases
from common_prefix import common_length
from engine_runs import llama_server, text_of
from full_run import FULL

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines.llama_server import LlamaServerEngine
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.prompts.cache.conversation import Conversation
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]

TURNS, MAX_TOKENS = (20, 40) if FULL else (4, 8)
QUESTIONS = CASES["questions"]
EACH = list(QUESTIONS) if FULL else ["English", "emoji"]


@pytest.fixture(scope="module")
def server(small_model):
    return llama_server(small_model.model_file(), 8192)


@pytest.fixture(scope="module")
def tokenizer(small_model):
    return Tokenizer.from_file(small_model.model_file())


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def streamed(server, tokenizer, ids, turn):
    """The ids of an answer, the places of those that were inferred, and the number of cached ids of its prompt."""
    sampling = Sampling(max_tokens=MAX_TOKENS, temperature=1, seed=turn, extra={"id_slot": 0})
    found, inferred, cached = [], [], None
    async with aclosing(LlamaServerEngine(server.listening_address, tokenizer).generate(ids, sampling)) as steps:
        async for step in steps:
            inferred += range(len(found), len(found) + step.inferred)
            found += step.ids
            cached = step.cached if cached is None else cached
    return found, inferred, cached


async def whole(server, tokenizer, ids, turn):
    """The same without a stream, which tells all ids."""
    body = {"prompt": ids, "n_predict": MAX_TOKENS, "temperature": 1, "seed": turn, "id_slot": 0, "return_tokens": True}
    async with httpx.AsyncClient(timeout=300, trust_env=False) as client:
        answer = (await client.post(f"{server.listening_address}/completion", json=body)).json()
    return answer["tokens"], [], answer["timings"]["cache_n"]


@pytest.mark.parametrize("kind", EACH)
@pytest.mark.parametrize(("history", "generate"), [("exact", streamed), ("sampled", whole)])
async def test_the_server_has_the_beginning_of_each_prompt_in_its_cache(server, tokenizer, history, generate, kind):
    """That is what its last prompt and answer have in common with the prompt, without the last id, which it did not evaluate."""
    conversation = Conversation(ChatTemplate.from_tokenizer(tokenizer), tokenizer, history=history)
    tape, shortfalls = [], 0
    for turn in range(TURNS):
        conversation.add({"role": "user", "content": QUESTIONS[kind].format(turn)})
        prompt = conversation.prompt()
        ids = prompt.ids.tolist()
        answer, inferred, cached = await generate(server, tokenizer, ids, turn)
        if turn:
            agreed = common_length((ids, tape))
            assert cached == min(agreed, len(tape) - 1)
            if agreed < len(tape):
                shortfalls += 1
                assert history == "exact"
                assert prompt.differs.reason in ("text", "cut", "spelling", "nothing"), prompt.differs
                assert prompt.differs.message == 2 * turn - 1  # the last answer
            else:
                assert prompt.differs == (2 * turn - 1, "appended")
        message = {"role": "assistant", "content": text_of(tokenizer, answer)}
        conversation.answered(answer, message, inferred=inferred)
        tape = ids + answer
    assert len(tape) > 20 * TURNS
    if history == "exact" and kind == "English":
        assert shortfalls < TURNS
