"""Byte-pair encoding in the core against the definition of it, on random small vocabularies.

Texts are one piece each: the pre-tokenizer has no pattern. Vocabularies are made of characters of one to four bytes,
with merges inside characters, between parts of neighbours, and between whole ones, in any order: what the core does
ahead of time for whole characters and for whole pieces must not show.
"""

from __future__ import annotations

import json
import random

import pytest
import tiktoken
import tokenizers
from full_run import share

from tokenweir.encode._core import Bpe, byte_alphabet
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.reference import merge
from tokenweir.encode.spec import BPE, AddedToken, ByteLevel, Pattern, RankBPE, Split, TokenizerSpec
from tokenweir.encode.tokenizer import Tokenizer, core_of

LETTERS = ["a", "b", "é", "è", "ø", "日", "旦", "月", "本", "ア", "😀"]
ONE_PIECE = ByteLevel(add_prefix_space=False, use_regex=False)
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}


def random_merges(pick, letters, count):
    """Pairs of tokens, of which each joins two that exist by then; about a third begin with the bytes of a character."""
    tokens = sorted({bytes([byte]) for letter in letters for byte in letter.encode()})
    merges = []
    for _ in range(count):
        if pick.random() < 0.35:
            text = pick.choice(letters).encode()
            cut = pick.randint(1, len(text) - 1) if len(text) > 1 else 0
            left, right = text[:cut], text[cut:]
            if left not in tokens or right not in tokens:
                continue
        else:
            left, right = pick.choice(tokens), pick.choice(tokens)
        if len(left + right) <= 12:
            merges.append((left, right))
            tokens.append(left + right)
    if pick.random() < 0.5:  # in any order, a pair twice
        merges += pick.sample(merges, len(merges) // 4)
        pick.shuffle(merges)
    return merges


def random_text(pick, letters, longest):
    return "".join(pick.choice(letters) for _ in range(pick.randint(1, longest)))


def merging_tokenizer(spell, merges, *, ignore_merges=False, added=(), pre_tokenizer=ONE_PIECE):
    tokens = dict.fromkeys([bytes([byte]) for byte in range(256)] + [left + right for left, right in merges])
    model = BPE(
        vocab={spell(token): i for i, token in enumerate(tokens)},
        merges=[(spell(left), spell(right)) for left, right in merges],
        ignore_merges=ignore_merges,
    )
    return Tokenizer.from_spec(
        TokenizerSpec(model=model, pre_tokenizer=pre_tokenizer, decoder=ByteLevel(), added_tokens=added)
    )


def tokens_of(tok, text, **options):
    return [tok.token_bytes(token_id) for token_id in tok.encode(text, **options)]


def test_the_reference_is_huggingfaces(both):
    """The textbook's merging, checked once on the library itself."""
    pick = random.Random(1)
    for _ in range(20):
        letters = pick.sample(["a", "b", "é", "日"], 3)
        words = [random_text(pick, letters, 4) for _ in range(6)]
        tok, huggingface = both(words=words, pre_tokenizer=BYTE_LEVEL | {"use_regex": False})
        token = {name: tok.token_bytes(token_id) for name, token_id in tok.spec.model.vocab.items()}
        priority = {(token[left], token[right]): i for i, (left, right) in enumerate(tok.spec.model.merges)}
        for text in (random_text(pick, letters, 40) for _ in range(20)):
            ids = huggingface.encode(text).ids
            assert [tok.token_bytes(token_id) for token_id in ids] == merge(text.encode(), priority.get)


@pytest.mark.parametrize("seed", range(4))
def test_merges(spell, seed):
    pick = random.Random(seed)
    for _ in range(share(150)):
        letters = pick.sample(LETTERS, pick.randint(1, 4))
        merges = random_merges(pick, letters, pick.randint(1, 30))
        tok = merging_tokenizer(spell, merges)
        priority = {pair: i for i, pair in enumerate(merges)}  # of a pair listed twice, the later
        for _ in range(60):
            text = random_text(pick, letters, pick.choice([2, 4, 8]))
            assert tokens_of(tok, text) == merge(text.encode(), priority.get), (merges, text)


def test_ranks():
    pick = random.Random(5)
    for _ in range(share(150)):
        letters = pick.sample(LETTERS, pick.randint(1, 4))
        tokens = [bytes([byte]) for byte in range(256)]
        tokens += {left + right for left, right in random_merges(pick, letters, pick.randint(1, 30))}
        pick.shuffle(tokens)
        ranks = {token: rank for rank, token in enumerate(dict.fromkeys(tokens))}
        splits = {(token[:cut], token[cut:]): rank for token, rank in ranks.items() for cut in range(1, len(token))}
        tok = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks)))
        merging = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks, ignore_merges=False)))
        for _ in range(60):
            text = random_text(pick, letters, pick.choice([2, 4, 8]))
            merged = merge(text.encode(), splits.get)
            assert tokens_of(tok, text) == ([text.encode()] if text.encode() in ranks else merged), (ranks, text)
            assert tokens_of(merging, text) == merged, (ranks, text)


