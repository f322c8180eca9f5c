"""Post-processors, alone and one after the other: ids and offsets are HuggingFace's."""

from __future__ import annotations

import json
import random

import pytest
import tokenizers
from full_run import share
from msgspec.structs import replace

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import TemplateProcessing
from tokenweir.encode.tokenizer import Tokenizer

PARTS = ["a", "b", "ab", " ", "  ", "\t", "\xa0", "\u3000", "é", "日", "<s>", "</s>", "<l>", "\x85", "\n", " a"]
WORDS = ["ab", " a", "  ", "   ", "é", " b", "日", " \t", "a ", "\u3000"]
ADDED = [
    {"content": "<s>", "special": True},
    {"content": "</s>", "special": True},
    {"content": "<l>", "lstrip": True, "rstrip": True},
    {"content": "\u3000 "},
]


IDS = {"<s>": 268, "</s>": 269}


def around(kind, first="<s>", last="</s>", **options):
    """`kind` is BertProcessing or RobertaProcessing; `first` and `last` go around the text."""
    return {"type": kind, "cls": [first, IDS[first]], "sep": [last, IDS[last]], **options}


def template(*names):
    pieces = [
        {"Sequence": {"id": "A", "type_id": 0}} if n == "$A" else {"SpecialToken": {"id": n, "type_id": 0}}
        for n in names
    ]
    special = {n: {"id": n, "ids": [IDS[n]], "tokens": [n]} for n in names if n != "$A"}
    return {"type": "TemplateProcessing", "single": pieces, "pair": [], "special_tokens": special}


def byte_level(trim, prefix):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": True}


def in_turn(*processors):
    return {"type": "Sequence", "processors": list(processors)}


BERT = around("BertProcessing")
TRIMS = [{"trim_offsets": trim, "add_prefix_space": prefix} for trim in (True, False) for prefix in (True, False)]
ALONE = [BERT, around("BertProcessing", "</s>", "<s>"), *(around("RobertaProcessing", **options) for options in TRIMS)]
AFTER = [*ALONE, template("$A"), byte_level(True, True), byte_level(True, False), byte_level(False, True)]
BESIDE = [template("<s>", "$A", "</s>"), template("$A", "</s>")]


def check(ours, theirs, text):
    for add in (True, False):
        expected = theirs.encode(text, add_special_tokens=add)
        found = ours.encode_with_offsets(text, add_special_tokens=add)
        assert (found.ids, found.offsets) == (expected.ids, expected.offsets), text
        assert ours.encode(text, add_special_tokens=add) == expected.ids


def compare(both, post_processor, pick, texts):
    prefix_space = pick.random() < 0.5
    pre_tokenizer = {**byte_level(True, prefix_space), "use_regex": pick.random() < 0.7}
    ours, theirs = both(words=WORDS, added=ADDED, post_processor=post_processor, pre_tokenizer=pre_tokenizer)
    assert ours.special_tokens == IDS
    for _ in range(texts):
        check(ours, theirs, "".join(pick.choice(PARTS) for _ in range(pick.randint(0, 7))))


@pytest.mark.parametrize("post_processor", ALONE)
def test_alone(both, post_processor):
    for case in range(4):
        compare(both, post_processor, random.Random(f"alone {case}"), texts=100)


def test_in_any_order(both):
    for case in range(share(720)):
        pick = random.Random(f"turn {case}")
        parts = [pick.choice(AFTER) for _ in range(pick.randint(0, 4))]
        if pick.random() < 0.5:  # a template with tokens is last; only trimming may follow
            parts = [*parts, pick.choice(BESIDE), *pick.choices([p for p in AFTER if p["type"] == "ByteLevel"], k=2)]
        if pick.random() < 0.3 and len(parts) > 2:
            parts[1:3] = [in_turn(*parts[1:3])]
        compare(both, in_turn(*parts), pick, texts=15)


@pytest.mark.parametrize(
    ("post_processor", "error", "message"),
    [
        (in_turn(BESIDE[0], BERT), UnsupportedTokenizerError, "^post_processor: BertProcessing after a template$"),
        (
            in_turn(in_turn(BESIDE[1]), byte_level(True, True), ALONE[-1]),
            UnsupportedTokenizerError,
            "^post_processor: RobertaProcessing after a template$",
        ),
        (
            in_turn(BESIDE[0], template("$A")),
            UnsupportedTokenizerError,
            "^post_processor: TemplateProcessing after a template$",
        ),
        (
            {**BERT, "sep": ["</s>", 999]},
            TokenizerFileError,
            r"^post_processor: token id 999 is outside the vocabulary \(0 to 271\)$",
        ),
        ({**BERT, "cls": ["<s>", -1]}, TokenizerFileError, r"^post_processor: token id -1 is outside"),
        ({**BERT, "cls": "<s>"}, TokenizerFileError, r"^post_processor.cls: Expected `array`, got `str`$"),
        ({**BERT, "cls": ["<s>"]}, TokenizerFileError, r"^post_processor.cls: Expected `array` of length 2$"),
        ({"type": "RobertaProcessing"}, TokenizerFileError, "^post_processor: Object missing required field `sep`$"),
        # The library would read either as the other.
        (
            around("RobertaProcessing", trim_offsets=True),
            TokenizerFileError,
            "^post_processor: Object missing required field `add_prefix_space`$",
        ),
        (
            {**BERT, "trim_offsets": True, "add_prefix_space": True},
            TokenizerFileError,
            "^post_processor: Object contains unknown field `trim_offsets`$",
        ),
    ],
)
def test_what_is_refused(small, post_processor, error, message):
    with pytest.raises(error, match=message):
        small(words=WORDS, added=ADDED, post_processor=post_processor)


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_unknown_text_of_unigram_is_trimmed_as_text(small, tokenizer_json, byte_fallback):
    vocab = [["<unk>", 0.0], ["a", -1.0], [" a", -1.5]]
    model = {"type": "Unigram", "unk_id": 0, "byte_fallback": byte_fallback, "vocab": vocab}
    added = [{"content": " B", "normalized": True}]
    for lowercase in (None, {"type": "Lowercase"}):
        source = tokenizer_json(added=added, normalizer=lowercase, post_processor=byte_level(True, False), decoder=None)
        source |= {"model": model, "pre_tokenizer": None}
        ours, theirs = small(source), tokenizers.Tokenizer.from_str(json.dumps(source))
        for text in ("a\r\na", "\r\n", " x ", "  a a", "a b", "x B\n", "x  b  x", "\u3000é\xa0a"):
            check(ours, theirs, text)


@pytest.mark.parametrize("type_id", ["0", -1, 1 << 32, None])
@pytest.mark.parametrize("way", ["single", "pair"])
def test_a_type_id_of_a_template_is_a_number(way, type_id):
    template = replace(TemplateProcessing.around([], []), **{way: ({"Sequence": {"id": "A", "type_id": type_id}},)})
    with pytest.raises(TokenizerFileError) as caught:
        Tokenizer.from_spec(replace(Tokenizer.default().spec, post_processor=template))
    assert str(caught.value) == f"post_processor: a type_id of the template is {type_id!r}"
