"""The compiled core. Everything here is an implementation detail of `tokenweir.encode`.

Texts are `str`; one with a lone surrogate raises `TextError`. A parameter `guarded` is either the ascending offsets of
characters that must not become part of a control token, or a bool that guards the whole text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, TypeVar, final, overload

import numpy as np
from _typeshed import ReadableBuffer
from numpy.typing import NDArray

from tokenweir.encode.spec import SplitBehavior

_Function = TypeVar("_Function", bound=Callable[..., object])

class CompiledPattern:
    """An automaton of `encode/pattern`."""

    def __init__(
        self,
        transitions: NDArray[np.uint16],
        class_index: NDArray[np.uint16],
        class_pages: NDArray[np.uint8],
        n_classes: int,
        sync: NDArray[np.uint8],
        context: tuple[NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint8]] | None,
    ) -> None:
        """Take an `Automaton`'s tables, `sync` as 0 or 1, and `behind`, `transitions` and `symbols` of its `Context`."""

    @property
    def may_rescan(self) -> bool: ...
    """Whether walks may read a long text many times, unless failed searches are memoized."""

def scored_pieces(json: memoryview) -> tuple[tuple[str, float], ...] | None:
    """Parse a tokenizer.json's list of [piece, score]; return None if it contains anything else."""

def json_numbers(literals: list[bytes]) -> NDArray[np.float64]:
    """Parse numbers of a JSON file, as written, the way HuggingFace's library does: it does not round to the nearest.

    Raises:
        TokenizerFileError: A literal is not a JSON number, or is too large for a double.

    """

class NormalizerStep:
    """One step of a normalizer."""

    @staticmethod
    def normal_form(name: str) -> NormalizerStep:
        """Make NFC, NFD, NFKC or NFKD, with the tables of HuggingFace's library."""

    @staticmethod
    def character_map(rules: Sequence[str]) -> NormalizerStep:
        """Replace each character by the last of the rules that covers it.

        Args:
            rules: Some of "lowercase", "strip_accents", "bert_clean_text", "bert_chinese_chars", "bert_strip_accents".

        """

    @staticmethod
    def strip(left: bool, right: bool) -> NormalizerStep:
        """Remove white space at the left end, the right end, or both."""

    @staticmethod
    def prepend(content: str) -> NormalizerStep:
        """Prepend `content` to a nonempty text."""

    @staticmethod
    def replace_string(string: str, content: str) -> NormalizerStep:
        """Replace `string`, which must not be empty, by `content`."""

    @staticmethod
    def replace_pattern(pattern: CompiledPattern, content: str) -> NormalizerStep:
        """Replace a pattern's matches by `content`."""

class Precompiled(NormalizerStep):
    """A SentencePiece character map as HuggingFace's library applies it, offsets included."""

    def __init__(self, charsmap: bytes) -> None: ...

class SentencePieceText(NormalizerStep):
    """SentencePiece's own normalizer, offsets included."""

    def __init__(
        self,
        charsmap: bytes,
        user_defined: Sequence[str],
        *,
        add_dummy_prefix: bool,
        remove_extra_whitespaces: bool,
        escape_whitespaces: bool,
        suffix: bool,
    ) -> None:
        """See `spec.SentencePieceNormalizer`."""

def sentencepiece_pieces(data: bytes) -> tuple[list[str], bytes, bytes, list[tuple[int, int]]]:
    """Read a SentencePiece model file.

    Returns:
        The pieces; their scores as 32-bit floats; their types, a byte each; and the (start, end) bytes of the fields that
        are not pieces.

    """

class Normalizer:
    """Steps, applied one after the other."""

    def __init__(self, steps: Sequence[NormalizerStep]) -> None: ...
    def normalize(self, text: str) -> str: ...
    def normalize_with_origin(self, text: str, all: bool = False) -> tuple[str, NDArray[np.int64]]:
        """Normalize, and return the source of each resulting character: (start, end) characters of `text`; shape (n, 2).

        By default the offsets are the library's, which covers only one source of a character that is made from several.
        With `all` they cover every character that it may have been made from.
        """

class PreTokenizerStage:
    """One stage from text to pieces, applied to each piece of the stage before."""

class Split(PreTokenizerStage):
    """The stage that splits at the matches of an automaton."""

    def __init__(
        self,
        pattern: CompiledPattern,
        behavior: SplitBehavior = "Isolated",
        inverted: bool = False,
        family: tuple[str, list[int]] | None = None,
    ) -> None:
        """Take a pattern and a behavior.

        Args:
            pattern: The automaton.
            behavior: Which matches and gaps become pieces, as in HuggingFace's library.
            inverted: Swap matches and gaps.
            family: The family of the pattern, from `pattern/families.py`. The scanner of the family is then the fast path.

        """

    @property
    def instructions(self) -> str | None:
        """The instruction set of the scanner: avx512, avx2 or portable; None without a scanner."""

class Spaces(PreTokenizerStage):
    """The stage that replaces each space by `sign`, and prepends `sign` to pieces that lack it, as `prefix` says."""

    def __init__(self, sign: str, prefix: Literal["always", "first", "never"]) -> None: ...

class Spell(PreTokenizerStage):
    """The stage that writes each byte as a character of GPT-2's byte alphabet."""

    def __init__(self) -> None: ...

