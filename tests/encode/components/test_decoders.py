"""Every decoder against the library it comes from: tokenizers' decoders over small vocabularies, and
sentencepiece. What is decoded at once, streamed in any cutting, or streamed after a prompt must be the same."""

from __future__ import annotations

import io
import itertools
import random
from types import MappingProxyType

import pytest
import sentencepiece
import tokenizers
from full_run import share
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import decoders as theirs

from tokenweir.encode import _core
from tokenweir.encode import spec as ours
from tokenweir.encode.build import Core
from tokenweir.encode.components.decoders import decoding
from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import BPE, Pattern, RankBPE, SentencePiece, SentencePieceDecoder
from tokenweir.encode.tokenizer import Tokenizer

MODES = ("eager", "huggingface")
NO_MODEL = BPE(vocab={}, merges=[])
BYTES = [f"<0x{byte:02X}>" for byte in b"\x20\x41\x61\xe4\xbd\xa0\xc3\xa9\xff\xf0\x9f\x98\x80\xed\xe2\x96\x81"]
NAMES = [
    *["", "▁", "▁▁", "▁a", "▁▁a▁", "a", "aa", "aba", "b", "ab a", " ", "  ", " a ", "é", "中é", "\ufffd", "\ufffda"],
    *["##b", "##", "a##b", "a</w>", "</w>", "b</w>a", ".", " .", "'", " ' ", "n't", " do not", "Ġ", "Ã", "©", "Ġa中"],
    *["<0x+F>", "<0x-0>", "<0xé>", "<0x41>x", "<0X41>", *BYTES],
]
GAP, CONTROLS = len(NAMES), {NAMES.index("b"), NAMES.index("中é")}


class Decoding:
    """A vocabulary with a decoder, as a `Tokenizer` has them."""

    def __init__(self, vocabulary, decoder, *, model=NO_MODEL, added=(), size=0):
        self.tokens = _core.TokenBytes(vocabulary, added, size, *decoding(decoder, model))

    def decode(self, ids, skip, mode):
        return self.tokens.decode(ids, skip, mode == "huggingface")

    def stream(self, skip, mode, prompt=()):
        tok = Tokenizer.__new__(Tokenizer)
        tok._core = Core(None, None, self.tokens, *[None] * 6)
        return DecodeStream(tok, prompt_ids=prompt, skip_special_tokens=skip, byte_fallback=mode)


def small(decoder):
    """The decoder over `NAMES`, of which `CONTROLS` are control tokens; and two ids without a token."""
    controls = [(i, NAMES[i], True) for i in CONTROLS]
    return Decoding(_core.Vocabulary.plain(NAMES), decoder, added=controls, size=GAP + 2)


def names(ids, skip):
    return [NAMES[i] for i in ids if i < GAP and not (skip and i in CONTROLS)]


def chain(*parts):
    return ours.DecoderSequence(parts)


def replace(pattern, content):
    return ours.Replace(Pattern(String=pattern), content)


LLAMA = chain(replace("▁", " "), ours.ByteFallback(), ours.Fuse(), ours.StripDecoder(" ", 1, 0))


def byte_of(token):
    """Return the byte of a token as `ByteFallback` reads it, or None."""
    if len(token.encode()) != 6 or not token.startswith("<0x") or token[-1] != ">":
        return None
    try:
        return int(token[3:5], 16) if token[3:5].lstrip("+").isalnum() else None
    except ValueError:
        return None


def repaired(tokens):
    """The tokens with the bytes of each run made UTF-8 by Python's rule: what "eager" means by a run."""
    result, run = [], b""
    for token in [*tokens, None]:
        byte = None if token is None else byte_of(token)
        if byte is not None:
            run += bytes([byte])
            continue
        result += [f"<0x{good:02X}>" for good in run.decode(errors="replace").encode()]
        run = b""
        if token is not None:
            result.append(token)
    return result


def streamed(stream, ids, rng):
    """The text of the ids in a random cutting, each piece final."""
    pieces, at = [], 0
    while at < len(ids):
        size = rng.randint(0, 4)
        pieces.append(stream.step(ids[at]) if size == 0 else stream.feed(ids[at : at + size]))
        at += size or 1
        if rng.random() < 0.2:
            stream = stream.copy()
    pending = stream.pending
    pieces.append(stream.flush())
    assert pending or not pieces[-1]
    assert (stream.pending, stream.flush()) == (0, "")
    return "".join(pieces)


