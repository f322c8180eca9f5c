"""`chat()`: messages in, deltas out, with any engine between."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Generator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, Unpack

from anyio import to_thread
from msgspec.structs import replace

from tokenweir.encode.decode import check_tokenizer
from tokenweir.encode.errors import ContextLengthError, EngineError, TemplateError
from tokenweir.encode.options import check_flags, check_options
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import OutputOptions
from tokenweir.stream.decode.parsers.detection import read_prompt
from tokenweir.stream.decode.parsers.schemas import Tools
from tokenweir.stream.decode.parsers.tokenizer_cache import once_a_tokenizer
from tokenweir.stream.engines.protocol import Engine, EngineStep, Sampling, check_engine
from tokenweir.stream.events import Delta, FinishReason
from tokenweir.stream.pipeline.cancellable import Cancellable, Deltas
from tokenweir.stream.pipeline.multiplex import decode_answers, multiplex
from tokenweir.stream.pipeline.stages import close, drive, engine_error
from tokenweir.stream.pipeline.transforms import DecodeChat, Driven, PassOn
from tokenweir.stream.prompts.prompt_encoding import Encoder, encode_all
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.styles.reasoning import ReasoningStyle, style_of
from tokenweir.templates.styles.shown import style_of_answer
from tokenweir.templates.tool_choice import CALL_LIST, HeardChoice, ToolChoice, honour_tool_choice

CALL_LIST_OPTIONS: OutputOptions = {"reasoning": None, "tool_style": CALL_LIST}
"""How an answer that the engine holds to a list of calls is decoded."""

SHORT_PROMPT = 4000
"""Characters of messages that are rendered and encoded at once."""

own_template = once_a_tokenizer(ChatTemplate.from_tokenizer)
"""The template that came with a tokenizer."""


@asynccontextmanager
async def chat(
    messages: Sequence[Mapping[str, Any]],
    *,
    engine: Engine,
    tokenizer: Tokenizer,
    template: ChatTemplate | None = None,
    encoder: Encoder | None = None,
    sampling: Sampling | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: ToolChoice | None = None,
    parallel_tool_calls: bool | None = None,
    template_kwargs: Mapping[str, Any] | None = None,
    **options: Unpack[OutputOptions],
) -> AsyncIterator[Deltas]:
    """Render messages, encode them, run an engine, and decode what it gives, as a context in which deltas arrive.

        async with chat(messages, engine=engine, tokenizer=tokenizer) as deltas:
            async for delta in deltas:
                ...

    Leaving the context, or cancelling its task, closes the engine's generator at once. So does `deltas.cancel()`, after
    which the text that was held still comes, and the usage. The last delta is a `Finish`.

    With `sampling.n` above 1 the deltas of that many answers come mixed, told apart by their `index`; each answer ends with
    a `Finish` of its own. An answer that fails ends by reason "error" and the others go on; its error is raised after the
    last delta. The context must then be left by the task that entered it, since the answers have tasks of their own.

    Args:
        messages: The conversation, as chat templates take it.
        engine: What turns the prompt's ids into more ids.
        tokenizer: The tokenizer of the engine's model.
        template: The model's chat template; None means the one that came with the tokenizer.
        encoder: What encodes the prompt in the tokenizer's place, such as a `PromptBatcher` that many chats share.
        sampling: How to generate. What ends the answer (`stop`, `stop_token_ids`, `max_tokens`, `min_tokens`,
            `ignore_eos`) is given to the engine and enforced here as well.
        tools: The functions that the model may call, as JSON schemas for the template.
        tool_choice: "auto" (or None), "none", "required" or one function, as OpenAI's clients name it. An engine that
            honours `json_schema` is held to it, a template that reads it is told, and where neither hears it is refused.
        parallel_tool_calls: Whether an answer may have several calls; False ends it when its first one is whole.
        template_kwargs: Variables for the template, such as `enable_thinking`.
        options: What becomes of the ids: `stop_scope`, `reasoning`, `tool_style`, `include_stop`, `skip_special_tokens`,
            `byte_fallback`, `alignment`, `thinking_budget` and `on_thinking_spent`; see `OutputOptions`. The logprobs of
            an alignment are those of each `EngineStep` of the engine. `on_thinking_spent` runs in the task that reads
            the deltas.

    Raises:
        ContextLengthError: The prompt, or it and `max_tokens`, are longer than the engine's context.
        TemplateError: There is no template, or it refuses the messages or takes no tools; or nobody hears a choice.
        TextError: A message has a lone surrogate.
        EngineError: The engine failed, which is the cause, or yielded what is not ids. While deltas are read, what
            was decoded before and a `Finish` with reason "error" come first.
        TokenIdError: The engine yielded an id outside the vocabulary; likewise.
        TypeError: An argument is of the wrong type.
        ValueError: An option that cannot be.

    """
    sampling = Sampling() if sampling is None else sampling
    _check(engine, tokenizer, template, sampling, parallel_tool_calls, template_kwargs, options)
    template = template or own_template(tokenizer)
    heard = honour_tool_choice(template, tools, tool_choice, parallel_tool_calls, forces=forces_json(engine))
    tools, forced = heard.tools, heard.json_schema is not None
    sampling = held_to(heard, sampling)
    if forced:
        options |= CALL_LIST_OPTIONS
    elif options.get("tool_style", "auto") == "auto":
        options["tool_style"] = style_of_answer(template.tool_style, tools)
    prompt_ids = await prompt_of(
        messages,
        tokenizer=tokenizer,
        template=template,
        encoder=encoder,
        tools=tools,
        template_kwargs=heard.variables | dict(template_kwargs or {}),
    )
    if forced:
        refuse_open_thinking(tokenizer, prompt_ids, template)
    async with answer(
        prompt_ids,
        engine=engine,
        tokenizer=tokenizer,
        sampling=sampling,
        reasoning_style=template.reasoning,
        tool_schemas=tools,
        parallel_tool_calls=parallel_tool_calls is not False,
        **options,
    ) as deltas:
        yield deltas


def forces_json(engine: Engine) -> bool:
    """Tell whether an engine is known to hold an answer to a JSON schema."""
    return "json_schema" in getattr(engine, "supports", ())


def held_to(heard: HeardChoice, sampling: Sampling) -> Sampling:
    """Ask for an answer that fits the schema of a choice of tools, if it has one.

    Raises:
        TemplateError: The sampling says already what the answer is to look like.

    """
    if heard.json_schema is None:
        return sampling
    if sampling.json_schema is not None or sampling.grammar is not None:
        raise TemplateError("tool_choice asks for calls, and json_schema or grammar for an answer of another form")
    return replace(sampling, json_schema=heard.json_schema)


def refuse_open_thinking(tokenizer: Tokenizer, prompt_ids: Sequence[int], template: ChatTemplate) -> None:
    """Refuse a prompt that opens thinking, where a schema leaves no room for it.

    Raises:
        TemplateError: It does.

    """
    style = None if template.reasoning is None else style_of(template.reasoning)
    if read_prompt(tokenizer, prompt_ids, style).inside:
        raise TemplateError(
            f"tool_choice cannot be honoured: the chat template {template.name!r} opens thinking in this prompt, and an "
            "answer that the engine holds to a list of calls has none"
        )


def check_template(template: object) -> None:
    """Refuse what is no template, nor None.

    Raises:
        TypeError: It is neither.

    """
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
    """Refuse what cannot be before anything is begun."""
    if not isinstance(sampling, Sampling):
        raise TypeError(f"sampling is a {type(sampling).__name__}, not a Sampling")
    if sampling.n < 1:
        raise ValueError(f"sampling.n={sampling.n} is below 1")
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
    check_options(options, OutputOptions.__optional_keys__, "chat()", _OF_SAMPLING)


_OF_SAMPLING = {name: f"write sampling=Sampling({name}=...)" for name in Sampling.__struct_fields__}
"""Options of another place, and what to write for them."""


async def prompt_of(
    messages: Sequence[Mapping[str, Any]],
    *,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    encoder: Encoder | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    template_kwargs: Mapping[str, Any] | None = None,
) -> Sequence[int]:
    """Render messages and encode them: the first half of `chat()`, with its arguments and errors."""
    if tools and isinstance(tools, Sequence) and "tools" not in template.variables:
        raise TemplateError(f"the chat template {template.name!r} takes no tools, and {len(tools)} are given")
    if taken := _ARGUMENTS & (template_kwargs or {}).keys():
        raise TemplateError(f"a template's variable cannot be called {' or '.join(sorted(taken))}")
    # Both can take a quarter of a second for a megabyte, which no other stream should have to wait for. A short prompt
    # takes less than a thread, which gets its turn after milliseconds where the event loop is busy.
    short = not tools and isinstance(messages, Sequence) and sum(map(_length, messages)) <= SHORT_PROMPT
    render = partial(template.render, messages, tools=tools, mend_calls=True, **(template_kwargs or {}))
    prompt = render() if short else await to_thread.run_sync(render)
    if encoder is None or isinstance(encoder, Tokenizer):
        own = encoder or tokenizer
        return prompt.encode(own) if short else await to_thread.run_sync(prompt.encode, own)
    ids: list[int] = (await encode_all([prompt], encoder))[0].tolist()
    return ids


_ARGUMENTS = {"self", "messages", "tools", "mend_calls"}
"""Arguments of `ChatTemplate.render` that a prompt is given anyway."""


def _length(message: Any) -> int:
    """The characters of a message, as far as they are easily counted; any other, or what is none, counts as long."""
    if isinstance(message, Mapping) and message.keys() <= {"role", "content"}:
        content = message.get("content", "")
        if isinstance(content, str):
            return len(content)
    return SHORT_PROMPT + 1


@asynccontextmanager
async def answer(
    prompt_ids: Sequence[int],
    *,
    engine: Engine,
    tokenizer: Tokenizer,
    sampling: Sampling,
    reasoning_style: str | ReasoningStyle | None = None,
    tool_schemas: Tools | None = None,
    parallel_tool_calls: bool = True,
    **options: Unpack[OutputOptions],
) -> AsyncIterator[Deltas]:
    """Run an engine on a prompt's ids and decode what it gives: the second half of `chat()`, with its errors.

    Args:
        prompt_ids: The prompt.
        engine: As for `chat()`.
        tokenizer: As for `chat()`.
        sampling: As for `chat()`.
        reasoning_style: See `DecoderOptions`.
        tool_schemas: See `DecoderOptions`.
        parallel_tool_calls: See `DecoderOptions`.
        options: See `OutputOptions`.

    Raises:
        ContextLengthError: Prompt and answer do not fit into the engine's context.

    """
    sampling = fit_context(engine, len(prompt_ids), sampling)
    decoders = [
        DecodeChat(
            ChatDecoder(
                tokenizer,
                prompt_ids=prompt_ids,
                max_tokens=sampling.max_tokens,
                reasoning_style=reasoning_style,
                tool_schemas=tool_schemas,
                parallel_tool_calls=parallel_tool_calls,
                index=index,
                **ends_of(sampling),
                **options,
            )
        )
        for index in range(sampling.n)
    ]
    if sampling.n == 1:
        source = _generate(engine, prompt_ids, sampling)
        async with aclosing(Deltas(source, Driven(decoders[0], engine_error), [source], prompt_ids)) as deltas:
            yield deltas
        return
    sources: list[Cancellable] = []
    answers: list[AsyncGenerator[Delta, None]] = []  # each of which closes its engine's generator, read or not
    try:
        if getattr(engine, "parallel", False):
            sources.append(_generate(engine, prompt_ids, sampling))
            answers.append(decode_answers(sources[0], decoders))
            async with aclosing(Deltas(answers[0], Driven(PassOn()), sources, prompt_ids)) as deltas:
                yield deltas
        else:
            for index, decoder in enumerate(decoders):
                seed = None if sampling.seed is None else sampling.seed + index
                sources.append(_generate(engine, prompt_ids, replace(sampling, n=1, seed=seed)))
                answers.append(drive(sources[index], decoder, engine_error))
            async with (
                multiplex(answers) as mixed,
                aclosing(Deltas(mixed, Driven(PassOn()), sources, prompt_ids)) as deltas,
            ):
                yield deltas
    finally:
        await close(*answers)


def ends_of(sampling: Sampling) -> dict[str, Any]:
    """What ends an answer, but for its length, as options of its decoder."""
    return {
        "stop": sampling.stop,
        "stop_token_ids": sampling.stop_token_ids,
        "min_tokens": sampling.min_tokens,
        "ignore_eos": sampling.ignore_eos,
    }


def fit_context(engine: Engine, prompt_tokens: int, sampling: Sampling) -> Sampling:
    """Refuse what is longer than the engine's context, if the engine tells it; fill in the `max_tokens` that is left.

    Raises:
        ContextLengthError: Says how long prompt and answer are, and the context.

    """
    size: int | None = getattr(engine, "context_size", None)
    if size is None:
        return sampling
    if prompt_tokens >= size:
        raise ContextLengthError(f"the prompt has {prompt_tokens} tokens, and the model's context holds {size} at most")
    if sampling.max_tokens is None:
        return replace(sampling, max_tokens=size - prompt_tokens)
    if prompt_tokens + sampling.max_tokens > size:
        raise ContextLengthError(
            f"the prompt has {prompt_tokens} tokens and max_tokens is {sampling.max_tokens}: "
            f"{prompt_tokens + sampling.max_tokens} together, and the model's context holds {size} at most"
        )
    return sampling


def _generate(engine: Engine, prompt_ids: Sequence[int], sampling: Sampling) -> Cancellable:
    try:
        source = engine.generate(prompt_ids, sampling)
    except Exception as error:
        raise engine_error(error) from error
    if not hasattr(source, "__aiter__"):
        if isinstance(source, Coroutine):
            source.close()  # or Python warns that it was never awaited
        hint = "; SyncEngine makes one of a blocking generator" if isinstance(source, Generator) else ""
        given = f"{type(engine).__name__}.generate() gave {type(source).__name__}"
        raise EngineError(f"{given}, not an async iterable{hint}")
    last = [EngineStep([], None, FinishReason.CANCELLED, index) for index in range(sampling.n)]
    return Cancellable(source, last, runs_ahead=getattr(engine, "runs_ahead", False))