class Unspell(PreTokenizerStage):
    """The stage that converts text in GPT-2's byte alphabet back to bytes."""

    def __init__(self) -> None: ...

class PreTokenizer:
    """The pre-tokenizer: stages, each applied to the pieces of the one before."""

    def __init__(self, stages: Sequence[PreTokenizerStage]) -> None: ...
    def split(self, text: str) -> NDArray[np.int64]:
        """Return the (start, end) characters of `text` of each piece; shape (n, 2)."""

    def pieces(self, text: str) -> list[bytes]:
        """Return the pieces as the model gets them."""

def byte_alphabet() -> str:
    """Return GPT-2's byte alphabet: 256 characters, in the order of their bytes."""

def utf8_bytes() -> bytes:
    """Return the bytes that UTF-8 can contain, in order: all except C0, C1 and F5 to FF."""

class TokenIds(Mapping[str, int]):
    """A vocabulary as a mapping of tokens to ids, in the order of ids, without a Python object for each token."""

    def __init__(self, tokens: dict[str, int]) -> None: ...
    @staticmethod
    def from_json(json: memoryview) -> TokenIds | None:
        """Parse a tokenizer.json's vocabulary; return None unless it is an object of distinct names and integers."""

    def __getitem__(self, name: str) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class RankIds(Mapping[bytes, int]):
    """The vocabulary of a rank file as a mapping of tokens, which are bytes, to ranks."""

    def __init__(self, tokens: dict[bytes, int]) -> None: ...
    @staticmethod
    def read(data: bytes) -> RankIds | None:
        """Parse a rank file; return None if it is not written as all known ones are, or repeats a token or rank."""

    def __getitem__(self, name: bytes) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __len__(self) -> int: ...
    def tokens(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the tokens with these ids, by id."""

class Merges(Sequence[tuple[str, str]]):
    """A merge list, pairs of tokens in order of priority, as a sequence without a Python object for each pair."""

    def __init__(self, merges: Sequence[str | tuple[str, str]]) -> None: ...
    @staticmethod
    def from_json(json: memoryview) -> Merges | None:
        """Parse a tokenizer.json's list of "left right" or ["left", "right"]; return None for anything else."""

    @overload
    def __getitem__(self, at: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[str, str]]: ...
    def __len__(self) -> int: ...

class Vocabulary:
    """A model's tokens as bytes."""

    @staticmethod
    def byte_level(tokens: Mapping[str, int]) -> Vocabulary:
        """Take tokens that are spelled in GPT-2's byte alphabet."""

    @staticmethod
    def ranks(tokens: Mapping[bytes, int]) -> Vocabulary:
        """Take tokens as bytes, as in tiktoken's rank files."""

    @staticmethod
    def plain(tokens: Mapping[str, int] | Iterable[str]) -> Vocabulary:
        """Take tokens as text, which may be empty; an iterable without ids is numbered from 0."""

    def __len__(self) -> int:
        """Return one more than the highest id."""

class Model:
    """A model: pieces to ids."""

    def encode(self, piece: str, guarded: bool = False) -> tuple[list[int], NDArray[np.int64]]:
        """Return the ids of one piece, and the (start, end) characters of each; shape (n, 2)."""

    def encode_cut(self, piece: str, guarded: bool = False) -> list[list[int]]:
        """Cut a piece at all split points; return the ids of each part. Only tests call this."""

class Bpe(Model):
    """Byte-level byte-pair encoding. Guarded or unparsed text never yields an id of `control`."""

    @staticmethod
    def merges(
        vocabulary: Vocabulary, merges: Sequence[str | tuple[str, str]], ignore_merges: bool, control: Sequence[int]
    ) -> Bpe:
        """Take merges in order of priority; with `ignore_merges`, a piece that is a token becomes it without merging."""

    @staticmethod
    def ranks(vocabulary: Vocabulary, ignore_merges: bool, control: Sequence[int]) -> Bpe:
        """Take ranks: the pair whose joined text has the lowest rank merges first. `ignore_merges` as for `merges`."""

    @property
    def pairs(self) -> NDArray[np.uint64]: ...
    """A copy of the table of pairs: 20 bits each id, 24 bits priority; all ones in empty slots."""
    @property
    def merged(self) -> NDArray[np.uint32]: ...
    """A copy of the map of priorities to the resulting ids."""
    @property
    def byte_ids(self) -> NDArray[np.uint32]: ...
    """A copy of the map of bytes to ids."""

class CharacterBpe(Model):
    """Byte-pair encoding over the characters of a piece, by HuggingFace's rules; see `spec.BPE`."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        merges: Sequence[str | tuple[str, str]],
        *,
        unk_token: str | None = None,
        continuing_subword_prefix: str = "",
        end_of_word_suffix: str = "",
        fuse_unk: bool = False,
        byte_fallback: bool = False,
        ignore_merges: bool = False,
        control: Sequence[int] = (),
    ) -> None:
        """Take merges in order of priority.

        Guarded or unparsed text never yields an id of `control`, except the unknown token's.
        """

class SentencePieceBpe(Model):
    """Byte-pair encoding by scores, of normalized text; see `spec.SentencePiece`."""

    def __init__(
        self,
        pieces: list[str],
        scores: NDArray[np.float64],
        types: bytes,
        unk_id: int,
        byte_fallback: bool,
        control: Sequence[int] = (),
    ) -> None:
        """Take pieces, scores and types by id; `control` as in `CharacterBpe`."""

class SentencePieceUnigram(Model):
    """Unigram as sentencepiece 0.2.3 computes it, in 32-bit arithmetic; text is normalized already."""

    def __init__(
        self,
        pieces: list[str],
        scores: NDArray[np.float64],
        types: bytes,
        unk_id: int,
        byte_fallback: bool,
        control: Sequence[int],
    ) -> None:
        """Take pieces, scores and types (see `spec.SentencePiece`) by id, and the control ids as above.

        Raises:
            TokenizerFileError: For a model that contradicts itself, as the library does.
            UnsupportedTokenizerError: For a piece of more than 1,024 bytes.

        """

class HuggingFaceUnigram(Model):
    """Unigram as HuggingFace's `tokenizers` 0.23.3 computes it, in 64-bit arithmetic."""

    def __init__(
        self,
        pieces: list[str],
        scores: NDArray[np.float64],
        unk_id: int | None,
        byte_fallback: bool,
        control: Sequence[int],
    ) -> None:
        """Take pieces and scores by id. Guarded or unparsed text never yields an id of `control`.

        Raises:
            TokenizerFileError: A score is not finite, or `unk_id` is not the id of a piece.
            UnsupportedTokenizerError: A piece has more than 1,024 bytes.

        """

    @property
    def trie_bytes(self) -> int:
        """The size of the trie of pieces in bytes."""

class WordPiece(Model):
    """Longest-match-first encoding from left to right; a piece that no token continues is one unknown token."""

    def __init__(
        self, vocab: Mapping[str, int], unk_token: str, prefix: str, max_chars: int, control: Sequence[int]
    ) -> None:
        """Take the vocabulary; tokens that do not begin a piece are spelled with `prefix`.

        A piece of more than `max_chars` characters is unknown. Guarded or unparsed text never yields an id of `control`,
        except that of `unk_token`.
        """

class AddedTokens:
    """A matcher for added tokens in text."""

    def __init__(self, tokens: Sequence[tuple[str, int | None, bool, bool, bool]], word_flips: Sequence[int]) -> None:
        r"""Take (content, id, single_word, lstrip, rstrip), and the code points where membership in \w changes."""

    @property
    def tokens(self) -> list[tuple[bytes, int, bool]]:
        """The tokens as (content, id, whether one of the three flags is set), sorted by content."""

    @property
    def trie(self) -> NDArray[np.uint32]:
        """The trie: a `TrieNode` of core/encoder/token_trie.h per row."""

class When(Enum):
    """The place in the text of the tokens to which a step applies."""

    ALWAYS = ...
    FIRST = ...
    LATER = ...
    LAST = ...
    NOT_LAST = ...

class Spelling(Enum):
    """The way in which tokens spell bytes.

    `TEXT` as text; `FALLBACK` as text, or as a byte's name such as `<0xE4>`; `ALPHABET` as bytes in GPT-2's alphabet;
    `BYTES` as the bytes themselves.
    """

    TEXT = ...
    FALLBACK = ...
    ALPHABET = ...
    BYTES = ...

class FirstUntil(Enum):
    """The event after which tokens no longer count as the first of a text.

    `TOKEN`: any token; `SPACE`: a token that yields text, or a space that a step removes; `TEXT`: a token that yields text.
    """

    TOKEN = ...
    SPACE = ...
    TEXT = ...

class TextStep:
    """One step of a decoder."""

    @staticmethod
    def replace(pattern: str, content: str, when: When = When.ALWAYS) -> TextStep:
        """Replace each `pattern`, which must not be empty, by `content`."""

    @staticmethod
    def strip(character: str, start: int, stop: int, when: When = When.ALWAYS) -> TextStep:
        """Remove `character` at the beginning, up to `start` times, and at the end, up to `stop` times."""

    @staticmethod
    def follow(prefix: str) -> TextStep:
        """Remove `prefix` from each token except the first, or prepend a space if it lacks it. For whole tokens only."""

    @staticmethod
    def join() -> TextStep:
        """Prepend a space to each token except the first. For whole tokens only."""

class TokenBytes:
    """The content of every id in mid-text: bytes, and whether they are complete characters."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        added: Sequence[tuple[int | None, str, bool]],
        size: int,
        token: Sequence[TextStep],
        spelling: Spelling,
        run: Sequence[TextStep],
        text: Sequence[TextStep],
        first_until: FirstUntil,
        fixed: Sequence[tuple[int, bytes, bool]],
    ) -> None:
        """Take (id, content, special) of the added tokens, a lower bound for the number of ids, and a `Decoding`."""

    def __len__(self) -> int: ...
    def __getitem__(self, token_id: int) -> bytes: ...
    def digest(self) -> int:
        """Hash the contents of all ids."""

    def join(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> bytes:
        """Return the concatenated contents of the tokens."""

    def decode(
        self, ids: Sequence[int] | NDArray[np.integer[Any]], skip_special: bool, whole_runs: bool = False
    ) -> str:
        """Return the text of the tokens; with `whole_runs`, a run of bytes that is not UTF-8 is one U+FFFD per byte."""

class DecodeStream:
    """The state of an incremental decode; see `tokenweir.encode.decode.DecodeStream`."""

    @overload
    def __init__(
        self, tokens: TokenBytes, prompt_ids: Sequence[int], skip_special: bool, whole_runs: bool = False
    ) -> None: ...
    @overload
    def __init__(self, other: DecodeStream) -> None: ...
    def step(self, token_id: int) -> str:
        """Take one id; return the characters that it completes."""

    def feed(self, ids: Sequence[int]) -> str:
        """Take several ids; return the characters that they complete."""

    def flush(self) -> str:
        """Return what is held, as at the end of the text. Ids that come later are decoded as after a prompt."""

    @property
    def pending(self) -> int:
        """An upper bound for the held bytes; 0 if the text of all ids has been returned."""

    def reset(self, prompt_ids: Sequence[int] = ()) -> None:
        """Reset to the initial state."""

    def state(self) -> bytes:
        """Return the state, for `restore`."""

    def restore(self, state: bytes) -> None:
        """Restore the state of a stream with the same tokens and options; `ValueError` for a damaged one."""

class DecodeBatch:
    """Many incremental decodes, one per slot; see `tokenweir.encode.decode.batch.DecodeBatch`."""

    def __init__(self, tokens: TokenBytes, skip_special: bool, whole_runs: bool = False) -> None: ...
    def __len__(self) -> int: ...
    def add(self, prompt_ids: Sequence[int] = ()) -> int:
        """Begin a sequence; return its slot."""

    def copy(self, slot: int) -> int:
        """Begin a sequence with the state of another; return its slot."""

    def step(self, slots: Sequence[int], ids: Sequence[Any]) -> list[str]:
        """Take an id, or a row of ids padded with -1, for each slot; return the text of each."""

    def remove(self, slot: int) -> str:
        """End a sequence; return its held text."""

class IdSet:
    """A few ids among many."""

    def __init__(self, ids: Sequence[int]) -> None: ...
    def last_in(self, ids: Sequence[int]) -> int | None:
        """Find the place of the last of them in `ids`, from the end: 5 ns an id of a list, 40 of an array."""

class JsonValue:
    """One JSON value by RFC 8259, checked as its text comes; nothing of the text is kept."""

    def __init__(self) -> None: ...
    @property
    def done(self) -> bool:
        """Whether the value is whole. A number is whole when a character has come that is no part of it, or `finish`."""

    @property
    def error(self) -> str | None:
        """Why the text is not JSON; None while it may be."""

    def feed(self, text: str, start: int = 0) -> int:
        """Take text from `start` on, until the value is done or wrong; return the place after the last of it."""

    def finish(self) -> None:
        """Take the end of the text: a number is whole then, and any other value stays unfinished."""

    def copy(self) -> JsonValue:
        """Return an independent copy."""

    def state(self) -> bytes:
        """Return the state."""

    def restore(self, state: bytes) -> None:
        """Restore a state from `state`; `ValueError` for anything else."""

class StopStrings:
    """Search for the first stop string; see `tokenweir.stream.decode.stops.StopStrings`."""

    @overload
    def __init__(self, stops: Sequence[str], include: bool = False) -> None: ...
    @overload
    def __init__(self, other: StopStrings) -> None: ...
    @property
    def matched(self) -> str | None: ...
    @property
    def held(self) -> str: ...
    def take(self, text: str, ignore: int = 0) -> str:
        """Take more text; return the text that can no longer be part of a stop."""

    def flush(self) -> str:
        """Return the held text at the end: it can no longer become a stop."""

class AnswerText:
    """Assignment of an answer's ids to the text that is emitted, and the search for stop strings in that text.

    An id belongs to the last byte of its text. One without text, or with only a part of a character, belongs to the
    next character. All text that is added must be returned in order: by `send` if it is emitted, by `take` if other
    text is emitted in its place, by `drop` if none is. `RuntimeError` if more is returned than was added.
    """

    def __init__(self, stops: StopStrings) -> None:
        """Start an answer. The stop strings are shared with the caller, not copied."""

    def enter(self, search: bool, drop: bool) -> None:
        """Set whether stops count in the text that is returned next, and whether that text is dropped."""

    def think(self, on: bool) -> None:
        """Set whether the ids of the text that is returned next count as thinking."""

    def add(self, ids: Iterable[int], text: str) -> None:
        """Add a text and the ids that end with it."""

    def send(self, text: str | None) -> tuple[str, list[int]]:
        """Emit returned text; give the part that is final, and its ids.

        None ends the search for stops: the text that was held for them is final.
        """

    def send_in_parts(self, text: str | None) -> list[tuple[str, list[int]]]:
        """Emit as `send` does, one text for each place where ids end."""

    def take(self, source: str) -> list[int]:
        """Replace returned text by other text; give the ids that belong to it."""

    def drop(self, source: str) -> None:
        """Remove returned text; its ids belong to the next text."""

    def finish(self) -> list[int]:
        """End the answer; return the remaining ids."""

    @property
    def count(self) -> int:
        """Number of ids that have been added."""

    @property
    def kept(self) -> int:
        """Number of ids that have been added and not given back."""

    @property
    def awaited(self) -> int:
        """Bytes of text that have not been returned yet, including those emitted by the fast path."""

    @property
    def thinks(self) -> bool:
        """Whether ids count as thinking: set by `think`, or by a tag that `Detokenizer.feed` has removed."""

    @property
    def thinking(self) -> int:
        """Number of ids of thinking among those whose text has been emitted or dropped."""

    @property
    def thought(self) -> int:
        """Number of ids of thinking if all ids that wait count as the next ones do."""

    @property
    def stop_begun(self) -> bool:
        """Whether the text ends with a proper prefix of a stop, which is held back unless stops are kept."""

    @property
    def matched(self) -> str | None:
        """The stop string that ended the text, or None."""

class SkippableText:
    """Text for the fast path: the core emits it at once, because the splitter's result for it is known.

    It is text without any of the characters `until`, or white space. `scanner` must accept it too, without being done
    or wrong. If it were fed, the splitter would return it unchanged as one piece of its `channel`; or, where it is
    `held`, no piece at all. It is fed later, together with the text after it.

    A splitter may also name tags, which count wherever they begin behind such text: tags that begin or end thinking,
    and tags that begin or end a block of calls. For a complete tag the splitter's `take_tag` is called; neither the tag
    nor the text before it is ever fed. Other text that begins like a tag is fed. The tag that begins a block is held,
    since it is part of the block's pieces. Other tags are removed, with the text that was held before them.
    """

    def __init__(
        self,
        until: str | None,
        scanner: JsonValue | None = None,
        held: bool = False,
        tags: Sequence[str] = (),
        line_tags: Sequence[str] = (),
        openers: Sequence[str] = (),
        closers: Sequence[str] = (),
        bare: bool = False,
        line_until: str = "",
    ) -> None:
        """Describe the text.

        Args:
            until: The characters that end the text, the first ones of the tags included; None: any except white space.
            scanner: The JSON value that the text continues; the decoder copies it.
            held: The splitter holds such text back, and up to `MAX_PASSED` bytes more of it.
            tags: The tags of thinking that count anywhere.
            line_tags: The tags of thinking that count only where white space alone precedes them on their line.
            openers: The tags that begin a block of calls.
            closers: The tags that end a block of calls.
            bare: The line has only white space so far.
            line_until: The ASCII characters that end the text where white space alone precedes them on their line.

        """

    @property
    def until(self) -> str | None: ...
    @property
    def tags(self) -> list[str]: ...
    @property
    def line_tags(self) -> list[str]: ...
    @property
    def openers(self) -> list[str]: ...
    @property
    def closers(self) -> list[str]: ...
    @property
    def bare(self) -> bool: ...
    @property
    def line_until(self) -> str: ...
    @property
    def scanner(self) -> JsonValue | None: ...
    @property
    def held(self) -> bool: ...

class Detokenizer:
    """Decoder of one answer's ids to text, with a fast path for text that a splitter need not see at once.

    Ids are taken by `feed`, or one by one by `step`. The text that these and `flush` return is for the splitter, whose
    pieces are returned to `answer`. `allow_skip` sets the text that takes the fast path: it is emitted at once, and given
    to the splitter together with the next text. When it is returned to `answer`, nothing is emitted again.
    """

    def __init__(
        self,
        tokens: TokenBytes,
        prompt_ids: Sequence[int],
        skip_special: bool,
        whole_runs: bool,
        stops: StopStrings,
        ends: Sequence[int],
        shown: dict[int, str],
        splits: bool,
        min_tokens: int,
        limit: int | None,
    ) -> None:
        """Start behind a prompt.

        Args:
            skip_special: Control tokens decode to nothing.
            whole_runs: As for `TokenBytes.decode`.
            stops: The stop strings; this object is left as it is.
            ends: Ids that end the answer; `feed` stops before them.
            shown: Texts of ids that replace those of `tokens`.
            splits: There is a splitter, which must be given all text. Without one, text of the fast path is not
                returned.
            min_tokens: Stops that complete before this many ids are ignored.
            limit: The number of ids from which no id takes the fast path.

        """

    @property
    def answer(self) -> AnswerText:
        """The assignment of ids to text; a part of this object."""

    def copy(self) -> Detokenizer:
        """Return an independent copy, except that nothing takes the fast path."""

    def allow_skip(self, skippable: SkippableText | None) -> None:
        """Set the text that takes the fast path from here on; None, as at the beginning, for no text."""

    def feed(self, ids: list[int], place: int) -> tuple[str, list[int], int, tuple[str, bool] | None]:
        """Take ids from `place` on, as long as they take the fast path, and one more.

        Returns:
            The text that is emitted, and its ids; the place of the first id that was not taken; and the text for the
            splitter, with whether it is a tag. That text is what was emitted but not given yet, and the text of the
            last id; or the complete tag of the skippable. Behind a tag, `answer` counts the emitted text as returned, and
            the tag too if it is removed. None if all ids took the fast path, or if the next one ends the answer or is
            not an id.

        """

    def step(self, token_id: int) -> str:
        """Take one id; return its text, behind the text that was emitted but not given to the splitter yet."""

    def unseen(self) -> str:
        """Return the text that was emitted but not given to the splitter yet, and a prefix of a tag behind it."""

    def flush(self) -> str:
        """End the decoding; return the rest of the text for the splitter."""

    def state(self) -> bytes:
        """Return the state, except the values of `allow_skip`, `enter` and `limit`; `unseen` must be empty."""

    def restore(self, state: bytes) -> None:
        """Restore a state from `state`; `ValueError` for anything else."""

    limit: int | None
    """Write only: as for the constructor."""

@final
class Tape:
    """An encoded text that later texts resume: its ids, and the places at which encoding may be resumed."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """The ids, read-only; the array keeps the tape alive."""

    @property
    def cuts(self) -> list[tuple[int, int]]:
        """(byte, ids before it) of the places that were kept, ascending."""

    @property
    def difference(self) -> int:
        """The first byte at which the text or its guards differ from the earlier tape; 0 without one."""

    @property
    def resumed(self) -> int:
        """The byte from which on the text was encoded; what is before was taken over."""

    @property
    def rejoined(self) -> int:
        """The byte from which on ids were taken over again; the size of the text if none were."""

    @property
    def reused_ids(self) -> int:
        """The number of ids that were taken over."""

    @property
    def size(self) -> int:
        """Bytes of the text."""

    @property
    def memory(self) -> int:
        """Bytes of memory."""

    @property
    def guards(self) -> list[int]:
        """The bytes over which no added token may match, ascending."""

    def character(self, byte: int) -> int:
        """Return the number of characters before a byte."""

    def bytes(self, start: int, end: int) -> bytes:
        """Return bytes of the text, as a slice does."""

    def common_bytes(self, text: str | ReadableBuffer) -> int:
        """Return the number of bytes at the start that another text has in common, without a look at guards."""

    def common(self, other: Tape) -> tuple[int, int]:
        """Return how many bytes, guards included, and how many ids at the start two tapes have in common."""

def ids_before(encoder: Encoder, tape: Tape, byte: int) -> int | None:
    """Return how many ids of a tape come before a byte, if encoding may be resumed there; None if not.

    At the end of the text, that is all ids.
    """

def tape_of_ids(text: str | ReadableBuffer, guarded: Sequence[int], ids: NDArray[np.int32]) -> Tape:
    """Return the tape of a text that was encoded elsewhere; a later text is encoded from its beginning.

    The text and `guarded` are as for `tape`, with its errors.
    """

def tape(encoder: Encoder, text: str | ReadableBuffer, guarded: Sequence[int], earlier: Tape | None) -> Tape:
    """Encode a text, added tokens matched and nothing added around it, and take over what an earlier tape has in common.

    The ids are those of `Encoder.encode` for every text, guards and earlier tape. The GIL is released for long texts.

    Args:
        text: The text, or its valid UTF-8, which the tape refers to and does not copy.
        guarded: As for `Tokenizer.encode`.
        earlier: The tape of another text by the same encoder; returned itself if text and guards are equal.

    Raises:
        TextError: The text has a lone surrogate.

    """

class Encoder:
    """Text to ids: added tokens, normalizer, pre-tokenizer, model."""

    def __init__(
        self,
        normalizer: Normalizer,
        pre_tokenizer: PreTokenizer,
        model: Model,
        raw: AddedTokens,
        normalized: AddedTokens,
        own: AddedTokens,
        tokens: TokenBytes,
        by_characters: bool = False,
        guarded: bool = False,
    ) -> None:
        """Take the parts, and three sets of added tokens.

        Args:
            raw: Tokens that are searched for in the original text.
            normalized: Tokens that are searched for in the normalized text.
            own: Control tokens that the model itself makes of text, except where they would cover a guarded character.
            by_characters: Each single character decides whether the pre-tokenizer cuts beside it.
            guarded: The model yields no control token.

        """

    def set_affixes(self, prefix: Sequence[int], suffix: Sequence[int]) -> None:
        """Set the ids before and after every text, for calls on the fast path of `fast_encode`."""

    def encode(
        self, text: str, parse_special: bool, guarded: Sequence[int], prefix: Sequence[int], suffix: Sequence[int]
    ) -> list[int]: ...
    def encode_array(
        self, text: str, parse_special: bool, guarded: Sequence[int], prefix: Sequence[int], suffix: Sequence[int]
    ) -> NDArray[np.int32]: ...
    def encode_with_offsets(
        self, text: str, parse_special: bool, guarded: Sequence[int]
    ) -> tuple[list[int], NDArray[np.int64], list[tuple[int, str]], NDArray[np.int32]]:
        """Encode with offsets.

        Returns:
            The ids; the (start, end) characters of each, shape (n, 2); (index, text) of each id that HuggingFace's library
            names by its text instead of its content: matched added tokens, and unknown text of a Unigram model; and the
            number of each id's piece or added token in the text.

        """

    def count(self, text: str, parse_special: bool, guarded: Sequence[int]) -> int: ...
    def encode_batch(
        self,
        texts: object,
        parse_special: bool,
        guarded: Sequence[Sequence[int]],
        threads: int,
        prefix: Sequence[int],
        suffix: Sequence[int],
        offsets: bool = False,
        limit: int = 0,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int64],
        tuple[NDArray[np.int64], list[tuple[int, str]], NDArray[np.int32]] | None,
    ]:
        """Encode many texts.

        Returns:
            All ids, int32[total]; the offsets of the texts, int64[n + 1]; and, if asked for, the offsets of all ids, names
            and numbers of pieces as `encode_with_offsets` has them. Ids around a text have the offsets (0, 0) and -1.

        Args:
            texts: As for `Documents`.
            guarded: Empty, or an entry per text.
            threads: 0 lets the core choose.
            limit: The number of each text's first ids that are needed; it may have more. 0 means all, as with `offsets`.

        """

def fast_encode(function: _Function) -> _Function:
    """Wrap `Tokenizer.encode` with a fast path in the core, for calls with a text and bool options only."""

def fast_encode_array(function: _Function) -> _Function:
    """Wrap `Tokenizer.encode_array` likewise."""

class DeviceTables:
    """The BPE tables of kernels (core/gpu_tables/device_bpe.h); every array is a copy."""

    @overload
    def __init__(self, model: Bpe, searched: Sequence[tuple[int, bytes]]) -> None:
        """Take a model, and (id, content) of the added tokens that are searched for in text.

        Raises:
            UnsupportedTokenizerError: Text that does not spell a control token can become one, or the hashes of too many
                tokens collide.

        """

    @overload
    def __init__(self, model: CharacterBpe, spaces: bool) -> None:
        """Take a model over characters; with `spaces`, a space represents U+2581 in the text of kernels.

        Raises:
            UnsupportedTokenizerError: Text may become a control or byte token, or an unknown character does not become
                bytes.

        """

    @overload
    def __init__(self, model: SentencePieceBpe, pieces: list[str], spaces: bool) -> None:
        """Take a model with scores, and the pieces from which it was built; `spaces` as above.

        Raises:
            UnsupportedTokenizerError: As above, or for pieces of type UNUSED.

        """

    @property
    def pieces(self) -> NDArray[np.uint64]: ...
    """A `PieceSlot` per row."""
    @property
    def rest(self) -> NDArray[np.uint8]: ...
    """The bytes after the first 16 of longer tokens."""
    @property
    def pairs(self) -> NDArray[np.uint64]: ...
    """A `PairBucket` per row."""
    @property
    def merged_ids(self) -> NDArray[np.uint32]: ...
    """The resulting id by entry of `pairs`; empty if it is the entry plus `merged_shift`."""
    @property
    def merged_shift(self) -> int: ...
    @property
    def ranks(self) -> NDArray[np.uint32]: ...
    """By entry, followed by 0xFFFFFFFF: the first entry of equal priority; empty if there are no ties."""
    @property
    def byte_ids(self) -> NDArray[np.uint32]: ...
    """The token of each byte; 0xFFFFFFFF for a byte without one, which UTF-8 does not contain."""
    @property
    def ascii_pairs(self) -> NDArray[np.uint32]: ...
    """The priority of two ASCII characters, at 128 * first + second; 0xFFFFFFFF if they do not merge."""
    @property
    def characters(self) -> NDArray[np.uint32]: ...
    """`CharacterTokens`, by character of the basic plane."""
    @property
    def lengths(self) -> NDArray[np.uint32]: ...
    """The length in bytes of each id's token."""

class DeviceContents:
    """The contents of all ids in the layout of kernels (core/gpu_tables/device_content.h); every array is a copy."""

    def __init__(self, tokens: TokenBytes, skip_special: bool) -> None:
        """Take the contents of ids; `UnsupportedTokenizerError` if the decoder does more than concatenate."""

    @property
    def bytes(self) -> NDArray[np.uint8]: ...
    """The bytes of all tokens."""
    @property
    def contents(self) -> NDArray[np.uint32]: ...
    """A `Content` per row, by id."""
    @property
    def first(self) -> NDArray[np.uint32]: ...
    """A `Content` per row for the first token of a text; empty if that makes no difference."""
    @property
    def stripped(self) -> tuple[int, int]: ...
    """An ASCII character, and the number of copies that are stripped at the start of a text."""

def split_point_table(model: Model) -> tuple[NDArray[np.uint64], NDArray[np.uint64], int]:
    """Return the fields `common`, `others` and `others_shift` of a model's `SplitPointTable`
    (core/cuts/split_point_table.h).
    """

def byte_cut_table(
    model: Bpe,
) -> tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint64], int, NDArray[np.uint64], int] | None:
    """Return the fields of a model's `ByteCutTable` (core/cuts/byte_cut_table.h).

    None if the model has no table, or if `ignore_merges` makes a token that merging does not.
    """

