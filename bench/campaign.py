"""Ids beside gigatoken and fastokens over as many characters as there is time for; who is wrong is judged by `tokenizers`.

    python bench/campaign.py STATE.jsonl [--seconds 3600] [--only qwen3] [--python OTHER/bin/python] [--write]

Texts are joined of passages of the corpora, the standard library's sources and adversarial strings; those of a block depend on
the tokenizer and the block's number alone. Each block is a line of
STATE.jsonl: a later run continues, and counts add up.
The installed `tokenizers` judges each text for which a peer has other ids. The first of a block are also reduced to a text from
which nothing can be cut, and the release of another environment (`--python`, as for bench/releases.py) judges those as well.
No text has an added token: libraries differ in them on purpose. Exits with 1 if tokenweir is wrong anywhere.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
from releases import asked_of
from shared.peers import LIBRARIES, Peer, ids_of, json_file
from shared.report import DATA, arguments, heading, machine, publish, table
from shared.texts import TEXTS

from tokenweir.verify import adversarial

NAMES = (
    "qwen3/tokenizer.json",
    "openai/cl100k_base.tiktoken",
    "openai/o200k_base.tiktoken",
    "llama-3.1/tokenizer.json",
    "deepseek-litellm/tokenizer.json",
    "gpt2/tokenizer.json",
    "llama-2/tokenizer.json",
    "gemma/tokenizer.json",
    "mistral-7b-v0.3/tokenizer.json",
    "phi-3-mini/tokenizer.json",
)
PEERS = ("gigatoken", "fastokens")
OURS = "tokenweir"
DOCUMENTS, PASSAGES = 1000, 60
TURN = 120.0  # seconds for a tokenizer at a time, since a peer takes up to ten to load
REDUCED = 2  # cases of a block and peer


class Case(msgspec.Struct, frozen=True):
    """A reduced text for which a peer and tokenweir have other ids, and those of `tokenizers`."""

    peer: str
    text: str
    ours: list[int]
    theirs: list[int]
    judge: list[int]


class Block(msgspec.Struct):
    """A finished block: its characters and, by peer, the texts that differ. `wrong` counts by library and peer compared with."""

    name: str
    number: int
    characters: int
    different: dict[str, int]
    wrong: dict[str, int]
    cases: list[Case]


def sources() -> tuple[list[str], list[str]]:
    """Natural texts and adversarial ones, of which passages are taken."""
    strings = adversarial.strings(60_000, seed="campaign", special_tokens=("a",))
    made = ["".join(texts) for kind, texts in strings.items() if kind != "special tokens"]
    return ["".join(TEXTS[kind]()) for kind in ("English", "Chinese", "Japanese", "code", "chat")], made


def texts_of(block: str, natural: Sequence[str], made: Sequence[str]) -> list[str]:
    """The texts of a block."""
    rng = Random(block)

    def passage() -> str:
        text = rng.choice(natural if rng.random() < 0.7 else made)
        start = int(rng.random() * len(text))
        return text[start : start + rng.choice((1, 3, 8, 20, 60, 200, 400))]

    return ["".join(passage() for _ in range(rng.randint(1, PASSAGES))) for _ in range(DOCUMENTS)]


def rows_of(given: Any) -> list[bytes]:
    """The ids of each text as bytes, from what a library returns for a batch."""
    if isinstance(given, tuple):
        ids, ends = ids_of(given[0]), np.frombuffer(given[1], np.int64)
    elif hasattr(given, "layout"):
        ids, ends = ids_of(given.layout.content.data), np.asarray(given.layout.offsets.data)
    else:
        ids, ends = given.ids, given.offsets
    return [ids[start:end].tobytes() for start, end in pairwise(ends.tolist())]


def reduced(text: str, differs: Callable[[str], bool]) -> str:
    """Cut from a text all without which it still differs, in halves first and single characters last."""
    size = len(text) // 2
    while size:
        start = 0
        while start < len(text):
            shorter = text[:start] + text[start + size :]
            if differs(shorter):
                text = shorter
            else:
                start += size
        size //= 2
    return text


class Contest:
    """A tokenizer in all libraries that take it."""

    def __init__(self, name: str) -> None:
        import tokenizers

        path = json_file(DATA / "tokenizers" / name)
        self.name, self.peers, self.refused = name, {}, {}
        self.ours: Peer = LIBRARIES[OURS](path, 1)
        for peer in PEERS:
            try:
                self.peers[peer] = LIBRARIES[peer](path, 1)
            except Exception as error:  # noqa: BLE001 - the libraries raise what they like
                self.refused[peer] = str(error)
        self._judge = tokenizers.Tokenizer.from_file(str(path))
        self._judge.no_padding()
        self._judge.no_truncation()

    def judge(self, text: str) -> list[int]:
        return list(self._judge.encode(text, add_special_tokens=False).ids)

    def block(self, number: int, texts: Sequence[str]) -> Block:
        """Compare the ids of all libraries for the texts of a block."""
        found = Block(self.name, number, sum(map(len, texts)), {}, {}, [])
        wrong: Counter[str] = Counter()
        ours = rows_of(self.ours.batch(texts))
        for name, peer in self.peers.items():
            different = [place for place, row in enumerate(rows_of(peer.batch(texts))) if row != ours[place]]
            found.different[name] = len(different)
            for place in different:
                judge = self.judge(texts[place])
                wrong[f"{OURS}/{name}"] += np.asarray(judge, np.int32).tobytes() != ours[place]
                wrong[name] += judge != ids_of(peer.list(texts[place])).tolist()
            found.cases += [self._case(name, peer, texts[place]) for place in different[:REDUCED]]
        found.wrong = dict(wrong)
        return found

    def _case(self, name: str, peer: Peer, text: str) -> Case:
        def ids(text: str) -> list[list[int]]:
            return [np.frombuffer(rows_of(one.batch([text]))[0], np.int32).tolist() for one in (self.ours, peer)]

        def differs(text: str) -> bool:
            ours, theirs = ids(text)
            return ours != theirs

        text = reduced(text, differs)
        return Case(name, text, *ids(text), self.judge(text))


def go_on(state: Path, names: Sequence[str], seconds: float) -> None:
    """Compare blocks until the time is over, each tokenizer in turn; those of a state are kept."""
    natural, made = sources()
    begun = time.monotonic()
    while True:
        done = Counter(block.name for block in blocks_of(state))
        name = min(names, key=lambda name: done[name])
        contest, turn = Contest(name), time.monotonic()
        number = done[name]
        while time.monotonic() < turn + TURN:
            found = contest.block(number, texts_of(f"{name} {number}", natural, made))
            with state.open("ab") as file:
                file.write(msgspec.json.encode(found) + b"\n")
            number += 1
            if time.monotonic() > begun + seconds:
                return


def blocks_of(state: Path) -> list[Block]:
    """The blocks of a state; a line that a kill has cut short is left out."""
    if not state.exists():
        return []
    lines = state.read_bytes().split(b"\n")
    if lines[-1]:
        state.write_bytes(b"\n".join([*lines[:-1], b""]))
    return [msgspec.json.decode(line, type=Block) for line in lines[:-1]]


def campaign(blocks: Sequence[Block], python: str | None) -> str:
    """Characters that all libraries encoded, and the texts in which one has other ids than `tokenizers`."""
    rows, shown = [], []
    for name in dict.fromkeys(block.name for block in blocks):
        own = [block for block in blocks if block.name == name]
        wrong = sum((Counter(block.wrong) for block in own), Counter[str]())
        ours = sum(count for library, count in wrong.items() if library.startswith(OURS))
        cases = {(case.peer, case.text): case for block in own for case in block.cases}
        later = judged(name, [case.text for case in cases.values()], python)
        cells = [f"{wrong[peer]:,}" if peer in own[0].different else "refused" for peer in PEERS]
        rows.append(
            (name, f"{sum(block.characters for block in own):,}", f"{len(own) * DOCUMENTS:,}", f"{ours:,}", *cells)
        )
        for peer in PEERS:
            some = sorted((case for case in cases.values() if case.peer == peer), key=lambda case: len(case.text))
            for case in some[:3]:
                new = later.get(case.text)
                says = (
                    "not asked"
                    if new is None
                    else ", ".join(library for library, ids in ((OURS, case.ours), (peer, case.theirs)) if ids == new)
                )
                right = OURS if case.judge == case.ours else peer if case.judge == case.theirs else "neither"
                shown.append((name, ascii(case.text), peer, str(case.theirs), str(case.ours), right, says or "neither"))
    total = sum(block.characters for block in blocks)
    versions = ", ".join(f"{library} {version(library)}" for library in (*PEERS, "tokenizers"))
    header = ("tokenizer", "characters", "texts", f"{OURS} wrong", *(f"{peer} wrong" for peer in PEERS))
    cases_header = ("tokenizer", "text", "peer", "its ids", f"{OURS}'s ids", "0.23 agrees with", "1.0 agrees with")
    result = f"{table(header, rows)}\n\n{total:,} characters in all; {versions}."
    return f"{result}\n\n{table(cases_header, shown)}" if shown else result


def judged(name: str, texts: Sequence[str], python: str | None) -> dict[str, Any]:
    """The ids of the other release by text; empty without one, or if it refuses the tokenizer."""
    if python is None or not texts:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "asked.json"
        asked.write_text(
            json.dumps({"file": str(json_file(DATA / "tokenizers" / name)), "texts": list(texts)}), "utf-8"
        )
        found = asked_of(python, asked).get("answers")
    return dict(zip(texts, found["ids without special tokens"], strict=True)) if found else {}


def main() -> int:
    options = arguments(
        __doc__,
        ("state", {"type": Path, "help": "the file that keeps the counts"}),
        seconds=(3600.0, "how long (3600); 0 only prints the counts so far"),
        only=("", "only tokenizers whose name contains this"),
        python={"help": "an interpreter with another release of tokenizers"},
    )
    if options.seconds:
        go_on(options.state, [name for name in NAMES if options.only in name], options.seconds)
    blocks = blocks_of(options.state)
    publish("campaign", f"{heading(campaign)}\n\n{campaign(blocks, options.python)}\n\n{machine()}", options.write)
    return int(any(count for block in blocks for library, count in block.wrong.items() if library.startswith(OURS)))


if __name__ == "__main__":
    sys.exit(main())
