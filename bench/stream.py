"""Speed of streaming beside tokenizers, tiktoken and splintr. Prints tables; --write puts them into bench/RESULTS.md.

    python bench/stream.py [--tokenizer path/to/tokenizer.json] [--rounds 5] [--write]

The text is Python's own reference manual with lines in other scripts between. The ways take turns and a number is the
best of all rounds, in CPU time of the process. An id's cost that grows from left to right would not be linear.
"""

from __future__ import annotations

import asyncio
import codecs
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path
from pydoc_data.topics import topics

import splintr
import tiktoken
import tokenizers
from shared.processes import memory
from shared.report import arguments, heading, machine, publish, table

import tokenweir.encode
from tokenweir import ChatDecoder, DecodeBatch, DecodeStream, Tokenizer, decode_chat

EMBEDDED = Path(tokenweir.encode.__file__).parent / "data" / "tokenizer.json"
PEERS = f"tokenizers {tokenizers.__version__}, tiktoken {tiktoken.__version__}, splintr {version('splintr-rs')}"
LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
PROMPTS = (10, 1_000, 10_000, 100_000)
SEQUENCES = (1, 16, 256)
OTHER_SCRIPTS = "流れる川のように。\nПривет, мир! 👩‍👩‍👧 สวัสดีชาวโลก नमस्ते दुनिया\n"
STOPS = ["\nUser:", "<|im_end|>", "Observation:", "###"]

Way = Callable[[list[int]], object]


def text() -> str:
    """About 750,000 characters."""
    return "\n\n".join(topic + OTHER_SCRIPTS for topic in topics.values())


# -- ways --------------------------------------------------------------------------------------------------------------


def our_steps(tok: Tokenizer) -> Way:
    def run(ids: list[int]) -> None:
        step = DecodeStream(tok).step
        for token_id in ids:
            step(token_id)

    return run


def tokenizers_steps(path: Path) -> Way:
    tok = tokenizers.Tokenizer.from_file(str(path))

    def run(ids: list[int]) -> None:
        step = tokenizers.decoders.DecodeStream(skip_special_tokens=True).step
        for token_id in ids:
            step(tok, token_id)

    return run


def tiktoken_steps(tok: Tokenizer) -> Way:
    """With `codecs`, as its users do; it has no incremental decoder of its own."""
    ordinary = set(range(tok.vocab_size)) - {token.id for token in tok.added_tokens}
    ranks = {tok.token_bytes(token_id): token_id for token_id in sorted(ordinary)}
    token_bytes = tiktoken.Encoding("embedded", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={})

    def run(ids: list[int]) -> None:
        step, bytes_of = codecs.getincrementaldecoder("utf-8")("replace").decode, token_bytes.decode_single_token_bytes
        for token_id in ids:
            step(bytes_of(token_id))

    return run


def codecs_steps(tok: Tokenizer) -> Way:
    """The least that Python needs: a list of every token's bytes, and `codecs`."""
    table = [tok.token_bytes(token_id) for token_id in range(tok.vocab_size)]

    def run(ids: list[int]) -> None:
        step = codecs.getincrementaldecoder("utf-8")("replace").decode
        for token_id in ids:
            step(table[token_id])

    return run


def splintr_steps(path: Path) -> Way:
    tok = splintr.from_json(str(path))

    def run(ids: list[int]) -> None:
        step = tok.streaming_decoder().add_token
        for token_id in ids:
            step(token_id)

    return run


def feeds(tok: Tokenizer, size: int = 1, **options: object) -> Way:
    def run(ids: list[int]) -> None:
        feed = ChatDecoder(tok, **options).feed  # type: ignore[arg-type]
        if size == 1:
            for token_id in ids:
                feed([token_id])
        for start in range(0, len(ids) if size > 1 else 0, size):
            feed(ids[start : start + size])

    return run


def stages(tok: Tokenizer, size: int, **options: object) -> Way:
    async def chunks(ids: list[int]) -> AsyncGenerator[list[int], None]:
        for start in range(0, len(ids), size):
            yield ids[start : start + size]

    async def read(ids: list[int]) -> None:
        async for _ in decode_chat(chunks(ids), tok, **options):
            pass

    return lambda ids: asyncio.run(read(ids))


# -- tables ------------------------------------------------------------------------------------------------------------


