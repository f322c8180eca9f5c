"""What an engine is: ids in, ids out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from tokenweir.encode.errors import EngineError
from tokenweir.encode.options import check_flags, check_integers, check_numbers, check_texts


class Sampling(Struct, frozen=True, kw_only=True):
    """How to generate. An engine honours a field or refuses it; the decoder enforces everything that ends an answer.

    Attributes:
        max_tokens: Most ids to generate; None leaves it to the engine.
        temperature: 0 is greedy; None is the engine's default.
        top_p: Nucleus; None is the engine's default.
        top_k: Most candidates; None is the engine's default.
        seed: For a repeatable answer.
        stop: Strings that end the answer.
        stop_token_ids: Ids that end the answer, added to the end tokens.
        min_tokens: No stop and no end token counts before this many ids.
        ignore_eos: Go on past end tokens; `stop_token_ids` still hold.
        n: Parallel answers. An engine with a true attribute `parallel` is asked once for all of them; another one once
            for each, with `n=1` and the seeds `seed`, `seed + 1` and so on.
        min_p: Least probability of a candidate, as a share of the likeliest one's.
        frequency_penalty: Taken from a token's logit for each time the answer has it already.
        presence_penalty: Taken once from the logit of every token that the answer has already.
        repetition_penalty: Divides the logits of tokens that prompt or answer have already; 1 changes nothing.
        logit_bias: Added to the logits of these ids.
        json_schema: The answer is JSON that fits this schema.
        grammar: The answer follows this grammar, in the engine's own notation.
        extra: What only this engine knows, under its own names: LoRA adapters, `cache_salt`, `priority`.

    """

    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    temperature: Annotated[float, Meta(ge=0)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    min_tokens: Annotated[int, Meta(ge=0)] = 0
    ignore_eos: bool = False
    n: Annotated[int, Meta(ge=1)] = 1
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[int, float] = {}
    json_schema: dict[str, Any] | None = None
    grammar: str | None = None
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Refuse values of a wrong type; of the others an engine, or the decoder, says which it takes.

        Iterators of stops become tuples, since the first of several answers would use them up. So do arrays, which cannot
        be compared with a default, and numpy's numbers become Python's, which is what engines send on.

        Raises:
            TypeError: Names the field and its value.

        """
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if hasattr(value, "tolist"):
                plain = value.tolist()
                force_setattr(self, name, tuple(plain) if isinstance(plain, list) else plain)
            elif isinstance(value, Iterator) and name in ("stop", "stop_token_ids"):
                force_setattr(self, name, tuple(value))
        check_flags(ignore_eos=self.ignore_eos)
        check_integers(n=self.n, min_tokens=self.min_tokens)
        for name, check in _CHECKED.items():
            if (value := getattr(self, name)) is not None:
                check(**{name: value})

    def given(self) -> dict[str, Any]:
        """The fields that are set to something else than their default."""
        return {name: value for name, default in DEFAULTS.items() if (value := getattr(self, name)) != default}


def _check_mapping(**mappings: object) -> None:
    for name, mapping in mappings.items():
        if not isinstance(mapping, dict):
            raise TypeError(f"{name} must be dict, not {type(mapping).__name__}")


_CHECKED: dict[str, Callable[..., None]] = {
    **dict.fromkeys(("max_tokens", "top_k", "seed"), check_integers),
    **dict.fromkeys(("temperature", "top_p", "min_p"), check_numbers),
    **dict.fromkeys(("frequency_penalty", "presence_penalty", "repetition_penalty"), check_numbers),
    **dict.fromkeys(("logit_bias", "json_schema", "extra"), _check_mapping),
    "grammar": check_texts,
}
"""What checks a field of `Sampling`, unless it is None."""

DEFAULTS = {name: getattr(Sampling(), name) for name in Sampling.__struct_fields__}

ENDS = frozenset({"max_tokens", "min_tokens", "stop", "stop_token_ids", "ignore_eos", "n"})
"""The fields that hold with any engine, since the decoder enforces them and `chat()` asks once for each answer."""

NEUTRAL = {"min_p": 0, "frequency_penalty": 0, "presence_penalty": 0, "repetition_penalty": 1}
"""Values that ask for nothing; clients send them to be on the safe side."""


