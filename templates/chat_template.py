"""Chat templates: messages in, a prompt out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, Self, get_args

from tokenweir.encode.base.options import refuse_texts
from tokenweir.encode.errors import TemplateError
from tokenweir.encode.formats.programs import prompt_programs
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer
from tokenweir.encode.values.texts import several_texts
from tokenweir.templates._native import ControlTokens, MessageForm, Template
from tokenweir.templates.capabilities import TemplateCapabilities
from tokenweir.templates.continuation import TAG, cut_at_tag
from tokenweir.templates.files import read_template_files
from tokenweir.templates.guard import guard_of, search_for
from tokenweir.templates.messages import ROLES, Messages
from tokenweir.templates.probes import ArgumentForm
from tokenweir.templates.prompt import Prompt
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import ReasoningStyle
from tokenweir.templates.styles.response_template import NAME, reasoning_of, tool_style_of_template
from tokenweir.templates.styles.shown import content_tags, shown_reasoning, shown_tools

# What control tokens look like, for templates whose tokenizer is not known.
_TOKEN_FORMS = re.compile(
    r"<[^\s<>{}'\"]{1,40}>|\[/?[A-Za-z_]*[A-Z]{2}[A-Z_]*\]"
    r"|[\[\]][!a-z]?~[!a-z]{0,2}[\[\]]|\]<\][a-z]{1,40}\[>\["  # MiniMax's
)

_OWN_ROLES = re.compile(r"(?<=['\"])ipython(?=['\"])")
"""Roles that count where a template compares them: Llama's name of a tool."""

HistoryThinking = Literal["control", "text"]
"""Whether thinking tags in an assistant's content are control tokens or text."""
_HISTORY_THINKING = get_args(HistoryThinking)

_MAX_UNPICKLED = 32
"""Templates that a process keeps of those that it got by unpickling, so that each is compiled once."""


