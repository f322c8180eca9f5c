"""What a tokenizer *is*, whatever file it came from.

`TokenizerSpec` uses HuggingFace's component names, since they are the field's: normalizer, pre_tokenizer, model,
post_processor, decoder, added_tokens. Every reader in `formats/` fills one, and `Tokenizer` is built from nothing else.

The components are tagged `msgspec` structs whose tags and fields are those of HuggingFace's tokenizer.json, so that
its reader decodes straight into them and an unknown component is refused with its JSON path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

Character = Annotated[str, Meta(min_length=1, max_length=1)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


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
    """Unicode canonical composition; this and the other forms by the tables of HuggingFace's library."""


class NFD(Struct, frozen=True, tag="NFD"):
    """Unicode canonical decomposition."""


class NFKC(Struct, frozen=True, tag="NFKC"):
    """Unicode compatibility composition."""


class NFKD(Struct, frozen=True, tag="NFKD"):
    """Unicode compatibility decomposition."""


class Lowercase(Struct, frozen=True, tag="Lowercase"):
    """Lower case, character by character."""


class StripAccents(Struct, frozen=True, tag="StripAccents"):
    """Removes combining marks; text is expected to be decomposed."""


class StripSpace(Struct, frozen=True, tag="Strip"):
    """Removes white space at the ends of a text."""

    strip_left: bool = True
    strip_right: bool = True


class Prepend(Struct, frozen=True, tag="Prepend"):
    """Puts `prepend` before a text that is not empty."""

    prepend: str


class Replace(Struct, frozen=True, tag="Replace"):
    """Puts `content` in place of what `pattern` matches; a normalizer, and a decoder for each token."""

    pattern: Pattern
    content: str


class BertNormalizer(Struct, frozen=True, tag="BertNormalizer"):
    """BERT's cleaning: control characters, spaces around Chinese characters, accents (None: as `lowercase`), case."""

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True


class Precompiled(Struct, frozen=True, tag="Precompiled"):
    """A SentencePiece character map (base64), applied to grapheme clusters as HuggingFace does it."""

    precompiled_charsmap: str


class SentencePieceNormalizer(Struct, frozen=True, tag="SentencePieceNormalizer", kw_only=True):
    """SentencePiece's own normalizer (sentencepiece 0.2.3, normalizer.cc).

    Attributes:
        charsmap: The precompiled character map: a Darts trie and its replacements; empty: characters stay.
        add_dummy_prefix: A space before the text, or after it with `suffix`.
        remove_extra_whitespaces: Spaces at the ends go, runs of spaces become one.
        escape_whitespaces: A space becomes U+2581.
        suffix: `treat_whitespace_as_suffix`.
        user_defined: Pieces that are taken as they are.

    """

    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    suffix: bool = False
    user_defined: tuple[str, ...] = ()


class NormalizerSequence(Struct, frozen=True, tag="Sequence"):
    """Normalizers applied one after the other."""

    normalizers: tuple[Normalizer, ...]


Normalizer = (
    NFC
    | NFD
    | NFKC
    | NFKD
    | Lowercase
    | StripAccents
    | StripSpace
    | Prepend
    | Replace
    | BertNormalizer
    | Precompiled
    | SentencePieceNormalizer
    | NormalizerSequence
)


# -- pre-tokenizers ----------------------------------------------------------------------------------------------------


class Pattern(Struct, frozen=True, omit_defaults=True):
    """What a `Split` looks for: a regular expression or plain text, never both."""

    Regex: str | None = None
    String: str | None = None


SplitBehavior = Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


class Split(Struct, frozen=True, tag="Split", kw_only=True):
    """Split at the matches of a pattern.

    Attributes:
        pattern: What to look for.
        behavior: What becomes of a match: `Isolated`, `Removed`, `MergedWithPrevious`, `MergedWithNext`, `Contiguous`.
        invert: Matches and gaps change places.
        dialect: The regex engine whose reading of the pattern counts. No file says it, the format decides:
            tokenizer.json means Oniguruma, a tiktoken rank file fancy-regex.
        unmatched: Text between matches is kept as pieces (HuggingFace) or dropped (tiktoken).

    """

    pattern: Pattern
    behavior: SplitBehavior
    invert: bool = False
    dialect: Literal["oniguruma", "fancy-regex"] = "oniguruma"
    unmatched: Literal["keep", "drop"] = "keep"


