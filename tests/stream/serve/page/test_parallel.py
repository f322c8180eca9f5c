"""Several conversations that await answers at the same time."""

import asyncio

from page_in_browser import answer, ask, chatting, connected, listed, lose_connections, problems, says, send, sockets
from playwright.async_api import expect
from serving import TOK, eventually


class Told:
    """An engine double that answers each prompt from a queue of its own, found by a word of the prompt's last message."""

    def __init__(self, *words):
        self.queues = {word: asyncio.Queue() for word in words}
        self.running = 0
        self.most = 0
        self.closed = []

    def say(self, word, text, *, end=False):
        self.queues[word].put_nowait((text, end))

    async def generate(self, prompt_ids, sampling):
        prompt = TOK.decode(prompt_ids, skip_special_tokens=False)
        word = max(self.queues, key=prompt.rfind)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            end = False
            while not end:
                text, end = await self.queues[word].get()
                for token_id in TOK.encode(text + ("<|im_end|>" if end else "")):
                    yield [token_id]
        finally:
            self.running -= 1
            self.closed.append(word)


def dots(page):
    return page.locator("#conversations .open:has(.dot)")


async def fresh(page):
    await page.get_by_role("button", name="New chat").click()
    await expect(page.locator(".user")).to_have_count(0)


async def ask_both(page, engine):
    """Begin two answers, the second of which is shown."""
    await send(page, "one")
    engine.say("one", "Danube")
    await says(answer(page).locator(".answer"), "Danube")
    await fresh(page)
    await send(page, "two")
    engine.say("two", "Rhine")
    await says(answer(page).locator(".answer"), "Rhine")
    await expect(listed(page)).to_have_text(["two", "one"])


async def test_two_conversations_are_answered_at_the_same_time(browser):
    engine = Told("one", "two")
    async with chatting(browser, engine) as page:
        await ask_both(page, engine)
        assert engine.running == 2
        await expect(dots(page)).to_have_text(["two", "one"])
        await expect(page.get_by_role("img", name="Answering")).to_have_count(2)
        assert await problems(page) == []
        await listed(page).last.hover()
        colour = "(one) => getComputedStyle(one.parentNode).backgroundColor"
        current, hovered = [await listed(page).nth(place).evaluate(colour) for place in (0, 1)]
        assert "rgba(0, 0, 0, 0)" not in (current, hovered) and current != hovered
        engine.say("one", " is *long*")
        await listed(page).filter(has_text="one").click()
        await says(answer(page).locator(".answer"), "Danube is long")  # what came meanwhile
        await expect(page.locator("#stop")).to_be_visible()
        engine.say("one", " and $x^2$ wide.", end=True)
        await answer(page).locator(".stats").wait_for()
        await expect(dots(page)).to_have_text(["two"])
        await expect(page.locator("#send")).to_be_visible()
        engine.say("two", " with $y^2$ too.", end=True)  # while it is not shown
        await expect(dots(page)).to_have_count(0)
        await says(page.locator("#told"), "The answer is complete, in two")
        await says(page.locator(".user"), "one")
        await listed(page).filter(has_text="two").click()
        await answer(page).locator(".math.set").wait_for()
        await expect(answer(page).locator(".stats")).to_have_count(1)
        await expect(page.get_by_role("button", name="Regenerate")).to_have_count(1)


async def test_stop_ends_the_answer_that_is_shown(browser):
    engine = Told("one", "two")
    async with chatting(browser, engine) as page:
        await ask_both(page, engine)
        await page.locator("#stop").click()
        await answer(page).locator(".stats").filter(has_text="stopped").wait_for()
        assert engine.closed == ["two"]
        await listed(page).filter(has_text="one").click()
        await says(page.locator(".user"), "one")
        await page.keyboard.press("Escape")
        await answer(page).locator(".stats").filter(has_text="stopped").wait_for()
        assert engine.closed == ["two", "one"]


async def test_a_reload_goes_on_with_all_answers(browser):
    engine = Told("one", "two")
    async with chatting(browser, engine) as page:
        await ask_both(page, engine)
        await page.reload()
        await says(answer(page).locator(".answer"), "Rhine")
        await expect(page.locator(".assistant")).to_have_count(1)
        await expect(dots(page)).to_have_text(["two", "one"])
        engine.say("one", " is long.", end=True)
        await expect(dots(page)).to_have_text(["two"])
        engine.say("two", " is wide.", end=True)
        await says(answer(page).locator(".answer"), "Rhine is wide.")
        await answer(page).locator(".stats").wait_for()
        await listed(page).filter(has_text="one").click()
        await says(answer(page).locator(".answer"), "Danube is long.")
        await expect(page.locator(".error")).to_have_count(0)
        assert (engine.most, sorted(engine.closed)) == (2, ["one", "two"])


async def test_all_answers_go_on_after_a_lost_connection(browser):
    engine = Told("one", "two")
    async with chatting(browser, engine, clean=False) as page:
        await ask_both(page, engine)
        await lose_connections(page)
        engine.say("one", " is long.", end=True)
        engine.say("two", " is wide.", end=True)
        await says(answer(page).locator(".answer"), "Rhine is wide.")
        await expect(dots(page)).to_have_count(0)
        await listed(page).filter(has_text="one").click()
        await says(answer(page).locator(".answer"), "Danube is long.")
        await expect(page.locator(".error")).to_have_count(0)


async def test_a_conversation_keeps_one_connection_open_and_the_others_close(browser):
    engine = Told("one", "two")
    async with chatting(browser, engine) as page:
        await ask_both(page, engine)
        assert len(sockets(page)) == 2
        for word in ("one", "two"):
            engine.say(word, ".", end=True)
        await expect(dots(page)).to_have_count(0)
        await eventually(lambda: len(sockets(page)) == 1)
        await connected(page)
        engine.say("two", "again", end=True)
        await ask(page, "two more")
        assert len(sockets(page)) == 1


async def test_the_page_bounds_the_answers_that_arrive_at_once(browser):
    words = [f"word{number}" for number in range(9)]
    engine = Told(*words)
    async with chatting(browser, engine) as page:
        for word in words[:8]:
            await fresh(page)
            await send(page, word)
            engine.say(word, "so")
            await says(answer(page).locator(".answer"), "so")
        await expect(dots(page)).to_have_count(8)
        await fresh(page)
        await send(page, words[8])
        await page.get_by_text("8 answers are arriving already: wait for one, or stop one").wait_for()
        assert await page.get_by_label("Message", exact=True).input_value() == words[8]
        engine.say(words[0], ".", end=True)
        await expect(dots(page)).to_have_count(7)
        engine.say(words[8], "so", end=True)
        await ask(page, words[8])
        assert engine.most == 8


async def test_a_conversation_gets_its_name_while_another_one_is_shown(browser):
    engine = Told("one", "two")
    async with chatting(browser, engine) as page:
        await ask_both(page, engine)
        await page.get_by_role("button", name="Rename one").click()
        await page.get_by_label("New name").fill("first")
        await page.keyboard.press("Enter")
        await expect(listed(page)).to_have_text(["first", "two"])
        engine.say("one", ".", end=True)
        await expect(dots(page)).to_have_text(["two"])
        await expect(listed(page)).to_have_text(["first", "two"])
        assert await page.title() == "two · tokenweir"
        engine.say("two", ".", end=True)
