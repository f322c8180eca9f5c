"""Prompts of many callers at once: PromptBatcher beside other ways. --write puts the table into bench/RESULTS.md.

    python bench/ingest.py [--tokenizer path/to/tokenizer.json] [--prompts 4096] [--rounds 5] [--gpu] [--write]

Callers are tasks of one event loop, as in a server, and each asks for the ids of one prompt after the other; so
`encode_array` by itself is how fast one thread goes without any waiting, and `encode_batch` how fast all threads go if
somebody has gathered the prompts already. The ways take turns and what counts is the round with the highest throughput.
Times are of the clock, since waiting is the point.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from statistics import quantiles
from time import perf_counter

import anyio
from anyio import to_thread
from shared.report import arguments, heading, machine, publish, table

import tokenweir.encode
from tokenweir import PromptBatcher, Tokenizer

EMBEDDED = Path(tokenweir.encode.__file__).parent / "data" / "tokenizer.json"
CALLERS = (1, 16, 256)
CHARACTERS = 2000

Times = tuple[float, list[float]]
"""Seconds from the first prompt to the last, and of every prompt."""
Way = Callable[[Sequence[str], int], Awaitable[Times]]


def manual(count: int) -> list[str]:
    """Prompts of 2,000 characters; none is another's repetition."""
    text = "\n\n".join(topics.values())
    return [text[i * CHARACTERS % (len(text) - CHARACTERS) :][:CHARACTERS] for i in range(count)]


async def called(encode: Callable[[str], Awaitable[object]], prompts: Sequence[str], callers: int) -> Times:
    """Share prompts among callers."""
    seconds: list[float] = []

    async def caller(number: int) -> None:
        for prompt in prompts[number::callers]:
            start = perf_counter()
            await encode(prompt)
            seconds.append(perf_counter() - start)

    start = perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(callers):
            tasks.start_soon(caller, number)
    return perf_counter() - start, seconds


def in_the_loop(tok: Tokenizer) -> Way:
    async def encode(prompt: str) -> None:
        tok.encode_array(prompt)

    return lambda prompts, callers: called(encode, prompts, callers)


def in_threads(tok: Tokenizer) -> Way:
    async def encode(prompt: str) -> None:
        await to_thread.run_sync(tok.encode_array, prompt)

    return lambda prompts, callers: called(encode, prompts, callers)


def gathered(tok: Tokenizer) -> Way:
    async def run(prompts: Sequence[str], callers: int) -> Times:
        seconds = []
        for start in range(0, len(prompts), callers):
            began = perf_counter()
            tok.encode_batch(prompts[start : start + callers])
            seconds += [perf_counter() - began] * callers
        return sum(seconds) / callers, seconds

    return run


def batched(encoder: object) -> Way:
    async def run(prompts: Sequence[str], callers: int) -> Times:
        async with PromptBatcher(encoder) as batcher:  # type: ignore[arg-type]
            return await called(batcher.encode, prompts, callers)

    return run


async def best_of(rounds: int, ways: dict[str, Way], prompts: Sequence[str]) -> dict[str, list[Times]]:
    """The times of each way and number of callers; the ways take turns."""
    best = {name: [(float("inf"), [0.0])] * len(CALLERS) for name in ways}
    for _ in range(rounds):
        for place, callers in enumerate(CALLERS):
            part = prompts if callers > 1 else prompts[: len(prompts) // 4]  # hops take long
            for name, way in ways.items():
                total, seconds = await way(part, callers)
                best[name][place] = min(best[name][place], (total * len(prompts) / len(part), seconds))
    return best


def ingest(path: Path, count: int, rounds: int, gpu: bool) -> str:
    """Prompts of 2,000 characters. MB/s, and milliseconds for a prompt: the median / 99 in 100 are below."""
    tok = Tokenizer.from_file(path)
    prompts = manual(count)
    size = sum(len(prompt.encode()) for prompt in prompts)
    ways = {
        "encode_array, in the event loop": in_the_loop(tok),
        "encode_array, in anyio's threads": in_threads(tok),
        "encode_batch, gathered beforehand": gathered(tok),
        "PromptBatcher": batched(tok),
    }
    if gpu:
        from tokenweir.gpu import GpuEncoder

        ways["PromptBatcher over GpuEncoder"] = batched(GpuEncoder(tok))
    rows = []
    for name, best in anyio.run(best_of, rounds, ways, prompts).items():
        cells = []
        for total, seconds in best:
            cuts = quantiles(seconds, n=100)
            cells.append(f"{size / total / 1e6:.1f}; {cuts[49] * 1e3:.2f} / {cuts[98] * 1e3:.2f}")
        rows.append((name, *cells))
    return table(("", *(f"{n} caller{'s' * (n > 1)}" for n in CALLERS)), rows)


def main() -> None:
    options = arguments(
        __doc__,
        tokenizer={"type": Path, "default": EMBEDDED, "help": "a tokenizer.json (the embedded one)"},
        prompts=(4096, "how many prompts a round has (4096)"),
        rounds=(5, "how often every way is measured (5)"),
        gpu=(False, "measure batches on a GPU too"),
    )
    rows = ingest(options.tokenizer, options.prompts, options.rounds, options.gpu)
    result = f"{heading(ingest)}\n\n{rows}\n\n{machine()}"
    publish("ingest", result, options.write)


if __name__ == "__main__":
    main()
