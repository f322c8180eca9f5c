"""HuggingFace's tokenizer.json (`tokenizers` 0.23).

The file is decoded straight into the spec's structs, in one pass. What the library reads otherwise than their types
say, or not at all, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.required_fields import check_required
from tokenweir.encode.spec import (
    BPE,
    AddedToken,
    Count,
    Decoder,
    DecoderSequence,
    Metaspace,
    Normalizer,
    NormalizerSequence,
    PostProcessor,
    PreTokenizer,
    PreTokenizerSequence,
    Replace,
    SentencePieceDecoder,
    SentencePieceNormalizer,
    Split,
    TokenizerSpec,
    Unigram,
    WordPiece,
)

_T = TypeVar("_T")


class _Unigram(Struct, tag="Unigram"):
    """A Unigram model of a tokenizer.json whose `vocab` is still JSON text.

    The scores in it are parsed by `read`, because HuggingFace's library does not round them to the nearest number.
    """

    vocab: Raw
    unk_id: int | None = None
    byte_fallback: bool = False

    def read(self) -> Unigram:
        vocab = _core.scored_pieces(memoryview(self.vocab))
        if vocab is None:
            pairs = _decode_field(self.vocab, list[tuple[str, Raw]], "model.vocab")
            try:
                scores = _core.json_numbers([bytes(score) for _, score in pairs]).tolist()
            except TokenizerFileError as error:
                raise TokenizerFileError(f"model.vocab: {error}") from error
            vocab = tuple(zip((piece for piece, _ in pairs), scores, strict=True))
        if not (self.unk_id is None or 0 <= self.unk_id < len(vocab)):
            raise TokenizerFileError(f"model.unk_id: {self.unk_id} is not one of {len(vocab)} tokens")
        return Unigram(vocab, self.unk_id, self.byte_fallback)


class _BPE(Struct, tag="BPE", kw_only=True):
    """A BPE model of a tokenizer.json whose `vocab` and `merges` are still JSON text; `read` parses them without Python
    objects for each token.
    """

    vocab: Raw
    merges: Raw
    dropout: float | None = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False

    def read(self) -> BPE:
        merges: Sequence[str | tuple[str, str]] | None = _core.Merges.from_json(memoryview(self.merges))
        if merges is None:
            merges = _decode_field(self.merges, list[str | tuple[str, str]], "model.merges")
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return BPE(**given | {"vocab": _token_ids(self.vocab), "merges": merges})


class _WordPiece(Struct, tag="WordPiece", kw_only=True):
    """A WordPiece model of a tokenizer.json whose `vocab` is still JSON text, which `read` parses."""

    vocab: Raw
    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"
    max_input_chars_per_word: Count = 100

    def read(self) -> WordPiece:
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return WordPiece(**given | {"vocab": _token_ids(self.vocab)})


def _token_ids(written: Raw) -> Mapping[str, int]:
    ids = _core.TokenIds.from_json(memoryview(written))
    return ids if ids is not None else _decode_field(written, dict[str, int], "model.vocab")


def _decode_field(written: Raw, type: type[_T], place: str) -> _T:
    """Decode JSON text to a type: the slow path for a field that the core's reader has refused.

    Raise the error that says what is wrong; `place` is the field's name in it.
    """
    try:
        return msgspec.json.decode(written, type=type)
    except msgspec.ValidationError as error:
        raise _refusal(error, within=place) from error


_Model = _BPE | _WordPiece | _Unigram


class _Parts(Struct):
    """The parts of a tokenizer.json other than the model, decoded to the structs of `encode.spec`."""

    version: str = "1.0"
    added_tokens: tuple[AddedToken, ...] = ()
    normalizer: Normalizer | None = None
    pre_tokenizer: PreTokenizer | None = None
    post_processor: PostProcessor | None = None
    decoder: Decoder | None = None
    truncation: Mapping[str, object] | None = None
    padding: Mapping[str, object] | None = None


class _Written(Struct):
    """The components of a tokenizer.json as its JSON has them."""

    normalizer: object = None
    pre_tokenizer: object = None
    post_processor: object = None
    decoder: object = None


class _File(_Parts, kw_only=True):
    model: _Model


class _ModelType(Struct):
    type: Raw = Raw()


class _Typed(Struct):
    """A tokenizer.json file of which only the model's type is decoded; a missing `type` is an empty `Raw`."""

    model: _ModelType


class _OldFile(_Parts, kw_only=True):
    """A tokenizer.json file whose model has no `type`; the model is still JSON text."""

    model: Raw


class _ModelKeys(Struct):
    """The keys of a model from which its type is inferred if it has no `type`."""

    vocab: Raw = Raw()
    merges: Raw = Raw()
    unk_token: Raw = Raw()
    continuing_subword_prefix: Raw = Raw()
    max_input_chars_per_word: Raw = Raw()


