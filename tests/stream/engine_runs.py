"""Whole runs of engines: all steps of an answer, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

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
