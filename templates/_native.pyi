"""The engine of chat templates: Jinja2 as transformers configures it, with an origin for every byte of the output."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final, Literal, final, overload

@final
class Template:
    """A parsed template. Objects never change, and threads may share them."""

    def __init__(self, source: str, name: str = "template") -> None:
        """Parse a template.

        Args:
            source: The Jinja source, of 1 MiB at most.
            name: The template's name, with which error messages begin.

        Raises:
            TemplateError: The source does not parse; the message has the line.

        """

    variables: Final[frozenset[str]]
    """The names of the variables that the template may read from its input; functions such as `range` are left out."""

    iterates_over_content: Final[bool]
    """Whether the template has a loop over a message's content, so that it takes contents that are lists of parts."""

    argument_form: Final[Literal["object", "text", "either"]]
    """The form in which the template takes the arguments of tool calls; "text" is JSON."""

    marks_generation: Final[bool]
    """Whether the template has a `{% generation %}` block."""

    def render(
        self,
        variables: Mapping[str, object] | bytes,
        *,
        now: datetime | None = None,
        vouched: AbstractSet[str] = frozenset(),
    ) -> Rendering:
        """Render the template with these variables. The GIL is released while it runs.

        Args:
            variables: The variables, or the JSON of an object of them. Values are str, int, float, bool, None, lists,
                tuples, mappings with str keys, and models with a method `model_dump`.
            now: The time that `strftime_now` formats, by default the local time.
            vouched: Names of variables whose text is trusted: it counts as the template's.

        Raises:
            TemplateError: The template fails (the message has the line), a bound is exceeded, or a value has another type
                (the message has its path).
            TextError: A string has a lone surrogate.

        """

    def render_chat(
        self,
        messages: Sequence[Mapping[str, object]] | Messages,
        form: MessageForm,
        variables: Mapping[str, object],
        tools: Sequence[Mapping[str, object]] | None,
        documents: Sequence[Mapping[str, object]] | None,
        add_generation_prompt: bool,
        clock: Callable[[], datetime],
        history: HistoryForm | None = None,
        continued: str | None = None,
        tag: str = "",
        source: str = "",
        tokens: ControlTokens | None = None,
        earlier: Rendering | None = None,
    ) -> Rendering:
        """Render a conversation. The GIL is released, except while Python objects are read.

        Args:
            messages: The messages, which are checked, and converted to `form`.
            form: The form in which the template takes messages.
            variables: Other variables of the template.
            tools: JSON schemas of functions.
            documents: Documents, for templates that quote from them.
            add_generation_prompt: The variable of this name.
            clock: Returns the time; called only if the template asks for it.
            history: The form to which histories are tidied; None leaves them as they are.
            continued: The name of a field of the last message, to which `tag` is appended; None appends it nowhere.
            tag: The text to append.
            source: The template's source; it must mention the field `continued`.
            tokens: Control tokens to search for at once, so that `guarded` with them need not search the text again.
            earlier: An earlier rendering. If it was searched for the same `tokens`, the beginning that both texts have in
                common is not searched again.

        Raises:
            TemplateError: As `render`; or the messages, tools or documents are not as `ChatTemplate.render` takes them.
            TextError: A string has a lone surrogate.

        """

