"""Deltas that wait are merged: fewer and longer ones, with the same text, ids and order within each answer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from msgspec.structs import replace

from tokenweir.stream.events.deltas import Alignment, Delta, Finish, ReasoningDelta, TextDelta, ToolCallDelta

DELTA_BYTES = 200
"""What a delta takes in memory besides its text and ids: the struct, the headers of string and list, its place."""
ALIGNED_TOKEN_BYTES = 80
"""What a token's logarithm and bytes take, where deltas carry them."""


def merge(deltas: Iterable[Delta]) -> list[Delta]:
    """Neighbours of one kind within an answer become one delta.

    Of several parallel answers, each comes as a whole, in the order in which they first appear: only the order within
    an answer means something.
    """
    waiting = list(deltas)
    if len(waiting) < 2:
        return waiting
    if (text := _plain_text(waiting)) is not None:
        return [text]
    answers: dict[int, list[Delta]] = {}
    for delta in waiting:
        answers.setdefault(delta.index, []).append(delta)
    merged: list[Delta] = []
    for answer in answers.values():
        for _, run in groupby(answer, key=_kind):
            pieces = list(run)
            merged.append(pieces[0] if len(pieces) == 1 else _join(pieces))
    return merged


def _plain_text(waiting: list[Delta]) -> TextDelta | None:
    """What nearly all deltas that wait are, joined: text of one answer, as it is."""
    index = waiting[0].index
    texts: list[str] = []
    token_ids: list[int] = []
    for delta in waiting:
        if (
            type(delta) is not TextDelta
            or delta.index != index
            or delta.malformed is not None
            or delta.alignment is not None
        ):
            return None
        texts.append(delta.text)
        token_ids += delta.token_ids
    return TextDelta("".join(texts), token_ids, index)


def size_of(delta: Delta) -> int:
    """About how many bytes of memory a delta takes."""
    match delta:
        case TextDelta() | ReasoningDelta():
            text = delta.text
        case ToolCallDelta():
            text = delta.name + delta.arguments
        case Finish():
            text = ""
    characters = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    token = 4 if delta.alignment is None else 4 + ALIGNED_TOKEN_BYTES
    return DELTA_BYTES + characters + token * len(delta.token_ids)


def _kind(delta: Delta) -> tuple[object, ...]:
    """Neighbours with the same kind can be joined."""
    match delta:
        case TextDelta():
            return TextDelta, delta.malformed
        case ToolCallDelta():
            return ToolCallDelta, delta.call
        case _:
            return (type(delta),)


def _join(pieces: list[Delta]) -> Delta:
    first, last = pieces[0], pieces[-1]
    token_ids = [token_id for piece in pieces for token_id in piece.token_ids]
    alignment = _join_alignments([piece.alignment for piece in pieces if piece.alignment is not None])
    if isinstance(first, ToolCallDelta) and isinstance(last, ToolCallDelta):
        arguments = "".join(piece.arguments for piece in pieces if isinstance(piece, ToolCallDelta))
        return replace(last, name=first.name, arguments=arguments, token_ids=token_ids, alignment=alignment)
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta | ReasoningDelta))
    return replace(first, text=text, token_ids=token_ids, alignment=alignment)


def _join_alignments(parts: list[Alignment]) -> Alignment | None:
    if not parts:
        return None
    logprobs = [logprob for part in parts for logprob in part.logprobs]
    token_bytes = [token for part in parts for token in part.token_bytes]
    return Alignment(logprobs, token_bytes, parts[0].char_start, parts[0].byte_start)
