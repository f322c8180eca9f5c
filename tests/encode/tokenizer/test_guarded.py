"""Guarded text never becomes part of a control token, whatever the normalizer and the model do with it."""

from __future__ import annotations

import base64
import json
import random

import pytest
from case_tables import cases
from full_run import share
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece_files import charsmap, train

from tokenweir.encode.components.normalize import normalizer_core
from tokenweir.encode.spec import (
    NFC,
    NFKC,
    AddedToken,
    BertNormalizer,
    Lowercase,
    NormalizerSequence,
    Pattern,
    Precompiled,
    Prepend,
    Replace,
    SentencePieceNormalizer,
    StripAccents,
    StripSpace,
    TokenizerSpec,
    Unigram,
    WordPiece,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

RULES = charsmap({"\u00ad": "", "＜": "<", "≪": "<<", "‼": "!!", "s̸": "s", "ſ": "s", "〱": "<s>", "＞": ">", "\t": " "})
NORMALIZERS = {
    "none": None,
    "Llama": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "Replace": {"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"String": "a<"}, "content": "<s"},
        {"type": "Replace", "pattern": {"Regex": "<+"}, "content": "<"}]},
    "NFKC": {"type": "NFKC"},
    "NFD and Lowercase": {"type": "Sequence", "normalizers": [
        {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
    "Strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "Bert": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
             "lowercase": True},
    "Precompiled": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(RULES).decode()},
}  # fmt: skip
TOKENS = ["<s>", "END!", "[X]", "▁<p>", "Ｚ|"]
PARTS = CASES["parts"]


def tokenizers_with(tokenizer_json, normalizer, *, normalized):
    added = [{"content": token, "normalized": normalized, "special": i < 3} for i, token in enumerate(TOKENS)]
    source = tokenizer_json(words=["<s", "<s>"], added=added, normalizer=NORMALIZERS[normalizer])
    return Tokenizer.from_bytes(json.dumps(source).encode(), "huggingface")


@pytest.fixture(scope="module")
def small_tokenizers(tokenizer_json):
    return {
        (name, normalized): tokenizers_with(tokenizer_json, name, normalized=normalized)
        for name in NORMALIZERS
        for normalized in (False, True)
    }


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("normalized", [False, True])
def test_no_control_id_comes_from_guarded_text(small_tokenizers, normalizer, normalized):
    """With what a template writes before and after it, and plain text around."""
    tok = small_tokenizers[normalizer, normalized]
    controls = {tok.token_to_id(token) for token in TOKENS}
    pick = random.Random(f"{normalizer}{normalized}")
    succeeded = 0
    for _ in range(share(6000)):
        user = "".join(pick.choices(PARTS, k=pick.randint(1, 6)))
        before, after = pick.choice(["", "<s>", " ", "x "]), pick.choice(["", " [X]", "x"])
        text = before + user + after
        guarded = range(len(before), len(before) + len(user))
        found = sum(i in controls for i in tok.encode(text, guarded=guarded))
        written = sum(i in controls for part in (before, after) for i in tok.encode(part))
        assert found <= written, (before, user, after)
        assert not controls & set(tok.encode(user, guarded=range(len(user))))
        assert not controls & set(tok.encode(user, parse_special=False))
        encoded = tok.encode_with_offsets(text, guarded=guarded)
        assert encoded.ids == tok.encode(text, guarded=guarded)
        succeeded += bool(controls & set(tok.encode(user)))
    assert succeeded > share(400)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_what_prompts_guard_is_enough(small_tokenizers, normalizer):
    """One character of each control token, found in the text or by the offsets of the ids."""
    tok = small_tokenizers[normalizer, True]
    template = ChatTemplate("{{ messages[0].content }}")
    controls = {tok.token_to_id(token) for token in tok.control_texts}
    pick = random.Random(normalizer)
    parts = [*PARTS, "\u00ad" * 5, "end‼"]
    for _ in range(share(6000)):
        user = "".join(pick.choices(parts, k=pick.randint(1, 6)))
        prompt = template.render([{"role": "user", "content": user}])
        assert not controls & set(prompt.encode(tok)), user


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_guards_beside_control_tokens_change_nothing(small_tokenizers, normalizer):
    tok = small_tokenizers[normalizer, True]
    pick = random.Random(normalizer)
    plain = ["a < b", "x<", "! no", "naïve", "日本", "＜", "|", "e\u0301", "‼", "]"]
    for _ in range(share(1800)):
        users = [pick.choice(plain) for _ in range(3)]
        text, guarded = "", []
        for user in users:
            text += pick.choice(["<s>", " <s> ", "[X]\n"])
            guarded += range(len(text), len(text) + len(user))
            text += user + " "
        assert tok.encode(text, guarded=guarded) == tok.encode(text), text


STEPS = [
    NFC(),
    NFKC(),
    Lowercase(),
    StripAccents(),
    StripSpace(),
    BertNormalizer(),
    Prepend("▁"),
    Replace(Pattern(String=" "), "▁"),
    Replace(Pattern(String="ab"), "xyz"),
    Replace(Pattern(Regex="[<a]+"), "<"),
    Precompiled(base64.b64encode(RULES).decode()),
    SentencePieceNormalizer(charsmap=RULES, user_defined=("<s>", "  ")),
    SentencePieceNormalizer(charsmap=RULES, suffix=True, remove_extra_whitespaces=False),
]


@given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=3),
    st.lists(st.sampled_from([*PARTS, "b", "각", "\u1161", "\u11a8", "ﬁ", "\u0344", "é"]), max_size=8),
)
def test_what_a_character_is_made_of(steps, parts):
    """Two texts that differ in one character only: what differs after the normalizer must be said to come from it."""
    normalizer = normalizer_core(NormalizerSequence(tuple(steps)))
    text = "".join(parts)
    normal, origins = normalizer.normalize_with_origin(text, all=True)
    assert len(normal) == len(origins)
    assert normal == normalizer.normalize(text)
    for place in range(len(text)):
        free = [c for c, (start, end) in zip(normal, origins.tolist(), strict=True) if not start <= place < end]
        other = normalizer.normalize(text[:place] + "\ufdd0" + text[place + 1 :])
        # Text without the origin of the character is the same without it, except where it separated or joined neighbours.
        missing = sum(max(0, free.count(c) - other.count(c)) for c in set(free) if c in "<>!s|[")
        assert missing <= 1, (text, place, normal, other)