def test_every_token_as_a_text(spell):
    """Whether merging makes a token is mostly told before it is first asked, by the merges alone."""
    pick = random.Random(6)
    for _ in range(150):
        merges = random_merges(pick, ["a", "b", "日"][: pick.randint(1, 3)], pick.randint(5, 60))
        priority = {pair: i for i, pair in enumerate(merges)}
        tokens = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]
        ranks = {token: rank for rank, token in enumerate(dict.fromkeys(tokens))}
        splits = {(token[:cut], token[cut:]): rank for token, rank in ranks.items() for cut in range(1, len(token))}
        tok = merging_tokenizer(spell, merges)
        ranked = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks, ignore_merges=False)))
        for token in tokens[256:]:
            text = token.decode(errors="ignore")
            if text.encode() == token:
                assert tokens_of(tok, text) == merge(token, priority.get), (merges, text)
                assert tokens_of(ranked, text) == merge(token, splits.get), (merges, text)


@pytest.mark.parametrize("letters", [["a", "b"], ["a", "é", "日"], ["日", "本", "😀"]])
def test_long_pieces(spell, letters):
    """From 64 bytes on, another way of merging; it has to agree with the short one's, too, on either side."""
    pick = random.Random(len(letters[0]))
    for _ in range(15):
        merges = random_merges(pick, letters, 30)
        tok = merging_tokenizer(spell, merges)
        priority = {pair: i for i, pair in enumerate(merges)}
        for length in (55, 60, 61, 62, 63, 64, 65, 66, 67, 70, 130, 400):
            text = random_text(pick, letters, length)
            while len(text.encode()) < length:
                text += pick.choice(letters)
            assert tokens_of(tok, text) == merge(text.encode(), priority.get), (merges, text)


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_many_new_words_at_once(spell, ignore_merges):
    """New words merge side by side; some come twice, and merging never yields some of the tokens."""
    pick = random.Random(ignore_merges)
    letters = ["a", "b", "c", "é", "日"]
    for _ in range(40):
        merges = random_merges(pick, [*letters, " "], 60)
        priority = {pair: i for i, pair in enumerate(merges)}
        tokens = {left + right for left, right in merges}
        tok = merging_tokenizer(
            spell, merges, ignore_merges=ignore_merges, pre_tokenizer=ByteLevel(add_prefix_space=False)
        )
        words = [random_text(pick, letters, pick.choice([2, 5, 9, 14])) for _ in range(300)]
        words += pick.choices(words, k=100)
        pieces = [words[0].encode(), *(b" " + word.encode() for word in words[1:])]
        expected = []
        for piece in pieces:
            expected += [piece] if ignore_merges and piece in tokens else merge(piece, priority.get)
        for _ in range(2):  # the second time from what was kept
            assert tokens_of(tok, " ".join(words)) == expected, merges


