"""`bench/museum.py`: this library passes every stream, the verdict tells wrong and late text, and the page has all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def museum(import_bench, data):
    data("tokenizers/qwen3")
    return import_bench("museum")


def test_every_stream_and_answer_is_right_here(museum):
    cases = museum.Cases.load()
    assert len(cases.stream) >= 10
    assert len(cases.answer) >= 10
    runs = [(one, museum.tokenweir_) for one in cases.stream] + [(one, museum.tokenweir_parser) for one in cases.answer]
    assert [(one.name, museum.verdict(one, run)) for one, run in runs] == [(one.name, "right") for one, _ in runs]


def test_the_page_has_every_stream_and_answer_with_a_link_to_its_issue(museum):
    page = (ROOT / "docs" / "explanation" / "streaming-bugs.md").read_text("utf-8")
    table = page.partition("<!-- museum:begin -->")[2].partition("<!-- museum:end -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines() if line.startswith("| [")]
    cases = museum.Cases.load()
    assert rows == [[museum.linked(one.issue), one.name] for one in [*cases.stream, *cases.answer]]


def test_quoted_text_is_code_so_that_a_page_shows_its_markup(museum):
    assert museum.cell("text '</tool_call>'") == "`text '</tool_call>'`"
    assert museum.cell("right") == "right"


def test_a_verdict_tells_what_is_wrong(museum):
    one = next(each for each in museum.Cases.load().stream if "never become" in each.name)
    chunks = one.ids()[1]
    assert museum.verdict(one, lambda stream: ["x"]) == f"'x' for {one.text[:12]!r}"
    late = [""] * (len(chunks) - 1) + [one.text]
    assert museum.verdict(one, lambda stream: late) == f"silent for {len(chunks) - 1} ids"
    assert museum.verdict(one, lambda stream: 1 // 0) == "raises ZeroDivisionError"
    assert museum.verdict(one, lambda stream: None) == "-"


def test_a_verdict_on_an_answer_tells_what_is_wrong(museum):
    one = next(each for each in museum.Cases.load().answer if "two calls" in each.name)
    call = one.expected.calls[0]
    for found, told in (
        (museum.Parsed("a", "", one.expected.calls), "thinking 'a'"),
        (museum.Parsed("", "", [call]), "1 of 2 calls"),
        (museum.Parsed("", "", [call, ("look", "{")]), "arguments '{'"),
        (museum.Parsed("", "b", one.expected.calls), "text 'b'"),
    ):
        assert museum.verdict(one, lambda answer, found=found: found) == told
