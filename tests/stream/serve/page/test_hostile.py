"""Hostile names, errors and kept conversations show as text on the page, and its content security policy holds."""

import asyncio
import json

from page_in_browser import answer, ask, chatting, connected, says, send, until
from serving import Script

MARKUP = "<img src=x onerror=\"document.title='owned'\"><svg onload=\"document.title='owned'\">"
ESCAPES = "\u202e\x1b[2J\x00\u2028"


async def unharmed(page):
    """Nothing was made of markup but text."""
    assert (
        await page.locator(
            "main :is(img, svg:not(.icon), [onload], [onerror], script, style, iframe, object, link, form:not(.result), base)"
        ).count()
        == 0
    )
    assert (await page.title()).endswith("tokenweir")


async def test_names_and_arguments_of_calls_are_text(browser):
    call = json.dumps({"name": f"a{MARKUP}{ESCAPES}", "arguments": {MARKUP: f"javascript:{MARKUP}"}})
    async with chatting(browser, Script(f"<tool_call>{call}</tool_call><|im_end|>")) as page:
        await send(page, "hi")
        await answer(page).locator(".stats").wait_for()
        assert MARKUP[:20] in await answer(page).text_content()
        await unharmed(page)


async def test_names_of_models_are_text(browser):
    engines = {f"m{MARKUP}": Script("one", "<|im_end|>"), f"n{ESCAPES}</option>": Script("two", "<|im_end|>")}
    async with chatting(browser, engines) as page:
        await ask(page, "hi")
        await unharmed(page)


async def test_errors_are_text(browser):
    async with chatting(browser, Script("fine", "<|im_end|>")) as page:
        await page.evaluate(
            """(markup) => {
                const send = WebSocket.prototype.send;
                WebSocket.prototype.send = function (data) {
                    const error = { type: "error", sequence_number: 0, status: 400,
                                    error: { type: "invalid_request_error", code: markup, message: markup, param: markup } };
                    this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(error) }));
                };
            }""",
            MARKUP,
        )
        await send(page, "hi")
        await page.get_by_text("onerror").first.wait_for()
        await unharmed(page)


PUT = """(kept) => new Promise((resolve) => {
    const opening = indexedDB.open("tokenweir");
    opening.onsuccess = () => {
        const transaction = opening.result.transaction(["conversations", "summaries"], "readwrite");
        for (const one of kept) for (const name of ["conversations", "summaries"]) transaction.objectStore(name).put(one);
        transaction.oncomplete = () => { opening.result.close(); resolve(); };
    };
})"""
PARTS = [
    {"type": "text", "text": f"{MARKUP}[a](javascript:alert(1)) [b](http://127.0.0.1:9/)"},
    {"type": "reasoning", "text": MARKUP},
    {"type": "call", "call_id": MARKUP, "name": MARKUP, "arguments": MARKUP, "complete": True},
]
LINE = "[" * 200_000
TOKENS = {"prompt": [], "ids": [], "logprobs": []}
USAGE = {"input_tokens": MARKUP, "output_tokens": MARKUP}
KEPT = {
    "markup": [
        {"role": "user", "text": MARKUP},
        {"role": "assistant", "parts": PARTS, "tokens": TOKENS, "usage": USAGE, "error": MARKUP, "note": MARKUP},
    ],
    "wrong types": [{"role": 5, "text": {"a": MARKUP}}, None, 7, "x", []],
    "no list": MARKUP,
    "a long line": [
        {"role": "user", "text": "a" * 200_000},
        {"role": "assistant", "tokens": TOKENS, "parts": [{"type": "text", "text": LINE}]},
    ],
}


async def test_a_kept_conversation_may_hold_anything(browser):
    """Whoever served this address before may have written it. A record of another shape shows nothing and harms nothing."""
    async with chatting(browser, Script("fine", "<|im_end|>"), clean=False) as page:
        kept = [
            {"id": f"{name}{MARKUP}", "title": f"{name} {MARKUP}", "changed": 1, "messages": messages}
            for name, messages in KEPT.items()
        ]
        await page.evaluate(PUT, kept)
        await page.reload()
        for name in KEPT:
            await page.locator("#conversations .open").filter(has_text=f"{name} <img src=x onerror").click()
            if name == "markup":
                await page.locator(".assistant .error").get_by_text("onerror").wait_for()
            if name == "a long line":
                await until(page, f"document.querySelector('.assistant .answer')?.textContent.length === {len(LINE)}")
            await unharmed(page)
            assert await page.locator("main a[href^=javascript]").count() == 0
            await page.locator("#new").click()
            await ask(page, "hi")
            await says(answer(page).locator(".answer"), "fine")
            await unharmed(page)
        assert not [problem for problem in page.problems if "policy" in problem.lower()]


BLOCKED = ["script-src-elem", "img-src", "frame-src", "style-src-elem", "base-uri", "connect-src", "form-action"]


async def test_the_policy_holds(browser):
    """Try inline scripts and handlers, eval, other origins, bases and frames, as an injected script would."""
    reached = []

    async def serve(reader, writer):
        if request := await reader.readline():  # Chromium also opens connections in advance, which carry no request
            reached.append(request)
        writer.close()

    other = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with chatting(browser, Script("fine", "<|im_end|>"), clean=False) as page, other:
        await connected(page)
        blocked = await page.evaluate(
            """async ([home, expected]) => {
                const blocked = [];
                document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
                const add = (tag, fields) => {
                    try { document.body.append(Object.assign(document.createElement(tag), fields)); } catch {}
                };
                add("script", { textContent: "document.title = 'owned'" });
                add("script", { src: "data:text/javascript,document.title='owned'" });
                add("script", { src: `${home}/a.js` });
                add("script", { type: "module" });
                await import(`${home}/a.js`).catch(() => 0);
                add("img", { src: `${home}/a.png` });
                add("iframe", { src: `${home}/` });
                add("object", { data: `${home}/` });
                add("link", { rel: "stylesheet", href: `${home}/a.css` });
                add("style", { textContent: "body { display: none }" });
                add("base", { href: `${home}/` });
                let ran = 0;
                try { eval("ran = 1"); } catch {}
                try { new Function("document.title = 'owned'")(); } catch {}
                await fetch(`${home}/`).catch(() => 0);
                try { new WebSocket(home.replace("http", "ws")); } catch {}
                try { document.body.innerHTML = "<img src=x onerror=document.title='owned'>"; ran += 2; } catch {}
                const form = Object.assign(document.createElement("form"), { action: `${home}/`, method: "post" });
                document.body.append(form);
                form.submit();
                for (let time = 0; time < 600 && !expected.every((one) => blocked.includes(one)); time++) {
                    await new Promise((resolve) => setTimeout(resolve, 50));
                }
                return [blocked, ran, getComputedStyle(document.body).display, document.baseURI, document.title];
            }""",
            [f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}", BLOCKED],
        )
        directives, ran, display, base, title = blocked
        assert ran == 0 and display != "none" and base == f"http://127.0.0.1:{page.server.port}/"
        assert set(BLOCKED) <= set(directives)
        assert reached == []
        assert title == "tokenweir"
