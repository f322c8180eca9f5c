"""Answers in ids as completions: decoding, thinking, tool calls and stop strings, as they were asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tokenweir.encode.errors import TokenIdError, TokenweirError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import Delta, Finish, FinishReason, TextDelta
from tokenweir.stream.serve.answers.engines import Engines
from tokenweir.stream.serve.answers.job import Job, chat_job, completion_job
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.http.replies import check_described, check_text, encoded
from tokenweir.stream.serve.tokens.render import Renderer
from tokenweir.stream.serve.wire.openai.chat import parse_chat
from tokenweir.stream.serve.wire.openai.chat_answers import (
    FINISH_REASONS,
    ChatUsage,
    CompletionTokensDetails,
    JoinedDeltas,
    PromptTokensDetails,
    chat_completion,
    chat_delta,
)
from tokenweir.stream.serve.wire.openai.completions import parse_completion
from tokenweir.stream.serve.wire.shared.checking import convert
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.vllm.derender import DerenderChat, DerenderCompletion
from tokenweir.stream.serve.wire.vllm.generate import Choice, Generated, check_mode
from tokenweir.stream.serve.wire.vllm.logprobs import flat_rows, rows_of
from tokenweir.stream.serve.wire.vllm.render import ChatEngineFields, CompletionEngineFields, split

CHARACTERS_AN_ID = 16
"""Characters of a state that cost as much as an id."""

NORMAL_ENDS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}
"""Finish reasons of engines for normal ends; any other reason is passed on."""

UNREAD = [{"role": "user", "content": ""}]
"""Placeholder for the messages of a request, where only the options matter."""


class DecodeRequest(Struct, frozen=True):
    """Decoding settings of a request: the model, the decoder's options, and whether the result repeats the ids."""

    model: str
    options: dict[str, Any]
    token_ids: bool = False


