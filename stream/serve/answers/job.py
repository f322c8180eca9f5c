"""Jobs: requests to engines, independent of the interface."""

from __future__ import annotations

from msgspec import field

from tokenweir.stream.chat.plan import AnswerRequest
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.wire.anthropic.history import MessageHistory
from tokenweir.stream.serve.wire.anthropic.requests import MessageCreate, MessageFields
from tokenweir.stream.serve.wire.openai.chat import ChatRequest, thinking_budget
from tokenweir.stream.serve.wire.openai.completions import CompletionRequest
from tokenweir.stream.serve.wire.responses.compaction import MOST_TOKENS, question
from tokenweir.stream.serve.wire.responses.requests import InputFields, ResponseCompact, ResponseCreate
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage


class Job(AnswerRequest, frozen=True, kw_only=True):
    """A client's request to one of the server's engines, in the same form for all interfaces.

    Attributes:
        model: The engine's name.
        most_tokens: Most tokens of the answer if `sampling` sets no `max_tokens`, or None. Unlike `max_tokens` it may
            exceed the rest of the context, and is then reduced.
        alignment: Whether deltas have an `Alignment`.
        names: Names that fields of `Sampling` have in the client's request, by their own names, for errors.
        generate: False makes the prompt only and skips the engine.
        caches: Whether its prompt and the ids of its answer may be cached, and its prompt be encoded from cached ones.
        tenant: The client whose cached prompts may be reused.
        echo: Whether the answer begins with the prompt.
        scores: How many of the likeliest ids stand beside each id of the prompt, with their logprobs; None asks for no
            logprobs of the prompt.

    """

    model: str
    most_tokens: int | None = None
    alignment: bool = False
    names: dict[str, str] = field(default_factory=dict)
    generate: bool = True
    caches: bool = True
    tenant: str = ""
    echo: bool = False
    scores: int | None = None


def chat_job(asked: ChatRequest, model: str) -> Job:
    """Convert a Chat Completions request to a job for `model`; raise `RequestError` for an invalid field."""
    return Job(
        model=model,
        messages=asked.conversation(),
        sampling=asked.sampling(),
        template_kwargs=asked.template_kwargs(),
        tools=asked.definitions(),
        tool_choice=asked.choice,
        parallel_tool_calls=asked.parallel_tool_calls,
        alignment=asked.logprobs,
        output=asked.decoding(),
        names={"json_schema": "response_format"},
    )


def completion_job(asked: CompletionRequest, model: str, prompt: str | list[int]) -> Job:
    """Convert one prompt of a Completions request to a job; raise `RequestError` for an invalid field."""
    return Job(
        model=model,
        prompt=prompt,
        sampling=asked.sampling(),
        alignment=asked.logprobs is not None,
        output=asked.decoding(),
        names={"top_logprobs": "logprobs"},
        echo=asked.echo,
        scores=asked.logprobs if asked.echo else None,
    )


def message_job(asked: MessageFields, model: str, history: MessageHistory) -> Job:
    """Convert a Messages request to a job; `history` is its conversation, as `read_history` returns it."""
    return Job(
        model=model,
        messages=history.messages,
        sampling=asked.sampling(),
        template_kwargs=asked.template_kwargs(history),
        tools=asked.definitions(),
        tool_choice=asked.choice,
        parallel_tool_calls=asked.parallel_tool_calls,
        most_tokens=asked.max_tokens if isinstance(asked, MessageCreate) else None,
        output=thinking_budget(None if asked.thinking is None else asked.thinking.budget_tokens),
        names={"json_schema": "output_config.format", "stop": "stop_sequences"},
    )


def response_job(asked: ResponseCreate, model: str, conversation: list[ChatMessage]) -> Job:
    """Convert a Responses request to a job; `conversation` is the whole conversation without `instructions`."""
    tools = asked.tool_set
    return Job(
        model=model,
        messages=_system(asked) + conversation,
        sampling=asked.sampling(max_tokens=asked.max_output_tokens),
        template_kwargs=asked.template_kwargs(),
        tools=tools.definitions(),
        tool_choice=tools.choice(asked.tool_choice),
        parallel_tool_calls=asked.parallel_tool_calls,
        alignment=asked.logprobs or bool(asked.return_token_ids),
        output=thinking_budget(asked.thinking_token_budget),
        names={"json_schema": "text.format"},
        generate=asked.generate is not False,
    )


def compact_job(asked: ResponseCompact, model: str, conversation: list[ChatMessage]) -> Job:
    """Return the job that makes the model summarise `conversation`, for a request to shorten it."""
    messages = _system(asked) + question(conversation)
    return Job(model=model, messages=messages, sampling=Sampling(), most_tokens=MOST_TOKENS)


def _system(asked: InputFields) -> list[ChatMessage]:
    return [] if asked.instructions is None else [{"role": "system", "content": asked.instructions}]
