"""The models of GGUF files: from a vocabulary and its keys to the components of the tokenizer that was converted.

Defaults are llama.cpp's (src/llama-vocab.cpp, 2026-11).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.gguf.affixes import flag, with_affixes, with_defaults
from tokenweir.encode.formats.gguf.metadata import Metadata
from tokenweir.encode.formats.gguf.pre import PRE, Pre, split
from tokenweir.encode.formats.gguf.vocabulary import GGML, GgufVocabulary
from tokenweir.encode.spec import (
    BPE,
    NFC,
    ByteFallback,
    ByteLevel,
    Decoder,
    DecoderSequence,
    Fuse,
    Normalizer,
    NormalizerSequence,
    Pattern,
    Prepend,
    RankBPE,
    Replace,
    SentencePiece,
    SentencePieceDecoder,
    SentencePieceNormalizer,
    StripDecoder,
    TokenizerSpec,
)
from tokenweir.encode.spec.models import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED

_SPACE = "\u2581"
_BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]

# -- byte-level BPE ----------------------------------------------------------------------------------------------------


def byte_level_bpe(metadata: Metadata, vocabulary: GgufVocabulary, pattern: str | None) -> TokenizerSpec:
    """Return the spec for a file with `tokenizer.ggml.model = "gpt2"`: byte-level BPE.

    Text is split as `tokenizer.ggml.pre` says, or by `pattern` if it is given.
    """
    name = metadata.string(GGML + "pre")
    if pattern is not None:
        pre = Pre(stages=split(pattern))
    elif name is None or name == "default":
        raise UnsupportedTokenizerError(
            f"a GGUF file of byte-level BPE whose {GGML}pre is {'missing' if name is None else repr(name)}, so that "
            "nothing says how text is split: give pattern="
        )
    elif name not in PRE or PRE[name].stages is None:
        raise UnsupportedTokenizerError(f"a GGUF file with {GGML}pre = {name[:40]!r}: give pattern=")
    else:
        pre = PRE[name]
    notes = (f"{GGML}pre = {name!r}: {pre.doubt}",) if pre.doubt else ()
    if pre.spelling == "spaces":
        spec = _bpe_over_text(metadata, vocabulary, prefix_space=False)
        return replace(with_affixes(spec, metadata, vocabulary, pre.add_bos), notes=(*spec.notes, *notes))
    spec = TokenizerSpec(
        model=_ranks(vocabulary)
        if pre.ranks
        else BPE(vocab=vocabulary.ids, merges=_merges(metadata), ignore_merges=pre.ignore_merges),
        normalizer=NFC() if pre.nfc else None,
        pre_tokenizer=pre.pre_tokenizer,
        decoder=ByteLevel(),
        added_tokens=vocabulary.added_tokens(),
        notes=(*vocabulary.notes, *notes),
    )
    return with_affixes(spec, metadata, vocabulary, pre.add_bos, add_sep=pre.add_sep)


def _merges(metadata: Metadata) -> Sequence[str | tuple[str, str]]:
    merges = metadata.strings(GGML + "merges")
    if merges is None:
        raise TokenizerFileError(f"{GGML}merges: missing")
    try:
        return _core.Merges(merges)
    except TokenizerFileError as error:
        raise TokenizerFileError(f"{GGML}merges: {error}") from error


def _ranks(vocabulary: GgufVocabulary) -> RankBPE:
    """Return tiktoken's model for a vocabulary whose tokens are spelled in GPT-2's byte alphabet: each rank is the id."""
    alphabet = {letter: byte for byte, letter in enumerate(_core.byte_alphabet())}
    ranks = {}
    for rank in vocabulary.of_type(NORMAL):
        try:
            ranks[bytes(map(alphabet.__getitem__, vocabulary.tokens[rank]))] = rank
        except KeyError as error:
            raise TokenizerFileError(
                f"{GGML}tokens: token {rank} is {vocabulary.tokens[rank][:40]!r}, not all of GPT-2's byte alphabet"
            ) from error
    return RankBPE(ranks)


# -- BPE over text -----------------------------------------------------------------------------------------------------


def bpe_over_text(metadata: Metadata, vocabulary: GgufVocabulary) -> TokenizerSpec:
    """Return the spec for a file with `tokenizer.ggml.model = "gemma4"`.

    That is BPE by merges over text whose spaces are U+2581, with byte tokens for unknown characters.
    """
    return with_affixes(_bpe_over_text(metadata, vocabulary, prefix_space=False), metadata, vocabulary, True)


def _bpe_over_text(metadata: Metadata, vocabulary: GgufVocabulary, *, prefix_space: bool) -> TokenizerSpec:
    """Return the spec of BPE by merges over text whose spaces are U+2581, as Gemma's tokenizer.json has it.

    With `prefix_space`, a space is put before each text, as in Llama 2's.
    """
    normalizer: Normalizer = Replace(Pattern(String=" "), _SPACE)
    decoders: list[Decoder] = [Replace(Pattern(String=_SPACE), " "), ByteFallback(), Fuse()]
    if prefix_space:
        normalizer = NormalizerSequence((Prepend(_SPACE), normalizer))
        decoders.append(StripDecoder(content=" ", start=1, stop=0))
    unknown = vocabulary.role("unk_token")
    return TokenizerSpec(
        model=BPE(
            vocab=vocabulary.ids,
            merges=_merges(metadata),
            unk_token=unknown,
            fuse_unk=unknown is not None,
            byte_fallback=_byte_tokens(vocabulary) > 0,  # Gemma's file lacks the tab's
        ),
        normalizer=normalizer,
        decoder=DecoderSequence(tuple(decoders)),
        added_tokens=vocabulary.added_tokens(),
        notes=vocabulary.notes,
    )


def _byte_tokens(vocabulary: GgufVocabulary) -> int:
    """Return how many of the 256 bytes have a token such as `<0xE4>`; raise `TokenizerFileError` for a malformed one."""
    for token_id in vocabulary.of_type(BYTE):
        if vocabulary.tokens[token_id] not in _BYTE_TOKENS:
            raise TokenizerFileError(
                f"{GGML}token_type: token {token_id} is {vocabulary.tokens[token_id][:40]!r}, typed as a byte"
            )
    return len(set(_BYTE_TOKENS).intersection(vocabulary.tokens))


# -- SentencePiece -----------------------------------------------------------------------------------------------------


def sentencepiece_bpe(metadata: Metadata, vocabulary: GgufVocabulary) -> TokenizerSpec:
    """Return the spec for a file with `tokenizer.ggml.model = "llama"`: SentencePiece's BPE by scores.

    If the scores are missing, or equal for all normal tokens, it is BPE by the file's merges instead.

    Raises:
        UnsupportedTokenizerError: The merges are needed and missing.

    """
    prefix_space = flag(metadata, "add_space_prefix", True)
    scores = _scores(metadata, len(vocabulary.tokens))
    normal = vocabulary.of_type(NORMAL)
    vocabulary = with_defaults(vocabulary, bos_token=1, eos_token=2, unk_token=0)
    if scores is not None and (len(normal) < 2 or np.ptp(scores[normal]) > 0):
        spec = _sentencepiece(metadata, vocabulary, scores, "BPE", prefix_space=prefix_space)
    elif GGML + "merges" in metadata:
        spec = _bpe_over_text(metadata, vocabulary, prefix_space=prefix_space)
        spec = replace(spec, notes=(*spec.notes, "no two tokens differ in score: BPE by the file's merges"))
    else:
        raise UnsupportedTokenizerError(
            f"a GGUF file with {GGML}model = 'llama' in which no two {GGML}scores differ and {GGML}merges are missing"
        )
    return with_affixes(spec, metadata, vocabulary, True)


def sentencepiece_unigram(metadata: Metadata, vocabulary: GgufVocabulary) -> TokenizerSpec:
    """Return the spec for a file with `tokenizer.ggml.model = "t5"`: SentencePiece's Unigram."""
    scores = _scores(metadata, len(vocabulary.tokens))
    if scores is None:
        raise TokenizerFileError(f"{GGML}scores: missing")
    vocabulary = with_defaults(vocabulary, eos_token=1, unk_token=2, pad_token=0)
    prefix_space = flag(metadata, "add_space_prefix", False)
    spec = _sentencepiece(metadata, vocabulary, scores, "Unigram", prefix_space=prefix_space)
    return with_affixes(spec, metadata, vocabulary, False, add_eos=True)


