"""The page's files, and the policy under which a browser runs them."""

import hashlib
import re
from posixpath import dirname, join, normpath

import httpx
from case_tables import cases
from fastapi import FastAPI
from page_in_browser import answer, ask, chatting, says
from serving import TOK, Script, uvicorn_of

import tokenweir
from tokenweir.stream.serve.page import PAGE, PAGE_POLICY

CASES = cases(__file__)

MARKDOWN_IT = "d5432491790141da046b1197353705db03264f40b5727f3b4b591f5aba193e30"
"""The digest of markdown-it 15.0.3 as npm has it."""

FOOTNOTE = "4f03211eb8af47a4d572e34abab1bf7a6bf7b9c00a4fe4f4c3225d9edde1237a"
"""The digest of markdown-it-footnote 4.0.0 as npm has it."""

KATEX = "49b6893859abf71724936ee420edfb72a8928387dcca776d5de503630ad73e26"
"""The digest of the names and contents of the files that are taken from KaTeX 0.19.1, as npm has them."""


def test_the_page_refers_to_nothing_outside_and_makes_no_markup():
    own = {name: file.content for name, file in PAGE.items() if not name.startswith("vendor/")}
    assert {"index.html", "page.css", "app.js"} <= own.keys()
    for name, content in own.items():
        for word in (b"http://", b"https://", b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"eval("):
            assert word not in content, (name, word)
    assert "unsafe" not in PAGE_POLICY and "'none'; require-trusted-types-for 'script'" in PAGE_POLICY


def test_every_file_is_referred_to_where_it_is():
    """Imports and links resolve relative to their own file, and no file is left over."""
    referred = set()
    for name, file in PAGE.items():
        if name.startswith("vendor/") or not name.endswith((".js", ".html")):
            continue
        for path in re.findall(r'(?:from|href=|src=) ?"([^"#]+\.(?:js|css))"', file.content.decode()):
            found = path.removeprefix("page/") if name == "index.html" else normpath(join(dirname(name), path))
            assert found in PAGE, (name, path)
            referred.add(found)
    own = {name for name in PAGE if name.endswith((".js", ".css")) and not name.startswith("vendor/")}
    assert own <= referred


def test_the_parser_is_the_published_one_with_its_licence():
    assert hashlib.sha256(PAGE["vendor/markdown-it.js"].content).hexdigest() == MARKDOWN_IT
    assert hashlib.sha256(PAGE["vendor/markdown-it-footnote.js"].content).hexdigest() == FOOTNOTE
    licence = PAGE["vendor/LICENSE.txt"].content.decode()
    for name in CASES["the_parser_is_the_published_one_with_its_licence"]:
        assert name in licence


def test_the_typesetter_is_the_published_one_with_its_licences():
    digest = hashlib.sha256()
    for name in sorted(name for name in PAGE if name.startswith("vendor/katex/")):
        digest.update(name.removeprefix("vendor/").encode() + b"\0" + PAGE[name].content)
    assert digest.hexdigest() == KATEX
    licence = PAGE["vendor/LICENSE.txt"].content.decode()
    assert "KaTeX 0.19.1" in licence and "SIL OPEN FONT LICENSE Version 1.1" in licence


async def test_every_file_is_served_without_a_key_under_the_policy(browser):
    async with chatting(browser, Script(), api_key="s3cret") as page, httpx.AsyncClient() as client:
        origin = f"http://127.0.0.1:{page.server.port}"
        for name, file in PAGE.items():
            reply = await client.get(f"{origin}/page/{name}")
            assert reply.content == file.content and reply.headers["content-type"] == file.media_type
            assert reply.headers["content-security-policy"] == PAGE_POLICY
            assert reply.headers["x-content-type-options"] == "nosniff"
        for name in ("nothing.js", "__init__.py", "../endpoints.py", "%2e%2e/endpoints.py"):
            assert (await client.get(f"{origin}/page/{name}")).status_code in (401, 404)


async def test_the_page_of_a_mounted_application(browser):
    app = FastAPI()
    app.mount("/llm", tokenweir.asgi_app(engine={"demo": Script("Hello", "<|im_end|>")}, tokenizer=TOK))
    async with uvicorn_of(app) as address:
        page = await browser.new_page()
        await page.goto(f"{address}/llm/")
        await ask(page, "hi")
        await says(answer(page).locator(".answer"), "Hello")
        await page.get_by_role("button", name="Tokens", exact=True).click()
        await page.locator(".token.control").first.wait_for()
        await page.close()
