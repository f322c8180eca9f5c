"""Plans of answers: a request resolved against a template and an engine, before anything is rendered; no I/O.

`chat()`, the server's answers, render and derender all begin with `plan_answer`. A plan says who honours the choice of tools,
what the engine is asked for, how the prompt is rendered, and how the answer's ids are decoded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from tokenweir.encode.errors import ContextLengthError, TemplateError
from tokenweir.encode.per_tokenizer import per_tokenizer
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.media import NO_MEDIA_LIMITS, MediaLimits, check_media, read_media
from tokenweir.stream.chat.thinking_end import ids_to_answer
from tokenweir.stream.decode.options import DecoderOptions, OutputOptions
from tokenweir.stream.events.media import Media
from tokenweir.stream.events.sampling import Sampling
from tokenweir.templates.chat_template import ChatTemplate, HistoryThinking
from tokenweir.templates.messages import Messages
from tokenweir.templates.prompt import Prompt
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.shown import style_of_answer
from tokenweir.templates.styles.tools import Tools
from tokenweir.templates.tool_choice import CALL_LIST, ResolvedToolChoice, ToolChoice, resolve_tool_choice

SHORT_PROMPT = 4000
"""Characters of messages that are rendered and encoded without a thread."""
MESSAGE_CHARACTERS = 100
"""Characters that a message counts as besides its own: a step of the template's loop takes as long as their encoding."""

own_template = per_tokenizer(ChatTemplate.from_tokenizer)
"""Return the template that came with a tokenizer."""

_NO_THINKING = {"enable_thinking": False, "thinking": False}
"""Variables by which templates write a prompt for an answer without thinking."""

_ENFORCED = 'tool_choice "required" or one function would be honoured'


class AnswerRequest(Struct, frozen=True, kw_only=True):
    """A request for an answer, whatever interface it came through.

    Attributes:
        messages: The conversation. Only the template reads it, except media parts, which `read_media` takes out.
        prompt: A text or its ids to continue, in place of messages; thinking and calls stay in the answer's text.
        tools: Functions that the model may call, as JSON schemas.
        tool_choice: Which of them it is to call, as `resolve_tool_choice` takes it.
        parallel_tool_calls: Whether the answer may have several calls; None leaves it to the model.
        template_kwargs: Variables for the template. They win over those that a choice of tools sets.
        output: Options of the decoder that the caller chose.

    """

    messages: Any = None
    prompt: str | list[int] | None = None
    sampling: Sampling = Sampling()
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    template_kwargs: Mapping[str, Any] = {}
    output: OutputOptions = {}


