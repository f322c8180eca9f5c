"""Text that reaches a terminal."""

import io

import pytest
from case_tables import cases
from pseudo_terminal import Terminal

from tokenweir.cli.terminal.escape_codes import dim, styled

CASES = cases(__file__)


@pytest.mark.parametrize(("environ", "expected"), CASES["styled"])
def test_styled(environ, expected):
    assert styled(Terminal(), environ) is expected
    assert styled(io.StringIO(), environ) is False


def test_dim():
    assert dim("\x1b[0mthought", style=True) == "\x1b[2m␛[0mthought\x1b[0m"
    assert dim("thought", style=False) == "thought"
