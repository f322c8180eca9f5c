"""Client of llama.cpp's server: ids in and out over HTTP, by `/completion`.

Its stream omits ids of characters that are split over tokens; `lost_ids.py` infers them. An answer without streaming
has all ids, but only at the end.

Verified with the server of xllamacpp 2026.10, written by the protocol of llama.cpp's `tools/server`. Closing the
connection frees the slot there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import Struct, field

from tokenweir.encode.base.options import check_flags
from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer
from tokenweir.stream.engines.engine_server import SAME_NAMES, EngineServer, Event, cut_text, request_fields
from tokenweir.stream.engines.lost_ids import LostIds
from tokenweir.stream.engines.protocol import refuse_several
from tokenweir.stream.engines.served_model import ServedEngine, ServedModel
from tokenweir.stream.events.media import MediaKind, MediaPrompt
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep, likeliest

NAME = "llama-server"
NAMES = SAME_NAMES | {
    "max_tokens": "n_predict",
    "repetition_penalty": "repeat_penalty",
    "seed": "seed",
    "grammar": "grammar",
}
EXTRA = frozenset(
    {
        *("lora", "id_slot", "cache_prompt", "samplers", "typical_p", "top_n_sigma", "repeat_last_n", "n_keep"),
        *("mirostat", "mirostat_tau", "mirostat_eta", "dynatemp_range", "dynatemp_exponent", "t_max_predict_ms"),
        *("xtc_probability", "xtc_threshold", "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n"),
    }
)
MAX_LOST = 32
"""Most consecutive ids that a stream may omit: those of a few characters."""
FINISH_REASONS = {"eos": "stop", "word": "stop", "limit": "length"}


class LikelyToken(Struct):
    """A token that could have been generated, with its logprob, as llama.cpp's server reports it."""

    id: int
    logprob: float | None = None


class Probability(Struct):
    """Logprob of a generated token and of the likeliest tokens in its place, as llama.cpp's server reports them."""

    logprob: float | None = None
    top_logprobs: list[LikelyToken] = field(default_factory=list)


class Timings(Struct):
    """Counts of a completion in an event of llama.cpp's server.

    Attributes:
        cache_n: The number of ids of the prompt that the server had cached; None if it does not tell.

    """

    cache_n: int | None = None


class CompletionEvent(Event):
    """An event of the stream of `/completion` of llama.cpp's server: new text and ids, and the state of the completion."""

    content: str = ""
    tokens: list[int] = field(default_factory=list)
    tokens_predicted: int | None = None
    completion_probabilities: list[Probability] = field(default_factory=list)
    stop: bool = False
    stop_type: str = ""
    timings: Timings = field(default_factory=Timings)


class _Settings(Struct, frozen=True):
    n_ctx: int | None = None


class _Modalities(Struct, frozen=True):
    vision: bool = False
    audio: bool = False


class _Props(Event):
    model_path: str | None = None
    chat_template: str | None = None
    default_generation_settings: _Settings = _Settings()
    bos_token: str = ""
    modalities: _Modalities = _Modalities()
    media_marker: str = "<__media__>"


class LlamaServerEngine(ServedEngine):
    """Engine over llama.cpp's server.

    Ids that its stream omits are inferred from their text; `EngineStep.inferred` counts them.

    Sampling: every field except `min_tokens` is honoured; `grammar` is GBNF. `extra` may have `lora`, `id_slot`,
    `cache_prompt`, and llama.cpp's further sampling parameters. `stop` and `stop_token_ids` are not sent: the decoder
    finds them and closes. `n` above 1 becomes that many requests.

    Images and audio go with the prompt's text, in which the server's media marker replaces each placeholder, because it
    takes no media beside ids. It encodes the text itself, so a prompt with control tokens in a user's text is refused.

    Attributes:
        context_size: Most ids of prompt and answer together, known after a call of `served`.
        ready: Whether the server has answered; True if nobody has asked yet.

    """

    media: frozenset[MediaKind] = frozenset({"image", "audio"})
    supports = frozenset({*NAMES, "logprobs", "top_logprobs", "extra"})

    def __init__(self, url: str, tokenizer: Tokenizer, *, logprobs: bool = False, **options: Any) -> None:
        """Configure the client; nothing is sent yet.

        Args:
            url: The server's address, such as `http://127.0.0.1:8080`.
            tokenizer: The tokenizer of its model.
            logprobs: Ask for the logprob of every id; inferred ones have none.
            **options: As for `EngineServer`: `api_key`, `connect_timeout`, `read_timeout`.

        Raises:
            EngineError: httpx is not installed, or the address is invalid.
            TypeError: An argument is of the wrong type.

        """
        check_tokenizer(tokenizer)
        check_flags(logprobs=logprobs)
        super().__init__(llama_server(url, **options), logprobs)
        self._steps = CompletionSteps(tokenizer)

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, media: MediaPrompt | None = None
    ) -> AsyncGenerator[EngineStep, None]:
        """Generate from `prompt_ids`; yields ids as the server sends them.

        Raises:
            EngineError: A field cannot be honoured, or the server cannot be reached, refuses or fails; see its `kind`.

        """
        if sampling.max_tokens == 0:  # the server would generate one id
            refuse_several(NAME, sampling)
            return
        body = completion_body(prompt_ids, sampling)
        if media is not None:
            body["prompt"] = media_prompt(media, await self._server.get("/props", _Props))
        if self._logprobs or sampling.logprobs or sampling.top_logprobs:
            body["n_probs"] = max(1, sampling.top_logprobs)
        given = 0
        async with aclosing(self._server.events("/completion", body, CompletionEvent)) as events:
            async for event in events:
                step = self._steps.step(event, given, sampling.top_logprobs)
                given += len(step.ids)
                yield step
                if event.stop:
                    return
        raise EngineError("llama-server's stream ended before the answer did", kind="unreachable")

    async def served(self) -> ServedModel:
        """Request the description of the server's model, and set `context_size` from it.

        Raises:
            EngineError: The server does not answer.

        """
        model = await served(self._server)
        self.context_size = model.context_size
        return model


