"""Streaming over every family of tokenizers: leading spaces, byte runs, and text that depends on what follows."""

from __future__ import annotations

from functools import cache
from itertools import chain, pairwise

import pytest
from case_tables import cases
from drawn_answers import run, text_of
from hypothesis import given
from hypothesis import strategies as st
from real_tokenizers import real_tokenizer
from sentencepiece_files import train

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.spec import (
    BPE,
    AddedToken,
    ByteFallback,
    DecoderSequence,
    Fuse,
    Metaspace,
    NormalizerSequence,
    Pattern,
    Prepend,
    Replace,
    StripDecoder,
    TokenizerSpec,
    Unigram,
    WordPiece,
    WordPieceDecoder,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import ReasoningDelta

CASES = cases(__file__)

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
PIECES = CASES["pieces"]
SPECIAL = (AddedToken("<s>", special=True), AddedToken("</s>", special=True), AddedToken("<end>", special=True))


def gemma():
    """Spaces as they are, and bytes."""
    return TokenizerSpec(
        model=BPE(vocab=ids_of("<unk>", *BYTES, *PIECES), merges=[], unk_token="<unk>", byte_fallback=True),
        normalizer=Replace(Pattern(String=" "), "▁"),
        decoder=DecoderSequence((Replace(Pattern(String="▁"), " "), ByteFallback(), Fuse())),
        added_tokens=SPECIAL,
        special_roles={"eos_token": "</s>"},
    )


def llama():
    """The same with a space before all text."""
    spec = gemma()
    return TokenizerSpec(
        model=spec.model,
        normalizer=NormalizerSequence((Prepend("▁"), spec.normalizer)),
        decoder=DecoderSequence((*spec.decoder.decoders, StripDecoder(content=" ", start=1, stop=0))),
        added_tokens=(*SPECIAL, AddedToken("[THINK]", special=True), AddedToken("[/THINK]", special=True)),
        special_roles={"eos_token": "</s>"},
        eos_ids=(1 + 256 + len(PIECES) + 2,),
    )


def t5():
    pieces = (("<unk>", 0.0), *((piece, -1.0) for piece in PIECES))
    return TokenizerSpec(model=Unigram(pieces, 0), pre_tokenizer=Metaspace(), decoder=Metaspace(), added_tokens=SPECIAL)


def bert():
    words = [p.removeprefix("▁") if p.startswith("▁") else f"##{p}" for p in PIECES if p.strip("▁")]
    vocab = ids_of("[UNK]", *dict.fromkeys([*words, ".", "'", "!", ",", "do", "not", "n't", "'s"]))
    return TokenizerSpec(model=WordPiece(vocab=vocab), decoder=WordPieceDecoder(), added_tokens=SPECIAL)


def ids_of(*tokens):
    return {token: i for i, token in enumerate(tokens)}


@cache
def family(name):
    if name.startswith("sentencepiece"):
        return Tokenizer.from_bytes(
            train(model_type=name.split()[1], vocab_size=420, byte_fallback=True, user_defined_symbols=["<think>"]),
            "sentencepiece",
        )
    return Tokenizer.from_spec(MADE[name]())


MADE = {"gemma": gemma, "llama": llama, "t5": t5, "bert": bert}
FAMILIES = (*MADE, "sentencepiece bpe", "sentencepiece unigram")
REAL = CASES["real"]
TEXTS = [" a", "a", "don't.", "<think>", "</think>", "\n", "語", "👩", "é", "\ufffd", "  ", " b!", "<end>", "</s>"]


@cache
def some_ids(tok):
    """Ids of texts and of their bytes, control tokens, and any ids at all."""
    texts = [tok.encode(text, add_special_tokens=False) for text in TEXTS]
    texts += [[i for byte in text.encode() if (i := tok.token_to_id(BYTES[byte])) is not None] for text in TEXTS]
    return st.lists(st.sampled_from(texts) | st.lists(st.integers(0, tok.vocab_size - 1), max_size=3), max_size=12).map(
        lambda lists: list(chain(*lists))
    )


@pytest.fixture(scope="module", params=[*FAMILIES, *REAL])
def tok(request, data):
    return family(request.param) if request.param in FAMILIES else real_tokenizer(data(f"tokenizers/{request.param}"))


@pytest.fixture(scope="module", params=FAMILIES)
def small(request):
    return family(request.param)


MODES = st.sampled_from(["eager", "huggingface"])


@given(st.data(), MODES, st.booleans())
def test_steps_joined_are_the_text(tok, draw, mode, skip):
    options = {"skip_special_tokens": skip, "byte_fallback": mode}
    ids = draw.draw(some_ids(tok))
    stream = DecodeStream(tok, **options)
    assert "".join(map(stream.step, ids)) + stream.flush() == tok.decode(ids, **options)


@given(st.data(), MODES, st.booleans())
def test_behind_a_prompt_comes_what_the_whole_text_has_more(tok, draw, mode, skip):
    options = {"skip_special_tokens": skip, "byte_fallback": mode}
    prompt, ids = draw.draw(some_ids(tok)), draw.draw(some_ids(tok))
    before = DecodeStream(tok, **options)
    seen = "".join(map(before.step, prompt))
    stream = DecodeStream(tok, prompt_ids=prompt, **options)
    out = "".join(map(stream.step, ids)) + stream.flush()
    whole = tok.decode([*prompt, *ids], **options)
    assert whole.endswith(out)
    if mode == "eager":  # else characters of an unfinished run have not gone out, though they are whole
        assert seen + out == whole


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "stop": st.lists(st.sampled_from([" a", "a", "\n", "語", "n't", "<", "\ufffd", " b!", "👩"]), max_size=2),
        "stop_scope": st.sampled_from(["answer", "all"]),
        "reasoning": st.sampled_from(["auto", "strip", None, "think", "mistral"]),
        "min_tokens": st.integers(0, 4),
        "include_stop": st.booleans(),
        "ignore_eos": st.booleans(),
        "skip_special_tokens": st.booleans(),
        "byte_fallback": MODES,
    },
)


