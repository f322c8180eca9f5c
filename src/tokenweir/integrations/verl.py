"""A builder of continuous token streams for verl that works with any chat template.

Written for the interface of verl 0.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.integrations.turns import Continuation, Message, Turns
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.styles.tools import Tools


@dataclass(frozen=True)
class MergeResult:
    """Ids of a conversation after ids were appended, with the fields of verl's class of this name.

    Attributes:
        token_ids: All ids.
        appended_token_count: The number of appended ids, without `inserted_token_ids`.
        kind: The source of the appended ids: "assistant" for an answer, "context" for other messages.
        inserted_token_ids: Ids before the appended ones that no model sampled: the end token of an answer that was cut short.
        removed_prefix_token_count: Always 0; earlier ids stay.

    """

    token_ids: list[int]
    appended_token_count: int
    kind: Literal["assistant", "context"] = "context"
    inserted_token_ids: list[int] = field(default_factory=list)
    removed_prefix_token_count: int = 0


class TokenBuilder(Turns):
    """Builder of the ids of a growing conversation.

    It has the methods of verl's `ContinuousTokenBuilder` that an agent loop calls.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate | None = None,
        *,
        keep_thinking: bool = True,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a builder for a model's tokenizer and template.

        Args:
            tokenizer: The tokenizer.
            template: The template; None takes the tokenizer's own.
            keep_thinking: Append messages to an answer also if the template would drop its thinking, as verl does.
            chat_template_kwargs: Further arguments of `ChatTemplate.render`.

        Raises:
            TemplateError: No template is given and none came with the tokenizer.

        """
        super().__init__(tokenizer, template, keep_thinking, dict(chat_template_kwargs or {}))

    def build_initial_tokens(self, messages: Sequence[Message], *, tools: Tools | None = None) -> list[int]:
        """Render the first prompt, with the generation prompt; return its ids.

        Raises:
            TemplateError: The template refuses the messages, or rendering exceeds a bound.

        """
        return self._prompt(messages, tools, True).encode(self._tokenizer)

    def merge_context_tokens(
        self,
        previous_messages: Sequence[Message],
        updated_messages: Sequence[Message],
        runtime_token_ids: Sequence[int],
        *,
        tools: Tools | None = None,
    ) -> MergeResult:
        """Append the ids of messages that follow an answer, and of the next generation prompt.

        Args:
            previous_messages: The conversation up to the answer, which is its last message.
            updated_messages: The same messages and those that follow.
            runtime_token_ids: The ids so far, the answer's included.
            tools: The functions that the model may call, as JSON schemas.

        Raises:
            ValueError: `updated_messages` does not begin with `previous_messages`, or the template cannot append the new ones
                behind the answer; the message gives the reason.

        """
        count = len(previous_messages)
        if list(updated_messages[:count]) != list(previous_messages):
            raise ValueError("the updated messages do not begin with the previous ones")
        new = updated_messages[count:]
        if not new:
            return MergeResult(list(runtime_token_ids), 0)
        found = self._continuation(previous_messages, new, tools, runtime_token_ids)
        if not isinstance(found, Continuation):
            raise ValueError(f"the messages cannot be appended: {found}")  # noqa: TRY004
        was_cut_short = not {*runtime_token_ids[-1:]} & self._tokenizer.eos_ids
        inserted = found.ids[: int(was_cut_short)]
        return MergeResult(
            [*runtime_token_ids, *found.ids], len(found.ids) - len(inserted), inserted_token_ids=inserted
        )

    def merge_assistant_tokens(
        self, runtime_token_ids: Sequence[int], assistant_token_ids: Sequence[int]
    ) -> MergeResult:
        """Append the ids of an answer to those of the conversation."""
        return MergeResult([*runtime_token_ids, *assistant_token_ids], len(assistant_token_ids), "assistant")

    def align_response_metadata(
        self,
        merge_result: MergeResult,
        response_mask: Sequence[int],
        response_logprobs: Sequence[float] | None = None,
        *,
        assistant_logprobs: Sequence[float] | None = None,
    ) -> tuple[list[int], list[float] | None]:
        """Extend the response's mask and logprobs by the ids that a merge has added; return both.

        Ids of an answer get mask 1 and the logprobs of `assistant_logprobs`; all other ids get mask 0 and logprob 0.
        The logprobs are None if `response_logprobs` is None.

        Raises:
            ValueError: `response_logprobs` is missing while `assistant_logprobs` is given, or an answer has not as
                many logprobs as ids.

        """
        count = merge_result.appended_token_count
        is_answer = merge_result.kind == "assistant"
        zeros = len(merge_result.inserted_token_ids) + (0 if is_answer else count)
        mask = [*response_mask, *[0] * zeros, *[1] * (count if is_answer else 0)]
        if response_logprobs is None:
            if assistant_logprobs is not None:
                raise ValueError("response_logprobs is missing, but assistant_logprobs is given")
            return mask, None
        given = list(assistant_logprobs or ()) if is_answer else []
        if is_answer and len(given) != count:
            raise ValueError(f"there are {len(given)} assistant_logprobs for {count} ids")
        return mask, [*response_logprobs, *[0.0] * zeros, *given]
