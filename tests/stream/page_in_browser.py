"""The chat page in a real browser: headless Chromium over Playwright."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import expect

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.events.step import EngineStep
from tokenweir.stream.serve.entry.server import serve
from tokenweir.stream.serve.entry.socket_protocol import SocketProtocol
from tokenweir.stream.serve.limits.limits import Limits

TOK = Tokenizer.default()


class Script:
    """An engine that plays text as ids; an event is waited for, an error raised, and a step yielded as it is."""

    def __init__(self, *parts):
        self.parts = parts
        self.prompts, self.samplings = [], []
        self.closed = asyncio.Event()

    async def generate(self, prompt_ids, sampling):
        self.prompts.append(TOK.decode(prompt_ids, skip_special_tokens=False))
        self.samplings.append(sampling)
        try:
            for part in self.parts:
                if isinstance(part, asyncio.Event):
                    await part.wait()
                elif isinstance(part, Exception):
                    raise part
                elif isinstance(part, EngineStep):
                    yield part
                else:
                    for token_id in TOK.encode(part):
                        yield [token_id]
        finally:
            self.closed.set()


@asynccontextmanager
async def chatting(browser, engine, *, script="", **options):
    """The page, open in a tab of its own; it collects the errors and the log messages that it causes."""
    changed = {
        name: options.pop(name)
        for name in ("heartbeat", "resume_grace", "max_output_tokens", "max_message_bytes", "send_interval")
        if name in options
    }
    limits = Limits(**{"drain_timeout": 0.2, "send_interval": 0, **changed})
    engines = engine if isinstance(engine, dict) else {"demo": engine}
    async with serve(engine=engines, tokenizer=TOK, port=0, limits=limits, **options) as server:
        page = await browser.new_page()
        try:
            page.set_default_timeout(10_000)
            page.server, page.problems = server, []
            page.on("pageerror", lambda error: page.problems.append(str(error)))
            page.on("console", lambda message: page.problems.append(message.text))
            if script:
                await page.add_init_script(script)
            await page.goto(f"http://127.0.0.1:{server.port}/")
            yield page
        finally:
            await page.close()


async def connected(page):
    await page.locator("#state.open").wait_for()


async def send(page, text):
    await connected(page)
    await page.get_by_label("Message", exact=True).fill(text)
    await page.keyboard.press("Enter")


async def ask(page, text):
    """Send a message and wait for the whole answer."""
    before = await page.locator(".assistant .stats").count()
    await send(page, text)
    await expect(page.locator(".assistant .stats")).to_have_count(before + 1, timeout=10_000)


def answer(page):
    return page.locator(".assistant").last


def sockets(page):
    """The server's ends of the page's sockets."""
    connections = page.server._uvicorn.server_state.connections
    return [connection for connection in connections if isinstance(connection, SocketProtocol)]


def cut_connections(page):
    for connection in sockets(page):
        connection.transport.abort()


async def says(locator, text):
    """Wait until the locator's text is this."""
    await expect(locator).to_have_text(text, timeout=10_000)


async def problems(page):
    """Return the findings of axe-core, as text."""
    axe = pytest.importorskip("axe_playwright_python.async_playwright", reason="axe-core is not installed").Axe()
    found = await axe.run(page)
    return [f"{one['id']}: {node['html']}" for one in found.response["violations"] for node in one["nodes"]]
