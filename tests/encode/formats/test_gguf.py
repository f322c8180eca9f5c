"""GGUF files: each model's components, what the file says around them, and what is refused."""

from __future__ import annotations

import json
from functools import partial

import gguf_files
import pytest
import sentencepiece
from case_tables import cases
from full_run import share
from gguf_files import BYTES, ROWS, keys, pieces, words

from tokenweir.encode import formats
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import (
    BPE,
    BertNormalizer,
    ByteFallback,
    DecoderSequence,
    Fuse,
    NormalizerSequence,
    Pattern,
    Prepend,
    Replace,
    SentencePiece,
    SentencePieceDecoder,
    SentencePieceNormalizer,
    StripDecoder,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.verify import adversarial
from tokenweir.verify.references import huggingface

CASES = cases(__file__)

SPACES = [Replace(Pattern(String="▁"), " "), ByteFallback(), Fuse()]


@pytest.fixture
def read(gguf):
    """The spec of a file with these keys."""
    return lambda **values: formats.read_bytes(gguf(keys(**values)), "gguf")


@pytest.fixture
def bytes_bpe(tokenizer_json):
    return partial(gguf_files.bytes_bpe, tokenizer_json()["model"])


@pytest.fixture
def refuse(read):
    def refuse(error, message, **values):
        with pytest.raises(error) as refusal:
            read(**values)
        assert str(refusal.value) == message

    return refuse


# -- real files --------------------------------------------------------------------------------------------------------


def texts_of(count, name):
    return [text for kind in adversarial.strings(count, seed=name).values() for text in kind]


def test_gemma_is_the_original(data, gguf):
    path = data("tokenizers/gemma/tokenizer.json")
    source = json.loads(path.read_text())
    model = source["model"]
    control = {token["id"] for token in source["added_tokens"]}
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    types = [3 if i in control else 6 if token in BYTES else 1 for i, token in enumerate(tokens)]
    values = {"tokens": tokens, "token_type": types, "scores": [-1000.0] * len(tokens), "merges": model["merges"]}
    roles = {"pad": 0, "eos": 1, "bos": 2, "unk": 3}
    ids = {"padding_token_id": 0, "eos_token_id": 1, "bos_token_id": 2, "unknown_token_id": 3}
    assert [tokens[i] for i in roles.values()] == [f"<{role}>" for role in roles]
    ours = Tokenizer.from_bytes(gguf(keys(model="gemma4", **values, **ids)), "gguf")
    theirs = huggingface(path)
    for text in ["", *texts_of(share(2400), "gemma"), "a<bos> b<eos>"]:
        encoded = theirs.encode(text).ids
        assert ours.encode(text) == encoded, repr(text)
        assert ours.decode(encoded) == theirs.decode(encoded), repr(text)


@pytest.mark.parametrize("name", ["sp-test-unigram-en", "sp-test-unigram-ja"])
def test_unigram_is_the_original(data, gguf, name):
    path = data(f"tokenizers/{name}/tokenizer.model")
    spec = formats.read_file(path)
    flags = spec.normalizer
    values = {
        "tokens": list(spec.model.pieces),
        "scores": list(spec.model.scores),
        "token_type": list(spec.model.types),
        "precompiled_charsmap": flags.charsmap,
        "add_space_prefix": flags.add_dummy_prefix,
        "remove_extra_whitespaces": flags.remove_extra_whitespaces,
        "unknown_token_id": spec.model.unk_id,
        "add_eos_token": False,
    }
    ours = Tokenizer.from_bytes(gguf(keys(model="t5", **values)), "gguf")
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    special = [token.content for token in ours.added_tokens]
    for text in ["", *texts_of(share(3600), name)]:
        if not any(token in text for token in special):
            assert ours.encode(text) == theirs.encode(text), repr(text)


# -- byte-level BPE ----------------------------------------------------------------------------------------------------


def test_byte_level(gguf, bytes_bpe):
    more = [("<|end|>", 3), ("<tool>", 4), ("[PAD277]", 5), ("", 1)]
    values = bytes_bpe(more, bos_token_id=275, eos_token_id=275, eot_token_id=97)
    assert values["tokens"][275:] == ["<|end|>", "<tool>", "[PAD277]", ""]
    tok = Tokenizer.from_bytes(gguf(keys(**values)), "gguf")
    assert tok.encode("ab<|end|><tool>") == [tok.token_to_id("ab"), 275, 276]
    assert tok.encode("[PAD277]") == [tok.token_to_id(character) for character in "[PAD277]"]
    assert tok.decode([275, 276, 277, 278]) == "<tool>"
    assert (tok.vocab_size, tok.bos_id, tok.eos_ids) == (279, 275, {97, 275})
    assert tok.spec.notes == ("2 rows of padding, which name no token",)
    assert tok.spec.source == "GGUF (gpt2)"


@pytest.mark.parametrize(("pre", "why"), [(None, "missing"), ("default", "'default'")])
def test_nothing_says_how_text_is_split(gguf, bytes_bpe, refuse, pre, why):
    values = bytes_bpe(pre=pre)
    refuse(
        UnsupportedTokenizerError,
        f"a GGUF file of byte-level BPE whose tokenizer.ggml.pre is {why}, so that nothing says how text is split: "
        "give pattern=",
        **values,
    )
    tok = Tokenizer.from_bytes(gguf(keys(**values)), "gguf", pattern=r"\S|\s")
    assert [tok.id_to_token(i) for i in tok.encode("ab a")] == ["a", "b", "Ġ", "a"]


@pytest.mark.parametrize("pre", ["afmoe", "tomorrow's"])
def test_unknown_pre_tokenizers(bytes_bpe, refuse, pre):
    message = f"a GGUF file with tokenizer.ggml.pre = {pre!r}: give pattern="
    refuse(UnsupportedTokenizerError, message, **bytes_bpe(pre=pre))


def test_ends_are_inferred_only_where_the_file_says_none(gguf, bytes_bpe):
    more = [("<|im_end|>", 3), ("<|x|>", 3)]
    tok = Tokenizer.from_bytes(gguf(keys(**bytes_bpe(more))), "gguf")
    assert tok.eos_inferred and tok.eos_ids == {tok.token_to_id("<|im_end|>")}
    x = tok.token_to_id("<|x|>")
    tok = Tokenizer.from_bytes(gguf(keys(**bytes_bpe(more, eom_token_id=x))), "gguf")
    assert not tok.eos_inferred and tok.eos_ids == {x}


def test_a_role_of_ordinary_text_makes_no_control_token(gguf, bytes_bpe):
    tok = Tokenizer.from_bytes(gguf(keys(**bytes_bpe(padding_token_id=0, eos_token_id=1))), "gguf")
    assert (tok.special_tokens, tok.eos_ids, tok.decode(tok.encode("!"))) == ({}, {1}, "!")
    assert tok.spec.notes == tuple(
        f"{role} is {tok.id_to_token(i)!r}, which the file types as ordinary text: it stays text"
        for role, i in [("eos_token", 1), ("pad_token", 0)]
    )


def test_a_beginning_that_is_added_whatever_its_type(gguf, bytes_bpe):
    values = bytes_bpe(pre="llama-bpe", bos_token_id=0)
    assert Tokenizer.from_bytes(gguf(keys(**values)), "gguf").encode("a")[0] == 0
    values["add_bos_token"] = False
    tok = Tokenizer.from_bytes(gguf(keys(**values)), "gguf")
    assert (tok.encode("a"), tok.spec.special_roles) == ([tok.token_to_id("a")], {})


def test_minus_one_is_no_token(read, bytes_bpe):
    assert read(**bytes_bpe(padding_token_id=0xFFFFFFFF)).special_roles == {}


def test_no_types(read, bytes_bpe):
    values = bytes_bpe([("<e>", 1)], token_type=None)
    spec = read(**values, eos_token_id=len(values["tokens"]) - 1)
    assert [(t.content, t.special) for t in spec.added_tokens] == [("<e>", True)]
    assert spec.notes == ("no tokenizer.ggml.token_type: only the tokens that begin or end a text are control tokens",)


def test_a_separator_goes_last_but_once(read, bytes_bpe):
    more = [("<s>", 3), ("</s>", 3)]
    n = len(bytes_bpe()["tokens"])
    values = bytes_bpe(more, pre="roberta-bpe", bos_token_id=n, eos_token_id=n + 1, seperator_token_id=n + 1)
    for flags in ({}, {"add_eos_token": True}):  # one token, which is both
        spec = read(**values, **flags)
        assert [*spec.post_processor.special_tokens] == ["</s>"]
        assert Tokenizer.from_spec(spec).encode("")[-2:] == [n + 1]
    values["seperator_token_id"] = n
    assert Tokenizer.from_spec(read(**values, add_eos_token=True)).encode("") == [n, n + 1]


@pytest.mark.parametrize(("values", "message"), CASES["contradictions"])
def test_files_that_contradict_themselves(bytes_bpe, refuse, values, message):
    refuse(TokenizerFileError, message, **bytes_bpe() | json.loads(values))


@pytest.mark.parametrize("model", ["rwkv", "plamo2", "whitespace", "hybriddna", "none", "no_vocab", "llama2"])
def test_other_models_are_refused_by_name(refuse, model):
    refuse(UnsupportedTokenizerError, f"a GGUF file with tokenizer.ggml.model = {model!r}", model=model, tokens=["a"])


# -- SentencePiece -----------------------------------------------------------------------------------------------------


def test_llama(read):
    spec = read(**pieces())
    assert isinstance(spec.model, SentencePiece)
    assert (spec.model.algorithm, spec.model.unk_id, spec.model.byte_fallback) == ("BPE", 0, True)
    assert spec.normalizer == SentencePieceNormalizer(remove_extra_whitespaces=False)
    assert spec.decoder == SentencePieceDecoder(strip_prefix=True)
    assert spec.special_roles == {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    assert (spec.add_bos, spec.add_eos, spec.eos_ids, spec.notes) == (True, False, (2,), ())


def test_flags_of_llama(read):
    spec = read(
        **pieces(add_space_prefix=False, remove_extra_whitespaces=True, add_bos_token=False, add_eos_token=True)
    )
    assert spec.normalizer == SentencePieceNormalizer(add_dummy_prefix=False, remove_extra_whitespaces=True)
    assert spec.decoder == SentencePieceDecoder(strip_prefix=False)
    assert (spec.add_bos, spec.add_eos) == (False, True)


def test_every_type_in_the_spec(read):
    spec = read(**pieces(ROWS))
    of = dict(zip(spec.model.pieces, spec.model.types, strict=True))
    assert (of["▁cd"], of["<d>"], of["zz"], of["<0x41>"], of["<unk>"]) == (1, 4, 5, 6, 2)
    assert of["<u>"] == 3  # there is one unknown token
    assert [(t.content, t.special) for t in spec.added_tokens] == [
        *(("<unk>", True), ("<s>", True), ("</s>", True), ("<u>", True), ("<c>", True), ("<d>", False))
    ]
    assert spec.normalizer.user_defined == ("<d>",)


@pytest.mark.parametrize(("text", "tokens", "decoded"), CASES["every_type_in_use"])
def test_every_type_in_use(gguf, text, tokens, decoded):
    tok = Tokenizer.from_bytes(gguf(keys(**pieces(ROWS))), "gguf")
    ids = tok.encode(text, add_special_tokens=False)
    assert [tok.id_to_token(i) for i in ids] == tokens
    assert tok.decode(ids) == decoded


@pytest.mark.parametrize("scores", ["integers", "floats"])
def test_scores_of_either_type(read, scores):
    values = pieces()
    if scores == "integers":
        values["scores"] = [int(score) for score in values["scores"]]
    assert read(**values).model.scores[-5:] == [-1.0, -2.0, -3.0, -4.0, -5.0]


@pytest.mark.parametrize(
    ("rows", "escape", "notes"),
    [
        ([("c d", -6.0, 1)], True, ("spaces are U+2581, as in 2 tokens; 1 with a plain space match nothing",)),
        ([("  ", 0.0, 4)], True, ()),
    ],
)
def test_how_spaces_are_marked(read, rows, escape, notes):
    spec = read(**pieces(rows))
    assert (spec.normalizer.escape_whitespaces, spec.notes) == (escape, notes)


def test_spaces_that_are_marked_another_way(read, refuse):
    values = pieces()
    values["tokens"] = [token.replace("▁", " ") for token in values["tokens"]]
    spec = read(**values)
    assert not spec.normalizer.escape_whitespaces
    assert spec.notes == ("spaces stay spaces: 2 tokens have one and none has U+2581",)
    values["tokens"] = [token.replace(" ", "Ġ") for token in values["tokens"]]
    refuse(
        UnsupportedTokenizerError,
        "a GGUF file of SentencePiece tokens of which none has U+2581 or a space: nothing says what a space becomes",
        **values,
    )


@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("scores", ["missing", "equal"])
def test_scores_that_say_nothing(read, refuse, scores, prefix):
    values = pieces(add_space_prefix=prefix)
    values["scores"] = None if scores == "missing" else [-1000.0] * len(values["tokens"])
    refuse(
        UnsupportedTokenizerError,
        "a GGUF file with tokenizer.ggml.model = 'llama' in which no two tokenizer.ggml.scores differ and "
        "tokenizer.ggml.merges are missing",
        **values,
    )
    spec = read(**values, merges=["a b", "▁ ab"])
    assert spec.model == BPE(
        vocab={token: i for i, token in enumerate(values["tokens"])},
        merges=[("a", "b"), ("▁", "ab")],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    escape = Replace(Pattern(String=" "), "▁")
    assert spec.normalizer == (NormalizerSequence((Prepend("▁"), escape)) if prefix else escape)
    strip = [StripDecoder(content=" ", start=1, stop=0)] if prefix else []
    assert spec.decoder == DecoderSequence((*SPACES, *strip))
    assert spec.notes == ("no two tokens differ in score: BPE by the file's merges",)


@pytest.mark.parametrize(("change", "message"), CASES["sentencepiece_contradictions"])
def test_sentencepiece_files_that_contradict_themselves(refuse, change, message):
    refuse(TokenizerFileError, message, **pieces() | json.loads(change))


def test_sentencepiece_needs_an_unknown_token_and_all_bytes(refuse):
    values = pieces()
    values["token_type"][0] = 1
    refuse(TokenizerFileError, "tokenizer.ggml.unknown_token_id: missing", **values)
    values = pieces([("<0x41>", 0.0, 6)], byte_tokens=False)
    refuse(TokenizerFileError, "tokenizer.ggml.tokens: 1 of the 256 byte tokens", **values)


def test_t5(read, refuse):
    rows = [("<pad>", 0.0, 3), ("</s>", 0.0, 3), ("<unk>", 0.0, 2), ("▁a", -1.5, 1), ("b", -2.0, 1)]
    tokens, scores, types = map(list, zip(*rows, strict=True))
    values = {"model": "t5", "tokens": tokens, "scores": scores, "token_type": types}
    spec = read(**values, precompiled_charsmap=b"\x00\xff", add_space_prefix=True, remove_extra_whitespaces=True)
    assert spec.model == SentencePiece(
        algorithm="Unigram", pieces=tokens, scores=scores, types=bytes(types), unk_id=2, byte_fallback=False
    )
    assert spec.normalizer == SentencePieceNormalizer(charsmap=b"\x00\xff")
    assert (spec.add_bos, spec.add_eos, spec.eos_ids) == (False, True, (1,))
    assert spec.special_roles == {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    plain = SentencePieceNormalizer(add_dummy_prefix=False, remove_extra_whitespaces=False)
    assert read(**values).normalizer == plain
    refuse(TokenizerFileError, "tokenizer.ggml.scores: missing", **values | {"scores": None})


def test_gemma_4(read):
    rows = [("<pad>", 3), ("<eos>", 3), ("<bos>", 3), ("<unk>", 2), *((token, 6) for token in BYTES)]
    rows += [("▁", 1), ("a", 1), ("▁a", 1), ("<img>", 4)]
    tokens, types = map(list, zip(*rows, strict=True))
    values = {"tokens": tokens, "token_type": types, "scores": [-1000.0] * len(rows), "merges": ["▁ a"]}
    spec = read(model="gemma4", **values, bos_token_id=2, eos_token_id=1, unknown_token_id=3)
    assert (spec.model.merges, spec.model.byte_fallback, spec.model.unk_token) == ([("▁", "a")], True, "<unk>")
    assert spec.normalizer == Replace(Pattern(String=" "), "▁")
    assert (spec.pre_tokenizer, spec.decoder, spec.add_bos) == (None, DecoderSequence(tuple(SPACES)), True)
    assert [(t.content, t.special) for t in spec.added_tokens][-2:] == [("<unk>", True), ("<img>", False)]
    by_name = read(model="gpt2", pre="gemma4", **values, bos_token_id=2, eos_token_id=1, unknown_token_id=3)
    assert (by_name.model, by_name.normalizer, by_name.decoder) == (spec.model, spec.normalizer, spec.decoder)


# -- WordPiece ---------------------------------------------------------------------------------------------------------


def test_both_spellings_of_word_piece(read):
    respelled = read(**words(["▁a", "▁b", "a", "bc", "[unused0]", "▁##", "▁"]))
    assert list(respelled.model.vocab)[5:] == ["a", "b", "##a", "##bc", "[unused0]", "##", "##▁"]
    assert respelled.notes == ("4 tokens begin with U+2581 and so a word; the others got ##",)
    original = read(**words(["a", "b", "##a", "##bc", "[unused0]", "▁"]))
    assert list(original.model.vocab)[5:] == ["a", "b", "##a", "##bc", "[unused0]", "▁"]
    assert original.notes == ()
    for spec in respelled, original:
        assert spec.normalizer == BertNormalizer(lowercase=True, strip_accents=None)
        assert {t: s.ids for t, s in spec.post_processor.special_tokens.items()} == {"[CLS]": (2,), "[SEP]": (3,)}
        assert spec.model.unk_token == "[UNK]"
        assert len(spec.added_tokens) == 5


def test_case(read):
    keeps = read(**words(["▁a", "▁B"]))
    assert not keeps.normalizer.lowercase
    assert keeps.notes[-1] == "case is kept: the vocabulary has capitals (llama.cpp would lower them)"
    explicit = {"normalizer__lowercase": True, "normalizer__strip_accents": False}
    assert read(**words(["▁a", "▁B"]), **explicit).normalizer == BertNormalizer(lowercase=True, strip_accents=False)


def test_roles_of_bert(read, refuse):
    values = words(["▁a", "<s>", "</s>"])
    values["tokens"][2:4] = ["x", "y"]
    refuse(TokenizerFileError, "tokenizer.ggml.cls_token_id: missing, and no token is [CLS]", **values)
    for roles in (
        {"cls_token_id": 6, "seperator_token_id": 7},
        {"bos_token_id": 6, "separator_token_id": 7},
    ):
        spec = read(**values, **roles)
        assert [s.ids for s in spec.post_processor.special_tokens.values()] == [(6,), (7,)]


def test_word_piece_that_cannot_be_told(refuse):
    message = (
        "a GGUF file of WordPiece tokens of which 0 begin with U+2581 and as many with ##: nothing says which "
        "continue a word"
    )
    refuse(UnsupportedTokenizerError, message, **words(["a", "b"]))
    message = "tokenizer.ggml.tokens: two tokens are one without the U+2581 that begins words"
    refuse(TokenizerFileError, message, **words(["▁[x]", "[x]", "▁b"]))


def test_word_piece_in_use(gguf):
    tok = Tokenizer.from_bytes(gguf(keys(**words(["▁a", "▁b", "a", "bc"]))), "gguf")
    assert [tok.id_to_token(i) for i in tok.encode("Ábc b z")] == ["[CLS]", "a", "##bc", "b", "[UNK]", "[SEP]"]


# -- around the model --------------------------------------------------------------------------------------------------


def test_the_original_tokenizer_json_in_a_gguf(gguf, bytes_bpe, tokenizer_json):
    source = json.dumps(tokenizer_json(added=[{"content": "<x>", "special": True, "rstrip": True}]))
    values = bytes_bpe([("<x>", 3)], pre="nonsense", huggingface__json=source)
    x = len(values["tokens"]) - 1
    tok = Tokenizer.from_bytes(gguf(keys(**values, eos_token_id=x, chat_template="{{ eos_token }}")), "gguf")
    original = Tokenizer.from_bytes(source.encode(), "huggingface")
    assert tok.encode("ab <x>  b") == original.encode("ab <x>  b")
    assert (tok.eos_ids, tok.spec.special_roles, tok.spec.source) == (
        {x},
        {"eos_token": "<x>"},
        "GGUF (tokenizer.json)",
    )
    assert tok.spec.notes == (
        "read from tokenizer.huggingface.json, the original; the tokens beside it only give roles",
    )
    with pytest.raises(TokenizerFileError, match=r"^tokenizer\.huggingface\.json: not a tokenizer\.json"):
        formats.read_bytes(gguf(keys(huggingface__json="{")), "gguf")


def test_chat_templates(gguf, bytes_bpe, refuse, tmp_path):
    values = bytes_bpe(
        [("<e>", 3)],
        chat_template="{{ messages[0].content }}{{ eos_token }}",
        chat_template__tool_use="tools",
        chat_templates=["tool_use"],
    )
    values["eos_token_id"] = len(values["tokens"]) - 1
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(keys(**values)))
    template = ChatTemplate.from_file(path)
    messages = [{"role": "user", "content": "a<e>"}]
    assert template.render(messages).text == "a<e><e>"
    assert (template.special_tokens, template.control_tokens) == ({"eos_token": "<e>"}, ("<e>",))
    assert ChatTemplate.from_file(path, name="tool_use").source == "tools"
    assert ChatTemplate.from_file(path.rename(tmp_path / "blob")).source == template.source
    path = tmp_path / "blob"
    tok = Tokenizer.from_file(path)
    assert ChatTemplate.from_tokenizer(tok).source == template.source
    assert template.render(messages).encode(tok)[-2:] == [tok.token_to_id(">"), tok.token_to_id("<e>")]
    message = "tokenizer.chat_templates: there is no tokenizer.chat_template.rag"
    refuse(TokenizerFileError, message, **values | {"chat_templates": ["rag"]})


def test_the_template_of_a_refused_tokenizer(gguf, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(keys(model="rwkv", chat_template="hello")))
    assert ChatTemplate.from_file(path).render([{"role": "user", "content": ""}]).text == "hello"


def test_files_and_folders(gguf, bytes_bpe, tmp_path):
    data = gguf(keys(**bytes_bpe()))
    (tmp_path / "tokenizer_config.json").write_text("not read")
    (tmp_path / "a.gguf").write_bytes(data)
    ids = Tokenizer.from_file(tmp_path).encode("ab")
    assert ids == Tokenizer.from_bytes(data, "gguf").encode("ab")
    (tmp_path / "blob").write_bytes(data)  # named by its hash, as some programs keep models
    assert Tokenizer.from_file(tmp_path / "blob").encode("ab") == ids
    (tmp_path / "b.gguf").write_bytes(b"GGUF")
    with pytest.raises(TokenizerFileError, match=r"which of a\.gguf, b\.gguf\? Name one$"):
        Tokenizer.from_file(tmp_path)
    with pytest.raises(TokenizerFileError, match=r"b\.gguf: the version: cut short at byte 4$"):
        Tokenizer.from_file(tmp_path / "b.gguf")
    with pytest.raises(ValueError, match="^special_tokens is for rank files; a GGUF file has its own$"):
        Tokenizer.from_file(tmp_path / "a.gguf", special_tokens={})
    with pytest.raises(ValueError, match="^pattern is for byte-level BPE in a GGUF file, not for .* 'llama'$"):
        Tokenizer.from_bytes(gguf(keys(**pieces())), "gguf", pattern="a")
