"""Tokenizers for libraries of grammars, beside those libraries' own adapters for transformers."""

from __future__ import annotations

import json
import sys

import pytest
from case_tables import cases
from full_run import FULL
from real_tokenizers import real_tokenizer

from tokenweir import Tokenizer
from tokenweir.integrations.grammars import control_tokens, to_llguidance, to_outlines, to_xgrammar, token_contents

CASES = cases(__file__)

transformers = pytest.importorskip("transformers")

SCHEMA = CASES["schema"]
ANSWERS = ['{"name": "wörld 日本", "n": 12}', '{ "name" : "a\\n<b>", "n" : -3 }']
FOLDERS = ["qwen3", "llama-3.1", "gpt2"] if FULL else ["llama-3.1", "gpt2"]


@pytest.fixture(params=FOLDERS)
def folder(request, data):
    return data(f"tokenizers/{request.param}")


def test_llguidance_has_the_masks_of_its_own_adapter(folder):
    llguidance = pytest.importorskip("llguidance")
    adapter = pytest.importorskip("llguidance.hf")
    bits = pytest.importorskip("llguidance.numpy")
    tokenizer = real_tokenizer(folder)
    ends = sorted(tokenizer.eos_ids)
    theirs = adapter.from_tokenizer(transformers.AutoTokenizer.from_pretrained(folder), eos_token=ends)
    ours = to_llguidance(tokenizer)
    assert (ours.vocab_size, ours.eos_tokens) == (theirs.vocab_size, theirs.eos_tokens)
    together = 1 if FULL else 16  # a call of either library takes longer than an id
    for first in range(0, ours.vocab_size, together):
        ids = [*range(first, min(first + together, ours.vocab_size))]
        assert ours.decode_bytes(ids) == theirs.decode_bytes(ids)
    for i in range(ours.vocab_size):
        assert ours.is_special_token(i) == theirs.is_special_token(i), tokenizer.id_to_token(i)
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(SCHEMA))
    for answer in ANSWERS:
        matchers = [llguidance.LLMatcher(each, grammar) for each in (ours, theirs)]
        masks = [bits.allocate_token_bitmask(1, ours.vocab_size) for _ in matchers]
        for token_id in [*tokenizer.encode(answer, add_special_tokens=False), ends[0]]:
            for matcher, mask in zip(matchers, masks, strict=True):
                bits.fill_next_token_bitmask(matcher, mask, 0)
            assert (masks[0] == masks[1]).all()
            assert masks[0][0, token_id // 32] >> (token_id % 32) & 1
            assert all(matcher.consume_token(token_id) for matcher in matchers)


@pytest.mark.parametrize(
    ("make", "package", "extra"),
    [
        (to_llguidance, "llguidance", "grammars"),
        (to_xgrammar, "xgrammar", "xgrammar"),
        (to_outlines, "outlines_core", "grammars"),
    ],
)
def test_a_missing_library_is_named_with_the_extra(monkeypatch, make, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ImportError, match=rf"^{make.__name__}\(\) needs {package}: pip install 'tokenweir\[{extra}\]'$"
    ):
        make(Tokenizer.default())


def test_llguidance_encodes_text_of_a_grammar_as_text(folder):
    pytest.importorskip("llguidance")
    tokenizer = real_tokenizer(folder)
    text = f"a {next(iter(tokenizer.special_tokens))} b"
    expected = tokenizer.encode(text, add_special_tokens=False, parse_special=False)
    assert to_llguidance(tokenizer).tokenize_str(text) == expected


def test_xgrammar_has_the_vocabulary_of_its_own_adapter(folder):
    xgrammar = pytest.importorskip("xgrammar")
    tokenizer = real_tokenizer(folder)
    theirs = xgrammar.TokenizerInfo.from_huggingface(
        transformers.AutoTokenizer.from_pretrained(folder), stop_token_ids=sorted(tokenizer.eos_ids)
    )
    ours = to_xgrammar(tokenizer)
    assert ours.vocab_size >= theirs.vocab_size
    assert ours.stop_token_ids == theirs.stop_token_ids
    special = set(ours.special_token_ids) | set(theirs.special_token_ids)
    for i, (own, other) in enumerate(zip(ours.decoded_vocab, theirs.decoded_vocab, strict=False)):
        assert own == other or i in special or own == b""
    grammar = xgrammar.Grammar.from_json_schema(json.dumps(SCHEMA))
    for answer in ANSWERS:
        matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(ours).compile_grammar(grammar))
        assert all(matcher.accept_token(i) for i in tokenizer.encode(answer, add_special_tokens=False))


def test_outlines_has_the_vocabulary_of_its_names(folder):
    outlines = pytest.importorskip("outlines_core")
    tokenizer = real_tokenizer(folder)
    vocabulary = to_outlines(tokenizer)
    assert vocabulary.get_eos_token_id() == min(tokenizer.eos_ids)
    for i in range(0, tokenizer.vocab_size, 7):
        content = tokenizer.token_bytes(i)
        if i not in control_tokens(tokenizer) and content:
            assert i in vocabulary.get(content)
    pattern = outlines.json_schema.build_regex_from_schema(json.dumps(SCHEMA))
    guide = outlines.Guide(outlines.Index(pattern, vocabulary))
    for token_id in tokenizer.encode('{"name": "wörld", "n": 12}', add_special_tokens=False):
        assert token_id in guide.get_tokens()
        guide.advance(token_id)
    assert guide.is_finished()


def test_contents_are_bytes_and_control_tokens_are_marked():
    tokenizer = Tokenizer.default()
    marked, plain = token_contents(tokenizer, special=True), token_contents(tokenizer, special=False)
    for i in range(tokenizer.vocab_size):
        if i in control_tokens(tokenizer):
            assert (marked[i], plain[i]) == (b"\xff" + tokenizer.id_to_token(i).encode(), b"")
        else:
            assert marked[i] == plain[i] == tokenizer.token_bytes(i)


def test_too_few_logits_are_refused():
    pytest.importorskip("llguidance")
    with pytest.raises(ValueError, match=r"^vocab_size is 10, but the tokenizer has \d+ ids$"):
        to_llguidance(Tokenizer.default(), vocab_size=10)
