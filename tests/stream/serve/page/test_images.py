"""Images of a message: pasted, dropped and chosen, sent as parts of the message."""

import base64
import struct
import zlib
from functools import cache
from os import urandom

import pytest
from page_in_browser import Script, answer, chatting, connected, says, send
from pictures import TEMPLATE
from playwright.async_api import expect

KEEP_SENT = """window.sent = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) { window.sent.push(JSON.parse(data)); return send.call(this, data); };"""
BRING = """async ([kind, files]) => {
    const transfer = new DataTransfer();
    for (const { name, type, data } of files) {
        transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name, { type }));
    }
    const box = document.querySelector("#composer textarea");
    if (kind === "paste") {
        box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }));
    } else {
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }
}"""


def png(width, height, rows=None):
    """A picture in shades of grey, which is black without rows."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" * (width + 1) * height if rows is None else rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class Sighted(Script):
    """An engine that takes images, and keeps what it got."""

    media = frozenset({"image"})

    def generate(self, prompt_ids, sampling, *, media=None):
        self.seen = media
        return super().generate(prompt_ids, sampling)


@cache
def photograph():
    """A picture that compresses badly."""
    width, height = 800, 600
    return png(width, height, b"".join(b"\0" + urandom(width) for _ in range(height)))


def file(data, name="a.png", kind="image/png"):
    return {"name": name, "type": kind, "data": base64.b64encode(data).decode()}


def thumbnails(page):
    return page.locator("#images img")


@pytest.mark.asyncio(loop_scope="session")
async def test_images_are_pasted_dropped_chosen_removed_and_sent(browser):
    async with chatting(browser, Sighted("fine", "<|im_end|>"), template=TEMPLATE, script=KEEP_SENT) as page:
        await connected(page)
        small = png(3, 2)
        await page.evaluate(BRING, ["paste", [file(small)]])
        await expect(thumbnails(page)).to_have_count(1)
        await page.evaluate(BRING, ["drop", [file(small), file(png(3000, 10))]])
        await expect(thumbnails(page)).to_have_count(3)
        chosen = {"name": "b.png", "mimeType": "image/png", "buffer": png(4, 4)}
        await page.locator("#image-files").set_input_files(chosen)
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
        assert page.problems == []


@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_no_image_is_told(browser):
    async with chatting(browser, Sighted(), template=TEMPLATE) as page:
        await connected(page)
        for one, told in (
            (file(b"%PDF", "a.pdf", "application/pdf"), "a.pdf: only PNG, JPEG, WebP and GIF images can be sent"),
            (file(b"nothing"), "a.png: the image cannot be read"),
        ):
            await page.evaluate(BRING, ["drop", [one]])
            await page.get_by_text(told).wait_for()
        await page.evaluate(BRING, ["drop", [file(png(1, 1))] * 9])
        await page.get_by_text("A message has at most 8 images").wait_for()
        await expect(thumbnails(page)).to_have_count(8)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_model_without_vision_is_told_in_a_sentence(browser):
    engines = {"sighted": Sighted("fine", "<|im_end|>"), "blind": Script("fine", "<|im_end|>")}
    async with chatting(browser, engines, template=TEMPLATE) as page:
        await connected(page)
        await page.evaluate(BRING, ["paste", [file(png(3, 2))]])
        await expect(thumbnails(page)).to_have_count(1)
        await page.get_by_role("button", name="Send").click()
        await says(answer(page).locator(".answer"), "fine")
        await expect(page.get_by_role("button", name="Add images")).to_be_visible()
        await page.get_by_label("Model", exact=True).select_option("blind")
        await expect(page.get_by_role("button", name="Add images")).to_be_hidden()
        await page.evaluate(BRING, ["paste", [file(png(3, 2))]])
        await page.get_by_text("This model takes no images").wait_for()
        await expect(thumbnails(page)).to_have_count(0)
        await send(page, "And now?")
        told = "This model takes no images: delete the message that has them, and write it without."
        await says(answer(page).locator(".error"), told)
        assert page.problems == []


@pytest.mark.asyncio(loop_scope="session")
async def test_a_photograph_is_scaled_to_what_the_server_takes(browser):
    """Conversations go with every request, so each image leaves room for others."""
    engine = Sighted("fine", "<|im_end|>")
    async with chatting(browser, engine, template=TEMPLATE, max_message_bytes=400_000) as page:
        await connected(page)
        for number in (1, 2):
            await page.evaluate(BRING, ["paste", [file(photograph())]])
            await expect(thumbnails(page)).to_have_count(1)
            await send(page, "What is it?")
            await expect(page.locator(".assistant .answer")).to_have_text(["fine"] * number)
            assert engine.seen.media[-1].media_type == "image/jpeg"
        assert len(engine.seen.media) == 2 and sum(len(each.url) for each in engine.seen.media) < 400_000
        for _ in range(9):
            await page.evaluate(BRING, ["drop", [file(photograph())]])
        await page.get_by_text("a.png: this conversation has no room for it on this server").wait_for()
        assert page.problems == []


@pytest.mark.asyncio(loop_scope="session")
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
        await connected(page)
        await page.evaluate(BRING, ["paste", [file(photograph())]])
        await expect(thumbnails(page)).to_have_count(1)
        await page.get_by_role("button", name="Send").click()
        await says(
            answer(page).locator(".error"),
            "the conversation with its images is too long for this server. Shorten the message, or begin a new chat.",
        )
