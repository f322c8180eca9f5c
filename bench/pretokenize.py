"""The cost of splitting: the tables of the papers that this project follows, with our numbers beside theirs.

    python bench/pretokenize.py [splitting] [share] [batches] [wordpiece] [allocations] [--write]

Peek2 (2026) replaces the regex of a pre-tokenizer by a scan: Figure 4 is splitting alone, Table 2 the share of encoding that
it takes, Figure 5 batches of 1,000 texts on all threads. BlockBPE (You, 2025) says that splitting is up to 75 % of a CPU
tokenizer's time. All with Llama 3's pattern, in a process each; the median of five passes over the text, CPU time but for
`batches`.

No library offers splitting alone. So it is timed as encoding by a vocabulary that holds every piece of the text whole:
splitting, one look-up a piece, and the list of ids. That is a little more than splitting, for all in the same way. `ours, split`
is the splitter by itself, which gives an array of offsets.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tiktoken
import tokenizers
from shared.processes import apart
from shared.report import DATA, ROOT, arguments, heading, machine, publish, several, table
from shared.texts import documents, of_kind

from tokenweir.encode.components.pre_tokenize import pre_tokenizer_core
from tokenweir.encode.spec import RankBPE, TokenizerSpec
from tokenweir.encode.tokenizer import Tokenizer

KINDS = ("English", "Chinese", "code", "math")
LLAMA3 = DATA / "tokenizers" / "llama-3.1" / "tokenizer.json"
BERT = DATA / "tokenizers" / "bert-base-uncased" / "tokenizer.json"
PAPER: dict[str, Any] = {
    "splitting": {"English": "2.48", "Chinese": "2.20"},
    "share": {"English": "11.1 to 6.9", "Chinese": "5.4 to 3.0", "code": "22.8 to 14.0", "math": "19.8 to 12.7"},
    "batches": "1.03 to 1.14",
}
WAYS = {"avx512": "avx512", "avx2": "avx2", "portable": "portable", "automaton": "none"}
"""Values of TOKENWEIR_SCANNER, by the names in the table."""

Work = Callable[[Sequence[str]], object]


# -- what is timed, each in a process of its own -----------------------------------------------------------------------


def _seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """The median of five passes, behind one that is not counted."""
    work()
    taken = []
    for _ in range(5):
        start = clock()
        work()
        taken.append(clock() - start)
    return statistics.median(taken)


def _each(way: Callable[[str], object]) -> Work:
    def run(texts: Sequence[str]) -> None:
        for text in texts:
            way(text)

    return run


def _ours_by_pieces(texts: Sequence[str]) -> Tokenizer:
    """Ours, by a vocabulary that has every piece."""
    spec = Tokenizer.from_file(LLAMA3).spec
    core = pre_tokenizer_core(spec.pre_tokenizer, takes_bytes=True).core
    pieces = dict.fromkeys([bytes([byte]) for byte in range(256)])
    pieces |= dict.fromkeys(piece for text in texts for piece in core.pieces(text))
    model = RankBPE({piece: rank for rank, piece in enumerate(pieces)})
    return Tokenizer(TokenizerSpec(model=model, pre_tokenizer=spec.pre_tokenizer, decoder=spec.decoder))


def _tiktoken(ranks: Mapping[bytes, int] | None = None) -> tiktoken.Encoding:
    """Theirs with cl100k's pattern, and its ranks unless others are given."""
    spec: Any = Tokenizer.from_file(DATA / "tokenizers" / "openai" / "cl100k_base.tiktoken").spec
    pattern, known = spec.pre_tokenizer.pattern.Regex, dict(spec.model.ranks if ranks is None else ranks)
    return tiktoken.Encoding("bench", pat_str=pattern, mergeable_ranks=known, special_tokens={})


def ways(library: str, texts: Sequence[str]) -> tuple[Work | None, Work, Work]:
    """Return a library's functions: splitting alone if it has that, splitting with a look-up a piece, and encoding."""
    if library == "tiktoken":
        made = _ours_by_pieces(texts).spec.model
        assert isinstance(made, RankBPE)
        return None, _each(_tiktoken(made.ranks).encode_ordinary), _each(_tiktoken().encode_ordinary)
    if library == "tokenizers":
        whole = tokenizers.Tokenizer.from_file(str(LLAMA3))
        words = dict.fromkeys(word for text in texts for word, _ in whole.pre_tokenizer.pre_tokenize_str(text))
        level = tokenizers.models.WordLevel({word: i for i, word in enumerate(["?", *words])}, "?")
        pieces = tokenizers.Tokenizer(level)
        pieces.pre_tokenizer = whole.pre_tokenizer
        return (
            None,
            _each(lambda text: pieces.encode_batch_fast([text], add_special_tokens=False)[0].ids),
            _each(lambda text: whole.encode_batch_fast([text], add_special_tokens=False)[0].ids),
        )
    tok = Tokenizer.from_file(LLAMA3)
    core = pre_tokenizer_core(tok.spec.pre_tokenizer, takes_bytes=True).core
    plain = {"add_special_tokens": False, "parse_special": False}
    return (
        _each(core.split),
        _each(partial(_ours_by_pieces(texts).encode, **plain)),
        _each(partial(tok.encode, **plain)),
    )


