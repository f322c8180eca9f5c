"""Conversations and settings, kept in the browser, and exported."""

import asyncio
import json

import pytest
from page_in_browser import (
    PATIENCE,
    another_tab,
    answer,
    ask,
    chatting,
    connected,
    listed,
    says,
    send,
    set_fields,
    until,
)
from playwright.async_api import expect
from serving import Script

KEPT = """(text) => new Promise((resolve) => {
    const opening = indexedDB.open("tokenweir");
    opening.onsuccess = () => {
        const look = () => {
            const reading = opening.result.transaction("conversations").objectStore("conversations").getAll();
            reading.onsuccess = () => JSON.stringify(reading.result).includes(text) ? resolve() : setTimeout(look, 50);
        };
        look();
    };
})"""
"""Waits until the browser keeps a text."""


NO_STORAGE = """for (const name of ["localStorage", "sessionStorage", "indexedDB"]) {
    Object.defineProperty(window, name, { get() { throw new DOMException("Access is denied", "SecurityError"); } });
}"""
"""Deny storage, as a browser does whose user forbids it."""


async def test_a_conversation_is_there_after_a_reload_and_goes_on(browser):
    engine = Script("<think>Hm.</think>**Hello**", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await ask(page, "hi\nthere")
        await expect(listed(page)).to_have_text(["hi there"])
        shown = await page.locator(".assistant .answer").inner_html()
        stats = await page.locator(".assistant .stats").inner_text()
        thought = await page.locator("summary").inner_text()
        await page.reload()
        await says(page.locator(".user"), "hi\nthere")
        assert await page.locator(".assistant .answer").inner_html() == shown
        assert await page.locator(".assistant .stats").inner_text() == stats
        assert await page.locator("summary").inner_text() == thought
        engine.parts = ("again", "<|im_end|>")
        await ask(page, "more")
        assert "**Hello**" in engine.prompts[-1] and "Hm." not in engine.prompts[-1]


async def test_an_answer_that_is_left_for_too_long_is_stopped_and_kept_as_far_as_it_came(browser):
    engine = Script("Once upon", asyncio.Event())
    async with chatting(browser, engine, resume_grace=0) as page:
        await send(page, "hi")
        await says(answer(page).locator(".answer"), "Once upon")
        await page.evaluate(KEPT, "Once upon")
        await page.reload()
        await says(answer(page).locator(".answer"), "Once upon")
        await answer(page).locator(".error").filter(has_text="the rest of this answer is lost").wait_for()
        await asyncio.wait_for(engine.closed.wait(), PATIENCE)


async def test_conversations_are_listed_exported_opened_and_deleted(browser):
    async with chatting(browser, Script("<think>Hm.</think>Hello", "<|im_end|>")) as page:
        await ask(page, "one")
        await page.get_by_role("button", name="New chat").click()
        await expect(page.locator(".user")).to_have_count(0)
        await page.locator(".hint").first.wait_for()
        await expect(page.locator("#export")).to_be_disabled()
        await ask(page, "two")
        await expect(listed(page)).to_have_text(["two", "one"])
        exported = {}
        for name in ("Export", "Export all"):
            async with page.expect_download() as download:
                await page.get_by_role("button", name=name, exact=True).click()
            file = await download.value
            assert file.suggested_filename.startswith("tokenweir-conversation")
            exported[name] = json.loads((await file.path()).read_bytes())
            assert exported[name]["format"] == "tokenweir-conversations/1"
        (one,) = exported["Export"]["conversations"]
        assert (one["title"], [message["role"] for message in one["messages"]]) == ("two", ["user", "assistant"])
        said = one["messages"][1]
        assert [(part["type"], part["text"]) for part in said["parts"]] == [("reasoning", "Hm."), ("text", "Hello")]
        assert said["model"] == "demo" and said["usage"]["output_tokens"] == len(said["tokens"]["ids"])
        assert said["usage"]["input_tokens"] == len(said["tokens"]["prompt"])
        assert {entry["title"] for entry in exported["Export all"]["conversations"]} == {"one", "two"}
        await listed(page).last.click()
        await expect(page.locator(".user")).to_have_text(["one"])
        await expect(listed(page).last).to_have_attribute("aria-current", "true")
        await page.get_by_role("button", name="Delete one").click()
        await expect(listed(page)).to_have_text(["two"])
        await expect(page.locator(".user")).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await expect(listed(page)).to_have_text(["two", "one"])


async def test_settings_are_sent_and_kept(browser):
    engine = Script("answer", "<|im_end|>")
    async with chatting(browser, engine) as page:
        fields = {"System prompt": "Be brief.", "Temperature": "0.5", "Top p": "0.9", "Top k": "7", "Seed": "3"}
        fields |= {"Maximum tokens": "50", "Stop strings": "END\n\nSTOP"}
        await page.get_by_role("button", name="Settings").click()
        for name, value in fields.items():
            await page.get_by_label(name).fill(value)
        await page.get_by_label("Colours").select_option("dark")
        await page.get_by_label("Text size").select_option("large")
        await page.get_by_role("button", name="Save").click()
        for reload in (False, True):
            if reload:
                await page.reload()
                await connected(page)
            await ask(page, "hi")
            sampling = engine.samplings[-1]
            assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.5, 0.9, 7)
            assert (sampling.seed, sampling.max_tokens, sampling.stop) == (3, 50, ("END", "STOP"))
            assert "Be brief." in engine.prompts[-1]
            assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 25, 29)"
            assert await page.evaluate("getComputedStyle(document.body).fontSize") == "19px"
        await page.get_by_role("button", name="Settings").click()
        assert await page.get_by_label("Temperature").input_value() == "0.5"
        await page.get_by_role("button", name="Cancel").click()
        await set_fields(page, {"Temperature": ""})
        await ask(page, "hi")
        assert engine.samplings[-1].temperature is None


