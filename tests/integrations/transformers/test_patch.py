"""`patch_transformers`: an unmodified program gets the same from every call, from tokenweir."""

from __future__ import annotations

import copy
import copyreg
import pickle
import shutil
import sys

import numpy as np
import pytest
from case_tables import cases

import tokenweir
from tokenweir import integrations
from tokenweir.integrations.transformers.backend import Original, is_backend
from tokenweir.integrations.transformers.patched_tokenizer import PatchedTokenizer

CASES = cases(__file__)

transformers = pytest.importorskip("transformers")

TEXTS = ["Hello world how are you <|im_end|> [MASK]", "a", "日本語 text, naïve", ""]
CALLS = CASES["calls"]
FOLDERS = ["qwen3", "bert-base-uncased", "t5-small"]


@pytest.fixture(scope="module", params=FOLDERS)
def pair(request, data):
    """A tokenizer under the patch, and one without."""
    folder = data(f"tokenizers/{request.param}")
    plain = transformers.AutoTokenizer.from_pretrained(folder)
    with tokenweir.patch_transformers():
        patched = transformers.AutoTokenizer.from_pretrained(folder)
    assert is_backend(patched._tokenizer) and type(plain._tokenizer) is Original
    return patched, plain


@pytest.mark.parametrize(
    "ids", [[5, 6, 7], [], [[5, 6], [7]], (5, 6), [5, np.int64(6)], [True, 5], np.array([5, 6]), 5, [[]]], ids=repr
)
def test_ids_of_every_kind_are_decoded(pair, ids, patched):
    assert pair[0].decode(ids) == pair[1].decode(ids)


def test_a_list_of_ints_is_decoded_without_a_look_at_each(pair, monkeypatch):
    """A streamer decodes the ids of its line at every id."""
    from transformers import tokenization_utils_base as base

    seen = []
    convert = base.to_py_obj
    monkeypatch.setattr(base, "to_py_obj", lambda ids: (seen.append(ids), convert(ids))[1])
    with tokenweir.patch_transformers():
        given = [5, 6, 7]
        assert base.to_py_obj(given) == given and base.to_py_obj(given) is not given
        assert seen == []
        pair[0].decode(given)
        pair[0].decode([given, given])
        assert seen == []
        pair[0].decode((5, 6))
        assert seen == [(5, 6)]


def plain_values(encoding):
    return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in encoding.items()}


@pytest.mark.parametrize("options", CALLS)
def test_every_call_gives_the_same(pair, options):
    if options.get("padding") and pair[1].pad_token is None:
        pair = [copy.deepcopy(tokenizer) for tokenizer in pair]
        for tokenizer in pair:
            tokenizer.add_special_tokens({"pad_token": "[PAD]"})
    batches = [(TEXTS,), (TEXTS, TEXTS[::-1])]
    words = [text.split() for text in TEXTS]
    integrations.report(reset=True)
    for args in batches:
        if len(args) == 2 and "stride" in options:
            options = {**options, "truncation": "only_first", "max_length": 24}
        found = [plain_values(tokenizer(*args, **options)) for tokenizer in pair]
        assert found[0] == found[1]
    found = [plain_values(tokenizer(words, is_split_into_words=True, **options)) for tokenizer in pair]
    assert found[0] == found[1]
    if "return_tensors" not in options:
        found = [plain_values(tokenizer(TEXTS[0], **options)) for tokenizer in pair]
        assert found[0] == found[1]
    reasons = {route.reason for route in integrations.report()}
    assert reasons == {"encode_special_tokens"} if options.get("split_special_tokens") else {None}


def test_places_of_words_and_characters(pair):
    found = []
    for tokenizer in pair:
        encoding = tokenizer([text.split() for text in TEXTS], is_split_into_words=True)
        places = [encoding.char_to_token(0, i, sequence_index=0) for i in range(4)]
        found.append([encoding.word_ids(i) for i in range(4)] + [encoding.tokens(i) for i in range(4)] + places)
        encoding = tokenizer(TEXTS)
        found[-1] += [encoding.token_to_chars(0, 1), encoding.word_to_tokens(0, 1), encoding.sequence_ids(0)]
    assert found[0] == found[1]


def test_decoding_and_tokens(pair):
    ids = [tokenizer(TEXTS)["input_ids"] for tokenizer in pair]
    assert ids[0] == ids[1]
    for skip in (True, False):
        texts = [tokenizer.batch_decode(ids[0], skip_special_tokens=skip) for tokenizer in pair]
        assert texts[0] == texts[1]
    tokens = [[tokenizer.convert_ids_to_tokens(ids[0][0]), tokenizer.tokenize(TEXTS[2])] for tokenizer in pair]
    assert tokens[0] == tokens[1]
    assert pair[0].convert_tokens_to_string(tokens[0][1]) == pair[1].convert_tokens_to_string(tokens[0][1])


def test_added_tokens_copies_pickles_and_saved_folders(pair, tmp_path):
    copies = [copy.deepcopy(tokenizer) for tokenizer in pair]
    for made in copies:
        made.add_tokens(["Hello w"])
        made.add_special_tokens({"additional_special_tokens": ["<new>"]})
    text = "Hello world <new>"
    assert copies[0](text)["input_ids"] == copies[1](text)["input_ids"] != pair[0](text)["input_ids"]
    unpickled = pickle.loads(pickle.dumps(copies[0]))
    assert is_backend(unpickled._tokenizer)
    assert unpickled(text)["input_ids"] == copies[1](text)["input_ids"]
    for number, made in enumerate(copies):
        made.save_pretrained(tmp_path / str(number))
    names = sorted(path.name for path in (tmp_path / "0").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "1").iterdir())
    for name in names:
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "0")(text) == copies[1](text)


