"""A server without an engine renders, and says why it does not answer."""

from __future__ import annotations

import asyncio

import pytest
from serving import TOK, http_of, serving

from tokenweir.stream.engines.no_engine import NoEngine

HI = {"messages": [{"role": "user", "content": "hi"}]}


def test_it_renders_what_fits_and_generates_nothing():
    async def main():
        async with serving(NoEngine(50)) as server, http_of(server) as to:
            rendered = await to.post("/v1/chat/completions/render", json=HI)
            long = await to.post("/v1/chat/completions/render", json=HI | {"max_tokens": 50})
            asked = await to.post("/v1/chat/completions", json=HI)
            return rendered, long, asked

    rendered, long, asked = asyncio.run(main())
    ids = rendered.json()["token_ids"]
    assert "hi" in TOK.decode(ids) and rendered.json()["sampling_params"]["max_tokens"] == 50 - len(ids)
    assert (long.status_code, long.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert asked.status_code == 400
    assert asked.json()["error"]["message"].startswith("there is no engine here")


def test_a_context_that_cannot_be():
    with pytest.raises(ValueError, match="context_size=0 is below 1"):
        NoEngine(0)
