"""A cursor over a pattern, and the errors that name a place in it."""

from __future__ import annotations

from typing import Literal, NoReturn

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError

Dialect = Literal["oniguruma", "fancy-regex", "tokenizers"]
r"""The regex dialect of a pattern: HuggingFace's engine, tiktoken's, or "tokenizers".

The third does not occur in files: it is fancy-regex, with the character sets of components of HuggingFace's library as
additional properties (`\p{numeric}`, `\p{punctuation}`).
"""

DIALECTS: tuple[Dialect, ...] = ("oniguruma", "fancy-regex", "tokenizers")


def shown(pattern: str) -> str:
    """Quote a pattern for error messages, truncated to 200 characters."""
    return repr(pattern) if len(pattern) <= 200 else f"{pattern[:200]!r}... ({len(pattern)} characters)"


class PatternCursor:
    """A cursor over a pattern; `at` is the index of the next character."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect = dialect
        self.at = 0

    def peek(self, length: int = 1) -> str:
        """Return the next `length` characters, fewer at the end of the pattern, without advancing."""
        return self.pattern[self.at : self.at + length]

    def take(self) -> str:
        """Return the next character and advance; raise `TokenizerFileError` at the end of the pattern."""
        if self.at == len(self.pattern):
            self.malformed("it ends too early", self.at)
        self.at += 1
        return self.pattern[self.at - 1]

    def accept(self, text: str) -> bool:
        """Advance past `text` if it comes next; return whether it did."""
        found = self.pattern.startswith(text, self.at)
        if found:
            self.at += len(text)
        return found

    def refuse(self, construct: str, at: int) -> NoReturn:
        """Raise `UnsupportedTokenizerError` for a valid construct that cannot be compiled exactly.

        `construct` names it, and `at` is its place in the pattern.
        """
        raise UnsupportedTokenizerError(
            f"pattern {shown(self.pattern)} ({self.dialect}): {construct}, at character {at}, is not supported"
        )

    def malformed(self, what: str, at: int) -> NoReturn:
        """Raise `TokenizerFileError` for a pattern that is not a regular expression.

        `what` says what is wrong, and `at` is the place in the pattern.
        """
        raise TokenizerFileError(
            f"pattern {shown(self.pattern)} ({self.dialect}) is malformed: {what}, at character {at}"
        )
