"""Answers that go on from their text after they were stopped or cut."""

import asyncio

import pytest
from page_in_browser import answer, ask, chatting, connected, import_conversations, listed, says, send
from playwright.async_api import expect
from serving import Script


def going_on(page):
    return page.get_by_role("button", name="Continue")


async def stopped(page, engine):
    """Ask for an answer, and stop it behind its first words."""
    await send(page, "hi")
    await says(answer(page).locator(".answer"), "Once upon")
    await page.locator("#stop").click()
    await answer(page).locator(".stats").filter(has_text="stopped").wait_for()


async def stopped_and_continued(page, engine, *parts):
    """Do so, and continue the answer with what the engine gives then."""
    await stopped(page, engine)
    engine.parts = parts
    await going_on(page).click()


async def test_an_answer_that_was_stopped_goes_on_from_its_text(browser):
    more = asyncio.Event()
    engine = Script("Once *upon", asyncio.Event())
    async with chatting(browser, engine) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "Once *upon")
        await page.locator("#stop").click()
        engine.parts = (" a", more, " time*.", "<|im_end|>")
        await going_on(page).click()
        await says(answer(page).locator(".answer"), "Once *upon a")
        await expect(page.locator("#stop")).to_be_visible()
        more.set()
        await answer(page).locator(".stats").wait_for()
        await says(answer(page).locator("em"), "upon a time")
        assert engine.prompts[1].endswith("assistant\nOnce *upon")
        await expect(going_on(page)).to_have_count(0)
        await expect(page.locator(".assistant")).to_have_count(1)
        engine.parts = ("next", "<|im_end|>")
        await ask(page, "more")
        assert "Once *upon a time*.<|im_end|>" in engine.prompts[2]
        await page.reload()
        await says(answer(page).locator(".answer"), "next")
        await says(page.locator(".assistant").first.locator("em"), "upon a time")


async def test_an_answer_that_its_limit_ended_goes_on(browser):
    engine = Script("Once upon a time there was", "<|im_end|>")
    async with chatting(browser, engine, max_output_tokens=3) as page:
        await send(page, "hi")
        await answer(page).locator(".stats").filter(has_text="token limit reached").wait_for()
        before = await answer(page).locator(".answer").inner_text()
        engine.parts = ("!", "<|im_end|>")
        await going_on(page).click()
        await says(answer(page).locator(".answer"), f"{before}!")
        await expect(going_on(page)).to_have_count(0)


async def test_a_continuation_has_tokens_of_its_own_and_is_undone(browser):
    engine = Script("Once upon", asyncio.Event())
    async with chatting(browser, engine) as page:
        await stopped_and_continued(page, engine, " a time.", "<|im_end|>")
        await says(answer(page).locator(".answer"), "Once upon a time.")
        await answer(page).locator(".stats").wait_for()
        await page.get_by_role("button", name="Tokens").click()
        written, read = page.locator("#tokens .tokens").first, page.locator("#tokens .tokens").last
        await expect(written).to_have_text(" a time.<|im_end|>")
        await expect(read).to_contain_text("Once upon")
        await expect(read.locator(".by-assistant").first).to_be_visible()
        await expect(page.locator("#tokens .error")).to_have_count(0)
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Undo").click()
        await says(answer(page).locator(".answer"), "Once upon")
        await expect(going_on(page)).to_be_visible()


async def test_a_continuation_that_fails_keeps_the_text(browser):
    engine = Script("Once upon", asyncio.Event())
    async with chatting(browser, engine) as page:
        await stopped_and_continued(page, engine, RuntimeError("no memory"))
        await answer(page).locator(".error").wait_for()
        await says(answer(page).locator(".answer"), "Once upon")
        engine.parts = (" a time.", "<|im_end|>")
        await going_on(page).click()
        await says(answer(page).locator(".answer"), "Once upon a time.")
        await expect(page.locator(".error")).to_have_count(0)


async def test_a_continuation_goes_on_after_a_reload(browser):
    more = asyncio.Event()
    engine = Script("Once upon", asyncio.Event())
    async with chatting(browser, engine) as page:
        await stopped_and_continued(page, engine, " a", more, " time.", "<|im_end|>")
        await says(answer(page).locator(".answer"), "Once upon a")
        await page.reload()
        await says(answer(page).locator(".answer"), "Once upon a")
        more.set()
        await answer(page).locator(".stats").wait_for()
        await says(answer(page).locator(".answer"), "Once upon a time.")


async def test_only_the_last_answer_goes_on_and_only_one_that_is_not_whole(browser):
    engine = Script("Once upon", asyncio.Event())
    async with chatting(browser, engine) as page:
        await stopped(page, engine)
        await expect(going_on(page)).to_be_visible()
        engine.parts = ("Whole.", "<|im_end|>")
        await ask(page, "more")
        await expect(going_on(page)).to_have_count(0)  # a hidden button has no role
        engine.parts = ("<think>Hm", asyncio.Event())
        await send(page, "again")
        await page.get_by_text("Thinking…").wait_for()
        await page.locator("#stop").click()
        await answer(page).locator(".stats").filter(has_text="stopped").wait_for()
        await connected(page)
        await expect(going_on(page)).to_have_count(0)  # there is no text to go on from


@pytest.mark.parametrize("called", [False, True])
async def test_an_answer_with_a_call_does_not_go_on(browser, called):
    call = {"type": "call", "call_id": "c", "name": "look", "arguments": "{}", "complete": True}
    said = {
        "role": "assistant",
        "model": "m",
        "request": {},
        "note": "stopped",
        "tokens": {"prompt": [], "ids": [], "logprobs": []},
        "parts": [*([call] if called else []), {"type": "text", "text": "Once"}],
    }
    one = {"id": "0" * 24, "title": "hi", "changed": 1, "messages": [{"role": "user", "text": "hi"}, said]}
    async with chatting(browser, Script()) as page:
        await import_conversations(page, {"format": "tokenweir-conversations/1", "conversations": [one]})
        await listed(page).click()
        await says(answer(page).locator(".answer"), "Once")
        await expect(going_on(page)).to_have_count(0 if called else 1)
