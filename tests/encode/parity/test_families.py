"""Every known family of tokenizer.json: its components over a small vocabulary, exact in everything.

The components and flags are those of the families' own files; the vocabularies are trained on a few lines.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import pytest
import tokenizers
from full_run import share
from sentencepiece_files import charsmap_of, train
from tokenizers import models, trainers

from tokenweir.encode.formats.gguf.pre import PRE
from tokenweir.encode.spec import Split
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify import adversarial, comparison, references

TEXT = (
    "The quick brown fox jumps over the lazy dog, doesn't it? 1234 times! \n\n    def f(x): return x ** 2 # ok\n"
    "Größe naïve café ﬁne ①½ 東京都 日本語の文章 Москва مرحبا 안녕하세요 👩\u200d💻 e\u0301 \u00a0x\tHTTPServer camelCase\n"
).splitlines(keepends=True) * 8
SPACE = "\u2581"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def sequence(field, *parts):
    return {"type": "Sequence", field: list(parts)}


# -- components --------------------------------------------------------------------------------------------------------

NFC, NFKC, NFKD, LOWERCASE, STRIP_ACCENTS = ({"type": n} for n in ("NFC", "NFKC", "NFKD", "Lowercase", "StripAccents"))
PREPEND = {"type": "Prepend", "prepend": SPACE}


def replace(content, **pattern):
    return {"type": "Replace", "pattern": pattern, "content": content}


def strip_space(left, right):
    return {"type": "Strip", "strip_left": left, "strip_right": right}


def bert(lowercase):
    return {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": lowercase,
    }


@cache
def precompiled(rule="nmt_nfkc"):
    charsmap = charsmap_of(train(normalization_rule_name=rule))
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}


ESCAPE, UNESCAPE = replace(SPACE, String=" "), replace(" ", String=SPACE)


def byte_level(add_prefix_space=False, trim_offsets=True, use_regex=True):
    return {"type": "ByteLevel", **locals()}


OLD_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
BYTES_ONLY = byte_level(use_regex=False)


def split(regex=None, behavior="Isolated", invert=False, **pattern):
    return {"type": "Split", "pattern": pattern or {"Regex": regex}, "behavior": behavior, "invert": invert}


def splits(name):
    """The patterns of a family, one inside the other, and then the alphabet of bytes."""
    regexes = [stage.pattern.Regex for stage in PRE[name].stages if isinstance(stage, Split)]
    return sequence("pretokenizers", *map(split, regexes), BYTES_ONLY)


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


def metaspace(scheme="always", **more):
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, **more}


OLD_METASPACE = {"type": "Metaspace", "replacement": SPACE, "str_rep": SPACE, "add_prefix_space": True}
WORDS = {"type": "WhitespaceSplit"}
BERT_WORDS = {"type": "BertPreTokenizer"}
FUSE, FALLBACK = {"type": "Fuse"}, {"type": "ByteFallback"}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
LLAMA_DECODER = sequence("decoders", UNESCAPE, FALLBACK, FUSE, STRIP)
GEMMA_DECODER = sequence("decoders", UNESCAPE, FALLBACK, FUSE)
WORD_PIECES = {"type": "WordPiece", "prefix": "##", "cleanup": True}


def around(before=(), after=()):
    """A template; the ids are those of the first special tokens."""
    special = {token: {"id": token, "ids": [i], "tokens": [token]} for i, token in enumerate(SPECIAL)}
    single = [{"SpecialToken": {"id": token, "type_id": 0}} for token in before]
    single.append({"Sequence": {"id": "A", "type_id": 0}})
    single += [{"SpecialToken": {"id": token, "type_id": 0}} for token in after]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}


SPECIAL = ("<s>", "</s>", "<unk>", "<pad>")
START, BOTH = around(["<s>"]), around(["<s>"], ["</s>"])
ROBERTA = {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0]}


def added(*contents, **flags):
    return [{"content": content, **flags} for content in contents]


def whitespace_runs(n, **flags):
    return added(*(" " * i for i in range(n, 1, -1)), **flags)


CHAT = added("<|im_start|>", "<|im_end|>", "<|endoftext|>", special=True)
CONTROL = added(*SPECIAL, special=True)

# -- families ----------------------------------------------------------------------------------------------------------

BYTE_LEVEL: dict[str, Any] = {"decoder": byte_level(add_prefix_space=True)}
GPT2 = BYTE_LEVEL | {"pre_tokenizer": byte_level()}
LLAMA = {
    "kind": "fallback",
    "model": {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True},
    "added": CONTROL,
    "post_processor": START,
    "decoder": LLAMA_DECODER,
}
UNIGRAM = {
    "kind": "unigram",
    "decoder": metaspace(split=True),
    "added": CONTROL,
    "post_processor": around((), ["</s>"]),
}
CONVERTED = sequence("normalizers", precompiled(), strip_space(True, True), replace(" ", Regex=" {2,}"))
BERT = {
    "kind": "words",
    "model": {"unk_token": "<unk>"},
    "normalizer": bert(True),
    "pre_tokenizer": BERT_WORDS,
    "post_processor": BOTH,
    "decoder": WORD_PIECES,
    "added": CONTROL,
}
NFKC_STRIP = [replace('"', String="``"), replace('"', String="''"), NFKD, STRIP_ACCENTS]

FAMILIES: dict[str, dict[str, Any]] = {
    # byte-level BPE
    "GPT-2": GPT2
    | {
        "pre_tokenizer": OLD_BYTE_LEVEL,
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False},
        "model": {"continuing_subword_prefix": "", "end_of_word_suffix": ""},
        "added": added("<|endoftext|>", special=True, normalized=True),
        "untyped": True,
    },
    "Phi-2": GPT2
    | {
        "post_processor": byte_level(add_prefix_space=True, trim_offsets=False),
        "model": {"continuing_subword_prefix": "", "end_of_word_suffix": ""},
        "added": [
            *added("<|endoftext|>", special=True),
            *whitespace_runs(12, normalized=True),
            *added(*("\t" * i for i in range(9, 1, -1)), normalized=True),
        ],
    },
    "GPT-NeoX, Pythia, MPT": GPT2
    | {
        "normalizer": NFC,
        "post_processor": byte_level(),
        "decoder": byte_level(),
        "added": [*added("<|endoftext|>", "<|padding|>", special=True), *whitespace_runs(24, normalized=True)],
    },
    "OLMo": GPT2
    | {
        "normalizer": NFC,
        "added": [
            *added("<|endoftext|>", "<|padding|>", special=True),
            *added("|||IP_ADDRESS|||", "|||EMAIL_ADDRESS|||", normalized=True),
            *whitespace_runs(8, normalized=True),
        ],
    },
    "ModernBERT": GPT2
    | {
        "normalizer": NFC,
        "post_processor": BOTH,
        "decoder": byte_level(),
        "added": [
            *added("|||IP_ADDRESS|||", normalized=True),
            *whitespace_runs(24, normalized=True),
            *added("[UNK]", "[CLS]", "[SEP]", "[PAD]", special=True),
            *added("[MASK]", special=True, lstrip=True),
            *added("[unused0]", "[unused1]", normalized=True),
        ],
    },
    "Whisper": GPT2
    | {
        "post_processor": around(["<s>", "</s>"], ["<pad>"]),
        "model": {"continuing_subword_prefix": "", "end_of_word_suffix": ""},
        "added": [
            *added("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", special=True),
            *added(*(f"<|{i / 50:.2f}|>" for i in range(40)), normalized=True),
        ],
    },
    "RoBERTa, BART": GPT2
    | {
        "pre_tokenizer": OLD_BYTE_LEVEL,
        "post_processor": ROBERTA | {"trim_offsets": True, "add_prefix_space": False},
        "added": [
            *added(*SPECIAL, special=True, normalized=True),
            *added("<mask>", special=True, normalized=True, lstrip=True),
        ],
        "untyped": True,
    },
    "Claude 2": GPT2
    | {"normalizer": NFKC, "pre_tokenizer": OLD_BYTE_LEVEL, "added": added("<EOT>", "<META>", special=True)},
    "Llama 3": BYTE_LEVEL
    | {
        "pre_tokenizer": splits("llama-bpe"),
        "post_processor": sequence("processors", byte_level(add_prefix_space=True, trim_offsets=False), START),
        "model": {"ignore_merges": True},
        "added": added("<|begin_of_text|>", "<|eot_id|>", "<|reserved_special_token_0|>", special=True),
        "merges": str,
    },
    "gpt-oss, o200k": BYTE_LEVEL
    | {
        "pre_tokenizer": splits("gpt-4o"),
        "post_processor": byte_level(add_prefix_space=True, trim_offsets=False),
        "model": {"ignore_merges": True},
        "added": added("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", special=True),
    },
    "Llama 4": BYTE_LEVEL
    | {
        "pre_tokenizer": splits("llama4"),
        "post_processor": sequence("processors", byte_level(add_prefix_space=True, trim_offsets=False), START),
        "model": {"ignore_merges": True},
        "added": added("<|begin_of_text|>", "<|header_start|>", "<|python_start|>", special=True),
    },
    "cl100k, DBRX, GLM-4": BYTE_LEVEL
    | {
        "pre_tokenizer": splits("llama-bpe"),
        "model": {"ignore_merges": True},
        "added": [*CHAT, *added("[gMASK]", "<sop>", "<|user|>", special=True), *added("<think>", "</think>")],
    },
    "Qwen, StableLM 2": {
        "normalizer": NFC,
        "pre_tokenizer": sequence(
            "pretokenizers",
            *splits("qwen2")["pretokenizers"][:-1],
            byte_level(trim_offsets=False, use_regex=False),
        ),
        "post_processor": byte_level(trim_offsets=False, use_regex=False),
        "decoder": byte_level(trim_offsets=False, use_regex=False),
        "model": {"continuing_subword_prefix": "", "end_of_word_suffix": ""},
        "added": [*CHAT, *added("<tool_call>", "</tool_call>", "<think>", "</think>")],
    },
    "Qwen 3.5": BYTE_LEVEL | {"normalizer": NFC, "pre_tokenizer": splits("qwen35"), "added": CHAT},
    "Mistral Nemo, tekken": BYTE_LEVEL
    | {
        "pre_tokenizer": splits("tekken"),
        "post_processor": START,
        "model": {"ignore_merges": True},
        "added": [*CONTROL, *added("[INST]", "[/INST]", "[TOOL_CALLS]", special=True)],
    },
    "Kimi K2": BYTE_LEVEL | {"pre_tokenizer": splits("kimi-k2"), "model": {"ignore_merges": True}},
    "DeepSeek V3, R1": BYTE_LEVEL
    | {
        "normalizer": sequence("normalizers"),
        "pre_tokenizer": splits("deepseek-v3"),
        "post_processor": byte_level(add_prefix_space=True, trim_offsets=False),
        "added": [
            *added("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", special=True),
            *added("<｜User｜>", "<｜Assistant｜>"),
            *added("<｜tool▁calls▁begin｜>", "<think>", normalized=True),
        ],
    },
    "DeepSeek LLM": BYTE_LEVEL
    | {
        "pre_tokenizer": sequence(
            "pretokenizers", *splits("deepseek-llm")["pretokenizers"][:-1], digits(True), BYTES_ONLY
        ),
        "added": [*added("<｜begin▁of▁sentence｜>", special=True), *added("ø", "ö", "ü", "  ")],
    },
    "DeepSeek Coder": BYTE_LEVEL
    | {
        "pre_tokenizer": sequence(
            "pretokenizers",
            *map(split, (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+")),
            digits(True),
            BYTES_ONLY,
        ),
        "added": [*added("<｜begin▁of▁sentence｜>", special=True), *added("<｜fim▁hole｜>", "õ", "÷", "Á")],
    },
    "Falcon": BYTE_LEVEL
    | {
        "pre_tokenizer": sequence(
            "pretokenizers",
            {"type": "Punctuation", "behavior": "Contiguous"},
            byte_level(),
            digits(False),
            split("[0-9][0-9][0-9]"),
        ),
        "added": added(">>TITLE<<", ">>ABSTRACT<<", "<|endoftext|>", special=True),
    },
    "StarCoder, SmolLM, Granite, EXAONE 3, Refact": BYTE_LEVEL
    | {
        "pre_tokenizer": sequence("pretokenizers", digits(True), byte_level()),
        "added": [*added("<|endoftext|>", "<fim_prefix>", "<filename>", special=True), *added("<|user|>", "<issue>")],
    },
    "Command R": BYTE_LEVEL
    | {
        "normalizer": NFC,
        "pre_tokenizer": sequence("pretokenizers", digits(True), byte_level()),
        "post_processor": START,
        "added": [*CONTROL, *added("<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "\U000e0020", "  ")],
    },
    "Cohere, the first": GPT2 | {"normalizer": NFC, "post_processor": BOTH, "added": CONTROL},
    "BLOOM": BYTE_LEVEL
    | {
        "pre_tokenizer": splits("bloom"),
        "post_processor": byte_level(add_prefix_space=True, trim_offsets=False),
        "added": CONTROL,
    },
    "EXAONE MoE": BYTE_LEVEL | {"normalizer": NFC, "pre_tokenizer": splits("exaone-moe"), "added": CHAT},
    "ByteLevel with a prefix space (Longformer, old XGLM)": GPT2
    | {
        "pre_tokenizer": byte_level(add_prefix_space=True),
        "post_processor": ROBERTA | {"trim_offsets": True, "add_prefix_space": True},
        "added": CONTROL,
    },
    # BPE over text
    "CLIP": {
        "kind": "suffix",
        "normalizer": sequence("normalizers", NFC, replace(" ", Regex=r"\s+"), LOWERCASE),
        "pre_tokenizer": sequence(
            "pretokenizers",
            split(
                r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
                behavior="Removed",
                invert=True,
            ),
            OLD_BYTE_LEVEL,
        ),
        "model": {"unk_token": "<unk>", "continuing_subword_prefix": "", "end_of_word_suffix": "</w>"},
        "post_processor": ROBERTA | {"trim_offsets": False, "add_prefix_space": False},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        "added": [
            *added("<|startoftext|>", special=True, normalized=True),
            *added("<|endoftext|>", special=True),
        ],
        "merges": str,
    },
    "Llama 2, TinyLlama": LLAMA | {"normalizer": sequence("normalizers", PREPEND, ESCAPE), "merges": str},
    "Llama 2, normalized specials": LLAMA
    | {"normalizer": sequence("normalizers", PREPEND, ESCAPE), "added": added(*SPECIAL, special=True, normalized=True)},
    "Phi-3": LLAMA
    | {
        "normalizer": sequence("normalizers", PREPEND, ESCAPE),
        "added": [
            *added("<unk>", "<s>", special=True),
            *added("</s>", rstrip=True),
            *added("<|endoftext|>", special=True),
            *added("<|assistant|>", "<|end|>", "<|user|>", special=True, rstrip=True),
        ],
    },
    "Mistral 7B": LLAMA | {"pre_tokenizer": metaspace("first", split=False)},
    "Yi, Zephyr, legacy false": LLAMA | {"pre_tokenizer": metaspace("never", split=False), "added": [*CONTROL, *CHAT]},
    "Gemma": LLAMA
    | {
        "normalizer": ESCAPE,
        "pre_tokenizer": split(behavior="MergedWithPrevious", String=" "),
        "decoder": GEMMA_DECODER,
        "added": [
            *CONTROL,
            *added("<start_of_turn>", "<unused0>"),
            *added(*("\n" * i for i in range(2, 8)), *(SPACE * i for i in range(2, 8)), "<table>"),
        ],
    },
    "Gemma 4": LLAMA
    | {
        "normalizer": ESCAPE,
        "pre_tokenizer": split(" ", behavior="MergedWithPrevious"),
        "decoder": GEMMA_DECODER,
        "added": [*CONTROL, *added("<|turn>", "<turn|>", special=True), *added("<|think|>")],
    },
    "ChatGLM": LLAMA
    | {
        "normalizer": sequence(
            "normalizers",
            {"type": "Prepend", "prepend": "<!dummy-prefix!>"},
            ESCAPE,
            replace(SPACE, String="<!dummy-prefix!>"),
        ),
        "pre_tokenizer": split(behavior="MergedWithNext", String="<!dummy-prefix!>"),
        "decoder": sequence("decoders", FALLBACK, metaspace(add_prefix_space=True)),
        "post_processor": around(["<s>", "</s>"]),
    },
    "BPE with a suffix and no byte fallback": {
        "kind": "suffix",
        "normalizer": bert(True),
        "pre_tokenizer": BERT_WORDS,
        "model": {"unk_token": "<unk>", "end_of_word_suffix": "##"},
        "decoder": {"type": "BPEDecoder", "suffix": "##"},
        "added": CONTROL,
    },
    "BPE with an unknown token and no byte fallback": {
        "kind": "text",
        "normalizer": NFKC,
        "pre_tokenizer": metaspace(add_prefix_space=True),
        "model": {"unk_token": "<unk>"},
        "decoder": metaspace(add_prefix_space=True),
        "added": CONTROL,
    },
    "GPT, the first": {
        "kind": "suffix",
        "normalizer": bert(True),
        "pre_tokenizer": BERT_WORDS,
        "model": {"unk_token": "<unk>", "end_of_word_suffix": "</w>"},
        "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
        "added": added("<unk>", special=True),
    },
    # Unigram
    "T5": UNIGRAM
    | {
        "normalizer": precompiled(),
        "pre_tokenizer": sequence("pretokenizers", WORDS, OLD_METASPACE),
        "decoder": OLD_METASPACE,
        "added": [*CONTROL, *added(*(f"<extra_id_{i}>" for i in range(9, -1, -1)), special=True)],
        "untyped": True,
    },
    "mT5, umT5, Flan": UNIGRAM
    | {
        "normalizer": sequence("normalizers", precompiled(), strip_space(False, True), replace(SPACE, Regex=" {2,}")),
        "pre_tokenizer": metaspace(split=True),
        "added": [*CONTROL, *added("<extra_id_0>", "<extra_id_1>", rstrip=True)],
    },
    "XLM-R, mBART, bge-m3, E5": UNIGRAM
    | {
        "normalizer": CONVERTED,
        "pre_tokenizer": metaspace(split=True),
        "post_processor": BOTH,
        "added": [*CONTROL, *added("<mask>", special=True, lstrip=True)],
    },
    "XLM-R, old": UNIGRAM
    | {
        "normalizer": precompiled(),
        "pre_tokenizer": sequence("pretokenizers", WORDS, OLD_METASPACE),
        "decoder": OLD_METASPACE,
        "post_processor": BOTH,
        "added": [*CONTROL, *added("<mask>", special=True, lstrip=True, normalized=True)],
        "untyped": True,
    },
    "CamemBERT": UNIGRAM
    | {
        "normalizer": CONVERTED,
        "pre_tokenizer": sequence("pretokenizers", WORDS, metaspace(add_prefix_space=True)),
        "post_processor": BOTH,
        "added": [*CONTROL, *added("<mask>", special=True, lstrip=True, normalized=True)],
    },
    "XLNet": UNIGRAM
    | {
        "normalizer": sequence("normalizers", *NFKC_STRIP, precompiled()),
        "pre_tokenizer": sequence("pretokenizers", WORDS, OLD_METASPACE),
        "decoder": OLD_METASPACE,
        "post_processor": around((), ["</s>", "<pad>"]),
        "added": [*CONTROL, *added("<mask>", special=True, lstrip=True, normalized=True)],
        "untyped": True,
    },
    "ALBERT": UNIGRAM
    | {
        "normalizer": sequence("normalizers", *NFKC_STRIP, LOWERCASE, precompiled(), replace(" ", Regex=" {2,}")),
        "pre_tokenizer": sequence("pretokenizers", WORDS, metaspace(split=True)),
        "post_processor": BOTH,
        "added": [*CONTROL, *added("[MASK]", special=True, lstrip=True)],
    },
    "Marian": UNIGRAM
    | {
        "normalizer": sequence("normalizers", precompiled(), strip_space(False, True), replace(SPACE, Regex=" {2,}")),
        "pre_tokenizer": metaspace(split=True),
        "added": [*added("<unk>", special=True), *added(">>deu<<", "<special_1>")],
    },
    "Unigram with case folded": UNIGRAM
    | {"normalizer": precompiled("nmt_nfkc_cf"), "pre_tokenizer": metaspace(split=True)},
    "Unigram with byte fallback": UNIGRAM
    | {
        "kind": "unigram fallback",
        "normalizer": ESCAPE,
        "pre_tokenizer": split(behavior="MergedWithPrevious", String=" "),
        "model": {"byte_fallback": True},
        "decoder": GEMMA_DECODER,
    },
    "Unigram over bytes": UNIGRAM | {"kind": "unigram bytes", "pre_tokenizer": byte_level(), "decoder": byte_level()},
    # WordPiece
    "BERT, uncased": BERT | {"untyped": True},
    "BERT, cased and multilingual": BERT | {"normalizer": bert(False), "untyped": True},
    "BERT with many normalized tokens": BERT
    | {"normalizer": bert(False), "added": [*CONTROL, *added("东京", "café", "Größe", "TheDog", normalized=True)]},
    "MPNet, bge, gte, E5": BERT
    | {
        "post_processor": ROBERTA | {"trim_offsets": True, "add_prefix_space": False},
        "added": [*CONTROL, *added("[MASK]", special=True, lstrip=True)],
    },
    "Sentence Transformers, with padding and truncation": BERT
    | {
        "truncation": {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 8},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 3,
            "pad_type_id": 0,
            "pad_token": "<pad>",
        },
    },
    "DistilBERT, old post-processor": BERT
    | {"post_processor": {"type": "BertProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0]}},
    "ELECTRA, accents kept": BERT | {"normalizer": bert(True) | {"strip_accents": False}},
    "WordPiece over white space": BERT
    | {"normalizer": sequence("normalizers", NFKC, LOWERCASE), "pre_tokenizer": WORDS},
}


# -- files -------------------------------------------------------------------------------------------------------------


def trained_model(kind, family, tok):
    """The model of a kind; its first tokens are `SPECIAL`."""
    options = {"vocab_size": 700, "show_progress": False, "special_tokens": list(SPECIAL)}
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    match kind:
        case "bytes":
            tok.model, trainer = models.BPE(), trainers.BpeTrainer(**options, initial_alphabet=alphabet)
        case "suffix":
            suffix = family["model"]["end_of_word_suffix"]
            tok.model = models.BPE(end_of_word_suffix=suffix)
            alphabet = alphabet if "ByteLevel" in json.dumps(family["pre_tokenizer"]) else []
            trainer = trainers.BpeTrainer(**options, end_of_word_suffix=suffix, initial_alphabet=alphabet)
        case "fallback":
            tok.model = models.BPE()
            trainer = trainers.BpeTrainer(**options | {"special_tokens": [*SPECIAL, *BYTES]}, limit_alphabet=60)
        case "text":
            tok.model, trainer = models.BPE(), trainers.BpeTrainer(**options, limit_alphabet=60)
        case "words":
            tok.model, trainer = models.WordPiece(), trainers.WordPieceTrainer(**options)
        case "unigram fallback":
            special = {"special_tokens": [*SPECIAL, *BYTES], "vocab_size": 500}
            tok.model, trainer = models.Unigram(), trainers.UnigramTrainer(**options | special, unk_token="<unk>")
        case "unigram" | "unigram bytes":
            more = {"initial_alphabet": alphabet} if kind == "unigram bytes" else {}
            tok.model = models.Unigram()
            trainer = trainers.UnigramTrainer(**options | {"vocab_size": 400}, **more, unk_token="<unk>")
    tok.train_from_iterator(TEXT, trainer)
    return json.loads(tok.to_str())["model"]


def tokenizer_json(name):
    """The file of a family, as a dict."""
    family = FAMILIES[name]
    parts = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding")
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    file = json.loads(tokenizers.Tokenizer(models.BPE()).to_str()) | {part: family.get(part) for part in parts}
    model = trained_model(family.get("kind", "bytes"), family, tokenizers.Tokenizer.from_str(json.dumps(file)))
    model |= family.get("model", {})
    if family.get("merges") is str:
        model["merges"] = [" ".join(merge) for merge in model["merges"]]
    if family.get("untyped"):
        del model["type"]
        if "vocab" in model and isinstance(model["vocab"], list):
            del model["byte_fallback"]
    tokens = [{"id": 1000 + i, **flags, **token} for i, token in enumerate(family.get("added", ()))]
    return file | {"model": model, "added_tokens": tokens}


@pytest.fixture(params=FAMILIES)
def family(request, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_json(request.param)))
    return path


def test_families(family):
    tok, reference = Tokenizer.from_file(family), references.HuggingFace(family)
    vocabulary = list(filter(None, (reference.tokenizer.id_to_token(i) for i in reference.ids)))
    kinds = adversarial.strings(
        share(400), seed=family.parent.name, special_tokens=reference.special_tokens, vocabulary=vocabulary
    )
    rows = comparison.compare(
        tok, reference, kinds.items(), comparison.random_ids(family.parent.name, reference, share(200))
    )
    differences = [f"{row.kind}: {difference}" for row in rows for difference in row.differences]
    assert not differences, "\n".join(differences[:3])
