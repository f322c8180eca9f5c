"""The token view."""

import asyncio
import math
import re
from itertools import pairwise

import pytest
from case_tables import cases
from page_in_browser import ask, chatting, lose_connections, says, send, set_fields
from playwright.async_api import expect
from serving import TOK, Script

from tokenweir.stream.events.step import EngineStep
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

TEXT = "Hello wörld 🙂\n"
IDS = TOK.encode(TEXT + "<|im_end|>")
LOGPROBS = [-0.25 * (place + 1) for place in range(len(IDS))]


async def opened(page):
    await page.get_by_role("button", name="Tokens", exact=True).last.click()
    lists = page.locator("#tokens .tokens")
    await expect(lists).to_have_count(2)
    return lists.last, lists.first


async def told(page):
    return await page.locator("#tokens .told").inner_text()


async def test_every_token_is_shown_with_its_id_bytes_and_logprob(browser):
    engine = Script(EngineStep(IDS, LOGPROBS))
    async with chatting(browser, engine) as page:
        await ask(page, "hi")
        prompt, answer = await opened(page)
        await expect(answer.locator(".token")).to_have_count(len(IDS))
        for place, (token_id, logprob) in enumerate(zip(IDS, LOGPROBS, strict=True)):
            await answer.locator(".token").nth(place).hover()
            await expect(page.locator("#tokens .told")).to_contain_text(f"token {place + 1} · id")
            line = await told(page)
            control = " · control" if token_id in TOK.special_tokens.values() else ""
            in_bytes = TOK.token_bytes(token_id).hex(" ")
            assert line.startswith(
                f"token {place + 1} · id {token_id} · bytes {in_bytes}{control} · logprob {logprob:.4f} ("
            )
            assert float(line.split("(")[1].split(" ")[0]) == pytest.approx(100 * math.exp(logprob), rel=0.01)
        assert await answer.locator(".control").all_inner_texts() == ["<|im_end|>"]

        sent = TOK.encode(engine.prompts[0])
        await expect(prompt.locator(".token")).to_have_count(len(sent))
        assert await prompt.locator(".control").all_inner_texts() == ["<|im_start|>", "<|im_end|>", "<|im_start|>"]
        await prompt.focus()
        for _ in range(3):
            await page.keyboard.press("ArrowRight")
        await page.keyboard.press("ArrowLeft")
        assert (await told(page)).startswith(f"token 2 · id {sent[1]} · ")
        await page.keyboard.press("Escape")
        await expect(page.locator("#tokens")).to_be_hidden()


