"""SentencePiece model files: what is read of them, what sentencepiece refuses too, and damaged ones."""

from __future__ import annotations

import json
import random
from array import array

import pytest
import sentencepiece
from case_tables import cases
from msgspec.structs import replace
from sentencepiece_files import (
    BYTE,
    CONTROL,
    NORMALIZER,
    TRAINER,
    UNKNOWN,
    UNUSED,
    USER,
    USER_DEFINED,
    charsmap,
    edited,
    field,
    piece,
    small_model,
    train,
)

from tokenweir.encode import _core
from tokenweir.encode.components.added_tokens import with_real_ids
from tokenweir.encode.components.normalize import normalizer_core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats import read_file, tiktoken
from tokenweir.encode.formats.sentencepiece import looks_like, read
from tokenweir.encode.spec import AddedToken, SentencePiece, SentencePieceDecoder, SentencePieceNormalizer
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

BYTES = [piece(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
FALLBACK = {35: 1}
MORE = len(small_model()) - len(field(TRAINER, field(3, 2)) + field(NORMALIZER, b""))  # where a further piece begins
END = len(small_model())


def reference(data):
    return sentencepiece.SentencePieceProcessor(model_proto=data)


def refused(data, error=TokenizerFileError):
    with pytest.raises(error) as caught:
        read(data)
    assert type(caught.value) is error
    return str(caught.value)


# -- what is read ------------------------------------------------------------------------------------------------------


def test_a_small_model():
    data = small_model(piece("<sep>", 0.0, USER), piece("x", -2.5, UNUSED), trainer={24: 1, 44: "?"}, normalizer={4: 0})
    spec = read(data)
    assert spec.model == SentencePiece(
        algorithm="BPE",
        pieces=("<unk>", "<s>", "</s>", "▁", "a", "b", "▁a", "ab", "▁ab", "<sep>", "x"),
        scores=array("f", [0, 0, 0, -1, -2, -3, -4, -5, -6, 0, -2.5]),
        types=bytes([UNKNOWN, CONTROL, CONTROL, 1, 1, 1, 1, 1, 1, USER, UNUSED]),
        unk_id=0,
        byte_fallback=False,
        unk_surface="?",
    )
    assert spec.normalizer == SentencePieceNormalizer(
        remove_extra_whitespaces=False, suffix=True, user_defined=("<sep>",)
    )
    assert spec.decoder == SentencePieceDecoder(strip_prefix=True, strip_extra=False)
    assert spec.added_tokens == (AddedToken("<s>", id=1, special=True), AddedToken("</s>", id=2, special=True))
    assert spec.special_roles == {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    assert (spec.pre_tokenizer, spec.post_processor, spec.add_bos, spec.add_eos) == (None, None, None, None)
    assert spec.source == "SentencePiece model"


def test_every_flag_of_the_normalizer():
    rules = charsmap({"a": "b"})
    spec = read(small_model(normalizer={2: rules, 3: 0, 4: 1, 5: 0, 6: "61\t62"}))
    assert spec.normalizer == SentencePieceNormalizer(charsmap=rules, add_dummy_prefix=False, escape_whitespaces=False)
    assert spec.decoder == SentencePieceDecoder(strip_prefix=False, strip_extra=True)
    assert normalizer_core(spec.normalizer).normalize(" a  a ") == "b b"


def test_unigram_is_the_default():
    assert read(small_model(trainer={3: 1})).model.algorithm == "Unigram"
    spec = read(piece("<unk>", 0.0, UNKNOWN))
    assert (spec.model.algorithm, spec.model.unk_surface, spec.special_roles) == (
        "Unigram",
        " \u2047 ",
        {"unk_token": "<unk>"},
    )
    assert spec.normalizer == SentencePieceNormalizer()


def test_byte_fallback():
    spec = read(small_model(*BYTES, trainer=FALLBACK))
    assert spec.model.byte_fallback
    assert spec.model.types.count(BYTE) == 256


@pytest.mark.parametrize(
    ("trainer", "roles"),
    [
        ({}, (1, 2, -1)),
        ({46: "</s>"}, (2, 2, -1)),
        ({46: "a"}, (-1, 2, -1)),
        ({46: "<other>", 47: "<other>", 48: "<s>"}, (9, 9, 1)),
        ({46: "", 47: "missing"}, (1, -1, -1)),
        ({41: -1, 42: 7}, (1, 2, -1)),
    ],
)
def test_roles_are_those_of_sentencepiece(trainer, roles):
    data = small_model(piece("<other>", 0.0, CONTROL), trainer=trainer)
    spec, processor = read(data), reference(data)
    ids = {text: i for i, text in enumerate(spec.model.pieces)}
    found = [ids.get(spec.special_roles.get(f"{role}_token"), -1) for role in ("bos", "eos", "pad")]
    assert tuple(found) == (processor.bos_id(), processor.eos_id(), processor.pad_id()) == roles
    assert ids[spec.special_roles["unk_token"]] == processor.unk_id() == 0


def test_a_message_in_two_parts_is_their_union():
    data = small_model(trainer={3: 1, 44: "?"}) + field(2, field(3, 2)) + field(3, field(3, 0))
    spec = read(data)
    assert (spec.model.algorithm, spec.model.unk_surface) == ("BPE", "?")
    assert not spec.normalizer.add_dummy_prefix
    assert reference(data).encode("ab ab") == reference(small_model(normalizer={3: 0})).encode("ab ab")


def test_unknown_fields_are_skipped():
    data = (
        small_model() + field(4, field(1, field(1, "a") + field(2, "WRONG"))) + field(5, field(3, 1)) + field(200, "x")
    )
    assert read(data) == read(small_model())


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (small_model(unknown=False), "pieces: 0 of type unknown; exactly one is needed"),
        (small_model(piece("<u>", 0.0, UNKNOWN)), "pieces: 2 of type unknown; exactly one is needed"),
        (small_model(piece("a")), "pieces[9]: 'a' is pieces[4] already"),
        (small_model(piece("<s>", 0.0, CONTROL)), "pieces[9]: '<s>' is pieces[1] already"),
        (small_model(piece("<s>", -1.0)), "pieces[9]: '<s>' is pieces[1] already"),
        (small_model(piece("a", 0.0, USER), trainer={3: 1}), "pieces[9]: 'a' is pieces[4] already"),
        (small_model(piece("")), f"pieces[9]: an empty piece at byte {MORE + 2}"),
        (small_model(piece("a\0b")), f"pieces[9]: a piece with a NUL character at byte {MORE + 2}"),
        (small_model(piece("a" * 8000)), f"pieces[9]: a piece of 8000 bytes at byte {MORE + 3}"),
        (small_model(*BYTES), "pieces[9]: a byte, but trainer_spec has no byte_fallback"),
        (small_model(*BYTES[1:], trainer=FALLBACK), "pieces: no byte <0x00>, but trainer_spec has byte_fallback"),
        (
            small_model(*BYTES, piece("<0xff>", 0.0, BYTE), trainer=FALLBACK),
            "pieces[265]: '<0xff>' is no byte",
        ),
    ],
)
def test_what_sentencepiece_refuses(data, message):
    with pytest.raises(RuntimeError):
        reference(data)
    assert refused(data) == message


def test_a_piece_may_have_7999_bytes():
    data = small_model(piece("a" * 7999))
    assert len(read(data).model.pieces) == len(reference(data)) == 10


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (small_model(trainer={3: 3}), "trainer_spec.model_type: a model of words"),
        (small_model(trainer={3: 4}), "trainer_spec.model_type: a model of characters"),
        (small_model(trainer={3: 9}), "trainer_spec.model_type: a model of 9"),
        (small_model(piece("<s>", -1.0), trainer={3: 1}), "pieces[9]: '<s>' is pieces[1] already"),
        (
            small_model() + field(5, field(2, charsmap({"a": "b"}))),
            "denormalizer_spec: a precompiled_charsmap, which changes decoded text",
        ),
    ],
)
def test_what_only_sentencepiece_takes(data, message):
    reference(data)
    assert refused(data, UnsupportedTokenizerError) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "pieces: 0 of type unknown; exactly one is needed"),
        (small_model(piece("b", float("nan"))), f"pieces[9]: a score that is no number at byte {MORE + 2}"),
        (small_model(piece(b"\xff")), f"pieces[9]: a piece that is not UTF-8 at byte {MORE + 2}"),
        (small_model(piece("c", 0.0, 7)), f"pieces[9]: type 7 at byte {MORE + 2}"),
        (small_model(field(1, field(1, "q") + field(2, 5))), f"pieces[9]: score of wire type 0 at byte {MORE + 5}"),
        (small_model(field(1, field(1, 5))), f"pieces[9]: piece of wire type 0 at byte {MORE + 2}"),
        (small_model(field(1, 5)), f"model: pieces of another type at byte {MORE}"),
        (small_model() + b"\x0a", f"model: a number is cut off at byte {END + 1}"),
        (small_model() + b"\x12\x02\x18\x80", f"trainer_spec: a number is cut off at byte {END + 3}"),
        (small_model() + field(2, 5), f"trainer_spec: wire type 0 at byte {END}"),
        (small_model(trainer={35: "x"}), f"trainer_spec.byte_fallback: wire type 2 at byte {MORE + 4}"),
        (small_model(trainer={44: b"\xe2\x81"}), f"trainer_spec.unk_surface: not UTF-8 at byte {MORE + 7}"),
    ],
)
def test_damage(data, message):
    assert refused(data) == message


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (b"\1", "a trie of 0 bytes in 1"),
        (b"\0\0\0\0abc", "a trie of 0 bytes in 7"),
        (b"\5\0\0\0abcde", "a trie of 5 bytes in 9"),
        (b"\x08\0\0\0abcd", "a trie of 8 bytes in 8"),
        (charsmap({"a": "b"})[:-1] + b"\xff", "the replacements are not UTF-8"),
    ],
)
def test_a_damaged_character_map(rules, message):
    spec = read(small_model(normalizer={2: rules}))
    with pytest.raises(TokenizerFileError) as caught:
        normalizer_core(spec.normalizer)
    assert str(caught.value) == "precompiled_charsmap: " + message


