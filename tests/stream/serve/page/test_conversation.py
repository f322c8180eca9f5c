"""The conversation: answers, stops, failures and lost connections."""

import asyncio
import re

import pytest
from page_in_browser import (
    PATIENCE,
    answer,
    chatting,
    connected,
    cut_connections,
    says,
    send,
    sockets,
    told_state,
    until,
)
from playwright.async_api import expect
from serving import Script

COUNT_HEARTBEATS = """const Socket = WebSocket;
window.heartbeats = 0;
window.WebSocket = class extends Socket {
    constructor(...all) {
        super(...all);
        this.addEventListener("message", ({ data }) => { if (data.includes('"heartbeat"')) window.heartbeats += 1; });
    }
};"""


async def test_an_answer_grows_with_its_thinking_folded(browser):
    more, end = asyncio.Event(), asyncio.Event()
    engine = Script("<think>Let me see.</think>", "Hello", more, " wörld 🙂\n  two", end, "<|im_end|>")
    async with chatting(browser, engine) as page:
        await send(page, "Who are you?")
        await says(page.locator(".user"), "Who are you?")
        await says(answer(page).locator(".answer"), "Hello")
        assert await page.locator("#send").is_hidden() and await page.locator("#stop").is_visible()
        details = answer(page).locator("details")
        assert await details.get_attribute("open") is None
        assert not await details.locator(".text").is_visible()
        await details.locator("summary").click()
        await says(details.locator(".markdown"), "Let me see.")
        more.set()
        await says(answer(page).locator(".answer"), "Hello wörld 🙂\n  two")
        end.set()
        stats = answer(page).locator(".stats")
        await stats.wait_for()
        line = await stats.inner_text()
        assert " tokens in · " in line and " out · first token " in line and line.endswith(" tok/s")
        summary = await details.locator("summary").inner_text()
        assert re.fullmatch(r"Thought for \d+\.\d s · \d+ tokens", summary)

        engine.parts = ("again", "<|im_end|>")
        await send(page, "And now?")
        await says(answer(page).locator(".answer"), "again")
        second = engine.prompts[1]
        assert second.index("Who are you?") < second.index("Hello wörld 🙂\n  two") < second.index("And now?")


async def test_thinking_is_markdown_once_it_is_unfolded(browser):
    more = asyncio.Event()
    engine = Script("<think>\n\nA *long*", more, " **plan**:\n\n1. this\n2. that</think>", "Hello", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await send(page, "Who are you?")
        details = answer(page).locator("details")
        await expect(details.locator(".text")).to_have_text("A *long*")  # the browser finds it on the page
        await details.locator("summary").click()
        await expect(details.locator("em")).to_have_text("long")
        more.set()
        await expect(details.locator("li")).to_have_text(["this", "that"])
        await answer(page).locator(".stats").wait_for()
        await expect(details.locator("strong")).to_have_text("plan")
        await page.reload()
        await expect(details.locator(".text")).to_contain_text("A *long* **plan**")
        await details.locator("summary").click()
        await expect(details.locator("li")).to_have_text(["this", "that"])
        await details.locator("summary").click()
        await details.locator("summary").click()
        await expect(details.locator("li")).to_have_text(["this", "that"])


async def test_a_long_wait_is_told_until_something_comes(browser):
    begin, end = asyncio.Event(), asyncio.Event()
    async with chatting(browser, Script(begin, "Hello", end, "<|im_end|>")) as page:
        await send(page, "hi")
        await expect(answer(page).locator(".wait")).to_have_text(re.compile(r"^waiting, \d+ s $"))
        begin.set()
        await says(answer(page).locator(".answer"), "Hello")
        await expect(page.locator(".wait")).to_have_count(0)
        end.set()
        await answer(page).locator(".stats").wait_for()
        await expect(page.locator(".wait")).to_have_count(0)


async def test_enter_during_an_answer_says_why_nothing_is_sent(browser):
    engine = Script("Once", asyncio.Event())
    async with chatting(browser, engine) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "Once")
        await send(page, "more")
        await page.get_by_text("An answer is arriving: stop it, or begin a new chat").wait_for()
        assert await page.get_by_label("Message", exact=True).input_value() == "more"
        assert len(engine.prompts) == 1


async def test_a_key_is_asked_for(browser):
    async with chatting(browser, Script("open", "<|im_end|>"), api_key="s3cret") as page:
        box = page.get_by_label("API key")
        await box.fill("wrong")
        await expect(page.locator("#model")).to_be_hidden()  # there are no models to choose from yet
        await page.keyboard.press("Enter")
        await page.get_by_text("the API key was refused").wait_for()
        await box.fill("s3cret")
        await page.keyboard.press("Enter")
        await connected(page)
        assert await box.is_hidden()
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "open")


async def test_an_answer_that_is_gone_is_shown_and_the_chat_goes_on(browser):
    engine = Script("Once", asyncio.Event())
    async with chatting(browser, engine, resume_grace=0, clean=False) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "Once")
        cut_connections(page)
        await answer(page).locator(".error").filter(has_text="the rest of this answer is lost").wait_for()
        await expect(page.locator("#told")).to_have_text("The answer failed")
        engine.parts = ("back", "<|im_end|>")
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "back")


async def test_a_conversation_that_is_too_long_for_the_server_is_told_and_can_be_edited(browser):
    async with chatting(browser, Script("fine", "<|im_end|>"), max_message_bytes=20_000) as page:
        await send(page, "a word " * 3500)
        await says(
            answer(page).locator(".error"),
            "the conversation is too long for this server. Shorten the message, or begin a new chat.",
        )
        await connected(page)
        await page.keyboard.press("ArrowUp")
        await page.get_by_label("Edited message").fill("a word")
        await page.keyboard.press("Enter")
        await says(answer(page).locator(".answer"), "fine")


async def test_a_page_that_is_left_stops_its_answer_unless_somebody_comes_back(browser):
    engine = Script("Once", asyncio.Event())
    async with chatting(browser, engine, resume_grace=0.1) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "Once")
        await page.goto("about:blank")
        await asyncio.wait_for(engine.closed.wait(), PATIENCE)


@pytest.mark.parametrize("secure", [True, False])
async def test_code_is_copied(browser, secure):
    """Over plain HTTP from elsewhere a browser has no `navigator.clipboard`."""
    code = "if a < b:\n    print('<b>')\n"
    script = "" if secure else "delete Navigator.prototype.clipboard;"
    async with chatting(browser, Script(f"Try:\n\n```python\n{code}```\n", "<|im_end|>"), script=script) as page:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await send(page, "hi")
        await answer(page).locator(".stats").wait_for()
        await page.locator(".code .copy").click()
        await says(page.locator(".code .copy"), "Copied")
        box = page.get_by_label("Message", exact=True)
        await box.focus()
        await page.keyboard.press("Control+V")
        assert await box.input_value() == code.removesuffix("\n")
        await page.evaluate("letGo()")
        await says(page.locator(".code .copy"), "Copy")


async def test_a_silent_connection_is_given_up(browser):
    async with chatting(browser, Script(), heartbeat=0.05, script=COUNT_HEARTBEATS) as page:
        await until(page, "window.heartbeats > 1")  # the page knows how often they come
        (connection,) = sockets(page)
        connection.transport.pause_reading()
        connection.writable.clear()  # a network that swallows everything
        await told_state(page, "no heartbeat")
        await connected(page)
        connection.transport.abort()