def _sentencepiece(
    metadata: Metadata,
    vocabulary: GgufVocabulary,
    scores: NDArray[np.float32],
    algorithm: Literal["BPE", "Unigram"],
    *,
    prefix_space: bool,
) -> TokenizerSpec:
    if GGML + "token_type" not in metadata:
        raise TokenizerFileError(f"{GGML}token_type: missing")
    unknown = vocabulary.roles.get("unk_token")
    if unknown is None:
        raise TokenizerFileError(f"{GGML}unknown_token_id: missing")
    byte_tokens = _byte_tokens(vocabulary)
    if 0 < byte_tokens < 256:
        raise TokenizerFileError(f"{GGML}tokens: {byte_tokens} of the 256 byte tokens")
    types = bytearray(vocabulary.types)
    for token_id in (*vocabulary.of_type(UNKNOWN), *vocabulary.padding):
        types[token_id] = CONTROL  # neither is reached by text
    types[unknown] = UNKNOWN
    escape, notes = _space_marks(vocabulary)
    charsmap = metadata.numbers(GGML + "precompiled_charsmap", "INT8", "UINT8")
    return TokenizerSpec(
        model=SentencePiece(
            algorithm=algorithm,
            pieces=vocabulary.tokens,
            scores=scores.tolist(),
            types=bytes(types),
            unk_id=unknown,
            byte_fallback=byte_tokens > 0,
        ),
        normalizer=SentencePieceNormalizer(
            charsmap=b"" if charsmap is None else charsmap.tobytes(),
            add_dummy_prefix=prefix_space,
            remove_extra_whitespaces=flag(metadata, "remove_extra_whitespaces", False),
            escape_whitespaces=escape,
            user_defined=tuple(vocabulary.tokens[i] for i in vocabulary.of_type(USER_DEFINED)),
        ),
        decoder=SentencePieceDecoder(strip_prefix=prefix_space),
        added_tokens=vocabulary.added_tokens(),
        notes=(*vocabulary.notes, *notes),
    )