class ByteLevel(Struct, frozen=True, tag="ByteLevel"):
    """GPT-2's alphabet of 256 printable characters, as pre-tokenizer, post-processor and decoder alike."""

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True


class Metaspace(Struct, frozen=True, tag="Metaspace", kw_only=True):
    """Spaces become `replacement` and begin a piece; as a decoder, the other way round.

    Attributes:
        replacement: One character.
        prepend_scheme: Put `replacement` before a piece: each (`always`), the text's first (`first`), or none.
        split: Cut before each `replacement`.
        add_prefix_space: What old files say besides; the library refuses false unless `prepend_scheme` is `never`.
        str_rep: What old files say besides; the replacement again.

    """

    replacement: Character = "\u2581"
    prepend_scheme: Literal["always", "first", "never"] = "always"
    split: bool = True
    add_prefix_space: bool | None = None
    str_rep: str | None = None


class Digits(Struct, frozen=True, tag="Digits"):
    """Numeric characters apart from others; with `individual_digits`, each alone."""

    individual_digits: bool = False


class Punctuation(Struct, frozen=True, tag="Punctuation"):
    """Punctuation characters apart from others."""

    behavior: SplitBehavior = "Isolated"


class Whitespace(Struct, frozen=True, tag="Whitespace"):
    r"""The matches of `\w+|[^\w\s]+`."""


class WhitespaceSplit(Struct, frozen=True, tag="WhitespaceSplit"):
    """What stands between white space."""


class BertPreTokenizer(Struct, frozen=True, tag="BertPreTokenizer"):
    """What stands between white space, punctuation characters apart."""


class CharDelimiterSplit(Struct, frozen=True, tag="CharDelimiterSplit"):
    """What stands between occurrences of a character."""

    delimiter: Character


class PreTokenizerSequence(Struct, frozen=True, tag="Sequence"):
    """Pre-tokenizers, each applied inside the pieces of the one before."""

    pretokenizers: tuple[PreTokenizer, ...]


PreTokenizer = (
    Split
    | ByteLevel
    | Metaspace
    | Digits
    | Punctuation
    | Whitespace
    | WhitespaceSplit
    | BertPreTokenizer
    | CharDelimiterSplit
    | PreTokenizerSequence
)


# -- models ------------------------------------------------------------------------------------------------------------


