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
    """The resolved options of a call of an encoding method.

    Attributes:
        encoder: The encoder, which matches the added tokens that the options select.
        parse_special: The argument of this name for the encoder: whether it matches its added tokens.
        prefix: The ids to put before those of each text.
        suffix: The ids to put after them.
        disallowed: The ids that no text may be encoded to, each with the text of its token.

    """

    encoder: _core.Encoder
    parse_special: bool
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    disallowed: Mapping[int, str] = MappingProxyType({})

    def check(self, ids: Sequence[int], *, around: bool = False, name: str = "text") -> None:
        """Raise `TextError` if a text was encoded to a disallowed id.

        Args:
            ids: The ids of the text.
            around: Whether `ids` include `prefix` and `suffix`, which are not checked.
            name: The name of the text in the message.

        """
        if not self.disallowed:
            return
        own = ids[len(self.prefix) : len(ids) - len(self.suffix)] if around else ids
        at = next((i for i in own if i in self.disallowed), None)
        if at is not None:
            raise TextError(f"{name} spells {self.disallowed[at]!r}, which disallowed_special forbids")


class AddedTokenSelection:
    """The encoders of one tokenizer that match only some of its added tokens; those used last are cached."""

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
        """Resolve the options `parse_special` and `disallowed_special` of `EncodeOptions`.

        `prefix` and `suffix` are the ids to put around each text.

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
