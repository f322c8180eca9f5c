"""The live check reads an answer of a server alike, whole and streamed, from all four interfaces."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

import tokenweir
from tokenweir import EngineStep, Tokenizer

sys.path.insert(0, str(Path(__file__).parent))
from answers import events, read
from cases import CASES, RESPONSES

TOK = Tokenizer.default()
ANSWER = 'I think.\n</think>\n\nSo: <tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'
TEMPLATE = (Path(__file__).parent / "template.jinja").read_text("utf-8")


class Recorded:
    """Engine that always gives the same ids."""

    parallel = True

    async def generate(self, prompt_ids, sampling):
        for index in range(sampling.n):
            for token_id in TOK.encode(ANSWER):
                yield EngineStep([token_id], [-0.5], index=index, top_logprobs=[[(token_id, -0.5), (7, -2.0)]])
            yield EngineStep([], finish_reason="stop", index=index)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path}-{case.name}")
async def test_streamed_and_whole_are_read_alike(case):
    # A call that is cut is no block of a whole message, though its beginning has been streamed.
    limit = {"max_output_tokens" if case.path == RESPONSES else "max_tokens": 200}
    template = tokenweir.ChatTemplate(TEMPLATE)
    app = tokenweir.asgi_app(engine={"small": Recorded()}, tokenizer=TOK, template=template)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        whole = await http.post(case.path, json=case.sent(streamed=False) | limit)
        streamed = await http.post(case.path, json=case.sent(streamed=True) | limit)
    assert whole.status_code == streamed.status_code
    if whole.status_code == 200:
        found = read(case.path, [whole.json()])
        assert found.fields() == read(case.path, events(streamed.text.splitlines())).fields()
        assert any(choice.text or choice.reasoning or choice.calls for choice in found.choices)
