"""Build the core's decoding steps from the spec's decoder. A decoder that cannot be streamed exactly raises
an error with its name.

HuggingFace's decoders (tokenizers 0.23) map a list of tokens to another one, which is joined at the end. Most act on single
tokens. `ByteFallback` decodes runs of byte tokens, `Fuse` and `ByteLevel` join everything to one text; so the meaning of a
decoder depends on which of these come before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

from tokenweir.encode._core import FirstUntil, Spelling, TextStep, When
from tokenweir.encode.components.normalize import TEXT_BEGINS
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import (
    BPEDecoder,
    ByteFallback,
    ByteLevel,
    Decoder,
    Fuse,
    Metaspace,
    Model,
    Pattern,
    RankBPE,
    Replace,
    SentencePiece,
    SentencePieceDecoder,
    StripDecoder,
    WordPieceDecoder,
)
from tokenweir.encode.spec.decoders import SingleDecoder
from tokenweir.encode.spec.models import BYTE, CONTROL
from tokenweir.encode.spec.parts import parts

CLEANUP = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)
"""The replacements of `WordPieceDecoder(cleanup=True)`, in order."""

METACHARACTERS = frozenset(r"\.^$|?*+()[]{}")
"""The characters that a regular expression of plain text does not contain."""

MAX_STEPS = 32
"""The most decoders in a sequence; real ones have up to 4."""

MAX_GROWTH = 4096
"""The greatest factor by which all replacements may lengthen a text; real decoders shorten it."""
MAX_STRIP = 1 << 30
"""The largest effective strip count, more than any text has."""


class Decoding(NamedTuple):
    """The decoding rules of the core; the last arguments of `_core.TokenBytes`.

    Attributes:
        token: Steps applied to each token, as the vocabulary spells it.
        spelling: The way in which tokens spell bytes.
        run: Steps applied then to each token that is text, and to the text of each run of byte tokens.
        text: Steps applied last, to the whole text.
        first_until: The event after which tokens no longer count as the first, for steps with `When.FIRST`.
        fixed: (id, content, whether the content is part of a run of bytes) of tokens to which no step applies.

    """

    token: list[TextStep]
    spelling: Spelling
    run: list[TextStep]
    text: list[TextStep]
    first_until: FirstUntil = FirstUntil.TOKEN
    fixed: Sequence[tuple[int, bytes, bool]] = ()


def decoding(decoder: Decoder | None, model: Model) -> Decoding:
    """Convert a spec's decoder to the core's decoding rules.

    Args:
        decoder: The decoder; None joins the bytes of a rank file's tokens, and other tokens, as they are spelled, with spaces.
        model: The model whose tokens are decoded.

    Raises:
        UnsupportedTokenizerError: A decoder, or an order of decoders, is not reproduced exactly.
        TokenizerFileError: The name of a SentencePiece byte piece is not a byte.

    """
    if isinstance(model, RankBPE):
        if decoder is not None and not isinstance(decoder, ByteLevel):
            raise UnsupportedTokenizerError(f"decoder: {_tag(decoder)} for a rank file")
        return Decoding([], Spelling.BYTES, [], [])
    if isinstance(decoder, SentencePieceDecoder):
        if not isinstance(model, SentencePiece):
            raise UnsupportedTokenizerError(f"decoder: SentencePieceDecoder for a {type(model).__name__} model")
        return _sentencepiece(decoder, model)
    if decoder is None:
        return Decoding([TextStep.join()], Spelling.TEXT, [], [])
    return _chain(list(parts(decoder)))


def _tag(decoder: Decoder) -> str:
    return str(decoder.__struct_config__.tag)


def _chain(decoders: list[SingleDecoder]) -> Decoding:
    """Convert a sequence of HuggingFace's decoders to the core's decoding rules; raises the errors of `decoding`."""
    if len(decoders) > MAX_STEPS:
        raise UnsupportedTokenizerError(
            f"decoder: a Sequence of {len(decoders)} decoders; at most {MAX_STEPS} are possible"
        )
    growth = 1
    result = Decoding([], Spelling.TEXT, [], [])
    spelling, steps = Spelling.TEXT, result.token
    words_end = False  # after a BPEDecoder, which depends on the last token
    for part in decoders:
        fused, runs = steps is result.text, steps is result.run
        match part:
            case ByteLevel() | ByteFallback():
                if fused or runs or words_end:
                    before = "BPEDecoder" if words_end else "Fuse or ByteLevel" if fused else "ByteFallback"
                    raise UnsupportedTokenizerError(f"decoder: {_tag(part)} after {before}")
                if isinstance(part, ByteLevel):
                    spelling, steps = Spelling.ALPHABET, result.text
                else:
                    spelling, steps = Spelling.FALLBACK, result.run
            case Fuse():
                steps = result.text
            case Replace() if (first := _first_character(part)) is not None:
                steps.append(TextStep.strip(first, 1, 0))
            case Replace():
                pattern = _plain(part.pattern)
                growth *= max(1, -(-len(part.content.encode()) // len(pattern.encode())))
                if growth > MAX_GROWTH:
                    raise UnsupportedTokenizerError(
                        f"decoder: Replace makes a text {growth} times as long; at most {MAX_GROWTH} times is possible"
                    )
                steps.append(TextStep.replace(pattern, part.content))
            case StripDecoder():
                if len(part.content) != 1:
                    raise TokenizerFileError(
                        f"decoder: Strip with content {part.content!r:.60}; one character is expected"
                    )
                if part.start < 0 or part.stop < 0:
                    raise TokenizerFileError(f"decoder: Strip with start {part.start} and stop {part.stop}")
                steps.append(TextStep.strip(part.content, min(part.start, MAX_STRIP), min(part.stop, MAX_STRIP)))
            case Metaspace():
                if len(part.replacement) != 1:
                    raise TokenizerFileError(
                        f"decoder: Metaspace with replacement {part.replacement!r:.60}; one character is expected"
                    )
                first = " " if part.prepend_scheme == "never" or part.add_prefix_space is False else ""
                steps.append(TextStep.replace(part.replacement, first, When.FIRST))
                steps.append(TextStep.replace(part.replacement, " ", When.LATER))
            case WordPieceDecoder():
                if runs:
                    raise UnsupportedTokenizerError("decoder: WordPiece after ByteFallback without Fuse between")
                if not fused:
                    steps.append(TextStep.follow(part.prefix))
                if part.cleanup:
                    steps += [TextStep.replace(pattern, content) for pattern, content in CLEANUP]
            case BPEDecoder():
                if runs:
                    raise UnsupportedTokenizerError("decoder: BPEDecoder after ByteFallback without Fuse between")
                if not part.suffix:
                    raise UnsupportedTokenizerError("decoder: BPEDecoder with an empty suffix")
                words_end = words_end or not fused
                steps.append(TextStep.replace(part.suffix, " ", When.NOT_LAST))
                steps.append(TextStep.replace(part.suffix, "", When.LAST))
            case SentencePieceDecoder():
                raise UnsupportedTokenizerError("decoder: SentencePieceDecoder in a Sequence")
            case _:
                assert_never(part)
    return result._replace(spelling=spelling)


def _first_character(replace: Replace) -> str | None:
    """Return the character that a decoder removes from the beginning of a text; None if it does anything else."""
    expression = replace.pattern.Regex or ""
    begin = next((each for each in TEXT_BEGINS if expression.startswith(each)), None)
    if begin is None or replace.content:
        return None
    first = expression.removeprefix(begin)
    return first if len(first) == 1 and first not in METACHARACTERS else None


def _plain(pattern: Pattern) -> str:
    """Return the text that a decoder's pattern matches.

    Raise `UnsupportedTokenizerError` if it is empty, or a regular expression with special characters.
    """
    text = pattern.String
    if text is None:
        text = pattern.Regex or ""
        if not METACHARACTERS.isdisjoint(text):
            raise UnsupportedTokenizerError(f"decoder: Replace of the expression {text!r:.60}")
    if not text:
        raise UnsupportedTokenizerError("decoder: Replace of an empty text")
    return text


def _sentencepiece(decoder: SentencePieceDecoder, model: SentencePiece) -> Decoding:
    """Return the decoding rules of sentencepiece 0.2.3 for a model.

    Raise `TokenizerFileError` for a byte piece whose name is not a byte.
    """
    token = [TextStep.replace("\u2581", " ")]
    if decoder.strip_prefix or decoder.strip_extra:
        token.insert(0, TextStep.strip("\u2581", 1, 0, When.FIRST))
    fixed: list[tuple[int, bytes, bool]] = []
    for token_id, kind in enumerate(model.types):
        if kind == CONTROL:
            fixed.append((token_id, b"", False))
        elif token_id == model.unk_id:
            fixed.append((token_id, model.unk_surface.encode(), False))
        elif kind == BYTE:
            piece = model.pieces[token_id]
            try:
                value = bytes.fromhex(piece.removeprefix("<0x").removesuffix(">"))
            except ValueError:
                value = b""
            if len(value) != 1 or piece != f"<0x{value[0]:02X}>":
                raise TokenizerFileError(f"piece {token_id}: {piece!r:.60} is of type byte and does not name a byte")
            fixed.append((token_id, value, True))
    first_until = FirstUntil.TEXT if decoder.strip_extra else FirstUntil.SPACE
    return Decoding(token, Spelling.TEXT, [], [], first_until, fixed)
