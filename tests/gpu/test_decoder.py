"""Decoding on the device against the tokenizer's own `decode`."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from full_run import share
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import BYTES, SPELLS, small

from tokenweir.encode.errors import TokenIdError, UnsupportedTokenizerError
from tokenweir.encode.spec import (
    BPE,
    AddedToken,
    BPEDecoder,
    ByteFallback,
    ByteLevel,
    DecoderSequence,
    Fuse,
    Metaspace,
    Pattern,
    Replace,
    StripDecoder,
    TokenizerSpec,
    WordPieceDecoder,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.encode.values.encoded import Ragged
from tokenweir.gpu import DeviceRagged, GpuDecoder, GpuEncoder
from tokenweir.verify.adversarial import strings

FAMILIES = {
    "default": None,
    "gpt2": "gpt2/tokenizer.json",
    "cl100k": "openai/cl100k_base.tiktoken",
    "llama-2": "llama-2/tokenizer.json",
    "llama-2 by its .model": "llama-2/tokenizer.model",
    "gemma": "gemma/tokenizer.json",
    "t5": "t5-small/tokenizer.json",
    "bert": "bert-base-uncased/tokenizer.json",
}


def ragged(rows):
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Ragged(np.array([i for row in rows for i in row], np.int32), offsets)


def check(tok, device, rows, skip=True):
    texts = GpuDecoder(tok, device=device, skip_special_tokens=skip).decode_batch(ragged(rows))
    assert texts.to_host() == tok.decode_batch(rows, skip_special_tokens=skip)
    return texts


@pytest.mark.parametrize("family", FAMILIES)
def test_families(kernels_on, data, family):
    """Ids of texts, cut anywhere, and any ids."""
    name = FAMILIES[family]
    tok = Tokenizer.default() if name is None else Tokenizer.from_file(data(f"tokenizers/{name}"))
    pick = random.Random(family)
    special = [token.content for token in tok.added_tokens][:20]
    texts = [text for group in strings(share(1800), seed=family, special_tokens=special).values() for text in group]
    rows = [[], *(tok.encode(text)[pick.randrange(3) :] for text in texts), []]
    rows += [pick.choices(range(tok.vocab_size), k=pick.randrange(40)) for _ in range(share(1800))]
    rows += [pick.choices(range(min(300, tok.vocab_size)), k=pick.randrange(12)) for _ in range(share(1800))]
    check(tok, kernels_on(len(family)), rows)


def test_ids_of_the_device_come_back_as_texts(device):
    tok = Tokenizer.default()
    texts = ["the weir", "", "水 <|im_end|>", "🙂" * 40]
    found = GpuDecoder(tok, device=device).decode_batch(
        GpuEncoder(tok, device=device).encode_batch(texts, parse_special=False)
    )
    assert found.to_host() == texts
    assert [device.to_host(text).tobytes().decode() for text in found] == texts
    assert repr(found) == f"DeviceTexts(4 texts, {sum(len(t.encode()) for t in texts)} bytes, on {device.name})"


FALLBACK = ["<unk>", *BYTES, "▁", "▁a", "é", "日本", "a▁b"]
SPACES = Replace(pattern=Pattern(String="▁"), content=" ")
DECODERS = {
    "the first token": Metaspace(replacement="▁", prepend_scheme="always"),
    "no difference": Metaspace(replacement="▁", prepend_scheme="never"),
    "one space": DecoderSequence((SPACES, ByteFallback(), Fuse(), StripDecoder(" ", 1, 0))),
    "three spaces": DecoderSequence((SPACES, ByteFallback(), Fuse(), StripDecoder(" ", 3, 0))),
    "words": WordPieceDecoder(prefix="a"),
    "joined": None,
}


def of_tokens(tokens, decoder):
    model = BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=[], unk_token="<unk>")
    added = (AddedToken("<s>", special=True), AddedToken("  x"))
    return Tokenizer.from_spec(TokenizerSpec(model=model, decoder=decoder, added_tokens=added, vocab_size=270))


@pytest.mark.parametrize("decoder", DECODERS)
@settings(max_examples=15)
@given(
    rows=st.lists(st.lists(st.sampled_from([0, 1, 33, 0xE4 + 1, 0xB8 + 1, 0x80 + 1, *range(257, 270)]), max_size=9)),
    skip=st.booleans(),
)
def test_decoders_that_know_where_a_text_begins(device, decoder, rows, skip):
    check(of_tokens(FALLBACK, DECODERS[decoder]), device, rows, skip)


@pytest.mark.parametrize(
    ("decoder", "reason"),
    [
        (BPEDecoder(), "a decoder that asks for the last token"),
        (
            DecoderSequence((ByteFallback(), SPACES)),
            "a decoder that changes the text of a run of bytes",
        ),
        (
            DecoderSequence((Fuse(), SPACES)),
            "a decoder that changes the whole text by more than what it takes from its beginning",
        ),
        (
            DecoderSequence((Fuse(), StripDecoder(" ", 1, 1))),
            "a decoder that changes the whole text by more than what it takes from its beginning",
        ),
        (
            DecoderSequence((Replace(pattern=Pattern(String="▁"), content=""), ByteFallback(), Fuse())),
            "a decoder of bytes that an empty token divides",
        ),
        (
            Replace(pattern=Pattern(String="a▁b"), content="x" * 4096),
            "a token of 1052672 bytes; at most 1048576 are possible",
        ),
    ],
)
def test_decoders_that_do_more_are_refused(device, decoder, reason):
    tok = of_tokens([*FALLBACK, "a▁b" * 257], decoder)
    with pytest.raises(UnsupportedTokenizerError, match=f"^GpuDecoder: {re.escape(reason)}$"):
        GpuDecoder(tok, device=device)


@pytest.mark.parametrize("bad", [-1, 256, 1 << 30, -(1 << 31)])
def test_an_id_that_names_no_token_is_named_with_its_row(device, bad):
    decoder = GpuDecoder(small(), device=device)
    rows = [[1, 2], [], [], [3, bad, 4], [bad]]
    with pytest.raises(TokenIdError, match=f"^row 3: token id {bad} is outside the vocabulary \\(0 to 255\\)$"):
        decoder.decode_batch(ragged(rows))
    assert decoder.decode_batch(ragged([[65]])).to_host() == ["A"]


@pytest.mark.parametrize("offsets", [[], [0, 4], [0, 2, 1], [-1, 2]])
def test_offsets_that_are_none(device, offsets):
    rows = Ragged(np.zeros(3, np.int32), np.array(offsets, np.int64))
    with pytest.raises(ValueError, match="^offsets that do not ascend from 0 to 3$"):
        GpuDecoder(small(), device=device).decode_batch(rows)


def test_rows_of_a_part_of_an_array(device):
    rows = Ragged(np.arange(65, 91, dtype=np.int32), np.array([2, 4, 4, 7], np.int64))
    assert GpuDecoder(small(), device=device).decode_batch(rows).to_host() == ["CD", "", "EFG"]


def test_rows_of_another_device(device_of, request):
    here, other = (device_of(number=number) for number in range(2))
    rows = GpuEncoder(small(), device=other).encode_batch(["ab", "c"])
    if request.node.callspec.params["device_of"] == "cuda" and here.holds(rows.ids):
        pytest.skip("both are one GPU")
    assert GpuDecoder(small(), device=other).decode_batch(rows).to_host() == ["ab", "c"]
    decoder = GpuDecoder(small(), device=here)
    with pytest.raises(
        ValueError, match=f"^the rows lie on another device than this decoder's, {here.name}: use to_host"
    ):
        decoder.decode_batch(rows)
    assert decoder.decode_batch(rows.to_host()).to_host() == ["ab", "c"]


@pytest.mark.parametrize("rows", [[], [[]], [[], []]])
def test_nothing_to_decode(device, rows):
    assert check(small(), device, rows).bytes.size == 0


def test_more_tiles_than_a_block_has_threads(kernels_on):
    """And tokens of so many bytes that their sum has more than 16 bits in a tile."""
    long = "x" * 700
    tok = Tokenizer.from_spec(
        TokenizerSpec(
            model=BPE(vocab={token: i for i, token in enumerate(["a", long, "bc"])}, merges=[]),
            pre_tokenizer=SPELLS,
            decoder=ByteLevel(),
        )
    )
    pick = np.random.default_rng(3)
    ids = pick.choice(3, 600_000, p=[0.6, 0.001, 0.399]).astype(np.int32)
    ids[5000:7000] = 1
    ends = np.sort(pick.choice(len(ids), 300))
    rows = Ragged(ids, np.array([0, *ends, len(ids)], np.int64))
    device = kernels_on(3)
    assert GpuDecoder(tok, device=device).decode_batch(rows).to_host() == tok.decode_batch(rows)


def test_a_batch_takes_few_launches_and_one_wait(device):
    calls = []

    class Recorder:
        def __getattr__(self, name):
            def call(*args, **options):
                calls.append(args[0] if name == "launch" else name)
                return getattr(device, name)(*args, **options)

            return call

    decoder = GpuDecoder(small(), device=Recorder())
    rows = DeviceRagged(device.to_device(np.arange(5, dtype=np.int32)), device.to_device(np.array([0, 5])), device)
    calls.clear()
    decoder.decode_batch(rows)
    wanted = "use holds holds zeros words words find_contents count_bytes to_host empty write_texts"
    assert calls == wanted.split()
