"""Tokens of a GGUF file, their types and roles; the same keys for every kind of model.

The keys and their defaults are those of llama.cpp (src/llama-vocab.cpp, 2026-11), with two exceptions. An id outside
the vocabulary is an error, where llama.cpp warns and continues. A token with a role that is typed as ordinary text does
not become a control token: some converters write `padding_token_id = 0` as a placeholder.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct

from tokenweir.encode.build import MAX_IDS
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.gguf.metadata import Metadata
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.spec.models import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED

GGML = "tokenizer.ggml."

ROLE_KEYS = {
    "bos_token": ("bos_token_id",),
    "eos_token": ("eos_token_id",),
    "unk_token": ("unknown_token_id",),
    "sep_token": ("seperator_token_id", "separator_token_id"),  # the first is how the format spells it
    "pad_token": ("padding_token_id",),
    "cls_token": ("cls_token_id",),
    "mask_token": ("mask_token_id",),
}
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_NO_TOKEN = (-1, 0xFFFFFFFF)


class GgufVocabulary(Struct, frozen=True):
    """The tokens of a GGUF file.

    Attributes:
        tokens: The tokens by id, as the file spells them.
        types: The type of each token, a byte: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
        padding: Ids that name no token: converters fill the rows that a model has beyond its vocabulary with `[PAD7]`
            (7 being the id), or leave them empty. llama.cpp would match that text.
        roles: The ids that the file gives, by role, such as `bos_token`.
        eos_ids: The ids that end a generation, as far as the file says.
        notes: Decisions of this reader, which `inspect` prints.

    """

    tokens: Sequence[str]
    types: bytes
    padding: frozenset[int]
    roles: dict[str, int]
    eos_ids: tuple[int, ...]
    notes: tuple[str, ...]

    @property
    def ids(self) -> dict[str, int]:
        """The id of each token, without padding."""
        if not self.padding:
            return dict(zip(self.tokens, range(len(self.tokens)), strict=True))
        return {token: i for i, token in enumerate(self.tokens) if i not in self.padding}

    def of_type(self, *types: int) -> list[int]:
        """Return the ids of these types, in order, without padding."""
        found = np.flatnonzero(np.isin(np.frombuffer(self.types, np.uint8), types)).tolist()
        return [i for i in found if i not in self.padding]

    def role(self, role: str) -> str | None:
        """Return the token that plays a role, such as `bos_token`, or None if the file names no token for it."""
        return None if (token_id := self.roles.get(role)) is None else self.tokens[token_id]

    def special_roles(self) -> dict[str, str]:
        """Return the token of each role, without those that the file types as ordinary text."""
        return {role: self.tokens[i] for role, i in self.roles.items() if self.types[i] != NORMAL}

    def added_tokens(self) -> tuple[AddedToken, ...]:
        """Return the tokens to search for in text: unknown, control and user-defined ones; all but the last are special."""
        return tuple(
            AddedToken(self.tokens[i], id=i, special=self.types[i] != USER_DEFINED)
            for i in self.of_type(UNKNOWN, CONTROL, USER_DEFINED)
        )


def read_vocabulary(metadata: Metadata) -> GgufVocabulary:
    """Read the tokens of a GGUF file, with their types and roles.

    Raises:
        TokenizerFileError: A key is missing or of the wrong type, two tokens are equal, or an id is outside the vocabulary.
        UnsupportedTokenizerError: There are more tokens than ids can number.

    """
    tokens = metadata.strings(GGML + "tokens")
    if not tokens:
        raise TokenizerFileError(f"{GGML}tokens: missing or empty; the file has no vocabulary")
    if len(tokens) > MAX_IDS:  # before anything is made of them
        raise UnsupportedTokenizerError(f"{GGML}tokens: {len(tokens)} tokens; at most {MAX_IDS} fit")
    notes = []
    roles: dict[str, int] = {}
    for role, keys in ROLE_KEYS.items():
        for key in keys:
            if (token_id := _token_id(metadata, key, len(tokens))) is not None:
                roles.setdefault(role, token_id)
    ends = {i for key in _END_KEYS if (i := _token_id(metadata, key, len(tokens))) is not None}
    types = _types(metadata, len(tokens))
    if types is None:
        notes.append(f"no {GGML}token_type: only the tokens that begin or end a text are control tokens")
        control = ends | {i for role, i in roles.items() if role == "bos_token"}
        types = bytes(CONTROL if i in control else NORMAL for i in range(len(tokens)))
    unusual = np.flatnonzero(np.frombuffer(types, np.uint8) != NORMAL).tolist()
    padding = {i for i in unusual if tokens[i] == f"[PAD{i}]"}
    if "" in tokens:
        padding |= {i for i, token in enumerate(tokens) if not token}
    if padding:
        notes.append(f"{len(padding)} rows of padding, which name no token")
    _check_duplicates(tokens, padding)
    for role, token_id in roles.items():
        if types[token_id] == NORMAL:
            notes.append(f"{role} is {tokens[token_id][:40]!r}, which the file types as ordinary text: it stays text")
    return GgufVocabulary(tokens, types, frozenset(padding), roles, tuple(sorted(ends)), tuple(notes))


def _token_id(metadata: Metadata, key: str, size: int) -> int | None:
    """Return the token id under `tokenizer.ggml.KEY`; None if the key is missing or its value means "no token".

    Raise `TokenizerFileError` if the id is not below `size`.
    """
    token_id = metadata.integer(GGML + key)
    if token_id is None or token_id in _NO_TOKEN:
        return None
    if not 0 <= token_id < size:
        raise TokenizerFileError(f"{GGML}{key}: token id {token_id} is outside the vocabulary (0 to {size - 1})")
    return token_id


def _types(metadata: Metadata, size: int) -> bytes | None:
    types = metadata.numbers(GGML + "token_type", "INT32", "UINT32")
    if types is None:
        return None
    if len(types) != size:
        raise TokenizerFileError(f"{GGML}token_type: {len(types)} types for {size} tokens")
    known = np.isin(types, np.arange(NORMAL, BYTE + 1))
    if not known.all():
        wrong = int(np.argmin(known))
        raise TokenizerFileError(f"{GGML}token_type: {types[wrong]}, the type of token {wrong}, is not from 1 to 6")
    return types.astype(np.uint8).tobytes()


def _check_duplicates(tokens: Sequence[str], padding: Collection[int]) -> None:
    if len(set(tokens)) == len(tokens):
        return
    seen: dict[str, int] = {}
    for i, token in enumerate(tokens):
        if i not in padding and seen.setdefault(token, i) != i:
            raise TokenizerFileError(f"{GGML}tokens: tokens {seen[token]} and {i} are both {token[:40]!r}")