def check(decoder, expected, prompt, ids, skip, rng, modes=MODES):
    """Compare with `expected(ids, mode)`, however the ids are given."""
    for mode in modes:
        whole = expected(ids, mode)
        assert decoder.decode(ids, skip, mode) == whole
        assert streamed(decoder.stream(skip, mode), ids, rng) == whole
        before = decoder.stream(skip, mode)
        sent = before.feed(prompt)
        rest = streamed(decoder.stream(skip, mode, prompt), ids, rng)
        both = expected(prompt + ids, mode)
        if mode == "eager" or not before.pending:
            assert sent + rest == both
        else:  # a run that ends the prompt may have whole characters, which do not come again: see test_decode.py
            assert both.startswith(sent)


# -- tokenizers' decoders ----------------------------------------------------------------------------------------------

TEXTS = st.sampled_from(["▁", " ", "▁▁", "a", "aa", "ab", "aba", "é", "", "b", " a", "<", "中é"])
PARTS = {
    "Replace": st.builds(replace, TEXTS.filter(bool), TEXTS),
    "Strip": st.builds(
        ours.StripDecoder, st.sampled_from(" ▁aé\ufffd"), st.integers(0, 3), st.sampled_from([0, 0, 1, 2])
    ),
    "ByteFallback": st.just(ours.ByteFallback()),
    "Fuse": st.just(ours.Fuse()),
    "ByteLevel": st.just(ours.ByteLevel()),
    "Metaspace": st.builds(ours.Metaspace, prepend_scheme=st.sampled_from(["always", "first", "never"])),
    "WordPiece": st.builds(ours.WordPieceDecoder, st.sampled_from(["##", "a", ""]), st.booleans()),
    "BPEDecoder": st.builds(ours.BPEDecoder, st.sampled_from(["</w>", "a", "aa"])),
    "Begin": st.builds(  # as LLM-jp's converter writes the removal of its dummy prefix
        lambda begin, first: ours.Replace(Pattern(Regex=begin + first), ""),
        st.sampled_from([r"(?<!\n)^", r"\A"]),
        st.sampled_from(" a▁"),
    ),
}
USUAL = ["Replace", "Replace", "ByteFallback", "Replace", "Strip", "Fuse", "Begin", "Replace", "Strip"]
ANY = st.lists(st.one_of(*PARTS.values()), max_size=5)
IN_THE_USUAL_ORDER = st.lists(st.booleans(), min_size=len(USUAL), max_size=len(USUAL)).flatmap(
    lambda kept: st.tuples(*(PARTS[name] for name, keep in zip(USUAL, kept, strict=True) if keep)).map(list)
)
IDS = st.lists(
    st.one_of(st.integers(0, GAP + 1), st.integers(GAP - len(BYTES), GAP - 1), st.integers(0, 3)), max_size=12
)


def their(part):
    match part:
        case ours.Replace():
            text = part.pattern.String
            return theirs.Replace(tokenizers.Regex(part.pattern.Regex) if text is None else text, part.content)
        case ours.StripDecoder():
            return theirs.Strip(part.content, part.start, part.stop)
        case ours.Metaspace():
            return theirs.Metaspace(prepend_scheme=part.prepend_scheme)
        case ours.WordPieceDecoder():
            return theirs.WordPiece(part.prefix, part.cleanup)
        case ours.BPEDecoder():
            return theirs.BPEDecoder(part.suffix)
    return getattr(theirs, type(part).__name__)()


def bytes_come_through(parts):
    """Whether nothing before a ByteFallback makes or unmakes byte tokens; then its runs can be told from the spelling."""
    before = parts[: next((i for i, part in enumerate(parts) if isinstance(part, ours.ByteFallback)), 0)]
    if any(isinstance(part, (ours.WordPieceDecoder, ours.BPEDecoder)) for part in before):
        return False
    for name in NAMES:
        changed = name
        for part in before:
            if isinstance(part, ours.Replace) and part.pattern.String:
                changed = changed.replace(part.pattern.String, part.content)
        if byte_of(changed) != byte_of(name):
            return False
    return True


def library_panics(error):
    return type(error).__name__ == "PanicException"  # derived from BaseException; Strip panics on tokens it empties


@given(st.one_of(ANY, IN_THE_USUAL_ORDER), st.lists(st.tuples(IDS, IDS, st.booleans()), min_size=5, max_size=5))
def test_any_chain_decodes_as_the_library_does(parts, cases):
    try:
        decoder = small(chain(*parts))
    except UnsupportedTokenizerError as error:
        assert " after " in str(error)  # by their order
        assume(False)
    library = theirs.Sequence([their(part) for part in parts])
    fallback = any(isinstance(part, ours.ByteFallback) for part in parts)
    steady = bytes_come_through(parts)
    for prompt, ids, skip in cases:

        def expected(ids, mode, skip=skip):
            tokens = names(ids, skip)
            return library.decode(repaired(tokens) if fallback and mode == "eager" else tokens)

        try:
            check(decoder, expected, prompt, ids, skip, random.Random(0), MODES if steady else MODES[1:])
        except BaseException as error:
            if not library_panics(error):
                raise


