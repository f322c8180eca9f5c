#!/usr/bin/env python3
"""Write the automata of the pattern families that have a scanner, for the harness scanners.cpp.

    tests/fuzz/automata.py FILE

Each automaton is its family's name, its transitions, class_index and class_pages, and the kinds of its classes: arrays, each
after its length as a 64-bit number. Needs the package.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from tokenweir.encode.components.pre_tokenize import GPT2_PATTERN
from tokenweir.encode.formats.gguf.pre import PRE
from tokenweir.encode.formats.known_rank_files import PATTERNS
from tokenweir.encode.pattern import compile_pattern
from tokenweir.encode.pattern.families import recognized

LLAMA3, QWEN35, TEKKEN = (PRE[name].stages[0].pattern.Regex for name in ("llama-bpe", "qwen35", "tekken"))
PATTERNS = (
    (GPT2_PATTERN, "oniguruma"),
    (PATTERNS["cl100k"], "fancy-regex"),
    (LLAMA3, "oniguruma"),
    (PATTERNS["qwen"], "oniguruma"),
    (QWEN35, "oniguruma"),
    (PATTERNS["o200k"], "fancy-regex"),
    (TEKKEN, "fancy-regex"),
)


def array(values: object, dtype: DTypeLike) -> bytes:
    content = np.asarray(values, dtype).ravel()
    return len(content).to_bytes(8, "little") + content.tobytes()


def main() -> None:
    with Path(sys.argv[1]).open("wb") as file:
        for pattern, dialect in PATTERNS:
            automaton = compile_pattern(pattern, dialect)
            family = recognized(automaton)
            if family is None:
                raise ValueError(f"no family of scanners has the pattern {pattern!r}")
            file.write(array(np.frombuffer(family.name.encode(), np.uint8), np.uint8))
            file.write(array(automaton.transitions, np.uint16))
            file.write(array(automaton.class_index, np.uint16))
            file.write(array(automaton.class_pages, np.uint8))
            file.write(array(family.kinds, np.uint8))


if __name__ == "__main__":
    main()