def completion_body(prompt_ids: Sequence[int], sampling: Sampling) -> dict[str, Any]:
    """Return the JSON body of a request to `/completion` of llama.cpp's server, for a stream with ids.

    Raises:
        EngineError: A field of the sampling cannot be honoured.

    """
    refuse_several(NAME, sampling)
    if sampling.min_tokens and not sampling.ignore_eos:
        raise EngineError(
            f"{NAME} cannot honour min_tokens={sampling.min_tokens}", kind="unsupported", option="min_tokens"
        )
    body = request_fields(NAME, sampling, NAMES, EXTRA)
    if "logit_bias" in body:
        body["logit_bias"] = [[token_id, bias] for token_id, bias in body["logit_bias"].items()]
    # The last event has the timings anyway, but comes behind the end token, at which the stream is closed.
    return body | {"prompt": list(prompt_ids), "stream": True, "return_tokens": True, "timings_per_token": True}


def media_prompt(prompt: MediaPrompt, props: _Props) -> dict[str, Any]:
    """Return a prompt with media in the form of llama.cpp's server: its text with markers, and the media in base64.

    The server adds its own begin-of-sequence token to a text, so one in the text is left out.

    Args:
        prompt: The prompt.
        props: The server's description of its model.

    Raises:
        EngineError: The server's model takes no media of a kind, or a message's text has control tokens or the marker.

    """
    able = {"image": props.modalities.vision, "audio": props.modalities.audio}
    for each in prompt.media:
        if not able.get(each.kind):
            raise EngineError(f"{each}, and the model of {NAME} takes no {each.kind}", kind="unsupported")
        if not each.size:
            raise EngineError(f"{each} by its address, and {NAME} takes media in base64 only", kind="unsupported")
    if prompt.guarded:
        raise EngineError(
            f"{NAME} encodes a prompt with media itself, and would take control tokens in this one's messages for its own",
            kind="unsupported",
        )
    pieces, done = list[str](), 0
    for start, end in prompt.places:
        pieces.append(prompt.text[done:start])
        done = end
    pieces.append(prompt.text[done:])
    if any(props.media_marker in piece for piece in pieces):
        raise EngineError(
            f"the prompt has {NAME}'s media marker as a text: {props.media_marker!r:.80}", kind="unsupported"
        )
    if props.bos_token:
        pieces[0] = pieces[0].removeprefix(props.bos_token)
    return {
        "prompt_string": props.media_marker.join(pieces),
        "multimodal_data": [each.base64 for each in prompt.media],
    }


class CompletionSteps:
    """Converter of events of llama.cpp's server to steps of an engine; it infers the ids that the events omit."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lost = LostIds(tokenizer)

    def step(self, event: CompletionEvent, given: int, top_logprobs: int = 0) -> EngineStep:
        """Return the step for an event. Ids that the server has omitted are inferred, and have no logprobs or candidates.

        Args:
            event: The event.
            given: The number of ids of the answer in the steps so far.
            top_logprobs: Most candidates of an id to report.

        Raises:
            EngineError: The event contradicts itself or the ids before it.

        """
        ids, inferred, reason = event.tokens, list[int](), None
        lost = 0 if event.tokens_predicted is None else event.tokens_predicted - given - len(ids)
        if lost < 0:
            raise EngineError(f"llama-server sends {len(ids)} ids after {given} and counts {event.tokens_predicted}")
        if lost > MAX_LOST:
            raise EngineError(f"llama-server counts {event.tokens_predicted} ids and has sent {given + len(ids)}")
        if event.stop:
            reason = FINISH_REASONS.get(event.stop_type)
            if reason is None:
                raise EngineError(f"llama-server ended the answer by {cut_text(event.stop_type)!r}")
            if lost and event.stop_type == "eos" and self._tokenizer.eos_ids:
                inferred, lost = [min(self._tokenizer.eos_ids)], lost - 1
        if lost and event.content:
            inferred, ids = self._lost.before(ids, event.content, lost)
        elif lost:
            inferred = self._lost.incomplete(lost) + inferred
        logprobs: list[float | None] | None = None
        if event.completion_probabilities:
            logprobs = [*(None for _ in inferred), *(token.logprob for token in event.completion_probabilities)]
        tops = None
        if top_logprobs and logprobs is not None:
            rows = (((each.id, each.logprob) for each in row.top_logprobs) for row in event.completion_probabilities)
            tops = [*([] for _ in inferred), *(likeliest(row, top_logprobs) for row in rows)]
        return EngineStep(
            inferred + ids,
            logprobs,
            reason,
            inferred=len(inferred),
            cached=event.timings.cache_n,
            top_logprobs=tops,
        )


def llama_server(url: str, **options: Any) -> EngineServer:
    """Return an HTTP client of a llama-server, which can request the model's description before a tokenizer is loaded.

    Args:
        url: The server's address.
        **options: As for `EngineServer`: `api_key`, `connect_timeout`, `read_timeout`.

    """
    return EngineServer("llama-server", url, **options)


async def served(server: EngineServer) -> ServedModel:
    """Request the description of a llama-server's model; raise `EngineError` if the server does not answer."""
    props = await server.get("/props", _Props)
    return ServedModel(props.model_path, props.chat_template, props.default_generation_settings.n_ctx)
