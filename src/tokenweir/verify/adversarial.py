"""Adversarial strings: seeded generators of the text that tokenizers get wrong.

Each kind is an alphabet of fragments which are drawn, repeated and joined at random, so that every class of character
meets every other at the boundaries where pre-tokenizers, normalizers and added tokens disagree. The kinds and the
fragments come from differences that were really found between tokenizer libraries. They are in
`adversarial.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random


def _words(text: str) -> list[str]:
    return text.split(" ")


def _fragments(parts: Sequence[list[str] | dict[str, str]]) -> Iterator[str]:
    for part in parts:
        match part:
            case {"characters": text}:
                yield from text
            case {"words": text}:
                yield from _words(text)
            case _:
                yield from part


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_PLAIN: tuple[str, ...] = tuple(_TABLE["plain"])

FRAGMENTS: dict[str, tuple[str, ...]] = {
    kind: (*(() if kind == "ASCII" else _PLAIN), *_fragments(parts)) for kind, parts in _TABLE["kinds"].items()
}


def _joined(rng: Random, fragments: Sequence[str]) -> str:
    count = rng.randint(1, 24)
    return "".join(rng.choice(fragments) * rng.choice((1, 1, 1, 1, 2, 3, 7)) for _ in range(count))


def _long_runs(rng: Random, fragments: Sequence[str]) -> str:
    """Return a few fragments repeated hundreds of times, on which a merge loop may be quadratic or a cache key too long."""
    motif = "".join(rng.choices(fragments, k=rng.choice((1, 1, 1, 2, 3))))
    run = motif * (rng.choice((15, 16, 17, 31, 64, 255, 300)) // len(motif) + 1)
    return rng.choice(("", " ", "a", "\n")) + run + rng.choice(("", " ", "b", "\n", rng.choice(fragments)))


def _code_points(rng: Random, _fragments: Sequence[str]) -> str:
    """Return random characters of all planes, half of them alone and half in runs of neighbouring code points."""
    characters: list[str] = []
    for _ in range(rng.randint(1, 16)):
        start, stop = rng.choice(((0, 0x3000), (0, 0x10000), (0, 0x10000), (0x10000, 0x20000), (0x20000, 0x110000)))
        code = rng.randrange(start, stop)
        neighbours = rng.choice((1, rng.randint(2, 6)))
        codes = (min(code + rng.randint(0, 40), 0x10FFFF) for _ in range(neighbours - 1))
        characters += [chr(c) for c in (code, *codes) if not 0xD800 <= c < 0xE000]
    return "".join(characters)


def _special_tokens(rng: Random, fragments: Sequence[str]) -> str:
    """Return special tokens whole, cut short, doubled, in the wrong case, and with text and marks right beside them."""
    others = (*_PLAIN, *_words("\u0301 \u200d _ < | > <| |> ' Hello \x00"))
    parts: list[str] = []
    for _ in range(rng.randint(1, 8)):
        token = rng.choice(fragments)
        cut = rng.randint(0, len(token))
        edits = (token, token, token[:cut], token[cut:], token.upper(), token[:cut] + rng.choice(others) + token[cut:])
        parts += rng.choice(edits), *rng.choices(others, k=rng.choice((0, 0, 1, 2)))
    return "".join(parts)


KINDS = (*FRAGMENTS, "vocabulary", "everything", "long runs", "code points", "special tokens")


def strings(
    count: int, *, seed: str, special_tokens: Sequence[str] = (), vocabulary: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Return at least `count` adversarial strings by kind, spread evenly over `KINDS`; equal arguments give equal strings.

    Args:
        count: The number of strings in all.
        seed: Any text; give each tokenizer its own, so that together they see more.
        special_tokens: The tokenizer's added tokens; without any, some well-known ones.
        vocabulary: The text of its tokens; kind `vocabulary` joins them where the merges would not.

    """
    special_tokens = special_tokens or ("<|endoftext|>", "<|im_start|>", "<s>", "</s>", "<think>")
    known = tuple(fragment for fragments in FRAGMENTS.values() for fragment in fragments)
    some = vocabulary[:: len(vocabulary) // len(known) + 1]
    generators: dict[str, tuple[Callable[[Random, Sequence[str]], str], Sequence[str]]] = {
        **{kind: (_joined, fragments) for kind, fragments in FRAGMENTS.items()},
        "vocabulary": (_joined, vocabulary or known),
        "everything": (_joined, (*known, *some, *special_tokens[:50])),
        "long runs": (_long_runs, known),
        "code points": (_code_points, ()),
        "special tokens": (_special_tokens, special_tokens),
    }
    each = -(-count // len(KINDS))
    made = {}
    for kind in KINDS:
        generate, fragments = generators[kind]
        rng = Random(f"{seed}/{kind}")
        made[kind] = [generate(rng, fragments) for _ in range(each)]
    return made


def every_code_point(every: int = 1) -> list[str]:
    """Return texts with 64 code points each, beside letters, digits, spaces and apostrophes: all planes that hold characters.

    Only one in `every` texts is returned.
    """
    starts = (*range(0, 0xD800, 64), *range(0xE000, 0x40000, 64), *range(0xE0000, 0xF0000, 64))
    return ["".join(f"{c}a {c}1{c}'{c}s" for c in map(chr, range(start, start + 64))) for start in starts[::every]]
