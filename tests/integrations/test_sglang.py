"""SGLang's plug-in: its detokenizer beside SGLang's own where that is installed."""

from __future__ import annotations

import ast
import os
from array import array
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from tokenweir import patch_transformers
from tokenweir.integrations import sglang

transformers = pytest.importorskip("transformers")

TEXTS = ["Hello, world. 日本語 한국어 \U0001f9ca\U0001f469‍\U0001f469", "a\n\nb  c", "\U0001f9ca" * 20, "STOP here"]


class StandIn:
    """The members of `DetokenizerManager` that the plug-in uses."""

    def trim_matched_stop(self, output, finished_reason, no_stop_trim):
        matched = (finished_reason or {}).get("matched")
        if matched is None or no_stop_trim:
            return output
        if isinstance(matched, int):
            return output[:-1] if isinstance(output, list) else output
        return output.split(matched)[0] if isinstance(output, str) else output

    def _clamp_decode_ids(self, ids, vocab_size):
        return [i if 0 <= i < vocab_size else 0 for i in ids]

    def _decode_batch_token_id_output(self, recv_obj):
        raise AssertionError("the original is not asked")


def real_manager():
    """SGLang's own class, or None."""
    try:
        return import_module("sglang.srt.managers.detokenizer_manager").DetokenizerManager
    except ImportError:
        return None


@pytest.fixture(scope="module")
def qwen(data):
    with patch_transformers():
        return transformers.AutoTokenizer.from_pretrained(data("tokenizers/qwen3"))


def manager(tokenizer):
    kind = real_manager() or StandIn
    made = object.__new__(kind)
    made.tokenizer, made.vocab_size, made.decode_status = tokenizer, len(tokenizer), {}
    made.disable_tokenizer_batch_decode = made.is_tool_call_parser_gpt_oss = False
    made.tool_close_token_ids = frozenset()
    return made


def steps(tokenizer, text, prompt="Say: ", size=1, reason=None, extra=()):
    """The batches of one request: `size` new ids each, after some of the prompt's."""
    before = tokenizer.encode(prompt)[-5:]
    ids = [*tokenizer.encode(text), *extra]
    parts = [ids[i : i + size] for i in range(0, len(ids), size)]
    for place, part in enumerate(parts):
        yield SimpleNamespace(
            rids=["r"],
            decoded_texts=[""],
            decode_ids=[array("q", part if place else before + part)],
            read_offsets=[len(before)],
            finished_reasons=[(reason or {"type": "length"}) if place == len(parts) - 1 else None],
            skip_special_tokens=[True],
            spaces_between_special_tokens=[True],
            no_stop_trim=[False],
        )


def decoded(there, batches):
    return [sglang.decode_batch(type(there)._decode_batch_token_id_output, there, batch)[0] for batch in batches]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_joined_text_is_the_text(qwen, text, size):
    parts = decoded(there := manager(qwen), steps(qwen, text, size=size))
    assert "".join(parts) == text
    assert "�" not in "".join(parts)
    assert not there.decode_status


def test_stops_are_cut_off(qwen):
    stop = {"type": "stop", "matched": "STOP"}
    assert "".join(decoded(manager(qwen), steps(qwen, "one STOP", reason=stop, size=100))) == "one "
    end = qwen.eos_token_id
    kept = {"type": "stop", "matched": end}
    assert "".join(decoded(manager(qwen), steps(qwen, "one", reason=kept, extra=[end]))) == "one"


def test_a_request_that_comes_back_continues_its_text(qwen):
    """A retracted request begins anew with the text that has gone out."""
    first, *rest = steps(qwen, "one two three")
    first.decoded_texts = ["zero "]
    rest[-1].finished_reasons = [{"type": "stop", "matched": "zero"}]
    assert "".join(decoded(manager(qwen), [first, *rest])[:-1]) == "one two"


def test_the_text_is_that_of_sglangs_own_method(qwen):
    kind = real_manager()
    if kind is None:
        pytest.skip("SGLang is not installed")
    original = kind._decode_batch_token_id_output
    for text in TEXTS:
        theirs = manager(qwen)
        expected = "".join(original(theirs, batch)[0] for batch in steps(qwen, text))
        assert "".join(decoded(manager(qwen), steps(qwen, text))) == expected


def test_another_tokenizer_goes_to_sglangs_method(qwen):
    there = manager(qwen)
    there.tokenizer = SimpleNamespace()
    (batch,) = steps(qwen, "one", size=100)
    assert sglang.decode_batch(lambda manager, batch: ["theirs"], there, batch) == ["theirs"]


def test_sglangs_sources_have_what_is_hooked():
    if (folder := os.environ.get("SGLANG_SOURCE")) is None:
        pytest.skip("SGLANG_SOURCE names no folder of SGLang's sources")
    module, kind, method = sglang.DECODING.rsplit(".", 2)
    tree = ast.parse(Path(folder, *module.split(".")).with_suffix(".py").read_text("utf-8"))
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind)
    methods = {node.name: [a.arg for a in node.args.args] for node in found.body if isinstance(node, ast.FunctionDef)}
    assert methods[method] == ["self", "recv_obj"]
    assert methods["trim_matched_stop"] == ["self", "output", "finished_reason", "no_stop_trim"]
    assert methods["_clamp_decode_ids"] == ["ids", "vocab_size"]
    batch = Path(folder, "sglang/srt/managers/io_struct.py").read_text("utf-8")
    tree = next(node for node in ast.parse(batch).body if getattr(node, "name", "") == "BatchTokenIDOutput")
    fields = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    used = {"decode_ids", "decoded_texts", "read_offsets", "finished_reasons", "skip_special_tokens", "no_stop_trim"}
    assert used <= fields
