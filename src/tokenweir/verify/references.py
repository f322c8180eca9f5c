"""The reference libraries behind one interface, built from local files and nothing from the network.

`tokenizers` reads a tokenizer.json, `tiktoken` a rank file, `sentencepiece` a model, and `mistral-common` a tekken file. Each
library is imported when its class is used. Each class has:

- `library`, its name and version;
- `ids`, every id that names a token, and `special_tokens`, the text of every added token;
- `encode` (added tokens in the text are matched), `encode_plain` (no added token is matched and none is added),
  `offsets` of what `encode` gives, and `decode`, each for a batch; None where the library does not say;
- `known`, what the library knows of (start, end) offsets;
- `byte_fallback`, the mode of ours that decodes as it does;
- `covers`, what is compared with it, in words.
"""

from __future__ import annotations

import base64
import importlib
import itertools
import json
import weakref
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from http.client import HTTPConnection
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import mock
from urllib.parse import urlsplit

from tokenweir.encode.components.added_tokens import is_plain
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.formats.declared_tokens import CONFIG, MORE_TOKENS, TOKEN_MAP
from tokenweir.encode.spec import Split
from tokenweir.encode.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tokenizers

Ids = Sequence[Sequence[int]]
T = TypeVar("T")


@cache
def huggingface(path: Path) -> tokenizers.Tokenizer:
    """Load a tokenizer.json by HuggingFace's library. Cached, because loading takes up to a second."""
    import tokenizers

    return tokenizers.Tokenizer.from_file(str(path))


class _Library:
    """Base of the references: no offsets, of those that there are both ends, and eager byte fallback."""

    byte_fallback = "eager"
    special_tokens: list[str]

    def offsets(self, texts: Sequence[str], *, add_special_tokens: bool = True) -> Sequence[Any]:
        return [None] * len(texts)

    def known(self, offsets: Sequence[tuple[int, int]]) -> Sequence[Any]:
        return offsets

    def _of_plain(self, texts: Sequence[str], results: Iterable[T]) -> list[T | None]:
        """Return the result of each text, but None if a special token is in the text."""
        special = (any(token in text for token in self.special_tokens) for text in texts)
        return [None if found else result for found, result in zip(special, results, strict=True)]


class HuggingFace(_Library):
    """Reference by the library `tokenizers` and a tokenizer.json.

    Its offsets are the start and end of each token, in characters.
    """

    covers = "ids, ids of plain text, offsets, decoded and streamed text"
    byte_fallback = "huggingface"

    def __init__(self, path: Path, tokenizer: tokenizers.Tokenizer | None = None) -> None:
        import tokenizers

        self.library = f"tokenizers {tokenizers.__version__}"
        self.tokenizer = tokenizer or tokenizers.Tokenizer.from_file(str(path))
        self.tokenizer.no_padding()  # which ours never applies
        self.tokenizer.no_truncation()
        # The library always matches non-special added tokens, so the plain reading needs a file that has none.
        file = json.loads(path.read_bytes())
        added = self.tokenizer.get_added_tokens_decoder().items()
        control = {i for i, token in added if token.special or not is_plain(token.content)}
        kept = {file["model"].get("unk_token")}
        if "merges" in file["model"] and "ByteLevel" in json.dumps(file["pre_tokenizer"]):  # none else is the byte
            kept.update(tokenizers.pre_tokenizers.ByteLevel.alphabet())
        self.plain = _plain(self.tokenizer, file, control, kept)
        self.ids = sorted(self.tokenizer.get_vocab(with_added_tokens=True).values())
        self.added_ids = self.tokenizer.get_added_tokens_decoder().keys()
        self.special_tokens = [token.content for token in self.tokenizer.get_added_tokens_decoder().values()]

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool) -> Ids:
        encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=add_special_tokens)
        return [encoding.ids for encoding in encodings]

    def encode_plain(self, texts: Sequence[str]) -> Ids:
        return [encoding.ids for encoding in self.plain.encode_batch_fast(list(texts), add_special_tokens=False)]

    def offsets(self, texts: Sequence[str], *, add_special_tokens: bool = True) -> Sequence[Sequence[tuple[int, int]]]:
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=add_special_tokens)
        return [encoding.offsets for encoding in encodings]

    def decode(self, batch: Ids, *, skip_special_tokens: bool) -> list[str]:
        return self.tokenizer.decode_batch([list(ids) for ids in batch], skip_special_tokens=skip_special_tokens)


