"""Reading a tekken.json: ids and decoded bytes are mistral-common's, and bad files are told with their place."""

from __future__ import annotations

import base64
import json
import pickle
import random

import pytest
from case_tables import cases
from full_run import share

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats import tekken
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

PATTERN = r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
WORDS = ["ab", "abc", " a", "é", "日", "日本", "  ", "12", "😀"]
SPECIAL = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<pad>"]
PARTS = CASES["parts"]


def tekken_json(*, words=WORDS, special=SPECIAL, room=10, left_out=3, **config):
    """A tekken.json as a dict, with `left_out` tokens more than count and `room` special tokens."""
    tokens = [bytes([byte]) for byte in range(256)] + [word.encode() for word in words]
    tokens += [b"left out %d" % i for i in range(left_out)]
    return {
        "config": {
            "pattern": PATTERN,
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": len(tokens) - left_out + room,
            "default_num_special_tokens": room,
            "version": "v13",
            **config,
        },
        "vocab": [
            {"rank": i, "token_bytes": base64.b64encode(token).decode(), "token_str": token.decode(errors="replace")}
            for i, token in enumerate(tokens)
        ],
        "special_tokens": [{"rank": i, "token_str": token, "is_control": True} for i, token in enumerate(special)],
        "type": "Tekken",
        "version": 1,
        "image": {"image_patch_size": 16, "max_image_size": 1024},
    }


def old_json():
    """One that does not list its special tokens."""
    source = tekken_json(room=24, version="v3")
    del source["special_tokens"]
    source["multimodal"] = source.pop("image")
    return source


def read(source):
    return tekken.read(json.dumps(source).encode())


def load(source):
    return Tokenizer.from_bytes(json.dumps(source).encode(), "tekken")


def theirs(path):
    reference = pytest.importorskip("mistral_common.tokens.tokenizers.tekken")
    return reference.Tekkenizer.from_file(path), reference.SpecialTokenPolicy


