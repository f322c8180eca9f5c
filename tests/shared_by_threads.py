"""Threads that share one tokenizer, one template and one prompt cache, and get what one thread gets.

    python tests/shared_by_threads.py [ROUNDS [THREADS]]

`scripts/check --races` runs it on a core with ThreadSanitizer, which reports every data race. Texts are long enough for the
core to release the interpreter's lock, so threads are inside it at once on any Python. Each round has new words, which all
threads look up, encode and cache at the same time.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tokenweir import ChatTemplate, DecodeStream, PromptCache, Tokenizer

ALPHABETS = ("etaoinshrdlu", "абвгдежзийкл", "天地玄黄宇宙洪荒日月盈昃", "0123456789", "({[<=>]});:", "éèêàâçñö")
MARKED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def text_of(draw: random.Random, words: int) -> str:
    """Return a text of `words` random words, so that a round's words are new."""
    alphabets = draw.choices(ALPHABETS, k=words)
    return " ".join("".join(draw.choices(alphabet, k=draw.randint(1, 12))) for alphabet in alphabets)


def streamed(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    stream = DecodeStream(tokenizer)
    return "".join(stream.step(i) for i in ids) + stream.flush()


def calls(
    tokenizer: Tokenizer, template: ChatTemplate, cache: PromptCache, texts: list[str]
) -> list[Callable[[], object]]:
    """Return the functions that each thread calls in a round; each must return an equal result on every thread."""
    turns = [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(texts)]
    ids = tokenizer.encode(texts[0])

    def cached(messages: list[dict[str, Any]]) -> object:
        return cache.render(messages, template=template, tokenizer=tokenizer).ids.tolist()

    return [
        lambda: [tokenizer.encode(text) for text in texts],
        lambda: tokenizer.encode("\n".join(texts)),
        lambda: tokenizer.encode_with_offsets(texts[1]).ids,
        lambda: [list(row) for row in tokenizer.encode_batch(texts)],
        lambda: tokenizer.count(texts[2]),
        lambda: list(tokenizer.chunks(texts[3], max_tokens=64)),
        lambda: tokenizer.decode_batch([ids, ids[: len(ids) // 2]]),
        lambda: streamed(tokenizer, ids[:400]),
        lambda: template.render(turns).encode(tokenizer),
        lambda: template.render_for(tokenizer, turns[:3]).text,
        lambda: cached(turns[:2]),
        lambda: cached(turns),
    ]


def wrong_results(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    cache: PromptCache,
    texts: list[str],
    expected: list[object],
    threads: int,
) -> list[str]:
    """Run all calls of a round on each of several threads, in a random order.

    Return a message for each result that is not the expected one.
    """
    start, wrong = threading.Barrier(threads), []

    def work(seed: int) -> None:
        todo = list(enumerate(calls(tokenizer, template, cache, texts)))
        random.Random(seed).shuffle(todo)
        start.wait()
        wrong.extend(f"thread {seed}, call {i}" for i, call in todo if call() != expected[i])

    running = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return wrong


def main() -> int:
    rounds, threads = (int(given) for given in (sys.argv[1:] + ["20", "16"][len(sys.argv) - 1 :])[:2])
    shared = Tokenizer.default()
    alone = shared.with_added_tokens(["<|no text has this|>"])  # another core object, so that no cache is shared
    template = ChatTemplate(MARKED)
    cache = PromptCache()
    wrong: list[str] = []
    for number in range(rounds):
        texts = [text_of(random.Random(f"{number} {i}"), 1500) for i in range(4)]
        expected = [call() for call in calls(alone, ChatTemplate(MARKED), PromptCache(), texts)]
        found = wrong_results(shared, template, cache, texts, expected, threads)
        wrong += [f"round {number}, {each}" for each in found]
    print(f"{rounds} rounds of {threads} threads, {len(wrong)} wrong results", *wrong[:10], sep="\n")  # noqa: T201
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
