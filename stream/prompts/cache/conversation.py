"""`Conversation`: the messages of one conversation with a prompt cache, for callers that write their own loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokenweir.encode.base.options import check_texts
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer
from tokenweir.encode.values.ids import as_ids
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.prompts.cache.cached_prompt import CachedPrompt
from tokenweir.stream.prompts.cache.prompt_cache import History, PromptCache, before_messages, check_history
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.messages import GrowingMessages
from tokenweir.templates.prompt import Prompt
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.shown import style_of_answer


class Conversation:
    """Messages of one conversation; each prompt encodes only the text that is new since the last one.

        conversation = Conversation(template, tokenizer, tools)
        conversation.add({"role": "user", "content": "Hi"})
        ids = conversation.prompt().ids
        conversation.answered(sampled_ids)

    Args:
        template: The model's chat template.
        tokenizer: The model's tokenizer.
        tools: The functions that the model may call, as JSON schemas.
        prompts: The cache of prompts; by default one of its own.
        tenant: As for `PromptCache.render`.
        history: As for `PromptCache.render`: which ids of answers a prompt keeps. "sampled" suits training.
        template_kwargs: Further arguments of `ChatTemplate.render`.

    Attributes:
        messages: The messages so far. They may be changed; the next prompt is that of the changed messages.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `history` has another value.

    """

    def __init__(
        self,
        template: ChatTemplate,
        tokenizer: Tokenizer,
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        prompts: PromptCache | None = None,
        tenant: str = "",
        history: History = "sampled",
        **template_kwargs: Any,
    ) -> None:
        if not isinstance(template, ChatTemplate):
            raise TypeError(f"template is a {type(template).__name__}, not a ChatTemplate")
        check_tokenizer(tokenizer)
        if not isinstance(prompts, PromptCache | None):
            raise TypeError(f"prompts is a {type(prompts).__name__}, not a PromptCache")
        check_texts(tenant=tenant)
        check_history(history)
        self.messages: list[Mapping[str, Any]] = []
        self._template = template
        self._tokenizer = tokenizer
        self._tools = tools
        self._prompts = PromptCache() if prompts is None else prompts
        self._tenant = tenant
        self._history = history
        self._last: CachedPrompt | None = None
        self._read = GrowingMessages()
        self._rendered: Prompt | None = None  # as of the last prompt
        self._template_kwargs = template_kwargs

    def __repr__(self) -> str:
        return f"Conversation({len(self.messages)} messages)"

    def add(self, *messages: Mapping[str, Any]) -> None:
        """Append messages.

        Raises:
            TypeError: A message is not a mapping.

        """
        for message in messages:
            if not isinstance(message, Mapping):
                raise TypeError(f"a message is a mapping, not {type(message).__name__}")
        self.messages += messages

    def prompt(self, **template_kwargs: Any) -> CachedPrompt:
        """Render the messages, encode what is new, and return the prompt.

        Args:
            template_kwargs: Further arguments of `ChatTemplate.render` for this prompt, such as
                `add_generation_prompt=False` for a finished conversation.

        Raises:
            TemplateError: The template refuses the messages, or rendering exceeds a bound.
            TextError: A string has a lone surrogate.

        """
        self._read.read(self.messages)
        given = self._template_kwargs | template_kwargs
        self._rendered = self._template.render_for(
            self._tokenizer, self._read, self._rendered, tools=self._tools, **given
        )
        self._last = self._prompts.encode(
            self._rendered,
            self._read,
            tokenizer=self._tokenizer,
            before=before_messages(self._template, self._tools, given),
            tenant=self._tenant,
            history=self._history,
        )
        return self._last

    def answered(
        self, ids: Sequence[int], message: Mapping[str, Any] | None = None, *, inferred: Sequence[int] | None = None
    ) -> Mapping[str, Any]:
        """Append an engine's answer to the last prompt, and keep its ids.

        Args:
            ids: All ids that the engine gave, the one that ended the answer included.
            message: The message that was made of the ids; None decodes the ids to one, with thinking apart from content.
            inferred: As for `PromptCache.answered`.

        Returns:
            The message.

        Raises:
            TokenIdError: An id is outside the vocabulary.
            TypeError: `ids` are not ids.
            ValueError: There was no prompt since the last answer, or the answer has calls and no message is given.

        """
        if self._last is None:
            raise ValueError("there was no prompt to answer: call prompt() first")
        ids = as_ids(ids, "ids")
        if message is None:
            message = self._decoded(self._last, ids)
        self._prompts.answered(self._last, ids, message, inferred=inferred)
        self.add(message)
        self._last = None
        return message

    def _decoded(self, prompt: CachedPrompt, ids: Sequence[int]) -> Mapping[str, Any]:
        """Decode the ids of an answer to a prompt; return its message. Raise `ValueError` if the answer has tool calls."""
        reasoning = None if self._template.reasoning is None else style_of(self._template.reasoning)
        decoder = ChatDecoder(
            self._tokenizer,
            prompt_ids=prompt.ids.tolist(),
            reasoning=reasoning,
            tool_style=style_of_answer(self._template.tool_style, self._tools),
            tools=self._tools,
        )
        deltas = [*decoder.feed(ids), *decoder.finish()]
        if any(isinstance(delta, ToolCallDelta) for delta in deltas):
            raise ValueError("the answer has calls: pass the message that was made of it")
        content = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
        thinking = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
        return {"role": "assistant", "content": content} | ({"reasoning_content": thinking} if thinking else {})

    def fork(self) -> Conversation:
        """Return an independent conversation with a copy of the list of messages and the same settings and cache."""
        other = Conversation(
            self._template,
            self._tokenizer,
            self._tools,
            prompts=self._prompts,
            tenant=self._tenant,
            history=self._history,
            **self._template_kwargs,
        )
        other.messages += self.messages
        return other
