"""ReplayEngine: the recordings that come with the package, the order of play, the times, and cancelling."""

from __future__ import annotations

import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import anyio
import msgspec
import pytest
from case_tables import cases
from trio.testing import MockClock

from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines import Recording, ReplayEngine
from tokenweir.stream.engines.replay import default_recordings
from tokenweir.stream.events.sampling import Sampling

CASES = cases(__file__)

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[3]
RECORDINGS = default_recordings()
SHORT = (
    Recording(name="one", prompt="", ids=(1, 2, 3), waits_ms=(500, 20, 40)),
    Recording(name="two", prompt="", ids=(4,), waits_ms=(0,)),
)


async def play(engine, **sampling):
    async with aclosing(engine.generate([], Sampling(**sampling))) as generated:
        return [token_id async for ids in generated for token_id in ids]


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


# -- the recordings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_a_recording_decodes_to_its_text(tok, recording):
    prompt, answer = (
        (ROOT / "scripts" / "texts" / "recordings" / f"{recording.name}.md").read_text("utf-8").split("\n\n", 1)
    )
    assert recording.prompt == prompt
    assert tok.decode(recording.ids, skip_special_tokens=False) == answer.rstrip("\n") + "<|im_end|>"
    assert recording.ids[0] == tok.token_to_id("<think>")
    assert recording.ids.count(tok.token_to_id("</think>")) == 1
    assert tok.is_eos(recording.ids[-1])


def test_the_first_recording_says_what_it_is(tok):
    answer = tok.decode(RECORDINGS[0].ids).split("</think>")[1]
    assert answer.lstrip().startswith("**This is a recording, not a model.**")


def test_the_script_writes_what_is_committed(tmp_path):
    subprocess.run([sys.executable, ROOT / "scripts" / "record_demo", "--out", tmp_path], check=True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        file.name: file.read_bytes() for file in (ROOT / "stream" / "data" / "recordings").iterdir()
    }


# -- playing -----------------------------------------------------------------------------------------------------------


async def test_recordings_take_turns():
    engine = ReplayEngine(SHORT, speed=None)
    assert [await play(engine) for _ in range(3)] == [[1, 2, 3], [4], [1, 2, 3]]


async def test_one_by_name():
    engine = ReplayEngine(name="3-code", speed=0)
    ids = await play(engine)
    assert ids == list(next(recording.ids for recording in RECORDINGS if recording.name == "3-code"))
    assert await play(engine) == ids


async def test_overlapping_streams_get_one_recording_each():
    engine = ReplayEngine(SHORT, speed=None)
    first, second = engine.generate([], Sampling()), engine.generate([], Sampling())
    async with aclosing(first), aclosing(second):
        assert (await anext(first), await anext(second), await anext(first)) == ([1], [4], [2])


@pytest.mark.parametrize(("max_tokens", "expected"), [(0, []), (2, [1, 2]), (3, [1, 2, 3]), (99, [1, 2, 3])])
async def test_max_tokens(max_tokens, expected):
    assert await play(ReplayEngine(SHORT, speed=None), max_tokens=max_tokens) == expected


def virtual_time(main, *args):
    """Run under trio with a clock that jumps to the next deadline: times are exact."""
    return anyio.run(main, *args, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})


@pytest.mark.parametrize(
    ("speed", "times"), [(1, [0.5, 0.52, 0.56]), (2, [0.25, 0.26, 0.28]), (None, [0, 0, 0]), (0, [0, 0, 0])]
)
def test_every_id_comes_at_its_time(speed, times):
    async def main():
        start = anyio.current_time()
        async with aclosing(ReplayEngine(SHORT, speed=speed).generate([], Sampling())) as generated:
            return [anyio.current_time() - start async for _ in generated]

    assert virtual_time(main) == pytest.approx(times)


@pytest.mark.parametrize(
    ("slow", "most", "times", "given"),
    CASES["a_slow_reader_does_not_shift_the_times_and_gets_all_that_is_due"],
    ids=["one is due", "two are due", "two are due and one is wanted"],
)
def test_a_slow_reader_does_not_shift_the_times_and_gets_all_that_is_due(slow, most, times, given):
    async def main():
        start = anyio.current_time()
        async with aclosing(ReplayEngine(SHORT).generate([], Sampling(max_tokens=most))) as generated:
            seen = []
            async for ids in generated:
                seen.append((anyio.current_time() - start, ids))
                if ids == [1]:
                    await anyio.sleep(slow)
        return seen

    seen = virtual_time(main)
    assert [time for time, _ in seen] == pytest.approx(times)
    assert [ids for _, ids in seen] == given


# -- refusals ----------------------------------------------------------------------------------------------------------


async def test_several_answers_in_one_call_are_refused():
    with pytest.raises(EngineError, match="n=2 cannot be honoured"):
        await play(ReplayEngine(SHORT, speed=None), n=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recordings": []}, "there is no recording to play"),
        ({"recordings": SHORT, "name": "three"}, "no recording is named 'three'; there are: one, two"),
        ({"speed": -1.0}, "speed=-1.0 is not a finite number of at least 0"),
        ({"speed": float("nan")}, "speed=nan"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        ReplayEngine(**arguments)


def test_a_recording_is_read_from_a_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(msgspec.json.encode(SHORT[0]))
    assert Recording.from_file(path) == SHORT[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "a.json: not a recording: Input data was truncated"),
        (b'{"name":"a","prompt":"","ids":["1"],"waits_ms":[0]}', r"Expected `int`, got `str` - at `\$.ids\[0\]`"),
        (b'{"name":"a","prompt":"","ids":[1],"waits_ms":[]}', "recording 'a' has 1 ids and 0 waits_ms"),
        (b'{"name":"a","prompt":"","ids":[1],"waits_ms":[-1]}', "recording 'a' waits -1.0 ms before id 0"),
        (b'{"name":"a","prompt":"","ids":[],"waits_ms":[],"speed":1}', "unknown field `speed`"),
    ],
)
def test_a_file_that_is_no_recording(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(EngineError, match=message):
        Recording.from_file(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(EngineError, match="b.json: not a recording"):
        Recording.from_file(tmp_path / "b.json")
