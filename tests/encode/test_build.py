"""Building a tokenizer from a description, and errors that name what is not possible."""

from __future__ import annotations

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tokenweir.encode.components.pre_tokenize import GPT2_PATTERN
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import AddedToken, TokenizerSpec
from tokenweir.encode.tokenizer import Tokenizer, core_of

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SPLIT = {"type": "Split", "pattern": {"Regex": r"\s+|\S"}, "behavior": "Isolated", "invert": False}
A, SEQUENCE = {"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}


def in_a_row(*pre_tokenizers):
    return {"type": "Sequence", "pretokenizers": pre_tokenizers}


def template(*items, ids=(1,)):
    special_tokens = {"a": {"id": "a", "ids": ids, "tokens": ["a"]}}
    return {"type": "TemplateProcessing", "single": items, "pair": [], "special_tokens": special_tokens}


def test_the_patterns_are_kept(small):
    assert [a.pattern for a in core_of(small()).pre_tokenizer.automata] == [GPT2_PATTERN]
    tok = small(pre_tokenizer=in_a_row(SPLIT, in_a_row(SPLIT), BYTE_LEVEL | {"use_regex": True}))
    assert [a.pattern for a in core_of(tok).pre_tokenizer.automata] == [r"\s+|\S", r"\s+|\S", GPT2_PATTERN]
    assert {a.dialect for a in core_of(tok).pre_tokenizer.automata} == {"oniguruma"}
    assert core_of(small(pre_tokenizer=BYTE_LEVEL)).pre_tokenizer.automata == ()


class Unknown(Struct, tag="Unknown"):
    """A component that the spec might have one day."""


@pytest.mark.parametrize("place", ["model", "normalizer", "pre_tokenizer", "post_processor", "decoder"])
def test_a_component_that_no_step_is_known_for_is_never_skipped(small, place):
    with pytest.raises(AssertionError, match="unreachable"):
        Tokenizer.from_spec(replace(small().spec, **{place: Unknown()}))


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ({"pre_tokenizer": in_a_row(SPLIT | {"pattern": {"Regex": r"(a)\1"}}, BYTE_LEVEL)}, r"\\1"),
        ({"model": {"dropout": 0.1}}, r"^model: BPE with dropout = 0.1$"),
        ({"vocab": {"x y": -1}}, r"^token id -1; ids from 0 to 1048574 fit$"),
        ({"vocab": {"x y": 2**20 - 1}}, r"^token id 1048575; ids from 0 to 1048574 fit$"),
        ({"vocab": {"x y": 2**64}}, r"^a token id of more than 64 bits; ids from 0 to 1048574 fit$"),
        ({"added": [{"content": "x" * 4097}]}, r"^an added token of 4097 bytes; 1 to 4096 are possible$"),
        ({"post_processor": template(A)}, r"^post_processor: a template with 0 sequences instead of one$"),
        (
            {"post_processor": template(SEQUENCE, A, SEQUENCE)},
            r"^post_processor: a template with 2 sequences instead of one$",
        ),
        (
            {"post_processor": {"type": "Sequence", "processors": [template(A, SEQUENCE), template(SEQUENCE, A)]}},
            r"^post_processor: TemplateProcessing after a template$",
        ),
    ],
)
def test_what_is_not_reproduced_is_refused(small, components, message):
    with pytest.raises(UnsupportedTokenizerError, match=message):
        small(**components)


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ({"vocab": {"x y": 97}}, r"^token id 97 is given twice$"),
        ({"merges": ["ab"]}, r"^merge 0 \(\"ab\"\) is not two tokens with a space between$"),
        ({"merges": ["a b c"]}, r"^merge 0 \(\"a b c\"\) is not two tokens with a space between$"),
        (
            {"post_processor": template({"SpecialToken": {"id": "b", "type_id": 0}}, SEQUENCE)},
            r"^post_processor: the template's special token 'b' is not defined$",
        ),
        (
            {"post_processor": template(A, SEQUENCE, ids=[275])},
            r"^post_processor: token id 275 is outside the vocabulary \(0 to 274\)$",
        ),
        ({"post_processor": template(A, SEQUENCE, ids=[-1])}, r"^post_processor: token id -1 is outside"),
        ({"post_processor": template(A, SEQUENCE, ids=[2**70])}, r"^post_processor: token id \d+ is outside"),
    ],
)
def test_what_contradicts_itself_is_refused(tokenizer_json, small, components, message):
    merges = components.pop("merges", None)
    source = tokenizer_json(**components)
    if merges:
        source["model"]["merges"] = merges
    with pytest.raises(TokenizerFileError, match=message):
        small(source)


@pytest.mark.parametrize(
    ("merge", "missing"), [(("q", "zz"), "zz"), (("qq", "z"), "qq"), (("q", "z"), "qz"), (("", "q"), "")]
)
def test_merges_of_tokens_that_are_not_there(tokenizer_json, small, merge, missing):
    source = tokenizer_json()
    source["model"]["merges"].append(merge)
    number = len(source["model"]["merges"]) - 1
    with pytest.raises(
        TokenizerFileError, match=rf'^merge {number} needs the token "{missing}", which the vocabulary lacks$'
    ):
        small(source)


@pytest.mark.parametrize(
    "options", [{"unk_token": "a"}, {"unk_token": "not there"}, {"byte_fallback": True}, {"fuse_unk": True}]
)
def test_what_never_happens_where_every_byte_is_a_token(both, options):
    ours, theirs = both(model=options)
    text = "abc 日本 \x00\u0378 é"
    assert ours.encode(text) == theirs.encode(text).ids


def test_rows_of_padding(small):
    spec = small().spec
    padded = Tokenizer.from_spec(replace(spec, vocab_size=300))
    assert (small().vocab_size, padded.vocab_size) == (275, 300)
    assert padded.decode([97, 299, 98]) == "ab"
    assert padded.id_to_token(299) is None


@pytest.mark.parametrize("size", [2**20, 2**40])
def test_more_rows_than_fit(small, size):
    spec = small().spec
    with pytest.raises(UnsupportedTokenizerError, match=rf"^{size} ids; at most 1048575 fit$"):
        Tokenizer.from_spec(TokenizerSpec(model=spec.model, pre_tokenizer=spec.pre_tokenizer, vocab_size=size))


def test_added_tokens_beside_padding_come_next_after_the_vocabulary(small):
    spec = small().spec
    tok = Tokenizer.from_spec(
        TokenizerSpec(
            model=spec.model, pre_tokenizer=spec.pre_tokenizer, vocab_size=300, added_tokens=(AddedToken("<m>"),)
        )
    )
    assert (tok.token_to_id("<m>"), tok.vocab_size) == (275, 300)
