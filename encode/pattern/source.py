"""The text of a pattern, a place in it, and the errors that name that place."""

from __future__ import annotations

from typing import Literal, NoReturn

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError

Dialect = Literal["oniguruma", "fancy-regex", "tokenizers"]
r"""Whose reading of a pattern counts: HuggingFace's engine, or tiktoken's.

No file has patterns of the third: it is fancy-regex, which has Rust's syntax, with the sets that components of
HuggingFace's library are made of as properties (`\p{numeric}`, `\p{punctuation}`).
"""

DIALECTS: tuple[Dialect, ...] = ("oniguruma", "fancy-regex", "tokenizers")


def shown(pattern: str) -> str:
    """A pattern as error messages quote it, at most 200 characters of it."""
    return repr(pattern) if len(pattern) <= 200 else f"{pattern[:200]!r}... ({len(pattern)} characters)"


class Source:
    """A cursor over a pattern.

    Attributes:
        pattern: The whole pattern.
        dialect: The regex engine whose reading counts.
        at: The next character's index.

    """

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect = dialect
        self.at = 0

    def peek(self, length: int = 1) -> str:
        """The next characters, fewer at the end, without moving."""
        return self.pattern[self.at : self.at + length]

    def take(self) -> str:
        """The next character; the pattern must not end here."""
        if self.at == len(self.pattern):
            self.malformed("it ends too early", self.at)
        self.at += 1
        return self.pattern[self.at - 1]

    def accept(self, text: str) -> bool:
        """Step over `text` if it comes next."""
        found = self.pattern.startswith(text, self.at)
        if found:
            self.at += len(text)
        return found

    def refuse(self, construct: str, at: int) -> NoReturn:
        """Raise the error for a construct that is legal but cannot be compiled exactly."""
        raise UnsupportedTokenizerError(
            f"pattern {shown(self.pattern)} ({self.dialect}): {construct}, at character {at}, is not supported"
        )

    def malformed(self, what: str, at: int) -> NoReturn:
        """Raise the error for what is not a regular expression."""
        raise TokenizerFileError(
            f"pattern {shown(self.pattern)} ({self.dialect}) is malformed: {what}, at character {at}"
        )