def check_engine(engine: object, name: str = "engine") -> None:
    """Refuse what is no engine, or says what makes no sense of itself; `name` is what it is called where it was given.

    Raises:
        TypeError: It is none, or one of its attributes is of the wrong type.
        ValueError: Its context holds nothing.

    """
    if isinstance(engine, type):
        raise TypeError(f"{name} is the class {engine.__name__} itself, not one of its objects")
    if not callable(getattr(engine, "generate", None)):
        raise TypeError(f"{name} must be an Engine, which has a method generate, not {type(engine).__name__}")
    supports, size = getattr(engine, "supports", None), getattr(engine, "context_size", None)
    if isinstance(supports, str) or not isinstance(supports, Collection | None):
        raise TypeError(f"{name}.supports must be several names of Sampling's fields, not {supports!r:.80}")
    if not isinstance(size, int | None):
        raise TypeError(f"{name}.context_size must be a number of ids or None, not {size!r:.80}")
    if size is not None and size < 1:
        raise ValueError(f"{name}.context_size={size} is below 1")


def refuse_unsupported(engine: str, sampling: Sampling, supports: Collection[str]) -> None:
    """Refuse fields that an engine cannot honour, before it generates.

    Args:
        engine: Its name, for the message.
        sampling: What is asked of it.
        supports: The fields that it honours, besides `ENDS`; `extra` stands for all of its keys.

    Raises:
        EngineError: Names the field and its value; its `kind` is "unsupported" and its `option` the field.

    """
    for name, value in sampling.given().items():
        if name not in ENDS and name not in supports and NEUTRAL.get(name) != value:
            raise EngineError(f"{engine} cannot honour {name}={value!r:.80}", kind="unsupported", option=name)


def refuse_several(engine: str, sampling: Sampling) -> None:
    """Refuse parallel answers, for an engine without `parallel`.

    Raises:
        EngineError: `sampling.n` is not 1.

    """
    if sampling.n != 1:
        raise EngineError(f"{engine} gives one answer a call; n={sampling.n} cannot be honoured")


def check_ranges(sampling: Sampling) -> None:
    """Refuse numbers that say nothing, for an engine that draws by itself.

    Raises:
        EngineError: Names the field and its value.

    """
    max_tokens, temperature, top_p, top_k = sampling.max_tokens, sampling.temperature, sampling.top_p, sampling.top_k
    if max_tokens is not None and max_tokens < 0:
        raise EngineError(f"max_tokens={max_tokens} is below 0")
    if temperature is not None and not 0 <= temperature < float("inf"):
        raise EngineError(f"temperature={temperature} is not a finite number of at least 0")
    if top_p is not None and not 0 < top_p <= 1:
        raise EngineError(f"top_p={top_p} is not in (0, 1]")
    if top_k is not None and top_k < 1:
        raise EngineError(f"top_k={top_k} is below 1")


class EngineStep(Struct, frozen=True):
    """What an engine may yield instead of bare ids.

    Attributes:
        ids: One or more new ids.
        logprobs: One a token, natural logarithm, if the engine has them; None for a token without.
        finish_reason: Set on the last step of an answer if the engine knows why it ends.
        index: Which of `Sampling.n` parallel answers the ids belong to, from 0.
        inferred: How many ids at the beginning of `ids` the engine did not give: their text is its own, and so is their
            number, but other ids with the same text could have been generated.

    """

    ids: Sequence[int]
    logprobs: Sequence[float | None] | None = None
    finish_reason: str | None = None
    index: int = 0
    inferred: int = 0


class Engine(Protocol):
    """Anything that turns prompt ids into an async generator of new ids.

    Closing the generator (`aclose()`) cancels the generation at once. An engine that can generate several answers to one
    prompt together says so by an attribute `parallel = True`, and then tells them apart by `EngineStep.index`.

    Three more attributes are read where an engine has them. `supports` is the set of `Sampling`'s fields that it honours
    besides those that end an answer, so that others can be refused before it is asked; one without it is given everything.
    `context_size` is the most ids that prompt and answer may have together. `runs_ahead = True` says that the engine goes on
    while its generator is not asked, and gives all ids since then at once, as vLLM's `AsyncLLM` does: a busy server then
    asks it once a frame.
    """

    def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling
    ) -> AsyncGenerator[Sequence[int] | EngineStep, None]:
        """Generate from `prompt_ids`; yield new ids, one or several at a time."""
        ...