class ChatTemplate:
    """A Jinja chat template with HuggingFace's conventions, guarded against control tokens in user text.

    The same messages render to the same text as with `transformers` 5.24, with two exceptions: content parts are joined
    with line feeds for templates that do not loop over them, and tool-call arguments are given in the form that the
    template takes, JSON text or an object (vLLM parses text, too).

    Objects are immutable and may be shared between threads.

    Attributes:
        source: The Jinja source.
        name: The template's name among those of its model, such as "default".
        special_tokens: Template variables such as `bos_token`, and their text.
        control_tokens: The texts of the control tokens known to the template: those that it was given, or else those
            found in its source.
        variables: The names of the variables that the template reads, `messages` and the special tokens included.
        marks_generation: Whether the source marks by `{% generation %}` what a model generates.
        response_template: The model's `response_template`, which describes its answers; None without one.

    """

    def __init__(
        self,
        source: str,
        *,
        special_tokens: Mapping[str, str] | None = None,
        name: str = "default",
        control_tokens: Iterable[str] | None = None,
        guard: bool = True,
        extra_roles: Iterable[str] = (),
        clock: Callable[[], datetime] = datetime.now,
        response_template: Mapping[str, object] | None = None,
    ) -> None:
        """Compile a template.

        Args:
            source: Jinja source. It comes with a model: never take one from a request.
            special_tokens: Template variables such as `bos_token`, and their text.
            name: The template's name among those of its model, for error messages.
            control_tokens: Control tokens of the model, for `Prompt.segments`; None: those found in the source. When a
                prompt is encoded, all control tokens of the tokenizer are guarded against, whatever is given here.
            guard: Whether user text is kept from becoming control tokens. False only for messages that are trusted
                throughout.
            extra_roles: Roles to accept beside system, developer, user, assistant, tool and function.
            clock: Returns the time that the template's `strftime_now` formats.
            response_template: The model's `response_template` in the form of transformers, which describes its answers: the
                first source of `reasoning` and `tool_style`.

        Raises:
            TemplateError: The source is too long or not valid.
            TypeError: The source is no str, `control_tokens` or `extra_roles` are not several texts, or another argument is
                of the wrong type.

        """
        if not isinstance(source, str):
            raise TypeError(f"a template's source is a str, not {type(source).__name__}; from_file() reads one")
        control_tokens = None if control_tokens is None else several_texts("control_tokens", control_tokens)
        extra_roles = several_texts("extra_roles", extra_roles)
        refuse_texts(guard=guard)
        if not callable(clock):
            raise TypeError(f"clock must be a function, not {type(clock).__name__}")
        self.source = source
        self.name = name
        self.special_tokens = _names_and_texts(special_tokens)
        self._given = (
            ("control_tokens", control_tokens),
            ("guard", guard),
            ("extra_roles", extra_roles),
            ("clock", clock),
            ("response_template", json.dumps(response_template)),
        )
        self._filename = f"chat template {name!r}"
        self._template = Template(source, self._filename)
        self.variables = self._template.variables
        self.marks_generation = self._template.marks_generation
        if control_tokens is None:
            roles = (token for token in self.special_tokens.values() if len(token) > 1)
            control_tokens = dict.fromkeys((*roles, *token_forms(source)))
        self.control_tokens = tuple(control_tokens)
        self._guards = guard
        self._roles = ROLES | frozenset(extra_roles) | frozenset(_OWN_ROLES.findall(source))
        self._clock = clock
        self.response_template = response_template
        self._capabilities = TemplateCapabilities(self._template, source, self.special_tokens, clock)

    def __repr__(self) -> str:
        return f"ChatTemplate({self.name}, {len(self.source)} characters, reads {', '.join(sorted(self.variables))})"

    def __reduce__(self) -> tuple[Callable[..., ChatTemplate], tuple[object, ...]]:
        return _unpickled, (type(self), self.source, tuple(self.special_tokens.items()), self.name, self._given)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        name: str = "default",
        special_tokens: Mapping[str, str] | None = None,
        control_tokens: Iterable[str] | None = None,
        **options: Any,
    ) -> Self:
        """Load a `.jinja` file, or a template of a GGUF file or model folder.

        In a folder `chat_template.jinja` and `additional_chat_templates/*.jinja` come first, then the `chat_template`
        of `tokenizer_config.json`: one source, or a list of named ones. For a folder without a template that has DeepSeek
        V3.2's program `encoding_dsv32.py`, this package has a template that writes the same prompts.

        Args:
            path: The file or folder.
            name: Which template, where there are several; `tool_use` and `rag` are common.
            special_tokens: Template variables such as `bos_token`, and their text, instead of those in the files.
            control_tokens: The texts of control tokens, instead of those in the files.
            **options: As for `ChatTemplate`.

        Raises:
            TemplateError: There is no such template, or it is not valid.
            TokenizerFileError: A file cannot be read.

        """
        path = Path(path)
        files = read_template_files(path)
        if not files.templates and (programs := prompt_programs(path)):
            program = programs[0].relative_to(path).as_posix()
            raise TemplateError(
                f"{path} has no chat template: its prompts are written by the program {program}, and no code of models is run"
            )
        return cls(
            _choose(files.templates, name, str(path)),
            name=name,
            special_tokens=files.special_tokens if special_tokens is None else special_tokens,
            control_tokens=files.control_tokens if control_tokens is None else control_tokens,
            **{"response_template": files.response_template} | options,
        )

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, *, name: str = "default", **options: Any) -> Self:
        """Compile the template in a tokenizer's files, with the tokenizer's control tokens.

        Args:
            tokenizer: The model's tokenizer.
            name: Which template, where there are several.
            **options: As for `ChatTemplate`.

        Raises:
            TemplateError: The tokenizer came without such a template, or it is not valid.

        """
        check_tokenizer(tokenizer)
        source = _choose(tokenizer.spec.chat_templates, name, "the tokenizer")
        options.setdefault("special_tokens", tokenizer.spec.special_roles)
        options.setdefault("control_tokens", tokenizer.control_texts)
        options.setdefault("response_template", tokenizer.spec.response_template)
        return cls(source, name=name, **options)

    @property
    def content_format(self) -> Literal["parts", "string"]:
        """`"parts"` if the template loops over content parts, else `"string"`."""
        return self._capabilities.content_format

    @property
    def argument_form(self) -> ArgumentForm:
        """The form of the arguments of calls that the template takes: `"object"`, `"text"` (JSON), or `"either"`."""
        return self._capabilities.argument_form

    @property
    def takes_later_system(self) -> bool:
        """Whether the template writes a system message that follows other messages, at its place among them."""
        return self._capabilities.takes_later_system

    @property
    def is_prefix_stable(self) -> bool:
        """Whether a rendered conversation stays a prefix of its later renders, with the template's default variables.

        It does not with many templates, which drop the thinking of earlier answers once a user speaks again. From that
        place on an engine's prefix cache is of no use.
        """
        return self._capabilities.is_prefix_stable

    @property
    def thinking_end(self) -> str:
        """The text that the template writes between the thinking and the content of an answer; empty if it writes none."""
        return self._capabilities.thinking_end

    @cached_property
    def reasoning(self) -> str | ReasoningStyle | None:
        """The style of the thinking that the template shows, such as `"think"`; None if it shows none.

        A model's `response_template` takes precedence. A style that it alone describes is an object rather than a name.
        """
        if (style := reasoning_of(self.response_template)) is not None:
            return style if style.name == NAME else style.name
        return shown_reasoning(self._capabilities.shown)

    @cached_property
    def tool_style(self) -> str | ToolStyle | None:
        """The style of the tool calls that the template shows, such as `"hermes"`; None if it shows none."""
        if (style := tool_style_of_template(self.response_template)) is not None:
            return style if style.name == NAME else style.name
        return shown_tools(self._capabilities.shown)

    @cached_property
    def _thinking_tags(self) -> tuple[str, ...]:
        return content_tags(self.source)

    @cached_property
    def _form(self) -> MessageForm:
        return MessageForm(
            roles=self._roles,
            takes_parts=self.content_format == "parts",
            arguments=self.argument_form,
            special_tokens=self.special_tokens,
        )

    def render(
        self,
        messages: Sequence[Mapping[str, Any]] | Messages,
        *,
        add_generation_prompt: bool | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        continue_final_message: bool | str = False,
        find_generated: bool = False,
        tidy: bool = False,
        history_thinking: HistoryThinking = "control",
        **variables: Any,
    ) -> Prompt:
        """Render a conversation.

        Args:
            messages: Mappings or pydantic models with `role` and `content` (a string, a list of parts, or None), and
                other fields that the template reads: `tool_calls`, `reasoning_content`... Fields that are None count as
                absent. A `Messages` object is read once and serves any number of renders.
            add_generation_prompt: End with the opening of the assistant's turn; by default yes, unless the final
                message is continued.
            tools: JSON schemas of functions.
            documents: Documents, for templates that quote from them.
            continue_final_message: End inside the last message so that the model continues it: True continues its
                `content`, a string names another field.
            find_generated: Set `Prompt.generated` to the text between `{% generation %}` and `{% endgeneration %}`.
            tidy: Bring the history into the form that the template takes first, which transformers does not, and `chat()` and
                the server do: arguments of calls, the order of results, contents, ids. The rules are a table in
                `docs/reference/templates.md`. A tidy history renders as without it.
            history_thinking: `"control"`: thinking tags in an assistant's content are control tokens, because templates
                search for them; `"text"`: they are text, as in all other input.
            **variables: Variables of the template, such as `enable_thinking`; see `ChatTemplate.variables`.

        Raises:
            TemplateError: The messages are not as above, the template raises an error (whose words the message has), or
                rendering exceeds a bound of work, size or depth.
            TextError: A string has a lone surrogate.

        """
        return self._render(
            None,
            messages,
            None,
            variables,
            add_generation_prompt,
            tools,
            documents,
            continue_final_message,
            find_generated,
            tidy,
            history_thinking,
        )

    def render_for(
        self,
        tokenizer: Tokenizer,
        messages: Sequence[Mapping[str, Any]] | Messages,
        earlier: Prompt | None = None,
        /,
        **options: Any,
    ) -> Prompt:
        """Render a conversation for one tokenizer.

        The prompt is that of `render`. The tokenizer's control tokens are searched for at once, so that
        `Prompt.guarded_for` need not search the text again.

        Args:
            tokenizer: The model's tokenizer.
            messages: As for `render`.
            earlier: A prompt for the same tokenizer that is likely to begin as this one. Its beginning is not searched again.
            **options: As for `render`.

        Raises:
            TemplateError: The template refuses the messages, or rendering exceeds a bound.
            TextError: A string has a lone surrogate.

        """
        check_tokenizer(tokenizer)
        named = [options.pop(name, default) for name, default in _RENDER_DEFAULTS.items()]
        return self._render(tokenizer, messages, earlier, options, *named)

    # Arguments go by place: passing them by name would cost a fifth of the render of a short chat.
    def _render(
        self,
        tokenizer: Tokenizer | None,
        messages: Sequence[Mapping[str, Any]] | Messages,
        earlier: Prompt | None,
        variables: dict[str, Any],
        add_generation_prompt: bool | None,
        tools: Sequence[Mapping[str, Any]] | None,
        documents: Sequence[Mapping[str, Any]] | None,
        continue_final_message: bool | str,
        find_generated: bool,
        tidy: bool,
        history_thinking: HistoryThinking,
        /,
    ) -> Prompt:
        if "chat_template" in variables:
            raise TemplateError("chat_template is not a variable: a template is never taken from a request")
        if continue_final_message and add_generation_prompt:
            raise TemplateError("continue_final_message and add_generation_prompt exclude each other")
        if find_generated and continue_final_message:
            raise TemplateError("continue_final_message and find_generated exclude each other")
        if find_generated and not self.marks_generation:
            raise TemplateError(f"{self._filename} has no {{% generation %}}, which says what a model generates")
        field = "content" if continue_final_message is True else continue_final_message or None
        if field is not None and not isinstance(field, str):
            raise TemplateError(f"continue_final_message must be a bool or a field's name, not {type(field).__name__}")
        if add_generation_prompt is None:
            add_generation_prompt = field is None
        if history_thinking not in _HISTORY_THINKING:
            raise TemplateError(f"history_thinking must be 'control' or 'text', not {history_thinking!r}")

        exempt = self._thinking_tags if history_thinking == "control" else ()
        rendering = self._template.render_chat(
            messages,
            self._form,
            variables,
            tools,
            documents,
            bool(add_generation_prompt),
            self._clock,
            self._capabilities.history if tidy else None,
            field,
            TAG,
            self.source,
            self._search(tokenizer, exempt) if self._guards else None,
            None if earlier is None else earlier.rendering,
        )
        if field is not None:
            rendering.cut(len(cut_at_tag(rendering.text, rendering.continued)))
        return Prompt(
            "",
            None if self._guards else (),
            self.control_tokens,
            tuple(rendering.character_generation) if find_generated else (),
            rendering=rendering,
            exempt=exempt,
        )

    def _search(self, tokenizer: Tokenizer | None, exempt: tuple[str, ...]) -> ControlTokens:
        """Return the matcher for the control tokens of a tokenizer; without one, for those known to the template.

        `exempt` are the control tokens that count also in an assistant's content.
        """
        return search_for(self.control_tokens, exempt) if tokenizer is None else guard_of(tokenizer).search(exempt)


