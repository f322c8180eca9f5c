"""Smoothness of the chat page with a long answer: the times between its frames, in headless Chromium.

    scripts/bench page [--tokens 50000] [--rate 2500] [--slower 4] [--write]

Needs Playwright and a Chromium, found on the PATH or named by CHROME. Prints a table; --write puts it into
bench/serving/RESULTS.md. With --slower the browser has a part of the core only, as on a telephone.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from itertools import chain, cycle, islice, product
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright
from shared.report import ROOT, arguments, machine, publish, table

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.transport.server import serve

INTRODUCTION = """Times between two frames of a page that shows an answer of {tokens} tokens, {rate} tokens a second: Markdown (lists,
tables, code, a paragraph of 200 words), one block of code, one paragraph. A display shows 60 frames a second, 16.7 ms
apart. The peer is how pages do that parse their whole text at each change: the same parser, and the nodes made anew in
each frame, without a server.{slower}"""

PROSE = " ".join(["A low dam holds a river back, just long enough that it flows over clean."] * 14) + "\n\n"

WATCH = """() => {
    window.frames_ = [];
    let last = performance.now();
    const watch = (now) => { frames_.push(now - last); last = now; window.watching = requestAnimationFrame(watch); };
    window.watching = requestAnimationFrame(watch);
}"""

WHOLE = """async ([text, seconds]) => {
    const { wholeText } = await import("/page/answer/growing.js");
    const log = document.querySelector("#log"), main = document.querySelector("main");
    const place = document.createElement("div");
    place.className = "answer markdown";
    log.replaceChildren(place);
    const begun = performance.now();
    for (let shown = 0; shown < text.length; ) {
        await new Promise(requestAnimationFrame);
        shown = Math.min(text.length, Math.ceil((performance.now() - begun) / 1000 / seconds * text.length));
        place.replaceChildren(...wholeText(text.slice(0, shown)));
        main.scrollTop = main.scrollHeight;
    }
}"""


class Paced:
    """An engine that gives so many ids a second, a hundred times a second."""

    def __init__(self, ids: list[int], rate: float) -> None:
        self._ids = ids
        self._rate = rate

    async def generate(self, prompt_ids: Any, sampling: Any) -> Any:
        """Yield the ids."""
        begun, given = time.monotonic(), 0
        while given < len(self._ids):
            await asyncio.sleep(0.01)
            due = min(len(self._ids), int((time.monotonic() - begun) * self._rate))
            if due > given:
                yield self._ids[given:due]
            given = due


def markdown() -> list[str]:
    """The recordings, with prose behind each."""
    texts = [path.read_text() for path in sorted((ROOT / "scripts" / "texts" / "recordings").glob("*.md"))]
    return [text.rpartition("</think>")[2].strip() + "\n\n" + PROSE for text in texts]


def code() -> list[str]:
    """Return the source of this file, as an answer with code."""
    return [Path(__file__).read_text()]


def long_answer(tokenizer: Tokenizer, beginning: str, texts: list[str], tokens: int) -> list[int]:
    """The ids of a beginning, and of texts again and again."""
    begun, *pieces = (tokenizer.encode(text, parse_special=False) for text in [beginning, *texts])
    return list(islice(chain(begun, (token_id for piece in cycle(pieces) for token_id in piece)), tokens))


async def frames(page: Page) -> list[float]:
    """Milliseconds between the frames since `WATCH`."""
    times: list[float] = await page.evaluate("() => { cancelAnimationFrame(watching); return frames_; }")
    return times[1:]


async def the_page(page: Page, seconds: float) -> list[float]:
    """The answer through the server."""
    await page.get_by_label("Message", exact=True).fill("Go on")
    await page.evaluate(WATCH)
    await page.keyboard.press("Enter")
    await page.locator(".stats").wait_for(timeout=(seconds + 120) * 1000)
    return await frames(page)


async def anew(page: Page, text: str, seconds: float) -> list[float]:
    """The peer: all of it anew in each frame."""
    await page.evaluate(WATCH)
    await page.evaluate(WHOLE, [text, seconds])
    return await frames(page)


def row(name: str, times: list[float]) -> list[str]:
    """A row of the table."""
    ordered = sorted(times)
    quantiles = [ordered[int(len(ordered) * share)] for share in (0.5, 0.95, 0.99)]
    late = sum(time > 50 for time in times)
    return [name, str(len(times)), *(f"{time:.1f}" for time in [*quantiles, ordered[-1]]), str(late)]


async def measure(browser: Browser, tokens: int, rate: float, slower: float) -> str:
    """The table."""
    tokenizer = Tokenizer.default()
    answers = {
        "Markdown": long_answer(tokenizer, "", markdown(), tokens),
        "one block of code": long_answer(tokenizer, "```python\n", code(), tokens),
        "one paragraph": long_answer(tokenizer, "", [PROSE.replace("\n", " ")], tokens),
    }
    seconds = tokens / rate
    rows = []
    limits = Limits(max_output_tokens=tokens + 1)
    for (kind, ids), shown in product(answers.items(), ("the page", "all anew")):
        async with serve(engine=Paced(ids, rate), tokenizer=tokenizer, port=0, limits=limits) as server:
            page = await browser.new_page(viewport={"width": 1000, "height": 800})
            page.set_default_timeout((seconds + 500) * 1000)
            await page.goto(f"http://127.0.0.1:{server.port}/")
            await page.locator("#state.open").wait_for()
            if slower > 1:
                tools = await page.context.new_cdp_session(page)
                await tools.send("Emulation.setCPUThrottlingRate", {"rate": slower})
            whole = tokenizer.decode(ids)
            times = await (the_page(page, seconds) if shown == "the page" else anew(page, whole, seconds))
            rows.append(row(f"{kind}, {shown}", times))
            await page.close()
    return table(["", "frames", "median, ms", "95 %", "99 %", "worst", "later than 50 ms"], rows)


async def run(tokens: int, rate: float, slower: float) -> str:
    """Return the table and the sentences that explain it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=os.environ.get("CHROME")
            or shutil.which("chromium")
            or shutil.which("chromium-headless-shell"),
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"],
        )
        version = browser.version
        found = await measure(browser, tokens, rate, slower)
        await browser.close()
    note = f" DevTools slows the page's process down {slower:g} times." if slower > 1 else ""
    introduction = INTRODUCTION.format(tokens=f"{tokens:,}", rate=f"{rate:,.0f}", slower=note)
    return f"{machine()}, Chromium {version} without a GPU\n\n{introduction}\n\n{found}"


def main() -> None:
    """Measure, print, and write with --write."""
    options = arguments(__doc__, tokens=50_000, rate=2500.0, slower=1.0)
    text = asyncio.run(run(options.tokens, options.rate, options.slower))
    publish("page", text, options.write)


if __name__ == "__main__":
    main()
