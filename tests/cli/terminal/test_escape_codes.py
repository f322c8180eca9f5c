"""Text that reaches a terminal."""

import io

import pytest

from tokenweir.cli.terminal.escape_codes import dim, styled


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),  # no-color.org: an empty value does not count
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({}, False),
    ],
)
def test_styled(environ, expected):
    assert styled(Terminal(), environ) is expected
    assert styled(io.StringIO(), environ) is False


def test_dim():
    assert dim("\x1b[0mthought", style=True) == "\x1b[2m␛[0mthought\x1b[0m"
    assert dim("thought", style=False) == "thought"
