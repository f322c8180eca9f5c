"""Small tokenizer files of every format, trained on a few lines, which `hostile.py` damages."""

from __future__ import annotations

import base64
import io
import json
import sys
import tempfile
from collections.abc import Sequence

import sentencepiece
import tokenizers
from shared.report import ROOT
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.append(str(ROOT / "tests" / "oracles"))
from gguf_writer import gguf_bytes

TEXT = (
    "The quick brown fox jumps over the lazy dog, doesn't it? 1234 times! \n\n    def f(x): return x ** 2 # ok\n"
    "Größe naïve café ﬁne ①½ 東京都 日本語の文章 Москва مرحبا 안녕하세요 👩‍💻 e\u0301 \u00a0x\t"
).splitlines(keepends=True) * 8
SPECIAL = [AddedToken("<s>", special=True), AddedToken("</s>", special=True), AddedToken("<unk>", special=True)]
PATTERN = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _trained(tok: tokenizers.Tokenizer, trainer: trainers.Trainer) -> bytes:
    tok.train_from_iterator(TEXT, trainer)
    tok.add_tokens([AddedToken("<left>", lstrip=True), AddedToken("word", single_word=True, normalized=True)])
    return tok.to_str().encode()


def byte_level() -> bytes:
    tok = tokenizers.Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    tok.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return _trained(
        tok, trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=SPECIAL, initial_alphabet=alphabet)
    )


def byte_fallback() -> bytes:
    tok = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    replace, strip = decoders.Replace("\u2581", " "), decoders.Strip(" ", 1, 0)
    tok.decoder = decoders.Sequence([replace, decoders.ByteFallback(), decoders.Fuse(), strip])
    tok.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 0)])
    special = [*SPECIAL, *(AddedToken(f"<0x{byte:02X}>") for byte in range(256))]
    file = json.loads(_trained(tok, trainers.BpeTrainer(vocab_size=500, show_progress=False, special_tokens=special)))
    file["added_tokens"] = [token for token in file["added_tokens"] if not token["content"].startswith("<0x")]
    return json.dumps(file).encode()


def unigram() -> bytes:
    tok = tokenizers.Tokenizer(models.Unigram())
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    tok.decoder = decoders.Metaspace()
    return _trained(
        tok, trainers.UnigramTrainer(vocab_size=300, show_progress=False, special_tokens=SPECIAL, unk_token="<unk>")
    )


def word_piece() -> bytes:
    tok = tokenizers.Tokenizer(models.WordPiece(unk_token="<unk>"))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    tok.post_processor = processors.BertProcessing(("</s>", 1), ("<s>", 0))
    return _trained(tok, trainers.WordPieceTrainer(vocab_size=300, show_progress=False, special_tokens=SPECIAL))


def sentencepiece_model(model_type: str, **options: object) -> bytes:
    """With a character map of a few rules: the usual one takes 240 KB."""
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write("FB01\t66 69\n2460\t31\nBD\t31 2F 32\n65 301\tE9\nA0\t20\n9\t20\nA\t20\n")
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXT),
            model_writer=model,
            model_type=model_type,
            normalization_rule_tsv=rules.name,
            hard_vocab_limit=False,
            vocab_size=400,
            byte_fallback=True,
            minloglevel=2,
            user_defined_symbols=["<sep>", "  "],
            **options,
        )
    return model.getvalue()


def ranks() -> list[bytes]:
    """Return the 256 bytes, and the tokens that merging makes from some words."""
    words = [word.encode() for word in ("the", "quick", " the", "東京", "日本", "    ")]
    longer = [word[:end] for word in words for end in range(2, len(word) + 1)]
    return [*(bytes([byte]) for byte in range(256)), *dict.fromkeys(longer)]


def rank_file() -> bytes:
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(ranks()))


def tekken() -> bytes:
    tokens = ranks()
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    config = {
        "pattern": PATTERN,
        "num_vocab_tokens": len(tokens),
        "default_vocab_size": len(tokens) + 20,
        "default_num_special_tokens": 20,
        "version": "v7",
    }
    vocab = [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)]
    special = [{"rank": i, "token_str": name, "is_control": True} for i, name in enumerate(names)]
    return json.dumps({"config": config, "vocab": vocab, "special_tokens": special}).encode()


def _gguf(model: str, tokens: Sequence[str], types: Sequence[int], **more: object) -> bytes:
    keys = {"model": model, "tokens": list(tokens), "token_type": list(types), **more}
    return gguf_bytes({f"tokenizer.ggml.{key}": value for key, value in keys.items()})


def gguf_gpt2() -> bytes:
    file = json.loads(byte_level())
    vocab = sorted(file["model"]["vocab"].items(), key=lambda item: item[1])
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in file["model"]["merges"]]
    types = [3 if token in ("<s>", "</s>", "<unk>") else 1 for token, _ in vocab]
    return _gguf("gpt2", [t for t, _ in vocab], types, pre="llama-bpe", merges=merges, bos_token_id=0, eos_token_id=1)


def gguf_of_sentencepiece(model: str, data: bytes) -> bytes:
    sp = sentencepiece.SentencePieceProcessor(model_proto=data)
    ids = range(len(sp))

    def kind(i: int) -> int:
        return 2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 5 if sp.is_unused(i) else 6 if sp.is_byte(i) else 1

    scores = [float(sp.get_score(i)) for i in ids]
    pieces = [sp.id_to_piece(i) for i in ids]
    return _gguf(model, pieces, [kind(i) for i in ids], scores=scores, unknown_token_id=0, bos_token_id=1)


def gguf_bert() -> bytes:
    vocab = json.loads(word_piece())["model"]["vocab"]
    tokens = sorted(vocab, key=vocab.__getitem__)
    special = ("<s>", "</s>", "<unk>")
    spelled = [t if t in special else t[2:] if t.startswith("##") else f"\u2581{t}" for t in tokens]
    types = [3 if token in special else 1 for token in tokens]
    return _gguf("bert", spelled, types, cls_token_id=0, seperator_token_id=1, unknown_token_id=2)


def small_files() -> dict[str, tuple[str, bytes]]:
    """Name to format and content, each under 64 KB."""
    bpe, viterbi = sentencepiece_model("bpe"), sentencepiece_model("unigram", treat_whitespace_as_suffix=True)
    return {
        "tokenizer.json, byte-level BPE": ("huggingface", byte_level()),
        "tokenizer.json, BPE with byte fallback": ("huggingface", byte_fallback()),
        "tokenizer.json, Unigram": ("huggingface", unigram()),
        "tokenizer.json, WordPiece": ("huggingface", word_piece()),
        "SentencePiece BPE": ("sentencepiece", bpe),
        "SentencePiece Unigram": ("sentencepiece", viterbi),
        "rank file": ("tiktoken", rank_file()),
        "tekken.json": ("tekken", tekken()),
        "GGUF, gpt2": ("gguf", gguf_gpt2()),
        "GGUF, llama": ("gguf", gguf_of_sentencepiece("llama", bpe)),
        "GGUF, t5": ("gguf", gguf_of_sentencepiece("t5", viterbi)),
        "GGUF, bert": ("gguf", gguf_bert()),
    }
