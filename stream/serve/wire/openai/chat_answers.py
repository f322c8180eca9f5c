"""OpenAI's Chat Completions as they go out: deltas as chunks, or as one completion. No I/O."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tokenweir.stream.events.call_ids import new_call_id
from tokenweir.stream.events.deltas import (
    Alignment,
    ContentDelta,
    Delta,
    Finish,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from tokenweir.stream.serve.wire.shared.answer_format import AnsweredPrompt, AnswerFormat
from tokenweir.stream.serve.wire.shared.errors import unsupported_parameter
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.shared.logprobs import Logprob, lacks_candidates, lacks_logprobs, token_logprobs
from tokenweir.stream.serve.wire.shared.sse import sse

Thinking = Literal["reasoning_content", "reasoning"]
"""Field names of thinking: that of llama.cpp, SGLang and this server, and vLLM's."""


class CompletionTokensDetails(Struct, frozen=True):
    """Number of tokens of thinking."""

    reasoning_tokens: int


class PromptTokensDetails(Struct, frozen=True):
    """Number of the prompt's tokens that the engine had in its cache."""

    cached_tokens: int


class ChatUsage(Struct, frozen=True):
    """Token counts of all answers to a request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: CompletionTokensDetails
    prompt_tokens_details: PromptTokensDetails = PromptTokensDetails(0)

    @classmethod
    def of(cls, prompt: int, completion: int, reasoning: int, cached: int) -> ChatUsage:
        """Return these numbers of tokens with their total."""
        details = CompletionTokensDetails(reasoning), PromptTokensDetails(cached)
        return cls(prompt, completion, prompt + completion, *details)


def usage_of(usages: Iterable[Usage]) -> ChatUsage:
    """Sum the token counts of several answers to one prompt.

    The prompt's tokens are counted once, those of the answers are added up.
    """
    given = list(usages)
    return ChatUsage.of(
        max((usage.prompt_tokens for usage in given), default=0),
        sum(usage.completion_tokens for usage in given),
        sum(usage.reasoning_tokens for usage in given),
        max((usage.cached_tokens for usage in given), default=0),
    )


FINISH_REASONS = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_CALLS: "tool_calls",
    FinishReason.CANCELLED: "stop",
}


class Logprobs(Struct, frozen=True):
    """The field `logprobs` of a chat answer: its tokens, each with the natural logarithm of its probability."""

    content: list[Logprob]


class CallFunction(Struct, frozen=True, omit_defaults=True):
    """Increment of a tool call's function: the name comes in the first one, pieces of the arguments' JSON after it."""

    name: str | None = None
    arguments: str | None = None


class CallDelta(Struct, frozen=True, omit_defaults=True):
    """Increment of the tool call with number `index`; `id` and `type` come only with the function's name."""

    function: CallFunction
    index: int | None = None
    id: str | None = None
    type: str | None = None