def _plain(
    tok: tokenizers.Tokenizer, file: dict[str, Any], control: AbstractSet[int], kept: AbstractSet[str | None]
) -> tokenizers.Tokenizer:
    """Return a tokenizer without added tokens, and without the control tokens of the model that tokenweir never finds in plain text.

    Args:
        tok: The tokenizer.
        file: Its tokenizer.json.
        control: Ids of control tokens.
        kept: Tokens to keep although their ids are in `control`.

    """
    import tokenizers

    vocab = file["model"]["vocab"]
    if isinstance(vocab, list) or {token for token, i in vocab.items() if i in control} - kept:
        changed: dict[str, Any] = {
            "added_tokens": [],
            "post_processor": None,
            "model": _without(control, file["model"], kept),
        }
        return tokenizers.Tokenizer.from_str(json.dumps(file | changed | {"padding": None, "truncation": None}))
    plain = tokenizers.Tokenizer(tok.model)  # the same model, which takes seconds to read once more
    for part in ("normalizer", "pre_tokenizer", "decoder"):
        if file.get(part) is not None:
            setattr(plain, part, getattr(tok, part))
    return plain


def _without(control: AbstractSet[int], model: dict[str, Any], kept: AbstractSet[str | None]) -> dict[str, Any]:
    """Return a tokenizer.json's model whose control tokens have names that no text contains, so that the library never finds them."""
    unfindable = "\U0010fffe{}\U0010fffe".format
    vocab = model["vocab"]
    if isinstance(vocab, list):
        pieces = ([unfindable(i) if i in control else piece, score] for i, (piece, score) in enumerate(vocab))
        return model | {"vocab": list(pieces)}
    names = {token for token, i in vocab.items() if i in control and token not in kept}
    model = model | {"vocab": {unfindable(i) if token in names else token: i for token, i in vocab.items()}}
    if "merges" in model:
        prefix = len(model.get("continuing_subword_prefix") or "")
        model["merges"] = [merge for merge in model["merges"] if not _makes(merge, names, prefix)]
    return model


def _makes(merge: str | list[str], names: AbstractSet[str], prefix: int) -> bool:
    """Whether a merge takes one of these tokens or yields one.

    `prefix` is the length of the prefix of continuing subwords.
    """
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left in names or right in names or left + right[prefix:] in names


@cache
def _ranks(path: Path) -> dict[bytes, int]:
    """Return the ranks of the tokens in a tiktoken rank file."""
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


class OpenAI(_Library):
    """Reference by the library `tiktoken` and a rank file; its offsets are the start of each token only, in characters.

    Attributes:
        definition: What `tiktoken.Encoding` is made from: `name`, `pat_str`, `mergeable_ranks`, `special_tokens`.

    """

    covers = "ids, ids of plain text, the starts of offsets, decoded and streamed text"

    def __init__(self, definition: Mapping[str, Any]) -> None:
        import tiktoken

        self.library = f"tiktoken {tiktoken.__version__}"
        self.definition = definition
        self.encoding = tiktoken.Encoding(**definition)
        self.special_ids = frozenset(definition["special_tokens"].values())
        self.ids = sorted((*definition["mergeable_ranks"].values(), *self.special_ids))
        self.special_tokens = list(definition["special_tokens"])

    @classmethod
    def from_file(cls, path: Path) -> OpenAI:
        """Create a reference of the library's own encoding that the file is named after, with the ranks of the file."""
        name = "r50k_base" if path.stem == "gpt2" else path.stem  # one encoding under two names
        public = importlib.import_module("tiktoken_ext.openai_public")
        with mock.patch.object(public, "load_tiktoken_bpe", lambda *_, **__: _ranks(path)):  # it would download them
            return cls(public.ENCODING_CONSTRUCTORS[name]())

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool) -> Ids:  # it never adds any
        return self.encoding.encode_batch(list(texts), num_threads=1, allowed_special="all")

    def encode_plain(self, texts: Sequence[str]) -> Ids:
        return self.encoding.encode_ordinary_batch(list(texts), num_threads=1)

    def offsets(self, texts: Sequence[str], *, add_special_tokens: bool = True) -> Sequence[Sequence[int]]:
        batch = self.encode(texts, add_special_tokens=add_special_tokens)
        return [self.encoding.decode_with_offsets(ids)[1] for ids in batch]

    def known(self, offsets: Sequence[tuple[int, int]]) -> Sequence[int]:
        return [start for start, _ in offsets]

    def decode(self, batch: Ids, *, skip_special_tokens: bool) -> list[str]:
        skipped = self.special_ids if skip_special_tokens else frozenset[int]()
        return [self.encoding.decode([token_id for token_id in ids if token_id not in skipped]) for ids in batch]


