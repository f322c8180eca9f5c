"""Protocol of engines: prompt ids in, new ids out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Protocol, get_args, runtime_checkable

from tokenweir.encode.errors import EngineError
from tokenweir.stream.events.media import MediaKind, MediaPrompt
from tokenweir.stream.events.prompt_scores import PromptScores
from tokenweir.stream.events.sampling import ENFORCED_BY_DECODER, NO_EFFECT, Sampling
from tokenweir.stream.events.step import EngineStep


def check_engine(engine: object, name: str = "engine") -> None:
    """Raise unless an object is an engine with valid attributes.

    Args:
        engine: The object.
        name: The name of the argument that it was passed as, for messages.

    Raises:
        TypeError: It is not an engine, or one of its attributes has the wrong type.
        ValueError: Its `context_size` or `default_max_tokens` is below 1, or `media` has an unknown kind.

    """
    if isinstance(engine, type):
        raise TypeError(f"{name} is the class {engine.__name__} itself, not one of its objects")
    if not callable(getattr(engine, "generate", None)):
        raise TypeError(f"{name} must be an Engine, which has a method generate, not {type(engine).__name__}")
    supports = getattr(engine, "supports", None)
    if isinstance(supports, str) or not isinstance(supports, Collection | None):
        raise TypeError(f"{name}.supports must be several names of Sampling's fields, not {supports!r:.80}")
    if not isinstance(first := getattr(engine, "thinks_first", False), bool):
        raise TypeError(f"{name}.thinks_first must be bool, not {type(first).__name__} {first!r:.80}")
    for attribute in ("cache_salt", "thinking_budget"):
        if not isinstance(key := getattr(engine, attribute, None), str | None):
            raise TypeError(f"{name}.{attribute} must be a key of Sampling.extra or None, not {key!r:.80}")
    media = getattr(engine, "media", ())
    if isinstance(media, str) or not isinstance(media, Collection):
        raise TypeError(f"{name}.media must be several kinds of media, not {media!r:.80}")
    if unknown := sorted(map(str, set(media) - {*get_args(MediaKind)})):
        raise ValueError(f"{name}.media has {unknown[0]!r:.80}; kinds are {', '.join(get_args(MediaKind))}")
    for attribute in ("context_size", "default_max_tokens"):
        if not isinstance(size := getattr(engine, attribute, None), int | None):
            raise TypeError(f"{name}.{attribute} must be a number of ids or None, not {size!r:.80}")
        if size is not None and size < 1:
            raise ValueError(f"{name}.{attribute}={size} is below 1")


def refuse_unsupported(engine: str, sampling: Sampling, supports: Collection[str]) -> None:
    """Raise `EngineError` for the first field of a sampling that an engine cannot honour.

    The error's `kind` is "unsupported" and its `option` the field. These are never refused: fields with their default
    value, fields that the decoder enforces, such as `stop` and `max_tokens`, and values without effect, such as
    `repetition_penalty=1`.

    Args:
        engine: The engine's name, for messages.
        sampling: The sampling.
        supports: The names of the fields that the engine honours. The keys inside `extra` are not checked: if it has
            "extra", all of them pass; otherwise any of them is refused, with `option` "extra".

    """
    for name, value in sampling.given().items():
        if name not in ENFORCED_BY_DECODER and name not in supports and NO_EFFECT.get(name) != value:
            raise EngineError(f"{engine} cannot honour {name}={value!r:.80}", kind="unsupported", option=name)


def refuse_several(engine: str, sampling: Sampling) -> None:
    """Raise `EngineError` if a sampling asks for several parallel answers (`n`), which the engine named cannot give."""
    if sampling.n != 1:
        raise EngineError(f"{engine} gives one answer a call; n={sampling.n} cannot be honoured")


def check_top_k(sampling: Sampling) -> None:
    """Raise `EngineError` if `top_k` is below 1, which some engines take for "all"."""
    if sampling.top_k is not None and sampling.top_k < 1:
        raise EngineError(f"top_k={sampling.top_k} is below 1")


def refuse_seed(library: str, sampling: Sampling) -> None:
    """Raise `EngineError` if a sampling has a seed, which a library takes for the whole process only."""
    if sampling.seed is not None:
        raise EngineError(
            f"{library} seeds the whole process, not a call; seed={sampling.seed} cannot be honoured",
            kind="unsupported",
            option="seed",
        )


def check_prompt(prompt_ids: Sequence[int], size: int, vocabulary: str = "the vocabulary") -> None:
    """Raise `EngineError` if an id of a prompt is outside a vocabulary of `size` ids, which the error calls so."""
    for position, token_id in enumerate(prompt_ids):
        if not 0 <= token_id < size:
            raise EngineError(f"prompt id {token_id} at position {position} is outside {vocabulary} of {size}")


def room_behind(prompt_ids: Sequence[int], context_size: int) -> int:
    """Return how many ids an answer to a prompt may have in a model's context; raise `EngineError` if there is no room."""
    if len(prompt_ids) >= context_size:
        raise EngineError(
            f"a prompt of {len(prompt_ids)} ids leaves no room in the model's context of {context_size}", kind="refused"
        )
    return context_size - len(prompt_ids)


class Engine(Protocol):
    """Object that turns prompt ids into an async generator of new ids.

    Closing the generator (`aclose()`) cancels the generation at once. An engine that generates several answers to one
    prompt together has an attribute `parallel = True` and sets `EngineStep.index`.

    Seven more attributes are optional. `supports` is the set of `Sampling`'s fields that the engine honours besides
    those that end an answer, so that others are refused early; without it, all fields are passed on. `context_size` is
    the most ids of prompt and answer together. `default_max_tokens` is the most ids of an answer to a request that sets no
    `max_tokens`. `runs_ahead = True` means that the engine generates while its generator
    is not polled, and then yields all new ids at once, as vLLM's `AsyncLLM` does: a busy server then polls it once a
    frame. `cache_salt` names the key of `Sampling.extra` by which the engine's prefix cache keeps prompts apart: a server
    sends a secret value for each client. `thinks_first = True` means that a `json_schema` or `grammar` holds only behind the
    thinking, as in vLLM with a reasoning parser. Without it, it holds from the first id, so the prompt of such an answer
    has to end behind the thinking: `chat()` and the server see to that. `thinking_budget` names the key of `Sampling.extra` by
    which the engine bounds the thinking itself; without it, `chat()` and the server end the thinking by a second generation.

    An engine that gives the probabilities of a prompt's ids has a method `score`. It is a `ScoringEngine` then.

    An engine that takes images, sound or video has their kinds in an attribute `media`. It is a `MediaEngine` then.
    """

    def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling
    ) -> AsyncGenerator[Sequence[int] | EngineStep, None]:
        """Generate from `prompt_ids`; yield new ids, one or several at a time."""
        ...


@runtime_checkable
class ScoringEngine(Protocol):
    """Engine that gives the probabilities of a prompt's ids."""

    async def score(self, prompt_ids: Sequence[int], sampling: Sampling) -> PromptScores:
        """Return the logprob of each id of a prompt, and the `top_logprobs` likeliest ids at each position.

        Of `sampling`, only `top_logprobs` and `extra` are read.
        """
        ...


class MediaEngine(Protocol):
    """Engine that takes media beside the ids. The ids have the template's placeholders, which the engine expands.

    Attributes:
        media: The kinds that it takes, of "image", "audio" and "video".

    """

    media: Collection[MediaKind]

    def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, media: MediaPrompt | None = None
    ) -> AsyncGenerator[Sequence[int] | EngineStep, None]:
        """Generate from `prompt_ids` and, for a prompt with media, from `media`."""
        ...