class ChatDelta(Struct, frozen=True, omit_defaults=True):
    """Increment of an answer; thinking is `reasoning_content`, or `reasoning` under vLLM's name."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[CallDelta] | None = None


class ChunkChoice(Struct, frozen=True):
    """Increment of the answer with number `index`.

    `token_ids` are vLLM's extension, sent if the request asks for ids.
    """

    index: int
    delta: ChatDelta
    logprobs: Logprobs | None = None
    finish_reason: str | None = None
    token_ids: list[int] | UnsetType = UNSET


class ChatChunk(Struct, frozen=True):
    """One event of a streamed chat completion.

    The first chunk has vLLM's extension `prompt_token_ids`, if the request asks for ids.
    """

    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    object: str = "chat.completion.chunk"
    prompt_token_ids: list[int] | UnsetType = UNSET


class UsageChunk(Struct, frozen=True):
    """The last chunk of a stream, with the token counts; sent if the request asks for usage."""

    id: str
    created: int
    model: str
    usage: ChatUsage
    choices: list[ChunkChoice] = []
    object: str = "chat.completion.chunk"


class ChatAnswer(AnswerFormat):
    """Converter of the deltas of a request's answers to Chat Completions, streamed or whole.

    Args:
        model: The model's name, repeated in the answers.
        choices: Number of parallel answers.
        logprobs: Whether to send each token with its logprob.
        top_logprobs: Whether to send the likeliest tokens in each token's place as well.
        token_ids: Whether to send the ids of the prompt and of the answers.
        usage: Whether a stream ends with the token counts of all answers.

    """

    def __init__(
        self,
        model: str,
        *,
        choices: int = 1,
        logprobs: bool = False,
        top_logprobs: bool = False,
        token_ids: bool = False,
        usage: bool = False,
    ) -> None:
        self.id = new_id("chatcmpl")
        self._model = model
        self._created = int(time.time())
        self._logprobs = logprobs
        self._top_logprobs = top_logprobs
        self._token_ids = token_ids
        self._shows_usage = usage
        self._prompt_ids: Sequence[int] = ()
        self._choices = [_OpenChoice() for _ in range(choices)]

    def start(self, prompt: AnsweredPrompt) -> list[bytes]:
        """Return the first chunk of each answer, which has its role; the very first has the prompt's ids if asked for."""
        role = ChatDelta(role="assistant", content="")
        ids = list(prompt.ids) if self._token_ids else UNSET
        return [self._chunk(ChunkChoice(index, role), UNSET if index else ids) for index in range(len(self._choices))]

    def chunks(self, deltas: Iterable[Delta], prompt: AnsweredPrompt) -> list[bytes]:
        return [self._chunk(choice) for delta in deltas if (choice := self._step(delta)) is not None]

    def last(self) -> bytes:
        return sse(UsageChunk(self.id, self._created, self._model, self._usage())) if self._shows_usage else b""

    def add(self, deltas: Iterable[Delta], prompt: AnsweredPrompt) -> None:
        self._prompt_ids = prompt.ids
        for delta in deltas:
            if (step := self._step(delta)) is not None:
                self._choices[delta.index].add(step)

    def whole(self) -> bytes:
        choices = [
            {
                "index": index,
                "message": choice.joined.message(),
                "logprobs": Logprobs(choice.logprobs) if self._logprobs else None,
                "finish_reason": choice.reason,
                **({"token_ids": choice.token_ids} if self._token_ids else {}),
            }
            for index, choice in enumerate(self._choices)
        ]
        whole = chat_completion(self.id, self._model, self._created, choices, self._usage())
        ids = {"prompt_token_ids": list(self._prompt_ids)} if self._token_ids else {}
        return msgspec.json.encode(whole | ids)

    def _usage(self) -> ChatUsage:
        return usage_of(choice.usage for choice in self._choices)

    def _chunk(self, choice: ChunkChoice, prompt_ids: list[int] | UnsetType = UNSET) -> bytes:
        return sse(ChatChunk(self.id, self._created, self._model, [choice], prompt_token_ids=prompt_ids))

    def _step(self, delta: Delta) -> ChunkChoice | None:
        index = delta.index
        choice = self._choices[index]
        ids = delta.token_ids if self._token_ids else UNSET
        if isinstance(delta, Finish):
            choice.usage = delta.usage
            reason = FINISH_REASONS.get(delta.reason)
            return None if reason is None else ChunkChoice(index, ChatDelta(), None, reason, ids)
        piece = chat_delta(delta)
        if piece is None:
            return ChunkChoice(index, ChatDelta(), token_ids=ids) if ids else None
        logprobs = None
        if self._logprobs and isinstance(delta, TextDelta):
            logprobs = Logprobs(checked_logprobs(delta.alignment, tops=self._top_logprobs))
        return ChunkChoice(index, piece, logprobs, token_ids=ids)


def chat_completion(
    answer_id: str, model: str, created: int, choices: list[dict[str, Any]], usage: ChatUsage
) -> dict[str, Any]:
    """Return the JSON object `chat.completion` with these fields; `created` is in seconds since 1970."""
    return {
        "id": answer_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": choices,
        "usage": usage,
    }


