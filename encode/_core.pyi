"""The compiled core. Everything here is an implementation detail of `tokenweir.encode`.

Texts are `str`; one with a lone surrogate raises `TextError`. Where a parameter is called `guarded`, it is the places of
characters that must not become part of a control token, in ascending order, or whether that is so of the whole text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, TypeVar, overload

import numpy as np
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
        context: tuple[NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint8]] | None,
    ) -> None:
        """Take an `Automaton`'s tables, and `behind`, `transitions` and `symbols` of its `Context`."""

    may_rescan: bool
    """Whether a search may read a long text many times over, unless the places where it failed are kept."""

def scored_pieces(json: memoryview) -> tuple[tuple[str, float], ...] | None:
    """Read a tokenizer.json's list of [piece, score]; None if anything else is in it."""

def json_numbers(literals: list[bytes]) -> NDArray[np.float64]:
    """The scores of a Unigram model's pieces as HuggingFace's library reads them, which is not to the nearest float.

    Args:
        literals: As they stand in the JSON file.

    Raises:
        TokenizerFileError: For one that is no JSON number, or too large for 64 bits of floating point.

    """

class NormalizerStep:
    """One step of a normalizer."""

    @staticmethod
    def normal_form(name: str) -> NormalizerStep:
        """NFC, NFD, NFKC or NFKD by the tables of HuggingFace's library."""

    @staticmethod
    def character_map(rules: Sequence[str]) -> NormalizerStep:
        """Replace each character as the last of the rules says that concerns it.

        Args:
            rules: Some of "lowercase", "strip_accents", "bert_clean_text", "bert_chinese_chars", "bert_strip_accents".

        """

    @staticmethod
    def strip(left: bool, right: bool) -> NormalizerStep:
        """Remove white space at the left end, the right end, or both."""

    @staticmethod
    def prepend(content: str) -> NormalizerStep:
        """Put `content` before a text that is not empty."""

    @staticmethod
    def replace_string(string: str, content: str) -> NormalizerStep:
        """Put `content` in place of `string`, which is not empty."""

    @staticmethod
    def replace_pattern(pattern: CompiledPattern, content: str) -> NormalizerStep:
        """Put `content` in place of a pattern's matches."""

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
        The pieces; their scores as 32-bit floats; their types, a byte each; and the (start, end) bytes of all that is no
        piece.

    """

class Normalizer:
    """Steps, applied one after the other."""

    def __init__(self, steps: Sequence[NormalizerStep]) -> None: ...
    def normalize(self, text: str) -> str: ...
    def normalize_with_origin(self, text: str, all: bool = False) -> tuple[str, NDArray[np.int64]]:
        """Normalize; also return the offsets of each resulting character, the (start, end) characters of `text`; (n, 2).

        Of a character that is made from several, the library gives the offsets of one. With `all` they cover every
        character that it may have been made from.
        """

class PreTokenizerStage:
    """One step from text to pieces, applied to each piece of the step before."""

class Split(PreTokenizerStage):
    """Cuts at the matches of an automaton."""

    def __init__(
        self,
        pattern: CompiledPattern,
        behavior: SplitBehavior = "Isolated",
        inverted: bool = False,
        family: tuple[str, list[int]] | None = None,
    ) -> None:
        """Take a pattern and what becomes of its matches.

        Args:
            pattern: The automaton.
            behavior: What becomes of its matches, and of the gaps between them.
            inverted: Matches and gaps change places.
            family: The name and numbers by which `pattern/families.py` knows the pattern. A scanner of the family then
                does most of the text, and the automaton what is rare.

        """

    @property
    def instructions(self) -> str | None:
        """What the scanner uses: avx512, avx2 or portable; None if there is no scanner."""

class Spaces(PreTokenizerStage):
    """Writes `sign` in place of each space, and before pieces that do not begin with it, as `prefix` says."""

    def __init__(self, sign: str, prefix: Literal["always", "first", "never"]) -> None: ...

class Spell(PreTokenizerStage):
    """Writes each byte as a character of GPT-2's alphabet."""

    def __init__(self) -> None: ...

class Unspell(PreTokenizerStage):
    """Turns text in GPT-2's alphabet back into bytes."""

    def __init__(self) -> None: ...

