"""A renderer for the library `renderers` that works with any chat template. Written for the protocol of renderers 0.1.12."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tokenweir.encode.errors import TemplateError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.integrations.turns import Continuation, Message, Turns, turns
from tokenweir.stream.chat.message import AssistantMessage
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import Channel, ToolCallDelta
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.shown import style_of_answer
from tokenweir.templates.styles.tools import Tools


class TemplateRenderer(Turns):
    """Implementation of `renderers.base.Renderer` over any chat template.

    The library's renderers each know one family of models. This one finds the message of each id by the origins of the
    rendered text.

    Attributes:
        declined: The reason why the last `bridge_to_next_turn` returned None; None after one that returned ids.

    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate | None = None,
        *,
        keep_thinking: bool = False,
        **template_kwargs: Any,
    ) -> None:
        """Create a renderer for a model's tokenizer and template.

        Args:
            tokenizer: The tokenizer.
            template: The template; None takes the tokenizer's own.
            keep_thinking: Let `bridge_to_next_turn` return ids even if the template would drop the answer's thinking.
                By default it returns None in that case.
            **template_kwargs: Further arguments of `ChatTemplate.render`.

        Raises:
            TemplateError: No template is given and none came with the tokenizer.

        """
        super().__init__(tokenizer, template, keep_thinking, template_kwargs)
        self.declined: str | None = None

    def render(
        self, messages: Sequence[Message], *, tools: Tools | None = None, add_generation_prompt: bool = False
    ) -> Any:
        """Render and encode messages.

        Return `renderers.base.RenderedTokens`: ids, each with its message and with flags for content and sampled ids.

        Raises:
            TemplateError: The template refuses the messages, or rendering exceeds a bound.

        """
        found = turns(self._prompt(messages, tools, add_generation_prompt), self._tokenizer, self._opening)
        names = {call.get("id"): _function(call).get("name") for m in messages for call in m.get("tool_calls") or ()}
        from renderers.base import RenderedTokens

        return RenderedTokens(
            token_ids=found.ids,
            message_indices=found.messages,
            sampled_mask=found.sampled,
            is_content=found.content,
            message_roles=[str(message.get("role", "")) for message in messages],
            message_tool_names=[
                message.get("name") or names.get(message.get("tool_call_id")) if message.get("role") == "tool" else None
                for message in messages
            ],
        )

    def render_ids(
        self, messages: Sequence[Message], *, tools: Tools | None = None, add_generation_prompt: bool = False
    ) -> list[int]:
        """Render and encode messages; return the ids.

        Raises:
            TemplateError: The template refuses the messages, or rendering exceeds a bound.

        """
        return self._prompt(messages, tools, add_generation_prompt).encode(self._tokenizer)

    def parse_response(
        self, token_ids: Sequence[int], *, tools: Tools | None = None, prompt_ids: Sequence[int] | None = None
    ) -> Any:
        """Decode the ids of an answer; return `renderers.base.ParsedResponse` (content, reasoning, tool calls).

        Raises:
            TokenIdError: An id is outside the vocabulary.

        """
        from renderers.base import ParsedResponse, ParsedToolCall, ToolCallParseStatus

        content, thinking, calls, closed = self._parsed(token_ids, tools, prompt_ids or ())
        return ParsedResponse(
            content=content,
            reasoning_content=thinking or None,
            tool_calls=[
                ParsedToolCall(
                    raw=arguments,
                    name=name,
                    arguments=json.loads(arguments) if complete else arguments,
                    status=ToolCallParseStatus.OK if complete else ToolCallParseStatus.INVALID_JSON,
                )
                for name, arguments, complete in calls
            ],
            reasoning_complete=None if self._template.reasoning is None else closed,
        )

    def get_stop_token_ids(self) -> list[int]:
        """Return the ids of the end tokens, each of which ends an answer, ascending."""
        return sorted(self._tokenizer.eos_ids)

    def bridge_to_next_turn(
        self,
        previous_prompt_ids: Sequence[int],
        previous_completion_ids: Sequence[int],
        new_messages: Sequence[Message],
        *,
        tools: Tools | None = None,
    ) -> Any:
        """Return `RenderedTokens` of the earlier prompt and answer, unchanged, and the ids of new messages behind them.

        The new ids are those that the template writes behind the decoded answer, rendered after a stand-in system
        message and question.

        Returns:
            None, with the reason in `declined`, if the template writes an earlier message or the tools behind the
            answer, drops the answer's thinking, or closes the answer by another token than the model sampled.

        """
        found = self._bridged(list(previous_prompt_ids), list(previous_completion_ids), new_messages, tools)
        self.declined = found if isinstance(found, str) else None
        if isinstance(found, str):
            return None
        from renderers.base import RenderedTokens

        before = [*previous_prompt_ids, *previous_completion_ids]
        ids = before + found.ids
        return RenderedTokens(
            token_ids=ids,
            message_indices=[-1] * len(before) + found.messages,
            sampled_mask=[False] * len(ids),
            is_content=[False] * len(before) + found.content,
            message_roles=[str(message.get("role", "")) for message in new_messages],
            message_tool_names=[message.get("name") for message in new_messages],
        )

    def _bridged(
        self, prompt_ids: list[int], completion_ids: list[int], new: Sequence[Message], tools: Tools | None
    ) -> Continuation | str:
        if not prompt_ids or not completion_ids:
            return "there is no prompt or no answer"
        content, thinking, calls, closed = self._parsed(completion_ids, tools, prompt_ids)
        if not closed:
            return "the answer ends inside its thinking"
        if not all(complete for _, _, complete in calls):
            return "a call of the answer is not complete"
        answer: dict[str, Any] = {"role": "assistant", "content": content}
        if thinking:
            answer["reasoning_content"] = thinking
        ids = [message.get("tool_call_id") for message in new if message.get("role") == "tool"]
        if calls:
            answer["tool_calls"] = [
                {
                    "type": "function",
                    "id": given or f"call{place:05}",
                    "function": {"name": name, "arguments": json.loads(text)},
                }
                for place, ((name, text, _), given) in enumerate(zip(calls, [*ids, *[None] * len(calls)], strict=False))
            ]
        question = {"role": "user", "content": "question"}
        reason = ""
        for before in ([{"role": "system", "content": "system"}, question], [question]):
            found = self._continuation([*before, answer], new, tools, completion_ids)
            if isinstance(found, Continuation) or found.startswith("the template"):
                return found
            reason = reason or found
        return reason

    @cached_property
    def _opening(self) -> list[int]:
        """The ids of the generation prompt; empty if a prompt with it does not begin with the prompt without it."""
        user = [{"role": "user", "content": "question"}]
        before, after = self.render_ids(user), self.render_ids(user, add_generation_prompt=True)
        return after[len(before) :] if after[: len(before)] == before else []

    @cached_property
    def is_prefix_stable(self) -> bool:
        """Whether the ids of a conversation that ends with an answer are a prefix of those with more messages.

        Tested on sample conversations, so True is no proof. Samples that the template refuses with `TemplateError` are
        skipped; the result is True if it refuses all of them.
        """
        for messages, following in _samples():
            try:
                before = self.render_ids(messages)
                after = self.render_ids([*messages, *following])
            except TemplateError:
                continue  # the template has no such conversations
            if after[: len(before)] != before:
                return False
        return True

    def _parsed(
        self, ids: Sequence[int], tools: Tools | None, prompt_ids: Sequence[int]
    ) -> tuple[str, str, list[tuple[str, str, bool]], bool]:
        """Decode the ids of an answer.

        Returns:
            The text, the thinking, each call as (name, arguments, whether it is complete), and whether the thinking is
            closed.

        """
        style = self._template.reasoning
        decoder = ChatDecoder(
            self._tokenizer,
            prompt_ids=prompt_ids,
            reasoning=None if style is None else style_of(style),
            tool_style=style_of_answer(self._template.tool_style, tools or [{"name": "any"}]),
            tools=tools,
        )
        deltas = decoder.feed(list(ids))
        closed = decoder.finished or decoder.channel is not Channel.REASONING
        deltas += decoder.finish()
        message = AssistantMessage.of(deltas).as_dict()
        complete = {delta.call for delta in deltas if isinstance(delta, ToolCallDelta) and delta.complete}
        functions = enumerate(call["function"] for call in message.get("tool_calls", ()))
        calls = [(function["name"], function["arguments"], number in complete) for number, function in functions]
        return message["content"], message.get("reasoning_content", ""), calls, closed


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function", call)
    return function if isinstance(function, Mapping) else {}


def _samples() -> list[tuple[list[Message], list[Message]]]:
    """Return sample conversations that end with an answer, each with messages to append."""
    user, later = {"role": "user", "content": "First question?"}, {"role": "user", "content": "Second question?"}
    plain = {"role": "assistant", "content": "First answer."}
    function = {"name": "get_weather", "arguments": {"city": "Paris"}}
    calls = [{"id": "call00000", "type": "function", "function": function}]
    result = {"role": "tool", "name": "get_weather", "tool_call_id": "call00000", "content": "Sunny."}
    last = {"role": "assistant", "content": "It is sunny."}
    system = {"role": "system", "content": "Be brief."}
    found: list[tuple[list[Message], list[Message]]] = []
    for thinking in ({}, {"reasoning_content": ""}, {"reasoning_content": "First reasoning."}):
        for before in ([user], [system, user]):
            found.append(([*before, plain | thinking], [later]))
            found.append(([*before, plain | thinking], [later, last | thinking]))
            found.append(([*before, plain | thinking | {"tool_calls": calls}], [result, last | thinking]))
            found.append(([*before, plain | thinking | {"tool_calls": calls}, result, last | thinking], [later]))
    return found