class Messages:
    """The messages of a conversation, read once for any number of renders. Immutable; threads may share them.

    A sequence: item i is message i, as a new dict.
    """

    def __init__(self, messages: Sequence[Mapping[str, object]] | Sequence[object]) -> None:
        """Read messages.

        Args:
            messages: Mappings or pydantic models. Their roles and contents are not checked here but by `check`, and by
                each render.

        Raises:
            TemplateError: One of them is neither, or has a value that JSON does not have; the error has its path.
            TextError: A string has a lone surrogate.

        """

    @staticmethod
    def from_json(json: bytes) -> Messages:
        """Read the JSON of a list of messages. The GIL is released meanwhile.

        Args:
            json: The text, in UTF-8.

        Raises:
            TemplateError: The text is not JSON, or not a list of objects.
            TextError: A string has a lone surrogate.

        """

    @staticmethod
    def from_chat_json(json: bytes, most_items: int) -> Messages | None:
        """Read the messages of a Chat Completions request: the fast path of the server's function `chat_messages`.

        Args:
            json: The JSON of the list of messages.
            most_items: The most messages, content parts and calls.

        Returns:
            The messages in the form that templates take; None if the slow path must read them: they are malformed, too
            many, or have parts that are not text.

        """

    def check(self, roles: AbstractSet[str]) -> None:
        """Raise if the role, content or calls of a message are not as `ChatTemplate.render` takes them.

        Args:
            roles: The roles to accept.

        Raises:
            TemplateError: A message is invalid; the error names it and the field.

        """

    @property
    def digests(self) -> tuple[bytes, ...]:
        """A 16-byte digest of each message's content; equal messages with keys in another order have other digests."""

    @property
    def text_digests(self) -> tuple[int, ...]:
        """A fast 64-bit hash of each message's texts, as a signed integer.

        Tool calls are left out, and of a long text only the length and three samples are hashed.
        """

    def text_chain(self, start: int) -> tuple[int, ...]:
        """Return a hash of each prefix of the conversation, computed from `text_digests`: n + 1 for n messages.

        Args:
            start: The hash of the empty prefix, a signed 64-bit integer that stands for everything before the messages.

        """

    @property
    def text_size(self) -> int:
        """The number of UTF-8 bytes of all strings of the messages, except keys."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...

@final
class GrowingMessages(Messages):
    """The messages of a list that grows: `read` converts only those that are new.

    Empty at first. Threads must not share an object.
    """

    def __init__(self) -> None: ...
    def read(self, messages: Sequence[Mapping[str, object]] | Sequence[object]) -> None:
        """Replace the messages by those of a sequence.

        If the sequence begins with the same objects as in the last call, with the same content, only the messages after
        these are read. Otherwise all are read.

        Args:
            messages: As for `Messages`.

        Raises:
            TemplateError: As `Messages`; this object is then empty.
            TextError: As `Messages`.

        """

def read_tools(tools: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Check a list of tools; return a copy as plain dicts.

    Args:
        tools: Mappings, each of which describes a function and has its name.

    Raises:
        TemplateError: `tools` is anything else. Python functions are refused; pass their JSON schemas.
        TextError: A string has a lone surrogate.

    """

@final
class MessageForm:
    """The form to which messages are converted for a template."""

    def __init__(
        self,
        roles: AbstractSet[str],
        takes_parts: bool,
        arguments: Literal["object", "text", "either"],
        special_tokens: Mapping[str, str],
    ) -> None:
        """Build the form.

        Args:
            roles: The roles that messages may have.
            takes_parts: Whether to leave contents that are lists of parts; if not, the parts' texts are joined with line
                feeds.
            arguments: The form of the arguments of calls: objects, JSON text, or as they are ("either").
            special_tokens: Template variables such as `bos_token` and their texts, which count as the template's.

        """

@final
class HistoryForm:
    """The form of histories that a template takes, to which `Template.render_chat` tidies them."""

    def __init__(
        self,
        arguments: Literal["object", "text", "either"],
        contents: Mapping[str, tuple[bool, bool]],
        of_calls: Literal["absent", "none", "empty"],
        of_answer: Literal["absent", "none", "empty"],
        replaces_empty: bool,
        parts_calls: bool,
        single_calls: bool,
        orders_results: bool,
        takes_late_results: bool,
        takes_orphans: bool,
        joins_thinking: bool,
        joins_system: bool,
        takes_later_system: bool,
        takes_developer: bool,
        needs_ids: bool,
        call_ids: str,
    ) -> None:
        """Build the form.

        Args:
            arguments: As for `MessageForm`.
            contents: For "system", "user", "assistant" and "tool" whether the template takes a text and a list of parts.
            of_calls: The content of an assistant's message that has calls and no content.
            of_answer: The content of an assistant's message that has neither.
            replaces_empty: Whether an empty content beside calls counts as none.
            parts_calls: Whether calls beside a content get a message of their own.
            single_calls: Whether each call gets a message of its own, with its results behind it.
            orders_results: Whether results are put in the order of their calls.
            takes_late_results: Whether the template writes results behind messages that follow their calls; otherwise they are
                moved behind their calls.
            takes_orphans: Whether the template writes results without their calls, which are refused otherwise.
            joins_thinking: Whether a content beside thinking and calls becomes part of the thinking.
            joins_system: Whether the system's messages at the beginning are joined to one.
            takes_later_system: Whether the template writes a later system's message at its place; otherwise its text
                becomes part of the user's turn beside it.
            takes_developer: Whether the template writes the role "developer"; otherwise it becomes "system".
            needs_ids: Whether the template refuses calls and results without ids, which are given some then.
            call_ids: The form of the ids of calls: text with `{name}` and `{number}`, or `{letters}` for nine letters and
                digits; empty for any id.

        """

