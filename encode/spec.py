"""What a tokenizer *is*, whatever file it came from.

`TokenizerSpec` uses HuggingFace's component names, since they are the field's: normalizer, pre_tokenizer, model,
post_processor, decoder, added_tokens. Every reader in `formats/` fills one, and `Tokenizer` is built from nothing else.

The components are tagged `msgspec` structs whose tags and fields are those of HuggingFace's tokenizer.json, so that
its reader decodes straight into them and an unknown component is refused with its JSON path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class AddedToken(Struct, frozen=True):
    """A token that is searched in the text before (or, if `normalized`, after) the normalizer.

    Attributes:
        content: The text of the token.
        id: The id that the file gives; not trusted (a token that the model's vocabulary has keeps the model's id).
        single_word: Match only where no word character touches it.
        lstrip: The match takes the white space to its left with it.
        rstrip: The match takes the white space to its right with it.
        normalized: Match in normalized text.
        special: A control token: dropped by `skip_special_tokens`.

    """

    content: str
    id: int | None = None
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = False


# -- normalizers -------------------------------------------------------------------------------------------------------


class NFC(Struct, frozen=True, tag="NFC"):
    """Unicode canonical composition, by the tables of HuggingFace's library."""


class NormalizerSequence(Struct, frozen=True, tag="Sequence"):
    """Normalizers applied one after the other."""

    normalizers: tuple[Normalizer, ...]


Normalizer = NFC | NormalizerSequence


# -- pre-tokenizers ----------------------------------------------------------------------------------------------------


class Pattern(Struct, frozen=True, omit_defaults=True):
    """What a `Split` looks for: a regular expression or plain text, never both."""

    Regex: str | None = None
    String: str | None = None


class Split(Struct, frozen=True, tag="Split", kw_only=True):
    """Split at the matches of a pattern.

    Attributes:
        pattern: What to look for.
        behavior: What becomes of a match; only `Isolated`, a piece of its own, is built.
        invert: Matches and gaps change places.
        dialect: The regex engine whose reading of the pattern counts. No file says it, the format decides:
            tokenizer.json means Oniguruma, a tiktoken rank file fancy-regex.
        unmatched: Text between matches is kept as pieces (HuggingFace) or dropped (tiktoken).

    """

    pattern: Pattern
    behavior: str
    invert: bool = False
    dialect: Literal["oniguruma", "fancy-regex"] = "oniguruma"
    unmatched: Literal["keep", "drop"] = "keep"


class ByteLevel(Struct, frozen=True, tag="ByteLevel"):
    """GPT-2's alphabet of 256 printable characters, as pre-tokenizer, post-processor and decoder alike."""

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True


class PreTokenizerSequence(Struct, frozen=True, tag="Sequence"):
    """Pre-tokenizers, each applied inside the pieces of the one before."""

    pretokenizers: tuple[PreTokenizer, ...]


PreTokenizer = Split | ByteLevel | PreTokenizerSequence


# -- models ------------------------------------------------------------------------------------------------------------


class BPE(Struct, frozen=True, tag="BPE", kw_only=True):
    """Byte-pair encoding by a list of merges, in order of priority.

    Attributes:
        vocab: Token to id, tokens spelled in the byte-level alphabet.
        merges: Pairs, as `"a b"` or `("a", "b")`; a pair listed twice keeps its later place.
        ignore_merges: A piece that is a token is taken whole, whatever the merges say.

    """

    vocab: Mapping[str, int]
    merges: list[str | tuple[str, str]]
    dropout: float | None = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False


class RankBPE(Struct, frozen=True, tag="RankBPE"):
    """Byte-pair encoding as tiktoken does it: the pair whose concatenation has the lowest rank merges first.

    Attributes:
        ranks: Token bytes to rank; the rank is the id.

    """

    ranks: Mapping[bytes, int]


Model = BPE | RankBPE


# -- post-processors and decoders --------------------------------------------------------------------------------------


class TemplateProcessing(Struct, frozen=True, tag="TemplateProcessing"):
    """Special tokens around one sequence (`single`); the template for pairs is read and never used."""

    single: tuple[Mapping[str, Mapping[str, str | int]], ...]
    pair: tuple[Mapping[str, Mapping[str, str | int]], ...] = ()
    special_tokens: Mapping[str, SpecialTokenIds] = {}


class SpecialTokenIds(Struct, frozen=True):
    """The ids that a template's special token stands for."""

    id: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...] = ()


class PostProcessorSequence(Struct, frozen=True, tag="Sequence"):
    """Post-processors applied one after the other."""

    processors: tuple[PostProcessor, ...]


PostProcessor = ByteLevel | TemplateProcessing | PostProcessorSequence

Decoder = ByteLevel


# -- the whole ---------------------------------------------------------------------------------------------------------


class TokenizerSpec(Struct, frozen=True, kw_only=True):
    """A tokenizer, complete: the components, the added tokens, and what the files around them say.

    Attributes:
        model: How pieces become ids.
        normalizer: Applied to the text between added tokens.
        pre_tokenizer: How text is cut into pieces.
        post_processor: What goes around the ids.
        decoder: How tokens become text.
        added_tokens: In the file's order, which decides the ids of those that the model lacks.
        special_roles: `bos_token`, `eos_token`, `unk_token`, `pad_token`... to the token that plays the role.
        eos_ids: Every id that ends a generation, from all files; empty if none says.
        add_bos: The files' `add_bos_token`; None if they leave it to the post-processor.
        add_eos: The same for the end token.
        chat_templates: Name to Jinja source; `default` is the plain one.
        truncation: As the file has it; reported, never applied.
        padding: As the file has it; reported, never applied.
        vocab_size: The model's number of embedding rows where the config says; ids below it that name no token
            (padding rows) decode to nothing.
        source: The format that was read, for people.

    """

    model: Model
    normalizer: Normalizer | None = None
    pre_tokenizer: PreTokenizer | None = None
    post_processor: PostProcessor | None = None
    decoder: Decoder | None = None
    added_tokens: tuple[AddedToken, ...] = ()
    special_roles: Mapping[str, str] = {}
    eos_ids: tuple[int, ...] = ()
    add_bos: bool | None = None
    add_eos: bool | None = None
    chat_templates: Mapping[str, str] = {}
    truncation: Mapping[str, object] | None = None
    padding: Mapping[str, object] | None = None
    vocab_size: int | None = None
    source: str = "spec"
