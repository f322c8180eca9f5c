"""The chat page in a real browser: headless Chromium over Playwright."""

import asyncio
import base64
import json
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import expect
from serving import TOK

from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.transport.server import serve
from tokenweir.stream.serve.transport.socket_protocol import SocketProtocol

PATIENCE = 60.0
"""Seconds in which anything that is waited for happens, on a slow machine too."""

expect.set_options(timeout=1000 * PATIENCE)

TIMELESS = """{
    const later = window.setTimeout, held = [];
    window.setTimeout = (work, delay, ...given) => {
        if (![1200, 10_000].includes(delay)) return later(work, delay, ...given);
        held.push(work);
        return -1;
    };
    window.held = () => held.length;
    window.letGo = () => held.splice(0).forEach((work) => work());
    window.states = [];
    document.addEventListener("DOMContentLoaded", () => {
        const state = document.querySelector("#state");
        if (state) new MutationObserver(() => states.push(state.textContent)).observe(state, { childList: true });
    });
}"""
"""A notice stays, and so does what a button tells for a moment, until `letGo()`; `held()` counts them, and `states` keeps
what the header told."""

KEEP_SENT = """window.sent = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) { window.sent.push(JSON.parse(data)); return send.call(this, data); };"""
"""Keeps what the page sends in `sent`."""
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
"""Pastes or drops files that `brought` has made."""


@asynccontextmanager
async def chatting(browser, engine, *, script="", clean=True, **options):
    """Serve an engine and open the chat page in a tab of its own; yield the page, connected unless it wants a key.

    `page.server` is the server, and `page.problems` collects the errors and log messages of the page. It must be empty
    at the end, unless `clean` is false or the server wants a key: requests without it fail.
    """
    free = "api_key" not in options
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
            page.set_default_timeout(1000 * PATIENCE)
            page.server, page.problems = server, []
            page.on("pageerror", lambda error: page.problems.append(str(error)))
            page.on("console", lambda message: page.problems.append(message.text))
            await page.add_init_script(TIMELESS)
            if script:
                await page.add_init_script(script)
            address = f"http://127.0.0.1:{server.port}"
            profile = await page.context.new_cdp_session(page)  # which may know the port of an earlier test
            await profile.send("Storage.clearDataForOrigin", {"origin": address, "storageTypes": "all"})
            await page.goto(f"{address}/")
            if free:
                await connected(page)
            yield page
            assert page.problems == [] or not (clean and free)
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
    await expect(page.locator(".assistant .stats")).to_have_count(before + 1)


def brought(data, name="a.png", kind="image/png"):
    """Return a file for `BRING`."""
    return {"name": name, "type": kind, "data": base64.b64encode(data).decode()}


async def set_fields(page, fields):
    """Open the settings, fill fields, and save."""
    await page.get_by_role("button", name="Settings").click()
    for name, value in fields.items():
        await page.get_by_label(name).fill(value)
    await page.get_by_role("button", name="Save").click()


async def import_conversations(page, data):
    """Give the page a file of conversations, or of other bytes."""
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    file = {"name": "chats.json", "mimeType": "application/json", "buffer": content}
    await page.locator("#import-file").set_input_files(file)


@asynccontextmanager
async def another_tab(page):
    """The same page in another tab of the same browser."""
    async with page.expect_popup() as opened:
        await page.evaluate("void window.open(location.href)")
    other = await opened.value
    await connected(other)
    yield other
    await other.close()


def answer(page):
    return page.locator(".assistant").last


def listed(page):
    return page.locator("#conversations .open")


def sockets(page):
    """Return the server's connections of the page's websockets."""
    connections = page.server._uvicorn.server_state.connections
    return [connection for connection in connections if isinstance(connection, SocketProtocol)]


async def until(page, expression):
    """Wait until a JavaScript expression is true in the page.

    Playwright's own function evaluates text, which the page's security policy refuses.
    """
    for _ in range(int(20 * PATIENCE)):
        if await page.evaluate(expression):
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"never: {expression}")


async def told_state(page, text, count=1):
    """Wait until the page's header has shown a text `count` times in all; it may show another text by then."""
    await until(page, f"states.filter((one) => one.includes({text!r})).length >= {count}")


def cut_connections(page):
    """Abort the page's connections at the server; the page may have connected again when this returns."""
    for connection in sockets(page):
        connection.transport.abort()


async def lose_connections(page):
    """Cut the page's connections, and wait until it has noticed."""
    before = await page.evaluate("states.filter((one) => one.includes('trying again')).length")
    cut_connections(page)
    await told_state(page, "trying again", before + 1)


async def says(locator, text):
    """Wait until the locator's text is this."""
    await expect(locator).to_have_text(text)


async def problems(page):
    """Return the accessibility violations that axe-core finds in the page, as texts."""
    axe = pytest.importorskip("axe_playwright_python.async_playwright", reason="axe-core is not installed").Axe()
    found = await axe.run(page)
    return [f"{one['id']}: {node['html']}" for one in found.response["violations"] for node in one["nodes"]]
