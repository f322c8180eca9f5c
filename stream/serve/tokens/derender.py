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
    JoinedDeltas,
    chat_completion,
    chat_delta,
)
from tokenweir.stream.serve.wire.openai.completions import parse_completion
from tokenweir.stream.serve.wire.shared.checking import convert
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.shared.logprobs import Logprob
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


class Decoded(Struct, frozen=True):
    """An answer of an engine, or a chunk of one, decoded.

    Attributes:
        choice: The answer in ids.
        deltas: Its deltas.
        rows: Its tokens with their logprobs; None if the engine gave no logprobs.

    """

    choice: Choice
    deltas: list[Delta]
    rows: list[Logprob] | None

    @property
    def last(self) -> Delta | None:
        """The last delta, which is the `Finish` once the answer is whole; None without deltas."""
        return self.deltas[-1] if self.deltas else None

    def ending(self, asked: DecodeRequest) -> dict[str, Any]:
        """Return the last fields of the answer for clients: why it ended, and its ids if they are asked for.

        The reason is the decoder's, or the engine's if it is not one of the usual ones; None if the answer goes on.
        """
        fields: dict[str, Any] = {"finish_reason": None, "stop_reason": None}
        if isinstance(last := self.last, Finish):
            cancelled = last.reason is FinishReason.CANCELLED
            reason = self.choice.finish_reason if cancelled else FINISH_REASONS[last.reason]
            fields = {"finish_reason": reason, "stop_reason": last.stop_reason}
        return fields | {"token_ids": self.choice.token_ids} if asked.token_ids else fields

    def joined(self) -> JoinedDeltas:
        """Return the text, thinking and tool calls of the deltas, for a chat completion."""
        together = JoinedDeltas("reasoning")
        for delta in self.deltas:
            if not isinstance(delta, Finish) and (piece := chat_delta(delta, "reasoning")) is not None:
                together.add(piece)
        return together


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
        """Return the completion, as JSON, for a body with the whole answers to one or more prompts.

        Raise `RequestError` for a wrong field.
        """
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
            return DecodeRequest(served, dict(self._engines.decoder_options(Job(model=served, messages=[]))))
        try:
            fields, rest = split(request, ChatEngineFields)
            asked = parse_chat(rest | {"messages": UNREAD}, max_items=self._service.limits.max_items)
            job = chat_job(asked, served)
            if not fields.include_reasoning:
                job = replace(job, output=job.output | {"reasoning": "strip"})
            options = dict(self._engines.decoder_options(job))
        except RequestError as error:
            raise error.within("chat_request") from error
        return DecodeRequest(served, options, asked.return_token_ids)

    async def chat_prompt(self, request: dict[str, Any] | None) -> list[int] | None:
        """Return the ids of a chat request's prompt by rendering its messages again; None without messages.

        Raises `RequestError` and `TokenweirError` as `Renderer.chat`.
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
            options = dict(self._engines.decoder_options(completion_job(asked, served, "")))
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
        response = given.generate_response
        decoded = self._decoded(response, "generate_response", prompt_ids, asked)
        choices = [
            {
                "index": one.choice.index,
                "message": one.joined().message(),
                "logprobs": None if one.rows is None else {"content": one.rows},
                **one.ending(asked),
            }
            for one in decoded
        ]
        sent = given.prompt_token_ids or response.prompt_token_ids or ()
        prompt_tokens = _prompt_tokens(given.prompt_tokens, sent, response) or len(prompt_ids)
        usage = _usage([prompt_tokens], decoded, [response])
        answer_id = response.request_id or new_id("chatcmpl")
        return chat_completion(answer_id, asked.model, int(time.time()), choices, usage)

    def _completions(self, given: DerenderCompletion, asked: DecodeRequest) -> dict[str, Any]:
        counts: list[int] = []
        decoded: list[Decoded] = []
        responses = given.generate_responses
        for number, response in enumerate(responses):
            own = given.prompt_token_ids[number] if given.prompt_token_ids else None
            prompt_ids = own or response.prompt_token_ids or ()
            tokens = None if given.prompt_tokens is None else given.prompt_tokens[number]
            counts.append(_prompt_tokens(tokens, prompt_ids, response))
            decoded += self._decoded(response, f"generate_responses[{number}]", prompt_ids, asked)
        choices = [
            {
                "index": index,
                "text": text_of(one.deltas),
                "logprobs": None if one.rows is None else flat_rows(one.rows, 0),
                **one.ending(asked),
            }
            for index, one in enumerate(decoded)
        ]
        return {
            "id": (responses[0].request_id if responses else None) or new_id("cmpl"),
            "object": "text_completion",
            "created": int(time.time()),
            "model": asked.model,
            "choices": choices,
            "usage": _usage(counts, decoded, responses),
        }

    def _decoded(
        self, response: Generated, field: str, prompt_ids: Sequence[int], asked: DecodeRequest
    ) -> list[Decoded]:
        """Decode the answers of a response; `field` is the response's path in the request, for errors.

        Raise `RequestError` as `check_mode` and `decode`.
        """
        check_mode(response, field)
        paths = [f"{field}.choices[{place}]" for place in range(len(response.choices))]
        return [
            decode(self.tokenizer, choice, path, prompt_ids, asked.options)
            for choice, path in zip(response.choices, paths, strict=True)
        ]


def decode(
    tokenizer: Tokenizer, choice: Choice, field: str, prompt_ids: Sequence[int], options: dict[str, Any]
) -> Decoded:
    """Decode a complete answer of an engine.

    Args:
        tokenizer: The tokenizer.
        choice: The answer.
        field: Path of the answer in the request, for errors.
        prompt_ids: The ids of the prompt.
        options: Options of `ChatDecoder`.

    Raises:
        RequestError: The answer has no ids, an id is outside the vocabulary, or an option is invalid; or the logprobs do
            not fit the ids.

    """
    if choice.token_ids is None:
        raise RequestError(f"{field} has no token_ids", param=f"{field}.token_ids")
    decoder = begin(tokenizer, prompt_ids, options | {"index": choice.index})
    deltas = feed(decoder, choice.token_ids, f"{field}.token_ids")
    if not decoder.finished:
        deltas += end(decoder, choice)
    return Decoded(choice, deltas, rows_of(tokenizer, choice, decoder.consumed, field))


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


def text_of(deltas: Iterable[Delta]) -> str:
    """Return the answer's text in the deltas, without thinking and tool calls."""
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def _prompt_tokens(given: int | None, prompt_ids: Sequence[int], response: Generated) -> int:
    if given is not None:
        return given
    return len(prompt_ids) or (0 if response.usage is None else response.usage.prompt_tokens)


def _usage(prompts: Sequence[int], decoded: Sequence[Decoded], responses: Sequence[Generated]) -> ChatUsage:
    """Return the token counts of answers; ids that an engine gave after the end of an answer count as well.

    Args:
        prompts: Number of ids of each prompt.
        decoded: All answers.
        responses: The engines' responses, with their counts of cached tokens.

    """
    details = [response.usage.prompt_tokens_details for response in responses if response.usage is not None]
    return ChatUsage.of(
        sum(prompts),
        sum(len(one.choice.token_ids or ()) for one in decoded),
        sum(one.last.usage.reasoning_tokens for one in decoded if isinstance(one.last, Finish)),
        sum(each.cached_tokens or 0 for each in details if each is not None),
    )
