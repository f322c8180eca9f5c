"""Layout and use of the page: accessibility, a phone's width, the keyboard alone."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from case_tables import cases
from full_run import FULL
from page_in_browser import PATIENCE, answer, ask, chatting, connected, problems, says, send
from playwright.async_api import expect
from serving import Script

CASES = cases(__file__)

EVERYTHING = """<think>Let me see.</think># Title

A paragraph with **bold**, *italics*, `code`, ~~gone~~, $x^2$ and [a link](https://b.example).

### Deeper

1. one
   - two
2. three

> quoted

```python
print("a line that is much too long for the width of a telephone, so that it has to scroll sideways", 1, 2, 3)
```

| a | b | c | d | e | f | g | h |
|---|--:|---|---|---|---|---|---|
| one thing | 2 | another thing | one more thing | thing | thing | thing | thing |

$$
x = y
$$

averyveryveryveryveryveryveryveryveryveryveryveryveryveryveryverylongword

---
"""
ENGINE = (EVERYTHING, "<|im_end|>")
PHONE = {"width": 360, "height": 640}
LOOKS = [(size, colours) for size in ({"width": 1280, "height": 800}, PHONE) for colours in ("light", "dark")]


@pytest.mark.parametrize(("size", "colours"), LOOKS if FULL else LOOKS[::3])
async def test_axe_finds_nothing(browser, size, colours):
    async with chatting(browser, Script(*ENGINE)) as page:
        await page.emulate_media(color_scheme=colours)
        await page.set_viewport_size(size)
        await connected(page)
        assert await problems(page) == []
        await ask(page, "Show me *everything*")
        await page.locator("details summary").click()
        if await page.locator("#conversations").is_hidden():
            assert await problems(page) == []
            await page.get_by_role("button", name="Chats").click()
        assert await problems(page) == []
        await page.get_by_role("button", name="Chats").click()
        await page.get_by_role("button", name="Edit").click()
        assert await problems(page) == []
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Tokens", exact=True).click()
        await page.locator(".token").last.wait_for()
        await page.locator(".token.control").first.hover()
        assert await problems(page) == []
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Settings").click()
        assert await problems(page) == []


async def test_axe_finds_nothing_in_what_fails(browser):
    async with chatting(browser, Script(RuntimeError("out of memory")), api_key="s3cret") as page:
        await page.get_by_label("API key").wait_for()
        assert await problems(page) == []
        await page.get_by_label("API key").fill("s3cret")
        await page.keyboard.press("Enter")
        await connected(page)
        await page.get_by_label("Message", exact=True).fill("hi")
        await page.keyboard.press("Enter")
        await answer(page).locator(".error").wait_for()
        await page.get_by_role("button", name="Delete", exact=True).first.click()
        await page.get_by_role("button", name="Undo").wait_for()
        assert await problems(page) == []


async def test_a_telephone_scrolls_down_only(browser):
    async with chatting(browser, Script(*ENGINE)) as page:
        await page.set_viewport_size(PHONE)
        await connected(page)
        assert (await page.locator("header").bounding_box())["height"] < 60
        await ask(page, "Show me " + "everything" * 20)
        for selector in ("html", "body", "main"):
            wider = await page.eval_on_selector(selector, "(node) => node.scrollWidth - node.clientWidth")
            assert wider == 0, selector
        assert await page.locator(".code pre").evaluate("(pre) => pre.scrollWidth > 2 * pre.clientWidth")
        for name in ("Send", "Copy", "Settings", "Chats"):
            box = await page.get_by_role("button", name=name, exact=True).first.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"], name
        await page.get_by_role("button", name="Settings").click()
        assert await page.eval_on_selector("#settings", "(node) => node.scrollWidth - node.clientWidth") == 0


async def test_what_is_written_from_right_to_left_is_shown_so(browser):
    said = "مرحبا."
    parts = f"<think>{said}</think>{said}\n\n- {said}\n\n> {said}\n\n# {said}\n\n| {said} |\n|---|\n| {said} |\n\n$$\n{said}\n$$\n"
    async with chatting(browser, Script(parts, "<|im_end|>")) as page:
        await ask(page, said)
        await page.locator("details summary").click()
        found = await page.evaluate(
            """(said) => {
                const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
                const left = (node, at) => {
                    const range = document.createRange();
                    range.setStart(node, at);
                    range.setEnd(node, at + 1);
                    return range.getBoundingClientRect().left;
                };
                while (nodes.nextNode()) {
                    const node = nodes.currentNode, at = node.data.indexOf(said);
                    if (at < 0 || !node.parentElement.checkVisibility() || node.parentElement.matches(".unseen")) continue;
                    found.push([node.parentElement.outerHTML, left(node, at + said.length - 1) < left(node, at)]);
                }
                return found;
            }""",
            said,
        )
        assert len(found) == 10 and all(right_to_left for _, right_to_left in found), found
        composer = page.get_by_label("Message", exact=True)
        assert await composer.evaluate("(node) => getComputedStyle(node).unicodeBidi") == "plaintext"


async def test_the_keyboard_is_enough(browser):
    async with chatting(browser, Script("one", "<|im_end|>")) as page:
        await ask(page, "hi")
        reached = set()
        for _ in range(40):
            await page.keyboard.press("Tab")
            reached.add(
                await page.evaluate("document.activeElement.textContent.trim() || document.activeElement.ariaLabel")
            )
        names = set(CASES["the_keyboard_is_enough"])
        assert names <= reached
        await page.get_by_role("button", name="Regenerate").focus()
        await page.keyboard.press("Enter")
        await answer(page).locator(".stats").wait_for()
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()
        await page.keyboard.type("first")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("second")
        await page.keyboard.press("Enter")
        await says(page.locator(".user").last, "first\nsecond")


async def test_nothing_is_asked_of_anyone_else(browser):
    async with chatting(browser, Script(*ENGINE)) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        await page.reload()
        await ask(page, "hi")
        await page.get_by_role("button", name="Tokens", exact=True).click()
        await page.locator(".token").last.wait_for()
        origin = f"http://127.0.0.1:{page.server.port}/"
        assert asked and all(url.startswith((origin, "data:,")) for url in asked)


NO_ANCHORS = """const unanchored = new CSSStyleSheet();
unanchored.replaceSync("main { overflow-anchor: none; }");
document.adoptedStyleSheets = [unanchored];"""
"""Keep the browser from anchoring the view."""


KEEP_MANY = """() => new Promise((resolve) => {
    const opening = indexedDB.open("tokenweir");
    opening.onsuccess = () => {
        const transaction = opening.result.transaction("summaries", "readwrite");
        for (let id = 0; id < 50; id += 1) transaction.objectStore("summaries").put({ id: `${id}`, title: "kept", changed: id });
        transaction.oncomplete = resolve;
    };
})"""
"""Fill the list of conversations."""


LINES = "\n\n".join(f"paragraph {number}" for number in range(100))


@asynccontextmanager
async def long_answer(browser, *more):
    """Show a long answer, which continues with `more`, up to its end; yield the page and its view."""
    async with chatting(browser, Script(LINES, *more, "<|im_end|>")) as page:
        await send(page, "hi")
        await page.get_by_text("paragraph 99").wait_for()
        main = page.locator("main")
        await at_the_end(main)
        yield page, main


async def at_the_end(main, move=lambda: asyncio.sleep(0)):
    await distance(main, lambda pixels: pixels < 5, move)


async def distance(main, wanted, move=lambda: asyncio.sleep(0)):
    """Move the view until the end of the conversation is as many pixels below it as wanted."""
    for _ in range(int(20 * PATIENCE)):
        await move()
        pixels = await main.evaluate("(main) => main.scrollHeight - main.scrollTop - main.clientHeight")
        if wanted(pixels):
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"the end is {pixels} pixels away")


async def test_the_end_stays_in_sight_unless_the_reader_scrolls_up(browser):
    more, end = asyncio.Event(), asyncio.Event()
    async with long_answer(browser, more, "\n\n" + LINES, end, "\n\nend") as (page, main):
        await scroll_up(page)
        more.set()
        await expect(page.get_by_text("paragraph 99")).to_have_count(2)
        await distance(main, lambda pixels: pixels > 2000)
        # One turn of the wheel ends where the browser's last picture ended, which may lack the newest paragraphs.
        await at_the_end(main, lambda: page.mouse.wheel(0, 100_000))
        end.set()
        await answer(page).locator(".stats").wait_for()
        await expect(page.locator(".assistant .actions")).to_be_in_viewport()


async def test_only_the_conversation_and_the_list_scroll(browser):
    """A hidden name far below would make the document scroll, over nothing."""
    async with long_answer(browser) as (page, _):
        await answer(page).locator(".stats").wait_for()
        await page.evaluate(KEEP_MANY)
        await page.get_by_role("button", name="New chat").click()
        await expect(page.locator("#conversations li")).to_have_count(51)
        await page.get_by_role("button", name="hi", exact=True).click()
        await page.get_by_text("paragraph 99").wait_for()
        assert await page.locator("html").evaluate("(root) => root.scrollHeight - root.clientHeight") == 0


MOVE = """async (main) => {
    const frame = () => new Promise(requestAnimationFrame);
    main.scrollTop = main.scrollHeight - main.clientHeight - 300;
    await frame(); await frame();
}"""
"""Move the view, and let the page answer."""

STILL = """async (main) => {
    const frame = () => new Promise(requestAnimationFrame);
    for (let last = NaN, same = 0; same < 10; last = main.scrollTop) {
        await frame();
        same = main.scrollTop === last ? same + 1 : 0;
    }
}"""
"""Wait until nothing moves the view any more."""


async def scroll_up(page):
    """Turn the wheel until the end is out of sight."""
    main = page.locator("main")
    await main.hover()
    await distance(main, lambda pixels: pixels > 1000, lambda: page.mouse.wheel(0, -2000))
    await main.evaluate(STILL)


SCROLL_BACK = """async (main) => {
    const frame = () => new Promise(requestAnimationFrame), moves = [];
    const blocks = [...main.querySelectorAll(".answer > *")];
    for (let step = 0; step < 15; step += 1) {
        const seen = blocks.find((block) => block.getBoundingClientRect().bottom > 300), before = seen.getBoundingClientRect().top;
        main.scrollTop -= 200;
        await frame(); await frame(); await frame();
        moves.push(Math.round(seen.getBoundingClientRect().top - before));
    }
    return moves;
}"""
"""Scroll up in steps; returns by how many pixels what is in sight moved in each."""


async def test_scrolling_back_is_even_though_blocks_have_other_sizes_than_expected(browser):
    """Chromium anchors the view itself; others do not while it scrolls."""
    lists = "\n\n".join("\n".join(f"- item {line}" for line in range(1 + block % 9)) + "\n\nand" for block in range(60))
    async with chatting(browser, Script(lists, "<|im_end|>"), script=NO_ANCHORS) as page:
        await ask(page, "hi")
        await page.get_by_role("button", name="New chat").click()
        await page.locator("#conversations .open").click()
        await page.locator(".stats").wait_for()
        main = page.locator("main")
        await at_the_end(main)
        await scroll_up(page)
        assert all(abs(move - 200) <= 2 for move in await main.evaluate(SCROLL_BACK))


GROW_AND_MOVE = """async (main) => {
    const frame = () => new Promise(requestAnimationFrame), now = performance.now();
    performance.now = () => now; // a slow machine draws a frame in a second
    main.querySelector(".answer").append(document.createElement("hr"));
    await frame(); await frame();
    main.scrollTop -= 300;
    await frame(); await frame();
    delete performance.now;
}"""


async def test_the_end_stays_in_sight_if_the_browser_moves_the_view(browser):
    """Without a wheel, a finger or a key the view stays at the end: a first answer was lost below the window."""
    end = asyncio.Event()
    async with long_answer(browser, end, "\n\nend") as (page, main):
        await main.evaluate(GROW_AND_MOVE)
        await at_the_end(main)
        end.set()
        await answer(page).locator(".stats").wait_for()
        await at_the_end(main)


async def test_a_search_in_the_page_moves_the_view(browser):
    async with long_answer(browser) as (_, main):
        # The view goes back to the end as long as something has grown a moment ago.
        await distance(main, lambda pixels: pixels > 200, lambda: main.evaluate(MOVE))


async def test_a_button_jumps_to_the_end(browser):
    async with long_answer(browser) as (page, main):
        jump = page.get_by_role("button", name="Jump to the end")
        await expect(jump).to_be_hidden()
        await scroll_up(page)
        await jump.click()
        await at_the_end(main)
        await expect(jump).to_be_hidden()


async def test_the_first_screen_names_the_model_and_has_things_to_try(browser):
    engines = {"small": Script("one", "<|im_end|>"), "large": Script("two", "<|im_end|>")}
    async with chatting(browser, engines) as page:
        await says(page.locator(".hint h2"), "small")
        await page.get_by_label("Model", exact=True).select_option("large")
        await says(page.locator(".hint h2"), "large")
        await page.get_by_role("button", name="Why is the sky blue?").click()
        await says(page.locator(".user"), "Why is the sky blue?")
        await says(answer(page).locator(".answer"), "two")


async def test_actions_of_earlier_messages_show_on_hover_and_focus(browser):
    async with chatting(browser, Script("one", "<|im_end|>")) as page:
        await ask(page, "hi")
        actions = page.locator(".mine .actions")
        await page.mouse.move(5, 5)
        await expect(actions).to_have_css("opacity", "0")
        await page.locator(".mine").hover()
        await expect(actions).to_have_css("opacity", "1")
        await page.mouse.move(5, 5)
        await actions.get_by_role("button", name="Edit").focus()
        await expect(actions).to_have_css("opacity", "1")
        await expect(page.locator(".assistant .actions")).to_have_css("opacity", "1")


async def test_shortcuts_and_their_sheet(browser):
    async with chatting(browser, Script("one", "<|im_end|>")) as page:
        await ask(page, "hi")
        sheet, chats = page.locator("#shortcuts"), page.locator("#conversations")
        await page.keyboard.press("Control+/")
        await expect(sheet).to_contain_text("Search the conversations")
        assert await problems(page) == []
        await page.keyboard.press("Escape")
        await expect(sheet).to_be_hidden()
        await page.locator("main").focus()
        await page.keyboard.press("?")
        await expect(sheet).to_be_visible()
        await sheet.get_by_role("button", name="Close").click()
        await page.keyboard.press("Control+Shift+S")
        await expect(chats).to_be_hidden()
        await page.keyboard.press("Control+K")
        await expect(page.get_by_label("Search conversations")).to_be_focused()
        await page.keyboard.press("Control+Shift+O")
        await expect(page.locator(".user")).to_have_count(0)
        await page.locator("main").focus()
        await page.keyboard.press("Shift+Escape")
        await page.keyboard.type("why?")
        assert await page.get_by_label("Message", exact=True).input_value() == "why?"


async def test_who_scrolls_to_the_end_as_it_moves_on_has_reached_it(browser):
    """The text grows between the scrolling and the event that tells of it."""
    end = asyncio.Event()
    async with long_answer(browser, end) as (page, main):
        await scroll_up(page)
        await main.evaluate("""(main) => {
            main.scrollTop = main.scrollHeight;
            main.querySelector(".answer").append(...Array.from({ length: 50 }, () => document.createElement("hr")));
        }""")
        await at_the_end(main)
        end.set()


SHRINK_AND_GROW = """async (times) => {
    const { followEnd } = await import("./page/follow.js");
    const view = document.createElement("div"), content = document.createElement("div");
    view.append(content);
    document.body.append(view);
    view.style.cssText = "position: fixed; inset: 0 auto auto 0; width: 100px; height: 200px; overflow: auto";
    const frame = () => new Promise(requestAnimationFrame);
    const size = (pixels) => { content.style.height = `${pixels}px`; };
    const distance = () => view.scrollHeight - view.scrollTop - view.clientHeight;
    const drawn = () => new Promise((done) => {
        const seen = new ResizeObserver(() => { seen.disconnect(); setTimeout(done); });
        seen.observe(content);
    });
    size(1000);
    followEnd(view, content)();
    await frame(); await frame();
    await new Promise((done) => { setTimeout(done); });
    requestAnimationFrame(() => size(1000));  // as an answer that takes the place of its cursor
    size(700);
    view.scrollTop;  // a layout between two frames moves the view
    await frame(); await frame();
    const distances = [distance()], now = performance.now();
    performance.now = () => now; // a slow machine draws a frame in a second
    for (let time = 0; time < times; time++) {
        size(1000); await frame(); await frame(); await frame();
        size(700); await drawn();  // laid out and drawn; what tells of the scrolling comes with the next frame
        size(1200); await frame(); await frame(); await frame();
        distances.push(distance());
    }
    view.remove();
    delete performance.now;
    return distances;
}"""
"""Distances to the end of text that shrinks and has its size again before anybody is told that it changed, and then of
text that shrinks and grows: the browser moves the view up, and what tells of it comes when the text has grown again."""


async def test_the_end_stays_in_sight_if_text_shrinks_before_it_grows(browser):
    async with chatting(browser, Script("<|im_end|>")) as page:
        assert max(await page.evaluate(SHRINK_AND_GROW, 5)) < 5


async def test_the_end_stays_in_sight_if_the_view_gets_smaller(browser):
    end = asyncio.Event()
    async with long_answer(browser, end) as (page, main):
        await page.get_by_label("Message", exact=True).fill("line\n" * 10)
        await at_the_end(main)
        end.set()