async def test_functions_that_were_cancelled_do_not_stand_in_the_way(browser):
    async with chatting(browser, Script()) as page:
        settings = page.get_by_role("button", name="Settings")
        await settings.click()
        await page.get_by_label("Functions that the model may call").fill("[1")
        await page.get_by_role("button", name="Cancel").click()
        await settings.click()
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("#settings")).to_be_hidden()


@pytest.mark.parametrize("script", ["delete window.indexedDB;", NO_STORAGE], ids=["no database", "nothing"])
async def test_a_browser_that_lets_nothing_be_kept_says_so_chats_and_takes_a_key(browser, script):
    async with chatting(browser, Script("answer", "<|im_end|>"), api_key="s3cret", script=script) as page:
        await page.get_by_text("This browser keeps no conversations").wait_for()
        await page.get_by_label("API key").fill("s3cret")
        await page.keyboard.press("Enter")
        await ask(page, "hi")
        await expect(listed(page)).to_have_text(["hi"])


async def test_a_full_storage_is_told_and_the_chat_goes_on(browser):
    async with chatting(browser, Script("answer " * 200, "<|im_end|>")) as page:
        origin = f"http://127.0.0.1:{page.server.port}"
        browsers = await page.context.new_cdp_session(page)
        await browsers.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 1000})
        await ask(page, "one")
        await page.get_by_text("cannot be kept: this browser's storage is full").wait_for()
        await ask(page, "two")
        await expect(page.locator(".user")).to_have_text(["one", "two"])


async def test_a_conversation_that_another_tab_continues_is_shown_as_it_is_there(browser):
    async with chatting(browser, Script("answer", "<|im_end|>")) as page:
        await ask(page, "one")
        async with another_tab(page) as other:
            await ask(page, "two")
            await expect(other.locator(".user")).to_have_text(["one", "two"])
            await expect(other.locator(".assistant .stats")).to_have_count(2)
            await ask(other, "three")
            await expect(page.locator(".user")).to_have_text(["one", "two", "three"])
            await expect(listed(page)).to_have_count(1)


async def test_an_edit_that_another_tab_overtakes_becomes_a_conversation_of_its_own(browser):
    async with chatting(browser, Script("answer", "<|im_end|>")) as page:
        await ask(page, "one")
        async with another_tab(page) as other:
            await other.get_by_role("button", name="Edit").click()
            await other.evaluate("new BroadcastChannel('tokenweir').onmessage = () => { window.heard = true }")
            await ask(page, "left")
            await until(other, "window.heard === true")
            await other.evaluate(KEPT, "left")  # the page reads it before this does
            await other.get_by_label("Edited message").fill("right")
            await other.keyboard.press("Enter")
            await expect(listed(page)).to_have_text(["right", "one"])
            for tab, said in ((page, ["one", "left"]), (other, ["right"])):
                await tab.reload()
                await expect(tab.locator(".user")).to_have_text(said)
                await expect(tab.locator(".assistant .stats")).to_have_count(len(said))


async def test_a_conversation_that_is_being_answered_is_not_deleted_and_keeps_the_focus(browser):
    end = asyncio.Event()
    async with chatting(browser, Script("answer", end, "<|im_end|>")) as page:
        await send(page, "one")
        await listed(page).focus()
        await page.evaluate(KEPT, "answer")
        await expect(listed(page)).to_be_focused()
        await page.get_by_role("button", name="Delete one").click()
        await page.get_by_text("An answer is arriving; stop it first").wait_for()
        await expect(listed(page)).to_have_text(["one"])
        end.set()
