"""Actions on messages: copy, edit, regenerate, delete, and take it back; results of calls."""

import asyncio
from contextlib import asynccontextmanager

from page_in_browser import (
    PATIENCE,
    another_tab,
    answer,
    ask,
    chatting,
    connected,
    listed,
    lose_connections,
    problems,
    says,
    send,
    set_fields,
    until,
)
from playwright.async_api import expect
from serving import Script

from tokenweir.templates.chat_template import ChatTemplate

TOOLS = '[{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]'
TEMPLATE = ChatTemplate(
    "{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}|{{ m.content }}"
    "{% for c in m.tool_calls %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant|{% endif %}"
)
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
FIXED_SIZES = """CSS.supports = () => false;
const fixed = new CSSStyleSheet();
fixed.replaceSync("textarea { field-sizing: fixed !important; }");
document.adoptedStyleSheets = [fixed];"""
"""Take from the page what makes boxes grow in its styles."""
SHOWN = "(box) => box.scrollHeight <= box.clientHeight"


def act(message, name):
    return message.get_by_role("button", name=name, exact=True)


def mine(page):
    return page.locator(".mine")


async def test_regenerate_and_undo(browser):
    engine = Script("first", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await ask(page, "hi")
        engine.parts = ("second", "<|im_end|>")
        await act(answer(page), "Regenerate").click()
        await says(answer(page).locator(".answer"), "second")
        await answer(page).locator(".stats").wait_for()
        assert await page.locator(".assistant").count() == 1
        assert engine.prompts[0] == engine.prompts[1]
        await page.get_by_role("button", name="Undo").click()
        await says(answer(page).locator(".answer"), "first")

        engine.parts = ("third", asyncio.Event())
        await act(answer(page), "Regenerate").click()
        await says(answer(page).locator(".answer"), "third")
        await page.get_by_role("button", name="Undo").click()  # while the answer arrives, which it stops
        await says(answer(page).locator(".answer"), "first")
        await asyncio.wait_for(engine.closed.wait(), PATIENCE)
        await expect(page.locator(".assistant")).to_have_count(1)


async def test_edit_replaces_a_message_and_what_followed(browser):
    engine = Script("answer", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await ask(page, "one")
        await ask(page, "two")
        await act(mine(page).first, "Edit").click()
        box = page.get_by_label("Edited message")
        assert await box.input_value() == "one"
        await act(mine(page).first, "Cancel").press("Enter")
        await expect(box).to_have_count(0)
        assert await mine(page).count() == 2

        await act(mine(page).first, "Edit").click()
        await box.fill("ONE")
        await box.press("Enter")
        await expect(page.locator(".assistant .stats")).to_have_count(1)
        await says(page.locator(".user"), "ONE")
        assert "ONE" in engine.prompts[-1] and "two" not in engine.prompts[-1] and "answer" not in engine.prompts[-1]
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(".user")).to_have_text(["one", "two"])


async def test_arrow_up_edits_the_last_message(browser):
    engine = Script("answer", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await ask(page, "one")
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("Escape")
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()
        await act(page.locator(".mine"), "Edit").press("Enter")
        await page.keyboard.press("Escape")
        await expect(act(page.locator(".mine"), "Edit")).to_be_focused()
        await page.get_by_label("Message", exact=True).press("ArrowUp")
        await page.keyboard.press("Control+A")
        await page.keyboard.type("other")
        await page.keyboard.press("Enter")
        await expect(page.locator(".user")).to_have_text(["other"])
        await answer(page).locator(".stats").wait_for()
        assert "other" in engine.prompts[-1]


async def test_the_enter_that_ends_a_composition_sends_nothing(browser):
    """Safari ends the composition before it tells of the key."""
    async with chatting(browser, Script("fine", "<|im_end|>")) as page:
        box = page.get_by_label("Message", exact=True)
        await box.fill("にほんご")
        await box.dispatch_event("keydown", {"key": "Enter", "keyCode": 229, "isComposing": False})
        await expect(box).to_have_value("にほんご")
        await box.press("Enter")
        await says(answer(page).locator(".answer"), "fine")
        await expect(mine(page)).to_have_count(1)


async def test_boxes_grow_with_their_text_where_the_styles_cannot(browser):
    async with chatting(browser, Script("fine", "<|im_end|>"), script=FIXED_SIZES) as page:
        text = "\n".join(f"line {number}" for number in range(7))
        await ask(page, text)
        await set_fields(page, {"System prompt": text})
        await page.get_by_label("Message", exact=True).press("ArrowUp")
        box = page.get_by_label("Edited message")
        assert await box.evaluate(SHOWN)
        before = (await box.bounding_box())["height"]
        await box.fill(f"{text}\nline 7")
        assert (await box.bounding_box())["height"] > before and await box.evaluate(SHOWN)
        await page.keyboard.press("Escape")
        box = page.get_by_label("Message", exact=True)
        before = (await box.bounding_box())["height"]
        await box.fill(text)
        assert (await box.bounding_box())["height"] > before and await box.evaluate(SHOWN)
        await page.keyboard.press("Enter")
        await expect(box).to_have_value("")
        assert (await box.bounding_box())["height"] == before
        await page.get_by_role("button", name="Settings").click()
        assert await page.get_by_label("System prompt").evaluate(SHOWN)


async def test_delete_takes_a_message_with_its_answer(browser):
    engine = Script("answer", "<|im_end|>")
    async with chatting(browser, engine) as page:
        for text in ("one", "two", "three"):
            await ask(page, text)
        await act(mine(page).nth(1), "Delete").click()
        await expect(page.locator(".user")).to_have_text(["one", "three"])
        assert await page.locator(".assistant").count() == 2
        await act(page.locator(".assistant").first, "Delete").click()
        await expect(page.locator(".assistant")).to_have_count(1)
        await ask(page, "four")
        last = engine.prompts[-1]
        assert "one" not in last  # it has no answer: two messages in a row would be left
        assert last.index("three") < last.index("four") and "two" not in last


async def test_a_message_that_got_no_answer_stays_and_is_not_sent_again(browser):
    engine = Script(RuntimeError("out of memory"))
    async with chatting(browser, engine) as page:
        await send(page, "lost")
        await answer(page).locator(".error").wait_for()
        engine.parts = ("answer", "<|im_end|>")
        await ask(page, "next")
        assert "lost" not in engine.prompts[-1]
        await expect(page.locator(".user")).to_have_text(["lost", "next"])


async def test_messages_are_copied_as_their_source_also_by_a_button_that_is_pressed_twice(browser):
    text = "**bold** and\n\n- a list"
    async with chatting(browser, Script(f"<think>hm</think>\n\n{text}", "<|im_end|>")) as page:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await ask(page, "*mine*")
        for message, expected in ((mine(page), "*mine*"), (answer(page), text)):
            await act(message, "Copy").click()
            await act(message, "Copied").wait_for()
            assert await page.evaluate("navigator.clipboard.readText()") == expected
        await act(answer(page), "Copied").click()
        await until(page, "held() === 3")  # copying is asynchronous
        await page.evaluate("letGo()")
        await act(answer(page), "Copy").wait_for()


async def test_a_copy_that_fails_is_told(browser):
    script = "delete Navigator.prototype.clipboard; document.execCommand = () => false;"
    async with chatting(browser, Script("answer", "<|im_end|>"), script=script) as page:
        await ask(page, "one")
        await act(answer(page), "Copy").click()
        await act(answer(page), "Not copied").wait_for()


async def test_an_undo_takes_nothing_away_that_was_said_after(browser):
    async with chatting(browser, Script("answer", "<|im_end|>")) as page:
        await ask(page, "one")
        await ask(page, "two")
        await act(mine(page).first, "Delete").click()
        await expect(page.locator("#undo")).to_be_visible()
        await ask(page, "three")
        await expect(page.locator("#undo")).to_be_hidden()


async def test_an_edit_is_begun_once_and_waits_for_the_connection(browser):
    async with chatting(browser, Script("answer", "<|im_end|>"), clean=False) as page:
        await ask(page, "one")
        await act(mine(page), "Edit").click()
        box = page.get_by_label("Edited message")
        await box.fill("ONE")
        await page.get_by_label("Message", exact=True).click()
        await page.keyboard.press("ArrowUp")
        await expect(box).to_have_count(1)
        await expect(box).to_be_focused()
        await page.route("**/v1/models", lambda route: route.abort())
        await lose_connections(page)
        await page.keyboard.press("Enter")
        await page.get_by_text("There is no connection to the server").wait_for()
        assert await box.input_value() == "ONE"
        await page.unroute("**/v1/models")
        await connected(page)
        await box.press("Enter")
        await expect(page.locator(".user")).to_have_text(["ONE"])


async def test_nothing_is_changed_while_an_answer_arrives(browser):
    end = asyncio.Event()
    engine = Script("first", "<|im_end|>")
    async with chatting(browser, engine) as page:
        await ask(page, "hi")
        engine.parts = ("second", end, "<|im_end|>")
        await send(page, "more")
        await says(answer(page).locator(".answer"), "second")
        for name in ("Edit", "Delete"):
            await expect(act(mine(page).first, name)).to_be_disabled()
        await expect(act(page.locator(".assistant").first, "Regenerate")).to_be_disabled()
        await expect(act(mine(page).first, "Copy")).to_be_enabled()
        end.set()
        await answer(page).locator(".stats").wait_for()
        await expect(act(mine(page).first, "Edit")).to_be_enabled()


async def test_a_call_is_shown_and_given_its_result(browser):
    more = asyncio.Event()
    engine = Script(CALL[:42], more, CALL[42:], "<|im_end|>")
    async with chatting(browser, engine, template=TEMPLATE) as page:
        await page.get_by_role("button", name="Settings").click()
        tools = page.get_by_label("Functions that the model may call")
        await tools.fill("[1")
        assert not await tools.evaluate("(node) => node.checkValidity()")
        await tools.fill(TOOLS)
        await page.get_by_role("button", name="Save").click()
        await send(page, "add")
        await expect(answer(page).locator(".call")).to_contain_text("add(")  # it grows as it comes
        more.set()
        await says(answer(page).locator(".call"), 'add({"a": 1})')
        await answer(page).locator(".stats").wait_for()
        box, result = page.get_by_label("Message", exact=True), page.get_by_label("Result of add")
        await expect(box).to_be_disabled()
        await expect(result).to_be_focused()
        await page.reload()  # it still waits
        await connected(page)
        await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
        engine.parts = ("It is 2.", "<|im_end|>")
        await result.press("Enter")  # nothing is no result
        await result.fill("2")
        await result.press("Enter")
        await says(answer(page).locator(".answer"), "It is 2.")
        await says(mine(page).last.locator("h2"), "Result of add")
        await expect(result).to_have_count(0)
        await expect(box).to_be_enabled()
        assert '"name": "add"' in engine.prompts[0]
        assert "tool|2" in engine.prompts[1]
        await page.reload()
        await says(page.locator(".call"), 'add({"a": 1})')


@asynccontextmanager
async def called(browser, engine, **options):
    """The page with a function, and an answer that calls it."""
    async with chatting(browser, engine, template=TEMPLATE, **options) as page:
        await set_fields(page, {"Functions that the model may call": TOOLS})
        await ask(page, "add")
        yield page


async def test_several_calls_have_a_form_each_and_the_last_result_goes_on(browser):
    engine = Script("Two: ", CALL, CALL.replace("1", "2"), "<|im_end|>")
    async with called(browser, engine) as page:
        forms = answer(page).locator(".call + .result")
        await expect(forms).to_have_count(2)
        assert await problems(page) == []
        await forms.last.get_by_label("Result of add").fill("twenty\ntwo")
        await forms.last.get_by_role("button", name="Send result").click()
        await expect(forms).to_have_count(1)
        await says(mine(page).last.locator(".user"), "twenty\ntwo")
        assert len(engine.prompts) == 1
        engine.parts = ("Done.", "<|im_end|>")
        await forms.get_by_label("Result of add").fill("eleven")
        await forms.get_by_role("button", name="Send result").click()
        await says(answer(page).locator(".answer"), "Done.")
        assert "tool|twenty\ntwo" in engine.prompts[1] and "tool|eleven" in engine.prompts[1]


async def test_a_result_waits_for_the_connection_and_goes_with_its_call(browser):
    async with called(browser, Script(CALL, "<|im_end|>"), clean=False) as page:
        result = page.get_by_label("Result of add")
        await page.route("**/v1/models", lambda route: route.abort())
        await lose_connections(page)
        await result.fill("2")
        await result.press("Enter")
        await page.get_by_text("There is no connection to the server").wait_for()
        assert await result.input_value() == "2"
        await act(answer(page), "Delete").click()
        await expect(result).to_have_count(0)
        await expect(page.get_by_label("Message", exact=True)).to_be_enabled()
        await page.get_by_role("button", name="Undo").click()
        await expect(result).to_have_count(1)


async def test_a_page_that_comes_online_connects_at_once(browser):
    async with chatting(browser, Script("Hi", "<|im_end|>"), clean=False) as page:
        await page.clock.install()  # so that no timer of the page runs out
        await page.route("**/v1/models", lambda route: route.abort())
        await lose_connections(page)
        await page.get_by_text("trying again").wait_for()
        await page.unroute("**/v1/models")
        await page.evaluate("dispatchEvent(new Event('online'))")
        await connected(page)


async def test_a_result_that_is_being_typed_outlives_what_another_tab_does(browser):
    engine = Script(CALL, "<|im_end|>")
    async with called(browser, engine) as page, another_tab(page) as other:
        draft = other.get_by_label("Result of add")
        await draft.fill("draft")
        engine.parts = ("It is 2.", "<|im_end|>")
        await page.get_by_label("Result of add").fill("2")
        await page.keyboard.press("Enter")
        await says(answer(page).locator(".answer"), "It is 2.")
        await expect(listed(page)).to_have_count(1)
        assert await draft.input_value() == "draft"
        await draft.press("Enter")  # as a conversation of its own
        await expect(listed(page)).to_have_count(2)
