"""Many texts at once, from several threads and processes, and a copy of a tokenizer: the ids are those of one text alone."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from in_threads import in_threads

from tokenweir.encode.errors import TextError

PARTS = ["a", "b", "ab", "abc", " ", "  ", "<s>", "</s>", "<m>", "<", "é", "e", "\u0301", "日本", "\n"]


@pytest.fixture(scope="module")
def many():
    return ["".join(PARTS[(i * k + i) % len(PARTS)] for k in range(i % 60)) for i in range(400)] + [
        "ab <m> é日本\n" * 9000
    ]


@pytest.mark.parametrize("threads", [None, 1, 2, 7, 1000])
def test_a_batch_on_any_number_of_threads(tok, many, threads):
    ragged = tok.encode_batch(many, threads=threads)
    assert (ragged.ids.dtype, ragged.offsets.dtype) == (np.int32, np.int64)
    assert [ids.tolist() for ids in ragged] == [tok.encode(text) for text in many]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_texts_that_are_converted_while_others_are_encoded(tok, threads):
    """Each kind of str in memory, and bytes between them; in enough runs that every thread begins before the last is converted."""
    bodies = ["plain text ", "naïve café ", "日本語 ab ", "\U0001f600 é日本 "]
    texts = [f"{i} {bodies[i % 4] * (i * 37 % 900)}" for i in range(240)]
    expected = [tok.encode(text) for text in texts]
    given = [text.encode() if i % 7 == 0 else text for i, text in enumerate(texts)]
    for _ in range(2):
        assert [ids.tolist() for ids in tok.encode_batch(given, threads=threads)] == expected


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("wrong", [0, 77, 239])
def test_a_text_without_a_utf8_form_ends_a_batch_that_has_begun(tok, threads, wrong):
    texts = [f"{i} {'日本語 ab ' * 500}" for i in range(240)]
    broken = [*texts[:wrong], texts[wrong] + "\udc80", *texts[wrong + 1 :]]
    with pytest.raises(TextError, match=rf"^texts\[{wrong}\] has a lone surrogate U\+DC80 at character"):
        tok.encode_batch(broken, threads=threads)
    assert tok.encode_batch(texts, threads=threads)[wrong].tolist() == tok.encode(texts[wrong])


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_with_guarded_characters(tok, many, threads):
    guards = [range(i % 3, len(text), 1 + i % 5) for i, text in enumerate(many)]
    ragged = tok.encode_batch(many, guarded=guards, threads=threads)
    for ids, text, guarded in zip(ragged, many, guards, strict=True):
        assert ids.tolist() == tok.encode(text, guarded=guarded)
    plain = tok.encode_batch(many).ids.tolist()
    assert ragged.ids.tolist() != plain
    assert tok.encode_batch(many, guarded=[()] * len(many)).ids.tolist() == plain


def test_batches_of_nothing(tok):
    assert len(tok.encode_batch([])) == 0
    assert [ids.tolist() for ids in tok.encode_batch(["", ""])] == [[], []]
    assert tok.encode_batch(iter(["a", "b"])).ids.tolist() == [97, 98]


def test_batches_that_make_no_sense(tok):
    with pytest.raises(TypeError, match=r"^texts must be several texts, not one str: write encode_batch\(\[text\]\)$"):
        tok.encode_batch("ab")
    with pytest.raises(ValueError, match=r"^threads must be at least 1, not 0$"):
        tok.encode_batch(["a"], threads=0)
    with pytest.raises(ValueError, match=r"^guarded has 1 entries for 2 texts$"):
        tok.encode_batch(["a", "b"], guarded=[(0,)])
    with pytest.raises(ValueError, match=r"^a guarded offset is past the end of the text$"):
        tok.encode_batch(["a", "b"], guarded=[(0,), (1,)])


def test_from_several_threads_at_once(tok, many):
    expected = [tok.encode(text) for text in many]
    results = {}

    def work(number):
        results[number] = [tok.encode(text) for text in many], [ids.tolist() for ids in tok.encode_batch(many)]

    in_threads(work, range(6))
    assert all(results[number] == (expected, expected) for number in range(6))


AFTER_FORK = """
import os, threading
from tokenweir.encode.tokenizer import Tokenizer

tok = Tokenizer.default()
text = "after the fork " * 5000
long = text * 20
expected, expected_long = tok.encode(text), tok.encode_array(long).tolist()
stop = threading.Event()
busy = threading.Thread(target=lambda: [tok.encode_batch([text] * 4) for _ in iter(stop.is_set, True)])
busy.start()
for _ in range(5):
    if not (child := os.fork()):
        fine = tok.encode(text) == expected and tok.encode_batch([text] * 4, threads=3)[3].tolist() == expected
        fine = fine and tok.encode_array(long).tolist() == expected_long
        os._exit(0 if fine and tok.decode(expected) == text else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
busy.join()
"""


@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="a lock in its allocator does not survive a fork"
)
def test_after_a_fork_in_the_middle_of_a_batch():
    subprocess.run([sys.executable, "-W", "ignore", "-c", AFTER_FORK], check=True, timeout=60)


RESIDENT = """
from tokenweir.encode.tokenizer import Tokenizer
tok = Tokenizer.default()
tok.count("a")

def used():  # without what the system may take back
    sizes = dict(line.split(":") for line in open("/proc/self/smaps_rollup").read().splitlines()[1:])
    return int(sizes["Rss"].split()[0]) - int(sizes["LazyFree"].split()[0])

before = used()
tok.count("a" * (16 << 20))
print(used() - before >> 10)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="no /proc")
def test_a_long_text_leaves_no_memory_behind():
    done = subprocess.run([sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64  # MiB; merging it takes more than 300


def test_pickled(tok, many):
    copy = pickle.loads(pickle.dumps(tok))
    assert [copy.encode(text) for text in many] == [tok.encode(text) for text in many]
    assert (copy.spec, copy.added_tokens, copy.eos_ids) == (tok.spec, tok.added_tokens, tok.eos_ids)


def test_many_rows_are_decoded_as_one_is(tok, many):
    rows = tok.encode_batch(many)
    assert tok.decode_batch(rows) == [tok.decode(row) for row in rows]
    assert tok.decode_batch([[1], (), np.array([2, 3])], skip_special_tokens=False) == [
        tok.decode(ids, skip_special_tokens=False) for ids in ([1], [], [2, 3])
    ]