class PreTokenizer:
    """Text to pieces: stages, one after the other, each inside the pieces of the one before."""

    def __init__(self, stages: Sequence[PreTokenizerStage]) -> None: ...
    def split(self, text: str) -> NDArray[np.int64]:
        """The (start, end) characters of `text` that each piece stands for; shape (n, 2)."""

    def pieces(self, text: str) -> list[bytes]:
        """The pieces as the model gets them."""

def byte_alphabet() -> str:
    """GPT-2's 256 letters, in the order of the bytes that they stand for."""

def utf8_bytes() -> bytes:
    """The bytes that UTF-8 can contain, in order: all but C0, C1 and F5 to FF."""

class TokenIds(Mapping[str, int]):
    """A vocabulary as a mapping of tokens to ids, in the order of ids, without a Python object for each token."""

    def __init__(self, tokens: dict[str, int]) -> None: ...
    @staticmethod
    def from_json(json: memoryview) -> TokenIds | None:
        """Read a tokenizer.json's vocabulary; None if it is not an object of different names and whole numbers."""

    def __getitem__(self, name: str) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class RankIds(Mapping[bytes, int]):
    """The same of a rank file, whose tokens are bytes."""

    def __init__(self, tokens: dict[bytes, int]) -> None: ...
    @staticmethod
    def read(data: bytes) -> RankIds | None:
        """Read a rank file; None if it is not written as every known one is, or has a token or a rank twice."""

    def __getitem__(self, name: bytes) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __len__(self) -> int: ...
    def tokens(self, ids: Sequence[int]) -> dict[int, bytes]:
        """The tokens that have these ids, by id."""

class Merges(Sequence[tuple[str, str]]):
    """Pairs of tokens in order of priority, as a sequence without a Python object for each pair."""

    def __init__(self, merges: Sequence[str | tuple[str, str]]) -> None: ...
    @staticmethod
    def from_json(json: memoryview) -> Merges | None:
        """Read a tokenizer.json's list of "left right" or ["left", "right"]; None if anything else is in it."""

    @overload
    def __getitem__(self, at: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[str, str]]: ...
    def __len__(self) -> int: ...

class Vocabulary:
    """A model's tokens as bytes."""

    @staticmethod
    def byte_level(tokens: Mapping[str, int]) -> Vocabulary:
        """Tokens spelled in GPT-2's byte alphabet."""

    @staticmethod
    def ranks(tokens: Mapping[bytes, int]) -> Vocabulary:
        """Tokens as bytes, as in tiktoken's rank files."""

    @staticmethod
    def plain(tokens: Mapping[str, int] | Iterable[str]) -> Vocabulary:
        """Tokens as text, which may be empty; without ids, from 0 on."""

    def __len__(self) -> int:
        """One more than the highest id."""

class Model:
    """Pieces to ids."""

    def encode(self, piece: str, guarded: bool = False) -> tuple[list[int], NDArray[np.int64]]:
        """The ids of one piece, and the (start, end) characters of each; shape (n, 2)."""

    def encode_cut(self, piece: str, guarded: bool = False) -> list[list[int]]:
        """Cut a piece wherever that does not change its ids; return the ids of each part.

        Encoding cuts pieces at such places to look up the parts as words. Only tests call this.
        """