class AnswerPlan(Struct, frozen=True, kw_only=True):
    """A request for an answer, resolved against a template and an engine.

    Attributes:
        template: Renders the messages.
        messages: As in `AnswerRequest`, without the bytes of media.
        media: The media of the messages, in their order.
        prompt: As in `AnswerRequest`.
        tools: The tools to show to the model.
        template_kwargs: Variables for the template, those that the choice of tools sets included.
        history_thinking: Whether thinking tags in an assistant's content are control tokens ("control") or "text".
        sampling: The sampling parameters for the engine, a JSON schema for a choice of tools included.
        decoder_options: Options of the decoder, except the prompt's ids, `max_tokens` and `index`.
        calls_as_json: Whether the engine gets the schema of a list of calls, so that the answer is that list as JSON.
        closes_thinking: Whether the prompt has to end behind the thinking, because the engine holds the answer to a schema
            or a grammar from its first id, which leaves no place for thinking, or because the request asks for none.
        constrained: Whether the engine makes an answer fit a JSON schema.

    """

    template: ChatTemplate
    messages: Any
    media: tuple[Media, ...]
    prompt: str | list[int] | None
    tools: Tools | None
    template_kwargs: dict[str, Any]
    history_thinking: HistoryThinking
    sampling: Sampling
    decoder_options: DecoderOptions
    calls_as_json: bool
    closes_thinking: bool
    constrained: bool

    @property
    def is_short(self) -> bool:
        """Whether the messages are so short that rendering and encoding take less time than handing them to a thread."""
        messages = self.messages
        if isinstance(messages, Messages) and messages.text_size > SHORT_PROMPT:
            return False
        return not self.tools and isinstance(messages, Sequence) and sum(map(_length, messages)) <= SHORT_PROMPT

    def render(self, tokenizer: Tokenizer | None = None) -> Prompt:
        """Render the messages and return the prompt; with a tokenizer, by `ChatTemplate.render_for`.

        If the template takes no tools and the engine constrains the answer to calls, the tools are added to the system
        message.

        Raises:
            TemplateError: The template refuses the messages or takes no tools, or a variable has a reserved name.

        """
        template, tools, messages = self.template, self.tools, self.messages
        if tools and isinstance(tools, Sequence) and "tools" not in template.variables:
            if not self.calls_as_json:
                given = f"the chat template {template.name!r} takes no tools, and {len(tools)} are given"
                raise TemplateError(f"{given}; {_ENFORCED}" if self.constrained else given)
            messages, tools = _with_tools(messages, tools), None
        if taken := _RENDER_ARGUMENTS & self.template_kwargs.keys():
            raise TemplateError(f"a template's variable cannot be called {' or '.join(sorted(taken))}")
        render = template.render if tokenizer is None else partial(template.render_for, tokenizer)
        return render(
            messages,
            tools=tools,
            tidy=True,
            history_thinking=self.history_thinking,
            **self.template_kwargs,
        )

    def answer_opening(self, tokenizer: Tokenizer, prompt_ids: Sequence[int]) -> list[int]:
        """Return the ids to append to the rendered prompt, so that the content of the answer begins behind it.

        Empty unless `closes_thinking`, or if the template has closed the thinking itself.

        Raises:
            TemplateError: The prompt opens thinking that no known markup ends.

        """
        return ids_to_answer(tokenizer, self.template, prompt_ids) if self.closes_thinking else []

    def fit(self, prompt_tokens: int, context_size: int | None, *, most: int | None = None) -> Sampling:
        """Return the plan's sampling with a `max_tokens` that fits the engine's context.

        Args:
            prompt_tokens: The number of ids of the prompt.
            context_size: Most ids of prompt and answer together; None if the engine does not tell.
            most: The `max_tokens` to set at most if the sampling has no `max_tokens`; None for the rest of the context.

        Raises:
            ContextLengthError: Prompt and `max_tokens`, or the prompt alone, do not fit the context; the message gives
                the sizes.

        """
        sampling = self.sampling
        if context_size is None:
            if sampling.max_tokens is None and most is not None:
                return replace(sampling, max_tokens=most)
            return sampling
        if prompt_tokens >= context_size:
            raise ContextLengthError(
                f"the prompt has {prompt_tokens} tokens, and the model's context holds {context_size} at most"
            )
        left = context_size - prompt_tokens
        if sampling.max_tokens is None:
            return replace(sampling, max_tokens=left if most is None else min(most, left))
        if sampling.max_tokens > left:
            raise ContextLengthError(
                f"the prompt has {prompt_tokens} tokens and max_tokens is {sampling.max_tokens}: "
                f"{prompt_tokens + sampling.max_tokens} together, and the model's context holds {context_size} at most"
            )
        return sampling


def plan_answer(
    request: AnswerRequest,
    template: ChatTemplate,
    *,
    engine: object,
    history_thinking: HistoryThinking = "control",
    media_limits: MediaLimits = NO_MEDIA_LIMITS,
) -> AnswerPlan:
    """Resolve a request against a template and an engine; return the plan of its answer.

    Args:
        request: The request.
        template: The template of the engine's model.
        engine: The engine; only its attributes `supports`, `thinks_first` and `media` are read.
        history_thinking: As for `ChatTemplate.render`. It is no part of a request, because a client may have forged
            the history.
        media_limits: Bounds on the media of the request.

    Raises:
        MediaError: A media part is malformed or too large, or template or engine take none.
        TemplateError: The choice of tools is malformed, names an unknown tool, contradicts `grammar`, or cannot
            be honoured by engine or template.

    """
    constrained = "json_schema" in getattr(engine, "supports", ())
    choice = resolve_tool_choice(
        template, request.tools, request.tool_choice, request.parallel_tool_calls, forces=constrained
    )
    sampling = request.sampling
    if choice.json_schema is not None:
        if sampling.grammar is not None:
            raise TemplateError("tool_choice asks for calls, and grammar for an answer of another form")
        # A call leaves no text, so the calls' schema takes the place of the text's.
        sampling = replace(sampling, json_schema=choice.json_schema)
    held = sampling.json_schema is not None or (
        sampling.grammar is not None and not _thinks(sampling.grammar, template)
    )
    held = held and not getattr(engine, "thinks_first", False)
    closes_thinking = request.prompt is None and (held or request.output.get("thinking_budget") == 0)
    messages, media = read_media(request.messages, template, media_limits)
    check_media(media, template, engine)
    return AnswerPlan(
        template=template,
        messages=messages,
        media=media,
        prompt=request.prompt,
        tools=choice.tools,
        template_kwargs=(_NO_THINKING if closes_thinking else {}) | choice.variables | dict(request.template_kwargs),
        history_thinking=history_thinking,
        sampling=sampling,
        decoder_options=_decoder_options(request, choice, template, closes_thinking=closes_thinking),
        calls_as_json=choice.json_schema is not None,
        closes_thinking=closes_thinking,
        constrained=constrained,
    )


