"""The chat page in a real browser: headless Chromium over Playwright, skipped where there is none."""

import asyncio
import os
import shutil
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.server.limits import Limits
from tokenweir.stream.server.page import PAGE, PAGE_POLICY
from tokenweir.stream.server.protocols import SocketProtocol
from tokenweir.stream.server.serve import serve

TOK = Tokenizer.default()
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Script:
    """An engine that plays text as ids; a number is seconds to wait, an event is waited for, an error raised."""

    def __init__(self, *parts):
        self.parts = parts
        self.prompts = []
        self.closed = asyncio.Event()

    async def generate(self, prompt_ids, sampling):
        self.prompts.append(TOK.decode(prompt_ids, skip_special_tokens=False))
        try:
            for part in self.parts:
                if isinstance(part, asyncio.Event):
                    await part.wait()
                elif isinstance(part, Exception):
                    raise part
                else:
                    for token_id in TOK.encode(part):
                        yield [token_id]
        finally:
            self.closed.set()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser():
    chromium = os.environ.get("CHROME") or shutil.which("chromium")
    reason = None if chromium else "no chromium on the PATH and no CHROME in the environment"
    if reason is not None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, headless=True, args=ARGS)
        yield browser
        await browser.close()


@asynccontextmanager
async def chatting(browser, engine, **options):
    """The page, open in a fresh context; it collects the errors and the log messages that it causes."""
    changed = {name: options.pop(name) for name in ("heartbeat", "resume_grace") if name in options}
    limits = Limits(drain_timeout=0.2, send_interval=0, **changed)
    engines = engine if isinstance(engine, dict) else {"demo": engine}
    async with serve(engine=engines, tokenizer=TOK, port=0, limits=limits, **options) as server:
        page = await browser.new_page()
        try:
            page.set_default_timeout(10_000)
            page.server, page.problems = server, []
            page.on("pageerror", lambda error: page.problems.append(str(error)))
            page.on("console", lambda message: page.problems.append(message.text))
            await page.goto(f"http://127.0.0.1:{server.port}/")
            yield page
        finally:
            await page.close()


async def connected(page):
    await page.locator("#state.open").wait_for()


async def send(page, text):
    await connected(page)
    await page.get_by_label("Message").fill(text)
    await page.keyboard.press("Enter")


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


@pytest.mark.asyncio(loop_scope="module")
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
        assert await details.locator(".text").inner_text() == "Let me see."
        more.set()
        await says(answer(page).locator(".answer"), "Hello wörld 🙂\n  two")
        end.set()
        stats = answer(page).locator(".stats")
        await stats.wait_for()
        line = await stats.inner_text()
        assert " tokens in · " in line and " thinking) · first token " in line and line.endswith(" tok/s")
        assert (await details.locator("summary").inner_text()).startswith("Thought for ")

        engine.parts = ("again", "<|im_end|>")
        await send(page, "And now?")
        await says(answer(page).locator(".answer"), "again")
        second = engine.prompts[1]
        assert second.index("Who are you?") < second.index("Hello wörld 🙂\n  two") < second.index("And now?")
        assert page.problems == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("way", ["button", "Escape"])
async def test_stop(browser, way):
    engine = Script("Once upon", asyncio.Event())
    async with chatting(browser, engine) as page:
        await send(page, "Tell me a story")
        await says(answer(page).locator(".answer"), "Once upon")
        await (page.locator("#stop").click() if way == "button" else page.keyboard.press("Escape"))
        await answer(page).locator(".stats").filter(has_text="stopped").wait_for()
        await asyncio.wait_for(engine.closed.wait(), 10)
        assert await page.locator("#send").is_visible()
        assert page.problems == []


@pytest.mark.asyncio(loop_scope="module")
async def test_markup_stays_text(browser):
    attack = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    async with chatting(browser, Script(f"<think>{attack}</think>", attack, "<|im_end|>")) as page:
        await send(page, attack)
        await answer(page).locator(".stats").wait_for()
        assert await page.locator(".user").text_content() == attack
        assert await answer(page).locator(".answer").text_content() == attack
        assert await answer(page).locator("details .text").text_content() == attack
        assert await page.locator("main img, main script").count() == 0
        assert await page.title() == "tokenweir"
        assert page.problems == []