class Bpe(Model):
    """Byte-pair encoding of a piece. Ids in `control` are never produced for guarded or unparsed text."""

    @staticmethod
    def merges(
        vocabulary: Vocabulary, merges: Sequence[str | tuple[str, str]], whole_first: bool, control: Sequence[int]
    ) -> Bpe:
        """Take merges in order of priority; with `whole_first`, a piece that is a token is not merged but taken whole."""

    @staticmethod
    def ranks(vocabulary: Vocabulary, whole_first: bool, control: Sequence[int]) -> Bpe:
        """Take ranks: the pair whose joined text has the lowest merges first. `whole_first` is as for `merges`."""

    pairs: NDArray[np.uint64]
    """The look-up table of pairs, a copy: 20 bits each id, 24 bits priority; all ones where it is empty."""
    merged: NDArray[np.uint32]
    """Priority to the id that a pair becomes, a copy."""
    byte_ids: NDArray[np.uint32]
    """Byte to id, a copy."""

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
        """Take merges in order of priority; ids in `control`, but for the unknown token's, are never produced for
        guarded or unparsed text.
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
        """Take pieces and scores by id. Ids in `control` are never produced for guarded or unparsed text.

        Raises:
            TokenizerFileError: For a score that is not finite, or an `unk_id` that is no piece.
            UnsupportedTokenizerError: For a piece of more than 1,024 bytes.

        """

    @property
    def trie_bytes(self) -> int:
        """The memory that the trie of pieces takes."""

class WordPiece(Model):
    """From left to right the longest token that fits; a piece in which at some place none fits is one unknown token."""

    def __init__(
        self, vocab: Mapping[str, int], unk_token: str, prefix: str, max_chars: int, control: Sequence[int]
    ) -> None:
        """Take the vocabulary; `prefix` is written before tokens that do not begin a piece.

        A piece of more than `max_chars` characters is unknown.

        Ids in `control`, but for that of `unk_token`, are never produced for guarded or unparsed text.
        """

class AddedTokens:
    """The search for added tokens in text."""

    def __init__(self, tokens: Sequence[tuple[str, int | None, bool, bool, bool]], word_flips: Sequence[int]) -> None:
        r"""Take (content, id, single_word, lstrip, rstrip), and the code points where membership in \w changes."""

    @property
    def tokens(self) -> list[tuple[bytes, int, bool]]:
        """(content, id, whether one of the three flags is set), sorted by content."""

    @property
    def trie(self) -> NDArray[np.uint32]:
        """`TrieNode` of core/encoder/token_trie.h, a row a node."""

class When(Enum):
    """To which tokens of a text a step applies, by their place."""

    ALWAYS = ...
    FIRST = ...
    LATER = ...
    LAST = ...
    NOT_LAST = ...

class Spelling(Enum):
    """How tokens are written.

    `TEXT` as text; `FALLBACK` as text, or as a byte's name such as `<0xE4>`; `ALPHABET` as bytes in GPT-2's alphabet;
    `BYTES` as the bytes themselves.
    """

    TEXT = ...
    FALLBACK = ...
    ALPHABET = ...
    BYTES = ...

class FirstUntil(Enum):
    """After what a token no longer counts as the first of a text.

    `TOKEN` after any token; `SPACE` after a token that gave text, or would have given some but for a space that a step
    removed; `TEXT` after a token that gave text.
    """

    TOKEN = ...
    SPACE = ...
    TEXT = ...

class TextStep:
    """One step of a decoder."""

    @staticmethod
    def replace(pattern: str, content: str, when: When = When.ALWAYS) -> TextStep:
        """Put `content` in place of each `pattern`, which is not empty."""

    @staticmethod
    def strip(character: str, start: int, stop: int, when: When = When.ALWAYS) -> TextStep:
        """Remove `character` at the beginning, up to `start` times, and at the end, up to `stop` times."""

    @staticmethod
    def follow(prefix: str) -> TextStep:
        """Of each token but the first, remove `prefix`, or put a space before it if it has none. For whole tokens only."""

    @staticmethod
    def join() -> TextStep:
        """Put a space before each token but the first. For whole tokens only."""

class TokenBytes:
    """What every id stands for in the middle of a text: bytes, and whether they are whole characters by themselves."""

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
        """Take (id, content, special) of the added tokens, the number of ids at least, and a `decoders.Decoding`."""

    def __len__(self) -> int: ...
    def __getitem__(self, token_id: int) -> bytes: ...
    def digest(self) -> int:
        """Hash what every id stands for; takes 1 ms a megabyte."""

    def join(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> bytes:
        """The bytes of the tokens, one after the other."""

    def decode(
        self, ids: Sequence[int] | NDArray[np.integer[Any]], skip_special: bool, whole_runs: bool = False
    ) -> str:
        """The text of the tokens; with `whole_runs`, a run of bytes that is no UTF-8 becomes one U+FFFD for each byte."""

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
        """How many bytes are held, at most; 0 means that the text of every id taken has gone out."""

    def reset(self, prompt_ids: Sequence[int] = ()) -> None:
        """Begin again, as a new object would."""

    def state(self) -> bytes:
        """The state, for `restore`."""

    def restore(self, state: bytes) -> None:
        """Go on where another stream with the same tokens and options was.

        Raises:
            ValueError: The state is damaged.

        """

class DecodeBatch:
    """Many incremental decodes, one a slot; see `tokenweir.encode.decode_batch.DecodeBatch`."""

    def __init__(self, tokens: TokenBytes, skip_special: bool, whole_runs: bool = False) -> None: ...
    def __len__(self) -> int: ...
    def add(self, prompt_ids: Sequence[int] = ()) -> int:
        """Begin a sequence; return its slot."""

    def copy(self, slot: int) -> int:
        """Begin a sequence in the state of another; return its slot."""

    def step(self, slots: Sequence[int], ids: Sequence[Any]) -> list[str]:
        """Take an id, or a row of ids in which -1 is none, for each slot; return the text of each."""

    def remove(self, slot: int) -> str:
        """End a sequence; return what was held of it."""

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
        """Go on in a state that `state` gave; `ValueError` for anything else."""

class StopStrings:
    """A text on its way to the first stop string; see `tokenweir.stream.decode.stops.StopStrings`."""

    @overload
    def __init__(self, stops: Sequence[str], include: bool = False) -> None: ...
    @overload
    def __init__(self, other: StopStrings) -> None: ...
    @property
    def matched(self) -> str | None: ...
    @property
    def held(self) -> str: ...
    def take(self, text: str, ignore: int = 0) -> str:
        """Take more text; return what can no longer be part of a stop."""

    def flush(self) -> str:
        """Give the held text: no more follows that could make a stop of it."""

class AnswerText:
    """The text of an answer on its way out: which ids go with which text, up to a stop string.

    An id goes with the last byte of its text; one that has none, or only a part of a character, with the next character.
    All text that is added must come back, in order: by `send` if it goes out, by `take` if something else goes out for
    it, by `drop` if nothing does. `RuntimeError` if more comes back than was added.
    """

    def __init__(self, stops: StopStrings) -> None:
        """Begin with stop strings, which are those that others have, not a copy."""

    def enter(self, search: bool, drop: bool) -> None:
        """Say of the text that comes back next whether stops count in it, and whether it is dropped."""

    def think(self, on: bool) -> None:
        """Say whether the ids of the text that comes back next count as thinking."""

    def add(self, ids: Iterable[int], text: str) -> None:
        """Add a text and the ids that end with it."""

    def send(self, text: str | None) -> tuple[str, list[int]]:
        """Take back text to go out; return what is final, and the ids that go with it.

        None ends the search for stops: what is held of them is final.
        """

    def send_in_parts(self, text: str | None) -> list[tuple[str, list[int]]]:
        """Do as `send` does, but return one text for each place where ids end."""

    def take(self, source: str) -> list[int]:
        """Take back text that something else goes out for; return the ids that go with it."""

    def drop(self, source: str) -> None:
        """Take back text that nothing goes out for; its ids wait."""

    def finish(self) -> list[int]:
        """Return the ids that are left: no text of theirs follows."""

    @property
    def count(self) -> int:
        """How many ids have been added."""

    @property
    def kept(self) -> int:
        """Number of ids that have been added and not given back."""

    @property
    def awaited(self) -> int:
        """Bytes of text that have yet to come back, including those that have passed."""

    @property
    def thinks(self) -> bool:
        """What `think` has said, or a tag that `Detokenizer.feed` has cut out."""

    @property
    def thinking(self) -> int:
        """How many of them have counted as thinking, once they had gone out or waited for nothing but what does next."""

    @property
    def thought(self) -> int:
        """How many have if all that wait count as the next ones do."""

    @property
    def stop_begun(self) -> bool:
        """Whether the text ends with the beginning of a stop, which is held back unless stops are kept."""

    @property
    def matched(self) -> str | None:
        """The stop that has ended the text."""

class Passage:
    """Text that a splitter need not see at once, because it knows what comes of it.

    That is text without any of the characters `until`, or white space; which `scanner` takes too without being done or
    wrong. If it were fed, it would come back as one piece of the splitter's `channel`, with the text as it is; or,
    where it is `held`, as no piece at all. It is fed later, together with the text after it.

    A splitter may also name tags, which count wherever they begin behind such text: those with which thinking begins or
    ends, those that begin a block of calls, and those that end one. Of one that ids end, `cross` is told; neither it nor
    the text before it is ever fed. Other text that begins like a tag is fed. The tag that begins a block is held, since
    it comes back with the pieces of the block; the others are cut out, with the text that was held before them.
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
    ) -> None:
        """Describe the text.

        Args:
            until: The characters at which something can begin that concerns the splitter, the tags' first ones included;
                None for all but white space.
            scanner: What follows the text; the decoder copies it.
            held: The splitter holds such text back, and up to `MAX_PASSED` bytes more of it.
            tags: The tags of thinking that count anywhere.
            line_tags: Those that count first on their line but for white space.
            openers: The tags that begin a block of calls.
            closers: The tags that end one.
            bare: Only white space has come on the line so far.

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
    def scanner(self) -> JsonValue | None: ...
    @property
    def held(self) -> bool: ...

class Detokenizer:
    """The ids of one answer to text.

    Ids come in by `feed`, or one by one by `step`. The text that these and `flush` give must come back to `answer`. Text
    of ids that cannot concern a splitter may pass at once (`let_pass`); it is given with the next text, and what comes
    back of it then gives nothing more.
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
        """Begin after a prompt.

        Args:
            tokens: What the ids stand for.
            prompt_ids: What comes before.
            skip_special: Control tokens stand for nothing.
            whole_runs: As for `TokenBytes.decode`.
            stops: The stop strings; this object is left as it is.
            ends: Ids that end the answer, which `feed` leaves alone.
            shown: Ids that stand for a text whatever the table says.
            splits: There is a splitter, which must be given all text; else what passes is not given.
            min_tokens: No stop counts that completes before this many ids.
            limit: The id that makes so many does not pass.

        """

    @property
    def answer(self) -> AnswerText:
        """Where the ids go with their text; it lives in this object."""

    def copy(self) -> Detokenizer:
        """Return an independent copy, but for what may pass."""

    def let_pass(self, passage: Passage | None) -> None:
        """Say what may pass from here on; None for nothing, as at the beginning."""

    def feed(self, ids: list[int], place: int) -> tuple[str, list[int], int, tuple[str, bool] | None]:
        """Take ids from `place` on, as long as their text passes, and one more.

        Returns:
            The text that goes out, and the ids that go with it; the place of the first id that was not taken; and what
            the last one gives, with whether that is a tag. It is the text behind what has gone out, with all that has
            passed before and was not given; or the tag of the passage that it ends: `answer` has back all that has
            passed, and the tag if that is cut out. None if all ids have passed, or if the next one ends the answer or
            is none that `feed` takes.

        """

    def step(self, token_id: int) -> str:
        """Take any one id; return its text, with what has passed before it and was not given."""

    def unseen(self) -> str:
        """Return the text that has passed and was not given, and what may have become a tag."""

    def flush(self) -> str:
        """End the decoding; return the text that is left to be given."""

    def state(self) -> bytes:
        """Return the state, but for what `let_pass`, `enter` and `limit` say; nothing may be unseen."""

    def restore(self, state: bytes) -> None:
        """Go on in a state that `state` gave; `ValueError` for what is none."""

    limit: int | None
    """Write only: as for the constructor."""

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
    ) -> None:
        """Take the parts, and three sets of added tokens.

        Args:
            normalizer: The first step.
            pre_tokenizer: The second one.
            model: The third one.
            raw: Tokens that are searched for in the text as it is.
            normalized: Tokens that are searched for in the normalized text.
            own: Control tokens that the model itself makes of text. It must not where they cover a guarded character.
            tokens: What every id stands for.
            by_characters: Where the pre-tokenizer's pieces end is told by one character at a time.

        """

    def set_usual(self, prefix: Sequence[int], suffix: Sequence[int]) -> None:
        """Set the ids before and after every text, for the calls that `usual_encode` does."""

    def encode(
        self, text: str, parse_special: bool, guarded: Sequence[int], prefix: Sequence[int], suffix: Sequence[int]
    ) -> list[int]: ...
    def encode_array(
        self, text: str, parse_special: bool, guarded: Sequence[int], prefix: Sequence[int], suffix: Sequence[int]
    ) -> NDArray[np.int32]: ...
    def encode_with_offsets(
        self, text: str, parse_special: bool, guarded: Sequence[int]
    ) -> tuple[list[int], NDArray[np.int64], list[tuple[int, str]]]:
        """Encode with offsets.

        Returns:
            The ids; the (start, end) characters of each, shape (n, 2); and (index, text) of each token that HuggingFace's
            library names by the text that it stands for, not by its content: added tokens that were found, and unknown
            text of a Unigram model.

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
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of all texts, int32[total], and where each begins, int64[n + 1].

        Args:
            texts: What `Documents` takes.
            parse_special: As in `encode`.
            guarded: Empty, or an entry a text.
            threads: 0 lets the core choose.
            prefix: Ids before those of each text.
            suffix: Ids after them.

        """

