"""Streams of ids as streams of completions: one chunk per call, with all state carried by the client.

The state is the decoder's saved state, a few hundred bytes for any length of prompt and answer. So the cost of a chunk
is constant, and any worker on any host can process it. The state is not signed: the decoder validates each part
(`ChatDecoder.from_state`) and refuses inconsistent ones, and a client that forges a valid state changes only its own
answer.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from tokenweir.encode.errors import StateError, TokenweirError
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.serve.tokens.derender import Decoded, DecodeRequest, Derenderer, begin, end, feed, text_of
from tokenweir.stream.serve.wire.shared.checking import convert
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.vllm.derender import (
    AnyChunkRequest,
    ChatChunkRequest,
    ChunkRequest,
    StateToken,
    StreamState,
)
from tokenweir.stream.serve.wire.vllm.generate import Choice, EngineUsage, check_mode
from tokenweir.stream.serve.wire.vllm.logprobs import flat_rows, rows_of

CHUNK = "generate_chunk"


class Step(Decoded, frozen=True):
    """Result of decoding one chunk of ids.

    Attributes:
        chars: Number of characters of the answer's text before this chunk.
        first: Whether it is the first chunk.

    """

    chars: int
    first: bool


class StreamDerenderer:
    """Converter of chunks of an engine's answer in ids to chunks of completions, one chunk a call."""

    def __init__(self, derenderer: Derenderer) -> None:
        self._derenderer = derenderer
        self._tokenizer = derenderer.tokenizer

    async def chat(self, body: dict[str, Any]) -> bytes:
        """Return the chunk of a chat completion for a body with a chunk of ids, and the next call's state, as JSON.

        Raise `RequestError` for a wrong field, an invalid state included.
        """
        given = convert(body, ChatChunkRequest)
        asked = self._derenderer.chat_asked(given.chat_request, given.model)
        head = {"object": "chat.completion.chunk", "model": asked.model}
        wants_prompt = self._derenderer.parses
        chunk = given.generate_chunk
        if given.stream_state is None and chunk.choices and (given.prompt_token_ids or chunk.prompt_token_ids) is None:
            given = replace(given, prompt_token_ids=await self._derenderer.chat_prompt(given.chat_request))
        return await self._run(given, partial(self._answer, given, asked, head, "chatcmpl", _chat_choice, wants_prompt))

    async def completions(self, body: dict[str, Any]) -> bytes:
        """Return the chunk of a completion for a body with a chunk of ids, and the next call's state, as JSON.

        Raise `RequestError` for a wrong field, an invalid state included.
        """
        given = convert(body, ChunkRequest)
        asked = self._derenderer.completion_asked(given.completion_request, given.model)
        head = {"object": "text_completion", "model": asked.model}
        return await self._run(given, partial(self._answer, given, asked, head, "cmpl", _completion_choice, False))

    async def _run(self, given: AnyChunkRequest, work: Callable[[], Any]) -> bytes:
        state = "" if given.stream_state is None else given.stream_state.state
        return await self._derenderer.run(work, [given.generate_chunk], [given.prompt_token_ids], state)

    def _answer(
        self,
        given: AnyChunkRequest,
        asked: DecodeRequest,
        head: dict[str, Any],
        prefix: str,
        form: Callable[[Step], dict[str, Any]],
        wants_prompt: bool,
    ) -> dict[str, Any]:
        generated = given.generate_chunk
        check_mode(generated, CHUNK)
        if len(generated.choices) > 1:
            raise RequestError(
                f"{CHUNK}.choices has {len(generated.choices)} choices; a call takes one at most",
                param=f"{CHUNK}.choices",
            )
        prompt_ids = given.prompt_token_ids or generated.prompt_token_ids
        if given.stream_state is not None:
            before = read_state(given.stream_state.state)
        else:
            if prompt_ids is None and wants_prompt and generated.choices:
                raise RequestError(
                    "prompt_token_ids: the first chunk needs the prompt, or its messages: it says whether thinking is open",
                    code="missing_required_parameter",
                    param="prompt_token_ids",
                )
            answer_id = generated.request_id or new_id(prefix)
            tokens = given.prompt_tokens if given.prompt_tokens is not None else len(prompt_ids or ())
            before = StreamState(b"", answer_id, int(time.time()), 0, tokens)
        chunk = {"id": before.id, "created": before.created, **head, "choices": [], "usage": None}
        if generated.usage is not None:
            chunk["usage"] = _usage(generated.usage, given.prompt_tokens or before.prompt_tokens)
        if not generated.choices:
            return {"chunk": chunk, "stream_state": given.stream_state}
        step, after = self._step(generated.choices[0], before, prompt_ids or (), asked)
        choice = {"index": step.choice.index, **form(step), **step.ending(asked)}
        return {"chunk": chunk | {"choices": [choice]}, "stream_state": after}

    def _step(
        self, choice: Choice, before: StreamState, prompt_ids: Sequence[int], asked: DecodeRequest
    ) -> tuple[Step, StateToken]:
        field = f"{CHUNK}.choices[0]"
        options = asked.options | {"index": choice.index}
        first = not before.decoder
        decoder = begin(self._tokenizer, prompt_ids, options) if first else self._go_on(before.decoder, options)
        ids, ignored = choice.token_ids or [], decoder.ignored
        try:
            deltas = feed(decoder, ids, f"{field}.token_ids")
            if choice.finish_reason is not None and not decoder.finished:
                deltas += end(decoder, choice)
            chars = before.chars + len(text_of(deltas))
            after = StateToken(write_state(replace(before, decoder=decoder.state(), chars=chars)))
        except TokenweirError:
            raise
        except Exception as error:
            if first:
                raise
            raise _refused(error) from error  # a forged state can be inconsistent or overflow
        rows = rows_of(self._tokenizer, choice, len(ids) - (decoder.ignored - ignored), field)
        return Step(choice, deltas, rows, before.chars, first), after

    def _go_on(self, state: bytes, options: dict[str, Any]) -> ChatDecoder:
        try:
            return ChatDecoder.from_state(self._tokenizer, state, **options)
        except StateError as error:
            raise _refused(error) from error
        except (TokenweirError, ValueError, TypeError) as error:
            raise RequestError(str(error)) from error


