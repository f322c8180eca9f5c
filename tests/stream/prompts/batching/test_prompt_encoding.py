from __future__ import annotations

import anyio
import numpy as np
import pytest

from tokenweir.encode.errors import TextError
from tokenweir.stream.chat.prompt_stage import encode_prompts
from tokenweir.stream.prompts.batching.batcher import PromptBatcher
from tokenweir.templates.prompt import Prompt

TEXTS = ["Hello world", "", "boxes", "日本 👩", "Question: a<eos>b"]

pytestmark = pytest.mark.anyio


async def collect(prompts, encoder, **options):
    return [ids async for ids in encode_prompts(prompts, encoder, **options)]


@pytest.mark.parametrize("batch_size", [1, 2, 64])
async def test_prompts_are_encoded_in_order(tok, batch_size):
    prompts = [*TEXTS, Prompt("Hello<eos>", guarded=(5, 6, 7, 8, 9))]
    encoded = await collect(prompts, tok, batch_size=batch_size)
    assert all(ids.dtype == np.int32 for ids in encoded)
    assert [ids.tolist() for ids in encoded] == [*map(tok.encode, TEXTS), [*tok.encode("Hello"), *b"<eos>"]]


@pytest.mark.parametrize("batched", [False, True])
async def test_it_reads_no_further_ahead_than_a_batch(tok, batched):
    read = given = 0

    def source():
        nonlocal read
        for number in range(20):
            assert read - given < 3
            read += 1
            yield str(number)

    async with PromptBatcher(tok) as batcher:
        async for ids in encode_prompts(source(), batcher if batched else tok, batch_size=3):
            assert ids.tolist() == tok.encode(str(given))
            given += 1
    assert given == 20


async def test_an_encoder_of_batches_runs_in_a_thread_and_may_answer_from_a_device(tok):
    class OnDevice:
        def __init__(self, ragged):
            self.ragged = ragged

        def to_host(self):
            return self.ragged

    sizes = []

    class BatchEncoder:
        def encode_batch(self, prompts):
            with pytest.raises(RuntimeError):
                anyio.lowlevel.current_token()
            sizes.append(len(prompts))
            return OnDevice(tok.encode_batch(prompts))

    assert [ids.tolist() for ids in await collect(TEXTS, BatchEncoder(), batch_size=2)] == list(map(tok.encode, TEXTS))
    assert sizes == [2, 2, 1]


async def test_an_async_encoder_gets_the_prompts_of_a_batch_together(tok):
    class Batcher:
        waiting = most = 0

        async def encode(self, prompt):
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            await anyio.sleep(0.01 * len(prompt))
            self.waiting -= 1
            return tok.encode(prompt)

    encoder = Batcher()
    assert [ids.tolist() for ids in await collect(TEXTS, encoder, batch_size=3)] == list(map(tok.encode, TEXTS))
    assert encoder.most == 3


async def test_a_failure_comes_as_it_is_after_the_batches_before(tok):
    class Batcher:
        async def encode(self, prompt):
            return tok.encode(prompt)

    async with PromptBatcher(tok) as batcher:
        for encoder in (tok, Batcher(), batcher):
            got = []
            with pytest.raises(TextError):
                async for ids in encode_prompts(["a", "b\ud800"], encoder, batch_size=1):
                    got.append(ids.tolist())
            assert got == [[97]]


async def test_an_encoder_that_gives_too_few_is_found_out():
    class Short:
        def encode_batch(self, prompts):
            return [[1]]

    with pytest.raises(RuntimeError, match=r"^Short\.encode_batch\(\) gave 1 for 5 prompts$"):
        await collect(TEXTS, Short())


async def test_one_prompt_in_place_of_several_is_refused(tok):
    for one, kind in (("Hi", "str"), (Prompt("Hi"), "Prompt")):
        with pytest.raises(TypeError, match=rf"not one {kind}: write encode_prompts\(\[prompt\], encoder\)$"):
            await collect(one, tok)


async def test_batch_size_must_be_positive(tok):
    with pytest.raises(ValueError, match="^batch_size=0 is below 1$"):
        await collect(TEXTS, tok, batch_size=0)
