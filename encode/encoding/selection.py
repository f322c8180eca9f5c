"""The core's part of a call of an encoding method, and encoders that match only some added tokens."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from tokenweir.encode import _core
from tokenweir.encode.build import Core
from tokenweir.encode.errors import TextError
from tokenweir.encode.spec import AddedToken

MAX_ENCODERS = 8
"""The most encoders for sets of added tokens that a tokenizer caches; each has its own word caches."""


class Call(NamedTuple):
    """The resolved options of a call.

    Attributes:
        encoder: The encoder.
        parse_special: Whether it matches added tokens.
        prefix: The ids before those of each text.
        suffix: The ids after them.
        disallowed: Ids that no text may become, with their tokens.

    """

    encoder: _core.Encoder
    parse_special: bool
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    disallowed: Mapping[int, str] = MappingProxyType({})

    def check(self, ids: Sequence[int], *, around: bool = False, name: str = "text") -> None:
        """Raise TextError if a text has a disallowed id; with `around`, `prefix` and `suffix` are among the ids.

        `name` is the text's name in the message.
        """
        if not self.disallowed:
            return
        own = ids[len(self.prefix) : len(ids) - len(self.suffix)] if around else ids
        at = next((i for i in own if i in self.disallowed), None)
        if at is not None:
            raise TextError(f"{name} spells {self.disallowed[at]!r}, which disallowed_special forbids")


class AddedTokenSelection:
    """Encoders of one tokenizer for sets of added tokens."""

    def __init__(self, core: Core, added: Collection[AddedToken]) -> None:
        """Take the compiled objects of a tokenizer and its added tokens with their ids."""
        self._compiled = core
        self._ids = {t.content: t.id for t in added if t.id is not None}
        self._special = frozenset(t.content for t in added if t.special)
        self._encoder = lru_cache(maxsize=MAX_ENCODERS)(core.encoder_of)

    def call(
        self,
        parse_special: bool | Collection[str],
        disallowed_special: Collection[str] | Literal["all"],
        prefix: tuple[int, ...],
        suffix: tuple[int, ...],
    ) -> Call:
        """Resolve `parse_special` and `disallowed_special` of `EncodeOptions`.

        Raises:
            TypeError: An option is neither a set of tokens nor one of its other values.
            ValueError: A token is not an added token.

        """
        everything = not isinstance(parse_special, Collection) and bool(parse_special)
        if isinstance(parse_special, Collection):
            allowed = self._known(parse_special, "parse_special")
        else:
            allowed = frozenset(self._ids) if everything else frozenset()
        if disallowed_special == "all":
            disallowed = self._special - allowed
        else:
            disallowed = self._known(disallowed_special, "disallowed_special")
        encoder = self._compiled.encoder if everything else self._encoder(allowed | disallowed)
        return Call(encoder, True, prefix, suffix, {self._ids[token]: token for token in disallowed})

    def _known(self, tokens: Collection[str], option: str) -> frozenset[str]:
        if isinstance(tokens, str | bytes) or not isinstance(tokens, Collection):
            raise TypeError(f"{option} must be a set of added tokens, not {tokens!r:.80}")
        for token in tokens:
            if not isinstance(token, str) or token not in self._ids:
                raise ValueError(f"{option}: {token!r:.80} is not an added token")
        return frozenset(tokens)