def usual_encode(function: _Function) -> _Function:
    """Make Tokenizer.encode a method of the core: it does calls with a text and without options, or with plain ones, and
    `function` does the rest."""

def usual_encode_array(function: _Function) -> _Function:
    """The same for Tokenizer.encode_array."""

class DeviceTables:
    """The tables of BPE as kernels read them (core/device/device_bpe.h); every array is a copy."""

    @overload
    def __init__(self, model: Bpe, searched: Sequence[tuple[int, bytes]]) -> None:
        """Take a model, and (id, content) of the added tokens that are searched for in text.

        Raises:
            UnsupportedTokenizerError: A control token is made of text that does not spell it, or tokens are too alike.

        """

    @overload
    def __init__(self, model: CharacterBpe, spaces: bool) -> None:
        """Take a model of characters; with `spaces`, a space stands for U+2581 in the text of kernels.

        Raises:
            UnsupportedTokenizerError: Text may become a control token or a byte's, or an unknown character no bytes.

        """

    @overload
    def __init__(self, model: SentencePieceBpe, pieces: list[str], spaces: bool) -> None:
        """Take a model of scores, with the pieces that it was made of; `spaces` as above.

        Raises:
            UnsupportedTokenizerError: As above, or for pieces of type UNUSED.

        """

    pieces: NDArray[np.uint64]
    """`PieceSlot`, a row a slot."""
    rest: NDArray[np.uint8]
    """Of tokens of more than 16 bytes, the bytes after these."""
    pairs: NDArray[np.uint64]
    """`PairBucket`, a row a bucket."""
    merged_ids: NDArray[np.uint32]
    """By the number of an entry of `pairs`: the id; empty if that is the number plus `merged_shift`."""
    merged_shift: int
    ranks: NDArray[np.uint32]
    """By that number, and 0xFFFFFFFF at the end: the first one that merges as early; empty if no two do."""
    byte_ids: NDArray[np.uint32]
    """By byte: its token; 0xFFFFFFFF for a byte without one, which UTF-8 does not contain."""
    ascii_pairs: NDArray[np.uint32]
    """The priority of the pair of two ASCII characters, 128 * first + second; 0xFFFFFFFF if they do not merge."""
    characters: NDArray[np.uint32]
    """`CharacterTokens`, by character of the basic plane."""
    lengths: NDArray[np.uint32]
    """The bytes of each id."""