# -- the whole way -----------------------------------------------------------------------------------------------------

TEXTS = CASES["texts"]


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "normalization_rule_name": "identity",
            "byte_fallback": True,
            "vocab_size": 400,
            "remove_extra_whitespaces": False,
        },
        {"user_defined_symbols": USER_DEFINED, "add_dummy_prefix": False},
        {"treat_whitespace_as_suffix": True, "user_defined_symbols": ["<sep>"]},
    ],
)
def test_ids_offsets_and_text_are_those_of_sentencepiece(model_type, options):
    raw = train(**{"model_type": model_type, "vocab_size": 120, **options})
    processor, tok = reference(raw), Tokenizer.from_bytes(raw, "sentencepiece")
    pick = random.Random(7)
    for text in [*TEXTS, *("".join(pick.choices("".join(TEXTS), k=pick.randint(1, 20))) for _ in range(400))]:
        wanted = processor.encode(text, return_type="offset_mapping")
        encoded = tok.encode_with_offsets(text, parse_special=False)
        assert encoded.ids == tok.encode(text, parse_special=False) == wanted["ids"], ascii(text)
        assert encoded.offsets == wanted["offsets"], ascii(text)
        assert tok.decode(encoded.ids) == processor.decode(wanted["ids"]), ascii(text)


