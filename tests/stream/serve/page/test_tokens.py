"""The token view."""

import asyncio
import math
from itertools import pairwise

import pytest
from page_in_browser import TOK, Script, ask, chatting, cut_connections, says, send
from playwright.async_api import expect

from tokenweir.stream.events.step import EngineStep

TEXT = "Hello wörld 🙂\n"
IDS = TOK.encode(TEXT + "<|im_end|>")
LOGPROBS = [-0.25 * (place + 1) for place in range(len(IDS))]


async def opened(page):
    await page.get_by_role("button", name="Tokens", exact=True).last.click()
    lists = page.locator("#tokens .tokens")
    await expect(lists).to_have_count(2)
    return lists.first, lists.last


@pytest.mark.asyncio(loop_scope="session")
async def test_every_token_is_shown_with_its_id_bytes_and_logprob(browser):
    engine = Script(EngineStep(IDS, LOGPROBS))
    async with chatting(browser, engine) as page:
        await ask(page, "hi")
        prompt, answer = await opened(page)
        await expect(answer.locator(".token")).to_have_count(len(IDS))
        for place, (token_id, logprob) in enumerate(zip(IDS, LOGPROBS, strict=True)):
            await answer.locator(".token").nth(place).hover()
            told = await page.locator("#tokens .told").inner_text()
            control = " · control" if token_id in TOK.special_tokens.values() else ""
            in_bytes = TOK.token_bytes(token_id).hex(" ")
            assert told.startswith(
                f"token {place + 1} · id {token_id} · bytes {in_bytes}{control} · logprob {logprob:.4f} ("
            )
            assert float(told.split("(")[1].split(" ")[0]) == pytest.approx(100 * math.exp(logprob), rel=0.01)
        assert await answer.locator(".control").all_inner_texts() == ["<|im_end|>"]

        sent = TOK.encode(engine.prompts[0])
        await expect(prompt.locator(".token")).to_have_count(len(sent))
        assert await prompt.locator(".control").all_inner_texts() == ["<|im_start|>", "<|im_end|>", "<|im_start|>"]
        await prompt.focus()
        for _ in range(3):
            await page.keyboard.press("ArrowRight")
        await page.keyboard.press("ArrowLeft")
        told = await page.locator("#tokens .told").inner_text()
        assert told.startswith(f"token 2 · id {sent[1]} · ")
        await page.keyboard.press("Escape")
        await expect(page.locator("#tokens")).to_be_hidden()
        assert page.problems == []


@pytest.mark.asyncio(loop_scope="session")
async def test_a_lost_connection_loses_and_repeats_no_token(browser):
    more, end = asyncio.Event(), asyncio.Event()
    engine = Script("<think>Hm.", "</think>Once", more, " upon", end, " a time 🙂", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await send(page, "hi")
        for event, text in ((more, "Once"), (end, "Once upon")):
            await says(page.locator(".answer"), text)
            cut_connections(page)
            await page.locator("#state.closed").wait_for()
            event.set()
        await page.locator(".assistant .stats").wait_for()
        expected = [token_id for part in engine.parts if isinstance(part, str) for token_id in TOK.encode(part)]
        _, answer = await opened(page)
        await expect(answer.locator(".token")).to_have_count(len(expected))
        for place, token_id in enumerate(expected):
            await answer.locator(".token").nth(place).hover()
            assert f"token {place + 1} · id {token_id} · " in await page.locator("#tokens .told").inner_text()


@pytest.mark.asyncio(loop_scope="session")
async def test_neighbours_have_other_colours_and_no_logprobs_are_told(browser):
    async with chatting(browser, Script(TEXT * 400, "<|im_end|>")) as page:
        await ask(page, "hi")
        _, answer = await opened(page)
        count = 1 + len(TOK.encode(TEXT * 400))
        await expect(answer.locator(".token")).to_have_count(count)
        await page.get_by_text(f"Answer: {count} tokens; the engine gives no logprobs").wait_for()
        colours = await answer.evaluate(
            "(box) => [...box.querySelectorAll('.token')].map((node) => getComputedStyle(node).backgroundColor)"
        )
        assert all(one != other for one, other in pairwise(colours))
        await answer.locator(".token").first.hover()
        assert "logprob" not in await page.locator("#tokens .told").inner_text()


@pytest.mark.asyncio(loop_scope="session")
async def test_kept_ids_of_another_tokenizer_are_told(browser):
    async with chatting(browser, Script("Hello", "<|im_end|>")) as page:
        await ask(page, "hi")
        await page.route(
            "**/detokenize",
            lambda route: route.fulfill(
                json={
                    "tokens": [
                        {"id": one, "bytes": [33], "special": False} for one in route.request.post_data_json["tokens"]
                    ]
                }
            ),
        )
        await opened(page)
        await page.get_by_text("the server may have another tokenizer now").wait_for()


@pytest.mark.asyncio(loop_scope="session")
async def test_a_server_that_does_not_answer_is_told(browser):
    async with chatting(browser, Script("Hello", "<|im_end|>")) as page:
        await ask(page, "hi")
        await page.route("**/detokenize", lambda route: route.abort())
        await page.get_by_role("button", name="Tokens", exact=True).click()
        await page.locator("#tokens .error").filter(has_text="The tokens cannot be shown").wait_for()
