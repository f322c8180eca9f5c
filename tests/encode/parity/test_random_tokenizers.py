"""Tokenizers put together at random from every component of HuggingFace's library: exact, or refused by name."""

from __future__ import annotations

import base64
import json
from collections import Counter
from random import Random

import pytest
import tokenizers
from full_run import share
from sentencepiece_files import charsmap
from tokenizers import models, trainers

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify import adversarial, comparison, references

TEXT = (
    "The quick brown fox jumps over the lazy dog, doesn't it? 1234 times! \n\n    def f(x): return x ** 2 # ok\n"
    "Größe naïve café ﬁne ①½ 東京都 日本語の文章 Москва مرحبا 안녕하세요 👩\u200d💻 e\u0301 \u00a0x\t\u2581a \u2581\u2581b"
).splitlines(keepends=True) * 4
CHARSMAP = base64.b64encode(
    charsmap({"ﬁ": "fi", "①": "1", "½": "1/2", "e\u0301": "é", "\u00a0": " ", "\t": " ", "\u200b": "", "Ａ": "A"})
).decode()
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPACE = "\u2581"
PATTERNS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"\p{N}{1,3}",
    r"[0-9][0-9][0-9]",
    r"[\r\n]",
    r"\s?\p{L}+",
    r"\s+$",
    r"\s+",
    r" ",
    r"\p{L}(?=\p{N})|\d+",
    r"[^\s]+|\s+(?!\S)",
)
STRINGS = (" ", SPACE, "a", "''", "ab", "e\u0301", "\n", "<!dummy-prefix!>")
BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
CONTENTS = (
    *("<s>", "</s>", "<unk>", "[MASK]", "<mask>", "  ", "   ", " ", "\n", "\n\n", "the", "The", "dog", "do", "a", "é", "e\u0301"),
    *("É", "Ω", "\u2581a", "\u2581", "word", "<|end|>", "<|end|>x", "1", "12", "ﬁ", "##a", "Ġ", "東", " x ", "'s", "\u200d", "<0x41>"),
)  # fmt: skip
NAMES = (
    "model: ",
    "decoder: ",
    "post_processor: ",
    "normalizer: ",
    "an added token",
    "added tokens ",
    "Unigram model",
)
"""Return the construct that a refusal names."""


