"""Images of a message: pasted, dropped and chosen, sent as parts of the message."""

import base64
from functools import cache
from os import urandom

from case_tables import cases
from page_in_browser import BRING, KEEP_SENT, answer, ask, brought, chatting, says, send
from pictures import TEMPLATE, Sighted, png
from playwright.async_api import expect
from serving import Script

CASES = cases(__file__)


@cache
def photograph():
    """A picture that compresses badly."""
    width, height = 800, 600
    return png(width, height, rows=b"".join(b"\0" + urandom(width) for _ in range(height)))


def thumbnails(page):
    return page.locator("#attachments img")


async def test_images_are_pasted_dropped_chosen_removed_and_sent(browser):
    async with chatting(browser, Sighted("fine", "<|im_end|>"), template=TEMPLATE, script=KEEP_SENT) as page:
        small = png(3, 2)
        await page.evaluate(BRING, ["paste", [brought(small)]])
        await expect(thumbnails(page)).to_have_count(1)
        await page.evaluate(BRING, ["drop", [brought(small), brought(png(3000, 10))]])
        await expect(thumbnails(page)).to_have_count(3)
        chosen = {"name": "b.png", "mimeType": "image/png", "buffer": png(4, 4)}
        await page.locator("#files").set_input_files(chosen)
        await expect(thumbnails(page)).to_have_count(4)
        await page.get_by_role("button", name="Remove image 4").click()
        await page.get_by_role("button", name="Remove image 2").click()
        await expect(thumbnails(page)).to_have_count(2)
        await page.get_by_label("Message", exact=True).fill("What is it?")
        await page.keyboard.press("Enter")
        await expect(thumbnails(page)).to_have_count(0)
        await expect(page.locator(".mine .pictures img")).to_have_count(2)
        (message,) = (await page.evaluate("sent"))[0]["input"]
        text, first, second = message["content"]
        assert text == {"type": "input_text", "text": "What is it?"}
        assert first["type"] == "input_image"
        assert first["image_url"] == "data:image/png;base64," + base64.b64encode(small).decode()
        assert second["image_url"].startswith("data:image/jpeg;base64,")
        await says(answer(page).locator(".answer"), "fine")
        width = await page.locator(".mine .pictures img").last.evaluate(
            "async (image) => { await image.decode(); return image.naturalWidth; }"
        )
        assert width == 2048


async def test_what_is_no_image_is_told(browser):
    async with chatting(browser, Sighted(), template=TEMPLATE) as page:
        for one, told in CASES["what_is_no_image_is_told"]:
            await page.evaluate(BRING, ["drop", [one]])
            await page.get_by_text(told).wait_for()
        await page.evaluate(BRING, ["drop", [brought(png(1, 1))] * 9])
        await page.get_by_text("A message has at most 8 files").wait_for()
        await expect(thumbnails(page)).to_have_count(8)


async def test_a_model_without_vision_is_told_in_a_sentence(browser):
    engines = {"sighted": Sighted("fine", "<|im_end|>"), "blind": Script("fine", "<|im_end|>")}
    async with chatting(browser, engines, template=TEMPLATE) as page:
        await page.evaluate(BRING, ["paste", [brought(png(3, 2))]])
        await expect(thumbnails(page)).to_have_count(1)
        await page.get_by_role("button", name="Send").click()
        await says(answer(page).locator(".answer"), "fine")
        await page.get_by_label("Model", exact=True).select_option("blind")
        await page.evaluate(BRING, ["paste", [brought(png(3, 2))]])
        await page.get_by_text("a.png: this model takes no images").wait_for()
        await expect(thumbnails(page)).to_have_count(0)
        await send(page, "And now?")
        told = "This model takes no images: delete the message that has them, and write it without."
        await says(answer(page).locator(".error"), told)


async def test_a_photograph_is_scaled_to_what_the_server_takes(browser):
    """Conversations go with every request, so each image leaves room for others."""
    engine = Sighted("fine", "<|im_end|>")
    async with chatting(browser, engine, template=TEMPLATE, max_message_bytes=400_000) as page:
        for number in (1, 2):
            await page.evaluate(BRING, ["paste", [brought(photograph())]])
            await expect(thumbnails(page)).to_have_count(1)
            await send(page, "What is it?")
            await expect(page.locator(".assistant .answer")).to_have_text(["fine"] * number)
            assert engine.seen[-1].media[-1].media_type == "image/jpeg"
        assert len(engine.seen[-1].media) == 2 and sum(len(each.url) for each in engine.seen[-1].media) < 400_000
        for _ in range(9):
            await page.evaluate(BRING, ["drop", [brought(photograph())]])
        await page.get_by_text("a.png: this conversation has no room for it on this server").wait_for()


async def test_a_conversation_with_too_many_images_is_told(browser):
    script = """const { fetch } = window;
    window.fetch = async (...given) => {
        const reply = await fetch(...given);
        const { data } = await reply.clone().json().catch(() => ({}));
        for (const model of data ?? []) delete model.max_message_bytes;
        return data ? Response.json({ data }) : reply;
    };"""  # as a server that tells no limit
    engine = Sighted("fine", "<|im_end|>")
    async with chatting(browser, engine, template=TEMPLATE, max_message_bytes=20_000, script=script) as page:
        await page.evaluate(BRING, ["paste", [brought(photograph())]])
        await expect(thumbnails(page)).to_have_count(1)
        await page.get_by_role("button", name="Send").click()
        await says(
            answer(page).locator(".error"),
            "the conversation with its images is too long for this server. Shorten the message, or begin a new chat.",
        )


async def test_images_and_text_files_go_together(browser):
    async with chatting(browser, Sighted("fine", "<|im_end|>"), template=TEMPLATE, script=KEEP_SENT) as page:
        await page.evaluate(BRING, ["drop", [brought(png(3, 2)), brought(b"a,b", "t.csv", "text/csv")]])
        await expect(page.locator("#attachments li")).to_have_count(2)
        await ask(page, "What is it?")
        text, image = (await page.evaluate("sent"))[0]["input"][0]["content"]
        assert text == {"type": "input_text", "text": "t.csv:\n```csv\na,b\n```\n\nWhat is it?"}
        assert image["type"] == "input_image"
