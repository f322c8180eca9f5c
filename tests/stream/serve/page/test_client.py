"""The page's client as a module that other pages import."""

import asyncio

from page_in_browser import chatting, cut_connections, until
from serving import Script

USE = """async () => {
    const { Connection } = await import("/page/connection.js");
    window.seen = [];
    window.kinds = [];
    const opened = new Promise((resolve) => {
        window.connection = new Connection({
            state: (kind) => { if (kind === "open") resolve(); kinds.push(kind); },
            models: (models) => { window.models = models.map(({ id }) => id); },
            keyWanted: () => {},
            lost: (code) => seen.push({ type: "lost", code }),
            event: (event) => seen.push(event),
        });
    });
    connection.connect();
    await opened;
}"""
TEXT = """() => seen.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta).join("")"""


async def test_an_answer_is_resumed_with_each_event_once(browser):
    more = asyncio.Event()
    engine = Script("Once", more, " upon a time", "<|im_end|>")
    async with chatting(browser, engine, clean=False) as page:
        await page.evaluate(USE)
        assert await page.evaluate("models") == ["demo"]
        await page.evaluate("connection.create({ model: 'demo', input: 'hi', store: false })")
        await until(page, f"({TEXT})() === 'Once'")
        cut_connections(page)
        await until(page, "kinds.includes('closed')")
        more.set()
        await until(page, "seen.at(-1).type === 'response.completed'")
        assert await page.evaluate(TEXT) == "Once upon a time"
        numbers = await page.evaluate("seen.map((event) => event.sequence_number)")
        assert numbers == list(range(len(numbers)))
        assert len(engine.prompts) == 1


async def test_an_answer_is_cancelled_and_the_next_one_comes(browser):
    engine = Script("Once", asyncio.Event())
    async with chatting(browser, engine) as page:
        await page.evaluate(USE)
        await page.evaluate("connection.create({ model: 'demo', input: 'hi', store: false })")
        await until(page, f"({TEXT})() === 'Once'")
        assert await page.evaluate("connection.cancel()")
        await until(page, "seen.at(-1).type === 'response.incomplete'")
        engine.parts = (" again", "<|im_end|>")
        await page.evaluate("connection.create({ model: 'demo', input: 'hi', store: false })")
        await until(page, "seen.at(-1).type === 'response.completed'")
