"""BERT's WordPiece in GGUF files, whose vocabulary is mostly spelled in another way than BERT's own."""

from __future__ import annotations

import re

from msgspec.structs import replace

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.gguf.affixes import template
from tokenweir.encode.formats.gguf.metadata import Metadata
from tokenweir.encode.formats.gguf.vocabulary import GGML, ROLE_KEYS, GgufVocabulary
from tokenweir.encode.spec import BertNormalizer, BertPreTokenizer, TokenizerSpec, WordPiece, WordPieceDecoder
from tokenweir.encode.spec.models import CONTROL, NORMAL, UNKNOWN

_SPACE = "\u2581"
_CAPITAL = re.compile("[A-Z]").search


def word_piece(metadata: Metadata, vocabulary: GgufVocabulary) -> TokenizerSpec:
    """Return the spec for a file with `tokenizer.ggml.model = "bert"`: WordPiece.

    [CLS] and [SEP] are added around each text, whatever the file's flags say.
    """
    vocabulary, notes = _with_continuations(vocabulary)
    unknown, cls, sep = (
        _bert_token(vocabulary, roles, name)
        for roles, name in (
            (("unk_token",), "[UNK]"),
            (("cls_token", "bos_token"), "[CLS]"),
            (("sep_token",), "[SEP]"),
        )
    )
    lowercase = metadata.flag(GGML + "normalizer.lowercase")
    if lowercase is None:
        words = (vocabulary.tokens[i] for i in vocabulary.of_type(NORMAL))
        lowercase = not any(map(_CAPITAL, (word for word in words if not _in_brackets(word))))
        if not lowercase:
            notes += ("case is kept: the vocabulary has capitals (llama.cpp would lower them)",)
    return TokenizerSpec(
        model=WordPiece(vocab=vocabulary.ids, unk_token=vocabulary.tokens[unknown]),
        normalizer=BertNormalizer(lowercase=lowercase, strip_accents=metadata.flag(GGML + "normalizer.strip_accents")),
        pre_tokenizer=BertPreTokenizer(),
        post_processor=template(vocabulary, [cls], [sep]),
        decoder=WordPieceDecoder(),
        added_tokens=vocabulary.added_tokens(),
        special_roles=vocabulary.special_roles(),
        eos_ids=vocabulary.eos_ids,
        notes=(*vocabulary.notes, *notes),
    )


def _with_continuations(vocabulary: GgufVocabulary) -> tuple[GgufVocabulary, tuple[str, ...]]:
    """Return the vocabulary in BERT's spelling, with `##` before tokens that continue a word; and notes on the change.

    Converters put U+2581 before tokens that begin a word instead. Exceptions are control tokens and, in older files,
    tokens in square brackets. Files that have `##` already are unchanged.
    """
    control = {*vocabulary.of_type(UNKNOWN, CONTROL), *vocabulary.padding}
    others = [token for i, token in enumerate(vocabulary.tokens) if i not in control]
    marked = sum(token.startswith(_SPACE) for token in others)
    continuing = sum(token.startswith("##") for token in others)
    if continuing > marked:
        return vocabulary, ()
    if continuing == marked:
        raise UnsupportedTokenizerError(
            f"a GGUF file of WordPiece tokens of which {marked} begin with U+2581 and as many with ##: nothing says "
            "which continue a word"
        )
    tokens = [token if i in control else _respelled(token) for i, token in enumerate(vocabulary.tokens)]
    respelled = replace(vocabulary, tokens=tokens)
    if len(respelled.ids) != len(tokens) - len(vocabulary.padding):
        raise TokenizerFileError(f"{GGML}tokens: two tokens are one without the U+2581 that begins words")
    return respelled, (f"{marked} tokens begin with U+2581 and so a word; the others got ##",)


def _respelled(token: str) -> str:
    if token.startswith(_SPACE) and token != _SPACE:
        return token[1:]
    return token if _in_brackets(token) else "##" + token


def _in_brackets(token: str) -> bool:
    return len(token) > 2 and token[0] == "[" and token[-1] == "]"


def _bert_token(vocabulary: GgufVocabulary, roles: tuple[str, ...], name: str) -> int:
    """Return the id of a token that BERT requires: by its role, else by its usual name."""
    for role in roles:
        if role in vocabulary.roles:
            return vocabulary.roles[role]
    if name not in vocabulary.tokens:
        raise TokenizerFileError(f"{GGML}{ROLE_KEYS[roles[0]][0]}: missing, and no token is {name}")
    return vocabulary.tokens.index(name)
