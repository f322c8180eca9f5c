"""Files beside a tokenizer.json, and finding the tokenizer in a folder."""

from __future__ import annotations

import json

import msgspec
import pytest
import transformers
from case_tables import cases

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.folder import read_chat_templates
from tokenweir.encode.spec import TemplateProcessing
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)


@pytest.fixture
def folder(tmp_path, tokenizer_json):
    """Writes a model folder: tokenizer.json and whatever files are given by name, `.json` being left out."""

    def write(*, added=({"content": "<s>", "special": True}, {"content": "</s>", "special": True}), **files):
        (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json(added=added)))
        for name, content in files.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content))
        return tmp_path

    return write


BOS, EOS, NEXT = 275, 276, 277


def test_the_folder_and_the_file_are_the_same(folder):
    path = folder(tokenizer_config={"bos_token": "<s>"})
    for place in (path, str(path), path / "tokenizer.json"):
        assert Tokenizer.from_file(place).bos_id == BOS


def test_two_end_tokens_as_command_r_has_them(tmp_path, tokenizer_json):
    """One of the post-processor's end tokens is special by its role alone, and a flag of the config contradicts it."""
    added = [{"content": "<BOS>", "special": True}, {"content": "<END_OF_TURN>"}, {"content": "<EOS>", "special": True}]
    ids = {"<BOS>": BOS, "<END_OF_TURN>": EOS, "<EOS>": NEXT}
    around = TemplateProcessing.around([("<BOS>", BOS)], [("<END_OF_TURN>", EOS), ("<EOS>", NEXT)])
    processor = json.loads(msgspec.json.encode(around)) | {"pair": []}
    file = tokenizer_json(added=[token | {"id": ids[token["content"]]} for token in added], post_processor=processor)
    (tmp_path / "tokenizer.json").write_text(json.dumps(file))
    config = {"bos_token": "<BOS>", "eos_token": "<END_OF_TURN>", "add_bos_token": True, "add_eos_token": False}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = Tokenizer.from_file(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert tok.encode("a") == theirs.encode("a") == [BOS, 97, EOS, NEXT]
    assert tok.decode([97, EOS]) == theirs.decode([97, EOS], skip_special_tokens=True) == "a"
    assert tok.encode("a", add_eos=False) == [BOS, 97]
    assert tok.encode("a", add_eos=True) == [BOS, 97, EOS, NEXT]
    assert tok.encode("a", add_special_tokens=False, add_eos=True) == [97, EOS]


@pytest.mark.parametrize("flags", [{}, {"add_bos_token": True}, {"add_bos_token": True, "add_eos_token": False}])
def test_flags_of_the_config_are_reported_and_not_applied(folder, flags):
    tok = Tokenizer.from_file(folder(tokenizer_config={"bos_token": "<s>", "eos_token": "</s>", **flags}))
    assert (tok.spec.add_bos, tok.spec.add_eos) == (flags.get("add_bos_token"), flags.get("add_eos_token"))
    assert tok.encode("a") == [97]
    assert tok.encode("a", add_bos=True, add_eos=True) == [BOS, 97, EOS]
    assert tok.encode("a", add_special_tokens=False, add_bos=True) == [BOS, 97]
    assert tok.encode("a", add_bos=False, add_eos=False) == [97]


@pytest.mark.parametrize(
    ("files", "eos_ids"),
    [
        ({"generation_config": {"eos_token_id": 7}}, {7}),
        ({"generation_config": {"eos_token_id": [7, 9]}}, {7, 9}),
        ({"generation_config": {"eos_token_id": None}, "config": {"eos_token_id": 8}}, {8}),
        ({"config": {"text_config": {"eos_token_id": [3]}}}, {3}),
        ({"config": {"eos_token_id": 8, "text_config": {"eos_token_id": [3]}}}, {3, 8}),
        ({"tokenizer_config": {"eos_token": "<s>"}, "generation_config": {"eos_token_id": 7}}, {7, BOS}),
    ],
)
def test_every_file_may_name_end_tokens(folder, files, eos_ids):
    tok = Tokenizer.from_file(folder(**files))
    assert tok.eos_ids == eos_ids
    assert all(map(tok.is_eos, eos_ids)) and not tok.is_eos(97)
    assert not tok.eos_inferred


def test_end_tokens_are_inferred_where_no_file_names_one(folder):
    tok = Tokenizer.from_file(folder())
    assert (tok.eos_ids, tok.eos_inferred) == ({EOS}, True)
    alone = Tokenizer.from_bytes((folder() / "tokenizer.json").read_bytes(), "huggingface")
    assert (alone.eos_ids, alone.eos_inferred) == ({EOS}, True)
    none = Tokenizer.from_file(folder(added=[{"content": "</s>", "special": False}]))
    assert (none.eos_ids, none.eos_inferred) == (frozenset(), True)


@pytest.mark.parametrize("config", [{"vocab_size": 300}, {"vocab_size": 5, "text_config": {"vocab_size": 300}}])
def test_rows_of_padding(folder, config):
    tok = Tokenizer.from_file(folder(config=config))
    assert tok.vocab_size == 300
    assert tok.decode([97, 299]) == "a"


def test_a_model_with_fewer_rows_than_tokens_does_not_hide_any(folder):
    assert Tokenizer.from_file(folder(config={"vocab_size": 100})).vocab_size == 277


@pytest.mark.parametrize(("files", "message"), CASES["impossible"])
def test_files_that_say_something_impossible(folder, files, message):
    with pytest.raises(TokenizerFileError, match=message):
        Tokenizer.from_file(folder(**json.loads(files)))


def test_more_ids_than_fit(folder):
    with pytest.raises(UnsupportedTokenizerError, match=r"^2097152 ids; at most 1048575 fit$"):
        Tokenizer.from_file(folder(config={"vocab_size": 2**21}))


@pytest.mark.parametrize("content", [b"{", b"\xff", b"", b"[" * 100_000, b'{"a": ' * 100_000])
def test_files_that_are_not_json(folder, content):
    path = folder()
    (path / "tokenizer_config.json").write_bytes(content)
    with pytest.raises(TokenizerFileError, match=r"tokenizer_config.json: "):
        Tokenizer.from_file(path)


def test_chat_templates_and_which_comes_first(folder):
    path = folder(tokenizer_config={"chat_template": "from the config"})
    assert Tokenizer.from_file(path).spec.chat_templates == {"default": "from the config"}
    (path / "additional_chat_templates").mkdir()
    (path / "additional_chat_templates" / "rag.jinja").write_text("rag")
    (path / "chat_template.jinja").write_text("from its own file")
    assert read_chat_templates(path) == {"default": "from its own file", "rag": "rag"}


def test_named_chat_templates_in_the_config(folder):
    listed = [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]
    assert read_chat_templates(folder(tokenizer_config={"chat_template": listed})) == {"default": "a", "tool_use": "b"}


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(
        TokenizerFileError, match=r"no tokenizer.json, tekken.json, SentencePiece, rank or GGUF file in this folder$"
    ):
        Tokenizer.from_file(tmp_path)
    with pytest.raises(TokenizerFileError, match=r"missing.json: No such file or directory$"):
        Tokenizer.from_file(tmp_path / "missing.json")


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model", "cl100k_base.tiktoken", "vocab.gguf"])
def test_an_empty_file(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(TokenizerFileError, match=rf"{name}: the file is empty$"):
        Tokenizer.from_file(tmp_path / name)


def test_a_folder_with_two_rank_files_is_ambiguous(tmp_path):
    for name in ("b.tiktoken", "a.tiktoken"):
        (tmp_path / name).touch()
    with pytest.raises(TokenizerFileError, match=r"which of a.tiktoken, b.tiktoken\? Name one$"):
        Tokenizer.from_file(tmp_path)


@pytest.mark.parametrize("name", ["spiece.model", "sentencepiece.bpe.model", "tokenizer.model"])
def test_sentencepiece_models_by_the_names_of_their_files(data, tmp_path, name):
    model = data("tokenizers/llama-2/tokenizer.model").read_bytes()
    (tmp_path / name).write_bytes(model)
    assert Tokenizer.from_file(tmp_path).encode("a b") == Tokenizer.from_bytes(model, "sentencepiece").encode("a b")


@pytest.mark.parametrize(
    "name", ["XLMRobertaTokenizer", "XLMRobertaTokenizerFast", "PegasusTokenizer", "AlbertTokenizer"]
)
def test_a_class_that_changes_a_sentencepiece_models_ids_is_refused(data, tmp_path, name):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(data("tokenizers/llama-2/tokenizer.model").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    with pytest.raises(
        UnsupportedTokenizerError, match=rf"sentencepiece.bpe.model: tokenizer_config.json: {name} gives"
    ):
        Tokenizer.from_file(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer"}))
    Tokenizer.from_file(tmp_path)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(TokenizerFileError, match=rf"^{path}: the file: Object missing required field `model`$"):
        Tokenizer.from_file(path)
    path.write_text('{"model": {"type": "WordLevel"}}')
    with pytest.raises(UnsupportedTokenizerError, match=rf"^{path}: model: 'WordLevel'$"):
        Tokenizer.from_file(path)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("model.gguf", b"GGUF" + bytes(20), "a GGUF file of version 0"),
        ("tokenizer.model", b"\n\x09\n\x05<unk>\x18\x02\n\x07\n\x03<s>\x18", "6 are left at byte 13"),
        ("tekken.json", b"{}", "config"),
    ],
)
def test_formats_are_found_by_content(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    for path in (tmp_path / name, tmp_path):
        with pytest.raises((TokenizerFileError, UnsupportedTokenizerError), match=rf"^{tmp_path / name}: .*{message}"):
            Tokenizer.from_file(path)


def test_a_file_that_is_too_large(tmp_path):
    path = tmp_path / "tokenizer.json"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)  # sparse: it takes no room
    with pytest.raises(TokenizerFileError, match=r"1073741825 bytes; at most 1073741824 are read$"):
        Tokenizer.from_file(path)


@pytest.mark.parametrize("format", ["huggingface", "sentencepiece", "tekken"])
def test_options_are_for_rank_files(folder, format):
    for options in ({"pattern": "x"}, {"special_tokens": {}}):
        message = rf"^{next(iter(options))} is for rank files; a .* has its own$"
        with pytest.raises(ValueError, match=message):
            Tokenizer.from_bytes(b"", format, **options)
        with pytest.raises(ValueError, match=message):
            Tokenizer.from_file(folder(), **options)


def test_an_unknown_format():
    with pytest.raises(ValueError, match=r"^format must be one of gguf, .*, tiktoken, not 'gpt'$"):
        Tokenizer.from_bytes(b"", "gpt")