def times(library: str, way: str, kind: str, size: int) -> list[float | None]:
    """Return the seconds of each function of `ways`, for a text of a kind."""
    os.environ["TOKENWEIR_SCANNER"] = WAYS.get(way, "avx512")
    texts = documents(of_kind(kind, size)[0], 20_000)
    return [None if work is None else _seconds(partial(work, texts)) for work in ways(library, texts)]


def batch_time(library: str, way: str, kind: str, size: int) -> float:
    """Wall seconds for a batch of 1,000 texts on all cores."""
    os.environ["TOKENWEIR_SCANNER"] = WAYS.get(way, "avx512")
    text = of_kind(kind, size)[0]
    texts = documents(text, max(1, len(text) // 1000))[:1000]
    if library == "tiktoken":
        encode = _tiktoken().encode_ordinary_batch
        run: Callable[[], object] = partial(encode, texts, num_threads=os.cpu_count() or 1)
    elif library == "tokenizers":
        whole = tokenizers.Tokenizer.from_file(str(LLAMA3))
        run = partial(whole.encode_batch_fast, texts, add_special_tokens=False)
    else:
        run = partial(Tokenizer.from_file(LLAMA3).encode_batch, texts, add_special_tokens=False)
    return _seconds(run, time.perf_counter)


def wordpiece_times(size: int) -> dict[str, float]:
    """WordPiece by a trie (ours), by a look-up of every prefix in a hash table (tokenizers), and so in Python."""
    words = "".join(c if c.isalnum() else " " for c in of_kind("English", size)[0].lower()).split()
    text = " ".join(words)
    theirs = tokenizers.Tokenizer.from_file(str(BERT))
    vocabulary = theirs.get_vocab()
    ours = Tokenizer.from_file(BERT)

    def python() -> list[int]:
        ids = []
        for word in words:
            begin, found = 0, []
            while begin < len(word):
                for end in range(len(word), begin, -1):
                    token = vocabulary.get(("##" if begin else "") + word[begin:end])
                    if token is not None:
                        found.append(token)
                        begin = end
                        break
                else:
                    found = [vocabulary["[UNK]"]]
                    break
            ids += found
        return ids

    hashed = partial(theirs.encode_batch_fast, [text], add_special_tokens=False)
    if ours.encode(text, add_special_tokens=False) != list(hashed()[0].ids):
        raise RuntimeError("the libraries' ids differ")
    return {
        "ours": _seconds(lambda: ours.encode(text, add_special_tokens=False)),
        "tokenizers": _seconds(hashed),
        "Python": _seconds(python),
    }


_COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static _Atomic long n;
long allocations(void) { return n; }
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t size) { n++; return __libc_malloc(size); }
void *calloc(size_t a, size_t b) { n++; return __libc_calloc(a, b); }
void *realloc(void *p, size_t size) { n++; return __libc_realloc(p, size); }
"""

_COUNTED = """
import ctypes, json, sys
sys.path.insert(0, "bench")
from shared.texts import of_kind
from shared.peers import LIBRARIES
from pathlib import Path
count = ctypes.CDLL(None).allocations
count.restype = ctypes.c_long
made = LIBRARIES[sys.argv[1]](Path(sys.argv[2]), 1)
texts = {"Hi": "Hi", "237 bytes": of_kind("English")[0][5000:5237], "20 KB": of_kind("English")[0][:20000]}
found = {}
for name, text in texts.items():
    for way, encode in (("list", made.list), ("array", made.array)):
        for _ in range(3):
            encode(text)
        before = count()
        for _ in range(100):
            encode(text)
        found[f"{name}, {way}"] = (count() - before) / 100
print(json.dumps(found))
"""


def allocations_of(library: str) -> dict[str, float]:
    """Calls of malloc and its kin for one warm encode; small Python objects come from Python's own pool."""
    with tempfile.TemporaryDirectory() as folder:
        counter = Path(folder) / "counter.so"
        compiler = ["gcc", "-O1", "-shared", "-fPIC", "-x", "c", "-o", str(counter), "-"]
        subprocess.run(compiler, input=_COUNTER, text=True, check=True)
        ran = subprocess.run(
            [sys.executable, "-c", _COUNTED, library, str(LLAMA3)],
            cwd=ROOT,
            env=os.environ | {"LD_PRELOAD": str(counter), "RAYON_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    found: dict[str, float] = json.loads(ran.stdout)
    return found


# -- the tables --------------------------------------------------------------------------------------------------------


def splitting(size: int) -> str:
    """MB/s of splitting with a look-up a piece; our splitter by itself, with each instruction set; over the regex of tiktoken."""
    rows = []
    for kind in KINDS:
        megabytes = len(of_kind(kind, size)[0].encode()) / 1e6
        ours = {way: apart(times, "tokenweir", way, kind, size) for way in WAYS}
        theirs = {library: apart(times, library, "", kind, size)[1] for library in ("tiktoken", "tokenizers")}
        with_look_up = ours["avx512"][1]
        rows.append(
            (
                kind,
                *(f"{megabytes / taken:.0f}" for taken in theirs.values()),
                f"{megabytes / with_look_up:.0f}",
                f"{min(theirs.values()) / with_look_up:.1f}",
                PAPER["splitting"].get(kind, ""),
                *(f"{megabytes / taken[0]:.0f}" for taken in ours.values()),
            )
        )
    splits = (f"split, {way}" for way in WAYS)
    return table(("", "tiktoken", "tokenizers", "ours", "ours / best", "Peek2 / regex (paper)", *splits), rows)


def share(size: int) -> str:
    """Splitting, with a look-up a piece, in % of encoding to a list; ours also the splitter by itself."""
    rows = []
    for kind in KINDS:
        cells = [kind]
        for library in ("tiktoken", "tokenizers"):
            _, pieces, whole = apart(times, library, "", kind, size)
            cells.append(f"{100 * pieces / whole:.0f}")
        for way in ("automaton", "avx512"):
            split, pieces, whole = apart(times, "tokenweir", way, kind, size)
            cells += [f"{100 * pieces / whole:.0f}", f"{100 * split / whole:.0f}"]
        rows.append((*cells, PAPER["share"].get(kind, "")))
    names = (f"ours, {way}{alone}" for way in ("automaton", "avx512") for alone in ("", ", split"))
    return table(("", "tiktoken", "tokenizers", *names, "Peek2 (paper)"), rows)


def batches(size: int) -> str:
    """1,000 texts on all cores, MB/s by the clock; what the scanner gives over the automaton, and the paper over its regex."""
    rows = []
    for kind in KINDS:
        megabytes = len(of_kind(kind, size)[0].encode()) / 1e6
        theirs = [apart(batch_time, library, "", kind, size) for library in ("tiktoken", "tokenizers")]
        automaton, scanner = (apart(batch_time, "tokenweir", way, kind, size) for way in ("automaton", "avx512"))
        cells = (f"{megabytes / taken:.0f}" for taken in (*theirs, automaton, scanner))
        rows.append((kind, *cells, f"{automaton / scanner:.2f}", str(PAPER["batches"])))
    heads = ("", "tiktoken", "tokenizers", "ours, automaton", "ours, scanner", "scanner / automaton", "Peek2 (paper)")
    return table(heads, rows)


def wordpiece(size: int) -> str:
    """WordPiece, BERT's vocabulary, English words: a trie beside look-ups of every prefix. (C-Kernel claims 27 to 156 times over
    a hash table and 20 to 104 over Python, for its own trie against its own table.)
    """
    taken = apart(wordpiece_times, size)
    rows = [(name, f"{value * 1e3:.1f}", f"{value / taken['ours']:.1f}") for name, value in taken.items()]
    return table(("", "ms", "over ours"), rows)


def allocations(_size: int) -> str:
    """Calls of malloc, calloc and realloc for one warm encode, Llama 3; Python's own pool of small objects is not counted."""
    counts = {library: allocations_of(library) for library in ("tokenweir", "gigatoken", "fastokens")}
    columns = list(counts["tokenweir"])
    return table(("", *columns), [(name, *(f"{row[c]:.1f}" for c in columns)) for name, row in counts.items()])


SECTIONS = {one.__name__: one for one in (splitting, share, batches, wordpiece, allocations)}


def main() -> None:
    options = arguments(__doc__, ("sections", several(SECTIONS)), size=(1_000_000, "bytes of a text (1,000,000)"))
    for name in options.sections:
        result = f"{heading(SECTIONS[name])}\n\n{SECTIONS[name](options.size)}\n\n{machine()}"
        publish(f"pretokenize-{name}", result, options.write)


if __name__ == "__main__":
    main()
