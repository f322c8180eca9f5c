"""States of the page besides a conversation that goes well: empty, failed, too long, covered by the list."""

import asyncio

from page_in_browser import answer, ask, chatting, connected, cut_connections, says, send
from playwright.async_api import expect
from serving import Script

TOPS = "(all) => all.map((one) => Math.round(one.getBoundingClientRect().top))"
HEIGHTS = "(all) => all.map((one) => Math.round(one.getBoundingClientRect().height))"
PHONE = {"width": 390, "height": 844}


class Failing(Script):
    """An engine that fails at first."""

    failures = 1

    async def generate(self, prompt_ids, sampling):
        if self.failures:
            self.failures -= 1
            raise RuntimeError("no memory")
        async for step in super().generate(prompt_ids, sampling):
            yield step


class Small(Script):
    """An engine with a short context."""

    context_size = 20


async def test_an_empty_list_says_what_comes_there(browser):
    async with chatting(browser, Script("a river", "<|im_end|>")) as page:
        await says(page.locator("#found"), "Your conversations will be listed here. They stay in this browser.")
        first, second, *_ = await page.locator(".ideas b").evaluate_all(TOPS)
        assert first == second  # though one text is longer
        await ask(page, "hi")
        await says(page.locator("#found"), "")
        await page.get_by_label("Search conversations").fill("nowhere")
        await says(page.locator("#found"), "Nothing found")
        (found,), (files,) = [await page.locator(name).evaluate_all(TOPS) for name in ("#found", ".files")]
        assert found < files / 2  # where the conversations would be


async def test_an_engine_that_failed_is_tried_again(browser):
    async with chatting(browser, Failing("a river", "<|im_end|>")) as page:
        await send(page, "hi")
        failure = answer(page).locator(".error")
        await failure.filter(has_text="the engine failed").wait_for()
        assert (
            await failure.locator("p").evaluate("(p) => getComputedStyle(p, '::first-letter').textTransform")
            == "uppercase"
        )
        await answer(page).get_by_role("button", name="Try again").click()
        await says(answer(page).locator(".answer"), "a river")
        assert await answer(page).get_by_role("button", name="Regenerate").is_visible()


async def test_what_is_too_long_for_the_model_is_told_with_a_way_out(browser):
    async with chatting(browser, Small("a river", "<|im_end|>")) as page:
        await send(page, "word " * 50)
        told = "context holds 20 at most. Shorten the message, or begin a new chat."
        await answer(page).locator(".error").filter(has_text=told).wait_for()


async def test_a_list_that_covers_the_conversation_is_left(browser):
    async with chatting(browser, Script("a river", asyncio.Event())) as page:
        await page.set_viewport_size(PHONE)
        await send(page, "hi")
        await page.get_by_text("a river").wait_for()
        for way in ("a tap beside it", "Escape"):
            await page.get_by_role("button", name="Chats", exact=True).click()
            await expect(page.locator("#conversations")).to_be_visible()
            if way == "Escape":
                await page.keyboard.press("Escape")
                await expect(page.locator("#chats")).to_be_focused()
            else:
                box = await page.locator("#set").bounding_box()
                await page.mouse.click(box["x"] + 10, box["y"] + 10)  # a button that is covered
            await expect(page.locator("#conversations")).to_be_hidden()
            await expect(page.locator("#settings")).to_be_hidden()
            await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        await page.get_by_role("button", name="Settings").click()
        await expect(page.locator("#settings")).to_be_visible()


async def test_controls_of_one_line_have_one_height(browser):
    async with chatting(browser, Script()) as page:
        await page.get_by_role("button", name="Settings").click()
        heights = await page.locator("#settings :is(.row input, select)").evaluate_all(HEIGHTS)
        assert max(heights) - min(heights) <= 1
        await page.set_viewport_size(PHONE)
        left = await page.locator("#settings .row input").evaluate_all(TOPS)
        assert left[0] == left[1] < left[2]  # two in a row
        assert await page.locator("#settings").evaluate("(box) => box.scrollWidth <= box.clientWidth")


async def test_hidden_actions_leave_no_gap(browser):
    async with chatting(browser, Script("> a river\n\nflows", "<|im_end|>")) as page:
        await ask(page, "hi")
        above = await page.locator(".user").bounding_box()
        below = await page.locator(".answer").bounding_box()
        assert below["y"] - above["y"] - above["height"] < 48
        quote = await page.locator("blockquote").bounding_box()
        text = await page.locator("blockquote p").bounding_box()
        assert quote["height"] == text["height"]


async def test_a_telephone_tells_a_lost_connection_in_full(browser):
    engines = {"a river": Script(), "a model with a name that is much longer than its header": Script()}
    async with chatting(browser, engines, clean=False) as page:
        await page.set_viewport_size(PHONE)
        await connected(page)
        header = await page.locator("header").bounding_box()
        name = await page.locator("#model").bounding_box()
        settings = await page.locator("#set").bounding_box()
        assert name["width"] < header["width"] / 2  # as wide as its own name
        await page.route("**/v1/models", lambda route: route.abort())
        cut_connections(page)
        await page.locator("#state.closed").wait_for()
        assert await page.locator("#state").evaluate("(state) => state.scrollWidth <= state.clientWidth")
        assert await page.locator("header").bounding_box() == header
        assert await page.locator("#model").bounding_box() == name
        assert await page.locator("#set").bounding_box() == settings


async def test_a_notice_is_seen_above_the_list_on_a_telephone(browser):
    async with chatting(browser, Script("a river", "<|im_end|>")) as page:
        await page.set_viewport_size(PHONE)
        await ask(page, "hi")
        await page.get_by_role("button", name="Chats", exact=True).click()
        await page.locator("nav").get_by_role("button", name="Delete hi").click()
        await page.get_by_role("button", name="Undo").click()  # which Playwright refuses if something covers it
        await expect(page.locator("nav li")).to_have_count(1)
