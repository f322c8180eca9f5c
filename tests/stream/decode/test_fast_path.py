from __future__ import annotations

import pytest

from tokenweir.encode import _core
from tokenweir.stream.decode.fast_path import Skimming
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events import Channel


@pytest.fixture
def detok(tok):
    ids = _core.IdSet([])
    return _core.Detokenizer(tok.token_table, [], True, False, _core.StopStrings([]), ids, 0, None)


def test_without_a_splitter_all_may_be_skimmed(detok):
    assert Skimming(detok, None).prepare(Channel.ANSWER)
    assert detok.skim(list(b"a<{"), 0)[2] == 3


def test_where_something_may_begin_it_stops(detok):
    splitter = ReasoningParser("think")
    skimming = Skimming(detok, splitter)
    assert skimming.prepare(Channel.ANSWER)
    assert not skimming.prepare(Channel.REASONING)
    assert detok.skim(list(b"a{<"), 0)[2] == 2
    splitter.split("\n<thi")
    assert not skimming.prepare(Channel.ANSWER)


def test_arguments_are_followed_to_their_end(detok):
    splitter = ToolParser("hermes")
    skimming = Skimming(detok, splitter)
    splitter.split('<tool_call>{"name": "f", "arguments": {')
    assert skimming.prepare(Channel.TOOL_CALL)
    assert detok.skim(list(b'"a<{": 1}}'), 0)[2] == 8
    assert splitter.arguments is not None
    branch = Skimming(_core.Detokenizer(detok), splitter.copy())
    assert branch.prepare(Channel.TOOL_CALL)
