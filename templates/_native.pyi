"""The engine of chat templates: Jinja2 as transformers configures it, with an origin for every byte of the output."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Literal, final, overload

@final
class Template:
    """A parsed template. Objects never change, and threads may share them."""

    def __init__(self, source: str, name: str = "template") -> None:
        """Parse a template.

        Args:
            source: The Jinja source, of 1 MiB at most.
            name: The beginning of error messages.

        Raises:
            TemplateError: The source does not parse; the message has the line.

        """

    @property
    def variables(self) -> frozenset[str]:
        """Names that the template may read from the input; functions such as `range` are left out."""

    @property
    def iterates_over_content(self) -> bool:
        """Whether some loop is over a message's content, which is a list of parts then."""

    @property
    def argument_form(self) -> Literal["object", "text", "either"]:
        """The form in which the template takes the arguments of tool calls; "text" is JSON."""

    @property
    def marks_generation(self) -> bool:
        """Whether the template has a `{% generation %}` block."""

    def render(
        self,
        variables: Mapping[str, object] | bytes,
        *,
        now: datetime | None = None,
        vouched: AbstractSet[str] = frozenset(),
    ) -> Rendering:
        """Render the template. The GIL is released while it runs.

        Args:
            variables: The variables, or the JSON of an object of them. Values are str, int, float, bool, None, lists,
                tuples, mappings with str keys, and models with a method `model_dump`.
            now: The time that `strftime_now` tells, by default the local time.
            vouched: Names of variables whose text counts as the template's.

        Raises:
            TemplateError: The template fails, with its line; a bound is exceeded; or a value is none of these, with its path.
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
        call_ids: str = "",
        part_calls: bool = False,
        continued: str | None = None,
        tag: str = "",
        source: str = "",
        tokens: ControlTokens | None = None,
        earlier: Rendering | None = None,
    ) -> Rendering:
        """Render a conversation. The GIL is released, except while Python objects are read.

        Args:
            messages: The messages, which are checked and given to the template in its form.
            form: The form.
            variables: Other variables.
            tools: JSON schemas of functions.
            documents: Documents.
            add_generation_prompt: The variable of this name.
            clock: Tells the time, if the template asks for it.
            call_ids: The form of ids of calls, with `{name}` and `{number}`; empty leaves them as they are.
            part_calls: Give calls a message of their own, whose content is None.
            continued: A field of the last message, to which `tag` is appended.
            tag: The tag.
            source: The template's source, which must read that field.
            tokens: Control tokens to search for at once, so that `guarded` with them need not search the text again.
            earlier: Another rendering. What the text has in common with it is not searched again, if it was searched for
                the same `tokens`.

        Raises:
            TemplateError: As `render`; or the messages, tools or documents are not as `ChatTemplate.render` takes them.
            TextError: A string has a lone surrogate.

        """

class Messages:
    """Messages that are read once, for any number of renders. Objects never change, and threads may share them.

    A sequence: an item is a message as a new dict.
    """

    def __init__(self, messages: Sequence[Mapping[str, object]] | Sequence[object]) -> None:
        """Read messages.

        Args:
            messages: Mappings or pydantic models; `check` looks at their roles and contents, as each render does.

        Raises:
            TemplateError: One of them is neither, or has a value that is no JSON; the message has its path.
            TextError: A string has a lone surrogate.

        """

    @staticmethod
    def from_json(json: bytes) -> Messages:
        """Read the JSON of a list of messages. The GIL is released meanwhile.

        Args:
            json: The text, in UTF-8.

        Raises:
            TemplateError: It is no JSON, or not a list of objects.
            TextError: A string has a lone surrogate.

        """

    @staticmethod
    def from_chat_json(json: bytes, most_items: int) -> Messages | None:
        """Read the messages of a Chat Completions request, as `chat_messages` of the server gives them to templates.

        Args:
            json: The JSON of the list.
            most_items: Most messages, content parts and calls.

        Returns:
            The messages; None if they are not plain: not as they should be, too many, or with parts that are not text. The
            server's own reader looks at them then.

        """

    def check(self, roles: AbstractSet[str]) -> None:
        """Check the roles, contents and calls.

        Args:
            roles: The roles to accept.

        Raises:
            TemplateError: One of them is not as `ChatTemplate.render` takes it.

        """

    @property
    def digests(self) -> tuple[bytes, ...]:
        """For each message 16 bytes that tell it from all others; the order of keys counts."""

    @property
    def text_digests(self) -> tuple[int, ...]:
        """For each message a hash of its texts, without those of calls. Of a long text it has the length and three samples."""

    def text_chain(self, start: int) -> tuple[int, ...]:
        """Return a hash of each prefix of the conversation, the empty one included, by `text_digests`.

        Args:
            start: The hash of all that comes before the messages, of 64 bits with a sign.

        """

    @property
    def text_size(self) -> int:
        """Bytes of UTF-8 of all strings but keys."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...

