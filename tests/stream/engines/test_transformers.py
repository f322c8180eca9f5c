"""The streamer for transformers: by itself, and with a real, tiny model where transformers and PyTorch are installed."""

from __future__ import annotations

import threading
from contextlib import aclosing

import numpy as np
import pytest
from case_tables import cases

from tokenweir.encode.errors import EngineError, TokenIdError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines import transformers as module
from tokenweir.stream.engines.grammar_mask import GrammarMask
from tokenweir.stream.engines.transformers import ChatStreamer, TransformersEngine
from tokenweir.stream.events.deltas import Finish, FinishReason, ReasoningDelta, TextDelta
from tokenweir.stream.events.sampling import Sampling

CASES = cases(__file__)


@pytest.fixture
def streamed(think_tok):
    """A streamer over a list of deltas."""
    got = []
    return ChatStreamer(think_tok, got.extend, stop=["zz"], max_tokens=9), got


def test_the_first_value_is_the_prompt_and_opens_the_thinking(think_tok, streamed):
    streamer, got = streamed
    streamer.put(np.array([think_tok.encode("hi<eos><think>")]))
    for token_id in think_tok.encode("hm</think>é"):
        streamer.put(np.array([token_id]))
    streamer.end()
    assert [delta.text for delta in got if isinstance(delta, ReasoningDelta)] == ["h", "m"]
    assert [delta.text for delta in got if isinstance(delta, TextDelta)] == ["é"]
    assert got[-1].reason is FinishReason.STOP
    assert got[-1].usage.prompt_tokens == 4


def test_several_ids_at_once_and_the_end_by_a_stop(streamed):
    streamer, got = streamed
    streamer.put(np.array([[65]]))
    assert not streamer(None, None)
    streamer.put(np.array(list(b"abz")))
    assert got == [TextDelta("ab", [97, 98])]
    streamer.put(np.array(list(b"zc")))
    assert streamer(None, None)
    streamer.end()
    assert got[-1].stop_reason == "zz"
    assert [isinstance(delta, Finish) for delta in got] == [False, True]


def test_answers_after_each_other_share_nothing(streamed):
    streamer, got = streamed
    streamer.put(np.array([[65]]))
    streamer.put(np.array([122]))  # this generate() has failed
    for _ in range(2):
        streamer.put(np.array([[65]]))
        streamer.put(np.array([0xF0]))
        streamer.end()
    assert [delta.text for delta in got if isinstance(delta, TextDelta)] == ["\ufffd", "\ufffd"]
    assert [delta.usage.completion_tokens for delta in got if isinstance(delta, Finish)] == [1, 1]


def test_what_cannot_be_is_refused(think_tok, streamed):
    streamer, _ = streamed
    with pytest.raises(ValueError, match=r"^a streamer takes one answer; generate\(\) makes a batch of 2$"):
        streamer.put(np.array([[65], [66]]))
    with pytest.raises(TokenIdError, match="^token id 9999 is outside the vocabulary"):
        streamer.put(np.array([[9999]]))
    with pytest.raises(ValueError, match="stop string 0 of 1 is empty"):
        ChatStreamer(think_tok, print, stop=[""])


# -- with transformers -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    """A Llama with random weights over the embedded vocabulary."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    tok = Tokenizer.default()
    config = transformers.LlamaConfig(
        vocab_size=tok.vocab_size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
    )
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    return transformers.LlamaForCausalLM(config).eval()


def generate(model, streamer, **options):
    import torch

    prompt = torch.tensor([Tokenizer.default().encode("Hello")])
    ids = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), streamer=streamer, stopping_criteria=[streamer], **options
    )
    return ids[0, prompt.shape[1] :].tolist()


def test_the_deltas_are_what_the_model_has_generated(model):
    tok, got = Tokenizer.default(), []
    ids = generate(
        model, ChatStreamer(tok, got.extend, reasoning=None, max_tokens=24), max_new_tokens=24, do_sample=False
    )
    *deltas, finish = got
    assert "".join(delta.text for delta in deltas) == tok.decode(ids)
    assert [token_id for delta in got for token_id in delta.token_ids] == ids
    assert (finish.reason, finish.usage.completion_tokens) == (FinishReason.LENGTH, 24)


def test_a_stop_string_ends_generate(model):
    tok, got = Tokenizer.default(), []
    ids = generate(model, ChatStreamer(tok, got.extend, reasoning=None), max_new_tokens=24, do_sample=False)
    text = tok.decode(ids)
    stop = text[len(text) // 2 :][:3]
    got.clear()
    shorter = generate(
        model, ChatStreamer(tok, got.extend, reasoning=None, stop=[stop]), max_new_tokens=24, do_sample=False
    )
    assert len(shorter) < len(ids)
    assert "".join(delta.text for delta in got[:-1]) == text[: text.index(stop)]
    assert got[-1].stop_reason == stop


@pytest.mark.anyio
async def test_the_engine_gives_what_generate_gives(model):
    import torch

    prompt = Tokenizer.default().encode("Hello")
    ids = torch.tensor([prompt])
    own = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)
    async with aclosing(TransformersEngine(model).generate(prompt, Sampling(max_tokens=24, temperature=0))) as steps:
        got = [step async for step in steps]
    assert [token_id for step in got for token_id in step.ids] == own[0, len(prompt) :].tolist()
    assert got[-1].finish_reason == "length"


