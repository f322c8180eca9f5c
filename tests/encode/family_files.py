"""Files of every known family of tokenizer.json, over small vocabularies.

The components and flags of `families.toml` are those of the families' own files; the vocabularies are trained on a few lines.
"""

from __future__ import annotations

import base64
import json
import tomllib
from functools import cache
from pathlib import Path

import tokenizers
from sentencepiece_files import charsmap_of, train
from tokenizers import models, trainers

from tokenweir.encode.formats.gguf.pre import PRE
from tokenweir.encode.spec import Split

TEXT = (
    "The quick brown fox jumps over the lazy dog, doesn't it? 1234 times! \n\n    def f(x): return x ** 2 # ok\n"
    "Größe naïve café ﬁne ①½ 東京都 日本語の文章 Москва مرحبا 안녕하세요 👩\u200d💻 e\u0301 \u00a0x\tHTTPServer camelCase\n"
).splitlines(keepends=True) * 8
SPECIAL = ("<s>", "</s>", "<unk>", "<pad>")
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
TABLES = tomllib.loads(Path(__file__).with_name("families.toml").read_text(encoding="utf-8"))
FAMILIES = {
    name: TABLES["bases"].get(family.pop("base", ""), {}) | family for name, family in TABLES["families"].items()
}
PARTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
"""Fields of a tokenizer.json with a component, and the field of a Sequence in each."""


@cache
def character_map(rule):
    return base64.b64encode(charsmap_of(train(normalization_rule_name=rule))).decode()


def special(token):
    return {"SpecialToken": {"id": token, "type_id": 0}}


def components(value, parts):
    """Yield the components that a value of `families.toml` stands for; `parts` is the field of a Sequence."""
    match value:
        case str():
            yield from components(TABLES["components"][value], parts)
        case list():
            yield {"type": "Sequence", parts: [part for one in value for part in components(one, parts)]}
        case {"patterns": name}:
            for stage in PRE[name].stages:
                if isinstance(stage, Split):
                    pattern = {"Regex": stage.pattern.Regex}
                    yield {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
        case {"precompiled": rule}:
            yield {"type": "Precompiled", "precompiled_charsmap": character_map(rule)}
        case {"before": before, "after": after}:
            single = [*map(special, before), {"Sequence": {"id": "A", "type_id": 0}}, *map(special, after)]
            pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
            tokens = {token: {"id": token, "ids": [i], "tokens": [token]} for i, token in enumerate(SPECIAL)}
            yield {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}
        case _:
            yield value


def added_tokens(groups):
    """Yield the added tokens of a family: each group is flags, and the tokens that have them."""
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    for flags, *contents in groups:
        chosen = {name: name in flags.split() for name in names}
        for content in contents:
            if isinstance(content, str):
                yield {**chosen, "content": content}
            else:
                first, last = content["from"], content["to"]
                for n in range(first, last + 1) if first < last else range(first, last - 1, -1):
                    yield {**chosen, "content": content["repeat"] * n}


def _trained_model(kind, file, family, tok):
    """The model of a kind; its first tokens are `SPECIAL`."""
    options = {"vocab_size": 700, "show_progress": False, "special_tokens": list(SPECIAL)}
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    match kind:
        case "bytes":
            tok.model, trainer = models.BPE(), trainers.BpeTrainer(**options, initial_alphabet=alphabet)
        case "suffix":
            suffix = family["model"]["end_of_word_suffix"]
            tok.model = models.BPE(end_of_word_suffix=suffix)
            alphabet = alphabet if "ByteLevel" in json.dumps(file["pre_tokenizer"]) else []
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


def family_json(name):
    """The file of a family, as a dict."""
    family = FAMILIES[name]
    file = json.loads(tokenizers.Tokenizer(models.BPE()).to_str())
    for part, sequence in PARTS.items():
        if part in family:
            (file[part],) = components(family[part], sequence)
    file |= {part: family[part] for part in ("truncation", "padding") if part in family}
    model = _trained_model(family.get("kind", "bytes"), file, family, tokenizers.Tokenizer.from_str(json.dumps(file)))
    model |= family.get("model", {})
    if family.get("joined_merges"):
        model["merges"] = [" ".join(merge) for merge in model["merges"]]
    if family.get("untyped"):
        del model["type"]
        if "vocab" in model and isinstance(model["vocab"], list):
            del model["byte_fallback"]
    tokens = [{"id": 1000 + i, **token} for i, token in enumerate(added_tokens(family.get("added", ())))]
    return file | {"model": model, "added_tokens": tokens}
