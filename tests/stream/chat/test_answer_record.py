"""The record of an answer, which a prompt cache keeps."""

from __future__ import annotations

import pytest

from tokenweir.stream.chat.answer_record import AnswerRecord
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.transforms import DecodeChat
from tokenweir.stream.events.step import EngineStep


@pytest.mark.parametrize(("inferred", "kept"), [(0, []), (2, [1, 2]), (3, [1, 2]), (4, [1, 2])])
def test_inferred_ids_behind_the_end_are_no_part_of_the_answer(tok, inferred, kept):
    (end,) = tok.eos_ids
    told = []
    record = AnswerRecord(
        DecodeChat(ChatDecoder(tok)), lambda ids, message, *, inferred: told.append((ids, message["content"], inferred))
    )
    record.feed([65])
    record.feed(EngineStep([66, end, 67, 68], inferred=inferred))
    assert record.finished and told == [([65, 66, end], "AB", kept)]