def test_control_pieces_are_matched_unless_text_is_plain_data():
    tok = Tokenizer.from_bytes(small_model(), "sentencepiece")
    assert tok.encode("<s>ab ab</s>") == [1, 8, 8, 2]
    assert tok.encode("a<s>", parse_special=False) == reference(small_model()).encode("a<s>")
    assert (tok.bos_id, tok.unk_id, tok.pad_id, tok.eos_ids) == (1, 0, None, {2})
    assert tok.encode("ab", add_bos=True, add_eos=True) == [1, 8, 2]
    assert tok.encode("ab") == [8]


def test_a_folder_is_encoded_as_its_config_says(folder_with_a_config):
    tok = Tokenizer.from_file(folder_with_a_config)
    assert tok.encode("b<s>  b <mask>") == [1, 3, 5, 1, 3, 5, 12]
    assert tok.special_tokens == {"<s>": 1, "</s>": 2, "<pad>": 9, "<cls>": 13}
    assert (tok.pad_id, tok.eos_ids, tok.vocab_size) == (9, {2}, 14)


# -- finding files -----------------------------------------------------------------------------------------------------


def test_a_model_is_known_by_its_content(tmp_path):
    for name in ("tokenizer.model", "spiece.model", "other"):
        (tmp_path / name).write_bytes(small_model())
        assert read_file(tmp_path / name).source == "SentencePiece model"
    assert read_file(tmp_path).source == "SentencePiece model"
    (tmp_path / "tokenizer.model").write_bytes(b"IQ== 0\n")
    with pytest.raises(UnsupportedTokenizerError, match=r"tokenizer.model: a rank file 'tokenizer.model' says nothing"):
        read_file(tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"IQ== 0\n", b"\n\nIQ== 0\n", b"\nIQ== 0\n" * 40, b"\x0a\x05hello", b"\x0a\xff"]
)
def test_what_is_no_model(data):
    assert not looks_like(data)