def device_trie(model: WordPiece) -> tuple[NDArray[np.uint32], int, int]:
    """Return a model's `TrieUnit`s, one per row; the base where a piece begins, and the base after the prefix."""

def device_characters(charsmap: bytes, huggingface: bool) -> NDArray[np.uint32]:
    """Return the entries of a character map by code point (core/gpu_tables/device_characters.h).

    A map whose rule ends inside a character raises `UnsupportedTokenizerError`. With `huggingface` it is applied as
    HuggingFace does.
    """

def device_unigram(
    model: HuggingFaceUnigram | SentencePieceUnigram,
) -> tuple[NDArray[np.uint32], int, NDArray[Any], NDArray[np.uint32], NDArray[np.uint32], int]:
    """Return the fields of `UnigramTables` (gpu/kernels/unigram.cu).

    Returns:
        The `TrieUnit`s, one per row; the root; the scores by id, followed by that of an unknown character; the ids of
        bytes; a bit per control token; the unknown token's id.

    Raises:
        UnsupportedTokenizerError: There is no unknown token.

    """

def combining_ranks() -> NDArray[np.uint8]:
    """Return the rank of the canonical combining class of each code point; 0 for a starter."""

def nfc_ranks() -> NDArray[np.uint8]:
    """Return for each code point the rank of its combining class, or a constant of core/gpu_tables/device_nfc.h."""