@final
class ControlTokens:
    """A matcher for control tokens in the output of templates."""

    def __init__(self, tokens: Sequence[str], exempt: Sequence[str]) -> None:
        """Build the matcher.

        Args:
            tokens: The texts of the control tokens.
            exempt: Those that count as control tokens also where the content of an assistant's message spells them.

        """

@final
class Utf8:
    """A text in valid UTF-8: read-only bytes with the buffer protocol."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int:
        """Return the number of bytes."""

@final
class Rendering:
    """The output of a template, with the origin of each byte.

    Positions are bytes of the output's UTF-8, unless a property says that they are characters.
    """

    @property
    def text(self) -> str:
        """The output as a str, which is made when it is first read."""

    @property
    def utf8(self) -> Utf8:
        """The output in UTF-8, shared and not copied."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The role of each message, in order."""

    @property
    def continued(self) -> str:
        """The text of the field `continued` of the last message, without the tag; empty if no field is continued."""

    @property
    def spans(self) -> list[tuple[int, int, int, int, bool]]:
        """(start, end, origin, offset, changed) of each stretch that one origin wrote, without gaps.

        `origin` is a number, which `origin()` turns into a name. `offset` is the byte of the origin's text at which the
        stretch begins. If `changed`, the text is not that of the origin: escaped, of another case, or a number's digits;
        `offset` is then that of the source of the changed text.
        """

    @property
    def character_spans(self) -> list[tuple[int, int, int, bool]]:
        """(start, end, origin, changed) of each stretch in `spans`, in characters."""

    @property
    def unvouched(self) -> list[tuple[int, int, bool]]:
        """(start, end, answered) of each stretch of untrusted text, in characters.

        That is all text that neither the template wrote nor a trusted variable, such as a special token, or a role.
        `answered`: the stretch comes from the content of an assistant's message.
        """

    @property
    def generation(self) -> list[tuple[int, int]]:
        """(start, end) of each `{% generation %}` block, also of empty ones; blocks within others are left out."""

    @property
    def character_generation(self) -> list[tuple[int, int]]:
        """(start, end) of each block in `generation`, in characters."""

    @property
    def mended(self) -> tuple[str, ...]:
        """Paths of arguments of calls that were no JSON object, and lost text when they were made one."""

    @property
    def left_out(self) -> list[str]:
        """The paths of the nonempty input strings of which the output has no part."""

    @property
    def places(self) -> list[tuple[int, int, int, int]]:
        """(start, end, message, part) of the placeholder of each media part of a message's content.

        Start and end are characters; `message` is the index of the message, `part` that of the part in its content.
        """

    def guarded(self, tokens: ControlTokens) -> tuple[int, ...]:
        """Return the ascending offsets of characters over which no control token may match.

        There is one for each occurrence of a control token that includes untrusted text (see `unvouched`): its first
        untrusted character.
        """

    def cut(self, characters: int) -> None:
        """Truncate the output to its first `characters` characters."""

    @property
    def steps(self) -> int:
        """The number of steps of work that rendering took; the same for every render of the same template and input."""

    def origin(self, index: int) -> str:
        """Return the name of an origin: `template`, `engine` (digits, JSON punctuation), or a path into the variables.

        A path is like `messages[3].tool_calls[0].function.arguments.city`; that of a key ends in ` (key)`. `index` is the
        number of the origin in `spans`.

        Raises:
            IndexError: There is no such origin.

        """