# -- the engine, with a model of a few lines ---------------------------------------------------------------------------


class Asked:
    """A model that gives one id and keeps what it was asked."""

    class generation_config:
        eos_token_id = (7, 8)

    class config:
        max_position_embeddings = 99

    def generate(self, streamer, stopping_criteria, **options):
        self.options = options
        streamer.put(np.array([[1, 2]]))
        streamer.put(np.array([7]))
        streamer.end()


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setattr(module, "prompt_tensor", lambda model, ids: {"input_ids": list(ids)})
    return Asked()


async def steps_of(model, **sampling):
    async with aclosing(TransformersEngine(model).generate([1, 2], Sampling(**sampling))) as steps:
        return [step async for step in steps]


@pytest.mark.anyio
async def test_generates_names_for_what_is_asked(asked):
    assert TransformersEngine(asked).context_size == 99
    (step,) = await steps_of(asked, max_tokens=5)
    assert (step.ids, step.finish_reason) == ([7], "stop")
    ends = {"eos_token_id": [7, 8], "pad_token_id": 7}
    assert asked.options == {"input_ids": [1, 2], "max_new_tokens": 5, "do_sample": False} | ends
    await steps_of(asked, temperature=0.5, min_p=0.1, repetition_penalty=1.2, logit_bias={4: 2}, stop_token_ids=(9,))
    assert asked.options == {
        "input_ids": [1, 2],
        "max_new_tokens": 512,
        "do_sample": True,
        "temperature": 0.5,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.1,
        "repetition_penalty": 1.2,
        "sequence_bias": {(4,): 2.0},
        "eos_token_id": [7, 8, 9],
        "pad_token_id": 7,
    }
    (step,) = await steps_of(asked, max_tokens=5, ignore_eos=True)
    assert asked.options["min_new_tokens"] == 5
    assert step.finish_reason is None


@pytest.mark.anyio
async def test_a_failure_of_the_model_and_a_seed(asked, monkeypatch):
    with pytest.raises(EngineError, match="PyTorch seeds the whole process, not a call; seed=3") as refused:
        await steps_of(asked, temperature=1.0, seed=3)
    assert (refused.value.kind, refused.value.option) == ("unsupported", "seed")

    def broken(model, prompt_ids):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(module, "prompt_tensor", broken)
    with pytest.raises(EngineError, match="^transformers failed: RuntimeError: out of memory$"):
        await steps_of(asked)


@pytest.mark.anyio
@pytest.mark.parametrize("failure", [SystemExit, KeyboardInterrupt, StopIteration])
async def test_a_model_that_ends_the_process_ends_its_own_answer_only(asked, failure):
    def generate(streamer, **options):
        streamer.put(np.array([[1, 2]]))
        streamer.put(np.array([5]))
        raise failure("out")

    asked.generate = generate
    with pytest.raises(EngineError, match=f"^transformers failed: {failure.__name__}: out$"):
        await steps_of(asked, max_tokens=5)


@pytest.mark.anyio
async def test_a_model_that_ignores_its_criteria_keeps_its_place_to_its_end_and_no_longer(asked):
    begun, go_on = threading.Event(), threading.Event()

    def generate(streamer, max_new_tokens, **options):
        streamer.put(np.array([[1, 2]]))
        for number in range(max_new_tokens):
            streamer.put(np.array([5]))
            if number == 1:
                begun.set()
                go_on.wait(30)

    asked.generate = generate
    engine = TransformersEngine(asked)
    async with aclosing(engine.generate([1, 2], Sampling(max_tokens=50))) as steps:
        await anext(steps)
    assert begun.wait(30)
    line = engine._engine
    assert len(line._line) == 1  # closing has not waited for it
    go_on.set()
    with line._moved:
        assert line._moved.wait_for(lambda: not line._line, 30)


# -- grammars ----------------------------------------------------------------------------------------------------------

SCHEMA = CASES["schema"]


@pytest.fixture
def grammars():
    """The embedded tokenizer, for llguidance."""
    pytest.importorskip("llguidance")
    from tokenweir.integrations.grammars import to_llguidance

    return to_llguidance(Tokenizer.default())


def masked(mask, ids, width):
    """The ids that keep their logits."""
    scores = mask(np.array([ids]), np.zeros((1, width), np.float32))
    return set(np.flatnonzero(np.isfinite(scores[0])).tolist())