def test_no_decoder_joins_by_spaces():
    library = tokenizers.Tokenizer(tokenizers.models.WordLevel({name: i for i, name in enumerate(NAMES)}, "a"))
    library.add_special_tokens([NAMES[i] for i in CONTROLS])
    decoder, rng = small(None), random.Random(0)
    for _ in range(share(3000)):
        prompt, ids = ([rng.randrange(GAP + 2) for _ in range(rng.randint(0, 6))] for _ in range(2))
        for skip in (True, False):
            check(decoder, lambda ids, mode, s=skip: library.decode(ids, skip_special_tokens=s), prompt, ids, skip, rng)


@pytest.mark.parametrize("text", ["▁", ".", "(a", "\\", "$", "[a]", "é ▁", "\n", "#x", "<0x41>"])
def test_what_replace_looks_for_is_text(text):
    tokens = ["a", f"{text}{text}b", f"x{text}", text]
    vocabulary = _core.Vocabulary.plain(tokens)
    expected = theirs.Replace(text, r"\1").decode(tokens)
    assert Decoding(vocabulary, replace(text, r"\1")).decode([0, 1, 2, 3], True, "eager") == expected
    try:
        expression = Decoding(vocabulary, ours.Replace(Pattern(Regex=text), "-"))
    except UnsupportedTokenizerError:
        return
    library = theirs.Replace(tokenizers.Regex(text), "-")
    assert expression.decode([0, 1, 2, 3], True, "eager") == library.decode(tokens)


def test_an_empty_sequence_joins_without_spaces():
    assert small(chain()).decode([1, 5, GAP, 8], True, "eager") == "▁a"
    assert small(chain()).decode([1, 5, GAP, 8], False, "eager") == "▁ab"


@pytest.mark.parametrize("length", [1, 2, 3])
def test_no_chain_asks_for_the_last_token_where_tokens_may_be_bytes(length):
    """The core refuses that; every chain is refused by its name before, or decodes as the library does."""
    kinds = [
        replace("a", "▁"),
        ours.StripDecoder(" ", 1, 1),
        ours.ByteFallback(),
        ours.Fuse(),
        ours.ByteLevel(),
        ours.Metaspace(),
        ours.WordPieceDecoder(),
        ours.BPEDecoder("</w>"),
    ]
    words, text = ["a</w>", "b</w>a", "a</w>"], ["▁a", "Ã", "©", "</w>"]
    texts = [words, text, ["a</w>", *BYTES[3:6]], ["Ã", "<0xE4>", "a</w>"], ["a</w>", "Ã"], ["<0xE4>"]]
    refused = []
    for parts in itertools.product(kinds, repeat=length):
        try:
            decoder = small(chain(*parts))
        except UnsupportedTokenizerError as error:
            refused.append(str(error))
            continue
        library = theirs.Sequence([their(part) for part in parts])
        for tokens in texts:
            ids = [NAMES.index(token) for token in tokens]
            try:
                whole = library.decode(tokens)
            except BaseException as error:
                if not library_panics(error):
                    raise
                continue
            assert decoder.decode(ids, False, "huggingface") == whole
            stream = decoder.stream(False, "huggingface")
            assert "".join(map(stream.step, ids)) + stream.flush() == whole
    assert bool(refused) == (length > 1)
    assert all(message.startswith("decoder: ") for message in refused)


@pytest.mark.parametrize(
    ("spelling", "fixed"),
    [(_core.Spelling.FALLBACK, ()), (_core.Spelling.ALPHABET, ()), (_core.Spelling.BYTES, ())]
    + [(_core.Spelling.TEXT, [(0, b"\xe4", True)])],
)
@pytest.mark.parametrize("when", [_core.When.LAST, _core.When.NOT_LAST])
def test_the_core_refuses_to_ask_for_the_last_token_where_tokens_may_be_bytes(spelling, fixed, when):
    vocabulary, last = _core.Vocabulary.plain(NAMES), _core.TextStep.replace("▁", "Ã", when)
    until = _core.FirstUntil.TOKEN
    with pytest.raises(UnsupportedTokenizerError, match="^a decoder that asks for the last token, where tokens may be"):
        _core.TokenBytes(vocabulary, (), 0, [last], spelling, [], [], until, fixed)
    text = _core.TokenBytes(vocabulary, (), 0, [last], _core.Spelling.TEXT, [], [], until, [(0, b"a", False)])
    assert text.decode([0], False, True) == "a"
    whole = _core.TokenBytes(vocabulary, (), 0, [], spelling, [], [last], until, fixed)
    assert whole.decode([NAMES.index("a")], False, True) == "a"