def _decoder_options(
    request: AnswerRequest, choice: ResolvedToolChoice, template: ChatTemplate, *, closes_thinking: bool
) -> DecoderOptions:
    """Combine the options of the caller with those that the sampling, the template and the choice of tools imply."""
    sampling = request.sampling
    options = cast(DecoderOptions, dict(request.output))
    options |= {
        "stop": sampling.stop,
        "stop_token_ids": sampling.stop_token_ids,
        "min_tokens": sampling.min_tokens,
        "ignore_eos": sampling.ignore_eos,
    }
    if sampling.logprobs or sampling.top_logprobs:
        options["alignment"] = True
    if options.get("thinking_budget") == 0:
        options["thinking_budget"] = 1  # ends thinking that the model begins all the same
    if request.prompt is not None:
        options.setdefault("reasoning", None)
        options.pop("markup", None)  # no tags are looked for
        return options
    options |= {
        "tools": _declared(choice.tools, request.template_kwargs),
        "parallel_tool_calls": request.parallel_tool_calls is not False,
    }
    if choice.json_schema is not None:
        options |= {"tool_style": CALL_LIST, "markup": "text"}  # the engine holds the answer to calls
        if closes_thinking:
            return options | {"reasoning": None}
    asked = options.get("reasoning", "auto")
    if template.reasoning is not None and asked in ("auto", "strip"):
        options["reasoning"] = replace(style_of(template.reasoning), strip=asked == "strip")
    if options.get("tool_style", "auto") == "auto":
        options["tool_style"] = style_of_answer(template.tool_style, choice.tools)
    return options


def _declared(tools: Tools | None, template_kwargs: Mapping[str, Any]) -> Tools | None:
    """Return the tools whose calls the decoder takes: the request's, and built-in ones that a variable of the template names."""
    names = template_kwargs.get("builtin_tools")
    if not isinstance(tools, list | tuple) or not tools or not isinstance(names, list | tuple):
        return tools
    inner = (part for name in names if isinstance(name, str) for part in _BUILT_IN.get(name, (name,)))
    return [*tools, *({"name": name} for name in inner)]


def _thinks(grammar: str, template: ChatTemplate) -> bool:
    """Return whether a grammar of the whole answer has a tag that ends the thinking, and so describes the thinking, too."""
    return template.reasoning is not None and any(tag in grammar for tag in style_of(template.reasoning).closers)


def _with_tools(messages: Any, tools: Tools) -> Any:
    """Return messages whose system message ends with the tools, as JSON.

    A system message is added if there is no first one of text.
    """
    if not isinstance(messages, Sequence):
        return messages  # the template says what is wrong with them
    listed = "\n".join(json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools)
    text = f"Functions that can be called:\n{listed}"
    first = messages[0] if messages else None
    if isinstance(first, Mapping) and first.get("role") == "system" and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


_BUILT_IN = {"browser": ("browser.search", "browser.open", "browser.find")}
"""Functions of built-in tools of gpt-oss; other tools have one function, of their own name."""

_RENDER_ARGUMENTS = {"self", "messages", "tools", "tidy", "history_thinking"}
"""Arguments of `ChatTemplate.render` that a plan sets."""


def _length(message: Any) -> int:
    """Return the characters of a message with only role and text, plus `MESSAGE_CHARACTERS`.

    For any other message, return more than `SHORT_PROMPT`.
    """
    if isinstance(message, Mapping) and message.keys() <= {"role", "content"}:
        content = message.get("content", "")
        if isinstance(content, str):
            return MESSAGE_CHARACTERS + len(content)
    return SHORT_PROMPT + 1
