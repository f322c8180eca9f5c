"""`Conversation`: a prompt cache for a loop of one's own, which holds the messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokenweir.encode.decode import check_tokenizer
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.cached_prompt import CachedPrompt
from tokenweir.stream.prompts.prompt_cache import PromptCache
from tokenweir.templates.chat_template import ChatTemplate


class Conversation:
    """Messages of one conversation, whose next prompt costs what is new.

        conversation = Conversation(template, tokenizer, tools)
        conversation.add({"role": "user", "content": "Hi"})
        ids = conversation.prompt().ids

    Args:
        template: The model's chat template.
        tokenizer: The model's tokenizer.
        tools: JSON schemas of functions.
        prompts: The cache of prompts; by default one of its own.
        tenant: As for `PromptCache.render`.
        template_kwargs: Further arguments of `ChatTemplate.render`.

    Attributes:
        messages: The messages so far. They may be changed; the next prompt is that of the changed messages.

    Raises:
        TypeError: An argument has the wrong type.

    """

    def __init__(
        self,
        template: ChatTemplate,
        tokenizer: Tokenizer,
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        prompts: PromptCache | None = None,
        tenant: str = "",
        **template_kwargs: Any,
    ) -> None:
        if not isinstance(template, ChatTemplate):
            raise TypeError(f"template is a {type(template).__name__}, not a ChatTemplate")
        check_tokenizer(tokenizer)
        self.messages: list[Mapping[str, Any]] = []
        self._template = template
        self._tokenizer = tokenizer
        self._tools = tools
        self._prompts = PromptCache() if prompts is None else prompts
        self._tenant = tenant
        self._template_kwargs = template_kwargs

    def __repr__(self) -> str:
        return f"Conversation({len(self.messages)} messages)"

    def add(self, *messages: Mapping[str, Any]) -> None:
        """Append messages.

        Raises:
            TypeError: One is not a mapping.

        """
        for message in messages:
            if not isinstance(message, Mapping):
                raise TypeError(f"a message is a mapping, not {type(message).__name__}")
        self.messages += messages

    def prompt(self) -> CachedPrompt:
        """Render the messages and encode what is new.

        Raises:
            TemplateError: As `ChatTemplate.render`.
            TextError: A string has a lone surrogate.

        """
        return self._prompts.render(
            self.messages,
            template=self._template,
            tokenizer=self._tokenizer,
            tools=self._tools,
            tenant=self._tenant,
            **self._template_kwargs,
        )

    def fork(self) -> Conversation:
        """Return a conversation with the same messages so far, which goes its own way and shares the cache."""
        other = Conversation(
            self._template,
            self._tokenizer,
            self._tools,
            prompts=self._prompts,
            tenant=self._tenant,
            **self._template_kwargs,
        )
        other.messages += self.messages
        return other