def test_a_character_that_vanished_shifts_nothing():
    """HuggingFace's alignment is off by the characters that Precompiled removed at the beginning."""
    normalizer = normalizer_core(Precompiled(base64.b64encode(RULES).decode()))
    assert normalizer.normalize_with_origin("\u00ad\u00ad<s")[1].tolist() == [[0, 1], [1, 2]]
    assert normalizer.normalize_with_origin("\u00ad\u00ad<s", all=True)[1].tolist() == [[2, 3], [3, 4]]


def test_every_character_of_a_match_counts():
    normalizer = normalizer_core(Replace(Pattern(String="ab"), "xy"))
    assert normalizer.normalize_with_origin("cabc")[1].tolist() == [[0, 1], [2, 3], [2, 3], [3, 4]]
    assert normalizer.normalize_with_origin("cabc", all=True)[1].tolist() == [[0, 1], [1, 3], [1, 3], [3, 4]]


# -- models ------------------------------------------------------------------------------------------------------------


def test_pieces_that_spell_control_tokens():
    spec = TokenizerSpec(
        model=Unigram((("<unk>", 0.0), ("</s>", -1.0), ("<think>", -1.0), *((c, -2.0) for c in "</s>think"[:-1])), 0),
    )
    tok = Tokenizer.from_spec(spec).with_added_tokens([])
    assert tok.encode("</s><think>") == [1, 2]
    tok = tok.with_added_tokens([AddedToken("<unk>", special=True), AddedToken("</s>", special=True), "<think>"])
    for text in ("</s>", "<think>", "a</s>", "<unk>"):
        assert not {1, 2} & set(tok.encode(text, parse_special=False))
        assert not {1, 2} & set(tok.encode(text, guarded=range(len(text))))
    assert tok.encode("</s><think>") == [1, 2]