class SentencePiece(_Library):
    """Reference by the library `sentencepiece` and a .model.

    It matches no control token in text, and has the offsets of each piece.
    """

    covers = "ids of texts without control tokens, offsets, decoded and streamed text"

    def __init__(self, path: Path) -> None:
        import sentencepiece

        self.library = f"sentencepiece {sentencepiece.__version__}"
        self.model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self.ids = list(range(len(self.model)))
        self.added_ids = {i for i in self.ids if self.model.is_control(i)}
        self.special_tokens = [self.model.id_to_piece(i) for i in self.added_ids]
        self._bytes = {i: int(self.model.id_to_piece(i)[3:5], 16) for i in self.ids if self.model.is_byte(i)}

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[list[int] | None]:
        return self._of_plain(texts, self.encode_plain(texts))

    def encode_plain(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.model.encode(text) for text in texts]

    def offsets(self, texts: Sequence[str], *, add_special_tokens: bool = True) -> list[list[tuple[int, int]] | None]:
        return self._of_plain(texts, (self.model.EncodeAsOffsetMapping(text)["offsets"] for text in texts))

    def decode(self, batch: Ids, *, skip_special_tokens: bool) -> list[str | None]:
        """Decode each list of ids.

        None where a run of byte pieces is not UTF-8: the library writes U+FFFD for each byte, tokenweir for each error.
        """
        return [self.model.decode(list(ids)) if skip_special_tokens and self._is_text(ids) else None for ids in batch]

    def _is_text(self, ids: Sequence[int]) -> bool:
        runs = itertools.groupby((self._bytes.get(i) for i in ids if not self.model.is_control(i)), lambda b: b is None)
        try:
            for is_piece, run in runs:
                if not is_piece:
                    bytes(b for b in run if b is not None).decode()
        except UnicodeDecodeError:
            return False
        return True


class Tekken(_Library):
    """Reference by the library `mistral-common` and a tekken.json; it matches no special token in text and has no offsets."""

    covers = "ids of texts without control tokens, decoded and streamed text"

    def __init__(self, path: Path) -> None:
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        self.library = f"mistral-common {version('mistral-common')}"
        self.tokenizer = Tekkenizer.from_file(path)
        self.ids = list(range(self.tokenizer.n_words))
        self.special_tokens = [self.tokenizer.id_to_piece(i) for i in range(self.tokenizer.num_special_tokens)]

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[list[int] | None]:
        return self._of_plain(texts, self.encode_plain(texts))

    def encode_plain(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.tokenizer.encode(text, bos=False, eos=False) for text in texts]

    def decode(self, batch: Ids, *, skip_special_tokens: bool) -> list[str | None]:
        """Decode each list of ids.

        None where a special token may cut a character, because the library decodes the text before and behind it separately.
        """
        from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy

        policy = SpecialTokenPolicy.IGNORE if skip_special_tokens else SpecialTokenPolicy.KEEP
        texts = (self.tokenizer.decode(list(ids), policy) for ids in batch)
        n_special = self.tokenizer.num_special_tokens
        return [
            None if "\ufffd" in text and min(ids) < n_special else text for ids, text in zip(batch, texts, strict=True)
        ]


class Original(_Library):
    """Reference for a GGUF file: another file of the same tokenizer, for plain text and ordinary ids only.

    The GGUF file itself defines the added tokens and the ids around a text. Results that depend on them are None.
    """

    def __init__(self, reference: HuggingFace | SentencePiece, added: Mapping[str, int]) -> None:
        self.reference = reference
        self.library = reference.library
        self.covers = "ids of plain text, and decoded text of ordinary ids"
        self.byte_fallback = reference.byte_fallback
        self.ids = [i for i in reference.ids if i not in reference.added_ids]  # it may have more added tokens
        self.special_tokens = list(added)
        self.common = set(self.ids).difference(added.values())

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[None]:
        return [None] * len(texts)

    def encode_plain(self, texts: Sequence[str]) -> list[Sequence[int] | None]:
        return self._of_plain(texts, self.reference.encode_plain(texts))

    def decode(self, batch: Ids, *, skip_special_tokens: bool) -> Sequence[str | None]:
        known = [[i for i in ids if i in self.common] for ids in batch]
        texts = self.reference.decode(known, skip_special_tokens=skip_special_tokens)
        return [text if len(i) == len(ids) else None for text, i, ids in zip(texts, known, batch, strict=True)]


