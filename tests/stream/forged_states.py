"""Forged states of decoders: honest ones of many vocabularies and styles, changed at random, with a check that is right.

A forged state is refused when it is loaded, or refused by a later call, or decodes on; every call gives a `StateError` or
no error, and a state costs at most `MOST_SECONDS` of CPU. As a program it tries many:

    python tests/stream/forged_states.py [STATES [SECONDS [SEED]]]
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
from drawn_answers import HEADERS, JSON, MESSAGE_TEXTS, STOPS, WORDS
from msgspec import Struct
from msgspec.structs import replace

from tokenweir.encode.errors import StateError
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.saved_state import DIGEST, MAGIC, DecoderState, read_state, write_state
from tokenweir.templates.styles.reasoning import MESSAGES, STYLES
from tokenweir.templates.styles.tools import TOOL_STYLES

MOST_SECONDS = 0.05
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "array"}}}
TOOLS = [{"name": "f", "parameters": SCHEMA}]
NUMBERS = [
    -1,
    0,
    1,
    2,
    3,
    127,
    128,
    300,
    1 << 16,
    (1 << 31) - 1,
    (1 << 48) - 1,
    1 << 48,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
]
LENGTHS = [1, 2, 7, 64, 500, 1_030, 5_000, 33_000]
LONG = 300_000
"""Characters of a text in one of some hundred forged states."""


class Honest(Struct, frozen=True):
    """A saved state of a decoder, unchanged.

    Attributes:
        tok: The decoder's tokenizer.
        options: The decoder's options.
        belongs: The digest of both.
        said: The content of the state.
        texts: Texts with the markup of the decoder's styles.
        fresh: A decoder of the same options that was fed nothing.

    """

    tok: Tokenizer
    options: dict[str, Any]
    belongs: bytes
    said: DecoderState
    texts: list[str]
    fresh: ChatDecoder


def honest_states(
    rng: random.Random, make_tok: Callable[..., Tokenizer], combinations: int, of_each: int
) -> list[Honest]:
    """Return decoder states of random styles, vocabularies and options, each saved inside of an answer.

    Args:
        rng: The source of randomness.
        make_tok: Makes a tokenizer with added tokens.
        combinations: The number of combinations of style, vocabulary and options.
        of_each: The number of states of each combination.

    """
    states = []
    for _ in range(combinations):
        style, tools = rng.choice(list(STYLES.values())), rng.choice(list(TOOL_STYLES.values()))
        if rng.random() < 0.2:
            style = tools = None
            name = rng.choice(list(MESSAGES))
            style, tools = STYLES[name], TOOL_STYLES[name]
        special = rng.choice([None, True, False])
        tokens = dict.fromkeys((*style.tokens, *tools.tokens) if special is not None else ())
        tok = make_tok(*(AddedToken(token, special=special) for token in tokens))
        marks = [
            mark for mark in dict.fromkeys((*style.marks, *style.enders, *style.token_enders, *tools.marks)) if mark
        ]
        messages = [text for name in {style.name, tools.name} & set(MESSAGES) for text in MESSAGE_TEXTS[name]]
        header = HEADERS.get(tools.name, "")
        opened = [tools.opens[0] + tools.call_opens + header + call for call in JSON[:5]]
        texts = [*WORDS, *marks, *marks, *JSON, *messages, *opened, *opened]
        options = {
            "stop": rng.sample(STOPS, rng.randint(0, 2)),
            "reasoning": rng.choice([style, style, replace(style, strip=True)]),
            "tool_style": rng.choice([tools, tools, tools, None]),
            "tools": rng.choice([(), TOOLS]),
            "include_stop": rng.random() < 0.2,
            "alignment": rng.random() < 0.3,
            "max_tokens": rng.choice([None, None, 500]),
            "thinking_budget": rng.choice([None, None, 9]),
            "byte_fallback": rng.choice(["eager", "huggingface"]),
        }
        fresh = ChatDecoder(tok, **options)
        fresh.copy().feed(list("".join(texts).encode()))  # compiles what is compiled once
        for _ in range(of_each):
            text = "".join(rng.choices(texts, k=rng.randint(0, 6)))
            ids = tok.encode(text) if rng.random() < 0.5 else list(text.encode())
            decoder = fresh.copy()
            decoder.feed(ids[: rng.randint(0, len(ids))])
            state = decoder.state()
            belongs = state[len(MAGIC) + 1 :][:DIGEST]
            states.append(Honest(tok, options, belongs, read_state(state, belongs), texts, fresh))
    return states


class Forger:
    """Generator of randomly changed states.

    Args:
        rng: The source of randomness.
        states: Honest states.

    """

    def __init__(self, rng: random.Random, states: list[Honest]) -> None:
        self._rng = rng
        self._states = states
        self._leaves = [leaf for state in states[:500] for leaf in _leaves(_plain(state))]

    def forged(self) -> tuple[Honest, bytes, list[int]]:
        """Return an honest state, a forged one made of it with a valid check, and ids to decode next."""
        rng = self._rng
        honest = rng.choice(self._states)
        said = None
        while said is None:
            changed = _plain(honest)
            for _ in range(rng.randint(1, 3)):
                changed = self._changed(changed, honest)
            with suppress(msgspec.ValidationError):
                said = msgspec.convert(changed, DecoderState)
        if rng.random() < 0.7:
            said = _with_core(honest, said)
        text = "".join(rng.choices(honest.texts, k=rng.randint(0, 4)))
        ids = honest.tok.encode(text) if rng.random() < 0.5 else list(text.encode())
        return honest, write_state(said, honest.belongs), ids

    def _changed(self, value: Any, honest: Honest) -> Any:
        """Return a copy of a nested value with one random change."""
        rng = self._rng
        if isinstance(value, list) and value and rng.random() < 0.95:
            place = rng.randrange(len(value))
            return [*value[:place], self._changed(value[place], honest), *value[place + 1 :]]
        if isinstance(value, dict) and value:
            key = rng.choice(list(value))
            return value | {key: self._changed(value[key], honest)}
        if isinstance(value, bytes):
            return self._bytes(value)
        if isinstance(value, str):
            return self._text(value, honest)
        if isinstance(value, bool) and rng.random() < 0.9:
            return not value
        if isinstance(value, int) and rng.random() < 0.9:
            return rng.choice([*NUMBERS, min(value + 1, NUMBERS[-1]), max(value - 1, -1)])
        return rng.choice(self._leaves)

    def _text(self, value: str, honest: Honest) -> Any:
        rng = self._rng
        roll = rng.random()
        if roll < 0.3:
            return rng.choice(honest.texts)
        if roll < 0.4:
            return rng.choice(self._leaves)
        unit = rng.choice([*honest.texts, "<", " ", "\n", "[", "\\", '"', value or "x"])
        length = LONG if rng.random() < 0.02 else rng.choice(LENGTHS)
        long = unit * (length // len(unit) + 1)
        return rng.choice([long[:length], value + long[:length], value[: rng.randint(0, len(value))]])

    def _bytes(self, value: bytes) -> bytes:
        rng = self._rng
        changed = bytearray(value)
        for _ in range(rng.randint(1, 3)):
            place = rng.randint(0, len(changed))
            number = rng.choice([*range(4), *NUMBERS[3:]])
            new = rng.choice([_varint(number), bytes([rng.randrange(256)]), b"<" * rng.choice(LENGTHS)])
            changed[place : place + rng.randint(0, 2)] = new
        return bytes(changed)


def try_forged(honest: Honest, state: bytes, ids: list[int]) -> str:
    """Load a forged state, feed ids, save and finish.

    Returns:
        "refused" if loading raised a `StateError`, "refused later" if another call did, else "went on". Other errors
        are raised.

    """
    try:
        decoder = ChatDecoder.from_state(honest.tok, state, **honest.options)
    except StateError:
        return "refused"
    try:
        copied = decoder.copy()
        for part in (ids[:1], ids[1:]):
            decoder.feed(part)
        decoder.state()
        decoder.finish()
        copied.finish()
    except StateError:
        return "refused later"
    return "went on"


def _with_core(honest: Honest, said: DecoderState) -> DecoderState:
    """Return a forged state whose core matches the text that its splitter holds, so that the forgery is consistent."""
    decoder = honest.fresh.copy()
    splitter = decoder._splitter
    if splitter is None or said.finished:
        return said
    try:
        splitter.restore(said.splitter)
    except (ValueError, TypeError, LookupError):
        return said
    for byte in splitter.held.encode():
        decoder._detok.step(byte)
    aligner = said.aligner and [[None] * decoder._answer.kept, {}]
    return replace(said, core=decoder._detok.state(), aligner=aligner)


def _plain(honest: Honest) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(honest.said))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | dict):
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    elif value is not None:
        yield value


def _varint(number: int) -> bytes:
    out = bytearray()
    number &= (1 << 64) - 1
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def main(count: int, seconds: float, seed: int) -> int:
    """Try `count` forged states for at most `seconds`; return how many failed."""
    from conftest import byte_tokenizer

    rng = random.Random(seed)
    end = time.monotonic() + seconds
    came: Counter[str] = Counter()
    worst: list[tuple[float, str]] = []
    tried = 0
    failures: Counter[str] = Counter()
    while tried < count and time.monotonic() < end:
        forger = Forger(rng, honest_states(rng, byte_tokenizer, 60, 20))
        for _ in range(min(20_000, count - tried)):
            honest, state, ids = forger.forged()
            before = time.thread_time()
            try:
                came[try_forged(honest, state, ids)] += 1
            except Exception as error:  # noqa: BLE001 - reported
                frame = traceback.extract_tb(error.__traceback__)[-1]
                failures[
                    f"{type(error).__name__}: {str(error)[:80]} at {frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"
                ] += 1
                came["failed"] += 1
            spent = time.thread_time() - before
            tried += 1
            styles = honest.said.styles
            worst = sorted(
                [*worst, (spent, f"{styles}, {len(state)} bytes, {honest.said.splitter!r:.100}")], reverse=True
            )[:10]
            if time.monotonic() >= end:
                break
    lines = [f"{tried} states, seed {seed}: {dict(came)}"]
    lines += [f"  {1000 * spent:.1f} ms  {what}" for spent, what in worst]
    lines += [f"  {times} x {what}" for what, times in failures.most_common()]
    sys.stdout.write("\n".join(lines) + "\n")
    return sum(failures.values()) + sum(spent > MOST_SECONDS for spent, _ in worst)


if __name__ == "__main__":
    arguments = [float(argument) for argument in sys.argv[1:]]
    count, seconds, seed = [*arguments, *(10_000, 60, 0)[len(arguments) :]]
    sys.exit(min(1, main(int(count), seconds, int(seed))))