@pytest.mark.asyncio(loop_scope="module")
async def test_the_policy_lets_nothing_else_run_or_load(browser):
    async with chatting(browser, Script()) as page:
        await connected(page)
        assert page.problems == []
        await page.evaluate("""() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'owned'";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", "<img src='http://127.0.0.1:9/x'>");
        }""")
        await page.wait_for_timeout(100)
        assert await page.title() == "tokenweir"
        assert len(page.problems) == 2 and all("Content Security Policy" in problem for problem in page.problems)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_model_is_chosen(browser):
    engines = {"one": Script("first", "<|im_end|>"), "two": Script("second", "<|im_end|>")}
    async with chatting(browser, engines) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "first")
        await answer(page).locator(".stats").wait_for()
        await page.get_by_label("Model").select_option("two")
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "second")


@pytest.mark.asyncio(loop_scope="module")
async def test_an_engine_that_dies_is_shown_and_the_chat_goes_on(browser):
    engine = Script("Hel", RuntimeError("out of memory"))
    async with chatting(browser, engine) as page:
        await send(page, "hi")
        await answer(page).locator(".error").filter(has_text="the engine failed").wait_for()
        engine.parts = ("better", "<|im_end|>")
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "better")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_key_is_asked_for(browser):
    async with chatting(browser, Script("open", "<|im_end|>"), api_key="s3cret") as page:
        box = page.get_by_label("API key")
        await box.fill("wrong")
        await page.keyboard.press("Enter")
        await page.get_by_text("the API key was refused").wait_for()
        await box.fill("s3cret")
        await page.keyboard.press("Enter")
        await connected(page)
        assert await box.is_hidden()
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "open")


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_goes_on_after_a_lost_connection(browser):
    more, end = asyncio.Event(), asyncio.Event()
    engine = Script("<think>Hm.", "</think>Once", more, " upon", end, " a time", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "Once")
        for event, text in ((more, "Once upon"), (end, "Once upon a time")):
            cut_connections(page)
            await page.locator("#state.closed").wait_for()
            event.set()
            await says(answer(page).locator(".answer"), text)
        await answer(page).locator(".stats").wait_for()
        assert await answer(page).locator("details .text").text_content() == "Hm."
        assert await answer(page).locator(".error").count() == 0
        assert len(engine.prompts) == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_that_is_gone_is_shown_and_the_chat_goes_on(browser):
    engine = Script("Once", asyncio.Event())
    async with chatting(browser, engine, resume_grace=0) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "Once")
        cut_connections(page)
        await answer(page).locator(".error").filter(has_text="nobody has read it for 0 s").wait_for()
        engine.parts = ("back", "<|im_end|>")
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "back")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_page_that_is_left_stops_its_answer(browser):
    engine = Script("Once", asyncio.Event())
    async with chatting(browser, engine) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "Once")
        await page.goto("about:blank")
        await asyncio.wait_for(engine.closed.wait(), 10)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_call_is_shown_as_text(browser):
    end = asyncio.Event()
    name, arguments = "<img src=x onerror=\"document.title='owned'\">", '{"a": "<b>"}'
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": name, "arguments": arguments}
    place = {"item_id": "fc", "output_index": 1}
    events = [
        {"type": "response.output_item.added", "item": item},
        {"type": "response.function_call_arguments.delta", "delta": arguments, **place},
        {"type": "response.function_call_arguments.done", "arguments": arguments, **place},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.unheard_of"},
    ]
    async with chatting(browser, Script("Hello", end, "!", "<|im_end|>")) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "Hello")
        await page.evaluate("(all) => { for (const e of all) socket.onmessage({data: JSON.stringify(e)}) }", events)
        end.set()
        await says(answer(page).locator(".answer"), "Hello!")
        await answer(page).locator(".stats").wait_for()
        assert await answer(page).locator(".call").text_content() == f"{name}({arguments})"
        assert await page.locator("main img").count() == 0
        assert page.problems == []


@pytest.mark.asyncio(loop_scope="module")
async def test_a_silent_connection_is_given_up(browser):
    async with chatting(browser, Script(), heartbeat=0.2) as page:
        await connected(page)
        await asyncio.sleep(0.4)
        (connection,) = sockets(page)
        connection.transport.pause_reading()
        connection.writable.clear()  # a network that swallows everything
        await page.locator("#state.closed").filter(has_text="no heartbeat").wait_for()
        await connected(page)
        connection.transport.abort()


def test_the_page_is_one_small_file_that_refers_to_nothing_outside():
    assert b"http://" not in PAGE and b"https://" not in PAGE and b"innerHTML" not in PAGE
    assert "unsafe" not in PAGE_POLICY and PAGE_POLICY.count("'sha256-") == 2