class Derenderer:
    """Converter of an external engine's whole answers in ids to completions.

    Args:
        service: The server's state.
        engines: Has the tokenizer and the decoders' options.
        renderer: Makes the prompt's ids of a request that comes without them.

    Attributes:
        parses: Whether the model's answers may have thinking or tool calls.

    """

    def __init__(self, service: Service, engines: Engines, renderer: Renderer) -> None:
        self.tokenizer = engines.tokenizer
        self._renderer = renderer
        self._service = service
        self._engines = engines
        template = engines.template
        self.parses = template.reasoning is not None or template.tool_style is not None

    async def chat(self, body: dict[str, Any]) -> bytes:
        """Return the chat completion, as JSON, for a body with a whole answer in ids.

        Raise `RequestError` for a wrong field.
        """
        given = convert(body, DerenderChat)
        asked = self.chat_asked(given.chat_request, given.model)
        response = given.generate_response
        self._check_choices([response], "generate_response")
        prompt_ids = given.prompt_token_ids or response.prompt_token_ids
        if prompt_ids is None:
            prompt_ids = await self.chat_prompt(given.chat_request)
        return await self.run(partial(self._chat, given, asked, prompt_ids or ()), [response], [given.prompt_token_ids])

    async def completions(self, body: dict[str, Any]) -> bytes:
        """Return the completion, as JSON, for a body with the whole answers to one or more prompts; raises as `chat`."""
        given = convert(body, DerenderCompletion)
        responses = given.generate_responses
        for field in ("prompt_tokens", "prompt_token_ids"):
            values = getattr(given, field)
            if values is not None and len(values) != len(responses):
                raise RequestError(f"{field} has {len(values)} items for {len(responses)} answers", param=field)
        self._check_choices(responses, "generate_responses")
        asked = self.completion_asked(given.completion_request, given.model)
        return await self.run(partial(self._completions, given, asked), responses, given.prompt_token_ids or ())

    def chat_asked(self, request: dict[str, Any] | None, model: str | None) -> DecodeRequest:
        """Return how an answer to a chat request is decoded.

        Args:
            request: The chat request; its messages are not read. None, which stands for no options, is taken only for a
                model without thinking and tool calls.
            model: The model's name; None is the default model.

        Raises:
            RequestError: A field is wrong, the request is missing, or the model is unknown.

        """
        served = self._service.model(model)
        if request is None:
            if self.parses:
                raise RequestError(
                    "chat_request: this model has thinking or tool calls, and how to parse them depends on it",
                    code="missing_required_parameter",
                    param="chat_request",
                )
            return DecodeRequest(served, self._decoder_options(Job(model=served, messages=[])))
        try:
            fields, rest = split(request, ChatEngineFields)
            asked = parse_chat(rest | {"messages": UNREAD}, max_items=self._service.limits.max_items)
            job = chat_job(asked, served)
            if not fields.include_reasoning:
                job = replace(job, output=job.output | {"reasoning": "strip"})
            options = self._decoder_options(job)
        except RequestError as error:
            raise error.within("chat_request") from error
        return DecodeRequest(served, options, asked.return_token_ids)

    def _decoder_options(self, job: Job) -> dict[str, Any]:
        return dict(self._engines.decoder_options(job))

    async def chat_prompt(self, request: dict[str, Any] | None) -> list[int] | None:
        """Return the ids of a chat request's prompt by rendering its messages again; None without messages.

        Raises as `Renderer.chat`.
        """
        if not request or not request.get("messages"):
            return None
        try:
            return (await self._renderer.chat(request)).token_ids
        except RequestError as error:
            raise error.within("chat_request") from error

    def completion_asked(self, request: dict[str, Any] | None, model: str | None) -> DecodeRequest:
        """Return how an answer to a completion request is decoded.

        Args:
            request: The request; its prompt is not read. None stands for no options.
            model: The model's name; None is the default model.

        Raises:
            RequestError: A field is wrong, or the model is unknown.

        """
        served = self._service.model(model)
        try:
            _, rest = split(request or {}, CompletionEngineFields)
            asked = parse_completion(rest | {"prompt": ""}, max_items=self._service.limits.max_items)
            options = self._decoder_options(completion_job(asked, served, ""))
        except RequestError as error:
            raise error.within("completion_request") from error
        return DecodeRequest(served, options, asked.return_token_ids)

    async def run(
        self,
        work: Callable[[], Any],
        responses: Iterable[Generated],
        prompts: Iterable[Sequence[int] | None],
        carried: str = "",
    ) -> bytes:
        """Return the JSON of the value that `work()` makes from answers, computed in a thread if it takes long.

        The other arguments serve to estimate the time and to check the limits.

        Args:
            work: Makes the value.
            responses: The engines' answers that it decodes.
            prompts: The ids of their prompts, or None for those without.
            carried: A stream's state that the client sent, whose length is the client's choice.

        Raises:
            RequestError: The answers have too many probabilities, or their text or the JSON would be too long.

        """
        limits, tokenizer = self._service.limits, self.tokenizer
        ids, rows = len(carried) // CHARACTERS_AN_ID + sum(len(prompt or ()) for prompt in prompts), 0
        answers: list[list[int]] = []
        for response in responses:
            ids += len(response.prompt_token_ids or ())
            for choice in response.choices:
                answers.append(choice.token_ids or [])
                for row in (choice.logprobs and choice.logprobs.content) or ():
                    rows += 1 + len(row.top_logprobs)
        check_described(rows, limits, "logprobs")

        def whole() -> bytes:
            check_text(tokenizer, answers, limits)
            return encoded(work(), limits)

        return await self._engines.work(whole, ids + rows + sum(map(len, answers)))

    def _check_choices(self, responses: Iterable[Generated], field: str) -> None:
        """Raise `RequestError`, which names `field`, if there are more answers than a request may have."""
        choices, limit = sum(len(response.choices) for response in responses), self._service.limits.max_choices
        if choices > limit:
            raise RequestError(f"{field} has {choices} choices; this server takes {limit} at most", param=field)

    def _chat(self, given: DerenderChat, asked: DecodeRequest, prompt_ids: Sequence[int]) -> dict[str, Any]:
        response, field = given.generate_response, "generate_response"
        check_mode(response, field)
        decoded = [
            decode(self.tokenizer, choice, f"{field}.choices[{place}]", prompt_ids, asked.options)
            for place, choice in enumerate(response.choices)
        ]
        choices = []
        for place, (choice, (deltas, finish)) in enumerate(zip(response.choices, decoded, strict=True)):
            count = finish.usage.completion_tokens
            rows = rows_of(self.tokenizer, choice, count, f"{field}.choices[{place}]")
            logprobs = None if rows is None else {"content": rows}
            message = {"message": joined(deltas).message(), "logprobs": logprobs}
            choices.append({"index": choice.index, **message, **ending(choice, finish, asked)})
        sent = given.prompt_token_ids or response.prompt_token_ids or ()
        prompt_tokens = _prompt_tokens(given.prompt_tokens, sent, response) or len(prompt_ids)
        usage = _usage([prompt_tokens], response.choices, [f for _, f in decoded], [response])
        answer_id = response.request_id or new_id("chatcmpl")
        return chat_completion(answer_id, asked.model, int(time.time()), choices, usage)

    def _completions(self, given: DerenderCompletion, asked: DecodeRequest) -> dict[str, Any]:
        choices: list[dict[str, Any]] = []
        counts, finishes, every = [], [], []
        for number, response in enumerate(given.generate_responses):
            field = f"generate_responses[{number}]"
            check_mode(response, field)
            own = given.prompt_token_ids[number] if given.prompt_token_ids else None
            prompt_ids = own or response.prompt_token_ids or ()
            tokens = None if given.prompt_tokens is None else given.prompt_tokens[number]
            counts.append(_prompt_tokens(tokens, prompt_ids, response))
            for place, choice in enumerate(response.choices):
                where = f"{field}.choices[{place}]"
                deltas, finish = decode(self.tokenizer, choice, where, prompt_ids, asked.options)
                rows = rows_of(self.tokenizer, choice, finish.usage.completion_tokens, where)
                text = {"text": text_of(deltas), "logprobs": None if rows is None else flat_rows(rows, 0)}
                choices.append({"index": len(choices), **text, **ending(choice, finish, asked)})
                finishes.append(finish)
                every.append(choice)
        responses = given.generate_responses
        return {
            "id": (responses[0].request_id if responses else None) or new_id("cmpl"),
            "object": "text_completion",
            "created": int(time.time()),
            "model": asked.model,
            "choices": choices,
            "usage": _usage(counts, every, finishes, responses),
        }