@pytest.mark.parametrize("unit", ["a", "ab", "aab", "日", "ab" * 1792 + "b"])
def test_long_runs_of_the_same(both, unit):
    """Pieces longer than the merging window; windows of the same symbols are merged once."""
    for seed in range(share(5)):
        pick = random.Random(seed)
        merges = [(a.decode(), b.decode()) for a, b in random_merges(pick, ["a", "b"], 12)]
        ours, theirs = both(merges=merges, pre_tokenizer=BYTE_LEVEL | {"use_regex": False})
        for n in (9000, 9001, 20_011):
            text = (unit * n)[:n]
            assert ours.encode(text) == theirs.encode(text).ids, merges
            assert ours.encode(text + "b" + text) == theirs.encode(text + "b" + text).ids, merges


def test_a_piece_that_is_a_token_is_taken_whole_where_the_model_says_so(both):
    merges = [("a", "b"), ("b", "c"), ("a", "bc")]  # abc is a token, and merging ends in ab c
    for ignore_merges in (False, True):
        ours, theirs = both(merges=merges, model={"ignore_merges": ignore_merges})
        assert ours.encode("abc abc") == theirs.encode("abc abc").ids
        assert tokens_of(ours, "abc") == ([b"abc"] if ignore_merges else [b"ab", b"c"])


def test_a_pair_listed_twice_keeps_its_later_place(both):
    ours, theirs = both(merges=[("a", "b"), ("b", "c"), ("a", "b")])
    assert tokens_of(ours, "abc") == [b"a", b"bc"]
    assert ours.encode("abc") == theirs.encode("abc").ids


@pytest.mark.parametrize("text", ["ab", "ab" * 50, "xab", "日本", "a日本" * 20])
@pytest.mark.parametrize("ignore_merges", [False, True])
def test_text_that_is_plain_data_yields_no_control_token(spell, text, ignore_merges):
    """Text is merged as if the vocabulary had no control tokens."""
    merges = [(b"a", b"b"), (b"ab", b"ab")]
    merges += [(b"\xe6", b"\x97"), (b"\xe6\x97", b"\xa5"), (b"\xe6", b"\x9c"), (b"\xe6\x9c", b"\xac")]
    merges += [("日".encode(), "本".encode()), (b"x", b"a")]
    tok = merging_tokenizer(
        spell,
        merges,
        ignore_merges=ignore_merges,
        added=tuple(AddedToken(spell(token), special=True) for token in ("ab", "日本", "日")),
    )
    control = set(tok.special_tokens.values())
    assert control & set(tok.encode(text))
    without = {
        pair: i for i, pair in enumerate(merges) if b"".join(pair) not in (b"ab", "日本".encode(), "日".encode())
    }
    expected = merge(text.encode(), without.get)
    assert tokens_of(tok, text, parse_special=False) == expected
    assert tokens_of(tok, text, guarded=range(len(text))) == expected
    assert set(tok.encode(text)) & control, "the cache of words keeps the two apart"


def test_pairs_that_are_never_met_take_no_memory(spell):
    """Of each token the pair that merging ends with is enough, unless a call may forbid a merge."""
    merges = [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")]
    for control, kept in ((), 3), ((AddedToken(spell(b"ab"), special=True),), 4):
        tok = merging_tokenizer(spell, merges, added=control)
        assert int((core_of(tok).model.pairs != 0xFFFFFFFFFFFFFFFF).sum()) == kept
        assert tokens_of(tok, "abc", parse_special=False) == [b"abc"]


def test_guarded_merging_is_that_of_a_model_without_the_control_tokens(spell):
    pick = random.Random(11)
    for _ in range(share(150)):
        letters = pick.sample(["a", "b", "c", "é", "日"], pick.randint(1, 3))
        merges = random_merges(pick, letters, pick.randint(3, 40))
        control = pick.sample(sorted({left + right for left, right in merges}), 1) if merges else []
        tok = merging_tokenizer(spell, merges, added=tuple(AddedToken(spell(token), special=True) for token in control))
        allowed = {pair: i for i, pair in enumerate(merges) if b"".join(pair) not in control}
        for _ in range(40):
            text = random_text(pick, letters, pick.choice([2, 4, 8, 30]))
            assert tokens_of(tok, text, parse_special=False) == merge(text.encode(), allowed.get), (merges, control)


def test_a_single_byte_that_is_a_control_token_stays(small):
    """Nothing else could stand for it."""
    tok = small(added=[{"content": "!", "special": True}])
    assert tok.encode("!", parse_special=False) == [tok.token_to_id("!")]


NEVER = (0xC0, 0xC1, *range(0xF5, 0x100))


def test_bytes_that_no_text_contains_need_no_token(small, tokenizer_json):
    """The model still takes bytes, and the ids are the reference's."""
    source = tokenizer_json(words=["ab", "é", "日", "日本", " a", "\U0010ffff", "\u07ff"])
    for byte in NEVER:
        del source["model"]["vocab"][byte_alphabet()[byte]]
    source["model"]["vocab"][byte_alphabet()[0xF5] + byte_alphabet()[0x80]] = 400  # which no text becomes either
    ours, theirs = small(source), tokenizers.Tokenizer.from_str(json.dumps(source))
    assert isinstance(core_of(ours).model, Bpe)
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, 0x101)]))
    for text in (every, "日本ab a\U0010ffff\u07ff"):
        assert ours.encode(text) == theirs.encode(text).ids
    assert ours.decode([400], skip_special_tokens=False) == theirs.decode([400], skip_special_tokens=False)


