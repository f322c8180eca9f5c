"""`inspect`: what a tokenizer is made of, for people and as JSON."""

from __future__ import annotations

import json

import commands

from tokenweir.encode.tokenizer import Tokenizer, core_of


def run(*args):
    result = commands.run("inspect", *args)
    assert result.exit_code == 0, result.output
    return result.stdout


def sections(text):
    found, name = {}, ""
    for line in text.splitlines():
        name = line[:16].strip() or name
        found.setdefault(name, []).append(line[16:])
    return found


def test_the_embedded_tokenizer():
    shown = sections(run())
    assert shown["source"] == ["HuggingFace tokenizer.json"]
    assert shown["ids"] == ["8192"]
    (automaton,) = core_of(Tokenizer.default()).pre_tokenizer.automata
    assert shown["automata"] == [f"{automaton.n_states} states by {automaton.n_classes} classes, oniguruma"]
    assert shown["patterns"] == [automaton.pattern]
    assert shown["end tokens"] == ["8180 <|endoftext|>", "8182 <|im_end|>"]
    assert shown["reasoning"] == ["think"]
    assert "8181 <|im_start|> special" in shown["added tokens"]
    assert shown["truncation"] == shown["padding"] == ["none"]


def test_json_has_everything():
    facts = json.loads(run("--json"))
    tok = Tokenizer.default()
    assert facts["vocab_size"] == tok.vocab_size
    assert facts["model"]["vocab"] == len(tok.spec.model.vocab)
    assert facts["pre_tokenizer"]["pretokenizers"][1]["type"] == "ByteLevel"
    assert len(facts["added_tokens"]) == len(tok.added_tokens)
    assert facts["eos"] == {"tokens": {"8180": "<|endoftext|>", "8182": "<|im_end|>"}, "inferred": False}
    assert facts["chat_templates"] == {"default": {"characters": len(tok.spec.chat_templates["default"])}}


def test_inferred_ends_many_added_tokens_and_what_is_put_around(data):
    shown = sections(run("--tokenizer", str(data("tokenizers/llama-3.1/tokenizer.json"))))
    assert shown["puts around"] == ["128000 <|begin_of_text|>"]
    assert shown["end tokens"][0] == "128001 <|end_of_text|> (by its name: no file says)"
    assert len(shown["added tokens"]) == 13
    assert shown["added tokens"][-1] == "and 244 more; --json prints all"


def changed_tokenizer(folder, **changes):
    """The embedded tokenizer.json with other components."""
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads((commands.EMBEDDED / "tokenizer.json").read_text("utf-8")) | changes))
    return str(path)


def test_flags_are_reported_beside_what_is_put_around(tmp_path):
    path = changed_tokenizer(tmp_path)
    assert sections(run("--tokenizer", path))["flags"] == ["none"]
    (tmp_path / "tokenizer_config.json").write_text('{"add_bos_token": true, "add_eos_token": false}')
    shown = sections(run("--tokenizer", path))
    assert shown["flags"] == ["add_bos_token true", "add_eos_token false"]
    assert shown["puts around"] == ["none"]
    facts = json.loads(run("--tokenizer", path, "--json"))
    assert (facts["add_bos"], facts["add_eos"], facts["around"]) == (True, False, [])


def test_truncation_and_padding_are_reported(tmp_path):
    truncation = {"direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0}
    padding = {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
               "pad_type_id": 0, "pad_token": "a"}  # fmt: skip
    path = changed_tokenizer(tmp_path, truncation=truncation, padding=padding)
    shown = sections(run("--tokenizer", path))
    assert '"max_length": 512' in shown["truncation"][0]
    assert shown["truncation"][0].endswith(", never applied")
    assert shown["padding"][0].endswith(", never applied")
    assert json.loads(run("--tokenizer", path, "--json"))["truncation"] == truncation


def test_a_hostile_token_is_shown_and_not_obeyed(tmp_path):
    token = {"id": 8180, "content": "\x1b]0;owned\x07\n", "special": True, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False}  # fmt: skip
    text = run("--tokenizer", changed_tokenizer(tmp_path, added_tokens=[token]))
    assert sections(text)["added tokens"] == ["8180 ␛]0;owned␇␊ special"]
    assert "\x1b" not in text
