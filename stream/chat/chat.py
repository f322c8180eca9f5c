"""`chat()`: messages in, deltas out, with any engine between."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, Unpack

from msgspec.structs import replace

from tokenweir.encode.base.options import check_flags, check_options
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer
from tokenweir.stream.chat.answer_record import AnswerRecord, Keep
from tokenweir.stream.chat.cancellable import Cancellable, Deltas
from tokenweir.stream.chat.context import entered_as
from tokenweir.stream.chat.engine_call import call_engine
from tokenweir.stream.chat.media import LONG_MEDIA, media_size
from tokenweir.stream.chat.multiplex import decode_answers, multiplex
from tokenweir.stream.chat.plan import AnswerRequest, own_template, plan_answer
from tokenweir.stream.chat.plan_encoding import encode_plan, prompt_media
from tokenweir.stream.chat.stages import close, drive, engine_error
from tokenweir.stream.chat.thinking_budget import enforce_budget
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import DecoderOptions, OutputOptions
from tokenweir.stream.decode.transforms import DecodeChat, PassOn, StageRunner, Transform
from tokenweir.stream.engines.protocol import Engine, check_engine
from tokenweir.stream.events.call_ids import new_call_id
from tokenweir.stream.events.deltas import Delta, FinishReason
from tokenweir.stream.events.media import MediaPrompt
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep
from tokenweir.stream.prompts.batching.prompt_encoding import Encoder
from tokenweir.stream.prompts.batching.worker_thread import run_in_thread
from tokenweir.stream.prompts.cache.prompt_cache import History, PromptCache, check_history
from tokenweir.templates.chat_template import ChatTemplate, HistoryThinking
from tokenweir.templates.tool_choice import ToolChoice


@entered_as("async with chat(...) as deltas: async for delta in deltas: ...")
async def chat(
    messages: Sequence[Mapping[str, Any]],
    *,
    engine: Engine,
    tokenizer: Tokenizer,
    template: ChatTemplate | None = None,
    encoder: Encoder | None = None,
    prompts: PromptCache | None = None,
    tenant: str = "",
    history: History = "canonical",
    sampling: Sampling | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: ToolChoice | None = None,
    parallel_tool_calls: bool | None = None,
    template_kwargs: Mapping[str, Any] | None = None,
    history_thinking: HistoryThinking = "control",
    **options: Unpack[OutputOptions],
) -> AsyncIterator[Deltas]:
    """Render messages, encode them, run an engine, and decode its ids; a context manager that yields the deltas.

        async with chat(messages, engine=engine, tokenizer=tokenizer) as deltas:
            async for delta in deltas:
                ...

    Leaving the context, or cancelling its task, closes the engine's generator at once. So does `deltas.cancel()`, after
    which the held text and the usage still arrive. The last delta is a `Finish`.

    With `sampling.n` above 1, the deltas of several answers arrive interleaved, with the answer's number as `index`. Each answer
    ends with a `Finish` of its own. An answer that fails ends with reason "error" while the others continue; its error is
    raised after the last delta. The task that entered the context must leave it, because each answer has a task of its own.

    Args:
        messages: The conversation, as chat templates take it. An image, sound or video is a part with a data URL, as in
            OpenAI's API, for an engine that takes them (see `Engine`) and a template with placeholders for them.
        engine: The engine that generates ids from the prompt's ids.
        tokenizer: The tokenizer of the engine's model.
        template: The model's chat template; None means the one that came with the tokenizer.
        encoder: Encodes the prompt instead of the tokenizer, such as a `PromptBatcher` that many chats share.
        prompts: A cache of earlier prompts, whose ids are reused where the text agrees. An `encoder` other than a tokenizer
            gets the prompts with much new text only. The ids of the answer are kept as well.
        tenant: The owner of the cached prompts that may be reused; see `PromptCache`.
        history: Whether the prompt keeps the ids of earlier answers; see `History`.
        sampling: Sampling parameters. Those that end the answer (`stop`, `stop_token_ids`, `max_tokens`, `min_tokens`,
            `ignore_eos`) are given to the engine and enforced here as well.
        tools: The functions that the model may call, as JSON schemas for the template.
        tool_choice: "auto" (or None), "none", "required", one function or `allowed_tools`, in OpenAI's form. It is
            passed on as `json_schema` to an engine that honours that, and as a variable to a template that reads it. If neither
            does, the request is refused.
        parallel_tool_calls: Whether an answer may have several calls. False ends it after its first complete call; None
            leaves it to the model.
        template_kwargs: Variables for the template, such as `enable_thinking`.
        history_thinking: "text" makes thinking tags in an assistant's content text; see `ChatTemplate.render`.
        options: Options of the decoder: `stop_scope`, `reasoning`, `tool_style`, `include_stop`, `skip_special_tokens`,
            `byte_fallback`, `alignment`, `thinking_budget`, `call_ids` and `on_thinking_spent`; see `OutputOptions`. The
            logprobs of an alignment are those of each `EngineStep` of the engine. `on_thinking_spent` runs in the task
            that reads the deltas.

    Raises:
        ContextLengthError: The prompt, or it and `max_tokens`, are longer than the engine's context.
        TemplateError: There is no template, or it refuses the messages or takes no tools; or neither engine nor template honours `tool_choice`.
        TextError: A message has a lone surrogate.
        MediaError: A media part is malformed, or template or engine take none.
        EngineError: The engine failed, which is the cause, or yielded something other than ids. While deltas are read, the
            text decoded so far and a `Finish` with reason "error" come first.
        TokenIdError: The engine yielded an id outside the vocabulary; likewise.
        TypeError: An argument is of the wrong type.
        ValueError: An option has an invalid value.

    """
    sampling = Sampling() if sampling is None else sampling
    _check(engine, tokenizer, template, sampling, parallel_tool_calls, template_kwargs, options)
    if not isinstance(prompts, PromptCache | None):
        raise TypeError(f"prompts is a {type(prompts).__name__}, not a PromptCache")
    check_history(history)
    request = AnswerRequest(
        messages=messages,
        sampling=sampling,
        tools=tools,
        tool_choice=tool_choice,
        parallel_tool_calls=parallel_tool_calls,
        template_kwargs=template_kwargs or {},
        output=options,
    )
    template = template or own_template(tokenizer)
    work = partial(plan_answer, request, template, engine=engine, history_thinking=history_thinking)
    plan = work() if media_size(messages) <= LONG_MEDIA else await run_in_thread(work)
    encoded = await encode_plan(plan, tokenizer, encoder, prompts, tenant, history)
    prompt_ids = encoded.ids
    most = getattr(engine, "default_max_tokens", None)
    sampling = plan.fit(len(prompt_ids), getattr(engine, "context_size", None), most=most)
    media = await prompt_media(plan, encoded, tokenizer)
    keep = None if prompts is None else encoded.keep_in(prompts)
    engine, sampling = enforce_budget(engine, sampling, plan.decoder_options, tokenizer, template)
    del encoded  # frees the prompt's text and origins while the engine generates
    async with answer(
        prompt_ids,
        plan.decoder_options,
        engine=engine,
        tokenizer=tokenizer,
        sampling=sampling,
        media=media,
        keep=keep,
    ) as deltas:
        yield deltas


def check_template(template: object) -> None:
    """Raise `TypeError` for a template that is neither a `ChatTemplate` nor None."""
    if not isinstance(template, ChatTemplate | None):
        raise TypeError(
            f"template is a {type(template).__name__}, not a ChatTemplate such as ChatTemplate.from_file() gives"
        )


def _check(
    engine: Engine,
    tokenizer: Tokenizer,
    template: ChatTemplate | None,
    sampling: Sampling,
    parallel_tool_calls: bool | None,
    template_kwargs: Mapping[str, Any] | None,
    options: OutputOptions,
) -> None:
    """Check the arguments of `chat()` before any work begins; raise TypeError or ValueError."""
    if not isinstance(sampling, Sampling):
        raise TypeError(f"sampling is a {type(sampling).__name__}, not a Sampling")
    check_tokenizer(tokenizer)
    check_engine(engine)
    check_template(template)
    if parallel_tool_calls is not None:
        check_flags(parallel_tool_calls=parallel_tool_calls)
    if not isinstance(template_kwargs, Mapping | None):
        kind = type(template_kwargs).__name__
        raise TypeError(f'template_kwargs must be a mapping, not {kind}: write {{"enable_thinking": False}}')
    for name in template_kwargs or {}:
        if not isinstance(name, str):
            raise TypeError(f"template_kwargs must have names of variables, which are str, not {name!r:.80}")
    check_options(options, OutputOptions.__optional_keys__, "chat()", _SAMPLING_HINTS)


_SAMPLING_HINTS = {name: f"write sampling=Sampling({name}=...)" for name in Sampling.__struct_fields__}
"""Options that belong to the sampling, each with the hint for its error."""


@asynccontextmanager
async def answer(
    prompt_ids: Sequence[int],
    options: DecoderOptions,
    *,
    engine: Engine,
    tokenizer: Tokenizer,
    sampling: Sampling,
    media: MediaPrompt | None = None,
    keep: Keep | None = None,
) -> AsyncIterator[Deltas]:
    """Run an engine on a prompt's ids and decode its answers; a context manager that yields the deltas.

    This is the second half of `chat()`, and raises the same errors.

    Args:
        prompt_ids: The ids of the prompt.
        options: Options of each answer's decoder, except the prompt's ids, `max_tokens` and `index`.
        sampling: As `AnswerPlan.fit` returns it.
        media: The prompt's media, as `prompt_media` returns them.
        keep: Called with the ids and the message of each answer that was delivered as a whole, to store them.

    """
    decoding = [
        DecodeChat(
            ChatDecoder(
                tokenizer,
                prompt_ids=prompt_ids,
                **({"call_ids": new_call_id} | options | {"max_tokens": sampling.max_tokens, "index": index}),
            )
        )
        for index in range(sampling.n)
    ]
    decoders: Sequence[Transform[Delta]] = decoding
    if keep is not None:
        decoders = [AnswerRecord(decoder, keep) for decoder in decoding]
    if sampling.n == 1:
        source = _generate(engine, prompt_ids, sampling, media)
        async with aclosing(Deltas(source, StageRunner(decoders[0], engine_error), [source], prompt_ids)) as deltas:
            yield deltas
        return
    sources: list[Cancellable] = []
    answers: list[AsyncGenerator[Delta, None]] = []  # each of which closes its engine's generator, read or not
    try:
        if getattr(engine, "parallel", False):
            sources.append(_generate(engine, prompt_ids, sampling, media))
            answers.append(decode_answers(sources[0], decoders))
            async with aclosing(Deltas(answers[0], StageRunner(PassOn()), sources, prompt_ids)) as deltas:
                yield deltas
        else:
            for index, decoder in enumerate(decoders):
                seed = None if sampling.seed is None else sampling.seed + index
                sources.append(_generate(engine, prompt_ids, replace(sampling, n=1, seed=seed), media))
                answers.append(drive(sources[index], decoder, engine_error))
            async with (
                multiplex(answers) as mixed,
                aclosing(Deltas(mixed, StageRunner(PassOn()), sources, prompt_ids)) as deltas,
            ):
                yield deltas
    finally:
        await close(*answers)


def _generate(engine: Engine, prompt_ids: Sequence[int], sampling: Sampling, media: MediaPrompt | None) -> Cancellable:
    source = call_engine(engine, prompt_ids, sampling, media)
    last = [EngineStep([], None, FinishReason.CANCELLED, index) for index in range(sampling.n)]
    return Cancellable(source, last, runs_ahead=getattr(engine, "runs_ahead", False))