def chat_delta(delta: ContentDelta, thinking: Thinking = "reasoning_content") -> ChatDelta | None:
    """Convert a delta of text, thinking or a tool call to the increment of a chat answer.

    Args:
        delta: The delta.
        thinking: Name of the increment's field for thinking.

    Returns:
        The increment; None for a delta of a tool call that has neither a name nor arguments.

    """
    if isinstance(delta, TextDelta):
        return ChatDelta(content=delta.text)
    if isinstance(delta, ReasoningDelta):
        if thinking == "reasoning":
            return ChatDelta(reasoning=delta.text)
        return ChatDelta(reasoning_content=delta.text)
    if delta.name:
        function = CallFunction(delta.name, delta.arguments)
        return ChatDelta(tool_calls=[CallDelta(function, delta.call, delta.id or new_call_id(), "function")])
    if delta.arguments:
        return ChatDelta(tool_calls=[CallDelta(CallFunction(arguments=delta.arguments), delta.call)])
    return None


def checked_logprobs(alignment: Alignment | None, *, tops: bool = False) -> list[Logprob]:
    """Check that an engine gave all logprobs asked for; return the tokens of a delta's text with their logprobs.

    Args:
        alignment: The delta's tokens and logprobs; if None, the result is empty.
        tops: Whether the likeliest tokens in each token's place are asked for as well.

    Raises:
        RequestError: The engine gave no logprob for a token, or no likeliest tokens although `tops` is set.

    """
    if lacks_logprobs(alignment):
        raise unsupported_parameter("logprobs are asked for, and this model's engine gives none", "logprobs")
    if tops and lacks_candidates(alignment):
        raise unsupported_parameter("top_logprobs are asked for, and this model's engine gives none", "top_logprobs")
    return token_logprobs(alignment)


class JoinedDeltas:
    """Collector of the increments of one chat answer.

    Args:
        thinking: Name of the field in which the result has the thinking.

    """

    def __init__(self, thinking: Thinking = "reasoning_content") -> None:
        self._thinking = thinking
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[int, list[CallDelta]] = {}

    def add(self, piece: ChatDelta) -> None:
        """Append an increment."""
        if piece.content:
            self._text.append(piece.content)
        elif piece.tool_calls is None:
            self._thoughts.append(piece.reasoning_content or piece.reasoning or "")
        for call in piece.tool_calls or ():
            assert call.index is not None
            self._calls.setdefault(call.index, []).append(call)

    def piece(self, role: str | None = None) -> ChatDelta:
        """Return all collected increments as a single one.

        `role` is set on the result if given, for the first increment of an answer.
        """
        text, thoughts = "".join(self._text), "".join(self._thoughts)
        calls = [
            CallDelta(
                CallFunction(first.function.name, "".join(each.function.arguments or "" for each in (first, *more))),
                index,
                first.id,
                first.type,
            )
            for index, (first, *more) in self._calls.items()
        ]
        content = text or ("" if role else None)
        return ChatDelta(role, content, tool_calls=calls or None, **{self._thinking: thoughts or None})

    def message(self) -> dict[str, Any]:
        """Return the collected increments as a complete assistant message of a chat completion."""
        joined = self.piece()
        calls = [{"id": call.id, "type": "function", "function": call.function} for call in joined.tool_calls or ()]
        content = joined.content or (None if calls else "")
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if thoughts := getattr(joined, self._thinking):
            message[self._thinking] = thoughts
        if calls:
            message["tool_calls"] = calls
        return message


class _OpenChoice:
    """One of a request's parallel answers, with the text, logprobs, ids and usage collected so far."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.joined = JoinedDeltas()
        self.logprobs: list[Logprob] = []
        self.token_ids: list[int] = []
        self.reason = "stop"

    def add(self, step: ChunkChoice) -> None:
        self.joined.add(step.delta)
        if step.finish_reason is not None:
            self.reason = step.finish_reason
        if step.logprobs is not None:
            self.logprobs += step.logprobs.content
        if step.token_ids is not UNSET:
            self.token_ids += step.token_ids
