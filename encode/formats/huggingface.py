"""HuggingFace's tokenizer.json (`tokenizers` 0.23), byte-level family."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import (
    BPE,
    AddedToken,
    Decoder,
    Normalizer,
    PostProcessor,
    PreTokenizer,
    TokenizerSpec,
)


class _File(Struct):
    """The file; its components are the spec's own structs."""

    model: Raw
    added_tokens: tuple[AddedToken, ...] = ()
    normalizer: Normalizer | None = None
    pre_tokenizer: PreTokenizer | None = None
    post_processor: PostProcessor | None = None
    decoder: Decoder | None = None
    truncation: Mapping[str, object] | None = None
    padding: Mapping[str, object] | None = None


class _ModelKeys(Struct):
    """What tells a model's type in the old files that do not say it."""

    type: str | None = None
    merges: Raw = Raw()


def read(data: bytes) -> TokenizerSpec:
    """Read a tokenizer.json.

    Raises:
        TokenizerFileError: If it is not JSON, or has a value of the wrong type; the message has the place.
        UnsupportedTokenizerError: For a component that is not reproduced exactly; the message names it.

    """
    try:
        file = msgspec.json.decode(data, type=_File)
        keys = msgspec.json.decode(file.model, type=_ModelKeys)
        kind = keys.type or ("BPE" if keys.merges else "unknown")
        if kind != "BPE":
            raise UnsupportedTokenizerError(f"a tokenizer.json with a model of type {kind!r}")
        model = msgspec.json.decode(file.model, type=BPE) if keys.type else _untyped_bpe(file.model)
    except msgspec.ValidationError as error:
        raise _refusal(error) from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise TokenizerFileError(f"not a tokenizer.json: {error}") from error
    if file.decoder is None:
        raise UnsupportedTokenizerError("a tokenizer.json without a decoder")
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


def _untyped_bpe(model: Raw) -> BPE:
    fields = msgspec.json.decode(model)
    return msgspec.convert({**fields, "type": "BPE"}, type=BPE)


def _refusal(error: msgspec.ValidationError) -> TokenizerFileError | UnsupportedTokenizerError:
    """A component of unknown type is unsupported; anything else of the wrong type or missing is a bad file."""
    message, _, place = str(error).partition(" - at ")
    place = place.strip("`").removeprefix("$.")
    if place.endswith("type") and message.startswith("Invalid value"):
        return UnsupportedTokenizerError(f"{place.removesuffix('.type')}: {message.removeprefix('Invalid value ')}")
    return TokenizerFileError(f"{place or 'the file'}: {message}")