def _scores(metadata: Metadata, size: int) -> NDArray[np.float32] | None:
    scores = metadata.numbers(GGML + "scores", "FLOAT32", "INT32")
    if scores is None:
        return None
    if len(scores) != size:
        raise TokenizerFileError(f"{GGML}scores: {len(scores)} scores for {size} tokens")
    singles = scores.astype(np.float32)
    finite = np.isfinite(singles)
    if not finite.all():
        wrong = int(np.argmin(finite))
        raise TokenizerFileError(f"{GGML}scores: the score of token {wrong} is {singles[wrong]}")
    return singles


def _space_marks(vocabulary: GgufVocabulary) -> tuple[bool, tuple[str, ...]]:
    """Return whether spaces become U+2581 before encoding, as the tokens show; and notes on that for `TokenizerSpec.notes`.

    Raise `UnsupportedTokenizerError` if no token has either.
    """
    normal = [vocabulary.tokens[i] for i in vocabulary.of_type(NORMAL, UNUSED)]
    marked, literal = sum(_SPACE in token for token in normal), sum(" " in token for token in normal)
    if marked and literal:
        return True, (f"spaces are U+2581, as in {marked} tokens; {literal} with a plain space match nothing",)
    if literal:
        return False, (f"spaces stay spaces: {literal} tokens have one and none has U+2581",)
    if not marked:
        raise UnsupportedTokenizerError(
            "a GGUF file of SentencePiece tokens of which none has U+2581 or a space: nothing says what a space becomes"
        )
    return True, ()
