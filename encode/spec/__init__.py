"""Description of a tokenizer, independent of the format of its file.

`TokenizerSpec` has HuggingFace's component names: normalizer, pre_tokenizer, model, post_processor, decoder,
added_tokens. Every reader in `formats/` fills one, and `Tokenizer` is built from it alone.

The components are tagged `msgspec` structs whose tags and fields are those of HuggingFace's tokenizer.json, so that
its reader decodes straight into them and an unknown component is refused with its JSON path. These modules do without
`from __future__ import annotations`, because msgspec would compile each annotation from its text: 2 ms of the first
load.
"""

from collections.abc import Mapping

from msgspec import Struct

from tokenweir.encode.spec.decoders import BPEDecoder as BPEDecoder
from tokenweir.encode.spec.decoders import ByteFallback as ByteFallback
from tokenweir.encode.spec.decoders import Decoder as Decoder
from tokenweir.encode.spec.decoders import DecoderSequence as DecoderSequence
from tokenweir.encode.spec.decoders import Fuse as Fuse
from tokenweir.encode.spec.decoders import SentencePieceDecoder as SentencePieceDecoder
from tokenweir.encode.spec.decoders import StripDecoder as StripDecoder
from tokenweir.encode.spec.decoders import WordPieceDecoder as WordPieceDecoder
from tokenweir.encode.spec.models import BPE as BPE
from tokenweir.encode.spec.models import Model as Model
from tokenweir.encode.spec.models import RankBPE as RankBPE
from tokenweir.encode.spec.models import SentencePiece as SentencePiece
from tokenweir.encode.spec.models import Unigram as Unigram
from tokenweir.encode.spec.models import WordPiece as WordPiece
from tokenweir.encode.spec.normalizers import NFC as NFC
from tokenweir.encode.spec.normalizers import NFD as NFD
from tokenweir.encode.spec.normalizers import NFKC as NFKC
from tokenweir.encode.spec.normalizers import NFKD as NFKD
from tokenweir.encode.spec.normalizers import BertNormalizer as BertNormalizer
from tokenweir.encode.spec.normalizers import Lowercase as Lowercase
from tokenweir.encode.spec.normalizers import Normalizer as Normalizer
from tokenweir.encode.spec.normalizers import NormalizerSequence as NormalizerSequence
from tokenweir.encode.spec.normalizers import Precompiled as Precompiled
from tokenweir.encode.spec.normalizers import Prepend as Prepend
from tokenweir.encode.spec.normalizers import Replace as Replace
from tokenweir.encode.spec.normalizers import SentencePieceNormalizer as SentencePieceNormalizer
from tokenweir.encode.spec.normalizers import StripAccents as StripAccents
from tokenweir.encode.spec.normalizers import StripSpace as StripSpace
from tokenweir.encode.spec.post_processors import BertProcessing as BertProcessing
from tokenweir.encode.spec.post_processors import PostProcessor as PostProcessor
from tokenweir.encode.spec.post_processors import PostProcessorSequence as PostProcessorSequence
from tokenweir.encode.spec.post_processors import RobertaProcessing as RobertaProcessing
from tokenweir.encode.spec.post_processors import SpecialTokenIds as SpecialTokenIds
from tokenweir.encode.spec.post_processors import TemplateProcessing as TemplateProcessing
from tokenweir.encode.spec.pre_tokenizers import BertPreTokenizer as BertPreTokenizer
from tokenweir.encode.spec.pre_tokenizers import ByteLevel as ByteLevel
from tokenweir.encode.spec.pre_tokenizers import CharDelimiterSplit as CharDelimiterSplit
from tokenweir.encode.spec.pre_tokenizers import Digits as Digits
from tokenweir.encode.spec.pre_tokenizers import Metaspace as Metaspace
from tokenweir.encode.spec.pre_tokenizers import PreTokenizer as PreTokenizer
from tokenweir.encode.spec.pre_tokenizers import PreTokenizerSequence as PreTokenizerSequence
from tokenweir.encode.spec.pre_tokenizers import Punctuation as Punctuation
from tokenweir.encode.spec.pre_tokenizers import Split as Split
from tokenweir.encode.spec.pre_tokenizers import SplitBehavior as SplitBehavior
from tokenweir.encode.spec.pre_tokenizers import Whitespace as Whitespace
from tokenweir.encode.spec.pre_tokenizers import WhitespaceSplit as WhitespaceSplit
from tokenweir.encode.spec.values import Character as Character
from tokenweir.encode.spec.values import Count as Count
from tokenweir.encode.spec.values import Pattern as Pattern


class AddedToken(Struct, frozen=True):
    """A token that is searched in the text before (or, if `normalized`, after) the normalizer.

    Attributes:
        content: The text of the token.
        id: The id that the file gives. It does not count for a token that the model's vocabulary has, which keeps the
            model's id.
        single_word: Match only where no word character touches it.
        lstrip: The match takes the white space to its left with it.
        rstrip: The match takes the white space to its right with it.
        normalized: Match in normalized text.
        special: Whether it is a control token, which `skip_special_tokens` drops.

    """

    content: str
    id: int | None = None
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = False


class TokenizerSpec(Struct, frozen=True, kw_only=True):
    """The complete description of a tokenizer: its components, its added tokens, and the settings in the files beside it.

    Attributes:
        model: The model, which turns pieces into ids.
        normalizer: The normalizer, applied to the text between added tokens; None changes nothing.
        pre_tokenizer: The pre-tokenizer, which cuts text into pieces; None keeps it in one piece.
        post_processor: The post-processor, which adds ids around those of a text; None adds nothing.
        decoder: The decoder, which turns tokens into text. None joins the bytes of a rank file's tokens, and other
            tokens, as they are spelled, with spaces.
        added_tokens: The added tokens, in the file's order, which decides the ids of those that the model lacks.
        special_roles: For each role, such as `bos_token`, `unk_token` or `pad_token`, the token that plays it; in a model
            folder, also for roles of the model's own (`image_token`).
        eos_ids: Every id that ends a generation, from all files; empty if no file lists any.
        add_bos: The files' `add_bos_token`, reported and never applied: the post-processor alone adds ids. None if no file
            has it.
        add_eos: The files' `add_eos_token`; likewise.
        chat_templates: The Jinja sources of chat templates, by name; `default` is the plain one.
        response_template: The description by which transformers parses an answer, from tokenizer_config.json, or None.
        truncation: The file's truncation settings; reported, never applied.
        padding: The file's padding settings; reported, never applied.
        vocab_size: The model's number of embedding rows, if a file has it; ids below it that name no token (padding rows)
            decode to nothing.
        notes: Decisions made while reading that a person may want to know, printed by `inspect`.
        source: The name of the format that was read, for people.

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
    response_template: Mapping[str, object] | None = None
    truncation: Mapping[str, object] | None = None
    padding: Mapping[str, object] | None = None
    vocab_size: int | None = None
    notes: tuple[str, ...] = ()
    source: str = "spec"
