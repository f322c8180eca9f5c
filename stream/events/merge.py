"""Merging of waiting deltas to fewer and longer ones, with the same text, ids and order within each answer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from msgspec.structs import replace

from tokenweir.stream.events.deltas import Alignment, Delta, Finish, ReasoningDelta, TextDelta, ToolCallDelta

DELTA_BYTES = 200
"""Memory of a delta besides its text and ids: the struct, the headers of string and list, its place in a list."""
ALIGNED_TOKEN_BYTES = 80
"""Memory of a token's logprob and bytes, in deltas with an alignment."""


def merge(deltas: Iterable[Delta]) -> list[Delta]:
    """Join neighbouring deltas of one kind within each answer.

    The deltas of parallel answers are grouped by answer, in the order in which the answers first appear. Only the order
    within an answer has a meaning.
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
    """Fast path of `merge`: join deltas that are all plain text of one answer into one; None for any others."""
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
    """Return the estimated memory of a delta, in bytes."""
    match delta:
        case TextDelta() | ReasoningDelta():
            text = delta.text
        case ToolCallDelta():
            text = delta.name + delta.arguments
        case Finish():
            text = ""
    characters = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    tokens = 4 * len(delta.token_ids)
    if delta.alignment is not None:
        tokens += ALIGNED_TOKEN_BYTES * (len(delta.token_ids) + sum(map(len, delta.alignment.top_logprobs)))
    return DELTA_BYTES + characters + tokens


def _kind(delta: Delta) -> tuple[object, ...]:
    """Return a key of a delta: neighbours of one answer can be joined if their keys are equal."""
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
        return replace(
            last, name=first.name, id=first.id, arguments=arguments, token_ids=token_ids, alignment=alignment
        )
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta | ReasoningDelta))
    return replace(first, text=text, token_ids=token_ids, alignment=alignment)


def _join_alignments(parts: list[Alignment]) -> Alignment | None:
    if not parts:
        return None
    logprobs = [logprob for part in parts for logprob in part.logprobs]
    token_bytes = [token for part in parts for token in part.token_bytes]
    tops = []
    if any(part.top_logprobs for part in parts):
        tops = [top for part in parts for top in part.top_logprobs or ([] for _ in part.logprobs)]
    in_text = [flag for part in parts for flag in part.in_text]
    return Alignment(logprobs, token_bytes, parts[0].char_start, parts[0].byte_start, tops, in_text)
