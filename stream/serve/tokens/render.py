"""Rendering of requests: from a request in messages or text to the request in ids that an engine takes."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.plan import AnswerPlan
from tokenweir.stream.chat.plan_encoding import EncodedPlan
from tokenweir.stream.serve.answers.engines import Engines
from tokenweir.stream.serve.answers.job import Job, chat_job, completion_job, message_job, response_job
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.options import RenderSchemaName
from tokenweir.stream.serve.tokens.schemas import SCHEMAS, Rendered, RenderedRequest, with_left_out
from tokenweir.stream.serve.wire.anthropic.requests import parse_message
from tokenweir.stream.serve.wire.openai.chat import parse_chat
from tokenweir.stream.serve.wire.openai.completions import parse_completion
from tokenweir.stream.serve.wire.responses.requests import parse_create
from tokenweir.stream.serve.wire.shared.errors import RequestError, unsupported_parameter
from tokenweir.stream.serve.wire.vllm.generate import Features, Placeholder, PromptOrigin, PromptOrigins
from tokenweir.stream.serve.wire.vllm.render import split
from tokenweir.templates.messages import Messages
from tokenweir.templates.prompt import Prompt

_MESSAGE = re.compile(r"messages\[([0-9]+)\]")


class Renderer:
    """Converter of a client's requests in text or messages to requests in ids for an external engine.

    Args:
        service: The server's state.
        engines: Has the template, the tokenizer and the engines' limits.
        schema: The schema of the requests in ids, which also decides which fields of the engine a client may send.

    """

    def __init__(self, service: Service, engines: Engines, schema: RenderSchemaName = "vllm") -> None:
        self._service = service
        self._engines = engines
        self._schema = SCHEMAS[schema]
        self._max_items = service.limits.max_items

    async def chat(
        self, body: dict[str, Any], messages: Messages | None = None, *, client: str = ""
    ) -> RenderedRequest:
        """Render a body of `POST /v1/chat/completions` to a request in ids.

        Args:
            body: The decoded JSON object.
            messages: Messages in place of those in the body, as for `parse_chat`; None uses the body's.
            client: The name of the client; the request's salt keeps clients apart in the engine's prefix cache.

        Raises:
            RequestError: A field is wrong; the error names it.
            TokenweirError: The template refuses the messages, or the prompt does not fit the context.

        """
        fields, rest = split(body, self._schema.chat_fields)
        asked = parse_chat(rest, messages, max_items=self._max_items)
        if fields.top_logprobs and not asked.logprobs:
            raise RequestError("top_logprobs wants logprobs to be true", param="top_logprobs")
        field, limit = asked.limit
        self._service.check_max_tokens(limit, field)
        self._service.check_choices(asked.n)
        if asked.n > 1 and not self._schema.chat_choices:
            raise unsupported_parameter("n: a rendered chat request is for one choice", "n")
        job = chat_job(asked, self._service.model(asked.model))
        logprobs = (fields.top_logprobs or 0) if asked.logprobs else None
        return await self._request("chatcmpl", job, fields, asked, logprobs, client)

    async def completions(self, body: dict[str, Any], *, client: str) -> list[RenderedRequest]:
        """Render a body of `POST /v1/completions` to requests in ids, one for each prompt; raises the errors of `chat`."""
        fields, rest = split(body, self._schema.completion_fields)
        asked = parse_completion(rest, max_items=self._max_items)
        if asked.echo:
            raise unsupported_parameter(
                "echo is true; a rendered request is for an engine that does not repeat its prompt", "echo"
            )
        self._service.check_max_tokens(asked.max_tokens, "max_tokens")
        model, prompts = self._service.model(asked.model), asked.prompts()
        self._service.check_choices(asked.n, len(prompts))
        requests = [
            await self._request("cmpl", completion_job(asked, model, prompt), fields, asked, fields.logprobs, client)
            for prompt in prompts
        ]
        return self._schema.fan_out(requests, asked.n)

    async def responses(self, body: dict[str, Any], *, client: str) -> RenderedRequest:
        """Render a body of `POST /v1/responses` to a request in ids; raises the errors of `chat`."""
        fields, rest = split(body, self._schema.fields)
        asked = parse_create(rest, max_items=self._max_items)
        if asked.previous_response_id is not None:
            raise unsupported_parameter(
                "previous_response_id: what is rendered holds the whole conversation; put the history into input",
                "previous_response_id",
            )
        self._service.check_max_tokens(asked.max_output_tokens, "max_output_tokens")
        job = response_job(asked, self._service.model(asked.model), asked.messages(max_items=self._max_items))
        request = await self._request("resp", job, fields, asked, 0 if asked.logprobs else None, client)
        return with_left_out(request, asked.left_out)

    async def messages(self, body: dict[str, Any], *, client: str) -> RenderedRequest:
        """Render a body of `POST /v1/messages` to a request in ids; raises the errors of `chat`."""
        fields, rest = split(body, self._schema.fields)
        asked = parse_message(rest, max_items=self._max_items)
        history = self._engines.history(asked)
        job = message_job(asked, self._service.model(asked.model), history)
        request = await self._request("msg", job, fields, asked, None, client)
        return with_left_out(request, history.left_out)

    async def _request(
        self, prefix: str, job: Job, fields: Any, asked: Any, logprobs: int | None, client: str
    ) -> RenderedRequest:
        plan = await self._engines.plan(job)
        encoded = await self._engines.encoded(plan, None)
        ids, prompt = encoded.ids, encoded.prompt
        return self._schema.write(
            Rendered(
                prefix,
                asked,
                fields,
                self._engines.fit(job, plan, len(ids)),
                ids,
                logprobs,
                self._engines.cache_salt(job.model, client, fields.cache_salt),
                await self._features(plan, encoded),
                await self._origins(encoded) if fields.return_origins else None,
                [] if prompt is None else list(prompt.mended_calls),
                self._engines.thinks_first(job.model),
            )
        )

    async def _origins(self, encoded: EncodedPlan) -> PromptOrigins:
        """Return which parts of the prompt come from which origin; empty for a prompt that no template made."""
        ids, _, prompt, opening = encoded
        if prompt is None:
            return PromptOrigins([], [])
        found = await self._engines.work(partial(_prompt_origins, prompt, self._engines.tokenizer), len(ids))
        if opening:
            found.spans.append(PromptOrigin(len(ids) - len(opening), len(ids), "template", False, None))
        return found

    async def _features(self, plan: AnswerPlan, encoded: EncodedPlan) -> Features | None:
        """Return the media of a plan and the places of their placeholders in its prompt; None without media."""
        prompt = encoded.prompt
        if prompt is None or (media := await self._engines.prompt_media(plan, encoded)) is None:
            return None
        spans = await self._engines.work(partial(prompt.media_ids, self._engines.tokenizer), len(encoded.ids))
        by_part = {(place.message, place.part): Placeholder(start, end - start) for place, start, end in spans}
        features = Features({}, {})
        for each in media.media:
            features.mm_hashes.setdefault(each.kind, []).append(each.digest)
            features.mm_placeholders.setdefault(each.kind, []).append(by_part[each.message, each.part])
        return features


def _prompt_origins(prompt: Prompt, tokenizer: Tokenizer) -> PromptOrigins:
    roles = prompt.roles
    spans = [
        PromptOrigin(
            start,
            end,
            span.origin,
            span.changed,
            roles[int(found[1])] if (found := _MESSAGE.match(span.origin)) is not None else None,
        )
        for span, start, end in prompt.origin_ids(tokenizer)
    ]
    return PromptOrigins(spans, list(prompt.left_out))
