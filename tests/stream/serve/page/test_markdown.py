"""Markdown to nodes, whole and while it grows."""

import random

import pytest
import pytest_asyncio
from case_tables import cases
from full_run import FULL, share
from page_in_browser import answer, chatting, says, send
from serving import Script

from tokenweir.stream.serve.limits.limits import Limits

TABLES = cases(__file__)

LIBRARY = """async () => {
    const { GrowingMarkdown, wholeText } = await import("/page/answer/growing.js");
    const held = (nodes) => { const root = document.createElement("div"); root.append(...nodes); return root; };
    window.whole = (text) => held(wholeText(text));
    window.grown = (text, cuts) => {
        const root = document.createElement("div");
        const growing = new GrowingMarkdown(root);
        let from = 0;
        for (const cut of [...cuts, text.length]) {
            growing.append(text.slice(from, cut));
            growing.render();
            from = cut;
        }
        growing.end();
        return root;
    };
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(browser):
    async with chatting(browser, Script(), clean=False) as page:
        await page.route("**/vendor/katex/*", lambda route: route.abort())  # formulas stay source
        await page.evaluate(LIBRARY)
        yield page


CASES = TABLES["cases"]


@pytest.mark.parametrize("name", CASES)
async def test_nodes(page, name):
    source, expected = CASES[name]
    assert await page.evaluate("(text) => whole(text).innerHTML", source) == expected


async def test_code_and_tables(page):
    found = await page.evaluate(
        """(text) => {
            const root = whole(text);
            const code = root.querySelector(".code");
            return [code.querySelector("code").textContent, code.querySelector(".language").textContent,
                    code.querySelector("button").textContent, root.querySelector("td.right").textContent,
                    root.querySelectorAll("tr").length];
        }""",
        "```python title=x\nif a < b:\n    *c*\n\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n",
    )
    assert found == ["if a < b:\n    *c*\n", "python", "Copy", "2", 2]


@pytest.mark.parametrize("sign", [">", "- ", "[^1]: "])
async def test_what_is_nested_too_deep_stays_text(page, sign):
    source = sign * 2000 + "a"
    assert await page.evaluate("(text) => whole(text).textContent", source) == source


# What a random text is made of: the beginnings and ends of every kind of block, and what may come to stand between.
PIECES = TABLES["pieces"]


def drawn_text(draw):
    return "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 40)))


@pytest.mark.parametrize("seed", range(share(10)))
async def test_growing_text_ends_as_the_whole_text(page, seed):
    draw = random.Random(seed)
    cases = []
    for _ in range(400):
        text = drawn_text(draw)
        units = len(text.encode("utf-16-le")) // 2
        few = sorted(draw.choices(range(units + 1), k=draw.randint(0, 5)))
        cases.append([text, draw.choice([few, list(range(units))])])
    different = await page.evaluate(
        """(cases) => cases.find(([text, cuts]) => grown(text, cuts).innerHTML !== whole(text).innerHTML)""", cases
    )
    if different:
        text, cuts = different
        shown = await page.evaluate("([text, cuts]) => [grown(text, cuts).innerHTML, whole(text).innerHTML]", different)
        assert shown[0] == shown[1], (text, cuts)


@pytest.mark.parametrize(
    "part", ["word ", "- item\n", "2. item\n", "- item\n\n", "> quoted\n", "| a | b |\n", "- ", "\n    code"]
)
async def test_long_blocks_end_as_the_whole_text(page, part):
    text = "| a | b |\n|---|---|\n" + part * 3000 + "\n\nend"
    assert await page.evaluate(
        """(text) => grown(text, Array.from({ length: 50 }, (_, place) => place * text.length / 50 | 0)).innerHTML
            === whole(text).innerHTML""",
        text,
    )


HOSTILE = ["[", "![", "*a ", "_a", "`a``b", "> ", "- ", "> a\n", "|a|b|\n|-|-|\n", "[a](", "<", "$a ", "\\(", "[a]: b\n",
    "[^", "[^1]: ", "[^1]: a\n\n", "^[", "[^1]: a\n\n" + "[^" * 1000 + "\n\n"]  # fmt: skip


@pytest.mark.parametrize("part", HOSTILE)
async def test_hostile_repetition_is_shown(page, part):
    """It would hang a parser that starts anew at each sign; the page's time limit for a test would end that."""
    text = part * (100_000 // len(part))
    shown = await page.evaluate(
        """(text) => {
            const root = grown(text, Array.from({ length: 30 }, (_, place) => place * text.length / 30 | 0));
            return [root.innerHTML === whole(text).innerHTML, root.childElementCount];
        }""",
        text,
    )
    assert shown[0] and shown[1] >= (part != "[a]: b\n")


async def test_what_is_done_keeps_its_nodes(page):
    assert await page.evaluate(
        """async () => {
            const { GrowingMarkdown } = await import("/page/answer/growing.js");
            const root = document.createElement("div");
            const growing = new GrowingMarkdown(root);
            const say = (text) => { growing.append(text); growing.render(); };
            say("one\\n\\n- a\\n- b\\n");
            const [paragraph, item] = [root.children[0], root.children[1].children[0]];
            say("- c\\n- d\\n\\n```\\nx\\n");
            const code = root.querySelector("code");
            say("y\\n```\\n\\nend");
            return root.children[0] === paragraph && root.children[1].children[0] === item
                && root.querySelector("code") === code && code.textContent === "x\\ny";
        }"""
    )


@pytest.mark.parametrize("part", ["[", "> "])
async def test_a_long_hostile_answer_leaves_the_page_alive(browser, part):
    length = 100_000 if FULL else 20_000
    engine = Script(part * (length // len(part)), "<|im_end|>")
    async with chatting(browser, engine, max_output_tokens=length, send_interval=Limits().send_interval) as page:
        await send(page, "hi")
        await answer(page).locator(".stats").wait_for(timeout=600_000)
        assert len(await answer(page).locator(".answer").text_content()) >= length - len(part)
        engine.parts = ("fine", "<|im_end|>")
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "fine")


async def test_an_answer_fetches_nothing_and_runs_nothing(browser):
    hostile = (
        "![a](http://127.0.0.1:9/a.png) [b](javascript:document.title='owned') <http://127.0.0.1:9/c>\n\n"
        "[d]: http://127.0.0.1:9/d\n\n![e][d]\n\n<style>@import 'http://127.0.0.1:9/f'</style>\n\n"
        "<iframe src=http://127.0.0.1:9/g>\n\n```html\n<script>document.title='owned'</script>\n```\n"
    )
    async with chatting(browser, Script(hostile, "<|im_end|>")) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        await send(page, "hi")
        await answer(page).locator(".stats").wait_for()
        assert asked == [] and page.problems == []
        assert await page.locator("main :is(img, script, style, iframe, object, link)").count() == 0
        schemes = await page.evaluate("() => [...document.querySelectorAll('main a')].map((a) => a.protocol)")
        assert set(schemes) == {"http:"}
        assert (await page.title()).endswith("tokenweir")
