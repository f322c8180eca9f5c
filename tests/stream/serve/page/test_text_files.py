"""Text files of a message: attached, shown, folded and sent as blocks of code."""

from page_in_browser import BRING, KEEP_SENT, answer, ask, brought, chatting, problems, says
from playwright.async_api import expect
from serving import Script


def chips(page):
    return page.locator("#attachments .chip")


async def drop(page, *files):
    await page.evaluate(BRING, ["drop", list(files)])


async def sent_text(page, place=-1):
    """The content of the last message of a request that the page has sent."""
    requests = [one for one in await page.evaluate("sent") if one["type"] == "response.create"]
    return requests[place]["input"][-1]["content"]


async def test_text_files_are_sent_as_blocks_under_their_names(browser):
    async with chatting(browser, Script("fine", "<|im_end|>"), script=KEEP_SENT) as page:
        code = "print('<b>')\n"
        await page.evaluate(BRING, ["paste", [brought(code.encode(), "a.py", "text/x-python")]])
        await expect(chips(page)).to_have_text(["a.py13 bytes"])
        await drop(page, brought("città, 1\n".encode() * 200, "b.csv", "text/csv"), brought(b"x", "c", ""))
        await expect(chips(page)).to_have_text(["a.py13 bytes", "b.csv2.0 KB", "c1 bytes"])
        chosen = {"name": "d.json", "mimeType": "application/json", "buffer": b"{}"}
        await page.locator("#files").set_input_files(chosen)
        await expect(chips(page)).to_have_count(4)
        assert await problems(page) == []
        await page.get_by_role("button", name="Remove d.json").click()
        await page.get_by_role("button", name="Remove b.csv").click()
        await ask(page, "What is it?")
        assert await sent_text(page) == f"a.py:\n```py\n{code}```\n\nc:\n```\nx\n```\n\nWhat is it?"
        await expect(chips(page)).to_have_count(0)
        await says(page.locator(".user"), "What is it?")


async def test_a_sent_file_is_folded_and_kept(browser):
    async with chatting(browser, Script("fine", "<|im_end|>"), script=KEEP_SENT) as page:
        await drop(page, brought(b"def f():\n    pass\n", "long name.py", "text/plain"))
        await expect(chips(page)).to_have_count(1)
        await page.get_by_role("button", name="Send").click()
        await answer(page).locator(".stats").wait_for()
        await expect(page.locator("#conversations .open")).to_have_text(["long name.py"])  # there is no other text
        first = await sent_text(page)
        for reload in (False, True):
            if reload:
                await page.reload()
            folded = page.locator(".mine details.file")
            await says(folded.locator("summary"), "long name.py18 bytes")
            await expect(folded.locator("code")).to_have_count(0)
            await folded.locator("summary").click()
            await says(folded.locator("code"), "def f():\n    pass")
            await says(folded.locator(".code-keyword").first, "def")
            await expect(page.locator(".user")).to_be_hidden()
            assert await problems(page) == []
        await page.get_by_role("button", name="Edit").click()
        await page.get_by_label("Edited message").fill("Explain")
        await page.keyboard.press("Enter")
        await expect(page.locator(".user")).to_have_text(["Explain"])
        await expect(page.locator(".mine details.file")).to_have_count(1)
        await answer(page).locator(".stats").wait_for()
        assert await sent_text(page) == f"{first}\n\nExplain"
        search = page.get_by_label("Search conversations")
        for text, found in (("DEF F", 1), ("long name", 1), ("nowhere", 0)):
            await search.fill(text)
            await expect(page.locator("#conversations .open")).to_have_count(found)


async def test_a_text_cannot_close_its_block(browser):
    hostile = "```\nnot the file\n`````\n" + "``" * 3 + "` end"
    async with chatting(browser, Script("fine", "<|im_end|>"), script=KEEP_SENT) as page:
        await drop(page, brought(hostile.encode(), "a`\n.md", "text/markdown"))
        await page.get_by_role("button", name="Send").click()
        await answer(page).locator(".stats").wait_for()
        fence = "`" * 8
        assert await sent_text(page) == f"a  .md:\n{fence}md\n{hostile}\n{fence}"


BINARY = "the file is neither an image (PNG, JPEG, WebP, GIF) nor text in UTF-8"


async def test_what_is_no_text_is_refused_in_a_line(browser):
    async with chatting(browser, Script("fine", "<|im_end|>")) as page:
        for number, (data, kind, told) in enumerate(
            [
                (b"a\xff", "text/plain", BINARY),
                (b"a\x00b", "text/plain", BINARY),
                ("häuser".encode("utf-16"), "text/plain", BINARY),
                (b"\x7fELF\x02\x01\x01\x00", "", BINARY),
                (b"", "text/plain", "the file is empty"),
                (b"x" * 300_000, "text/plain", "the file has 300 KB; text files may have 256 KB"),
            ]
        ):
            await drop(page, brought(data, f"{number}.bin", kind))
            await says(page.locator("#notice span"), f"{number}.bin: {told}")
        await expect(chips(page)).to_have_count(0)


async def test_a_file_without_room_on_the_server_is_refused(browser):
    async with chatting(browser, Script("fine", "<|im_end|>"), max_message_bytes=30_000) as page:
        await drop(page, brought(b"x " * 9000, "one.txt", "text/plain"), brought(b"x " * 9000, "two.txt", "text/plain"))
        await says(
            page.locator("#notice span"),
            "two.txt: this conversation has no room for it on this server; begin a new chat",
        )
        await expect(chips(page)).to_have_count(1)
        await ask(page, "What is it?")
