"""Whole runs of engines: all steps of an answer, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.sampling import Sampling


async def steps_of(engine: Any, prompt_ids: Sequence[int] = (), **sampling: Any) -> list[Any]:
    """Run an engine to the end of its answer, and return all that it yields."""
    async with aclosing(engine.generate(prompt_ids, Sampling(**sampling))) as steps:
        return [step async for step in steps]


def text_of(tok: Tokenizer, ids: Sequence[int]) -> str:
    """Return the text of an answer's ids, with thinking as text."""
    decoder = ChatDecoder(tok, reasoning=None)
    return "".join(getattr(delta, "text", "") for delta in [*decoder.feed(ids), *decoder.finish()])


def llama_server(model: Path, context: int, slots: int = 1) -> Any:
    """Start llama.cpp's own server with a model file, on one thread, since two spin on a busy machine."""
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx, params.n_parallel, params.endpoint_slots = context, slots, True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(params)