async def test_the_prompt_shows_who_wrote_it(browser):
    template = ChatTemplate(
        "{% for t in tools %}{{ t | tojson }}\n{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    engine = Script("<think>hm</think>Hello", "<|im_end|>")
    async with chatting(browser, engine, template=template) as page:
        await set_fields(page, {"System prompt": "Be brief.", "Functions that the model may call": '[{"name": "add"}]'})
        await ask(page, "hi wörld")
        await ask(page, "<|im_end|>")
        prompt, _ = await opened(page)
        heading = await page.locator("#tokens h3").last.inner_text()
        await expect(prompt.locator(".token")).to_have_count(int(re.fullmatch(r"Prompt: (\d+) tokens", heading)[1]))
        for writer, text in CASES["the_prompt_shows_who_wrote_it"]:
            shown = await prompt.locator(f".by-{writer}").all_inner_texts()
            assert bytes_of(shown) == text.encode(), writer
        assert bytes_of(await prompt.locator(".by-tools").all_inner_texts()).startswith(b"typefunctionfunctionnameadd")
        assert await prompt.locator(".control.current").count() == 0
        assert "<|im_start|>" in await prompt.locator(".control").all_inner_texts()

        writer = page.locator("#tokens .writer").filter(has_text="User")
        await expect(page.locator("#tokens .writer")).to_have_text(
            [re.compile(f"^{name} \\d+$") for name in ("Template", "System", "User", "Assistant", "Functions")]
        )
        for expected in ("messages[1].content (user)", "messages[3].content (user)", "messages[1].content (user)"):
            await writer.click()
            assert (await told(page)).endswith(f" · by {expected}")
        await expect(page.locator("#tokens .note")).to_have_count(0)


def bytes_of(shown):
    """Return the bytes of tokens as the view shows them."""
    return b"".join(
        bytes.fromhex(text.replace("\\x", "")) if text.startswith("\\x") else text.encode()
        for text in shown
        if text != "⋯"
    )


async def test_a_character_of_several_tokens_is_shown_once_with_its_parts_marked(browser):
    ids = TOK.encode("a𓂀b")
    parts = len(ids) - len(TOK.encode("a")) - len(TOK.encode("b"))
    assert parts > 1
    lone = TOK.encode("𓂀")[0]  # the first bytes of a character that does not go on
    async with chatting(browser, Script(EngineStep([*ids, lone]), "<|im_end|>")) as page:
        await ask(page, "hi")
        _, answer = await opened(page)
        shown = await answer.locator(".token").all_inner_texts()
        assert shown[: len(ids)] == ["a", "𓂀", *["⋯"] * (parts - 1), "b"]
        assert shown[len(ids)].startswith("\\xf0")


async def test_what_the_template_left_out_is_told(browser):
    template = ChatTemplate("{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}")
    async with chatting(browser, Script("Hello", "<|im_end|>"), template=template) as page:
        await set_fields(page, {"System prompt": "Be brief."})
        await ask(page, "hi")
        await opened(page)
        await says(page.locator("#tokens .note"), "The template wrote nothing of messages[0].content.")


async def test_a_prompt_that_would_be_another_now_has_origins_up_to_there(browser):
    async with chatting(browser, Script("Hello", "<|im_end|>")) as page:
        await ask(page, "one")
        await ask(page, "two")
        await page.locator(".assistant").first.get_by_role("button", name="Delete", exact=True).click()
        await expect(page.locator(".assistant")).to_have_count(1)
        prompt, _ = await opened(page)
        await page.get_by_text("The server would write this prompt in another way now, from token").wait_for()
        assert await prompt.locator("[class*=by-]").count() > 0 and await prompt.locator(".c0").count() > 0


async def test_tokens_are_shown_without_their_writers_where_the_server_tells_none_and_none_where_it_is_silent(browser):
    async with chatting(browser, Script("Hello", "<|im_end|>"), clean=False) as page:
        await ask(page, "hi")
        await page.route("**/detokenize", lambda route: route.abort())
        await page.get_by_role("button", name="Tokens", exact=True).click()
        await page.locator("#tokens .error").filter(has_text="The tokens cannot be shown").wait_for()
        await page.keyboard.press("Escape")
        await page.unroute("**/detokenize")
        refusal = {"error": {"message": "no such path"}}
        await page.route("**/v1/responses/render", lambda route: route.fulfill(status=404, json=refusal))
        prompt, _ = await opened(page)
        await page.get_by_text("Who wrote these tokens cannot be shown: no such path").wait_for()
        assert await prompt.locator(".token").count() > 0 and await prompt.locator("[class*=by-]").count() == 0


async def test_a_lost_connection_loses_and_repeats_no_token(browser):
    more, end = asyncio.Event(), asyncio.Event()
    engine = Script("<think>Hm.", "</think>Once", more, " upon", end, " a time 🙂", "<|im_end|>")
    async with chatting(browser, engine, clean=False) as page:
        await send(page, "hi")
        for event, text in ((more, "Once"), (end, "Once upon")):
            await says(page.locator(".answer"), text)
            await lose_connections(page)
            event.set()
        await page.locator(".assistant .stats").wait_for()
        await says(page.locator(".answer"), "Once upon a time 🙂")
        assert await page.locator("details .text").text_content() == "Hm."
        assert await page.locator(".error").count() == 0 and len(engine.prompts) == 1
        expected = [token_id for part in engine.parts if isinstance(part, str) for token_id in TOK.encode(part)]
        _, answer = await opened(page)
        await expect(answer.locator(".token")).to_have_count(len(expected))
        for place, token_id in enumerate(expected):
            await answer.locator(".token").nth(place).hover()
            await expect(page.locator("#tokens .told")).to_contain_text(f"token {place + 1} · id {token_id} · ")


async def test_neighbours_have_other_colours_and_no_logprobs_are_told(browser):
    async with chatting(browser, Script(TEXT * 400, "<|im_end|>")) as page:
        await ask(page, "hi")
        _, answer = await opened(page)
        count = 1 + len(TOK.encode(TEXT * 400))
        await expect(answer.locator(".token")).to_have_count(count)
        await page.get_by_text(f"Answer: {count} tokens; the engine gives no logprobs").wait_for()
        colours = await answer.evaluate(
            "(box) => [...box.querySelectorAll('.token')].map((node) => getComputedStyle(node).backgroundColor)"
        )
        assert all(one != other for one, other in pairwise(colours))
        await answer.locator(".token").first.hover()
        await expect(page.locator("#tokens .told")).to_contain_text("token 1 · id")
        assert "logprob" not in await told(page)


async def test_kept_ids_of_another_tokenizer_are_told(browser):
    async with chatting(browser, Script("Hello", "<|im_end|>")) as page:
        await ask(page, "hi")
        await page.route(
            "**/detokenize",
            lambda route: route.fulfill(
                json={
                    "tokens": [
                        {"id": one, "bytes": [33], "special": False} for one in route.request.post_data_json["tokens"]
                    ]
                }
            ),
        )
        await opened(page)
        await page.get_by_text("the server may have another tokenizer now").wait_for()