def read(data: bytes) -> TokenizerSpec:
    """Read a tokenizer.json; return the spec of the tokenizer.

    Raises:
        TokenizerFileError: The file is not JSON, or has a value of the wrong type; the message has the place.
        UnsupportedTokenizerError: A component cannot be reproduced exactly; the message names it.

    """
    try:
        file, model = _decode(data)
        written = msgspec.json.decode(data, type=_Written)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise TokenizerFileError(f"not a tokenizer.json: {error}") from error
    if file.version != "1.0":
        raise UnsupportedTokenizerError(f"a tokenizer.json of version {file.version!r:.60}")
    for name in ("normalizer", "pre_tokenizer", "decoder"):
        _check(getattr(file, name), name)
    for name in written.__struct_fields__:
        check_required(name, getattr(written, name), name)
    return TokenizerSpec(
        model=model,
        normalizer=file.normalizer,
        pre_tokenizer=file.pre_tokenizer,
        post_processor=file.post_processor,
        decoder=file.decoder,
        added_tokens=file.added_tokens,
        truncation=file.truncation,
        padding=file.padding,
        source="HuggingFace tokenizer.json",
    )


def _decode(data: bytes) -> tuple[_Parts, BPE | WordPiece | Unigram]:
    try:
        file = msgspec.json.decode(data, type=_File)
        return file, file.model.read()
    except msgspec.ValidationError as error:
        if _says_type(data):
            raise _refusal(error) from error
    try:
        old = msgspec.json.decode(data, type=_OldFile)
    except msgspec.ValidationError as error:
        raise _refusal(error) from error
    try:
        kind = _untold_type(msgspec.json.decode(old.model, type=_ModelKeys))
        return old, msgspec.json.decode(old.model, type=kind).read()  # a struct's tag may be missing
    except msgspec.ValidationError as error:
        raise _refusal(error, within="model") from error


def _says_type(data: bytes) -> bool:
    """Return whether the model of a tokenizer.json has a `type`; True also for a file without a valid model."""
    try:
        return bool(msgspec.json.decode(data, type=_Typed).model.type)
    except msgspec.ValidationError:
        return True


def _untold_type(keys: _ModelKeys) -> type[_Model]:
    """Infer the type of a model without a `type` from its keys, as HuggingFace's library does; return its class here.

    Raise `UnsupportedTokenizerError` for a WordLevel model, and `TokenizerFileError` if the keys fit no type.
    """
    if keys.merges:
        return _BPE
    if keys.unk_token and keys.continuing_subword_prefix and keys.max_input_chars_per_word:
        return _WordPiece
    if keys.unk_token:
        raise UnsupportedTokenizerError("model: 'WordLevel'")
    if bytes(keys.vocab).startswith(b"["):
        return _Unigram
    raise TokenizerFileError("model: has no type, and not the fields of any")


def _refusal(error: msgspec.ValidationError, within: str = "") -> TokenizerFileError | UnsupportedTokenizerError:
    """Convert an error of msgspec to one of this package.

    That is `UnsupportedTokenizerError` for a component of unknown type, and `TokenizerFileError` for any other wrong or
    missing value. `within` is the JSON path of the decoded value, which begins the place in the message.
    """
    message, _, place = str(error).partition(" - at ")
    place = (within + place.strip("`").removeprefix("$")).removeprefix(".")
    if place.endswith("type") and message.startswith("Invalid value"):
        return UnsupportedTokenizerError(f"{place.removesuffix('.type')}: {message.removeprefix('Invalid value ')}")
    return TokenizerFileError(f"{place or 'the file'}: {message}")


def _check(component: Normalizer | PreTokenizer | Decoder | None, place: str) -> None:
    """Raise for a component that the spec's structs allow but a tokenizer.json must not have; `place` is its JSON path.

    `UnsupportedTokenizerError` for components of SentencePiece, `TokenizerFileError` for invalid values.
    """
    match component:
        case NormalizerSequence(parts) | PreTokenizerSequence(parts) | DecoderSequence(parts):
            for i, part in enumerate(parts):
                _check(part, f"{place}.{component.__struct_fields__[0]}[{i}]")
        case SentencePieceNormalizer() | SentencePieceDecoder():
            raise UnsupportedTokenizerError(f"{place}: {type(component).__name__!r}")
        case Split() | Replace():
            if (component.pattern.Regex is None) == (component.pattern.String is None):
                raise TokenizerFileError(f"{place}.pattern: either a Regex or a String is expected")
            if isinstance(component, Split) and (component.dialect, component.unmatched) != ("oniguruma", "keep"):
                raise TokenizerFileError(f"{place}: a Split with a dialect or with unmatched text")
        case Metaspace(add_prefix_space=False, prepend_scheme="always" | "first" as scheme):
            raise TokenizerFileError(f"{place}: add_prefix_space is false and prepend_scheme {scheme!r}")
        case _:  # the others hold nothing else
            pass