def test_what_a_token_stands_for_is_what_it_adds_in_mid_text():
    def bytes_of(decoder, *tokens):
        return [small(decoder).tokens[NAMES.index(token)] for token in tokens]

    assert bytes_of(LLAMA, "▁a", "<0xE4>", "<0x41>x") == [b" a", b"\xe4", b"<0x41>x"]
    assert bytes_of(ours.Metaspace(), "▁▁a▁", "<0xE4>") == [b"  a ", b"<0xE4>"]
    assert bytes_of(ours.WordPieceDecoder(), "a", "##b", ".", "n't") == [b" a", b"b", b".", b"n't"]
    assert bytes_of(ours.BPEDecoder(), "a</w>", "a") == [b"a ", b"a"]
    assert bytes_of(ours.ByteLevel(), "Ġ", "Ã", "Ġa中") == [b" ", b"\xc3", "Ġa中".encode()]
    assert bytes_of(None, "a") == [b" a"]
    tokens = small(LLAMA).tokens
    assert tokens.join([NAMES.index("▁a"), GAP, NAMES.index("<0xE4>"), NAMES.index("b")]) == b" a\xe4b"


# -- sentencepiece -----------------------------------------------------------------------------------------------------


def piece_type(model, i):
    return next(
        (kind for kind, is_kind in ((2, "IsUnknown"), (3, "IsControl"), (6, "IsByte")) if getattr(model, is_kind)(i)), 1
    )


def check_sentencepiece(proto, decoder, rounds, unk_surface=" \u2047 "):
    """Compare with sentencepiece, whose rule for bytes that are not UTF-8 is another; so its ids are repaired first."""
    library = sentencepiece.SentencePieceProcessor(model_proto=proto)
    size = library.GetPieceSize()
    pieces = [library.IdToPiece(i) for i in range(size)]
    types = bytes(piece_type(library, i) for i in range(size))
    model = SentencePiece(
        algorithm="BPE",
        pieces=pieces,
        scores=[0.0] * size,
        types=types,
        unk_id=library.unk_id(),
        unk_surface=unk_surface,
    )
    added = [(i, pieces[i], True) for i in range(size) if types[i] == 3]
    mine = Decoding(_core.Vocabulary.plain(pieces), decoder, model=model, added=added)
    id_of = {piece: i for i, piece in enumerate(pieces)}

    def expected(ids, mode):
        shown = [pieces[i] for i in ids if not (skip and types[i] == 3)]
        return library.decode([id_of[piece] for piece in (repaired(shown) if id_of.get("<0xE4>") else shown)])

    rng = random.Random(size)
    kinds = [range(size), [i for i in range(size) if types[i] != 1 and types[i] != 6] or [0]]
    kinds += [found for found in ([i for i in range(size) if set(pieces[i]) == {"▁"}],) if found]
    if "<0xE4>" in id_of:
        kinds += [[id_of[f"<0x{byte:02X}>"] for byte in some] for some in ("é今😀\n ".encode(), range(256))]
    for _ in range(rounds):
        prompt, ids = ([rng.choice(rng.choice(kinds)) for _ in range(rng.randint(0, 8))] for _ in range(2))
        skip = rng.random() < 0.5
        check(mine, expected, prompt, ids, skip, rng, MODES[:1])


@pytest.mark.parametrize("suffix", [False, True])
@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("prefix", [False, True])
def test_sentencepieces_dummy_prefix(prefix, extra, suffix):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["a test of ab ba", "the quick brown fox"] * 20),
        model_writer=model,
        model_type="bpe",
        vocab_size=330,
        hard_vocab_limit=False,
        byte_fallback=True,
        add_dummy_prefix=prefix,
        remove_extra_whitespaces=extra,
        treat_whitespace_as_suffix=suffix,
        user_defined_symbols=["▁▁", "▁▁▁", "x▁", "▁u"],
        control_symbols=["<c>"],
        unk_surface="▁?▁",
        minloglevel=2,
    )
    decoder = SentencePieceDecoder(strip_prefix=prefix, strip_extra=extra)
    check_sentencepiece(model.getvalue(), decoder, share(2400), unk_surface="▁?▁")