def decode(
    tokenizer: Tokenizer, choice: Choice, field: str, prompt_ids: Sequence[int], options: dict[str, Any]
) -> tuple[list[Delta], Finish]:
    """Decode a complete answer of an engine.

    Args:
        tokenizer: The tokenizer.
        choice: The answer.
        field: Path of the answer in the request, for errors.
        prompt_ids: The ids of the prompt.
        options: Options of `ChatDecoder`.

    Returns:
        All deltas, and the last of them, the `Finish`.

    Raises:
        RequestError: The answer has no ids, an id is outside the vocabulary, or an option is invalid.

    """
    if choice.token_ids is None:
        raise RequestError(f"{field} has no token_ids", param=f"{field}.token_ids")
    decoder = begin(tokenizer, prompt_ids, options | {"index": choice.index})
    deltas = feed(decoder, choice.token_ids, f"{field}.token_ids")
    if not decoder.finished:
        deltas += end(decoder, choice)
    finish = deltas[-1]
    assert isinstance(finish, Finish)
    return deltas, finish


def begin(tokenizer: Tokenizer, prompt_ids: Sequence[int], options: dict[str, Any]) -> ChatDecoder:
    """Return a new decoder for an answer to a prompt; `options` are those of `ChatDecoder`.

    Raise `RequestError` for an id outside the vocabulary or an invalid option.
    """
    try:
        return ChatDecoder(tokenizer, prompt_ids=list(prompt_ids), **options)
    except TokenIdError as error:
        param = "stop_token_ids" if str(error).startswith("stop_token_ids") else "prompt_token_ids"
        raise RequestError(f"{param}: {str(error).removeprefix('stop_token_ids: ')}", param=param) from error
    except (TokenweirError, ValueError, TypeError) as error:
        raise RequestError(str(error)) from error