def check(ours, path, texts):
    """Ids with and without tokens around, every token's bytes, the tokens with a role."""
    tekkenizer, policy = theirs(path)
    assert ours.vocab_size == tekkenizer.n_words
    assert (ours.bos_id, ours.eos_ids, ours.unk_id, ours.pad_id) == (
        tekkenizer.bos_id,
        {tekkenizer.eos_id},
        tekkenizer.unk_id,
        tekkenizer.pad_id,
    )
    for token_id in range(0, ours.vocab_size, max(1, ours.vocab_size // 5000)):
        assert ours.token_bytes(token_id) == tekkenizer.id_to_byte_piece(token_id, policy.KEEP)
        assert (token_id in ours.special_tokens.values()) == tekkenizer.is_special(token_id)
    for text in texts:
        ids = tekkenizer.encode(text, False, False)
        assert ours.encode(text, parse_special=False) == ids, text
        around = ours.encode(text, parse_special=False, add_bos=True, add_eos=True)
        assert around == tekkenizer.encode(text, True, True)
        assert ours.decode(ids, skip_special_tokens=False) == tekkenizer.decode(ids) == text
        assert ours.decode(around) == tekkenizer.decode(around)


@pytest.mark.parametrize("source", [tekken_json(), old_json(), tekken_json(left_out=0, room=6, version="v15")])
def test_ids_are_mistral_commons(tmp_path, source):
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(source))
    pick = random.Random(1)
    texts = ["".join(pick.choice(PARTS) for _ in range(pick.randint(0, 8))) for _ in range(share(3000))]
    for ours in (load(source), pickle.loads(pickle.dumps(load(source)))):
        check(ours, path, texts)


def test_special_tokens_in_text_are_matched_only_when_parsed():
    tok = load(tekken_json())
    assert tok.encode("[INST]ab</s>") == [3, 266, 2]
    in_bytes = [[*(byte + 10 for byte in text)] for text in (b"[INST]", b"</s>")]
    assert tok.encode("[INST]ab</s>", parse_special=False) == [*in_bytes[0], 266, *in_bytes[1]]
    assert tok.decode([3, 266, 2]) == "ab"


def test_the_spec():
    spec = read(tekken_json(words=["ab"], special=["<s>", "[x]"], room=3))
    assert dict(list(spec.model.ranks.items())[-2:]) == {b"\xff": 258, b"ab": 259}
    assert spec.added_tokens == tuple(
        AddedToken(token, id=i, special=True) for i, token in enumerate(["<s>", "[x]", "<SPECIAL_2>"])
    )
    assert (spec.pre_tokenizer.dialect, spec.pre_tokenizer.unmatched) == ("fancy-regex", "drop")
    assert spec.special_roles == {"bos_token": "<s>"}
    assert (spec.add_bos, spec.add_eos, spec.source) == (None, None, "tekken.json v13")


def test_files_are_known_by_name_or_content(tmp_path):
    text = json.dumps(tekken_json())
    expected = load(tekken_json()).encode("ab 日本 [INST]")
    for name in ("tekken.json", "tekken_240718.json", "other.json"):
        (tmp_path / name).write_text(text)
        assert Tokenizer.from_file(tmp_path / name).encode("ab 日本 [INST]") == expected
    (tmp_path / "tekken_240718.json").unlink()
    assert Tokenizer.from_file(tmp_path).encode("ab 日本 [INST]") == expected
    for no in (
        b'{"model": {"vocab": {"token_bytes": 1}}}',
        b'["token_bytes"]',
        b'"token_bytes"',
        b'{"token_bytes": [',
        b"",
    ):
        assert not tekken.recognises(no)


def test_what_lies_beside_it(tmp_path):
    """A tokenizer_config.json describes the conversion to tokenizer.json; only its chat template counts."""
    (tmp_path / "tekken.json").write_text(json.dumps(tekken_json()))
    config = {
        "add_bos_token": True,
        "bos_token": "[INST]",
        "added_tokens_decoder": {"1": {"content": "other", "special": True}},
        "chat_template": "x",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [2, 5]}')
    tok = Tokenizer.from_file(tmp_path)
    assert tok.encode("ab") == [266]
    assert (tok.bos_id, tok.eos_ids, tok.spec.chat_templates) == (1, {2, 5}, {"default": "x"})


def changed(path, value):
    """A small file with one value changed, or one missing if it is `...`."""
    source = tekken_json()
    *way, last = path
    place = source
    for key in way:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return source


def entry(rank, token):
    return {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}


@pytest.mark.parametrize(("path", "value", "message"), CASES["bad_values"])
def test_bad_values_are_told_with_their_place(path, value, message):
    with pytest.raises(TokenizerFileError, match=message):
        read(changed(path, json.loads(value) if value else ...))


@pytest.mark.parametrize("data", [b"", b"\x00", b'{"config": ', b"[" * 100_000, b'{"config": {"pattern": "\xff"}}'])
def test_what_is_not_a_tekken_json(data):
    with pytest.raises(TokenizerFileError, match=r"^not a tekken.json: |^the file: Expected `object`, got `array`$"):
        tekken.read(data)


def test_what_is_refused():
    source = changed(["config", "default_vocab_size"], 2**40)
    source["config"]["default_num_special_tokens"] = 2**40
    with pytest.raises(UnsupportedTokenizerError, match=r"^1099511627776 ids; at most 1048575 fit$"):
        read(source)
    assert read(tekken_json(room=1 << 16)).added_tokens
    with pytest.raises(UnsupportedTokenizerError, match=r"^config: 65537 special tokens; at most 65536 are possible$"):
        read(tekken_json(room=(1 << 16) + 1))
    with pytest.raises(UnsupportedTokenizerError, match=r"without a token for byte 44$"):
        load(changed(["config", "default_vocab_size"], 54))
