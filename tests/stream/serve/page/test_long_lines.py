"""A long line that grows: it is laid out in parts that look as one."""

import pytest
import pytest_asyncio
from page_in_browser import chatting
from serving import Script

GROW = """async ([pieces, style]) => {
    const { GrowingText } = await import("/page/answer/growing-text.js");
    const place = document.createElement("div"), whole = document.createElement("div");
    for (const each of [place, whole]) {
        each.className = "text";
        each.style.cssText = `width: 500px; ${style}`;
    }
    document.body.append(place);
    const growing = new GrowingText(place);
    let longest = 0;
    for (const piece of pieces) {
        growing.append(piece);
        place.getBoundingClientRect();  // the browser lays it out between two frames
        longest = Math.max(longest, place.lastChild?.textContent.length ?? 0);
    }
    const text = pieces.join("");
    new GrowingText(whole).append(text);  // on no screen yet, so it stays whole
    document.body.append(whole);
    window.kept = { growing, place, whole };
    return longest;
}"""
"""Text grows in `place`, and stands in `whole` at once; returns the most characters that the last block had."""

LOOKS = """() => [kept.place, kept.whole].map((root) => {
    const origin = root.getBoundingClientRect(), found = [];
    let passed = 0;
    for (const { firstChild: node } of root.childNodes) {
        for (let at = 0; at < node.length; at += 1) {
            if (passed++ % 7) continue;
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + 1);
            const { left, top } = range.getBoundingClientRect();
            found.push(`${Math.round(left - origin.left)} ${Math.round(top - origin.top)}`);
        }
    }
    return found;
})"""
"""Places of every seventh character, in both."""

BLOCKS = "() => [kept.place, kept.whole].map((root) => [...root.childNodes].map((node) => node.textContent.length))"
WORDS = "weir 🙂 dam "
TEXTS = {
    "one line": [WORDS * 20] * 60,
    "a line after others": ["first\nsecond\n", *[WORDS * 20] * 60],
    "lines that follow": [*[WORDS * 20] * 60, "an end\nanother", *[WORDS * 20] * 60, "\n\nthe last"],
    "a word without an end": ["x" * 200] * 60,
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(browser):
    async with chatting(browser, Script()) as page:
        yield page


@pytest.mark.parametrize("name", TEXTS)
async def test_a_long_line_is_laid_out_in_parts_that_look_as_one(page, name):
    longest = await page.evaluate(GROW, [TEXTS[name], ""])
    assert longest <= 2000 + 240
    parts, whole = await page.evaluate(BLOCKS)
    assert len(parts) > len(whole) and sum(parts) == sum(whole)
    places, expected = await page.evaluate(LOOKS)
    assert places == expected
    await page.evaluate("kept.growing.end()")
    parts, whole = await page.evaluate(BLOCKS)
    assert sum(parts) == sum(whole) and len(parts) <= len(whole) + 2
    assert (await page.evaluate(LOOKS))[0] == expected


@pytest.mark.parametrize("change", ["width = '300px'", "fontSize = '22px'"])
async def test_parts_are_joined_where_lines_would_wrap_elsewhere(page, change):
    await page.evaluate(GROW, [TEXTS["one line"], ""])
    await page.evaluate(f"for (const each of [kept.place, kept.whole]) each.style.{change}")
    await page.evaluate("kept.growing.append('x'); kept.whole.lastChild.firstChild.appendData('x')")
    places, expected = await page.evaluate(LOOKS)
    assert places == expected


@pytest.mark.parametrize(
    "beginning, style", [("", "white-space: pre"), ("", "display: none"), ("\u05e9\u05dc\u05d5\u05dd", "")]
)
async def test_lines_that_cannot_be_cut_stay_whole(page, beginning, style):
    await page.evaluate(GROW, [[beginning, *TEXTS["one line"]], style])
    assert await page.evaluate(BLOCKS) == [[len(beginning) + 14_400]] * 2