class DeviceContents:
    """What every id stands for, as kernels read it (core/device/device_content.h); every array is a copy."""

    def __init__(self, tokens: TokenBytes, skip_special: bool) -> None:
        """Take what ids stand for.

        Raises:
            UnsupportedTokenizerError: The decoder does more than to join what tokens stand for.

        """

    bytes: NDArray[np.uint8]
    """Of all tokens."""
    contents: NDArray[np.uint32]
    """`Content`, a row an id."""
    first: NDArray[np.uint32]
    """The same for the first token of a text; empty where that makes no difference."""
    stripped: tuple[int, int]
    """An ASCII character, and how many copies of it go from the beginning of a text."""

def split_pairs(model: Model) -> tuple[NDArray[np.uint64], NDArray[np.uint64], int]:
    """The fields `near`, `others` and `others_shift` of a model's `SplitPairs` (core/models/split_pairs.h)."""

def byte_pairs(
    model: Bpe,
) -> tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint64], int, NDArray[np.uint64], int] | None:
    """The fields of a model's `BytePairs` (core/models/byte_pairs.h).

    None where it has none, or takes tokens whole that merging does not make.
    """

def device_trie(model: WordPiece) -> tuple[NDArray[np.uint32], int, int]:
    """A model's `TrieUnit`s, a row a unit; where walks of a piece begin, and where they go on inside of one."""

