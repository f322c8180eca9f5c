"""Branches: other answers to a message, and other wordings of it."""

from page_in_browser import answer, ask, chatting, says
from playwright.async_api import expect
from serving import Script

GROWN = """async (seed) => {
    const { forked, switched, without } = await import("./page/conversation/branches.js");
    let state = seed, count = 0;
    const draw = (below) => (state = (state * 1103515245 + 12345) % 2147483648) % below;
    const conversation = () => ({ messages: [count++, count++, count++], forks: [] });
    const all = ({ messages, forks }) => [
        ...messages, ...forks.flatMap(({ tails }) => tails.flatMap((tail) => (tail ? all(tail) : []))),
    ];
    let now = conversation();
    for (let step = 0; step < 60; step++) {
        const frozen = JSON.stringify(now), had = all(now), at = draw(now.messages.length);
        const fork = now.forks[draw(now.forks.length || 1)];
        let next, wanted = had;
        if (draw(2) && fork) {
            const which = draw(fork.tails.length);
            next = which === fork.shown ? now : switched(now, fork.at, which);
        } else if (draw(8) === 0 && now.messages.length > 4) {
            next = without(now, at, at + 1);
            wanted = null;
        } else {
            next = forked(now, at);
            next.messages.push(count++, count++);
            wanted = [...had, count - 2, count - 1];
        }
        if (JSON.stringify(now) !== frozen) return "changed in place";
        if (wanted && String(all(next).sort((a, b) => a - b)) !== String(wanted.sort((a, b) => a - b))) return `lost at ${step}`;
        if (!next.forks.every(({ at, shown, tails }) => (
            at < next.messages.length && tails.length > 1 && tails.every((tail, place) => (tail === null) === (place === shown))
        ))) return `wrong forks at ${step}: ${JSON.stringify(next)}`;
        now = next;
    }
    return "";
}"""
"""Draws changes of a conversation: no message is lost but by deleting, and each fork shows one of its branches."""


def branch(page):
    return page.locator(".branch")


async def test_forks_keep_every_message(browser):
    async with chatting(browser, Script()) as page:
        for seed in range(40):
            assert await page.evaluate(GROWN, seed) == "", seed


async def test_answers_are_branches_with_what_followed(browser):
    engine = Script("first", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await ask(page, "hi")
        await expect(branch(page)).to_have_count(0)
        engine.parts = ("later", "<|im_end|>")
        await ask(page, "more")
        engine.parts = ("second", "<|im_end|>")
        await page.get_by_role("button", name="Regenerate").first.click()
        await says(answer(page).locator(".answer"), "second")
        await says(branch(page).locator("span:not(.unseen)"), "2/2")
        await expect(page.get_by_role("button", name="Next branch")).to_be_disabled()
        await page.get_by_role("button", name="Previous branch").click()
        await expect(page.locator(".answer")).to_have_text(["first", "later"])
        await expect(page.get_by_role("button", name="Next branch")).to_be_focused()
        await page.reload()
        await expect(page.locator(".answer")).to_have_text(["first", "later"])
        await page.get_by_role("button", name="Next branch").click()
        await expect(page.locator(".answer")).to_have_text(["second"])
        engine.parts = ("so", "<|im_end|>")
        await ask(page, "and?")
        assert "second" in engine.prompts[-1] and "first" not in engine.prompts[-1] and "more" not in engine.prompts[-1]
        await page.locator(".assistant").first.hover()
        await page.locator(".assistant").first.get_by_role("button", name="Delete").click()
        await expect(page.locator(".answer")).to_have_text(["first", "later"])
        await expect(branch(page)).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(".answer")).to_have_text(["second", "so"])


async def test_an_edit_is_a_branch(browser):
    engine = Script("answer", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await ask(page, "one")
        await page.keyboard.press("ArrowUp")
        await page.get_by_label("Edited message").fill("two")
        await page.keyboard.press("Enter")
        await expect(page.locator(".user")).to_have_text(["two"])
        await answer(page).locator(".stats").wait_for()
        await page.locator(".mine").hover()
        await page.locator(".mine").get_by_role("button", name="Previous branch").click()
        await expect(page.locator(".user")).to_have_text(["one"])
        await says(answer(page).locator(".answer"), "answer")
