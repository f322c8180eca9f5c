"""Classes of styles of tool calls, one for each kind of grammar; `tools.toml` is the table of styles."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct


class ToolStyle(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The markup of tool calls.

    White space may stand between all parts. `stream/decode/parsers/tools.py` describes the treatment of malformed
    calls.

    Attributes:
        name: The style's name, as in `TOOL_STYLES`.
        grammar: The grammar of calls within a block: "json", another one in `BLOCKS` of
            `stream/decode/parsers/tools.py`, or a registered one. Fields of a single grammar may be in a subclass.
        opens: Texts that begin a block of calls.
        doubtful: Opening texts that may begin something else as well. Text behind one is a call only with a name and
            arguments, and is otherwise plain answer, not a malformed call.
        closes: The text that ends a block; empty if a block ends with its last call.
        call_opens: The text before each call in a block, if there is one.
        call_closes: The text after each call, if there is one.
        header: A regular expression for the text before the object of the arguments, with the function's name as the
            group `name`; empty if calls are objects with name and arguments.
        objects: Whether calls may be objects with name and arguments.
        lists: Whether a block may be a list of such objects.
        or_json: Whether a block of another grammar may contain JSON instead.
        bare: The first characters of an answer that consists of calls alone, without an opening text; `opens` must
            not be empty all the same.
        strewn: Whether calls without an opening text may stand anywhere in the answer; they begin with a character of
            `bare`. A grammar other than JSON needs tools in the request or `or_json` for this.
        answers: Texts that, right after an opening text, show that plain answer text follows instead of a call.
        strays: Texts that models write right behind a block and that are markup there, besides `closes` a second time. In
            JSON styles they may stand in place of `closes`.
        separators: Texts that may stand between two objects outside a list; an empty text among them means that objects
            may follow each other directly.
        tails: Texts that may follow the arguments and are markup too.
        name_keys: The keys of the name in an object; empty if the name itself is the key of the arguments.
        argument_keys: The keys of the arguments in an object.
        call_ids: The pattern of a call's id, with `{name}` and its `{number}` in the conversation, for templates that
            write the id in place of the name; otherwise empty.
        tokens: Control tokens. A vocabulary that has all of them, and none of `unlike`, uses the style; if empty, the
            style is not detected from a vocabulary.
        others: More texts of the markup that may be control tokens.
        unlike: Texts that exclude the style in a template or vocabulary; they belong to a style with the same opening
            text.
        shows: Texts that together show the style in a template or its output; if empty, one of `opens` shows it.

    Raises:
        ValueError: `opens` is empty or contains the empty text, or the header is no regular expression or has no group
            `name`.

    """

    name: str
    grammar: str = "json"
    opens: tuple[str, ...]
    doubtful: tuple[str, ...] = ()
    closes: str = ""
    call_opens: str = ""
    call_closes: str = ""
    header: str = ""
    objects: bool = True
    lists: bool = False
    or_json: bool = False
    bare: str = ""
    strewn: bool = False
    answers: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    separators: tuple[str, ...] = ()
    tails: tuple[str, ...] = ()
    name_keys: tuple[str, ...] = ("name",)
    argument_keys: tuple[str, ...] = ("arguments", "parameters")
    call_ids: str = ""
    tokens: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """All texts of the markup."""
        calls = (self.call_opens, self.call_closes, *self.answers, *self.tails)
        return (*self.opens, self.closes, *calls, *self.tokens, *self.others)

    def __post_init__(self) -> None:
        """Raise `ValueError` for a style without an opening text, or whose header is invalid or has no group `name`."""
        if not self.opens or "" in self.opens:
            raise ValueError(f"tool style {self.name!r}: nothing opens a block, or the empty text does: {self.opens}")
        try:
            groups = re.compile(self.header).groupindex
        except re.error as error:
            raise ValueError(
                f"tool style {self.name!r}: header {self.header!r} is no regular expression: {error}"
            ) from error
        if self.header and "name" not in groups:
            raise ValueError(f"tool style {self.name!r}: header {self.header!r} has no group 'name'")


ValueKind = Literal["schema", "string", "json"]
"""Source of a value's type: the tool's schema, or the tag of its key (always a string, always JSON)."""


