"""`Tokenizer`: text to ids and back."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import index
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NoReturn, Unpack, overload

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tokenweir.encode import _core, formats
from tokenweir.encode.base.options import (
    AffixOptions,
    ByteFallback,
    EncodeOptions,
    check_byte_fallback,
    check_flags,
    check_options,
    refuse_texts,
)
from tokenweir.encode.build import Core, build_core
from tokenweir.encode.components.added_tokens import (
    inferred_end_ids,
    is_control,
    own_control_texts,
    with_more,
    with_real_ids,
    with_roles,
)
from tokenweir.encode.components.post_process import affixes_of
from tokenweir.encode.encoding import text_chunks
from tokenweir.encode.encoding.selection import AddedTokenSelection, Call
from tokenweir.encode.encoding.sequence_encoder import SequenceEncoder
from tokenweir.encode.encoding.text_chunks import TextChunk
from tokenweir.encode.encoding.truncation import TruncationStrategy, cut_rows, truncation_of
from tokenweir.encode.errors import TextError, TokenIdError, TokenizerFileError
from tokenweir.encode.formats.hub import find_snapshot, is_name
from tokenweir.encode.other_names import WRITE_INSTEAD, OtherName
from tokenweir.encode.spec import AddedToken, RankBPE, TokenizerSpec
from tokenweir.encode.table_cache import CacheEntry, Origin
from tokenweir.encode.values.encoded import Encoded, Ragged, Side
from tokenweir.encode.values.ids import Ids, as_sequence, in_place, no_sequence, not_ids
from tokenweir.encode.values.texts import Texts, for_core
from tokenweir.encode.vocabulary import Vocabulary, token_ids

if TYPE_CHECKING:
    import pyarrow

_DEFAULT = Path(__file__).parent / "data"

_MAX_REOPENED = 8
"""The most unpickled tokenizers that a process caches, so that the next task of a worker need not load its tokenizer again."""


class Tokenizer:
    """A tokenizer: immutable, safe to share between threads, picklable, and usable after a fork.

    The pickle of a tokenizer that was read from files has their path and hash. Each process that unpickles it reads the files
    once, so they must exist and be unchanged. Any other tokenizer is pickled with its spec.

    For every input the ids are those of the reference library of the format: HuggingFace's `tokenizers` 0.23 for
    tokenizer.json, `sentencepiece` 0.2.3 for its models and `mistral-common` 1.13 for tekken.json (both with
    `parse_special=False`, because they never match special tokens), `tiktoken` 0.14 for rank files, and for GGUF the file
    from which it was converted. Constructs that cannot be reproduced exactly are refused when the tokenizer is made. Truncation and
    padding that a tokenizer.json has saved are not applied. In a model folder, the post-processor alone decides what is added
    to a text; `docs/explanation/exactness.md` has the rule.

    Every encoding method takes the keywords `add_special_tokens`, `add_bos`, `add_eos` and `parse_special`, which
    `EncodeOptions` describes, and `guarded`: the ascending offsets of characters that come from a user. None of
    `control_texts` matches where it would cover such a character, or its normalized form.

    Attributes:
        spec: The spec from which it was made.
        vocab_size: The number of ids, which are from 0 to `vocab_size - 1`.
        added_tokens: The added tokens with their effective ids.
        special_tokens: The ids of control tokens.
        control_texts: The texts that user text must not become: control tokens, and other added tokens (`<think>`) and
            user-defined SentencePiece pieces with punctuation.
        bos_id: The id of the beginning-of-text token, or None; `unk_id` and `pad_id` likewise.
        eos_ids: The ids that end a generation.
        eos_inferred: Whether `eos_ids` were inferred from names, because no file lists them.

    """

    def __init__(self, spec: TokenizerSpec, *, _tables: _core.KeptTables | None = None) -> None:
        if not isinstance(spec, TokenizerSpec):
            hint = f": write Tokenizer.from_file({str(spec)!r})" if isinstance(spec, str | Path) else ""
            raise TypeError(f"Tokenizer() takes a TokenizerSpec, not {type(spec).__name__}{hint}")
        self.spec = spec
        # The names of ranks are rarely needed.
        named = None if isinstance(spec.model, RankBPE) else token_ids(spec.model)
        self.added_tokens = with_real_ids(with_roles(spec), spec.model, named)
        own_controls = own_control_texts(spec.model, self.added_tokens)
        self._core = build_core(spec, self.added_tokens, own_controls, _tables)
        self._files: CacheEntry | None = None
        self._encoder = self._core.encoder
        self._tokens = self._core.tokens
        self.vocab_size = len(self._tokens)
        added_ids = {t.content: t.id for t in self.added_tokens if t.id is not None}
        self._vocabulary = Vocabulary(spec.model, added_ids, named)
        self.special_tokens = {t.content: t.id for t in self.added_tokens if t.special and t.id is not None}
        self.control_texts = (*(t.content for t in self.added_tokens if is_control(t)), *own_controls)
        self.bos_id = self._role("bos_token")
        self.unk_id = self._role("unk_token")
        self.pad_id = self._role("pad_token")
        eos = self._role("eos_token")
        self.eos_ids = frozenset(spec.eos_ids) | (frozenset() if eos is None else {eos})
        self.eos_inferred = not self.eos_ids
        if self.eos_inferred:
            self.eos_ids = frozenset(inferred_end_ids(self.added_tokens))
        for token_id in self.eos_ids:
            if not 0 <= token_id < self.vocab_size:
                raise TokenizerFileError(
                    f"end token id {token_id} is outside the vocabulary (0 to {self.vocab_size - 1})"
                )
        if eos is None:
            eos = min(self.eos_ids, default=None)
        self._affixes = affixes_of(spec, self.bos_id, eos, self.vocab_size)
        self._default_call = self._given()
        self._encoder.set_affixes(self._default_call.prefix, self._default_call.suffix)

    # -- making one ----------------------------------------------------------------------------------------------------

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
        nfc: bool = True,
        cache: bool = True,
        verify: bool = False,
    ) -> Tokenizer:
        """Read a tokenizer.json, SentencePiece model, tiktoken rank file, tekken.json, GGUF file, or a model folder.

        The files that lie beside it (tokenizer_config.json, generation_config.json, config.json,
        chat_template.jinja) are read with it.

        Args:
            path: The file or folder.
            pattern: The pre-tokenizer's pattern, for an unknown rank file (OpenAI's, and those of Whisper, Llama 4, Qwen's
                first models and Kimi are known), and for a GGUF file without one.
            special_tokens: The map of special tokens to ids, for such a rank file. Two texts may share an id;
                the first one decodes it.
            nfc: For a GGUF file: compose text as the original tokenizer does (NFC: Qwen, Command R). False leaves text as it
                is, like llama.cpp.
            cache: Use the cache on disk. It has the tables of large BPE tokenizers that were loaded before, and is valid
                while the size, times and inode of all files are unchanged. Its folder is that of TOKENWEIR_CACHE, else
                `~/.cache/tokenweir`.
            verify: Also compare the SHA-256 of the files with that in the cache, instead of trusting their times.

        Raises:
            TokenizerFileError: The file cannot be read, is truncated or inconsistent.
            UnsupportedTokenizerError: The file uses a construct that is not reproduced exactly.
            TypeError: An argument has the wrong type.
            ValueError: An option is given for a file of another format.

        """
        if isinstance(path, str) and is_name(path) and not os.path.exists(path):
            raise TokenizerFileError(
                f"{path}: no such file or folder; for a model in the hub's cache write Tokenizer.from_pretrained({path!r})"
            )
        formats.check_given(pattern, special_tokens, nfc)
        files = CacheEntry(Path(path), pattern, special_tokens, nfc)
        if cache and (kept := files.find(verify=verify)):
            tokenizer = cls(kept.spec, _tables=kept.tables)
        else:
            tokenizer = cls(formats.read_file(Path(path), pattern=pattern, special_tokens=special_tokens, nfc=nfc))
            if cache:
                files.keep(tokenizer.spec, tokenizer._core.model, tokenizer._tokens)
        tokenizer._files = files
        return tokenizer

    @classmethod
    def from_pretrained(cls, name: str, *, revision: str = "main") -> Tokenizer:
        """Read the tokenizer of a model from an existing cache of the HuggingFace hub; the network is never used.

        The cache is at `HF_HUB_CACHE` or `HUGGINGFACE_HUB_CACHE`, or `hub` in `HF_HOME`, or `huggingface/hub` in `XDG_CACHE_HOME`,
        or `~/.cache/huggingface/hub`.

        Args:
            name: The model's name on the hub, such as "Qwen/Qwen3-8B".
            revision: A branch or tag that was fetched, or a commit's hash.

        Raises:
            TokenizerFileError: It is not in the cache, or cannot be read.
            UnsupportedTokenizerError: It uses a construct that is not reproduced exactly.
            ValueError: The name or the revision is not a valid one on the hub.

        """
        return cls.from_file(find_snapshot(name, revision))

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        format: formats.Format,
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
        nfc: bool = True,
    ) -> Tokenizer:
        """Read a tokenizer from memory.

        Args:
            data: The content of a file.
            format: "huggingface", "sentencepiece", "tiktoken", "tekken" or "gguf".
            pattern: As for `from_file`, for "tiktoken" and "gguf".
            special_tokens: As for `from_file`, for "tiktoken".
            nfc: As for `from_file`, for "gguf".

        Raises:
            TokenizerFileError: The data is truncated or inconsistent.
            UnsupportedTokenizerError: The data uses a construct that is not reproduced exactly.
            TypeError: An argument has the wrong type.
            ValueError: The format is unknown, or an argument does not apply to it.

        """
        return cls(formats.read_bytes(data, format, pattern=pattern, special_tokens=special_tokens, nfc=nfc))

    @classmethod
    def from_spec(cls, spec: TokenizerSpec) -> Tokenizer:
        """Build a tokenizer from its description.

        Raises:
            TokenizerFileError: The spec is inconsistent.
            UnsupportedTokenizerError: The spec uses a construct that is not reproduced exactly.

        """
        return cls(spec)

    @classmethod
    def default(cls) -> Tokenizer:
        """Load the embedded vocabulary: about 8,000 byte-level tokens, for demonstrations and tests."""
        return cls.from_file(_DEFAULT)

    def with_added_tokens(self, tokens: Iterable[str | AddedToken]) -> Tokenizer:
        """Return a copy that has more added tokens.

        Args:
            tokens: The tokens to add; a plain string is not special. A token with the same content is replaced. Ids of
                tokens only count for a rank file or a SentencePiece model; otherwise HuggingFace's rule assigns the next
                free id.

        Raises:
            TokenizerFileError: Two tokens have one id beside a SentencePiece model, or an id is negative, where ids count.
            TypeError: `tokens` is one string.

        """
        if isinstance(tokens, str):
            raise TypeError("tokens must be several tokens, not one str: write with_added_tokens([token])")
        first_id = self.vocab_size if isinstance(self.spec.model, RankBPE) else None
        return Tokenizer(replace(self.spec, added_tokens=with_more(self.added_tokens, tokens, first_id)))

    def __reduce__(self) -> tuple[Callable[..., Tokenizer], tuple[object, ...]]:
        origin = None if self._files is None else self._files.origin()
        if origin is None:
            return Tokenizer, (self.spec,)
        if origin.path == str(_DEFAULT):  # its path may differ on another machine
            return _default, ()
        return _reopened, (origin,)

    # -- encoding ------------------------------------------------------------------------------------------------------

    @_core.fast_encode
    def encode(
        self,
        text: str,
        *,
        guarded: Sequence[int] = (),
        max_tokens: int | None = None,
        truncation_side: Side = "right",
        **options: Unpack[EncodeOptions],
    ) -> list[int]:
        """Encode one text. A text of 1 MiB or more uses several threads (`encode_batch([text], threads=1)` uses one).

        Args:
            text: The text.
            guarded: The ascending offsets of characters that come from a user; see the class.
            max_tokens: The most ids, including those that are added to every text, which truncation keeps; None truncates
                nothing. The ids are those of HuggingFace's truncation.
            truncation_side: The side on which a longer text is cut: "right" keeps its start, "left" its end.
            options: `add_special_tokens` (True), `add_bos` and `add_eos` (None: as in the files), `parse_special` (True);
                see `EncodeOptions`.

        Raises:
            TextError: The text has a lone surrogate.
            UnsupportedTokenizerError: A Unigram model without an unknown token has no piece for a character; likewise in
                every other method that encodes.
            ValueError: `add_bos` or `add_eos` is true and there is no such token, or `max_tokens` is less than the number of
                added ids; likewise.

        """
        if max_tokens is not None or truncation_side != "right":
            kept: list[int] = self._truncated(text, guarded, max_tokens, truncation_side, options).tolist()
            return kept
        call = self._given(**options) if options else self._default_call
        ids = call.encoder.encode(text, call.parse_special, guarded, call.prefix, call.suffix)
        call.check(ids, around=True)
        return ids

    @_core.fast_encode_array
    def encode_array(
        self,
        text: str,
        *,
        guarded: Sequence[int] = (),
        max_tokens: int | None = None,
        truncation_side: Side = "right",
        **options: Unpack[EncodeOptions],
    ) -> NDArray[np.int32]:
        """Encode one text to an int32 array; for long texts this is faster than a list. Options as in `encode`.

        Raises:
            TextError: The text has a lone surrogate.

        """
        if max_tokens is not None or truncation_side != "right":
            return self._truncated(text, guarded, max_tokens, truncation_side, options)
        call = self._given(**options) if options else self._default_call
        if call.disallowed:
            return np.array(self.encode(text, guarded=guarded, **options), np.int32)
        return call.encoder.encode_array(text, call.parse_special, guarded, call.prefix, call.suffix)

    def encode_with_offsets(
        self,
        text: str,
        *,
        guarded: Sequence[int] = (),
        max_tokens: int | None = None,
        truncation_side: Side = "right",
        **options: Unpack[EncodeOptions],
    ) -> Encoded:
        """Encode one text, and return the characters that each id covers. Options as in `encode`.

        Raises:
            TextError: The text has a lone surrogate.

        """
        call = self._given(**options) if options else self._default_call
        truncation = truncation_of(max_tokens, truncation_side)
        add_special_tokens = options.get("add_special_tokens", True)
        return self._sequences.encode(text, call, guarded, truncation, add_special_tokens=add_special_tokens)

    def encode_pair(
        self,
        text: str | Sequence[str],
        pair: str | Sequence[str],
        *,
        max_tokens: int | None = None,
        truncation_side: Side = "right",
        truncation: TruncationStrategy = "longest_first",
        **options: Unpack[EncodeOptions],
    ) -> Encoded:
        """Encode two texts as one, as cross-encoders and models of sentence pairs take them. Options as in `encode`.

        The post-processor decides what stands around and between the texts, and their type ids.

        Args:
            text: The first text; or its words, as for `encode_words`.
            pair: The second text; or its words.
            max_tokens: As in `encode`, for both texts together.
            truncation_side: As in `encode`.
            truncation: The text to cut: "only_first", "only_second", or "longest_first" for the longer one, and then both
                alike.
            options: As in `encode`. `add_bos` and `add_eos` are for what stands before and after both texts together.

        Raises:
            TextError: A text has a lone surrogate.
            TypeError: `text` or `pair` is neither a text nor several.
            TokenizerFileError: The post-processor's template for pairs names a special token that it does not define.
            ValueError: The text that `truncation` names is too short, or `max_tokens` is less than the number of added ids.

        """
        bound = truncation_of(max_tokens, truncation_side, truncation)
        return self._sequences.encode_sequences(
            {"text": text, "pair": pair}, self._given(**options), bound, **_affix_options(options)
        )

    def encode_words(
        self,
        words: Sequence[str],
        *,
        max_tokens: int | None = None,
        truncation_side: Side = "right",
        **options: Unpack[EncodeOptions],
    ) -> Encoded:
        """Encode pre-tokenized text: each word is encoded by itself. Options as in `encode`.

        The `word_ids` of the result are the indices of words, and its offsets count from the start of each word.

        Raises:
            TextError: A word has a lone surrogate; the message names it.
            TypeError: `words` is one text, or not several texts.

        """
        if isinstance(words, str):
            raise TypeError("words must be several words, not one str: encode_with_offsets() takes a text")
        bound = truncation_of(max_tokens, truncation_side)
        return self._sequences.encode_sequences(
            {"words": words}, self._given(**options), bound, **_affix_options(options)
        )

    def encode_batch(
        self,
        texts: Texts,
        *,
        threads: int | None = None,
        guarded: Sequence[Sequence[int]] = (),
        offsets: bool = False,
        max_tokens: int | None = None,
        truncation_side: Side = "right",
        **options: Unpack[EncodeOptions],
    ) -> Ragged:
        """Encode many texts on several threads.

        Args:
            texts: Strings, or bytes that are UTF-8; a numpy array of either; or an Arrow array of them, also chunked,
                which is not copied.
            threads: The most threads; None chooses a number.
            guarded: The offsets for each text, as in `encode`; empty if no text has any.
            offsets: Whether to return the characters of each id, as `Ragged.spans`.
            max_tokens: As in `encode`, for each text.
            truncation_side: As in `encode`.
            options: As in `encode`.

        Raises:
            TextError: A text has a lone surrogate or is not UTF-8; the message names it.
            ValueError: The length of `guarded` differs from the number of texts, or an Arrow array has other values than
                strings, or a null.

        """
        if threads is not None and index(threads) < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        refuse_texts(offsets=offsets)
        given = for_core(texts)
        call = self._given(**options) if options else self._default_call
        added = len(call.prefix), len(call.suffix)
        bound = truncation_of(max_tokens, truncation_side)
        room = 0 if bound is None else bound.room(sum(added))
        enough = 0 if bound is None or bound.side == "left" or call.disallowed else room + 1
        ids, starts, traced = call.encoder.encode_batch(
            given, call.parse_special, guarded, threads or 0, call.prefix, call.suffix, bool(offsets), enough
        )
        rows = Ragged(ids, starts, added=added)
        if call.disallowed:
            for number, row in enumerate(rows):
                call.check(row.tolist(), around=True, name=f"texts[{number}]")
        spans, called, _ = traced or (None, [], None)
        if bound is not None:
            rows, spans, called = cut_rows(rows, bound, spans, called)
        if spans is not None:
            firsts = rows.offsets[:-1] + len(call.prefix)
            add_special_tokens = options.get("add_special_tokens", True)
            rows.spans = self._sequences.trimmed(rows.ids, spans, called, firsts, add_special_tokens=add_special_tokens)
        return rows

    def encode_table(
        self,
        table: pyarrow.Table,
        column: str,
        *,
        into: str = "input_ids",
        threads: int | None = None,
        max_tokens: int | None = None,
        truncation_side: Side = "right",
        **options: Unpack[EncodeOptions],
    ) -> pyarrow.Table:
        """Encode a column of an Arrow table, without copying texts or ids.

        Args:
            table: A `pyarrow.Table` or `RecordBatch`.
            column: The name of a column of strings without nulls.
            into: The name of the new column of large lists of int32, which is appended.
            threads: As for `encode_batch`.
            max_tokens: As in `encode`, for each text.
            truncation_side: As in `encode`.
            options: As in `encode`.

        Returns:
            A table with the columns of `table` and the new one.

        Raises:
            KeyError: There is no such column.
            TextError: A text is not UTF-8.
            TypeError: `table` is not a table.
            ValueError: The column has a null or other values than strings, or there is a column `into` already.

        """
        if into in table.schema.names:
            raise ValueError(f"the table has a column {into!r} already")
        ids = self.encode_batch(
            table.column(column), threads=threads, max_tokens=max_tokens, truncation_side=truncation_side, **options
        )
        return table.append_column(into, ids.to_arrow())

    def count(
        self,
        text: str,
        *,
        guarded: Sequence[int] = (),
        **options: Unpack[EncodeOptions],
    ) -> int:
        """Count the ids of a text, without creating a list. Options as in `encode`.

        Raises:
            TextError: The text has a lone surrogate.

        """
        call = self._given(**options) if options else self._default_call
        if call.disallowed:
            return len(self.encode(text, guarded=guarded, **options))
        return len(call.prefix) + call.encoder.count(text, call.parse_special, guarded) + len(call.suffix)

    def truncate(self, text: str, max_tokens: int, *, side: Side = "right", **options: Unpack[EncodeOptions]) -> str:
        """Truncate a text to at most `max_tokens` ids, including those that are added to every text.

        The cut is between two tokens of the whole text. It is earlier if the truncated text alone would have more ids.

        Args:
            text: The text.
            max_tokens: The most ids that `encode` may return for the result.
            side: The side on which the text is cut: "right" keeps its start, "left" its end.
            options: As in `encode`.

        Raises:
            TextError: The text has a lone surrogate.
            ValueError: `max_tokens` is less than the number of ids added to every text, or the side is unknown.

        """
        return text_chunks.truncate(self, text, max_tokens, side, **options)

    def chunks(
        self, text: str, max_tokens: int, *, overlap: int = 0, **options: Unpack[EncodeOptions]
    ) -> Iterator[TextChunk]:
        """Cut a text into chunks of at most `max_tokens` ids each, including those that are added to every text.

        Chunks begin and end between two tokens of the whole text if possible; a chunk that alone would have too many ids ends
        earlier. Together the chunks cover the text.

        Args:
            text: The text.
            max_tokens: The most ids of a chunk.
            overlap: The most tokens of a chunk that are repeated in the next one.
            options: As in `encode`.

        Yields:
            The position of each chunk in the text, in characters, and its ids.

        Raises:
            TextError: The text has a lone surrogate.
            ValueError: `max_tokens` or `overlap` is out of range, or, while iterating, one character has more ids.

        """
        return text_chunks.chunks(self, text, max_tokens, overlap, **options)

    def affixes(self, **options: Unpack[AffixOptions]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ids that `encode` puts before, and those that it puts after, a text's own; for other encoders."""
        check_options(options, AffixOptions.__optional_keys__, "encoding")
        return self._affixes.ids(**options)

    @cached_property
    def _selection(self) -> AddedTokenSelection:
        return AddedTokenSelection(self._core, self.added_tokens)

    @cached_property
    def _sequences(self) -> SequenceEncoder:
        return SequenceEncoder(self.spec.post_processor, self._affixes.added.trims, self._vocabulary.model_names)

    def _truncated(
        self, text: str, guarded: Sequence[int], max_tokens: int | None, side: Side, options: EncodeOptions
    ) -> NDArray[np.int32]:
        """Return the ids of one text, truncated; only its first ids are computed where these are enough."""
        if max_tokens is None or not isinstance(text, str):
            truncation_of(max_tokens, side)
            return self.encode_array(text, guarded=guarded, **options)
        marks = [guarded] if len(guarded) else ()
        try:
            return self.encode_batch([text], guarded=marks, max_tokens=max_tokens, truncation_side=side, **options).ids
        except TextError as error:
            raise TextError("text" + str(error).removeprefix("texts[0]")) from None

    def _given(
        self,
        *,
        parse_special: bool | Collection[str] = True,
        disallowed_special: Collection[str] | Literal["all"] = (),
        **options: Unpack[AffixOptions],
    ) -> Call:
        check_options(options, EncodeOptions.__optional_keys__, "encoding")
        refuse_texts(parse_special=parse_special)
        prefix, suffix = self._affixes.ids(**options)
        if not isinstance(parse_special, Collection) and not disallowed_special:
            return Call(self._encoder, bool(parse_special), prefix, suffix)
        return self._selection.call(parse_special, disallowed_special, prefix, suffix)

    # -- decoding ------------------------------------------------------------------------------------------------------

    def decode(
        self,
        ids: Ids,
        *,
        skip_special_tokens: bool = True,
        byte_fallback: ByteFallback = "eager",
    ) -> str:
        """Decode ids to text; bytes that are not UTF-8 become U+FFFD by Python's `errors="replace"` rule.

        For any ids the result equals HuggingFace's `decode`, except for runs of byte-fallback tokens that are not UTF-8.

        Args:
            ids: Token ids; ids without a token (gaps, padding rows) decode to nothing.
            skip_special_tokens: Remove control tokens before decoding.
            byte_fallback: The rule for a run of byte-fallback tokens (`<0xE4>`) that is not UTF-8 as a whole: "eager"
                keeps its valid characters, by the rule above; "huggingface" makes every byte of the run a U+FFFD, as
                HuggingFace does. (sentencepiece keeps valid characters and makes every other byte a U+FFFD.) Both are
                equal for a byte-level vocabulary.

        Raises:
            TokenIdError: An id is outside the vocabulary.

        """
        check_byte_fallback(byte_fallback)
        if skip_special_tokens is not True:
            refuse_texts(skip_special_tokens=skip_special_tokens)
        try:
            return self._tokens.decode(in_place(ids), bool(skip_special_tokens), byte_fallback == "huggingface")
        except TypeError:
            raise not_ids(ids) from None

    def decode_batch(
        self,
        rows: Iterable[Ids],
        *,
        skip_special_tokens: bool = True,
        byte_fallback: ByteFallback = "eager",
    ) -> list[str]:
        """Decode many rows of ids, such as those of a `Ragged`, as `decode` does.

        Raises:
            TokenIdError: An id is outside the vocabulary; the message names its row.

        """
        texts: list[str] = []
        for ids in rows:
            try:
                texts.append(self.decode(ids, skip_special_tokens=skip_special_tokens, byte_fallback=byte_fallback))
            except (TokenIdError, TypeError) as error:
                raise type(error)(f"rows[{len(texts)}]: {error}") from error
        return texts

    def decode_with_offsets(
        self,
        ids: Ids,
        *,
        skip_special_tokens: bool = True,
        byte_fallback: ByteFallback = "eager",
    ) -> tuple[str, list[int]]:
        """Decode ids to text, and return the place in the text at which each id begins.

        Options as in `decode`. The cost is one step of a stream per id.

        Returns:
            The text of `decode`, and for each id the index of the first character to which it contributes. So ids that share
            a character have the same index, and an id that decodes to nothing has that of the next one. The U+FFFD of an
            invalid sequence belongs to the id at which it is detected.

        Raises:
            TokenIdError: An id is outside the vocabulary.

        """
        check_byte_fallback(byte_fallback)
        check_flags(skip_special_tokens=skip_special_tokens)
        stream = _core.DecodeStream(self._tokens, [], skip_special_tokens, byte_fallback == "huggingface")
        text = ""
        starts = []
        try:
            for token_id in as_sequence(ids):
                starts.append(len(text))
                text += stream.step(token_id)
        except TypeError:
            raise not_ids(ids) from None
        return text + stream.flush(), starts

    def decode_bytes(self, ids: Ids) -> bytes:
        """Return the concatenated `token_bytes` of the tokens, including control tokens.

        Raises:
            TokenIdError: An id is outside the vocabulary.

        """
        try:
            return self._tokens.join(in_place(ids))
        except TypeError:
            raise not_ids(ids) from None

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes that a token adds in the middle of a text.

        So a word of a SentencePiece or WordPiece vocabulary has its space, a continuation is without its "##", and
        a byte-fallback token is its byte. A decoder's rules for the whole text do not apply.

        Raises:
            TokenIdError: The id is outside the vocabulary.

        """
        return self._tokens[token_id]

    # -- the vocabulary ------------------------------------------------------------------------------------------------

    @cached_property
    def vocab(self) -> Mapping[str, int]:
        r"""The read-only map of all tokens, as spelled in their file and including added ones, to ids.

        A rank file's tokens that are not UTF-8 are omitted.
        """
        return MappingProxyType(self._vocabulary.written())

    @overload
    def token_to_id(self, token: str) -> int | None: ...

    @overload
    def token_to_id(self, token: list[str] | tuple[str, ...]) -> list[int | None]: ...

    def token_to_id(self, token: str | list[str] | tuple[str, ...]) -> int | None | list[int | None]:
        """Return the id of a token, as spelled in its file, or None; for a list of tokens, a list."""
        if not isinstance(token, str):
            return [self.token_to_id(each) for each in token]
        return self._vocabulary.id_of(token)

    @overload
    def id_to_token(self, token_id: int) -> str | None: ...

    @overload
    def id_to_token(self, token_id: Ids) -> list[str | None]: ...

    def id_to_token(self, token_id: int | Ids) -> str | None | list[str | None]:
        r"""Return the token of an id, as spelled in its file, or None; for a list of ids, a list.

        A rank file's tokens are bytes; those that are not UTF-8 are shown with `\xe4` escapes.
        """
        if isinstance(token_id, str):
            raise TypeError("id_to_token() takes ids, not str; token_to_id() takes tokens")
        if not isinstance(token_id, int | np.integer):
            try:
                return [self._vocabulary.names.get(index(each)) for each in as_sequence(token_id)]
            except TypeError:
                raise no_sequence(token_id, "ids") from None
        return self._vocabulary.names.get(token_id)

    def is_eos(self, token_id: int) -> bool:
        """Return whether an id ends a generation: whether it is in `eos_ids`."""
        return token_id in self.eos_ids

    def __repr__(self) -> str:
        return f"Tokenizer({self.spec.source}, {self.vocab_size} ids, {len(self.added_tokens)} added tokens)"

    if not TYPE_CHECKING:  # type checkers refuse a call by themselves

        def __call__(self, *_: object, **__: object) -> NoReturn:
            raise TypeError("a Tokenizer is not called: write tok.encode(text), or tok.encode_batch(texts)")

    def _role(self, role: str) -> int | None:
        token = self.spec.special_roles.get(role)
        return None if token is None else self.token_to_id(token)


for _name in WRITE_INSTEAD:  # a __getattr__ would make every attribute slower
    setattr(Tokenizer, _name, OtherName(_name))


def tokenizer_at(given: str, revision: str = "main") -> Tokenizer:
    """Read the tokenizer at a path or, if there is no such file or folder, of a model in the hub's cache; for integrations.

    `revision` is only for the cache. Raises the errors of `Tokenizer.from_file`, or those of `Tokenizer.from_pretrained` if
    nothing is at the path.
    """
    return Tokenizer.from_file(given) if os.path.exists(given) else Tokenizer.from_pretrained(given, revision=revision)


def sequence_encoder_of(tokenizer: Tokenizer) -> tuple[SequenceEncoder, Call]:
    """Return a tokenizer's encoder with offsets, and the resolved options of a call that adds no special tokens.

    For integrations.
    """
    return tokenizer._sequences, tokenizer._given(add_special_tokens=False)


def _affix_options(options: EncodeOptions) -> AffixOptions:
    """Return the options `add_special_tokens`, `add_bos` and `add_eos`, with defaults for those that are not given."""
    return {
        "add_special_tokens": options.get("add_special_tokens", True),
        "add_bos": options.get("add_bos"),
        "add_eos": options.get("add_eos"),
    }


@lru_cache(maxsize=1)
def _default() -> Tokenizer:
    return Tokenizer.default()


@lru_cache(maxsize=_MAX_REOPENED)
def _reopened(origin: Origin) -> Tokenizer:
    """Load the tokenizer that a pickle names, from its files; raise `TokenizerFileError` if these have changed."""
    special_tokens = None if origin.special_tokens is None else dict(origin.special_tokens)
    tokenizer = Tokenizer.from_file(origin.path, pattern=origin.pattern, special_tokens=special_tokens, nfc=origin.nfc)
    if tokenizer._files is None or tokenizer._files.origin() != origin:
        raise TokenizerFileError(
            f"{origin.path}: these are not the files that the pickled tokenizer was read from; to pickle one whole, make it by"
            " Tokenizer.from_spec(tokenizer.spec)"
        )
    return tokenizer


def core_of(tokenizer: Tokenizer) -> Core:
    """Return the compiled objects of a tokenizer; for other modules of this package, not for users."""
    return tokenizer._core


def check_tokenizer(tokenizer: object, name: str = "tokenizer") -> None:
    """Raise TypeError for an object that is not a tokenizer; `name` is the parameter's name."""
    if not isinstance(tokenizer, Tokenizer):
        kind = type(tokenizer).__name__
        raise TypeError(f"{name} is a {kind}, not a Tokenizer such as Tokenizer.from_file() gives")