def device_characters(charsmap: bytes, huggingface: bool) -> NDArray[np.uint32]:
    """By code point: what a character map makes of it (core/device/device_characters.h); no `charsmap`: nothing changes.

    Raises:
        UnsupportedTokenizerError: It is a map with rules that end inside of characters.

    """

def device_unigram(
    model: HuggingFaceUnigram | SentencePieceUnigram,
) -> tuple[NDArray[np.uint32], int, NDArray[Any], NDArray[np.uint32], NDArray[np.uint32], int]:
    """The tables of `UnigramTables` (gpu/kernels/unigram.cu): `TrieUnit`s, a row a unit; where walks begin; scores by id,
    and of an unknown character; the ids of bytes; bits of control tokens; the unknown token's id.

    Raises:
        UnsupportedTokenizerError: There is no unknown token.

    """

def combining_ranks() -> NDArray[np.uint8]:
    """By code point: the rank of its canonical combining class, 0 for a starter."""

def nfc_ranks() -> NDArray[np.uint8]:
    """By code point: the rank of its canonical combining class, 0 for a starter, or a constant of core/device/device_nfc.h."""

def nfc_pairs() -> NDArray[np.uint64]:
    """The pairs of characters that form C makes one of, but for Hangul; sorted, the first in the upper half of the word."""

