"""GGUF files, as llama.cpp writes and reads them: the tokenizer in their metadata.

The reference is the tokenizer that a file was converted from. Where the file does not say enough for that, llama.cpp's
reading of it counts (src/llama-vocab.cpp, 2026-11), or the file is refused; `TokenizerSpec.notes` has what was decided.
Differences from llama.cpp that follow:

- Normalizers and patterns are the originals' (see pre.py); llama.cpp has no NFC and simpler patterns. `nfc=False` leaves
  NFC out.
- Unknown, control and user-defined tokens are searched for in text, leftmost-longest in one pass; llama.cpp searches
  for one after the other, from the longest on.
- Of a merge that is listed twice the later place counts, as in HuggingFace's library; llama.cpp keeps the first.
- SentencePiece vocabularies are segmented by sentencepiece's rules and arithmetic.
- The ids that end a generation are those of the file's keys; names count only in files without such keys.
- Converters' padding (`[PAD7]`) is not matched in text.
- No attribute of a token is derived from a model's name.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from msgspec.structs import replace

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.files import check_regular
from tokenweir.encode.formats import huggingface
from tokenweir.encode.formats.gguf import models, word_piece
from tokenweir.encode.formats.gguf.metadata import Metadata
from tokenweir.encode.formats.gguf.vocabulary import GGML, GgufVocabulary, read_vocabulary
from tokenweir.encode.spec import NFC, Normalizer, NormalizerSequence, TokenizerSpec

_HUGGINGFACE = "tokenizer.huggingface.json"
_TEMPLATE, _TEMPLATES = "tokenizer.chat_template", "tokenizer.chat_templates"

_MODELS = {
    "llama": models.sentencepiece_bpe,
    "t5": models.sentencepiece_unigram,
    "bert": word_piece.word_piece,
    "gemma4": models.bpe_over_text,
}


def is_gguf(path: Path) -> bool:
    """Return whether a file is a GGUF file, by its first bytes or its name; raise `OSError` unless it is a regular file."""
    check_regular(path)
    with path.open("rb") as file:
        return file.read(4) == b"GGUF" or path.suffix == ".gguf"


def read_file(path: Path, *, pattern: str | None = None, nfc: bool = True) -> TokenizerSpec:
    """Read the tokenizer of a GGUF file; the tensors are not read. `pattern` and `nfc` are as for `read`.

    Raises:
        TokenizerFileError: The file cannot be read, is cut short or inconsistent; the message has the key and the byte.
        UnsupportedTokenizerError: The tokenizer cannot be reproduced exactly.

    """
    return read(Metadata.from_file(path), pattern=pattern, nfc=nfc)


def read_bytes(data: bytes | mmap.mmap, *, pattern: str | None = None, nfc: bool = True) -> TokenizerSpec:
    """Read the tokenizer of a GGUF file in memory, like `read_file`."""
    return read(Metadata(data), pattern=pattern, nfc=nfc)


def read(metadata: Metadata, *, pattern: str | None = None, nfc: bool = True) -> TokenizerSpec:
    """Read the tokenizer from the metadata of a GGUF file; return its spec.

    Args:
        metadata: The metadata.
        pattern: The regular expression by which text is split, as HuggingFace's library reads it: for byte-level BPE
            whose `tokenizer.ggml.pre` is missing or says too little.
        nfc: Whether text is normalized to form C if the original tokenizer does it; llama.cpp does not.

    Raises:
        TokenizerFileError: A value is missing, of the wrong type or inconsistent.
        UnsupportedTokenizerError: The tokenizer cannot be reproduced exactly.
        ValueError: `pattern` is given, but the model is not byte-level BPE.

    """
    if not nfc:
        spec = read(metadata, pattern=pattern)
        return replace(
            spec, normalizer=_without_nfc(spec.normalizer), notes=(*spec.notes, "nfc=False: text is not composed")
        )
    model = metadata.string(GGML + "model")
    embedded = metadata.string(_HUGGINGFACE)
    if pattern is not None and (model != "gpt2" or embedded is not None):
        raise ValueError(f"pattern is for byte-level BPE in a GGUF file, not for {GGML}model = {(model or '')[:40]!r}")
    if embedded is not None:
        return _from_huggingface(metadata, embedded)
    if model is None:
        raise TokenizerFileError(f"{GGML}model: missing; the file has no tokenizer")
    if model not in ("gpt2", *_MODELS):
        raise UnsupportedTokenizerError(f"a GGUF file with {GGML}model = {model[:40]!r}")
    vocabulary = read_vocabulary(metadata)
    if model == "gpt2":
        spec = models.byte_level_bpe(metadata, vocabulary, pattern)
    else:
        spec = _MODELS[model](metadata, vocabulary)
    return replace(
        spec,
        chat_templates=chat_templates(metadata),
        vocab_size=len(vocabulary.tokens),
        source=f"GGUF ({model})",
    )


def _without_nfc(normalizer: Normalizer | None) -> Normalizer | None:
    if isinstance(normalizer, NormalizerSequence):
        kept = tuple(part for part in map(_without_nfc, normalizer.normalizers) if part is not None)
        return replace(normalizer, normalizers=kept) if kept else None
    return None if isinstance(normalizer, NFC) else normalizer


def chat_templates(metadata: Metadata) -> dict[str, str]:
    """Return the chat templates of a GGUF file, by name; the plain one is `default`."""
    templates = {}
    for key in metadata:
        if key == _TEMPLATE or key.startswith(_TEMPLATE + "."):
            source = metadata.string(key)
            assert source is not None
            templates[key[len(_TEMPLATE) + 1 :] or "default"] = source
    for name in metadata.strings(_TEMPLATES) or ():
        if name not in templates:
            raise TokenizerFileError(f"{_TEMPLATES}: there is no {_TEMPLATE}.{name[:40]}")
    return templates


def _from_huggingface(metadata: Metadata, source: str) -> TokenizerSpec:
    """Return the spec of a tokenizer.json that is embedded in a GGUF file.

    The file's other keys add the roles of tokens, the ids that end a generation, the flags and the chat templates.

    Args:
        metadata: The file's metadata.
        source: The text of the tokenizer.json.

    """
    try:
        spec = huggingface.read(source.encode())
    except (TokenizerFileError, UnsupportedTokenizerError) as error:
        raise type(error)(f"{_HUGGINGFACE}: {error}") from error
    vocabulary: GgufVocabulary | None = read_vocabulary(metadata) if GGML + "tokens" in metadata else None
    return replace(
        spec,
        special_roles=vocabulary.special_roles() if vocabulary else {},
        eos_ids=vocabulary.eos_ids if vocabulary else (),
        add_bos=metadata.flag(GGML + "add_bos_token"),
        add_eos=metadata.flag(GGML + "add_eos_token"),
        chat_templates=chat_templates(metadata),
        vocab_size=len(vocabulary.tokens) if vocabulary else None,
        notes=(*spec.notes, f"read from {_HUGGINGFACE}, the original; the tokens beside it only give roles"),
        source="GGUF (tokenizer.json)",
    )