@final
class GrowingMessages(Messages):
    """The messages of a list that grows, of which each is read once. None at first; not to be shared between threads."""

    def __init__(self) -> None: ...
    def read(self, messages: Sequence[Mapping[str, object]] | Sequence[object]) -> None:
        """Become the messages of a sequence.

        What is read is the messages behind those of the last call, if these are the same objects with the same content, and
        all messages otherwise.

        Args:
            messages: As for `Messages`.

        Raises:
            TemplateError: As `Messages`; there are no messages then.
            TextError: As `Messages`.

        """

def read_tools(tools: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Check and copy tools: mappings that each describe a function by its name.

    Args:
        tools: The tools.

    Raises:
        TemplateError: They are anything else. Python functions are refused: their JSON schema is wanted.
        TextError: A string has a lone surrogate.

    """

@final
class MessageForm:
    """The form in which a template gets messages."""

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
            takes_parts: Leave a content of parts as it is; else their texts are joined with line feeds.
            arguments: The form of the arguments of calls.
            special_tokens: Variables and their texts, which count as the template's.

        """

@final
class ControlTokens:
    """A search for control tokens in the output of templates."""

    def __init__(self, tokens: Sequence[str], exempt: Sequence[str]) -> None:
        """Build the search.

        Args:
            tokens: The texts of the control tokens.
            exempt: Those that count also in the content of an assistant's message.

        """

@final
class Utf8:
    """A text in valid UTF-8: read-only bytes with the buffer protocol."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int:
        """Return the number of bytes."""

@final
class Rendering:
    """The output of a template. Positions are bytes of the output's UTF-8, unless a name has `character`."""

    @property
    def text(self) -> str:
        """The output, decoded when it is first asked for."""

    @property
    def utf8(self) -> Utf8:
        """The output in UTF-8, shared and not copied."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the messages."""

    @property
    def continued(self) -> str:
        """The text of the field that is continued, without the tag; empty for other renders."""

    @property
    def spans(self) -> list[tuple[int, int, int, int, bool]]:
        """(start, end, origin, offset, changed) of each stretch that one origin wrote, without gaps.

        `origin` is an argument of `origin()`. `offset` is in bytes of the origin's text, where the stretch begins. If
        `changed`, the text is not that of the origin: escaped, of another case, or a number's digits; `offset` tells then
        where the changed text began.
        """

    @property
    def character_spans(self) -> list[tuple[int, int, int, bool]]:
        """(start, end, origin, changed) of the same stretches."""

    @property
    def unvouched(self) -> list[tuple[int, int, bool]]:
        """(start, end, answered) of the stretches that neither the template wrote nor anyone vouches for, in characters.

        `answered`: in the content of an assistant's message.
        """

    @property
    def generation(self) -> list[tuple[int, int]]:
        """Start and end of each `{% generation %}` block, also of empty ones; blocks within others are left out."""

    @property
    def character_generation(self) -> list[tuple[int, int]]:
        """Start and end of the same blocks."""

    @property
    def left_out(self) -> list[str]:
        """Paths of the strings of the input, empty ones not counted, that the output has nothing of."""

    @property
    def places(self) -> list[tuple[int, int, int, int]]:
        """(start, end, message, part) of what the template wrote for media parts of contents, in characters."""

    def guarded(self, tokens: ControlTokens) -> tuple[int, ...]:
        """Offsets in characters, ascending, over which no control token may match.

        There is one for each occurrence of a control token that is not wholly the template's, or vouched for: its first
        character that is not.
        """

    def cut(self, characters: int) -> None:
        """Keep only so many characters of the output."""

    @property
    def steps(self) -> int:
        """The work that was counted, which the same template and input always take."""

    def origin(self, index: int) -> str:
        """The name of an origin: `template`, `engine` (digits, JSON punctuation), or a path into the variables.

        A path is like `messages[3].tool_calls[0].function.arguments.city`; that of a key ends in ` (key)`.

        Raises:
            IndexError: There is no such origin.

        """
