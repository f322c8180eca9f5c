"""The compiled core. Everything here is an implementation detail of `tokenweir.encode`.

Texts are `str`; one with a lone surrogate raises `TextError`. A parameter `guarded` is either the ascending offsets of
characters that must not become part of a control token, or a bool that guards the whole text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, TypeVar, final, overload

import numpy as np
from _typeshed import ReadableBuffer
from numpy.typing import NDArray

from tokenweir.encode.spec import SplitBehavior

_Function = TypeVar("_Function", bound=Callable[..., object])

class CompiledPattern:
    """The core's form of a compiled pattern, an `encode.pattern.Automaton`."""

    def __init__(
        self,
        transitions: NDArray[np.uint16],
        class_index: NDArray[np.uint16],
        class_pages: NDArray[np.uint8],
        n_classes: int,
        sync: NDArray[np.uint8],
        context: tuple[NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint8]] | None,
    ) -> None:
        """Copy the tables of an `encode.pattern.Automaton`; `sync` as 0 or 1.

        `context` is (`behind`, `transitions`, `symbols`) of its `Context`, if it has one. Raise `UnsupportedTokenizerError`
        if walks might not take linear time.
        """

    may_rescan: Final[bool]
    """Whether walks may read a long text many times, unless failed searches are memoized."""

def scored_pieces(json: memoryview) -> tuple[tuple[str, float], ...] | None:
    """Parse the JSON of a Unigram model's vocabulary, a list of [piece, score]; return None if it has anything else."""

def json_numbers(literals: list[bytes]) -> NDArray[np.float64]:
    """Parse numbers of a JSON file, as written, the way HuggingFace's library does: it does not round to the nearest.

    Raises:
        TokenizerFileError: A literal is not a JSON number, or is too large for a double.

    """

class NormalizerStep:
    """One step of a normalizer."""

    @staticmethod
    def normal_form(name: str) -> NormalizerStep:
        """Return the step that normalizes text to a Unicode form, by the tables of HuggingFace's library.

        `name` is "NFC", "NFD", "NFKC" or "NFKD".
        """

    @staticmethod
    def character_map(rules: Sequence[str]) -> NormalizerStep:
        """Return the step that replaces each character by a rule; of several rules that apply to one, the last counts.

        Args:
            rules: Some of "lowercase", "strip_accents", "bert_clean_text", "bert_chinese_chars", "bert_strip_accents".

        """

    @staticmethod
    def strip(left: bool, right: bool) -> NormalizerStep:
        """Return the step that removes white space at the left end of a text, the right end, or both."""

    @staticmethod
    def prepend(content: str, aligned: bool = True) -> NormalizerStep:
        """Return the step that prepends `content` to a nonempty text, and aligns it to the first character or to nothing."""

    @staticmethod
    def replace_string(string: str, content: str) -> NormalizerStep:
        """Return the step that replaces each occurrence of `string`, which must not be empty, by `content`."""

    @staticmethod
    def replace_pattern(pattern: CompiledPattern, content: str) -> NormalizerStep:
        """Return the step that replaces each match of a pattern by `content`."""

class Precompiled(NormalizerStep):
    """The step that applies a SentencePiece character map as HuggingFace's library does, with the same offsets."""

    def __init__(self, charsmap: bytes) -> None: ...

class SentencePieceText(NormalizerStep):
    """The step that normalizes as SentencePiece itself does, with the same offsets."""

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
        """Build the step; `encode.spec.SentencePieceNormalizer` describes the arguments."""

def sentencepiece_pieces(data: bytes) -> tuple[list[str], bytes, bytes, list[tuple[int, int]]]:
    """Read a SentencePiece model file.

    Returns:
        The pieces by id; their scores, packed as 32-bit floats; their types, a byte each; and the (start, end) bytes of the
        stretches of the file that are not pieces.

    """

def protobuf_fields(
    data: bytes, start: int, end: int, path: str, most: int
) -> list[tuple[int, int, int, int | tuple[int, int]]]:
    """Return the fields of a protobuf message as `formats.protobuf.fields` does."""

class Normalizer:
    """A normalizer: steps that are applied to a text one after the other."""

    def __init__(self, steps: Sequence[NormalizerStep]) -> None: ...
    def normalize(self, text: str) -> str: ...
    def normalize_with_origin(self, text: str, all: bool = False) -> tuple[str, NDArray[np.int64]]:
        """Normalize a text; return the result, and for each of its characters the place of its source.

        The place is (start, end) characters of `text`; shape (n, 2). By default the offsets are those of HuggingFace's
        library, which cover only one source of a character that is made from several. With `all` they cover every character
        that it may have been made from.
        """