def test_a_word_that_is_a_control_token():
    vocab = {token: i for i, token in enumerate(["[UNK]", "[CLS]", "[", "##CLS", "##]", "##C", "a"])}
    tok = Tokenizer.from_spec(TokenizerSpec(model=WordPiece(vocab=vocab)))
    assert tok.encode("[CLS]") == [1]
    tok = tok.with_added_tokens([AddedToken("[CLS]", special=True)])
    assert tok.encode("[CLS]", parse_special=False) == [2, 3, 4]
    assert tok.encode("[CLS]", guarded=[0]) == [2, 3, 4]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def with_user_defined(request):
    """A model that takes `<|im|>` from text by itself; `<|ends|>` begins as another piece ends."""
    pieces = ["<|im|>", "<|end", "d|>", "  ", "ab", "[X]"]
    data = train(model_type=request.param, vocab_size=190, user_defined_symbols=pieces, control_symbols=["<|c|>"])
    return data, Tokenizer.from_bytes(data, "sentencepiece"), pieces


def test_user_defined_pieces_of_a_sentencepiece_model(with_user_defined):
    sentencepiece = pytest.importorskip("sentencepiece")
    data, tok, pieces = with_user_defined
    reference = sentencepiece.SentencePieceProcessor(model_proto=data)
    assert set(tok.control_texts) == {"<s>", "</s>", "<|c|>", "<|im|>", "<|end", "d|>", "[X]"}
    controls = {tok.token_to_id(piece) for piece in tok.control_texts}
    pick = random.Random(3)
    parts = [*pieces, "<|", "im", "|>", "e", "n", "d", " ", "a", "b", "é", "＜", "｜", "▁", "\u00ad", "日"]
    succeeded = 0
    for _ in range(share(8000)):
        user = "".join(pick.choices(parts, k=pick.randint(1, 6)))
        assert not controls & set(tok.encode(user, guarded=range(len(user)))), user
        assert tok.encode(user, parse_special=False) == reference.encode(user)
        succeeded += bool(controls & set(tok.encode(user)))
        text = f"<|im|>{user}<|im|>"
        guarded = tok.encode(text, guarded=range(6, 6 + len(user)))
        im = tok.token_to_id("<|im|>")
        assert [i for i in guarded if i in controls] == [im, im], user
        if not any(piece in user.replace("＜", "<").replace("｜", "|") for piece in pieces[:3] + pieces[5:]):
            assert guarded == reference.encode(text), user
    assert succeeded > share(2000)


def test_pieces_of_a_file_with_types(gguf):
    """In a GGUF file, user-defined pieces are added tokens: plain text spells neither them nor control pieces."""
    tokens = ["<unk>", "<s>", "</s>", "<|im|>", "▁", *"<|im>/s", "ab"]
    tok = Tokenizer.from_bytes(
        gguf(
            {
                "tokenizer.ggml.model": "llama",
                "tokenizer.ggml.tokens": tokens,
                "tokenizer.ggml.scores": [0.0, 0.0, 0.0, 0.0, *(-float(i) for i in range(1, len(tokens) - 3))],
                "tokenizer.ggml.token_type": [2, 3, 3, 4, *[1] * (len(tokens) - 4)],
            }
        ),
        "gguf",
    )
    assert 3 in tok.encode("<|im|>")
    for text in ("<|im|>", "a<|im|>", "<|im|></s>", "<s>"):
        assert not {1, 2, 3} & set(tok.encode(text, parse_special=False, add_special_tokens=False))
        assert not {1, 2, 3} & set(tok.encode(text, guarded=range(len(text)), add_special_tokens=False))
