"""Helpers of the tests of splitters: a text through a splitter in pieces, and what came out, as if it had come in one."""

from __future__ import annotations

from itertools import groupby, pairwise

import msgspec
from msgspec.structs import replace

from tokenweir.stream.decode.parsers.pieces import markup, plain
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel


def run(splitter, parts):
    """Feed a text in parts to a splitter; return the merged pieces. Assert what must hold for every splitter."""
    given, seen = [], ""
    for part in parts:
        seen += part
        given += splitter.feed(part)
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


def split_calls(style, text, tools=()):
    """Split an answer as a whole and character by character; assert equal pieces, and return them as `told` does."""
    whole = run(ToolParser(style, tools), [text])
    assert run(ToolParser(style, tools), list(text)) == whole
    return told(whole)


def passes(skippable, text):
    """Whether a `SkippableText` (or None) permits a text to bypass the splitter."""
    if skippable is None or (
        set(text) - set(" \t\r\n") if skippable.until is None else set(text) & set(skippable.until)
    ):
        return False
    if skippable.scanner is None:
        return True
    after = skippable.scanner.copy()
    return after.feed(text) == len(text) and not after.done and after.error is None


def check_passing(make, words, disturbance):
    """Feed words to a splitter; assert what its `SkippableText` promises, and that a copy and a restored state behave the same.

    Args:
        make: Makes the splitter.
        words: The texts to feed.
        disturbance: A text that is fed to copies, which must not affect the splitter.

    """
    splitter = make()
    for word in words:
        skippable, channel, held = splitter.skippable, splitter.channel, splitter.held
        branch, restored = splitter.copy(), make()
        restored.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(splitter.state())))
        if skippable is not None:
            for tag in (*skippable.tags, *skippable.openers, *skippable.closers):
                check_taken_tag(splitter, tag, disturbance)
        pieces = splitter.feed(word)
        if passes(skippable, word):
            assert splitter.held == (held + word if skippable.held else held)
            assert joined(pieces) == ([] if skippable.held or not word else [piece_of(word, channel, pieces[0].call)])
        assert restored.feed(word) == pieces
        assert (restored.channel, restored.held) == (splitter.channel, splitter.held)
        branch.feed(disturbance)
        branch.finish()


def check_taken_tag(splitter, tag, after):
    """Assert that `take_tag` has the same effect on a splitter as feeding it the tag; `after` is a text to feed behind it."""
    told_of, fed = splitter.copy(), splitter.copy()
    begins_block = tag in splitter.skippable.openers
    told_of.take_tag(tag)
    assert joined(fed.feed(tag)) == ([] if begins_block else [markup(splitter.held + tag)])
    assert fed.held == (tag if begins_block else "")
    assert (told_of.channel, told_of.held, told_of.skippable) == (fed.channel, fed.held, fed.skippable)
    for text in ("\n", after):
        assert told_of.feed(text) == fed.feed(text)
        assert told_of.channel == fed.channel
    assert told_of.finish() == fed.finish()


def piece_of(text, channel, call):
    return replace(plain(text, channel), call=call)


def joined(pieces):
    """Merge neighbouring pieces of equal channel and state; return the merged list without empty pieces."""
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


def without_blank_blocks(pieces, begun=False):
    """Return the pieces of a whole text with those blocks made markup that have only white space and stand next to markup.

    A block is the text on one channel between markup, calls and other channels. `begun`: the prompt has opened the thinking.
    """
    blocks = [list(block) for _, block in groupby(pieces, lambda piece: piece.channel)]
    out = []
    for number, block in enumerate(blocks):
        counts = block[0].channel in (None, Channel.TOOL_CALL) or any(
            piece.malformed is not None or (piece.text and not piece.text.isspace()) for piece in block
        )
        if counts or (len(blocks) == number + 1 == 1 and not begun):
            out += block
        else:
            out += [markup(piece.source) for piece in block]
    return out


def cut(text, places):
    """Split a text at some places; return the parts."""
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(ends)]


def told(pieces):
    """Collect pieces to a dict.

    Returns:
        `answer`, `thinking`, `calls` as (name, arguments, how it ended), and `why`, the reasons of malformed calls.

    """
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
                assert call[2] == "open" or (call[2] == "malformed" and piece.malformed)
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