@given(st.data(), OPTIONS, st.lists(st.integers(0, 60), max_size=6))
def test_every_cutting_gives_the_same_and_every_id_travels_once(tok, draw, options, cuts):
    ids, prompt = draw.draw(some_ids(tok)), draw.draw(some_ids(tok))
    decoder = ChatDecoder(tok, prompt_ids=prompt, **options)
    one_by_one = run(decoder, [[token_id] for token_id in ids])
    consumed = [token_id for delta in one_by_one for token_id in delta.token_ids]
    assert consumed == ids[: len(ids) - decoder.ignored]
    places = sorted({0, len(ids), *(cut % (len(ids) + 1) for cut in cuts)})
    for chunks in ([ids], [ids[a:b] for a, b in pairwise(places)]):
        decoder.reset(prompt)
        assert run(decoder, chunks) == one_by_one


@given(st.data(), MODES)
def test_an_id_goes_with_the_last_of_its_text(tok, draw, mode):
    """The text of some deltas equals the decode of their ids alone."""
    ids = draw.draw(some_ids(tok))
    decoder = ChatDecoder(tok, reasoning=None, ignore_eos=True, byte_fallback=mode)
    text, taken = "", 0
    for fed, token_id in enumerate(ids, 1):
        for delta in decoder.feed([token_id]):
            text += delta.text
            taken += len(delta.token_ids)
            stream = DecodeStream(tok, byte_fallback=mode)
            own = stream.feed(ids[:taken])
            rest = text.removeprefix(own)
            assert text == own + rest
            wrong = stream.flush()
            if isinstance(tok.spec.model, WordPiece) or rest.startswith(wrong):  # bytes that others have followed
                begun = rest.removeprefix(wrong)  # of the next id's text, whose last bytes are held
                assert not begun or tok.token_bytes(ids[taken]).decode(errors="replace").startswith(begun)
            else:  # they are a character's, which the next id ends
                assert tok.decode(ids[: taken + 1], byte_fallback=mode).startswith(text)
        late = DecodeStream(tok, byte_fallback=mode)
        late.feed(ids[:fed])
        assert taken == fed or late.pending or not tok.decode(ids[taken:fed], byte_fallback=mode)