def read_state(text: str) -> StreamState:
    """Decode the state that a client sent; raise `RequestError` if it is malformed."""
    try:
        return _states.decode(b64decode(text, validate=True))
    except (ValueError, msgspec.MsgspecError) as error:
        raise _refused(error) from error


def write_state(state: StreamState) -> str:
    """Encode a state as text for a client to carry."""
    return b64encode(msgspec.msgpack.encode(state)).decode()


_states = msgspec.msgpack.Decoder(StreamState)


def _refused(error: Exception) -> RequestError:
    return RequestError(
        f"stream_state: {error}; send back what the last call gave, with the same request", param="stream_state"
    )


def _chat_choice(step: Step) -> dict[str, Any]:
    logprobs = None if step.rows is None else {"content": step.rows}
    return {"delta": step.joined().piece("assistant" if step.first else None), "logprobs": logprobs}


def _completion_choice(step: Step) -> dict[str, Any]:
    return {"text": text_of(step.deltas), "logprobs": None if step.rows is None else flat_rows(step.rows, step.chars)}


def _usage(usage: EngineUsage, prompt_tokens: int) -> dict[str, Any]:
    prompt, completion = prompt_tokens or usage.prompt_tokens, usage.completion_tokens or 0
    counts: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if usage.completion_tokens_details is not None:
        counts["completion_tokens_details"] = usage.completion_tokens_details
    if usage.prompt_tokens_details is not None:
        counts["prompt_tokens_details"] = usage.prompt_tokens_details
    return counts