def gguf_strings(data: memoryview, offset: int, count: int) -> list[str]:
    """The strings of a GGUF array that begins at `offset`; raises TokenizerFileError with the index and the byte."""

def gguf_skip_strings(data: memoryview, offset: int, count: int) -> int:
    """Return the byte behind the strings of such an array; raises as `gguf_strings`."""

class Documents:
    """Texts to be copied into one buffer, one after the other; the object keeps their memory alive."""

    def __init__(self, texts: Any) -> None:
        """Take a sequence of `str` and `bytes`, or strings of Arrow.

        Args:
            texts: A sequence, or what `encode.texts.is_arrow` finds: string, large_string and string_view arrays, or the
                same of binary, in memory of the host.

        Raises:
            TextError: A `str` has a lone surrogate; the message says which.
            TypeError: Something in the sequence is neither `str` nor `bytes`.
            ValueError: An Arrow array is not of strings, or has a null; the message says which.

        """

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> bytes: ...
    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each begins in all of them, int64[n + 1], read-only."""

    def positions(self, index: int, characters: Sequence[int]) -> list[int]:
        """Byte offsets in one text, which is UTF-8, of ascending character offsets."""

    def copy(self, first: int, last: int, buffer: NDArray[np.uint8], threads: int = 0) -> None:
        """Copy the texts [first, last) into a buffer, without the GIL; `threads` 0 lets the core choose."""

class DeviceStrings:
    """Strings of Arrow in the memory of any device, which the object keeps: where they lie, as addresses there.

    Attributes:
        on_host: The host reads the memory, so that `Documents` takes the array.
        device: Its type and number, as Arrow counts them.
        event: CUDA's handle of what must have happened before the memory is read; 0 if there is nothing.
        first: The number of the first string in the buffers.
        validity: A bit for each string, 0 for a null; the address is 0 if there are no nulls.
        offset_bytes: Of each offset, 4 or 8.
        offsets: Where each string begins in `bytes` and the last one ends.
        bytes: Of all strings.

    """

    on_host: bool
    device: tuple[int, int]
    event: int
    first: int
    validity: int
    offset_bytes: int
    offsets: int
    bytes: int

    def __init__(self, array: Any) -> None:
        """Take an array that has `__arrow_c_device_array__`.

        Raises:
            ValueError: It is not of strings, or of those that the host alone can follow.

        """

    def __len__(self) -> int: ...

def ragged_to_arrow(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> tuple[object, object]:
    """Lists of ids as capsules of Arrow's schema and array, which keep the arrays alive.

    Raises:
        ValueError: The offsets lead past the ids, or do not ascend.

    """

def ragged_from_arrow(array: object) -> list[tuple[NDArray[np.int32], NDArray[np.int32] | NDArray[np.int64]]]:
    """The ids and offsets of each array of an Arrow array or stream, where they lie.

    Raises:
        ValueError: It is not of lists of int32, or has a null.

    """

class TableBlock:
    """Memory for a block of tables."""

    def __init__(self, size: int) -> None: ...
    @property
    def memory(self) -> NDArray[np.uint8]:
        """Its bytes, uint8[size], to be written before tables are taken from it."""

class KeptTables:
    """The tables of a block, which has not changed since the same code made it; they lie in its memory.

    `model` and `token_bytes` are called once each, in this order.
    """

    def __init__(self, block: TableBlock, start: int) -> None:
        """Take the tables that lie from `start` on, a multiple of 64.

        Raises:
            TokenizerFileError: They contradict themselves.

        """

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
        """Take the first five of a `decoders.Decoding`."""

def keep_tables(
    ids: TokenIds | RankIds, merges: Merges | None, model: Model, tokens: TokenBytes
) -> NDArray[np.uint8] | None:
    """The tables of a tokenizer as a block; None if its model is not of a kind that is kept."""

def checksum(bytes: NDArray[np.uint8]) -> int:
    """64 bits that tell damage; no protection against intent."""
