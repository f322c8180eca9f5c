"""What tests of splitters share: a text through a splitter in pieces, and what came out, as if it had come in one."""

from __future__ import annotations

from itertools import pairwise

from msgspec.structs import replace

from tokenweir.encode._core import JsonValue
from tokenweir.stream.events import Channel


def run(splitter, parts):
    """Split a text that comes in parts; check what holds for every splitter."""
    given, seen = [], ""
    for part in parts:
        seen += part
        given += splitter.split(part)
        assert "".join(piece.source for piece in given) + splitter.held == seen
    given += splitter.finish()
    assert splitter.held == ""
    assert "".join(piece.source for piece in given) == seen
    for piece in given:
        if piece.channel in (Channel.ANSWER, Channel.REASONING):
            assert piece.text == piece.source
            assert not piece.name
            assert not piece.complete
    return joined(given)


def passes(splitter, text):
    """Whether a decoder would show a text to `skim` only; if so, it has gone to the arguments that are being read."""
    if not (splitter.calm and splitter.starts.isdisjoint(text)):
        return False
    if splitter.arguments is None:
        return True
    after = JsonValue(splitter.arguments)
    if after.feed(text) < len(text) or after.done or after.error is not None:
        return False
    splitter.arguments.feed(text)
    return True


def check_skimming(make, words, disturbance):
    """Check that what may be skimmed gives what splitting it gives, and that a copy leaves the splitter as it is."""
    plain, skimming = make(), make()
    for word in words:
        expected = plain.split(word)
        branch = skimming.copy()
        if passes(skimming, word):
            assert [(piece.channel, piece.text) for piece in expected] == [(skimming.channel, word)] * bool(word)
            skimming.skim(word)
        else:
            assert skimming.split(word) == expected
        branch.split(disturbance)
        branch.finish()
    assert skimming.finish() == plain.finish()


def joined(pieces):
    """Join neighbouring pieces that say the same."""
    out = []
    for piece in pieces:
        if not piece.source and not piece.text and not piece.name and not piece.complete and piece.malformed is None:
            continue
        last = out[-1] if out else None
        if last is not None and not piece.name and says(last) == says(piece):
            out[-1] = replace(last, source=last.source + piece.source, text=last.text + piece.text)
        else:
            out.append(piece)
    return out


def says(piece):
    end = piece.complete or (piece.channel is Channel.TOOL_CALL and piece.malformed is not None)
    return end or (piece.channel, piece.call, piece.malformed)


def cut(text, places):
    """A text in parts."""
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(ends)]


def told(pieces):
    """What a reader makes of pieces: `answer`, `thinking`, calls as (name, arguments, how it ended), and complaints."""
    calls: dict[int, list] = {}
    answer = thinking = ""
    complaints = []
    for piece in pieces:
        match piece.channel:
            case Channel.ANSWER:
                answer += piece.text
            case Channel.REASONING:
                thinking += piece.text
            case Channel.TOOL_CALL:
                call = calls.setdefault(piece.call, ["", "", "open"])
                assert call[2] == "open"
                assert bool(call[0]) != bool(piece.name)  # the name comes first, and once
                call[0] += piece.name
                call[1] += piece.text
                call[2] = "complete" if piece.complete else "malformed" if piece.malformed else "open"
        if piece.malformed is not None and piece.malformed not in complaints:
            complaints.append(piece.malformed)
    assert list(calls) == list(range(len(calls)))
    return {
        "answer": answer,
        "thinking": thinking,
        "calls": [tuple(call) for call in calls.values()],
        "why": complaints,
    }