class BPE(Struct, frozen=True, tag="BPE", kw_only=True):
    """Byte-pair encoding by a list of merges, in order of priority.

    Attributes:
        vocab: Token to id; under a `ByteLevel` pre-tokenizer, spelled in its alphabet.
        merges: Pairs, as `"a b"` or `("a", "b")`; a pair listed twice keeps its later place.
        dropout: Random merging; refused unless None or 0.
        unk_token: What a character becomes that is no token; without one it vanishes.
        continuing_subword_prefix: Spelled before every character of a piece but the first.
        end_of_word_suffix: Spelled after the last character of a piece.
        fuse_unk: Neighbouring unknown characters become one `unk_token`.
        byte_fallback: An unknown character becomes its bytes' tokens (`<0xE4>`), if all exist.
        ignore_merges: A piece that is a token is taken whole, whatever the merges say.

    """

    vocab: Mapping[str, int]
    merges: Sequence[str | tuple[str, str]]
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
        ranks: Token bytes to rank, which is the id. (tekken's ids begin after its special tokens; so do its ranks here.)

    """

    ranks: Mapping[bytes, int]


class SentencePiece(Struct, frozen=True, tag="SentencePiece", kw_only=True):
    """A SentencePiece model (sentencepiece 0.2.3): BPE by scores, or Unigram in 32-bit arithmetic.

    Attributes:
        algorithm: `BPE` or `Unigram`.
        pieces: The pieces by id; no two are equal.
        scores: Their scores, as 32-bit floats.
        types: Their types, a byte each: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
        unk_id: The piece of type 2.
        byte_fallback: Unknown characters become the bytes' pieces (`<0xE4>`).
        unk_surface: What `unk_id` decodes to.

    """

    algorithm: Literal["BPE", "Unigram"]
    pieces: Sequence[str]
    scores: Sequence[float]
    types: bytes
    unk_id: int
    byte_fallback: bool = False
    unk_surface: str = " \u2047 "


class Unigram(Struct, frozen=True, tag="Unigram"):
    """The most probable segmentation (Viterbi) as HuggingFace computes it, in 64-bit arithmetic.

    Attributes:
        vocab: (piece, log probability) by id.
        unk_id: The id of what is unknown; without one, unknown text is an error in the library and refused here.
        byte_fallback: Unknown characters become the bytes' tokens, if all exist.

    """

    vocab: tuple[tuple[str, float], ...]
    unk_id: int | None = None
    byte_fallback: bool = False


class WordPiece(Struct, frozen=True, tag="WordPiece", kw_only=True):
    """The longest token first, from left to right; a piece that cannot be covered so is one unknown token.

    Attributes:
        vocab: Token to id.
        unk_token: The unknown token.
        continuing_subword_prefix: What tokens are spelled with that do not begin a piece.
        max_input_chars_per_word: Longer pieces are unknown, in characters.

    """

    vocab: Mapping[str, int]
    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"
    max_input_chars_per_word: Count = 100


Model = BPE | RankBPE | SentencePiece | Unigram | WordPiece


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


class BertProcessing(Struct, frozen=True, tag="BertProcessing", forbid_unknown_fields=True):
    """`cls` before and `sep` after, each (token, id)."""

    sep: tuple[str, int]
    cls: tuple[str, int]


class RobertaProcessing(Struct, frozen=True, tag="RobertaProcessing"):
    """The same, with the byte-level trimming of offsets. (Only these two fields tell it from the former, not its name.)"""

    sep: tuple[str, int]
    cls: tuple[str, int]
    trim_offsets: bool
    add_prefix_space: bool


class PostProcessorSequence(Struct, frozen=True, tag="Sequence"):
    """Post-processors applied one after the other."""

    processors: tuple[PostProcessor, ...]


PostProcessor = ByteLevel | TemplateProcessing | BertProcessing | RobertaProcessing | PostProcessorSequence


class ByteFallback(Struct, frozen=True, tag="ByteFallback"):
    """A run of tokens such as `<0xE4>` is the text that their bytes spell."""


class Fuse(Struct, frozen=True, tag="Fuse"):
    """All tokens become one, so that what follows sees the whole text."""


class StripDecoder(Struct, frozen=True, tag="Strip"):
    """Removes up to `start` times `content` at the beginning of each token, and `stop` times at its end."""

    content: Character
    start: Count
    stop: Count


class WordPieceDecoder(Struct, frozen=True, tag="WordPiece"):
    """Tokens with `prefix` continue a word, others follow a space; `cleanup` undoes spaces before punctuation."""

    prefix: str = "##"
    cleanup: bool = True


class BPEDecoder(Struct, frozen=True, tag="BPEDecoder"):
    """`suffix` ends a word."""

    suffix: str = "</w>"


class SentencePieceDecoder(Struct, frozen=True, tag="SentencePieceDecoder", kw_only=True):
    """SentencePiece's own decoding (sentencepiece 0.2.3): U+2581 is a space, but for the dummy one.

    The library takes nothing from the end, whatever `treat_whitespace_as_suffix` says.

    Attributes:
        strip_prefix: The U+2581 that the first piece begins with is a dummy prefix and goes (`add_dummy_prefix`).
        strip_extra: One goes from each piece until there is text (`remove_extra_whitespaces`).

    """

    strip_prefix: bool = True
    strip_extra: bool = False


class DecoderSequence(Struct, frozen=True, tag="Sequence"):
    """Decoders applied one after the other, each to the list of tokens."""

    decoders: tuple[Decoder, ...]


Decoder = (
    ByteLevel
    | Replace
    | ByteFallback
    | Fuse
    | StripDecoder
    | Metaspace
    | WordPieceDecoder
    | BPEDecoder
    | SentencePieceDecoder
    | DecoderSequence
)


# -- the whole ---------------------------------------------------------------------------------------------------------


class TokenizerSpec(Struct, frozen=True, kw_only=True):
    """A tokenizer, complete: the components, the added tokens, and what the files around them say.

    Attributes:
        model: How pieces become ids.
        normalizer: Applied to the text between added tokens.
        pre_tokenizer: How text is cut into pieces.
        post_processor: What goes around the ids.
        decoder: How tokens become text; None joins a byte-level model's bytes and another's tokens by spaces.
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
        notes: What was decided while reading and a person may want to know, for `inspect`.
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
    notes: tuple[str, ...] = ()
    source: str = "spec"
