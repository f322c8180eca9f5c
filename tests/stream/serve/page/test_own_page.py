"""The browser code of the documentation, on a page of another origin."""

import asyncio
import re
from contextlib import asynccontextmanager
from pathlib import Path

from page_in_browser import PATIENCE
from playwright.async_api import expect
from serving import TOK, Script

from tokenweir.stream.serve.transport.server import serve

ROOT = Path(__file__).resolve().parents[4]


def code(page, language):
    """The first block of code of a page."""
    return re.search(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)[1]


@asynccontextmanager
async def shown(browser, html):
    """Serve a page and, at another port, the chat that it talks to; yield the page in a browser."""

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        body = html.replace("8080", str(chat.port)).encode()
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as own:
        origin = f"http://localhost:{own.sockets[0].getsockname()[1]}"
        async with serve(engine=Script("A low dam.", "<|im_end|>"), tokenizer=TOK, port=0, origins=[origin]) as chat:
            page = await browser.new_page()
            page.set_default_timeout(1000 * PATIENCE)
            await page.goto(origin)
            yield page
            await page.close()


async def test_the_readme_streams_into_a_page(browser):
    async with shown(browser, f"<body><script>{code('README.md', 'javascript')}</script></body>") as page:
        await expect(page.locator("body")).to_contain_text("A low dam.")


async def test_a_page_of_ones_own_asks_and_goes_on(browser):
    async with shown(browser, code("docs/howto/own-page.md", "html")) as page:
        for question in ("What is a weir?", "And a dam?"):
            await page.locator("input").fill(question)
            await page.keyboard.press("Enter")
            await expect(page.locator("pre")).to_have_text("A low dam.")
