"""The reference libraries behind one face, built from local files and nothing from the network.

What `tokenizers` makes of a tokenizer.json and `tiktoken` of a rank file is the truth that parity is measured against.
Both classes have:

- `library`, its name and version;
- `ids`, every id that names a token, and `special_tokens`, the text of every added token;
- `encode` (added tokens in the text are matched), `encode_plain` (no added token is matched and none is added),
  `offsets` of what `encode` gives, and `decode`, each for a batch;
- `known`, what the library knows of (start, end) offsets.
"""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import tiktoken
import tokenizers

Ids = Sequence[Sequence[int]]


class HuggingFace:
    """`tokenizers` with a tokenizer.json; its offsets are start and end of each token, in characters."""

    library = f"tokenizers {tokenizers.__version__}"

    def __init__(self, path: Path) -> None:
        self.tokenizer = tokenizers.Tokenizer.from_file(str(path))
        # The library always matches non-special added tokens, so the plain reading needs a file that has none.
        plain = json.loads(path.read_bytes()) | {"added_tokens": [], "post_processor": None}
        self.plain = tokenizers.Tokenizer.from_str(json.dumps(plain))
        self.ids = sorted(self.tokenizer.get_vocab(with_added_tokens=True).values())
        self.special_tokens = [token.content for token in self.tokenizer.get_added_tokens_decoder().values()]

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool) -> Ids:
        encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=add_special_tokens)
        return [encoding.ids for encoding in encodings]

    def encode_plain(self, texts: Sequence[str]) -> Ids:
        return [encoding.ids for encoding in self.plain.encode_batch_fast(list(texts), add_special_tokens=False)]

    def offsets(self, texts: Sequence[str], *, add_special_tokens: bool = True) -> Sequence[Sequence[tuple[int, int]]]:
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=add_special_tokens)
        return [encoding.offsets for encoding in encodings]

    def known(self, offsets: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        return offsets

    def decode(self, batch: Ids, *, skip_special_tokens: bool) -> list[str]:
        return self.tokenizer.decode_batch([list(ids) for ids in batch], skip_special_tokens=skip_special_tokens)


class OpenAI:
    """`tiktoken` with a rank file; it knows only where each token starts, in characters.

    Attributes:
        definition: What `tiktoken.Encoding` is made from: `name`, `pat_str`, `mergeable_ranks`, `special_tokens`.

    """

    library = f"tiktoken {tiktoken.__version__}"

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.definition = definition
        self.encoding = tiktoken.Encoding(**definition)
        self.special_ids = frozenset(definition["special_tokens"].values())
        self.ids = sorted((*definition["mergeable_ranks"].values(), *self.special_ids))
        self.special_tokens = list(definition["special_tokens"])

    @classmethod
    def from_file(cls, path: Path) -> OpenAI:
        """The library's own definition of the encoding that the file is named after, with the ranks of the file."""
        lines = (line.split() for line in path.read_bytes().splitlines() if line)
        ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        name = "r50k_base" if path.stem == "gpt2" else path.stem  # one encoding under two names
        public = importlib.import_module("tiktoken_ext.openai_public")
        with mock.patch.object(public, "load_tiktoken_bpe", lambda *_, **__: ranks):  # it would download them
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


Reference = HuggingFace | OpenAI


def load_reference(path: Path) -> Reference:
    """The library whose format the file is in, with the file loaded."""
    return OpenAI.from_file(path) if path.suffix == ".tiktoken" else HuggingFace(path)