class Draw:
    """Components, drawn from `rng`."""

    def __init__(self, rng):
        self.rng = rng
        self.one = rng.choice

    def maybe(self, chance=0.5):
        return self.rng.random() < chance

    def several(self, make, field, most=3):
        """None, one component, or a Sequence of some, which may hold Sequences itself."""
        if self.maybe(0.3):
            return None
        if self.maybe():
            return make()
        parts = [self.several(make, field, 2) if self.maybe(0.1) else make() for _ in range(self.rng.randint(1, most))]
        return {"type": "Sequence", field: [part for part in parts if part]}

    def pattern(self):
        return {"String": self.one(STRINGS)} if self.maybe(0.3) else {"Regex": self.one(PATTERNS)}

    def normalizer(self):
        kind = self.one(
            ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Prepend", "Replace", "Replace")
            + ("BertNormalizer", "Precompiled")
        )
        flag = self.maybe
        match kind:
            case "Strip":
                more = {"strip_left": flag(), "strip_right": flag()}
            case "Prepend":
                more = {"prepend": self.one((SPACE, " ", "ab", "é", "\u0301"))}
            case "Replace":
                content = self.one((SPACE, " ", "", "a", "\u0301", "xyz", "\\1", "$0"))
                more = {"pattern": self.pattern(), "content": content}
            case "BertNormalizer":
                more = {"clean_text": flag(), "handle_chinese_chars": flag(), "lowercase": flag()}
                more["strip_accents"] = self.one((None, True, False))
            case "Precompiled":
                more = {"precompiled_charsmap": CHARSMAP}
            case _:
                more = {}
        return {"type": kind, **more}

    def byte_level(self):
        flag = self.maybe
        return {"type": "ByteLevel", "add_prefix_space": flag(), "trim_offsets": flag(), "use_regex": flag()}

    def metaspace(self):
        scheme = self.one(("always", "first", "never"))
        made = {"type": "Metaspace", "replacement": self.one((SPACE, SPACE, "_")), "prepend_scheme": scheme}
        if self.maybe(0.2):
            return {"type": "Metaspace", "replacement": SPACE, "add_prefix_space": True, "str_rep": SPACE}
        return made | {"split": self.maybe()}

    def pre_tokenizer(self):
        kind = self.one(
            ("Split", "Split", "ByteLevel", "ByteLevel", "Metaspace", "Digits", "Punctuation", "Whitespace")
            + ("WhitespaceSplit", "BertPreTokenizer", "CharDelimiterSplit")
        )
        match kind:
            case "Split":
                more = {"pattern": self.pattern(), "behavior": self.one(BEHAVIORS), "invert": self.maybe(0.3)}
            case "ByteLevel":
                return self.byte_level()
            case "Metaspace":
                return self.metaspace()
            case "Digits":
                more = {"individual_digits": self.maybe()}
            case "Punctuation":
                more = {"behavior": self.one(BEHAVIORS)}
            case "CharDelimiterSplit":
                more = {"delimiter": self.one((" ", "-", SPACE, "a", "é"))}
            case _:
                more = {}
        return {"type": kind, **more}

    def decoder(self):
        kind = self.one(
            ("ByteLevel", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace", "WordPiece", "BPEDecoder")
        )
        match kind:
            case "ByteLevel":
                return self.byte_level()
            case "Metaspace":
                return self.metaspace()
            case "Replace":
                more = {"pattern": {"String": self.one(STRINGS)}, "content": self.one((" ", "", "a", "xyz"))}
            case "Strip":
                more = {"content": self.one((" ", SPACE, "a")), "start": self.rng.randint(0, 2)}
                more["stop"] = self.rng.randint(0, 2)
            case "WordPiece":
                more = {"prefix": self.one(("##", "", "a")), "cleanup": self.maybe()}
            case "BPEDecoder":
                more = {"suffix": self.one(("</w>", "##", "e"))}
            case _:
                more = {}
        return {"type": kind, **more}

    def post_processor(self, vocab):
        some = self.rng.sample(sorted(vocab.items(), key=lambda item: item[1]), 2)
        kind = self.one(
            ("TemplateProcessing", "TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel")
        )
        match kind:
            case "ByteLevel":
                return self.byte_level()
            case "TemplateProcessing":
                tokens = {token: {"id": token, "ids": [i], "tokens": [token]} for token, i in some}
                around = [{"SpecialToken": {"id": self.one(list(tokens)), "type_id": 0}} for _ in range(3)]
                single = around[: self.rng.randint(0, 3)]
                single.insert(self.rng.randint(0, len(single)), {"Sequence": {"id": "A", "type_id": 0}})
                pair = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
                more = {"single": single, "pair": pair, "special_tokens": tokens}
            case "BertProcessing":
                more = {"cls": list(some[0]), "sep": list(some[1])}
            case "RobertaProcessing":
                more = {"cls": list(some[0]), "sep": list(some[1])}
                more |= {"trim_offsets": self.maybe(), "add_prefix_space": self.maybe()}
        return {"type": kind, **more}

    def added_token(self, vocab):
        content = self.one(list(vocab)) if self.maybe(0.3) else self.one(CONTENTS)
        flags = ("special", "normalized", "lstrip", "rstrip", "single_word")
        # A control token that alone stands for its byte stays; when it does, tokenweir.verify.references cannot tell.
        while len(content) == 1 and content in vocab:
            content = self.one(CONTENTS)
        return {"id": self.rng.randrange(1000), "content": content} | {flag: self.maybe(0.35) for flag in flags}

    def model(self, tok):
        """A model trained on what the components before it make of some text; None if its size is too small for it."""
        kind = self.one(("BPE", "BPE", "BPE", "Unigram", "WordPiece"))
        size = self.one((60, 150, 400))
        options = {"vocab_size": size, "show_progress": False, "special_tokens": ["<unk>", "<s>"]}
        if self.maybe(0.7):  # what is left out is unknown
            options["initial_alphabet"] = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        prefix, suffix = self.one(("", "", "", "##", "a")), self.one(("", "", "", "</w>"))
        match kind:
            case "BPE":
                tok.model = models.BPE(continuing_subword_prefix=prefix, end_of_word_suffix=suffix)
                more = {"limit_alphabet": self.one((20, 1000)), "continuing_subword_prefix": prefix}
                trainer = trainers.BpeTrainer(**options, **more, end_of_word_suffix=suffix)
            case "Unigram":
                tok.model = models.Unigram()
                trainer = trainers.UnigramTrainer(**options, unk_token="<unk>")
            case "WordPiece":
                tok.model = models.WordPiece(unk_token="<unk>")
                trainer = trainers.WordPieceTrainer(**options)
        try:
            tok.train_from_iterator(TEXT, trainer)
        except Exception as error:  # noqa: BLE001  the library raises no narrower one
            assert "not large enough to contain all chars" in str(error)
            return None
        model = json.loads(tok.to_str())["model"]
        match kind:
            case "BPE":
                model |= {"unk_token": self.one((None, "<unk>", "<unk>")), "fuse_unk": self.maybe()}
                model |= {"byte_fallback": self.maybe(), "ignore_merges": self.maybe()}
                vocab = model["vocab"]
                for token in self.rng.sample(list(vocab), min(3, len(vocab))):  # a gap; added tokens go into it
                    if self.maybe(0.3):
                        vocab[token] = max(vocab.values()) + self.rng.randint(9, 12)
            case "Unigram":
                model["byte_fallback"] = self.maybe()
                vocab = dict(model["vocab"])
                if self.maybe(0.1):
                    model["unk_id"] = None
            case "WordPiece":
                vocab = model["vocab"]
                model["max_input_chars_per_word"] = self.one((3, 100))
        if kind != "WordPiece" and self.maybe():
            for token in BYTES if self.maybe(0.8) else self.rng.sample(BYTES, 200):
                if kind == "BPE":
                    vocab.setdefault(token, max(vocab.values()) + 1)
                elif token not in vocab:
                    model["vocab"].append([token, 0.0])
        return model

    def tokenizer(self):
        """A tokenizer.json, as a dict; None if the library cannot train with its components."""
        tok = tokenizers.Tokenizer(models.BPE())
        file = json.loads(tok.to_str())
        file["normalizer"] = self.several(self.normalizer, "normalizers")
        file["pre_tokenizer"] = self.several(self.pre_tokenizer, "pretokenizers")
        tok = tokenizers.Tokenizer.from_str(json.dumps(file))
        if (model := self.model(tok)) is None:
            return None
        file["model"] = model
        vocab = {t: i for i, (t, _) in enumerate(v)} if isinstance(v := file["model"]["vocab"], list) else v
        file["decoder"] = self.several(self.decoder, "decoders", 4)
        file["post_processor"] = self.several(lambda: self.post_processor(vocab), "processors", 2)
        added = [self.added_token(vocab) for _ in range(self.rng.choice((0, 1, 3, 8)))]
        # Of two tokens that normalizing makes equal, the library takes one at random each time that it loads.
        normalize = tok.normalizer.normalize_str if tok.normalizer else str
        file["added_tokens"] = list({normalize(token["content"]): token for token in added}.values())
        return file


def differences(file, path, seed, each=2):
    """Find the differences between ours and the library over adversarial texts and random ids; None if the library fails."""
    path.write_text(json.dumps(file))
    reference = references.HuggingFace(path)
    tok = Tokenizer.from_file(path)
    ids = comparison.random_ids(seed, reference, 40)
    vocabulary = list(filter(None, (reference.tokenizer.id_to_token(i) for i in reference.ids)))
    count = each * len(adversarial.KINDS)
    kinds = adversarial.strings(count, seed=seed, special_tokens=reference.special_tokens, vocabulary=vocabulary)
    texts = ["", *(text for kind in kinds.values() for text in kind)]
    try:
        return [
            *comparison.encode_differences(tok, reference, texts),
            *comparison.decode_differences(tok, reference, ids),
        ]
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # the library's own; it does not derive from Exception
            return None
        raise


@pytest.mark.parametrize("part", range(8))
def test_random_tokenizers(tmp_path, monkeypatch, capfd, part):
    """Exact or refused by name, whatever the parts. (Training breaks ties at random, so the files differ each time.)"""
    monkeypatch.setenv("RAYON_NUM_THREADS", "1")
    counts = Counter()
    for i in range(share(60)):
        seed = f"{part}/{i}"
        file = Draw(Random(seed)).tokenizer()
        if file is None:
            continue
        try:
            found = differences(file, tmp_path / "tokenizer.json", seed)
        except UnsupportedTokenizerError as error:
            assert any(part in str(error) for part in NAMES), error
            counts["refused"] += 1
            continue
        if found:
            file["model"] = {k: v for k, v in file["model"].items() if k not in ("vocab", "merges")}
            pytest.fail(f"{found[0]}\n{json.dumps(file)}")
        counts["exact" if found is not None else "the library panics"] += 1
    capfd.readouterr()  # what the library's panics print
    assert counts["exact"] >= share(16)