class LlamaCpp(_Library):
    """Reference for a GGUF file: llama.cpp's own server in this process, by the package `xllamacpp`; it has no offsets."""

    covers = "ids, ids of plain text, decoded and streamed text with special tokens"

    def __init__(self, path: Path, tokenizer: Tokenizer) -> None:
        import xllamacpp

        self.library = f"llama.cpp (xllamacpp {version('xllamacpp')})"
        self.ids = [i for i in range(tokenizer.vocab_size) if tokenizer.id_to_token(i) is not None]
        self.special_tokens = list(tokenizer.special_tokens)
        params = xllamacpp.CommonParams()
        params.model.path, params.verbosity = str(path), 0
        params.n_ctx, params.n_parallel, params.warmup = 256, 1, False
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise UnsupportedTokenizerError(f"llama.cpp does not load {path.name}: {error}") from error
        self._connection = HTTPConnection(urlsplit(self._server.listening_address).netloc)
        weakref.finalize(self, self._connection.close)

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool) -> Ids:
        return [self._encode(text, add_special=add_special_tokens, parse_special=True) for text in texts]

    def encode_plain(self, texts: Sequence[str]) -> Ids:
        return [self._encode(text, add_special=False, parse_special=False) for text in texts]

    def decode(self, batch: Ids, *, skip_special_tokens: bool) -> list[str | None]:
        """Decode each list of ids; None without special tokens, which it always writes, and for text that is not UTF-8."""
        if skip_special_tokens:
            return [None] * len(batch)
        texts = (self._ask("/detokenize", tokens=list(ids))["content"] for ids in batch)
        return [None if "\ufffd" in text else text for text in texts]

    def _encode(self, text: str, **options: bool) -> list[int]:
        return list(self._ask("/tokenize", content=text, **options)["tokens"])

    def _ask(self, path: str, **body: Any) -> dict[str, Any]:
        self._connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.loads(self._connection.getresponse().read().decode("utf-8", "replace"))
        return answer


Reference = HuggingFace | OpenAI | SentencePiece | Tekken | Original | LlamaCpp


def load_reference(path: Path) -> Reference:
    """Load a tokenizer's file by the reference library of its format."""
    if path.name.startswith("tekken"):
        return Tekken(path)
    if path.name.startswith("tokenizer.model"):
        return SentencePiece(path)
    return OpenAI.from_file(path) if path.suffix == ".tiktoken" else HuggingFace(path, huggingface(path))


def reference_of(path: Path, tokenizer: Tokenizer) -> Reference:
    """Load the reference of a tokenizer that was read from a file.

    With files of a configuration beside a tokenizer.json, it is `PreTrainedTokenizerFast.from_pretrained` of transformers. A rank
    file without a name of tiktoken's own gets the pattern and the special tokens of our spec.

    Raises:
        ImportError: The library is not installed.
        UnsupportedTokenizerError: No library reads this file as we do.

    """
    match tokenizer.spec.source.split(" ")[0]:
        case "GGUF":
            return LlamaCpp(path, tokenizer)
        case "SentencePiece":
            return SentencePiece(path)
        case "tekken.json":
            return Tekken(path)
        case "tiktoken":
            return _ranked(path, tokenizer)
        case _ if any((path.parent / name).is_file() for name in (CONFIG, TOKEN_MAP, MORE_TOKENS)):
            from transformers import PreTrainedTokenizerFast

            return HuggingFace(path, PreTrainedTokenizerFast.from_pretrained(path.parent).backend_tokenizer)
        case _:
            return HuggingFace(path, huggingface(path))


def _ranked(path: Path, tokenizer: Tokenizer) -> OpenAI:
    try:
        return OpenAI.from_file(path)
    except KeyError:
        pre_tokenizer = tokenizer.spec.pre_tokenizer
    if tokenizer.spec.normalizer is not None or not isinstance(pre_tokenizer, Split):
        raise UnsupportedTokenizerError(f"tiktoken does not normalize text, as {path.name} needs it")
    special = {token.content: token.id for token in tokenizer.added_tokens if token.id is not None}
    return OpenAI(
        {
            "name": path.stem,
            "pat_str": pre_tokenizer.pattern.Regex or "",
            "mergeable_ranks": _ranks(path),
            "special_tokens": special,
        }
    )