def feed(decoder: ChatDecoder, ids: list[int], field: str) -> list[Delta]:
    """Decode the next ids and return their deltas.

    Raise `RequestError`, which names `field`, for an id outside the vocabulary.
    """
    try:
        return decoder.feed(ids)
    except TokenIdError as error:
        raise RequestError(f"{field}: {error}", param=field) from error


def end(decoder: ChatDecoder, choice: Choice) -> list[Delta]:
    """Finish decoding with the engine's own finish reason, and return the last deltas."""
    return decoder.finish(NORMAL_ENDS.get(choice.finish_reason or "stop", FinishReason.CANCELLED))


def ending(choice: Choice, last: Delta | None, asked: DecodeRequest) -> dict[str, Any]:
    """Return the last fields of an answer for clients: why it ended, and its ids if they are asked for.

    The reason is the decoder's, or the engine's if it is not one of the usual ones; None if the answer goes on.

    Args:
        choice: The engine's answer, or an increment of it.
        last: The last of its deltas.
        asked: The request.

    """
    fields: dict[str, Any] = {"finish_reason": None, "stop_reason": None}
    if isinstance(last, Finish):
        reason = choice.finish_reason if last.reason is FinishReason.CANCELLED else FINISH_REASONS[last.reason]
        fields = {"finish_reason": reason, "stop_reason": last.stop_reason}
    return fields | {"token_ids": choice.token_ids} if asked.token_ids else fields


def joined(deltas: Iterable[Delta]) -> JoinedDeltas:
    """Collect the text, thinking and tool calls of deltas for a chat completion; `Finish` is ignored.

    The thinking is collected for the field `reasoning`. Without deltas the result's `message()` has empty content.
    """
    together = JoinedDeltas("reasoning")
    for delta in deltas:
        if not isinstance(delta, Finish) and (piece := chat_delta(delta, "reasoning")) is not None:
            together.add(piece)
    return together


def text_of(deltas: Iterable[Delta]) -> str:
    """Return the answer's text in the deltas, without thinking and tool calls."""
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def _prompt_tokens(given: int | None, prompt_ids: Sequence[int], response: Generated) -> int:
    if given is not None:
        return given
    return len(prompt_ids) or (0 if response.usage is None else response.usage.prompt_tokens)


def _usage(
    prompts: Sequence[int], choices: Sequence[Choice], finishes: Sequence[Finish], responses: Sequence[Generated]
) -> ChatUsage:
    """Return the token counts of answers; ids that an engine gave after the end of an answer count as well.

    Args:
        prompts: Number of ids of each prompt.
        choices: All answers.
        finishes: The `Finish` of each answer.
        responses: The engines' responses, with their counts of cached tokens.

    """
    prompt, completion = sum(prompts), sum(len(choice.token_ids or ()) for choice in choices)
    thinking = sum(finish.usage.reasoning_tokens for finish in finishes)
    details = [response.usage.prompt_tokens_details for response in responses if response.usage is not None]
    cached = sum(each.cached_tokens or 0 for each in details if each is not None)
    return ChatUsage(
        prompt, completion, prompt + completion, CompletionTokensDetails(thinking), PromptTokensDetails(cached)
    )
