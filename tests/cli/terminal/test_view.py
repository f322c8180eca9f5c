"""Views of an answer: what is drawn, and when."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from tokenweir.cli.terminal import view
from tokenweir.cli.terminal.view import MarkdownView


class Clock:
    """Seconds and columns that a test sets."""

    def __init__(self):
        self.now = 100.0
        self.columns = 40

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(view, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=clock.sleep))
    monkeypatch.setattr(view, "window", lambda out: (clock.columns, 24))
    return clock


def begun(out):
    """A view that has drawn a part of an answer."""
    shown = MarkdownView(out)
    shown.open(None)
    shown.write("some words")
    shown.draw()
    return shown


def written(out):
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text


def test_no_line_is_drawn_over_until_the_width_has_settled(clock):
    out = io.StringIO()
    shown = begun(out)
    assert "some words" in written(out)
    clock.columns = 25
    for _ in range(3):  # a window that is dragged tells a width at a time, each late
        clock.columns += 1
        clock.now += 0.2
        shown.write(" and more")
        shown.draw()
        assert written(out) == ""
    clock.now += 0.31
    shown.draw()
    assert "and more" in written(out)


def test_an_answer_that_ends_while_the_width_changes_is_shown_whole(clock):
    out = io.StringIO()
    shown = begun(out)
    written(out)
    clock.columns, began = 25, clock.now
    shown.write(" and more")
    shown.close()
    assert "and more" in written(out)
    assert clock.now == pytest.approx(began + 0.3)
    shown.open("answer")
    shown.write("next")
    shown.close()  # nothing of it has been drawn before, so there is nothing to wait for
    assert clock.now == pytest.approx(began + 0.3)
