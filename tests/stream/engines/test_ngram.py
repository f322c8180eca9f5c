"""NgramEngine: its counts against a plain counter, its sampling, its rules for tags and end tokens, and its answers."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest
from case_tables import cases
from full_run import FULL
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines import NgramEngine, NgramTable
from tokenweir.stream.engines.ngram import draw, last_turn
from tokenweir.stream.engines.ngram_table import DIALOGUE_WEIGHT, ORDER, default_table
from tokenweir.stream.events.sampling import Sampling

CASES = cases(__file__)

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[3]
ONE_LOOP = pytest.mark.parametrize("anyio_backend", ["asyncio"])  # for what the ids say, which no event loop changes


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.fixture(scope="module")
def engine():
    return NgramEngine()


def prompt(tok, question, tail=""):
    return tok.encode(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{tail}")


async def answer(engine, prompt_ids, **sampling):
    async with aclosing(engine.generate(prompt_ids, Sampling(**sampling))) as generated:
        return [token_id async for ids in generated for token_id in ids]


def arrays(ids, topics, **others):
    """A table over ten ids, where 7 ends an answer and 8 and 9 open and close a thinking block."""
    return {
        "ids": np.array(ids),
        "topics": np.array(topics),
        "question_ids": np.array([1]),
        "question_topics": np.array([0]),
        "control_ids": np.array([7, 8, 9]),
        "end_ids": np.array([7]),
        "think_ids": np.array([8, 9]),
        "vocab_size": np.array(10),
    } | others


# -- the table ---------------------------------------------------------------------------------------------------------


@given(
    ids=st.lists(st.integers(0, 9), min_size=ORDER, max_size=60),
    dialogue=st.integers(0, 60),
    context=st.lists(st.integers(0, 9), max_size=ORDER - 1),
)
def test_counts_are_those_of_a_plain_counter(ids, dialogue, context):
    topics = [0 if position < dialogue else 1 for position in range(len(ids))]
    topics[-1] = 1  # the prose
    table = NgramTable(arrays(ids, topics))
    expected = Counter()
    for start in range(len(ids) - ORDER + 1):
        if ids[start : start + len(context)] == context:
            expected[ids[start + len(context)]] += [3.0, 1.0][topics[start]]
    counts = table.counts(context, np.array([3.0, 1.0]))
    assert {token_id: count for token_id, count in enumerate(counts.tolist()) if count} == expected


@given(ids=st.lists(st.integers(0, 9), min_size=ORDER, max_size=60), data=st.data())
def test_probabilities_sum_to_one_and_keep_everything_seen_possible(ids, data):
    table = NgramTable(arrays(ids, [0] * (len(ids) - 1) + [1]))
    context = data.draw(st.lists(st.integers(0, 9), max_size=ORDER - 1))
    weights = np.array([DIALOGUE_WEIGHT, 1.0])
    unigrams = table.counts((), weights)
    probabilities = table.probabilities(context, weights, unigrams)
    assert probabilities.sum() == pytest.approx(1)
    assert (probabilities[unigrams > 0] > 0).all()


def test_longer_contexts_count_more():
    table = NgramTable(arrays([1, 2, 3, 4, 0, 5, 3, 6, 0, 5, 3, 6, 0, 0, 0], [1] * 15))
    weights = np.array([8.0, 1.0])
    unigrams = table.counts((), weights)
    assert table.probabilities((3,), weights, unigrams).argmax() == 6
    assert table.probabilities((2, 3), weights, unigrams)[4] > table.probabilities((3,), weights, unigrams)[4]
    assert (table.probabilities((9, 9, 3), weights, unigrams) == table.probabilities((3,), weights, unigrams)).all()


def test_a_question_weighs_its_dialogue(tok):
    weights = default_table().topic_weights(prompt(tok, "what is a websocket"))
    plain = default_table().topic_weights([])
    assert (plain[:-1] == DIALOGUE_WEIGHT).all()
    assert weights[-1] == plain[-1] == 1
    questions = [
        line.removeprefix("U: ")
        for line in (ROOT / "scripts" / "texts" / "dialogues.txt").read_text("utf-8").splitlines()
        if line.startswith("U: ")
    ]
    assert questions[weights.argmax()] == "What is a websocket?"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocab_size": np.array(10_000)}, r"vocab_size 10000 is not in 1..8192"),
        ({"ids": np.array([1, 2, 3])}, "3 ids up to 3 and 4 topics"),
        ({"ids": np.array([1, 2, 3, 10])}, "4 ids up to 10 and 4 topics"),
        ({"think_ids": np.array([8])}, r"think_ids are \(8,\)"),
        ({"question_topics": np.array([5])}, "index 5 is out of bounds"),
    ],
)
def test_a_file_that_contradicts_itself(tmp_path, change, message):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays([1, 2, 3, 4], [0, 0, 0, 1]) | change)
    with pytest.raises(EngineError, match=f"a.npz: not an n-gram table: .*{message}"):
        NgramTable.from_file(path)


def test_a_file_that_is_no_table(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, **arrays([1, 2, 3, 4], [0, 0, 0, 1]))
    whole = path.read_bytes()
    assert NgramTable.from_file(str(path)).vocab_size == 10
    path.unlink()
    with pytest.raises(EngineError, match="a.npz: not an n-gram table: .*No such file"):
        NgramTable.from_file(path)
    for content in (b"", b"not a table", whole[:100], whole[:-30], whole[:60] + b"?" * 20 + whole[80:]):
        path.write_bytes(content)
        with pytest.raises(EngineError, match="a.npz: not an n-gram table"):
            NgramTable.from_file(path)
    np.savez(path, ids=np.array([1]))
    with pytest.raises(EngineError, match="a.npz: not an n-gram table: .*vocab_size"):
        NgramTable.from_file(path)


def test_the_committed_table_is_what_the_script_writes(tmp_path, data):
    corpora = data("corpora/war-and-peace.txt").parent
    out = tmp_path / "ngram.npz"
    subprocess.run([sys.executable, ROOT / "scripts" / "train_ngram", corpora, "--out", out], check=True)
    committed = ROOT / "stream" / "data" / "ngram.npz"
    assert committed.stat().st_size < 1_500_000
    with np.load(out) as new, np.load(committed) as old:
        assert set(new) == set(old)
        for name in new:
            np.testing.assert_array_equal(new[name], old[name])


# -- sampling ----------------------------------------------------------------------------------------------------------

PROBABILITIES = np.array([0.1, 0.4, 0.0, 0.3, 0.2])


def drawn(**sampling):
    rng = np.random.default_rng(0)
    counts = np.bincount([draw(PROBABILITIES, Sampling(**sampling), rng) for _ in range(4000)], minlength=5)
    return counts / counts.sum()


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({"temperature": 1.0}, [0.1, 0.4, 0, 0.3, 0.2]),
        ({"temperature": 0.5}, np.array([1, 16, 0, 9, 4]) / 30),
        ({"temperature": 0}, [0, 1, 0, 0, 0]),
        ({"temperature": 1.0, "top_k": 2}, [0, 4 / 7, 0, 3 / 7, 0]),
        ({"temperature": 1.0, "top_k": 99}, [0.1, 0.4, 0, 0.3, 0.2]),
        ({"temperature": 1.0, "top_p": 0.65}, [0, 4 / 7, 0, 3 / 7, 0]),
        ({"temperature": 1.0, "top_p": 0.75}, [0, 4 / 9, 0, 3 / 9, 2 / 9]),
        ({"temperature": 1.0, "top_p": 1e-9}, [0, 1, 0, 0, 0]),
        ({"temperature": 1e-4}, [0, 1, 0, 0, 0]),
    ],
)
def test_draws_follow_the_options(sampling, expected):
    shares = drawn(**sampling)
    np.testing.assert_allclose(shares, expected, atol=0.03)
    assert (shares[np.array(expected) == 0] == 0).all()


@ONE_LOOP
async def test_a_seed_repeats_the_answer(engine, tok):
    ids = prompt(tok, "Tell me something about rivers and tokens.")
    answers = [await answer(engine, ids, seed=seed) for seed in (1, 2, 1)]
    assert answers[0] == answers[2] != answers[1]


@ONE_LOOP
async def test_greedy_needs_no_seed(engine, tok):
    ids = prompt(tok, "What are you?")
    greedy = await answer(engine, ids, temperature=0, max_tokens=40)
    assert await answer(engine, ids, top_k=1, seed=3, max_tokens=40) == greedy
    assert await answer(engine, ids, top_p=1e-9, seed=4, max_tokens=40) == greedy


@ONE_LOOP
async def test_limits(engine, tok):
    ids = prompt(tok, "Thank you.")
    assert await answer(engine, ids, max_tokens=0) == []
    assert len(await answer(engine, ids, max_tokens=3, seed=0)) == 3
    short = await answer(engine, ids, seed=0)
    assert tok.is_eos(short[-1])
    longer = await answer(engine, ids, seed=0, min_tokens=len(short) + 20)
    assert len(longer) > len(short) + 20
    assert not any(map(tok.is_eos, longer[: len(short) + 20]))
    endless = await answer(engine, ids, seed=0, ignore_eos=True)
    assert len(endless) == 512
    assert not any(map(tok.is_eos, endless))
    third = endless[2]
    stopped = await answer(engine, ids, seed=0, ignore_eos=True, stop_token_ids=(third,))
    assert stopped == endless[: endless.index(third) + 1]
    held = await answer(engine, ids, seed=0, ignore_eos=True, stop_token_ids=(third,), min_tokens=100)
    assert len(held) >= 100


@pytest.mark.parametrize(("prompt_ids", "sampling", "message"), CASES["what_cannot_be_honoured_is_named"])
async def test_what_cannot_be_honoured_is_named(engine, prompt_ids, sampling, message):
    with pytest.raises(EngineError, match=message):
        await answer(engine, prompt_ids, **sampling)


def test_arguments_that_cannot_be():
    with pytest.raises(ValueError, match="delay=-1 is not a finite number of at least 0"):
        NgramEngine(delay=-1)


# -- answers -----------------------------------------------------------------------------------------------------------

QUESTIONS = ("Hello", "Why is the sky blue?", "谢谢你", "🦦", "SELECT * FROM t;", "", "a" * 2000)


@ONE_LOOP
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question[:10])
async def test_anything_gets_an_answer_of_the_right_form(engine, tok, question):
    opening, closing = tok.token_to_id("<think>"), tok.token_to_id("</think>")
    forms = Counter()
    seeds = 12 if FULL else 4
    for seed in range(seeds):
        ids = await answer(engine, prompt(tok, question), seed=seed)
        control = [token_id for token_id in ids if token_id >= 8180]
        end = [ids[-1]] if tok.is_eos(ids[-1]) else []
        assert len(ids) == 512 or end
        if ids[0] == opening:
            forms["thinking"] += 1
            assert control in ([opening, closing, *end], [opening])
        else:
            assert control == end
        forms["ended"] += bool(end)
        if closing in ids or ids[0] != opening:
            assert tok.decode(ids).split("</think>")[-1].strip()
    assert forms["ended"] >= seeds * 5 // 6
    assert forms["thinking"] >= seeds // 2


@ONE_LOOP
async def test_no_thinking_after_a_closed_block_and_an_end_to_an_open_one(engine, tok):
    opening, closing = tok.token_to_id("<think>"), tok.token_to_id("</think>")
    for seed in range(10 if FULL else 3):
        closed = await answer(engine, prompt(tok, "Hi", "<think>\n\n</think>\n\n"), seed=seed)
        assert not {opening, closing} & set(closed)
        opened = await answer(engine, prompt(tok, "Hi", "<think>\n"), seed=seed)
        assert opened.count(closing) == 1
        assert opening not in opened


def test_the_last_turn():
    assert list(last_turn([1, 2, 3], (7,))) == [1, 2, 3]
    assert list(last_turn([1, 2, 7, 3], (7,))) == [1, 2]
    assert list(last_turn([1, 7, 4, 5, 7, 3], (7,))) == [4, 5]


async def test_an_empty_prompt(engine):
    assert await answer(engine, [], seed=0, max_tokens=5)
