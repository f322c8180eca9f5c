"""The list of conversations: search, names, files that are imported."""

import pytest
from case_tables import cases
from page_in_browser import ask, chatting, import_conversations, listed, problems
from playwright.async_api import expect
from serving import Script

CASES = cases(__file__)

SAID = CASES["said"]
ONE = {"id": "0" * 24, "title": "rivers", "changed": 1, "messages": [{"role": "user", "text": "rivers"}, SAID]}


@pytest.mark.parametrize("database", [True, False])
async def test_search_finds_titles_and_what_was_said(browser, database):
    engine = Script("The Danube is long", "<|im_end|>")
    script = "" if database else "delete window.indexedDB;"
    async with chatting(browser, engine, script=script) as page:
        await ask(page, "rivers")
        await page.get_by_role("button", name="New chat").click()
        engine.parts = ("Mont Blanc", "<|im_end|>")
        await ask(page, "Mountains")
        await expect(listed(page)).to_have_text(["Mountains", "rivers"])
        search = page.get_by_label("Search conversations")
        for text, found in (("danube", ["riversThe Danube is long"]), ("MOUNT", ["Mountains"]), ("xyz", [])):
            await search.fill(text)
            await expect(listed(page)).to_have_text(found)
            await expect(page.locator("#conversations mark")).to_have_text(["Danube"] if text == "danube" else [])
        await search.fill("long")
        await expect(page.locator("#conversations .hit")).to_have_text(["…e Danube is long"])
        assert await problems(page) == []
        await search.fill("xyz")
        await page.get_by_text("Nothing found").wait_for()
        await search.press("Escape")
        await expect(listed(page)).to_have_text(["Mountains", "rivers"])


async def test_a_conversation_gets_a_name_and_keeps_it(browser):
    async with chatting(browser, Script("answer", "<|im_end|>")) as page:
        await ask(page, "one")
        await page.get_by_role("button", name="New chat").click()
        await ask(page, "two")
        for old, new in (("one", "first"), ("two", "second")):
            await page.get_by_role("button", name=f"Rename {old}").click()
            box = page.get_by_label("New name")
            assert await box.input_value() == old
            await box.fill(new)
            await box.press("Enter")
            await expect(listed(page).filter(has_text=new)).to_have_count(1)
            await expect(page.get_by_role("button", name=f"Rename {new}")).to_be_focused()
        await ask(page, "more")
        await page.get_by_role("button", name="Rename second").click()
        await page.get_by_label("New name").fill("lost")
        await page.keyboard.press("Escape")
        await expect(listed(page)).to_have_text(["second", "first"])
        await expect(page.get_by_role("button", name="Rename second")).to_be_focused()
        await page.reload()
        await expect(listed(page)).to_have_text(["second", "first"])


async def test_an_exported_file_is_imported(browser):
    engine = Script("answer", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await ask(page, "one")
        engine.parts = ("other", "<|im_end|>")
        await page.get_by_role("button", name="Regenerate").click()
        await page.locator(".branch").wait_for()
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Export all").click()
        file = await (await download.value).path()
        for times in (1, 2):  # with an id that is taken, and with one that is not
            await import_conversations(page, file.read_bytes())
            await page.get_by_text("1 conversation imported").wait_for()
            await expect(listed(page)).to_have_text(["one"] * (times + 1))
        await listed(page).last.click()
        await page.get_by_role("button", name="Previous branch").click()
        await expect(page.locator(".answer")).to_have_text(["answer"])


WRONG = {
    "it is no JSON": b"\xff{",
    "its format is not tokenweir-conversations/1": {"conversations": []},
    "it has no list": {"format": "tokenweir-conversations/1"},
    "conversation 2 has no id": [ONE, {"messages": []}],
    "conversation 1 has messages of another shape": [{**ONE, "messages": [{"role": "assistant", "parts": 5}]}],
    "conversation 1 has forks of another shape": [{**ONE, "forks": [{"at": 0, "shown": 0, "tails": [{}]}]}],
}


async def test_a_wrong_file_is_refused_as_a_whole(browser):
    async with chatting(browser, Script()) as page:
        for told, data in WRONG.items():
            whole = {"format": "tokenweir-conversations/1", "conversations": data} if isinstance(data, list) else data
            await import_conversations(page, whole)
            await page.get_by_text(f"chats.json cannot be imported: {told}").wait_for()
        await expect(listed(page)).to_have_count(0)
        await import_conversations(page, {"format": "tokenweir-conversations/1", "conversations": [ONE]})
        await listed(page).click()
        await expect(page.locator(".answer")).to_have_text(["Danube"])
