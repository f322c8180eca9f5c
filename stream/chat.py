"""`chat()`: messages in, deltas out, with any engine between."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

from anyio import to_thread

from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat_decoder import ChatDecoder
from tokenweir.stream.engines.protocol import Engine, Sampling
from tokenweir.stream.events import Delta
from tokenweir.stream.ingest import Encoder, encode_all
from tokenweir.stream.parts import DecodeChat
from tokenweir.stream.stages import close, drive, engine_error
from tokenweir.templates import ChatTemplate
from tokenweir.templates.reasoning_styles import ReasoningStyle


@asynccontextmanager
async def chat(
    messages: Sequence[Mapping[str, Any]],
    *,
    engine: Engine,
    tokenizer: Tokenizer,
    template: ChatTemplate | None = None,
    encoder: Encoder | None = None,
    sampling: Sampling | None = None,
    tools: None = None,
    template_kwargs: Mapping[str, Any] | None = None,
    stop_scope: Literal["answer", "reasoning", "all"] = "answer",
    reasoning: str | ReasoningStyle | None = "auto",
    include_stop: bool = False,
    skip_special_tokens: bool = True,
    byte_fallback: str = "eager",
    alignment: bool = False,
    thinking_budget: int | None = None,
    on_thinking_spent: Callable[[], object] | None = None,
) -> AsyncIterator[AsyncGenerator[Delta, None]]:
    """Render messages, encode them, run an engine, and decode what it gives, as a context in which deltas arrive.

        async with chat(messages, engine=engine, tokenizer=tokenizer) as deltas:
            async for delta in deltas:
                ...

    Leaving the context, or cancelling its task, closes the engine's generator at once. The last delta is a `Finish`.

    Args:
        messages: The conversation, as chat templates take it.
        engine: What turns the prompt's ids into more ids.
        tokenizer: The tokenizer of the engine's model.
        template: The model's chat template; None means the one that came with the tokenizer.
        encoder: What encodes the prompt in the tokenizer's place, such as one that makes batches on a GPU.
        sampling: How to generate. What ends the answer (`stop`, `stop_token_ids`, `max_tokens`, `min_tokens`,
            `ignore_eos`) is given to the engine and enforced here as well.
        tools: Must be None: tool calls are not parsed.
        template_kwargs: Variables for the template, such as `enable_thinking`.
        stop_scope: As for `ChatDecoder`.
        reasoning: As for `ChatDecoder`; "auto" and "strip" take the style that the template shows.
        include_stop: As for `ChatDecoder`.
        skip_special_tokens: As for `ChatDecoder`.
        byte_fallback: As for `ChatDecoder`.
        alignment: As for `ChatDecoder`; the logprobs are those of the engine's `EngineStep`s.
        thinking_budget: As for `ChatDecoder`.
        on_thinking_spent: As for `ChatDecoder`; it runs in the task that reads the deltas, before it gets that id's.

    Raises:
        TemplateError: There is no template, or it refuses the messages.
        TextError: A message has a lone surrogate.
        EngineError: The engine failed, which is the cause, or yielded what is not ids. While deltas are read, what
            was decoded before and a `Finish` with reason "error" come first.
        TokenIdError: The engine yielded an id outside the vocabulary; likewise.
        ValueError: An option that cannot be; `sampling.n` above 1 is one, since there is one answer here.

    """
    sampling = sampling or Sampling()
    if sampling.n != 1:
        raise ValueError(f"chat() gives one answer; sampling.n={sampling.n} cannot be honoured")
    template = template or ChatTemplate.from_tokenizer(tokenizer)
    # Both can take a quarter of a second for a megabyte, which no other stream should have to wait for.
    prompt = await to_thread.run_sync(partial(template.render, messages, **(template_kwargs or {})))
    if encoder is None or isinstance(encoder, Tokenizer):
        prompt_ids = await to_thread.run_sync(prompt.encode, encoder or tokenizer)
    else:
        prompt.check(tokenizer)
        prompt_ids = (await encode_all([prompt], encoder))[0].tolist()
    decoder = ChatDecoder(
        tokenizer,
        prompt_ids=prompt_ids,
        stop_token_ids=sampling.stop_token_ids,
        stop=sampling.stop,
        stop_scope=stop_scope,
        reasoning=reasoning,
        reasoning_style=template.reasoning,
        tools=tools,
        max_tokens=sampling.max_tokens,
        min_tokens=sampling.min_tokens,
        ignore_eos=sampling.ignore_eos,
        include_stop=include_stop,
        skip_special_tokens=skip_special_tokens,
        byte_fallback=byte_fallback,
        alignment=alignment,
        thinking_budget=thinking_budget,
        on_thinking_spent=on_thinking_spent,
    )
    try:
        source = engine.generate(prompt_ids, sampling)
    except Exception as error:
        raise engine_error(error) from error
    if not hasattr(source, "__aiter__"):
        raise EngineError(f"{type(engine).__name__}.generate() gave {type(source).__name__}, not an async iterable")
    deltas = drive(source, DecodeChat(decoder), engine_error)
    try:
        yield deltas
    finally:
        await close(deltas, source)  # deltas that were never read do not close it