def nfc_pairs() -> NDArray[np.uint64]:
    """Return the pairs of characters that form C composes, except Hangul; sorted, the first in the upper half of a word."""

def gguf_strings(data: memoryview, offset: int, count: int) -> list[str]:
    """Read the strings of a GGUF array at `offset`; TokenizerFileError names the index and the byte of a bad one."""

def gguf_skip_strings(data: memoryview, offset: int, count: int) -> int:
    """Return the offset after the strings of a GGUF array; raises as `gguf_strings` does."""

class Documents:
    """Texts to be packed into one buffer; the object keeps their memory alive."""

    def __init__(self, texts: Any) -> None:
        """Take a sequence of `str` and `bytes`, or Arrow strings.

        Args:
            texts: A sequence, or an Arrow array (`encode.values.texts.is_arrow`) in host memory: string, large_string, string_view,
                or the binary types.

        Raises:
            TextError: A `str` has a lone surrogate; the message says which.
            TypeError: Something in the sequence is neither `str` nor `bytes`.
            ValueError: An Arrow array is not of strings, or has a null; the message says which.

        """

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> bytes: ...
    @property
    def offsets(self) -> NDArray[np.int64]:
        """The start of each text in the concatenation, and the end of the last; int64[n + 1], read-only."""

    def positions(self, index: int, characters: Sequence[int]) -> list[int]:
        """Convert ascending character offsets in a text, which must be UTF-8, to byte offsets."""

    def copy(self, first: int, last: int, buffer: NDArray[np.uint8], threads: int = 0) -> None:
        """Copy the texts [first, last) into a buffer, without the GIL; `threads` 0 lets the core choose."""