def test_only_ids_that_continue_the_grammar_keep_their_logits(grammars):
    """With doubles of tensors in numpy."""
    tok = Tokenizer.default()
    mask = GrammarMask(grammars, Sampling(json_schema=SCHEMA))
    prompt, answer = tok.encode("Hello"), tok.encode('{"n": 12, "name": "b"}')
    ids, width = list(prompt), tok.vocab_size + 5
    for token_id in answer:
        allowed = masked(mask, ids, width)
        assert token_id in allowed
        assert tok.token_to_id("x") not in allowed
        assert all(allowed_id < tok.vocab_size for allowed_id in allowed)  # padding rows never
        assert not mask.ends(np.array([ids]), None)
        ids.append(token_id)
    assert mask.ends(np.array([ids]), None)  # nothing can follow, so no end token is needed
    assert masked(mask, ids, width) == set()


def test_where_more_could_follow_an_end_token_ends(grammars):
    tok = Tokenizer.default()
    mask = GrammarMask(grammars, Sampling(grammar="start: /a+/"))
    ids = tok.encode("Hello")
    masked(mask, ids, tok.vocab_size)
    ids += tok.encode("a")
    assert set(tok.eos_ids) < masked(mask, ids, tok.vocab_size)
    assert not mask.ends(np.array([ids]), None)
    ids.append(min(tok.eos_ids))
    assert mask.ends(np.array([ids]), None)


def test_a_grammar_in_lark(grammars):
    tok = Tokenizer.default()
    mask = GrammarMask(grammars, Sampling(grammar='start: "yes" | "no"'))
    first = {tok.token_bytes(i)[:1] for i in masked(mask, tok.encode("Hello"), tok.vocab_size)}
    assert first == {b"y", b"n"}


def nested(keys):
    schema = {}
    for key in keys.split():
        schema = {key: schema}
    return schema


def test_what_a_grammar_cannot_go_with_is_refused(grammars):
    schema = {"type": "object"}
    for sampling, option in (
        (Sampling(json_schema=schema, grammar="x"), "grammar"),
        (Sampling(json_schema=schema, ignore_eos=True), "ignore_eos"),
        (Sampling(json_schema=schema, min_tokens=3), "min_tokens"),
        (Sampling(json_schema={"type": "nothing"}), "json_schema"),
        (Sampling(json_schema=nested(120 * "items ")), None),
        (Sampling(json_schema=nested(130 * "items ")), "json_schema"),
        (Sampling(json_schema=nested(900 * "items ")), "json_schema"),
        (Sampling(json_schema=nested(5000 * "properties ")), "json_schema"),
        (Sampling(json_schema={"minimum": float("nan")}), "json_schema"),
        (Sampling(json_schema={"minLength": 10**5000}), "json_schema"),
        (Sampling(json_schema={"enum": ["\ud83d"]}), "json_schema"),
        (Sampling(json_schema={"enum": [{1}]}), "json_schema"),
        (Sampling(grammar="start: ("), "grammar"),
        (Sampling(grammar="\ud83d"), "grammar"),
    ):
        if option is None:
            GrammarMask(grammars, sampling)
            continue
        with pytest.raises(EngineError, match=f"^transformers cannot honour {option}: ") as caught:
            GrammarMask(grammars, sampling)
        assert (caught.value.kind, caught.value.option) == ("unsupported", option)


async def test_an_engine_writes_json_of_the_schema(model, grammars):
    import json

    tok = Tokenizer.default()
    engine = TransformersEngine(model, grammars=grammars)
    assert {"json_schema", "grammar"} <= engine.supports
    assert "json_schema" not in TransformersEngine(model).supports
    schema = {
        "type": "object",
        "properties": {"name": {"enum": ["a", "b"]}},
        "required": ["name"],
        "additionalProperties": False,
    }
    async with aclosing(engine.generate(tok.encode("Hello"), Sampling(max_tokens=60, json_schema=schema))) as steps:
        ids = [token_id async for step in steps for token_id in step.ids]
    assert json.loads(tok.decode(ids))["name"] in ("a", "b")


async def test_a_required_call_is_enforced(model, grammars):
    import tokenweir

    tool = {
        "type": "function",
        "function": {"name": "now", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}},
    }
    template = tokenweir.ChatTemplate("{{ messages[0].content }}{{ tools | tojson }}")
    async with tokenweir.chat(
        [{"role": "user", "content": "Hi"}],
        engine=TransformersEngine(model, grammars=grammars),
        tokenizer=Tokenizer.default(),
        template=template,
        tools=[tool],
        tool_choice="required",
        parallel_tool_calls=False,
        sampling=Sampling(max_tokens=200),
    ) as deltas:
        names = [delta.name async for delta in deltas if isinstance(delta, tokenweir.ToolCallDelta) and delta.name]
    assert names == ["now"]