_RENDER_DEFAULTS: dict[str, Any] = ChatTemplate.render.__kwdefaults__ or {}
"""The options of `render` that are no variables, in their order."""


@lru_cache(maxsize=_MAX_UNPICKLED)
def _unpickled(
    kind: type[ChatTemplate],
    source: str,
    special_tokens: tuple[tuple[str, str], ...],
    name: str,
    given: tuple[tuple[str, Any], ...],
) -> ChatTemplate:
    """Compile the template that a pickle describes; `given` are the other arguments of the constructor."""
    options = dict(given)
    options["response_template"] = json.loads(options["response_template"])
    return kind(source, special_tokens=dict(special_tokens), name=name, **options)


def token_forms(text: str) -> list[str]:
    """Return the parts of a template's text that look like control tokens."""
    return _TOKEN_FORMS.findall(text)


def _choose(templates: Mapping[str, str], name: str, owner: str) -> str:
    if not templates:
        raise TemplateError(f"{owner} has no chat template")
    if name not in templates:
        raise TemplateError(f"{owner} has no chat template {name!r}; it has {', '.join(sorted(templates))}")
    return templates[name]


def _names_and_texts(special_tokens: object) -> dict[str, str]:
    """Check special tokens; return them as a new dict of names to texts, empty for None.

    Raises:
        TypeError: The argument is neither None nor a mapping of names to texts.

    """
    if not isinstance(special_tokens, Mapping | None):
        raise TypeError(f"special_tokens must be a mapping of names to texts, not {type(special_tokens).__name__}")
    found = dict(special_tokens or {})
    for name, text in found.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"special_tokens must map names to texts, and has {name!r:.80}: {text!r:.80}")
    return found