class DeviceStrings:
    """The addresses of Arrow strings in the memory of any device; the object keeps the memory alive.

    Attributes:
        on_host: Whether the host can read the memory, so that `Documents` takes the array.
        device: Type and number of the device, in Arrow's numbering.
        event: The CUDA event to wait for before the memory is read, or 0.
        first: The index of the first string in the buffers.
        validity: The bit map of valid strings, or 0 if there are no nulls.
        offset_bytes: The size of an offset, 4 or 8.
        offsets: The start of each string in `bytes`, and the end of the last one.
        bytes: The bytes of all strings.

    """

    @property
    def on_host(self) -> bool: ...
    @property
    def device(self) -> tuple[int, int]: ...
    @property
    def event(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def validity(self) -> int: ...
    @property
    def offset_bytes(self) -> int: ...
    @property
    def offsets(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def __init__(self, array: Any) -> None:
        """Take an array that has `__arrow_c_device_array__`; `ValueError` unless it has strings in a device's layout."""

    def __len__(self) -> int: ...

def ragged_to_arrow(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> tuple[object, object]:
    """Return lists of ids as capsules of an Arrow schema and array, which keep the arrays alive.

    `ValueError` for offsets that exceed the ids or do not ascend.
    """

def ragged_from_arrow(array: object) -> list[tuple[NDArray[np.int32], NDArray[np.int32] | NDArray[np.int64]]]:
    """Return the ids and offsets of each array of an Arrow array or stream, without copying.

    `ValueError` for a null, or other values than lists of int32.
    """

class TableBlock:
    """Memory for a block of tables."""

    def __init__(self, size: int) -> None: ...
    @property
    def memory(self) -> NDArray[np.uint8]:
        """The bytes, uint8[size], to be written before tables are read from the block."""

class KeptTables:
    """The tables of a block, which share its memory. The block must be unchanged, and written by the same code.

    Call `model` and `token_bytes` once each, in this order.
    """

    def __init__(self, block: TableBlock, start: int) -> None:
        """Take the tables at `start`, a multiple of 64; `TokenizerFileError` if they are inconsistent."""

    @property
    def ids(self) -> TokenIds | RankIds: ...
    @property
    def merges(self) -> Merges | None: ...
    def model(self, control: Sequence[int]) -> Model: ...
    def token_bytes(
        self,
        token: Sequence[TextStep],
        spelling: Spelling,
        run: Sequence[TextStep],
        text: Sequence[TextStep],
        first_until: FirstUntil,
    ) -> TokenBytes:
        """Take the first five fields of a `decoders.Decoding`."""

def keep_tables(
    ids: TokenIds | RankIds, merges: Merges | None, model: Model, tokens: TokenBytes
) -> NDArray[np.uint8] | None:
    """Serialize the tables of a tokenizer to a block; return None for a kind of model that is not cached."""

def checksum(bytes: NDArray[np.uint8]) -> int:
    """Return a 64-bit checksum, which detects damage but not forgery."""