class ParameterStyle(ToolStyle, frozen=True, kw_only=True):
    """Calls whose arguments are tagged one by one; `stream/decode/parsers/blocks/parameter_block.py` reads them.

    A call begins with `call_opens`, or if that is empty with the block. It ends with `call_closes`, or with the block.

    Attributes:
        leads: Texts that may stand before `call_opens` and are markup too.
        name_ends: Texts that end the function's name and belong to it. One in `/>` ends the call as well.
        name_stops: Texts that end the function's name without belonging to it.
        name_tail: Text that ends the markup behind the name; empty if the name's end does.
        key_opens: The text before a parameter's name.
        key_closes: The texts after a parameter's name, each with the source of the value's type: "schema" (the tool's
            schema), "string" (always a string) or "json" (always JSON).
        type_tags: A pair of texts around a type, which may stand between a key and its value; or empty.
        value_opens: The text before a value; empty if the key's end begins the value.
        joins: The text between a parameter's name and its value if a model omits the tags between them, as in
            `<arg_key>KEY=VALUE</arg_value>`; empty if no model does.
        value_closes: The text after a value; `{}` in it stands for the parameter's name.
        value_stops: Further texts that end a value, for models that omit the closing tag: a line end and the next tag.
        verbatim: A pair of texts around a value in which `value_closes` is plain text; or empty.
        object_opens: The text before all arguments as one JSON object; `tails` has the text after it. Empty if there is
            no such text; the object may stand alone in any style.
        nests: The text before the tags within a value: `<KEY>` begins a member of an object that `</KEY>` ends, and
            `<item>` an element of an array. Empty if values have no tags of their own.
        trims: Remove one line end at the beginning of a value and one at its end.
        entities: Decode `&amp;` and `&quot;` in the names of functions and parameters.

    Raises:
        ValueError: A required tag is missing.

    """

    grammar: str = "parameters"
    leads: tuple[str, ...] = ()
    name_ends: tuple[str, ...] = ()
    name_stops: tuple[str, ...] = ()
    name_tail: str = ""
    key_opens: str
    key_closes: tuple[tuple[str, ValueKind], ...]
    type_tags: tuple[str, ...] = ()
    value_opens: str = ""
    joins: str = ""
    value_closes: str
    value_stops: tuple[str, ...] = ()
    verbatim: tuple[str, ...] = ()
    object_opens: str = ""
    nests: str = ""
    trims: bool = False
    entities: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """All texts of the markup."""
        keys = (self.key_opens, *(text for text, _ in self.key_closes))
        values = (*self.type_tags, self.value_opens, self.value_closes, *self.verbatim, self.object_opens, self.nests)
        return (*super().marks, *self.leads, *self.name_ends, self.name_tail, *keys, *values)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (
            not (self.name_ends or self.name_stops)
            or not self.key_opens
            or not self.key_closes
            or not self.value_closes
        ):
            raise ValueError(f"tool style {self.name!r}: a tag of names, keys or values is empty")
        for field in ("verbatim", "type_tags"):
            if len(pair := getattr(self, field)) not in (0, 2):
                raise ValueError(f"tool style {self.name!r}: {field} {pair} is no pair of texts")
        if not (self.call_closes or self.closes):
            raise ValueError(f"tool style {self.name!r}: nothing ends a call")


class LiteralStyle(ToolStyle, frozen=True, kw_only=True):
    """Calls as in a programming language: `name(key=value)` in Python's, `call:name{key:value}` in Gemma's.

    `stream/decode/parsers/blocks/literal_block.py` reads them; with the grammar "typed literals",
    `typed_literal_block.py`, which gives arguments the types that the tools' schemas declare. A block holds one call or
    several; in `[...]` if `lists` is true.

    Attributes:
        leads: Texts that may stand before the first call of a block and are markup too.
        prefixes: Texts one of which must precede a function's name; empty if names have no prefix.
        name_suffix: Markup behind every function's name.
        brackets: The two characters around the arguments.
        assigns: The text between an argument's name and its value.
        quotes: The quotation marks of strings; a mark that is a prefix of another comes after it.
        escapes: Whether a backslash in a string begins one of Python's escapes.
        words: Whether a value that is not a literal is a string, instead of an error.
        quotes_all: Whether all values are quoted, so that a quoted value need not be a string.

    """

    grammar: str = "literals"
    leads: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    name_suffix: str = ""
    brackets: str = "()"
    assigns: str = "="
    quotes: tuple[str, ...] = ('"""', "'''", '"', "'")
    escapes: bool = True
    words: bool = False
    quotes_all: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """All texts of the markup."""
        return (*super().marks, *self.leads, *self.prefixes, *self.quotes)
