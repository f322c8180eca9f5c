"""Images of a message: pasted, dropped and chosen, sent as parts of the message."""

import base64
import struct
import zlib

import pytest
from page_in_browser import Script, answer, chatting, connected, says
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


def png(width, height):
    """A black picture."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" * (width + 1) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def file(data, name="a.png", kind="image/png"):
    return {"name": name, "type": kind, "data": base64.b64encode(data).decode()}


def thumbnails(page):
    return page.locator("#images img")


@pytest.mark.asyncio(loop_scope="session")
async def test_images_are_pasted_dropped_chosen_removed_and_sent(browser):
    async with chatting(browser, Script("fine", "<|im_end|>"), script=KEEP_SENT) as page:
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
        width = await page.locator(".mine .pictures img").last.evaluate("(image) => image.naturalWidth")
        assert width == 2048
        assert page.problems == []


@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_no_image_is_told(browser):
    async with chatting(browser, Script()) as page:
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
    script = """const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (data) {
        const error = { message: 'input[0].content[0].type: "input_image" is none of input_text', param: "input[0].content[0].type" };
        if (!data.includes("input_image")) return send.call(this, data);
        this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify({ type: "error", error }) }));
    };"""
    async with chatting(browser, Script("fine", "<|im_end|>"), script=script) as page:
        await connected(page)
        await page.evaluate(BRING, ["paste", [file(png(3, 2))]])
        await expect(thumbnails(page)).to_have_count(1)
        await page.get_by_role("button", name="Send").click()
        told = "This model takes no images: delete the message that has them, and write it without."
        await says(answer(page).locator(".error"), told)
        await page.get_by_label("Message", exact=True).fill("Then without")
        await page.keyboard.press("Enter")
        await says(answer(page).locator(".answer"), "fine")
        assert page.problems == []