def test_nor_do_they_in_a_rank_file():
    ranks = {bytes([byte]): byte for byte in range(256) if byte not in NEVER} | {b"ab": 256, "日".encode(): 257}
    theirs = tiktoken.Encoding("x", pat_str=r"\w+|\W", mergeable_ranks=ranks, special_tokens={})
    split = Split(pattern=Pattern(Regex=r"\w+|\W"), behavior="Isolated", dialect="fancy-regex")
    ours = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks), pre_tokenizer=split))
    text = "ab 日本 é \U0010ffff \u07ff"
    assert ours.encode(text) == theirs.encode(text)


def test_where_another_byte_is_missing_its_characters_are_unknown(small, tokenizer_json):
    """The model then works on the letters of the byte alphabet, as the reference does; without an `unk_token` one vanishes."""
    for unk_token in (None, "ab"):
        source = tokenizer_json(words=["ab", "é", "日本"], model={"unk_token": unk_token})
        for byte in (*NEVER, 0xF4, ord("q")):
            del source["model"]["vocab"][byte_alphabet()[byte]]
        ours, theirs = small(source), tokenizers.Tokenizer.from_str(json.dumps(source))
        for text in ("aqb q 日本é", "\U0010ffff\U0001f600", "qq"):
            assert ours.encode(text) == theirs.encode(text).ids


@pytest.mark.parametrize("missing", [0, 0x41, 0xF4])
def test_every_byte_has_to_be_a_token(missing):
    ranks = {bytes([byte]): byte for byte in range(256) if byte != missing}
    with pytest.raises(
        UnsupportedTokenizerError, match=f"^a byte-level vocabulary without a token for byte {missing}$"
    ):
        Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks)))


def test_ranked_tokens_are_not_endless():
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"a" * 4097: 256}
    with pytest.raises(UnsupportedTokenizerError, match=r"^a ranked token of 4097 bytes; at most 4096 are possible$"):
        Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks)))


def test_merges_of_tokens_that_no_text_can_reach(both):
    """Their names have characters outside the byte alphabet; they are in real files, and harmless."""
    ours, theirs = both(words=["日", "日本"], merges=[("日", "本")], vocab={"日": 300, "本": 301, "日本": 302})
    assert ours.encode("日本 日") == theirs.encode("日本 日").ids
    assert ours.decode([302, 301]) == theirs.decode([302, 301]) == "日本本"


def test_a_piece_may_end_inside_a_character(both):
    """No token crosses a place where a `Split` after `ByteLevel` cuts between the letters of the bytes."""
    split = {"type": "Split", "pattern": {"String": "Ĺ"}, "behavior": "MergedWithPrevious", "invert": False}
    byte_level = BYTE_LEVEL | {"use_regex": False}
    ours, theirs = both(words=["日", "日本"], pre_tokenizer={"type": "Sequence", "pretokenizers": [byte_level, split]})
    for text in ("日", "日日", "a日本", "日本日"):
        assert ours.encode(text) == theirs.encode(text).ids
        assert ours.decode(ours.encode(text)) == text
