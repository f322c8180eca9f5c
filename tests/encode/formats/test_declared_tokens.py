"""A model folder has the ids and texts of `PreTrainedTokenizerFast.from_pretrained`, whatever the files beside it say."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import tokenizers
import transformers
from case_tables import cases
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

LINES = [
    "the quick brown fox",
    "jumps over the lazy dog",
    "<s> naïve café </s>",
    "[CLS] x [SEP] 日本 12",
    "Ab aB ab",
] * 6
CONTENTS = CASES["contents"]
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
ROLES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "image_token"]
TEXTS = [
    "",
    "the fox",
    *(content * 2 + "a" for content in CONTENTS),
    "<s>the  quick</s> <A><a> ab É e\u0301 <image>",
    " x x  x",
]


def flagged(contents):
    return st.fixed_dictionaries({"content": contents}, optional=dict.fromkeys(FLAGS, st.booleans()))


contents = st.sampled_from(CONTENTS)
marked = flagged(contents).map(lambda token: {"__type": "AddedToken", **token})
named = contents | marked
listed = st.lists(flagged(contents), max_size=4)
extra = st.lists(named, max_size=3) | st.dictionaries(
    st.sampled_from(["audio_token", "x", "bos_token"]), named, max_size=2
)
roles = st.fixed_dictionaries({}, optional=dict.fromkeys(ROLES, named | st.none()))
configs = st.builds(
    lambda *parts: {key: value for part in parts for key, value in part.items()},
    roles,
    st.fixed_dictionaries({}, optional={"add_bos_token": st.booleans(), "add_eos_token": st.booleans()}),
    st.fixed_dictionaries(
        {},
        optional={
            "added_tokens_decoder": st.dictionaries(st.integers(0, 70).map(str), flagged(contents), max_size=4),
            "extra_special_tokens": extra,
            "additional_special_tokens": st.lists(named, max_size=2),
        },
    ),
)
token_maps = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(ROLES, contents | flagged(contents)),
        "additional_special_tokens": st.lists(contents, max_size=2),
        "extra_special_tokens": st.lists(contents | flagged(contents), max_size=2),
    },
)
files = st.fixed_dictionaries(
    {},
    optional={
        "tokenizer_config": configs,
        "special_tokens_map": token_maps,
        "added_tokens": st.dictionaries(contents, st.integers(0, 70), max_size=3),
    },
)


@cache
def trained(kind):
    """A small tokenizer of each model, as text."""
    match kind:
        case "byte-level BPE":
            tok = tokenizers.Tokenizer(models.BPE())
            tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tok.decoder = decoders.ByteLevel()
            trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        case "BPE":
            tok = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
            tok.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(" ", "\u2581")])
            tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.Fuse()])
            trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=["<unk>", "</s>"])
        case "Unigram":
            tok = tokenizers.Tokenizer(models.Unigram())
            tok.pre_tokenizer = pre_tokenizers.Metaspace()
            tok.decoder = decoders.Metaspace()
            trainer = trainers.UnigramTrainer(vocab_size=60, special_tokens=["<unk>", "<s>"], unk_token="<unk>")
        case _:
            tok = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
            tok.normalizer = normalizers.BertNormalizer(lowercase=True)
            tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            tok.decoder = decoders.WordPiece()
            trainer = trainers.WordPieceTrainer(vocab_size=70, special_tokens=["[UNK]", "[CLS]"])
    tok.train_from_iterator(LINES, trainer)
    return tok.to_str()


POST_PROCESSORS = {
    "none": None,
    "bytes": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
    "BERT": {"type": "BertProcessing", "sep": ["1", 1], "cls": ["0", 0]},
    "template": {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "0", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "1", "type_id": 0}},
            {"SpecialToken": {"id": "2", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {str(i): {"id": str(i), "ids": [i], "tokens": [str(i)]} for i in range(3)},
    },
}
PADDING = {
    "strategy": "BatchLongest",
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "<pad>",
}
tokenizer_files = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["byte-level BPE", "BPE", "Unigram", "WordPiece"]),
        "added": listed,
        "post_processor": st.sampled_from(list(POST_PROCESSORS.values())),
        "padding": st.sampled_from([None, None, PADDING]),
    }
)


def written(folder, tokenizer, beside):
    """Write a model folder; the ids in tokenizer.json are those in use, as in every file that the library saves."""
    tok = tokenizers.Tokenizer.from_str(trained(tokenizer["kind"]))
    tok.add_tokens([tokenizers.AddedToken(**token) for token in tokenizer["added"]])
    file = json.loads(tok.to_str()) | {key: tokenizer.get(key) for key in ("post_processor", "padding")}
    (folder / "tokenizer.json").write_text(json.dumps(file))
    for name, content in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def theirs_of(folder):
    """The reference; None if it refuses the folder."""
    try:
        return transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    except (TypeError, AttributeError, KeyError, RecursionError):
        return None


def check(ours, theirs, texts):
    backend = theirs.backend_tokenizer
    backend.no_padding()
    added = {token.content: token.id for token in ours.added_tokens if token.id is not None}
    assert added == theirs.get_added_vocab()
    assert ours.spec.special_roles == theirs.special_tokens_map
    named = {role: backend.token_to_id(token) for role, token in theirs.special_tokens_map.items()}
    assert [ours.bos_id, ours.unk_id, ours.pad_id] == [named.get(f"{role}_token") for role in ("bos", "unk", "pad")]
    assert ours.eos_ids >= {i for i in [named.get("eos_token")] if i is not None}
    rows = []
    for text in texts:
        for special in (True, False):
            expected = reference(theirs, text, special)
            assert expected is None or ours.encode(text, add_special_tokens=special) == expected, (text, special)
            rows += [expected] if expected else []
    rows += [[i, *added.values()] for i in range(len(theirs))]
    for ids in rows:
        for skip in (True, False):
            expected = backend.decode(ids, skip_special_tokens=skip)
            assert ours.decode(ids, skip_special_tokens=skip, byte_fallback="huggingface") == expected, (ids, skip)


def reference(theirs, text, special):
    """The reference's ids; None where the library panics, as on a match that `lstrip` moves behind its own end."""
    try:
        return theirs.encode(text, add_special_tokens=special)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None


@given(tokenizer_files, files)
@example(  # an id that both files give
    {"kind": "BPE", "added": []},
    {"added_tokens": {"the": 0}, "special_tokens_map": {"bos_token": {"content": "the", "single_word": True}}},
)
@example(  # special by its role alone
    {"kind": "byte-level BPE", "added": [{"content": "<s>"}]}, {"tokenizer_config": {"bos_token": "<s>"}}
)
@example(  # a flag that depends on another where it is left out
    {"kind": "byte-level BPE", "added": [{"content": "x "}]},
    {"tokenizer_config": {"bos_token": {"__type": "AddedToken", "content": " x"}}},
)
@example(  # two roles that share a name
    {"kind": "Unigram", "added": [{"content": "<a>"}]},
    {"tokenizer_config": {"cls_token": " x", "pad_token": "<pad>", "extra_special_tokens": {"bos_token": "ab"}}},
)
def test_any_folder_is_transformers(tokenizer, beside):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, tokenizer, beside)
        theirs = theirs_of(folder)
        assume(theirs is not None)
        try:
            ours = Tokenizer.from_file(folder)
        except UnsupportedTokenizerError as error:
            assume("spell" not in str(error) and "have one id" not in str(error))
            raise
        check(ours, theirs, TEXTS)
