"""Every component of a spec can be pickled, compared, and written as JSON that reads back."""

from __future__ import annotations

import inspect
import pickle

import msgspec
import pytest

from tokenweir.encode import spec
from tokenweir.encode.spec import (
    BPE,
    NFC,
    NFD,
    NFKC,
    NFKD,
    AddedToken,
    BertNormalizer,
    BertPreTokenizer,
    BertProcessing,
    BPEDecoder,
    ByteFallback,
    ByteLevel,
    CharDelimiterSplit,
    DecoderSequence,
    Digits,
    Fuse,
    Lowercase,
    Metaspace,
    NormalizerSequence,
    Pattern,
    PostProcessorSequence,
    Precompiled,
    Prepend,
    PreTokenizerSequence,
    Punctuation,
    RankBPE,
    Replace,
    RobertaProcessing,
    SentencePiece,
    SentencePieceDecoder,
    SentencePieceNormalizer,
    SpecialTokenIds,
    Split,
    StripAccents,
    StripDecoder,
    StripSpace,
    TemplateProcessing,
    TokenizerSpec,
    Unigram,
    Whitespace,
    WhitespaceSplit,
    WordPiece,
    WordPieceDecoder,
)

REPLACE = Replace(Pattern(String=" "), "\u2581")
MODELS = [
    BPE(vocab={"a": 0, "b": 1, "ab": 2}, merges=["a b", ("a", "b")], unk_token="a"),
    RankBPE({b"a": 0, b"\xff": 1}),
    SentencePiece(algorithm="BPE", pieces=["<unk>", "a"], scores=[0.0, -1.5], types=b"\x02\x01", unk_id=0),
    Unigram((("<unk>", 0.0), ("a", -1.5)), 0),
    WordPiece(vocab={"[UNK]": 0, "a": 1}),
]
NORMALIZERS = (
    *(NFC(), NFD(), NFKC(), NFKD(), Lowercase(), StripAccents(), StripSpace(), Prepend("\u2581"), REPLACE),
    *(BertNormalizer(), Precompiled("AAAA"), SentencePieceNormalizer(charsmap=b"\x00\xff", user_defined=("a",))),
)
PRE_TOKENIZERS = (
    *(Split(pattern=Pattern(Regex=r"\s"), behavior="Removed"), ByteLevel(), Metaspace(), Digits(), Punctuation()),
    *(Whitespace(), WhitespaceSplit(), BertPreTokenizer(), CharDelimiterSplit("-")),
)
TEMPLATE = TemplateProcessing(
    ({"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}),
    special_tokens={"<s>": SpecialTokenIds("<s>", (1,), ("<s>",))},
)
POST_PROCESSORS = (
    *(ByteLevel(), TEMPLATE, BertProcessing(("b", 1), ("a", 0))),
    RobertaProcessing(("b", 1), ("a", 0), True, False),
)
DECODERS = (
    *(ByteLevel(), REPLACE, ByteFallback(), Fuse(), StripDecoder(" ", 1, 0), Metaspace(), WordPieceDecoder()),
    *(BPEDecoder(), SentencePieceDecoder()),
)
SPECS = [
    TokenizerSpec(
        model=model,
        normalizer=NormalizerSequence(NORMALIZERS),
        pre_tokenizer=PreTokenizerSequence(PRE_TOKENIZERS),
        post_processor=PostProcessorSequence(POST_PROCESSORS),
        decoder=DecoderSequence(DECODERS),
        added_tokens=(AddedToken("<s>", id=1, special=True),),
        special_roles={"bos_token": "<s>"},
        eos_ids=(1, 2),
        truncation={"max_length": 8},
        notes=("a note",),
    )
    for model in MODELS
]


def structs(value):
    """All structs in a value, itself included."""
    if isinstance(value, msgspec.Struct):
        yield value
        value = [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, dict):
        value = value.values()
    if not isinstance(value, str | bytes | int | float | None):
        for part in value:
            yield from structs(part)


def test_every_component_is_here():
    found = {type(struct) for spec in SPECS for struct in structs(spec)}
    declared = {kind for _, kind in inspect.getmembers(spec, inspect.isclass) if issubclass(kind, msgspec.Struct)}
    assert found == declared - {msgspec.Struct}


@pytest.mark.parametrize("whole", SPECS, ids=lambda whole: type(whole.model).__name__)
def test_pickling(whole):
    assert pickle.loads(pickle.dumps(whole)) == whole


@pytest.mark.parametrize(
    ("union", "components"),
    [
        (spec.Normalizer, NORMALIZERS),
        (spec.PreTokenizer, PRE_TOKENIZERS),
        (spec.PostProcessor, POST_PROCESSORS),
        (spec.Decoder, DECODERS),
    ],
)
def test_components_as_json(union, components):
    for component in components:
        assert msgspec.json.decode(msgspec.json.encode(component), type=union) == component
