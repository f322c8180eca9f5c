"""Incremental parser of a tool call that is a JSON object with name and arguments."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.saved import Saved, ShortText, check_restored
from tokenweir.stream.decode.parsers.splitter import SkippableText

MAX_NAME = 1024  # characters of a key or a name, quotes and escapes included

_BEGINNINGS = frozenset('"{[-0123456789tfn')  # first characters of JSON values

# The separators between the parts of the object, and the part expected after each.
_MARKS = {
    ("{", "{"): "key or }",
    ("key or }", "}"): "nothing",
    (":", ":"): "value",
    (", or }", ","): "key",
    (", or }", "}"): "nothing",
}

_BESIDE = ("type", "id")
"""Keys that may precede the name in any model's calls."""


class CallObject(Saved):
    """Incremental parser of one JSON object that is a tool call: it finds the function's name and the arguments.

    Other members of the object are validated only. Name and arguments may also be in a nested object under the key
    `function`, OpenAI's form of a call: models learn it from templates that copy such calls unchanged.

    Attributes:
        name: The function's name; empty until it is known.
        begun: The arguments have begun.
        done: The object is complete, and all JSON in it is valid.
        error: Why this is not a call; None while it may be one.
        foreign: A key that calls do not have came before the name.

    """

    SAVED: ClassVar[dict[str, Any]] = {
        "name": ShortText,
        "begun": bool,
        "done": bool,
        "error": ShortText | None,
        "foreign": bool,
        "_expect": Literal["{", "key or }", "key", ":", "value", "inside", ", or }", "nothing"],
        "_kind": Literal["key", "name", "arguments", "other"],
        "_kept": ShortText,
        "_nested": bool,
        "_value": JsonValue,
    }

    def __init__(self, name_keys: tuple[str, ...], argument_keys: tuple[str, ...]) -> None:
        """Start before the object's `{`.

        Args:
            name_keys: The possible keys of the name; empty for objects `{name: arguments}`.
            argument_keys: The possible keys of the arguments; ignored if `name_keys` is empty.

        """
        self._name_keys, self._argument_keys = name_keys, argument_keys
        self.begin()

    def begin(self) -> None:
        """Reset the parser to the start of another object."""
        self.name = ""
        self.begun = self.done = False
        self.error: str | None = None
        self.foreign = False  # an unknown key precedes the name
        self._expect = "{"
        self._kind = "other"  # the current part: a "key", the "name", the "arguments" or an "other" value
        self._kept = ""  # the text of a key, until its value has begun, or of a name
        self._nested = False  # in the object under the key "function"
        self._value = JsonValue()

    def check(self) -> None:
        if self._expect in (":", "value"):
            check_restored(isinstance(json.loads(self._kept), str), "a key is no text")
        elif self._expect == "inside" and self._kind in ("key", "name") and self.error is None:
            value = JsonValue()
            value.feed(self._kept)
            check_restored(value.state() == self._value.state(), "a key or a name is another than was read")

    def feed(self, text: str, start: int) -> tuple[int, bool]:
        """Process text from index `start` on, in one stretch that is either all arguments or has nothing of them.

        Processing also stops at the end of the name and at the start of the arguments, possibly without consuming text.
        It stops for good once `done` or `error` is set: malformed JSON sets `error` and raises nothing. While the
        object is `settled`, it stops before any character that can neither continue nor end the object; the caller
        decides about it.

        Returns:
            The index after the consumed text, and whether that text belongs to the arguments.

        """
        place, length = start, len(text)
        while place < length and not self.done and self.error is None:
            if self._expect == "inside":
                place = self._inside(text, place)
                if self._kind == "arguments":
                    return place, True
                if self._kind == "name" and self.name:
                    break
            elif text[place] in " \t\n\r":
                place += 1
            elif self._expect == "value" or (text[place] == '"' and self._expect in ("key", "key or }")):
                self._begin(text[place])
                if self._kind == "arguments":
                    break
            elif self.settled and text[place] not in ",}":  # the caller knows what may end the object
                break
            elif then := _MARKS.get((self._expect, text[place])):
                place += 1
                self._expect = then
                if then == "nothing" and self._nested:
                    self._expect, self._nested = ", or }", False
                self.done = self._expect == "nothing"
                if self.done and not self.name:
                    self.error = "the object has no name"
            else:
                self.error = self.refusal(text[place])
        return place, False

    @property
    def settled(self) -> bool:
        """Whether name and arguments are complete and the object is not: another member or its closing brace may follow."""
        return self._expect == ", or }" and self.begun and bool(self.name)

    @staticmethod
    def refusal(char: str) -> str:
        """Return the error message for a character that cannot stand at its place in the JSON."""
        return f"{char!r} cannot stand here in the JSON"

    def skippable(self, held: bool) -> SkippableText | None:
        """Return a description of the text that may bypass `feed` on the fast path; None if all text must be fed.

        Args:
            held: The caller holds the whole object back, so keys and all values may be skipped; else only the
                arguments.

        """
        if self._expect != "inside" or not (held or self._kind == "arguments"):
            return None
        return SkippableText("", self._value, held)

    def _begin(self, char: str) -> None:
        """Prepare for a key or a value that begins with `char`, without consuming it; set `error` if it is not allowed."""
        if self._expect != "value":
            self._kind = "key"
        else:
            key = json.loads(self._kept)
            if key == "function" and char == "{" and self._name_keys and not (self.name or self.begun or self._nested):
                self._expect, self._nested = "{", True
                return
            self._kind = self._kind_of(key)
            self.foreign = self.foreign or (self._kind == "other" and not self.name and key not in _BESIDE)
            if (self._kind == "name" and self.name) or (self._kind == "arguments" and self.begun):
                self.error = f"the {self._kind} came before"
            elif self._kind == "name" and char != '"':
                self.error = "the name is not a string"
            elif char not in _BEGINNINGS:
                self.error = self.refusal(char)
            else:
                self.begun = self.begun or self._kind == "arguments"
        self._value, self._kept, self._expect = JsonValue(), "", "inside"

    def _kind_of(self, key: str) -> str:
        """Return the kind of a key's value: "name", "arguments" or "other"."""
        if key in self._name_keys:
            return "name"
        return "arguments" if not self._name_keys or key in self._argument_keys else "other"

    def _inside(self, text: str, place: int) -> int:
        """Process text of the current key or value from index `place` on, and return the index after it."""
        end = self._value.feed(text, place)
        if self._kind in ("key", "name"):
            self._kept += text[place:end]
            if len(self._kept) > MAX_NAME:
                self._kept = ""
                self.error = f"the {self._kind} is longer than {MAX_NAME} characters"
                return end
        if self._value.error is not None:
            self.error = self._value.error
        elif self._value.done:
            self._expect = ":" if self._kind == "key" else ", or }"
            if self._kind == "name" or (self._kind == "key" and not self._name_keys):
                self.name = json.loads(self._kept)
                if not self.name or any("\ud800" <= char <= "\udfff" for char in self.name):
                    self.error = f"the name {self.name!r:.80} is empty or has a lone surrogate"
        return end