def best_of(rounds: int, ways: dict[str, Way], inputs: Sequence[list[int]]) -> dict[str, list[float]]:
    """Seconds for each way and input; the ways take turns."""
    best = {name: [float("inf")] * len(inputs) for name in ways}
    for _ in range(rounds):
        for place, ids in enumerate(inputs):
            for name, way in ways.items():
                start = time.process_time()
                way(ids)
                best[name][place] = min(best[name][place], time.process_time() - start)
    return best


def in_state(decoder: ChatDecoder, token_id: int, rounds: int) -> float:
    """Return the seconds that one id takes in the state of a decoder."""
    best, copies = float("inf"), 50
    for _ in range(rounds * 20):
        feeds = [decoder.copy().feed for _ in range(copies)]
        start = time.process_time()
        for feed in feeds:
            feed([token_id])
        best = min(best, (time.process_time() - start) / copies)
    return best


def growth(way: Way, ids: list[int]) -> int:
    """KiB that a run leaves behind, after one that has filled what is filled once."""
    way(ids)
    before = memory()
    way(ids)
    return max(0, round((memory() - before) * 1e6 / 1024))


def repeated(ids: list[int], lengths: Sequence[int]) -> list[list[int]]:
    return [list(islice(cycle(ids), length)) for length in lengths]


def steps(path: Path, rounds: int) -> str:
    """Answers of several lengths, one id at a time unless the row says otherwise.

    Microseconds of CPU time an id; and KiB of memory that the longest answer adds. Where a row says "all", there are an end
    token, `<think>` and 4 stops to look for.
    """
    tok = Tokenizer.from_file(path)
    everything = {"reasoning": "think", "stop": STOPS}
    ways = {
        "DecodeStream.step": our_steps(tok),
        "tokenizers DecodeStream.step": tokenizers_steps(path),
        "splintr StreamingDecoder.add_token": splintr_steps(path),
        "tiktoken decode_single_token_bytes, codecs": tiktoken_steps(tok),
        "a list of bytes, codecs": codecs_steps(tok),
        "ChatDecoder.feed, no thinking": feeds(tok, reasoning=None),
        "ChatDecoder.feed, all": feeds(tok, **everything),
        "ChatDecoder.feed, all, 8 ids at once": feeds(tok, 8, **everything),
        "decode_chat, all, asyncio": stages(tok, 1, **everything),
        "decode_chat, all, asyncio, 8 ids at once": stages(tok, 8, **everything),
    }
    inputs = repeated(tok.encode(text(), add_special_tokens=False), LENGTHS)
    best = best_of(rounds, ways, inputs)
    return table(
        ("", *(f"{length:,} ids" for length in LENGTHS), "KiB"),
        [
            (
                name,
                *(f"{s / n * 1e6:.2f}" for s, n in zip(row, LENGTHS, strict=True)),
                str(growth(ways[name], inputs[-1])),
            )
            for name, row in best.items()
        ],
    )


def batches(path: Path, rounds: int) -> str:
    """Sequences that are stepped together, one id each unless the row says otherwise. Microseconds of CPU time an id."""
    tok = Tokenizer.from_file(path)
    ids = tok.encode(text(), add_special_tokens=False)[:100_000]

    def batch(n: int, rows: int = 1) -> Way:
        def run(ids: list[int]) -> None:
            decoding = DecodeBatch(tok)
            slots = [decoding.add() for _ in range(n)]
            for start in range(0, len(ids), n * rows):
                part = ids[start : start + n * rows]
                several = [part[at : at + rows] for at in range(0, len(part), rows)] if rows > 1 else part
                decoding.step(slots[: len(several)], several)

        return run

    def streams(n: int) -> Way:
        def run(ids: list[int]) -> None:
            decoding = [DecodeStream(tok).step for _ in range(n)]
            for start in range(0, len(ids), n):
                [step(token_id) for step, token_id in zip(decoding, ids[start : start + n], strict=False)]

        return run

    rows = []
    for name, make in (
        ("DecodeBatch.step", batch),
        ("DecodeBatch.step, 4 ids each", lambda n: batch(n, 4)),
        ("as many DecodeStream.step", streams),
    ):
        best = best_of(rounds, {str(n): make(n) for n in SEQUENCES}, [ids])
        rows.append((name, *(f"{seconds[0] / len(ids) * 1e6:.3f}" for seconds in best.values())))
    return table(("", *(f"{n} sequences" for n in SEQUENCES)), rows)