def test_a_byte_piece_must_name_a_byte():
    for piece in ("<0xGG>", "<0x4>", "<0xe4>", "a", ""):
        model = SentencePiece(
            algorithm="BPE", pieces=["<unk>", piece], scores=[0.0, 0.0], types=bytes([2, 6]), unk_id=0
        )
        with pytest.raises(TokenizerFileError, match=rf"^piece 1: '{piece}' is of type byte and does not name a byte$"):
            decoding(SentencePieceDecoder(), model)


def test_without_a_decoder_tokens_are_joined_as_they_are_spelled(tokenizer_json, both):
    """Also those of a byte-level model."""
    mine, library = both(decoder=None, added=[{"content": "<x>", "special": True}])
    for text in ("ab c", "é 日本\n<x>a", ""):
        ids = mine.encode(text)
        stream = DecodeStream(mine, skip_special_tokens=False)
        assert mine.decode(ids) == library.decode(ids)
        assert "".join(map(stream.step, ids)) + stream.flush() == library.decode(ids, skip_special_tokens=False)
    assert mine.decode(mine.encode("é a")) == "Ã© Ġa"


# -- what is refused ---------------------------------------------------------------------------------------------------

R, F, B = replace("a", "b"), ours.Fuse(), ours.ByteFallback()


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (chain(F, B), "decoder: ByteFallback after Fuse or ByteLevel"),
        (chain(B, R, B), "decoder: ByteFallback after ByteFallback"),
        (chain(B, ours.ByteLevel()), "decoder: ByteLevel after ByteFallback"),
        (chain(ours.BPEDecoder(), B), "decoder: ByteFallback after BPEDecoder"),
        (chain(ours.BPEDecoder(), ours.ByteLevel()), "decoder: ByteLevel after BPEDecoder"),
        (chain(B, ours.WordPieceDecoder()), "decoder: WordPiece after ByteFallback without Fuse between"),
        (chain(B, chain(ours.BPEDecoder())), "decoder: BPEDecoder after ByteFallback without Fuse between"),
        (ours.BPEDecoder(""), "decoder: BPEDecoder with an empty suffix"),
        (replace("", "a"), "decoder: Replace of an empty text"),
        (ours.Replace(Pattern(Regex="a+"), "b"), "decoder: Replace of the expression 'a+'"),
        (ours.Replace(Pattern(Regex=r"\Aab"), ""), r"decoder: Replace of the expression '\\Aab'"),
        (ours.Replace(Pattern(Regex=r"\A "), "x"), r"decoder: Replace of the expression '\\A '"),
        (SentencePieceDecoder(), "decoder: SentencePieceDecoder for a BPE model"),
        (chain(R, SentencePieceDecoder()), "decoder: SentencePieceDecoder in a Sequence"),
        (chain(*[R] * 33), "decoder: a Sequence of 33 decoders; at most 32 are possible"),
        (
            chain(*[replace("a", "aa")] * 13),
            "decoder: Replace makes a text 8192 times as long; at most 4096 times is possible",
        ),
    ],
)
def test_what_cannot_be_exact_is_refused_by_name(decoder, message):
    with pytest.raises(UnsupportedTokenizerError) as error:
        decoding(decoder, NO_MODEL)
    assert str(error.value) == message


def test_a_rank_file_has_bytes():
    with pytest.raises(UnsupportedTokenizerError, match="^decoder: WordPiece for a rank file$"):
        decoding(ours.WordPieceDecoder(), RankBPE(ranks={}))


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (ours.StripDecoder("ab", 1, 0), "decoder: Strip with content 'ab'; one character is expected"),
        (ours.StripDecoder(" ", -1, 0), "decoder: Strip with start -1 and stop 0"),
        (ours.Metaspace(replacement=""), "decoder: Metaspace with replacement ''; one character is expected"),
    ],
)
def test_values_that_cannot_be(decoder, message):
    with pytest.raises(TokenizerFileError) as error:
        decoding(decoder, NO_MODEL)
    assert str(error.value) == message


def test_tokens_that_replacing_would_blow_up():
    vocabulary = _core.Vocabulary.plain(["a" * 300_000])
    with pytest.raises(UnsupportedTokenizerError, match="may make more than 1073741824 bytes$"):
        Decoding(vocabulary, replace("a", "b" * 4000))


def test_a_token_of_plain_text_may_be_empty_and_none_is_given_twice():
    assert len(_core.Vocabulary.plain(["", "a"])) == 2
    assert len(_core.Vocabulary.plain(MappingProxyType({"": 3}))) == 4
    with pytest.raises(TokenizerFileError, match="^token id 0 is given twice$"):
        _core.Vocabulary.plain({"a": 0, "b": 0})