class PreTokenizerStage:
    """One stage of a pre-tokenizer, which splits or changes each piece of the stage before."""

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
            behavior: The treatment of matches; see `encode.spec.Split`.
            inverted: Whether matches and the text between them change places.
            family: The family of the pattern, from `pattern/families.py`. The scanner of the family is then the fast path.

        """

    instructions: Final[str | None]
    """The instruction set of the scanner, "avx512", "avx2" or "portable"; None if the stage has no scanner."""

class Spaces(PreTokenizerStage):
    """The stage that replaces each space by `sign`, and prepends `sign` to pieces that lack it.

    `prefix` says to which: "always", "first" (the text's first piece only) or "never".
    """

    def __init__(self, sign: str, prefix: Literal["always", "first", "never"]) -> None: ...

class Spell(PreTokenizerStage):
    """The stage that replaces each byte of the text by a character of GPT-2's byte alphabet."""

    def __init__(self) -> None: ...

class Unspell(PreTokenizerStage):
    """The stage that converts text in GPT-2's byte alphabet back to bytes."""

    def __init__(self) -> None: ...

class PreTokenizer:
    """The pre-tokenizer: stages, each applied to the pieces of the one before."""

    def __init__(self, stages: Sequence[PreTokenizerStage]) -> None: ...
    def split(self, text: str) -> NDArray[np.int64]:
        """Split a text; return for each piece the (start, end) characters of `text` that it covers; shape (n, 2)."""

    def pieces(self, text: str) -> list[bytes]:
        """Split a text; return the bytes of the pieces as the model gets them, changed by the stages."""

def byte_alphabet() -> str:
    """Return GPT-2's byte alphabet: 256 characters, in the order of their bytes."""

def utf8_bytes() -> bytes:
    """Return the bytes that UTF-8 can contain, in order: all except C0, C1 and F5 to FF."""

class TokenIds(Mapping[str, int]):
    """A read-only mapping of tokens to ids, in the order of ids, without a Python object for each token."""

    def __init__(self, tokens: dict[str, int]) -> None: ...
    @staticmethod
    def from_json(json: memoryview) -> TokenIds | None:
        """Parse the JSON of a vocabulary; return None unless it is an object of distinct names with integers."""

    def __getitem__(self, name: str) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    longest_probe: Final[int]
    """The most slots that a look-up of a token reads beyond its first one. Only for tests."""

class RankIds(Mapping[bytes, int]):
    """The vocabulary of a tiktoken rank file as a read-only mapping of tokens, which are bytes, to ranks."""

    def __init__(self, tokens: dict[bytes, int]) -> None: ...
    @staticmethod
    def read(data: bytes) -> RankIds | None:
        """Parse a rank file: the fast path. Return None if it has an unusual form, or repeats a token or rank."""

    def __getitem__(self, name: bytes) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __len__(self) -> int: ...
    longest_probe: Final[int]
    """The most slots that a look-up of a token reads beyond its first one. Only for tests."""

    def tokens(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the tokens with these ranks, by rank; unknown ranks are left out."""

class Merges(Sequence[tuple[str, str]]):
    """A merge list, pairs of tokens in order of priority, as a sequence without a Python object for each pair."""

    def __init__(self, merges: Sequence[str | tuple[str, str]]) -> None: ...
    @staticmethod
    def from_json(json: memoryview) -> Merges | None:
        """Parse the JSON of a merge list, of "left right" or ["left", "right"]; return None for anything else."""

    @overload
    def __getitem__(self, at: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[str, str]]: ...
    def __len__(self) -> int: ...

class Vocabulary:
    """The tokens of a model with their ids, as bytes in the core."""

    @staticmethod
    def byte_level(tokens: Mapping[str, int]) -> Vocabulary:
        """Build a vocabulary of tokens that are spelled in GPT-2's byte alphabet."""

    @staticmethod
    def ranks(tokens: Mapping[bytes, int]) -> Vocabulary:
        """Build a vocabulary of tokens that are bytes, as in tiktoken's rank files; the ranks are the ids."""

    @staticmethod
    def plain(tokens: Mapping[str, int] | Iterable[str]) -> Vocabulary:
        """Build a vocabulary of tokens that are plain text, which may be empty; those of an iterable are numbered from 0."""

    def __len__(self) -> int:
        """Return one more than the highest id."""

class Model:
    """A model, which encodes each piece of a text to ids."""

    def encode(self, piece: str, guarded: bool = False) -> tuple[list[int], NDArray[np.int64]]:
        """Encode one piece; return its ids, and the (start, end) characters that each covers; shape (n, 2).

        With `guarded`, no id is that of a control token.
        """

    def encode_cut(self, piece: str, guarded: bool = False) -> list[list[int]]:
        """Cut a piece wherever the model is sure that no token crosses; return the ids of each part. Only for tests."""

class Bpe(Model):
    """Byte-level byte-pair encoding.

    Text that is guarded, or encoded without parsing added tokens, never yields an id of `control`.
    """

    longest_probe: Final[int]
    """The most slots that a look-up of a pair reads beyond its first one. Only for tests."""

    @staticmethod
    def merges(
        vocabulary: Vocabulary, merges: Sequence[str | tuple[str, str]], ignore_merges: bool, control: Sequence[int]
    ) -> Bpe:
        """Build the model from a merge list, in order of priority.

        With `ignore_merges`, a piece that is a token is taken whole. `control` are the ids of control tokens.
        """

    @staticmethod
    def ranks(vocabulary: Vocabulary, ignore_merges: bool, control: Sequence[int]) -> Bpe:
        """Build the model from ranks, which are the ids: the pair whose joined text has the lowest rank merges first.

        `ignore_merges` and `control` are as for `merges`.
        """

    pairs: Final[NDArray[np.uint64]]
    """A copy of the table of pairs: 20 bits each id, 24 bits priority; all ones in empty slots."""
    merged: Final[NDArray[np.uint32]]
    """A copy of the map of priorities to the resulting ids."""
    byte_ids: Final[NDArray[np.uint32]]
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
        """Build the model from a merge list, in order of priority; `encode.spec.BPE` describes the options.

        Text that is guarded, or encoded without parsing added tokens, never yields an id of `control`, except the unknown
        token's.
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
        """Build the model; `encode.spec.SentencePiece` describes the arguments, and `CharacterBpe` describes `control`."""

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
        """Build the model; `encode.spec.SentencePiece` describes the arguments, and `CharacterBpe` describes `control`.

        Raises:
            TokenizerFileError: The model is inconsistent, by the checks of the library.
            UnsupportedTokenizerError: A piece has more than 1,024 bytes.

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
        """Build the model from the pieces and scores by id; `encode.spec.Unigram` describes the other arguments.

        Text that is guarded, or encoded without parsing added tokens, never yields an id of `control`.

        Raises:
            TokenizerFileError: A score is not finite, or `unk_id` is not the id of a piece.
            UnsupportedTokenizerError: A piece has more than 1,024 bytes.

        """

    trie_bytes: Final[int]
    """The size of the trie of all pieces, in bytes."""

class WordPiece(Model):
    """Longest-match-first encoding from left to right; a piece that no token continues is one unknown token."""

    def __init__(
        self, vocab: Mapping[str, int], unk_token: str, prefix: str, max_chars: int, control: Sequence[int]
    ) -> None:
        """Build the model.

        Args:
            vocab: The id of each token.
            unk_token: The token for a piece that cannot be encoded.
            prefix: The prefix of tokens that do not begin a piece, such as `##`.
            max_chars: The most characters of a piece; a longer one is unknown.
            control: The ids that text never yields if it is guarded, or encoded without parsing added tokens; except that
                of `unk_token`.

        """

class AddedTokens:
    """A matcher for added tokens in text."""

    def __init__(self, tokens: Sequence[tuple[str, int | None, bool, bool, bool]], word_flips: Sequence[int]) -> None:
        r"""Build the matcher.

        Args:
            tokens: The tokens, each (content, id, single_word, lstrip, rstrip).
            word_flips: The sorted code points at which membership in `\w` changes, for `single_word`.

        """

    tokens: Final[list[tuple[bytes, int, bool]]]
    """The tokens: (content, id, whether single_word, lstrip or rstrip is set)."""

    trie: Final[tuple[NDArray[np.uint32], int]]
    """The trie of the tokens' numbers, for kernels: its units (core/base/trie_unit.h), and the base of its root."""

class When(Enum):
    """The tokens of a text to which a decoding step applies: all, the first, all later ones, the last, or all before it."""

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
    """The event after which tokens no longer count as the first of a text, for steps with `When.FIRST`.

    `TOKEN`: any token; `SPACE`: a token that yields text, or a space that a step removes; `TEXT`: a token that yields text.
    """

    TOKEN = ...
    SPACE = ...
    TEXT = ...

class TextStep:
    """One step of a decoder."""

    @staticmethod
    def replace(pattern: str, content: str, when: When = When.ALWAYS) -> TextStep:
        """Return the step that replaces each occurrence of the text `pattern`, which must not be empty, by `content`."""

    @staticmethod
    def strip(character: str, start: int, stop: int, when: When = When.ALWAYS) -> TextStep:
        """Return the step that removes a character, up to `start` times at the beginning and `stop` times at the end."""

    @staticmethod
    def follow(prefix: str) -> TextStep:
        """Return the step that removes `prefix` from each token except the first; a token without it gets a space before it.

        Only for steps on tokens, not on the whole text.
        """

    @staticmethod
    def join() -> TextStep:
        """Return the step that prepends a space to each token except the first. Only for steps on tokens."""

class TokenBytes:
    """The decoding table: for every id the bytes to which it decodes within a text, after other tokens."""

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
        """Build the table.

        Args:
            vocabulary: The model's tokens.
            added: The added tokens, each (id, content, special).
            size: The least number of ids; ids without a token decode to nothing.
            token: This and the next five arguments are the fields of an `encode.components.decoders.Decoding`.
            spelling: See `Decoding`.
            run: See `Decoding`.
            text: See `Decoding`.
            first_until: See `Decoding`.
            fixed: See `Decoding`.

        """

    def __len__(self) -> int: ...
    def __getitem__(self, token_id: int) -> bytes: ...
    def digest(self) -> int:
        """Return a hash of the contents of all ids."""

    def join(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> bytes:
        """Return the bytes of the ids, one after the other, control tokens included."""

    def decode(
        self, ids: Sequence[int] | NDArray[np.integer[Any]], skip_special: bool, whole_runs: bool = False
    ) -> str:
        """Decode ids to text.

        Args:
            ids: The ids.
            skip_special: Whether control tokens decode to nothing.
            whole_runs: Whether each byte of a run of byte tokens becomes a U+FFFD if the run is not UTF-8 as a whole. If
                not, the valid characters in it are kept.

        """

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
        """Return the text that is held back, as at the end of a text. Later ids are decoded as after a prompt."""

    @property
    def pending(self) -> int:
        """An upper bound for the bytes of text that are held back; 0 if the text of all ids has been returned."""

    def reset(self, prompt_ids: Sequence[int] = ()) -> None:
        """Reset to the state of a new object, at the beginning of a text or after `prompt_ids`."""

    def state(self) -> bytes:
        """Serialize the state, for `restore`."""

    def restore(self, state: bytes) -> None:
        """Restore a state from `state()` of a stream with the same tokens and options; `ValueError` for a damaged one."""

class DecodeBatch:
    """Many incremental decodes, one per slot; see `tokenweir.encode.decode.batch.DecodeBatch`."""

    def __init__(self, tokens: TokenBytes, skip_special: bool, whole_runs: bool = False) -> None: ...
    def __len__(self) -> int: ...
    def add(self, prompt_ids: Sequence[int] = ()) -> int:
        """Begin a sequence; return its slot."""

    def copy(self, slot: int) -> int:
        """Begin a sequence with the state of another; return its slot."""

    def step(self, slots: Sequence[int], ids: Sequence[Any]) -> list[str]:
        """Decode an id, or a row of ids padded with -1, for each slot; return the text that each slot completes."""

    def remove(self, slot: int) -> str:
        """End a sequence; return its held text."""

class IdSet:
    """A set of ids, for fast search in long lists of ids."""

    def __init__(self, ids: Sequence[int]) -> None: ...
    def last_in(self, ids: Sequence[int]) -> int | None:
        """Return the index in `ids` of the last one that is in this set; None if no id is. Searches from the end."""

class JsonValue:
    """An incremental checker of one JSON value (RFC 8259), fed with its text piece by piece; the text is not kept."""

    def __init__(self) -> None: ...
    @property
    def done(self) -> bool:
        """Whether the value is complete. A number is so only after a character that does not continue it, or `finish`."""

    @property
    def error(self) -> str | None:
        """The reason why the text is not JSON; None while it may still be."""

    def feed(self, text: str, start: int = 0) -> int:
        """Read `text` from index `start` on, until the value is complete or wrong.

        Return the index after the last character of the value.
        """

    def finish(self) -> None:
        """Mark the end of the text: a number is then complete; any other incomplete value stays incomplete."""

    def copy(self) -> JsonValue:
        """Return an independent copy."""

    def state(self) -> bytes:
        """Serialize the state, for `restore`."""

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
        """Add text; return the text, held text included, that can no longer be part of a stop string.

        A stop string that completes within the first `ignore` characters of `text` does not count.
        """

    def flush(self) -> str:
        """End the text: return the text that was held back, which can no longer become a stop string."""

class AnswerText:
    """Assignment of an answer's ids to the text that is emitted, and the search for stop strings in that text.

    An id belongs to the last byte of its text. One without text, or with only a part of a character, belongs to the
    next character. A splitter, the caller, gets the decoded text that `add` registers, and must hand all of it back in
    order: to `send` if it is emitted, to `take` if other text is emitted in its place, to `drop` if no text is emitted for
    it. `RuntimeError` if more is handed back than was added.
    """

    def __init__(self, stops: StopStrings, trims: bool = False) -> None:
        """Start an answer. The object of stop strings is shared with the caller, not copied.

        With `trims`, white space at the start of a block is held until another character comes. A block is the text
        between two places where `take`, `drop` or `begin_block` was called. If it has no other character, it is removed.
        """

    def enter(self, search: bool, drop: bool, call: bool = False) -> None:
        """Set how the text that is handed back next is treated.

        Args:
            search: Whether stop strings count in it.
            drop: Whether it is dropped.
            call: Whether it belongs to a tool call, in which white space is never held.

        """

    def begin_block(self) -> None:
        """Begin a block of text, as markup does; remove the white space that is held."""

    def end_block(self, anywhere: bool) -> bool:
        """Let held white space pass, so that `send("")` returns it; return whether there is any.

        White space behind markup is removed instead, unless `anywhere`.
        """

    def record(self) -> None:
        """Record for each returned id whether its token's own text was emitted, for `take_in_text`."""

    def take_in_text(self) -> list[bool]:
        """Return what was recorded for the ids that were returned since the last call, in their order.

        An id counts as emitted if the last byte of its token's text was. Ids of removed text and of the end do not count.
        """

    @property
    def recorded(self) -> int:
        """The number of ids for which `take_in_text` would return a value."""

    def think(self, on: bool) -> None:
        """Set whether the ids of the text that is handed back next count as thinking."""

    def add(self, ids: Iterable[int], text: str) -> None:
        """Register decoded text and the ids that end with it."""

    def send(self, text: str | None) -> tuple[str, list[int]]:
        """Emit text that is handed back; return the part of it that is final, and the ids of that part.

        The rest is held back, since it may become a stop string. With None, the search for stop strings ends and the held
        text is final.
        """

    def send_in_parts(self, text: str | None) -> list[tuple[str, list[int]]]:
        """Emit text as `send` does; return it in parts, one for each place where ids end."""

    def take(self, source: str) -> list[int]:
        """Hand back text in whose place other text is emitted; return the ids for that other text."""

    def drop(self, source: str) -> None:
        """Hand back text that is not emitted; its ids then belong to the next text that is."""

    def finish(self) -> list[int]:
        """End the answer; return the ids that no method has returned yet."""

    @property
    def count(self) -> int:
        """The number of ids that have been added."""

    @property
    def kept(self) -> int:
        """The number of ids that have been added and that no method has returned yet."""

    @property
    def awaited(self) -> int:
        """The bytes of added text that have not been handed back yet, including text that the fast path emitted."""

    @property
    def thinks(self) -> bool:
        """Whether ids count as thinking now: set by `think`, or by a tag that `Detokenizer.feed` has removed."""

    @property
    def thinking(self) -> int:
        """The number of ids of thinking among those whose text has been emitted or dropped."""

    @property
    def thought(self) -> int:
        """The number of ids of thinking, if all ids whose text was not handed back yet count as `thinks` says."""

    @property
    def stop_begun(self) -> bool:
        """Whether the emitted text ends with the beginning of a stop string.

        That beginning is held back, unless stop strings are kept in the text.
        """

    @property
    def matched(self) -> str | None:
        """The stop string that ended the text, or None."""

class SkippableText:
    """A description of the text that may take the fast path: the `Detokenizer` emits it at once, without its splitter.

    The splitter's result for such text is known. It is text without any of the characters `until`, or white space.
    `scanner` must accept it too, without being done or wrong. If it were fed, the splitter would return it unchanged as
    one piece of its `channel`; or, where it is `held`, no piece at all. It is fed later, together with the text after it.

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
            until: The characters that end the text, the first ones of the tags included. None: all except white space.
            scanner: The JSON value that the text continues; the decoder copies it.
            held: Whether the splitter holds such text back, and up to 512 bytes more of it.
            tags: The tags of thinking that count anywhere.
            line_tags: The tags of thinking that count only where white space alone precedes them on their line.
            openers: The tags that begin a block of calls.
            closers: The tags that end a block of calls.
            bare: Whether the present line has only white space so far.
            line_until: The ASCII characters that end the text where white space alone precedes them on their line.

        """

    until: Final[str | None]
    tags: Final[list[str]]
    line_tags: Final[list[str]]
    openers: Final[list[str]]
    closers: Final[list[str]]
    bare: Final[bool]
    line_until: Final[str]
    scanner: Final[JsonValue | None]
    held: Final[bool]

class Detokenizer:
    """A decoder of one answer's ids to text, with a fast path for text that a splitter need not see at once.

    A splitter, the caller, assigns decoded text to channels such as answer and thinking. Ids are decoded by `feed`, or one
    by one by `step`. The text that these and `flush` return is for the splitter, which hands its pieces back to `answer`.
    `allow_skip` sets the text that takes the fast path: it is emitted at once, and given to the splitter together with the
    next text. When that is handed back to `answer`, nothing is emitted again.
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
        trims: bool = False,
    ) -> None:
        """Begin an answer that follows a prompt.

        Args:
            tokens: The decoding table.
            prompt_ids: The ids of the prompt.
            skip_special: Whether control tokens decode to nothing.
            whole_runs: As for `TokenBytes.decode`.
            stops: The stop strings; this object is left as it is.
            ends: Ids that end the answer; `feed` stops before them.
            shown: The texts of some ids, in place of those in `tokens`.
            splits: Whether there is a splitter, which must be given all text. If not, text of the fast path is emitted
                only, and not given to the caller again.
            min_tokens: Stops that complete before this many ids are ignored.
            limit: The number of ids after which no more ids take the fast path; None for no limit.
            trims: As for `AnswerText`.

        """

    answer: Final[AnswerText]
    """The assignment of ids to text; a part of this object."""

    def copy(self) -> Detokenizer:
        """Return an independent copy, in which no text takes the fast path until `allow_skip` is called."""

    def allow_skip(self, skippable: SkippableText | None) -> None:
        """Set which text takes the fast path from here on; None, the initial value, for no text."""

    def feed(self, ids: list[int], place: int) -> tuple[str, list[int], int, tuple[str, bool] | None]:
        """Decode ids from index `place` on, as long as they take the fast path, and one more.

        Returns:
            The text that is emitted, and its ids; the index of the first id that was not decoded; and the text for the
            splitter, with whether it is a tag. The text for the splitter is what was emitted but not given to it yet, and
            the text of the last id; or a complete tag of the `SkippableText`. After a tag, `answer` counts the emitted text
            as handed back, and the tag too if it is removed. It is None if all ids took the fast path, or if the next one
            ends the answer or is not an id.

        """

    def step(self, token_id: int, hidden: str = "") -> str:
        """Decode one id; return the text for the splitter: what was emitted but not given to it yet, and the id's text.

        `hidden`, if not empty, stands in place of the id's text: it is searched for stops when it is handed back to `answer`,
        but not emitted.
        """

    def unseen(self) -> str:
        """Return the text that was emitted but not given to the splitter yet, with the begun tag that may follow it."""

    def flush(self) -> str:
        """End the decoding; return the rest of the text for the splitter."""

    def state(self) -> bytes:
        """Serialize the state for `restore`, except the values of `allow_skip`, `enter` and `limit`.

        Text must not be waiting for the splitter: `unseen` must return an empty text.
        """

    def restore(self, state: bytes) -> None:
        """Restore a state from `state`; `ValueError` for anything else."""

    limit: int | None
    """Write only: as for the constructor."""

@final
class Tape:
    """An encoded text whose ids later texts with the same beginning reuse.

    It has the ids, and the places of the text, called cuts, at which encoding may be resumed.
    """

    ids: Final[NDArray[np.int32]]
    """The ids, read-only; the array keeps the tape alive."""

    cuts: Final[list[tuple[int, int]]]
    """The stored places at which encoding may be resumed, ascending: (byte of the text, number of ids before it)."""

    difference: Final[int]
    """The first byte at which the text or its guards differ from those of the earlier tape; 0 without one."""

    resumed: Final[int]
    """The byte from which on the text was encoded; the ids before it were reused from the earlier tape."""

    rejoined: Final[int]
    """The byte from which on ids were reused again, to the end; the size of the text if they were not."""

    reused_ids: Final[int]
    """The number of ids that were reused from the earlier tape."""

    size: Final[int]
    """The number of bytes of the text's UTF-8."""

    memory: Final[int]
    """The number of bytes of memory that the tape takes, the text included."""

    guards: Final[list[int]]
    """The bytes of the text over which no added token may match, ascending."""

    def character(self, byte: int) -> int:
        """Convert a byte offset in the text to the number of characters before it."""

    def bytes(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end) of the text, with bounds as in a slice."""

    def common_bytes(self, text: str | ReadableBuffer) -> int:
        """Return the length in bytes of the common beginning of this text and another one; guards are not compared."""

    def common(self, other: Tape) -> tuple[int, int]:
        """Return the lengths of the common beginning of two tapes: in bytes, with equal guards, and in ids."""

def ids_before(encoder: Encoder, tape: Tape, byte: int) -> int | None:
    """Return the number of ids of a tape before a byte offset of its text; None if encoding may not be resumed there.

    At the end of the text that is the number of all ids.
    """

def tape_of_ids(text: str | ReadableBuffer, guarded: Sequence[int], ids: NDArray[np.int32]) -> Tape:
    """Return a tape for a text that was encoded elsewhere to `ids`. It has no cuts: later texts reuse none of its ids.

    The text and `guarded` are as for `tape`, with its errors.
    """

def tape(encoder: Encoder, text: str | ReadableBuffer, guarded: Sequence[int], earlier: Tape | None) -> Tape:
    """Encode a text, and reuse the ids of what it has in common with an earlier text. Return the new tape.

    Added tokens are matched, and nothing is added around the text. The ids are those of `Encoder.encode`, whatever the
    earlier tape. The GIL is released for long texts.

    Args:
        encoder: The encoder.
        text: The text, or its valid UTF-8, which the tape refers to and does not copy.
        guarded: As for `Tokenizer.encode`.
        earlier: The tape of another text by the same encoder, which is returned itself if text and guards are equal; None
            encodes all of the text.

    Raises:
        TextError: The text has a lone surrogate.

    """

def kept_bytes() -> int:
    """Return the bytes of freed buffers that are kept for the next ones, in all threads together."""

class Encoder:
    """The encoder of a tokenizer, from text to ids: added tokens, normalizer, pre-tokenizer and model."""

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
        """Build the encoder.

        Args:
            normalizer: The normalizer.
            pre_tokenizer: The pre-tokenizer.
            model: The model.
            raw: Added tokens that are searched for in the original text.
            normalized: Added tokens that are searched for in the normalized text.
            own: Control tokens that the model itself makes of text, except where they would cover a guarded character.
            tokens: The decoding table of all ids.
            by_characters: Whether each single character decides whether the pre-tokenizer cuts beside it.
            guarded: Whether the model never yields a control token, whatever the options of a call.

        """

    def set_affixes(self, prefix: Sequence[int], suffix: Sequence[int]) -> None:
        """Set the ids that calls on the fast path of `fast_encode` put before and after every text."""

    def encode(
        self, text: str, parse_special: bool, guarded: Sequence[int], prefix: Sequence[int], suffix: Sequence[int]
    ) -> list[int]: ...
    def encode_array(
        self, text: str, parse_special: bool, guarded: Sequence[int], prefix: Sequence[int], suffix: Sequence[int]
    ) -> NDArray[np.int32]: ...
    def encode_with_offsets(
        self, text: str, parse_special: bool, guarded: Sequence[int]
    ) -> tuple[list[int], NDArray[np.int64], list[tuple[int, str]], NDArray[np.int32]]:
        """Encode one text, without ids around it, and follow each id to its place in the text.

        Returns:
            The ids; the (start, end) characters of each, shape (n, 2); (index, text) of each id whose token HuggingFace's
            library names by the text that it took instead of its spelling in the vocabulary: matched added tokens, and
            unknown text of a Unigram model; and for each id the number of its piece or added token in the text.

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
            The ids of all texts one after the other, int32[total]; the place at which each text's ids begin and the last
            one's end, int64[n + 1]; and with `offsets` the last three results of `encode_with_offsets` for all ids, else
            None. Ids put around a text have the offsets (0, 0) and the piece number -1.

        Args:
            texts: As for `Documents`.
            parse_special: Whether to match added tokens.
            guarded: The guarded characters of each text, as in `Tokenizer.encode`; or empty.
            threads: The most threads; 0 lets the core choose.
            prefix: The ids to put before each text.
            suffix: The ids to put after each text.
            offsets: Whether to follow each id to its place in the text.
            limit: The number of each text's first ids that are needed; it may have more. 0 means all, as with `offsets`.

        """

def fast_encode(function: _Function) -> _Function:
    """Decorate `Tokenizer.encode` with a fast path in the core, for calls with a text and bool options only.

    Other calls go to the function.
    """

def fast_encode_array(function: _Function) -> _Function:
    """Decorate `Tokenizer.encode_array` with a fast path in the core, as `fast_encode` does for `encode`."""

class DeviceTables:
    """The BPE tables of kernels (core/gpu_tables/device_bpe.h); every array is a copy."""

    @overload
    def __init__(self, model: Bpe, searched: Sequence[tuple[int, bytes]]) -> None:
        """Build the tables of a byte-level model; `searched` are the added tokens that are matched, each (id, content).

        Raises:
            UnsupportedTokenizerError: Text that does not spell a control token can become one, or the hashes of too many
                tokens collide.

        """

    @overload
    def __init__(self, model: CharacterBpe, spaces: bool) -> None:
        """Build the tables of a model over characters; with `spaces`, a space stands for U+2581 in the kernels' text.

        Raises:
            UnsupportedTokenizerError: Text may become a control or byte token, or an unknown character does not become
                bytes.

        """

    @overload
    def __init__(self, model: SentencePieceBpe, pieces: list[str], spaces: bool) -> None:
        """Build the tables of a SentencePiece model of BPE.

        Args:
            model: The model.
            pieces: The pieces from which it was built.
            spaces: Whether a space stands for U+2581 in the kernels' text.

        Raises:
            UnsupportedTokenizerError: Text may become a control or byte token, an unknown character does not become bytes,
                or there are unused pieces.

        """

    pieces: Final[NDArray[np.uint64]]
    """A `PieceSlot` per row."""
    rest: Final[NDArray[np.uint8]]
    """The bytes after the first 16 of longer tokens."""
    pairs: Final[NDArray[np.uint64]]
    """A `PairBucket` per row."""
    merged_ids: Final[NDArray[np.uint32]]
    """The resulting id by entry of `pairs`; empty if it is the entry plus `merged_shift`."""
    merged_shift: Final[int]
    ranks: Final[NDArray[np.uint32]]
    """By entry, followed by 0xFFFFFFFF: the first entry of equal priority; empty if there are no ties."""
    byte_ids: Final[NDArray[np.uint32]]
    """The token of each byte; 0xFFFFFFFF for a byte without one, which UTF-8 does not contain."""
    ascii_pairs: Final[NDArray[np.uint32]]
    """The priority of two ASCII characters, at 128 * first + second; 0xFFFFFFFF if they do not merge."""
    characters: Final[NDArray[np.uint32]]
    """`CharacterTokens`, by character of the basic plane."""
    lone: Final[NDArray[np.uint64]]
    """By character the ids of its bytes merged alone, as `LoneIds`; empty for a model of characters."""
    lengths: Final[NDArray[np.uint32]]
    """The length in bytes of each id's token."""

class DeviceContents:
    """The contents of all ids in the layout of kernels (core/gpu_tables/device_content.h); every array is a copy."""

    def __init__(self, tokens: TokenBytes, skip_special: bool) -> None:
        """Build the kernels' tables from a decoding table; with `skip_special`, control tokens decode to nothing.

        Raise `UnsupportedTokenizerError` if the decoder does more than concatenate the bytes of ids.
        """

    bytes: Final[NDArray[np.uint8]]
    """The bytes of all tokens."""
    contents: Final[NDArray[np.uint32]]
    """A `Content` per row, by id."""
    first: Final[NDArray[np.uint32]]
    """A `Content` per row for the first token of a text; empty if that makes no difference."""
    stripped: Final[tuple[int, int]]
    """An ASCII character, and the number of copies that are stripped at the start of a text."""

def split_point_table(model: Model) -> tuple[NDArray[np.uint64], NDArray[np.uint64], int]:
    """Return the model's table of character pairs between which a text may be cut, because no token crosses.

    They are the fields `common`, `others` and `others_shift` of `SplitPointTable` (core/cuts/split_point_table.h).
    """

def byte_cut_table(
    model: Bpe,
) -> (
    tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint64], int, NDArray[np.uint64], int, NDArray[np.uint8]]
    | None
):
    """Return the fields of a model's `ByteCutTable` (core/cuts/byte_cut_table.h), for cutting pieces between bytes.

    The last item has for each character the bits `follower % 8` of the characters that follow it in a token. None if the
    model has no such table.
    """

def device_trie(model: WordPiece) -> tuple[NDArray[np.uint32], int, int]:
    """Return the trie of a WordPiece model's tokens, for kernels.

    Its `TrieUnit`s, one per row; the base of the node at which a piece begins; and that of the node after the prefix of
    continuing tokens.
    """

def device_characters(charsmap: bytes, huggingface: bool) -> NDArray[np.uint32]:
    """Return the replacement of each code point by a SentencePiece character map, for kernels.

    core/gpu_tables/device_characters.h has the form of an entry. With `huggingface`, the map is applied as HuggingFace does.
    Raise `UnsupportedTokenizerError` for a map with a rule that ends inside a character.
    """

def device_unigram(
    model: HuggingFaceUnigram | SentencePieceUnigram,
) -> tuple[NDArray[np.uint32], int, NDArray[Any], NDArray[np.uint32], NDArray[np.uint32], int]:
    """Return the fields of `UnigramTables` (gpu/kernels/unigram.cu).

    Returns:
        The trie of the pieces as `TrieUnit`s, one per row; its root; the scores by id, followed by that of an unknown
        character; the id for each byte; a bit map of the ids that are control tokens; and the unknown token's id.

    Raises:
        UnsupportedTokenizerError: There is no unknown token.

    """

def combining_ranks() -> NDArray[np.uint8]:
    """Return for each code point the rank of its canonical combining class among all classes; 0 for a starter."""

def nfc_ranks() -> NDArray[np.uint8]:
    """Return for each code point the rank of its combining class, or a constant of core/gpu_tables/device_nfc.h."""

def nfc_pairs() -> NDArray[np.uint64]:
    """Return the pairs of characters that Unicode's form C composes, except Hangul.

    Each is a 64-bit word with the first character in its upper half; sorted.
    """

def gguf_strings(data: memoryview, offset: int, count: int) -> list[str]:
    """Read `count` strings of a GGUF array that begins at byte `offset`.

    Raise `TokenizerFileError`, with the index and the byte, for a malformed string.
    """

def gguf_skip_strings(data: memoryview, offset: int, count: int) -> int:
    """Return the byte offset after `count` strings of a GGUF array at `offset`; raise as `gguf_strings` does."""

class Documents:
    """A sequence of texts as UTF-8, which can be copied into one buffer; the object keeps their memory alive."""

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
    offsets: Final[NDArray[np.int64]]
    """The start of each text in the concatenation, and the end of the last; int64[n + 1], read-only."""

    def positions(self, index: int, characters: Sequence[int]) -> list[int]:
        """Convert ascending character offsets in the text at `index`, which must be UTF-8, to byte offsets in it."""

    def copy(self, first: int, last: int, buffer: NDArray[np.uint8], threads: int = 0) -> None:
        """Copy the texts with the indices [first, last) into a buffer, one after the other, without the GIL.

        `threads` is the most threads; 0 lets the core choose.
        """

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

    on_host: Final[bool]
    device: Final[tuple[int, int]]
    event: Final[int]
    first: Final[int]
    validity: Final[int]
    offset_bytes: Final[int]
    offsets: Final[int]
    bytes: Final[int]
    def __init__(self, array: Any) -> None:
        """Take an Arrow array, an object with `__arrow_c_device_array__`.

        Raise `ValueError` unless it has strings in a layout that devices read.
        """

    def __len__(self) -> int: ...

def ragged_to_arrow(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> tuple[object, object]:
    """Export lists of ids by Arrow's C data interface: return the capsules of a schema and an array.

    The capsules keep the memory alive, which is not copied. `ValueError` for offsets that exceed the ids or do not ascend.
    """

def ragged_from_arrow(array: object) -> list[tuple[NDArray[np.int32], NDArray[np.int32] | NDArray[np.int64]]]:
    """Import lists of ids from an Arrow array or stream, without copying: return (ids, offsets) of each of its arrays.

    `ValueError` for a null, or other values than lists of int32.
    """

class TableBlock:
    """A block of memory for the cached tables of a tokenizer, into which a cache file is read."""

    def __init__(self, size: int) -> None: ...
    memory: Final[NDArray[np.uint8]]
    """The bytes, uint8[size], to be written before tables are read from the block."""

class KeptTables:
    """The tables of a tokenizer in a `TableBlock`, whose memory they share.

    The block must have been written by the same version of the code, and must not change.

    Call `model` and `token_bytes` once each, in this order.
    """

    def __init__(self, block: TableBlock, start: int) -> None:
        """Open the tables at byte `start` of the block, a multiple of 64; `TokenizerFileError` if they are inconsistent."""

    ids: Final[TokenIds | RankIds]
    merges: Final[Merges | None]
    def model(self, control: Sequence[int]) -> Model: ...
    def token_bytes(
        self,
        token: Sequence[TextStep],
        spelling: Spelling,
        run: Sequence[TextStep],
        text: Sequence[TextStep],
        first_until: FirstUntil,
    ) -> TokenBytes:
        """Return the tokenizer's decoding table.

        The arguments are the first five fields of its `encode.components.decoders.Decoding`.
        """

def keep_tables(
    ids: TokenIds | RankIds, merges: Merges | None, model: Model, tokens: TokenBytes
) -> NDArray[np.uint8] | None:
    """Serialize a tokenizer's tables for the cache; return the bytes, or None for a kind of model that is not cached."""

def checksum(bytes: NDArray[np.uint8]) -> int:
    """Return a 64-bit checksum of the bytes, which detects damage but not forgery."""
