"""A browser for the page's tests, skipped where there is none."""

import os
import shutil

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser():
    chromium = os.environ.get("CHROME") or shutil.which("chromium")
    reason = None if chromium else "no chromium on the PATH and no CHROME in the environment"
    if reason is not None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, headless=True, args=ARGS)
        yield browser
        await browser.close()