def test_a_rank_file_that_begins_with_an_empty_line_stays_one():
    data = b"\n" + b"".join(b"%s %d\n" % (token, i) for i, token in enumerate([b"IQ==", b"Ig==", b"Iw=="] * 1))
    assert not looks_like(data)
    assert len(tiktoken.read(data, pattern="x").model.ranks) == 3


@pytest.fixture
def folder_with_a_config(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(small_model())
    config = {
        "added_tokens_decoder": {
            "1": {"content": "<s>", "lstrip": False, "normalized": True, "rstrip": True, "special": False},
            "4": {"content": "a", "normalized": False},
            "9": {"content": "<pad>", "special": True},
            "12": {"content": "<mask>", "normalized": True, "lstrip": True},
        },
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "cls_token": "<cls>",
        "unk_token": "<unk>",
        "add_bos_token": True,
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def test_a_folder_with_a_config(folder_with_a_config):
    spec = read_file(folder_with_a_config)
    assert spec.added_tokens == (
        AddedToken("<s>", id=1, rstrip=True, special=True),
        AddedToken("</s>", id=2, special=True),
        AddedToken("a", id=4),
        AddedToken("<pad>", id=9, special=True),
        AddedToken("<mask>", id=12, lstrip=True),
        AddedToken("<cls>", special=True),
    )
    assert spec.add_bos is True
    assert spec.special_roles["pad_token"] == "<pad>"
    assert spec.special_roles["bos_token"] == "<s>"
    assert with_real_ids(spec.added_tokens, spec.model)[-1].id == 13
    assert with_real_ids(spec.added_tokens, spec.model)[:-1] == spec.added_tokens[:-1]


FLAGS = [{}, {"add_bos_token": True}, {"add_bos_token": True, "add_eos_token": True}, {"add_bos_token": False}]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("roles", [{}, {"bos_token": "<s>", "eos_token": {"__type": "AddedToken", "content": "</s>"}}])
@pytest.mark.parametrize("model", ["llama-2", "sp-test-unigram-en", "mistral-7b-v0.3"])
def test_a_folder_has_the_ids_of_sentencepiece_and_the_flags_of_its_config(data, tmp_path, model, roles, flags):
    path = data(f"tokenizers/{model}/tokenizer.model")
    (tmp_path / "tokenizer.model").symlink_to(path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer", **roles, **flags}))
    ours, theirs = Tokenizer.from_file(tmp_path), sentencepiece.SentencePieceProcessor(model_file=str(path))
    around = {"add_bos": flags.get("add_bos_token", False), "add_eos": flags.get("add_eos_token", False)}
    for text in ("", "Hello world", " naïve  日本 </s>"):
        assert ours.encode(text, parse_special=False) == theirs.encode(text, **around)
        assert ours.encode(text, parse_special=False, add_special_tokens=False) == theirs.encode(text)


def test_flags_of_a_folder_ask_for_tokens_that_are_no_pieces(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(small_model())
    config = {"bos_token": "<b>", "eos_token": "<e>", "add_bos_token": True, "add_eos_token": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = Tokenizer.from_file(tmp_path)
    assert tok.encode("") == [tok.bos_id, min(tok.eos_ids)] == [tok.vocab_size - 2, tok.vocab_size - 1]


def test_a_flag_of_a_folder_without_its_token(tmp_path):
    model = small_model(trainer={46: "<none>"})
    (tmp_path / "tokenizer.model").write_bytes(model)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": True}))
    with pytest.raises(
        TokenizerFileError, match=r"tokenizer_config.json: add_bos_token is set and there is no bos_token$"
    ):
        read_file(tmp_path)


def test_ids_beside_a_model():
    model = read(small_model()).model

    def ids(*tokens):
        return [t.id for t in with_real_ids(tokens, model)]

    assert ids(
        AddedToken("a", id=7), AddedToken("<x>", id=20), AddedToken("<y>"), AddedToken("ab"), AddedToken("<z>")
    ) == [*(4, 20, 21, 7, 22)]
    assert ids(AddedToken("<x>")) == [9]
    for tokens, message in [
        ([AddedToken("<x>", id=4)], r"^special token '<x>' has the id 4 of 'a'$"),
        ([AddedToken("<x>", id=9), AddedToken("<y>", id=9)], r"^special token '<y>' has the id 9 of '<x>'$"),
        ([AddedToken("<x>", id=-1)], r"^special token '<x>' has no valid id \(-1\)$"),
    ]:
        with pytest.raises(TokenizerFileError, match=message):
            ids(*tokens)


def test_specs_compare_and_are_replaced():
    spec = read(small_model())
    assert replace(spec, source="x") != spec == read(small_model())


# -- hostile files -----------------------------------------------------------------------------------------------------


def test_a_trie_that_leads_back_to_itself():
    rules = bytearray(charsmap({"aa": "x"}))
    units = [int.from_bytes(rules[4 + 4 * i : 8 + 4 * i], "little") for i in range(256)]
    first = (units[0] >> 10) ^ ord("a")
    assert units[first] & 0xFF == ord("a")
    back = (first ^ units[0] >> 10) << 10  # from there to the root's children again
    rules[4 + 4 * first : 8 + 4 * first] = (units[first] & 0x1FF | back).to_bytes(4, "little")
    with pytest.raises(TokenizerFileError, match=rf"^precompiled_charsmap: the trie has a cycle at unit {first}$"):
        _core.Precompiled(bytes(rules))


def test_an_edited_model_is_what_sentencepiece_reads():
    model = edited(train(vocab_size=120), 3, {3: 0, 4: 0})
    spec = read(model)
    assert spec.normalizer.add_dummy_prefix is spec.normalizer.remove_extra_whitespaces is False
    assert normalizer_core(spec.normalizer).normalize("  a ①") == reference(model).normalize("  a ①") == "▁▁a▁1"
