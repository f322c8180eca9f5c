"""One browser for all of the page's tests, which skip without a browser."""

import inspect
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


def pytest_pycollect_makeitem(name, obj):
    """Run all tests in the event loop of the browser."""
    if name.startswith("test") and inspect.iscoroutinefunction(obj):
        pytest.mark.asyncio(loop_scope="session")(obj)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser():
    """A browser context that all tests share. `chatting` clears the data that a page has stored for its origin."""
    # The shell draws as the browser does; without windows and tabs of its own it takes a third less CPU time.
    chromium = os.environ.get("CHROME") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    reason = None if chromium else "no chromium-headless-shell or chromium on the PATH and no CHROME in the environment"
    if reason is not None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, headless=True, args=ARGS)
        profile = await browser.new_context(reduced_motion="reduce")  # a colour in transition has no contrast
        blank = await profile.new_page()  # as long as it is open, the process that draws pages stays
        yield profile
        await blank.close()
        await browser.close()