@given(st.data())
def test_the_answer_is_the_text(tok, draw):
    ids = draw.draw(some_ids(tok))
    deltas = run(ChatDecoder(tok, reasoning=None, ignore_eos=True), [ids])
    assert text_of(deltas) == tok.decode(ids)


# -- one case each -----------------------------------------------------------------------------------------------------


def test_the_first_space_of_an_answer_depends_on_the_prompt():
    tok = family("llama")
    ids = tok.encode("a b")
    assert tok.decode(ids) == "a b"
    assert text_of(run(ChatDecoder(tok), [ids])) == "a b"
    assert text_of(run(ChatDecoder(tok, prompt_ids=tok.encode("b")), [ids])) == " a b"
    assert text_of(run(ChatDecoder(tok, prompt_ids=[tok.token_to_id("<s>")]), [ids])) == "a b"  # no text before it
    doubled = [tok.token_to_id("▁"), *ids]
    assert text_of(run(ChatDecoder(tok), [doubled])) == " a b"  # lesson 13, mlx-lm PR#1754


def test_flushing_does_not_make_a_beginning():
    for name in ("llama", "t5", "sentencepiece bpe"):
        tok = family(name)
        space_a = tok.encode("b a", add_special_tokens=False)[-2:]
        stream = DecodeStream(tok)
        first = stream.feed(tok.encode("b", add_special_tokens=False)) + stream.flush()
        assert first == "b"
        assert (stream.feed(space_a) + stream.flush()).endswith(" a"), name


def test_a_stop_is_found_in_a_run_of_bytes():
    tok = family("gemma")
    ids = [tok.token_to_id(BYTES[byte]) for byte in "a語👩b".encode()]
    for stop, expected in (("👩", "a語"), ("語👩", "a"), ("👩b", "a語")):
        for mode in ("eager", "huggingface"):
            for size in range(1, len(ids) + 1):
                decoder = ChatDecoder(tok, stop=[stop], byte_fallback=mode)
                deltas = run(decoder, [ids[at : at + size] for at in range(0, len(ids), size)])
                assert text_of(deltas) == expected
                assert deltas[-1].stop_reason == stop


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_tags_that_are_ordinary_pieces(size):
    """`<think>` is "▁<", "think", ">"; with a dummy space or without, by name or since the prompt ends with it."""
    for name in ("llama", "gemma", "t5"):
        tok = family(name)
        piece = tok.token_to_id
        think = [piece("▁<"), piece("think"), piece(">")]
        close = [piece("</"), piece("think"), piece(">")]
        ids = [*think, piece("▁a"), *close, piece("▁b")]
        deltas = run(ChatDecoder(tok, reasoning="think"), [ids[at : at + size] for at in range(0, len(ids), size)])
        assert (text_of(deltas, ReasoningDelta), text_of(deltas).strip()) == (" a", "b")
        prompt = [piece("<s>"), *think]
        deltas = run(ChatDecoder(tok, prompt_ids=prompt), [ids[3:][at : at + size] for at in range(0, 5, size)])
        assert (text_of(deltas, ReasoningDelta), text_of(deltas)) == (" a", " b")


@pytest.mark.parametrize("skip", [True, False])
def test_a_tag_by_id_and_by_text_is_the_same(skip):
    tok = family("llama")
    as_id = [tok.token_to_id("[THINK]"), tok.token_to_id("▁a"), tok.token_to_id("[/THINK]"), tok.token_to_id("▁b")]
    as_bytes = [tok.token_to_id(BYTES[byte]) for byte in b"[THINK] a[/THINK] b"]
    prompt = tok.encode("a<s>")
    for ids in (as_id, as_bytes):
        for size in range(1, 5):
            decoder = ChatDecoder(tok, prompt_ids=prompt, skip_special_tokens=skip)
            deltas = run(decoder, [ids[at : at + size] for at in range(0, len(ids), size)])
            assert (text_of(deltas, ReasoningDelta), text_of(deltas)) == (" a", " b")
