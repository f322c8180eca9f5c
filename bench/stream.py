"""Speed of streaming beside tokenizers. Prints tables; --write puts them into bench/RESULTS.md.

    python bench/stream.py [--tokenizer path/to/tokenizer.json] [--rounds 5] [--write]

The text is Python's own reference manual with lines in other scripts between. The ways take turns and a number is the
best of all rounds, in CPU time of the process. An id's cost that grows from left to right would not be linear.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from pydoc_data.topics import topics

import tokenizers
from report import ROOT, machine, table, write_between

import tokenweir.encode
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat_decoder import ChatDecoder
from tokenweir.stream.decode import DecodeStream

EMBEDDED = Path(tokenweir.encode.__file__).parent / "data" / "tokenizer.json"
PEER = f"tokenizers {tokenizers.__version__}"
LENGTHS = (1_000, 10_000, 100_000)
OTHER_SCRIPTS = "流れる川のように。\nПривет, мир! 👩‍👩‍👧 สวัสดีชาวโลก नमस्ते दुनिया\n"
STOPS = ["\nUser:", "<|im_end|>", "Observation:", "###"]

Way = Callable[[list[int]], object]


def text() -> str:
    """About 750,000 characters."""
    return "\n\n".join(topic + OTHER_SCRIPTS for topic in topics.values())


def our_steps(tok: Tokenizer) -> Way:
    def run(ids: list[int]) -> None:
        step = DecodeStream(tok).step
        for token_id in ids:
            step(token_id)

    return run


def their_steps(tok: tokenizers.Tokenizer) -> Way:
    def run(ids: list[int]) -> None:
        step = tokenizers.decoders.DecodeStream(skip_special_tokens=True).step
        for token_id in ids:
            step(tok, token_id)

    return run


def feeds(tok: Tokenizer, size: int = 1, **options: object) -> Way:
    def run(ids: list[int]) -> None:
        feed = ChatDecoder(tok, ignore_eos=True, **options).feed  # type: ignore[arg-type]
        for start in range(0, len(ids), size):
            feed(ids[start : start + size])

    return run


def best_of(rounds: int, ways: dict[str, Way], ids: Sequence[int]) -> dict[str, list[float]]:
    """Seconds for each way and length; the ways take turns."""
    best = {name: [float("inf")] * len(LENGTHS) for name in ways}
    for _ in range(rounds):
        for place, length in enumerate(LENGTHS):
            part = list(islice(cycle(ids), length))
            for name, way in ways.items():
                start = time.process_time()
                way(part)
                best[name][place] = min(best[name][place], time.process_time() - start)
    return best


def steps(path: Path, rounds: int) -> str:
    """Answers of three lengths, one id at a time unless the row says otherwise. Microseconds of CPU time an id."""
    tok = Tokenizer.from_file(path)
    ids = tok.encode(text())
    ways = {
        "DecodeStream.step": our_steps(tok),
        f"{PEER} DecodeStream.step": their_steps(tokenizers.Tokenizer.from_file(str(path))),
        "ChatDecoder.feed, no thinking": feeds(tok, reasoning=None),
        "ChatDecoder.feed, thinking": feeds(tok, reasoning="think"),
        "ChatDecoder.feed, thinking and 4 stops": feeds(tok, reasoning="think", stop=STOPS),
        "ChatDecoder.feed, the same, 8 ids at once": feeds(tok, size=8, reasoning="think", stop=STOPS),
    }
    best = best_of(rounds, ways, ids)
    return table(
        ("", *(f"{length:,} ids" for length in LENGTHS)),
        [(name, *(f"{s / n * 1e6:.2f}" for s, n in zip(row, LENGTHS, strict=True))) for name, row in best.items()],
    )


def first_ids(path: Path, rounds: int) -> str:
    """From a prompt of three lengths, all one turn, to the text of the first id. Milliseconds of CPU time."""
    tok, theirs = Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(str(path))
    ids = tok.encode(text())
    ways: dict[str, Way] = {
        "DecodeStream": lambda prompt: DecodeStream(tok, prompt_ids=prompt).step(ids[0]),
        f"{PEER} DecodeStream": lambda prompt: tokenizers.decoders.DecodeStream(
            ids=prompt, skip_special_tokens=True
        ).step(theirs, ids[0]),
        "ChatDecoder": lambda prompt: ChatDecoder(tok, prompt_ids=prompt).feed([ids[0]]),
    }
    best = best_of(rounds, ways, ids)
    return table(
        ("", *(f"{length:,} ids" for length in LENGTHS)),
        [(name, *(f"{s * 1e3:.3f}" for s in row)) for name, row in best.items()],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, default=EMBEDDED, help="a tokenizer.json (the embedded one)")
    parser.add_argument("--rounds", type=int, default=5, help="how often every way is measured (5)")
    parser.add_argument("--write", action="store_true", help="write the tables into bench/RESULTS.md")
    options = parser.parse_args()
    for name, measure in (("stream", steps), ("first-id", first_ids)):
        heading = " ".join((measure.__doc__ or "").split())
        rows = measure(options.tokenizer, options.rounds)
        result = f"{heading}\n\n{rows}\n\n{machine()}; {PEER}"
        print(f"## {name}\n\n{result}\n")
        if options.write:
            write_between(ROOT / "bench" / "RESULTS.md", name, result)


if __name__ == "__main__":
    main()