def rare_ids(path: Path, rounds: int) -> str:
    """Ids that concern the splitter, fed one at a time with everything that is looked for.

    Microseconds of CPU time: of a tag of thinking, what it adds to the ids around it; of one of calls, the id alone; of
    an id in a call, the call's over its ids.
    """
    tok = Tokenizer.from_file(path)
    common = tok.encode("the river carries boats and people to the sea " * 60, add_special_tokens=False)
    members = ", ".join(f'"key{number}": "some value {number}"' for number in range(300))
    calls = {
        "an id of a call that is held, its name last": f'{{"arguments": {{{members}}}, "name": "f"}}',
        "an id of a call's arguments": f'{{"name": "f", "arguments": {{{members}}}}}',
        "an id of a short call": '{"name": "get_weather", "arguments": {"city": "Paris", "days": [1, 2, 3]}}',
    }
    opener, closer = (tok.encode(tag, add_special_tokens=False) for tag in ("\n<think>", "</think>"))
    tags = (opener + common[:4] + closer + common[4:8]) * 100
    rows = []
    for name, tools in (("thinking", None), ("thinking and tool calls", "hermes")):
        way = feeds(tok, reasoning="think", stop=STOPS, tool_style=tools)
        (with_tags, without) = best_of(rounds * 4, {"": way}, [tags, (common * 3)[: len(tags)]])[""]
        each = without / len(tags)
        rows.append((f"a tag, looking for {name}", f"{(with_tags - each * (len(tags) - 200)) / 200 * 1e6:.2f}"))
        rows.append((f"a common id, looking for {name}", f"{each * 1e6:.2f}"))
    for name, call in calls.items():
        ids = tok.encode(f"<tool_call>\n{call}\n</tool_call>\n", add_special_tokens=False)
        ids *= max(1, 2000 // len(ids))
        seconds = best_of(rounds * 2, {"": way}, [ids])[""][0]
        rows.append((name, f"{seconds / len(ids) * 1e6:.2f}"))
    for name, before, tag in (
        ("the id that begins a block of calls", "So\n", "<tool_call>"),
        ("the id that ends it", f"<tool_call>\n{call}\n", "</tool_call>"),
    ):
        decoder = ChatDecoder(tok, reasoning="think", stop=STOPS, tool_style="hermes")
        decoder.feed(tok.encode(before, add_special_tokens=False))
        (token_id,) = tok.encode(tag, add_special_tokens=False)
        rows.append((name, f"{in_state(decoder, token_id, rounds) * 1e6:.2f}"))
    return table(("", "µs"), rows)


def first_ids(path: Path, rounds: int) -> str:
    """From a prompt of several lengths to the text of the first id. Milliseconds of CPU time."""
    tok, theirs = Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(str(path))
    ids, turn = tok.encode(text(), add_special_tokens=False), tok.encode("<|im_start|>assistant\n")
    ways: dict[str, Way] = {
        "DecodeStream": lambda prompt: DecodeStream(tok, prompt_ids=prompt).step(ids[0]),
        "tokenizers DecodeStream": lambda prompt: tokenizers.decoders.DecodeStream(
            ids=prompt, skip_special_tokens=True
        ).step(theirs, ids[0]),
        "ChatDecoder": lambda prompt: ChatDecoder(tok, prompt_ids=prompt).feed([ids[0]]),
    }
    prompts = repeated(ids, PROMPTS)
    chats = [prompt + turn for prompt in prompts]
    best: dict[str, list[float]] = {}
    for name, way in ways.items():  # not in turns: what takes 20 ms leaves nothing in the caches for what takes 20 µs
        best |= best_of(rounds * 4, {name: way}, chats)
    best |= best_of(rounds * 4, {"ChatDecoder, the prompt all one turn": ways["ChatDecoder"]}, prompts)
    return table(
        ("", *(f"{length:,} ids" for length in PROMPTS)),
        [(name, *(f"{s * 1e3:.3f}" for s in row)) for name, row in best.items()],
    )


def main() -> None:
    options = arguments(
        __doc__,
        tokenizer={"type": Path, "default": EMBEDDED, "help": "a byte-level tokenizer.json (the embedded one)"},
        rounds=(5, "how often every way is measured (5)"),
    )
    for name, measure in (
        ("stream", steps),
        ("rare-ids", rare_ids),
        ("decode-batch", batches),
        ("first-id", first_ids),
    ):
        rows = measure(options.tokenizer, options.rounds)
        result = f"{heading(measure)}\n\n{rows}\n\n{machine()}; {PEERS}"
        publish(name, result, options.write)


if __name__ == "__main__":
    main()
