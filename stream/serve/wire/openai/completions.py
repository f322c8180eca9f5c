"""OpenAI's Completions: texts or ids to go on with, in vLLM's dialect. No I/O."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from tokenweir.stream.events.deltas import Alignment, Delta, Finish, TextDelta, Usage
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.wire.openai.chat import SamplingFields, parse_body
from tokenweir.stream.serve.wire.openai.chat_answers import FINISH_REASONS, checked_logprobs, usage_of
from tokenweir.stream.serve.wire.shared.answer_format import AnsweredPrompt, AnswerFormat
from tokenweir.stream.serve.wire.shared.checking import short_json
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.shared.logprobs import TopLogprob, finite
from tokenweir.stream.serve.wire.shared.sse import sse

DEFAULT_MAX_TOKENS = 16
"""OpenAI's."""


class CompletionRequest(SamplingFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/completions`.

    `logprobs` asks for the logprob of each token; a value above 1 also for that many of the likeliest tokens in its
    place. With `echo` the answer begins with the prompt, whose tokens have logprobs too; `max_tokens` may be 0 then.
    """

    prompt: Any
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    echo: bool = False
    max_tokens: Annotated[int, Meta(ge=0)] | None = None

    def prompts(self) -> list[str | list[int]]:
        """Return the request's prompts, each a text or a list of token ids.

        Raise `RequestError` if `prompt` is neither a text, a list of ids, nor a non-empty list of texts or of lists of
        ids.
        """
        prompt = self.prompt
        if isinstance(prompt, str):
            return [prompt]
        if isinstance(prompt, list) and prompt:
            if _fits(prompt, list[str]):
                return prompt
            if _fits(prompt, _Ids):
                return [prompt]
            if _fits(prompt, list[_Ids]):
                return prompt
        raise RequestError(
            f"prompt: expected a text, a list of texts, of ids or of lists of ids, none of them empty, got {short_json(prompt)}",
            param="prompt",
        )

    def sampling(self) -> Sampling:
        """Return the sampling parameters for the engine; raises `RequestError` as `common_sampling`.

        Without `max_tokens` an answer has `DEFAULT_MAX_TOKENS` at most.
        """
        sampling = self.common_sampling(DEFAULT_MAX_TOKENS if self.max_tokens is None else self.max_tokens)
        most = self.logprobs or 0
        return replace(sampling, top_logprobs=most) if most > 1 else sampling


_Ids = Annotated[list[Annotated[int, Meta(ge=0, lt=1 << 31)]], Meta(min_length=1)]


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def parse_completion(body: dict[str, Any], *, max_items: int = 2048) -> CompletionRequest:
    """Check a decoded body of `POST /v1/completions` and convert it to a struct; raise `RequestError` for an invalid body."""
    request: CompletionRequest = parse_body(body, CompletionRequest, max_items=max_items, counted=())
    if request.max_tokens == 0 and not request.echo:
        raise RequestError("max_tokens: Expected `int` >= 1, got 0", param="max_tokens")
    return request


class CompletionAnswer(AnswerFormat):
    """Converter of the deltas of a request's answers to Completions, streamed or whole.

    Args:
        request: The request.
        model: The model's name, repeated in the answers.
        choices: Number of answers to all prompts together.

    """

    def __init__(self, request: CompletionRequest, model: str, choices: int) -> None:
        self.id = new_id("cmpl")
        self._head = {"id": self.id, "object": "text_completion", "created": int(time.time()), "model": model}
        self._logprobs = request.logprobs is not None
        self._top_logprobs = (request.logprobs or 0) > 1
        self._token_ids = request.return_token_ids
        self._choices: list[dict[str, Any]] = [{"index": index, "text": ""} for index in range(choices)]
        self._texts: list[list[str]] = [[] for _ in range(choices)]
        self._usage = [Usage()] * choices
        self._echoed: set[int] = set()  # answers that have begun with the prompt
        self._n = request.n
        self._shows_usage = request.stream_options.include_usage

    def chunks(self, deltas: Iterable[Delta], prompt: AnsweredPrompt) -> list[bytes]:
        steps = (self._step(delta, prompt) for delta in deltas)
        return [sse({**self._head, "choices": [step]}) for step in steps if step is not None]

    def add(self, deltas: Iterable[Delta], prompt: AnsweredPrompt) -> None:
        for delta in deltas:
            if not (step := self._step(delta, prompt)):
                continue
            choice = self._choices[step["index"]]
            self._texts[step["index"]].append(step["text"])
            choice["finish_reason"] = step["finish_reason"]
            if "token_ids" in step:
                choice.setdefault("token_ids", []).extend(step["token_ids"])
            if (new := step["logprobs"]) is not None:
                if (old := choice.get("logprobs")) is None:
                    choice["logprobs"] = new
                else:
                    _append(old, new)
            choice.setdefault("logprobs", None)

    def whole(self) -> bytes:
        choices = [{**choice, "text": "".join(texts)} for choice, texts in zip(self._choices, self._texts, strict=True)]
        return msgspec.json.encode({**self._head, "choices": choices, "usage": self._counts()})

    def last(self) -> bytes:
        return sse({**self._head, "choices": [], "usage": self._counts()}) if self._shows_usage else b""

    def _counts(self) -> Any:
        each = [usage_of(self._usage[first : first + self._n]) for first in range(0, len(self._usage), self._n)]
        prompt, completion = sum(one.prompt_tokens for one in each), sum(one.completion_tokens for one in each)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": sum(one.prompt_tokens_details.cached_tokens for one in each)},
        }

    def _step(self, delta: Delta, prompt: AnsweredPrompt) -> dict[str, Any] | None:
        index, echo = prompt.place * self._n + delta.index, prompt.echo
        reason = None
        if isinstance(delta, Finish):
            self._usage[index] = delta.usage
            if (reason := FINISH_REASONS.get(delta.reason)) is None:
                return None
        text = delta.text if isinstance(delta, TextDelta) else ""
        step: dict[str, Any] = {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
        if self._logprobs and isinstance(delta, TextDelta):
            step["logprobs"] = self._rows(delta, 0 if echo is None else len(echo.text))
        if echo is not None and index not in self._echoed:
            self._echoed.add(index)
            step["text"] = echo.text + text
            if echo.alignment is not None:
                step["logprobs"] = _append(_echoed_rows(echo.alignment), step["logprobs"] or {})
        if self._token_ids:
            step["token_ids"] = delta.token_ids
            if "prompt_token_ids" not in (choice := self._choices[index]):
                choice["prompt_token_ids"] = step["prompt_token_ids"] = list(prompt.ids)
        return step

    def _rows(self, delta: TextDelta, start: int) -> dict[str, Sequence[Any]]:
        rows = checked_logprobs(delta.alignment, tops=self._top_logprobs)
        start += 0 if delta.alignment is None else delta.alignment.char_start
        tops = [{top.token: top.logprob for top in row.top_logprobs} | {row.token: row.logprob} for row in rows]
        return completion_rows(rows, start, tops)


def _append(rows: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Append the lists of a `logprobs` object to those of the tokens before; return the extended object."""
    for key, values in more.items():
        rows[key] += values
    return rows


def _echoed_rows(alignment: Alignment) -> dict[str, Any]:
    """Return the `logprobs` object of a prompt; its first token has no logprob."""
    tokens = [each.decode("utf-8", "replace") for each in alignment.token_bytes]
    tops: list[dict[str, float] | None] = [None] * len(tokens)
    for place, (token, logprob) in enumerate(zip(tokens, alignment.logprobs, strict=True)):
        if logprob is not None:
            candidates = alignment.top_logprobs[place] if alignment.top_logprobs else []
            likeliest = {each.token_bytes.decode("utf-8", "replace"): finite(each.logprob) for each in candidates}
            tops[place] = likeliest | {token: finite(logprob)}
    offsets = list(accumulate(map(len, tokens[:-1]), initial=0)) if tokens else []
    logprobs = [None if each is None else finite(each) for each in alignment.logprobs]
    return {"tokens": tokens, "token_logprobs": logprobs, "text_offset": offsets, "top_logprobs": tops}


def completion_rows(
    rows: Sequence[TopLogprob], start: int, tops: Sequence[dict[str, float] | None]
) -> dict[str, Sequence[Any]]:
    """Return the `logprobs` object of a completion: tokens, logprobs, text offsets and likeliest tokens, a list each.

    Args:
        rows: The tokens.
        start: Number of characters of the answer's text before the first token.
        tops: For each token the likeliest tokens in its place with their logprobs, or None.

    """
    offsets = []
    for row in rows:
        offsets.append(start)
        start += len(row.token)
    return {
        "tokens": [row.token for row in rows],
        "token_logprobs": [row.logprob for row in rows],
        "text_offset": offsets,
        "top_logprobs": tops,
    }
