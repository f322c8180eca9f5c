"""Is every id, offset and decoded character the reference library's? Exits with 1 if one is not.

    python bench/parity.py [--quick] [--fuzz 100000] [--seed TEXT] [--only llama-3.1] [--write]

Each tokenizer encodes every text in ../shared/data/corpora, line by line and whole, the texts of llama.cpp's vectors,
every code point between others, and adversarial strings; it decodes their ids, and random ids. Compared with the
library whose format the file is in: the ids with special tokens added and not, the ids of plain text (no added token
matched), the offsets, and the text decoded with special tokens and without, as far as the library says. A GGUF file is
compared with the file it was made from. Compared with itself: the other ways to encode, and the streaming decoder in
both modes of byte fallback.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context

from shared.report import DATA, ROOT, arguments, machine, table, write_between

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.verify.comparison import Row

sys.path.append(str(ROOT / "tests" / "oracles"))
from real_parity import TOKENIZERS, check


def details(results: dict[str, list[Row]]) -> str:
    """Format a table of differences and texts, for each tokenizer and kind."""
    cells = [(name, *(f"{len(row.differences)} in {row.strings:,}" for row in rows)) for name, rows in results.items()]
    return table(("tokenizer", *(row.kind for row in next(iter(results.values())))), cells)


GROUPS = {
    "ASCII": ("ASCII", "punctuation", "contractions"),
    "multilingual": ("scripts", "case", "digits", "normalization"),
    "emoji, byte fallback": ("emoji", "byte fallback", "code points", "controls"),
    "white space": ("white space", "SentencePiece"),
    "words": ("vocabulary", "BERT"),
    "code": ("code",),
    "mixed": ("everything", "long runs", "special tokens", "vectors", "code points by 64"),
    "corpora": ("corpus lines", "corpora whole", "beginnings of corpora"),
    "random ids": ("random ids",),
}
"""The groups of kinds in the summary."""


def summary(results: dict[str, list[Row]]) -> str:
    """One line a reference library: how many files, strings of each group, and differences."""
    lines = []
    for library in dict.fromkeys(rows[0].library for rows in results.values()):
        files = [rows for rows in results.values() if rows[0].library == library]
        counts: Counter[str] = Counter()  # a quick run has no whole corpora
        for row in chain(*files):
            counts[row.kind] += row.strings
        numbers = [sum(counts[kind] for kind in kinds) for kinds in GROUPS.values()]
        differences = sum(len(row.differences) for row in chain(*files))
        lines.append((library, str(len(files)), *(f"{number:,}" for number in (*numbers, differences))))
    return table(("reference", "files", *GROUPS, "differences"), lines)


def sentence(results: dict[str, list[Row]], refused: int) -> str:
    """Return the first of the README's proofs."""
    rows = [row for of_file in results.values() for row in of_file]
    strings = sum(row.strings for row in rows if row.kind != "random ids")
    ids = sum(row.strings for row in rows if row.kind == "random ids")
    differences = sum(len(row.differences) for row in rows)
    return (
        f"1. {len(results)} tokenizer files of every family and format, {strings:,} strings and {ids:,} lists of random ids: "
        f"{differences} differences to the reference libraries, {refused} files refused. `scripts/bench parity`"
    )


def main() -> int:
    options = arguments(
        __doc__,
        fuzz=(100_000, "adversarial strings a tokenizer, and a fifth of that random ids (100000)"),
        quick=(False, "every 20th corpus line and a tenth of the strings"),
        seed=("", "other adversarial strings and random ids"),
        only=("", "only tokenizers whose name contains this"),
        jobs=(os.cpu_count(), "processes (one a core)"),
    )
    names = [name for name in TOKENIZERS if options.only in name]
    if not names:
        raise SystemExit(f"no tokenizer contains {options.only!r}; there are {', '.join(TOKENIZERS)}")

    os.environ["RAYON_NUM_THREADS"] = "1"  # a process a tokenizer already uses every core
    fuzz, every = (options.fuzz // 10, 20) if options.quick else (options.fuzz, 1)
    results: dict[str, list[Row]] = {}
    refused: dict[str, UnsupportedTokenizerError] = {}
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        futures = {name: pool.submit(check, DATA, name, fuzz=fuzz, every=every, seed=options.seed) for name in names}
        for name, future in futures.items():
            try:
                results[name] = future.result()
            except UnsupportedTokenizerError as error:
                refused[name] = error
            found = sum(len(row.differences) for row in results.get(name, []))
            print(f"{name}: {'refused' if name in refused else f'{found} differences'}", file=sys.stderr)

    refusals = "\n".join([f"Refused: {len(refused)} of {len(names)}.", *(f"- {e}" for e in refused.values())])
    print(machine(), details(results), summary(results), refusals, sep="\n\n")
    differences = [(name, row, d) for name, rows in results.items() for row in rows for d in row.differences]
    for name, row, difference in differences[:40]:
        print(f"\n{name}, {row.kind}: {difference}")
    if options.write:
        write_between(ROOT / "README.md", "parity", sentence(results, len(refused)))
        result = f"{summary(results)}\n\n{refusals}\n\n{machine()}"
        write_between(ROOT / "bench" / "RESULTS.md", "parity-summary", result)
    return 1 if differences or refused else 0


if __name__ == "__main__":
    sys.exit(main())