def test_a_config_adds_tokens_and_the_post_processor_changes(data, tmp_path, patched):
    """Tokens that only the config has, such as those of Qwen 3.5, are in the object and not in tokenizer.json."""
    shutil.copytree(data("tokenizers/qwen3"), tmp_path / "x")
    integrations.report(reset=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "x", extra_special_tokens=["<tts>", "<audio>"])
    ids = tokenizer("a<tts>b")["input_ids"]
    assert tokenizer.convert_tokens_to_ids("<tts>") in ids
    tokenizer.add_bos_token, tokenizer.bos_token = False, "<|endoftext|>"
    tokenizer.add_eos_token = True
    assert tokenizer("a")["input_ids"][-1] == tokenizer.eos_token_id
    assert {route.reason for route in integrations.report() if route.name == "Qwen2Tokenizer"} == {None}


def test_tokenizers_from_before_the_patch_are_faster_too(data):
    tokenizer = transformers.AutoTokenizer.from_pretrained(data("tokenizers/qwen3"))
    ids = tokenizer(TEXTS)["input_ids"]
    assert type(tokenizer._tokenizer) is Original
    with tokenweir.patch_transformers():
        assert is_backend(tokenizer._tokenizer)
        assert tokenizer(TEXTS)["input_ids"] == ids
    assert tokenizer(TEXTS)["input_ids"] == ids


def test_pickles_under_the_patch_are_read_with_and_without_it(pair, data):
    original = Original.from_file(str(data("tokenizers/bert-base-uncased/tokenizer.json")))
    ids = pair[1](TEXTS)["input_ids"]
    with tokenweir.patch_transformers():
        from tokenizers import Tokenizer

        pickles = [pickle.dumps(each) for each in (pair[0], original, Tokenizer.from_str(original.to_str()))]
        within = [pickle.loads(each) for each in pickles]
    for one, raw, made in (within, [pickle.loads(each) for each in pickles]):
        assert one(TEXTS)["input_ids"] == ids
        assert type(raw) is Original and is_backend(made)
        assert raw.encode("a b").ids == made.encode("a b").ids == original.encode("a b").ids


def test_the_patch_is_undone(monkeypatch):
    import tokenizers
    import tokenizers.decoders
    from tokenizers import models
    from transformers.tokenization_utils_tokenizers import TokenizersBackend
    from transformers.utils import chat_template_utils

    owners = [
        (tokenizers, "Tokenizer"),
        (tokenizers.decoders, "DecodeStream"),
        (chat_template_utils, "_compile_jinja_template"),
        (chat_template_utils, "_render_with_assistant_indices"),
        (TokenizersBackend, "_tokenizer"),
    ]
    before = [vars(owner)[name] for owner, name in owners]
    tokenweir.patch_transformers()
    tokenweir.patch_transformers()  # changes nothing
    assert all(vars(owner)[name] is not value for (owner, name), value in zip(owners, before, strict=True))
    tokenweir.unpatch_transformers()
    tokenweir.unpatch_transformers()
    assert [vars(owner)[name] for owner, name in owners] == before
    assert type(PatchedTokenizer(models.BPE())) is Original  # for modules that were imported under the patch
    with tokenweir.patch_transformers(chat_templates=False):
        assert vars(chat_template_utils)["_compile_jinja_template"] is before[2]
    assert [vars(owner)[name] for owner, name in owners] == before
    assert Original not in copyreg.dispatch_table
    monkeypatch.delattr(TokenizersBackend, "_tokenizer")
    with tokenweir.patch_transformers():
        assert "_tokenizer" in vars(TokenizersBackend)
    assert "_tokenizer" not in vars(TokenizersBackend)


def test_an_inner_context_leaves_the_outer_patch():
    import tokenizers

    with tokenweir.patch_transformers():
        with tokenweir.patch_transformers():
            pass
        assert tokenizers.Tokenizer is PatchedTokenizer
    assert tokenizers.Tokenizer is not PatchedTokenizer


@pytest.mark.parametrize("module", ["transformers.tokenization_utils_tokenizers", "tokenizers.decoders"])
def test_a_missing_library_is_named(monkeypatch, module):
    import tokenizers

    monkeypatch.setitem(sys.modules, module, None)
    package = module.partition(".")[0]
    with pytest.raises(ImportError, match=rf"^patch_transformers\(\) needs {package}: pip install 'transformers>=5'$"):
        tokenweir.patch_transformers()
    assert tokenizers.Tokenizer is not PatchedTokenizer


def test_tokenizers_own_classes_under_the_patch(data, patched):
    from tokenizers import Tokenizer, models
    from tokenizers.decoders import DecodeStream

    path = data("tokenizers/qwen3/tokenizer.json")
    for made in (
        Tokenizer.from_file(str(path)),
        Tokenizer.from_str(path.read_text("utf-8")),
        Tokenizer.from_buffer(path.read_bytes()),
    ):
        assert type(made) is Tokenizer and isinstance(made, Tokenizer) and is_backend(made)
    assert isinstance(Original(models.BPE()), Tokenizer) and not isinstance("x", Tokenizer)
    assert Tokenizer(models.BPE()).get_vocab_size() == 0
    ids = made.encode("naïve 日本語").ids
    stream = DecodeStream(skip_special_tokens=True)
    assert "".join(stream.step(made, i) or "" for i in ids) == "naïve 日本語"
