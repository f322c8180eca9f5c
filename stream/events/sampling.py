"""Options of a generation: `Sampling`, and the fields that hold with any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from msgspec import Struct, StructMeta
from msgspec.structs import force_setattr

from tokenweir.encode.base.options import check_flags, check_integers, check_numbers, check_texts


class _NamesFields(StructMeta):
    """Metaclass whose calls refuse an unknown keyword by an error that lists the fields."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        if unknown := fields.keys() - cls.__struct_fields__:
            raise TypeError(f"{cls.__name__} has no field {min(unknown)!r}; it has {', '.join(cls.__struct_fields__)}")
        return super().__call__(*args, **fields)


class Sampling(Struct, frozen=True, kw_only=True, metaclass=_NamesFields):
    """Options of a generation. An engine honours a field or refuses it; the decoder enforces all that ends an answer.

    Attributes:
        max_tokens: Most ids to generate; None leaves it to the engine.
        temperature: 0 is greedy; None is the engine's default.
        top_p: Nucleus; None is the engine's default.
        top_k: Most candidates; None is the engine's default.
        seed: The seed of the engine's random numbers, for a repeatable answer.
        stop: Strings that end the answer.
        stop_token_ids: Ids that end the answer, added to the end tokens.
        min_tokens: No stop and no end token counts before this many ids.
        ignore_eos: Continue past end tokens; `stop_token_ids` still hold.
        n: Parallel answers. An engine with a true attribute `parallel` is asked once for all of them; another one once
            for each, with `n=1` and the seeds `seed`, `seed + 1` and so on.
        min_p: Least probability of a candidate, as a share of the likeliest one's.
        frequency_penalty: Subtracted from a token's logit for each earlier occurrence in the answer.
        presence_penalty: Subtracted once from the logit of every token that the answer has already.
        repetition_penalty: Divides the logits of tokens that prompt or answer have already; 1 changes nothing.
        logit_bias: Values to add to logits, by id.
        json_schema: The answer is JSON that fits this schema.
        grammar: The answer follows this grammar, in the engine's own notation.
        logprobs: Give the logarithm of each id's probability; the deltas then have an `Alignment`.
        top_logprobs: Give so many of the likeliest tokens in each id's place, with their logprobs; implies `logprobs`.
        extra: The engine's own options, under its own names: LoRA adapters, `cache_salt`, `priority`.

    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    min_tokens: int = 0
    ignore_eos: bool = False
    n: int = 1
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[int, float] = {}
    json_schema: dict[str, Any] | None = None
    grammar: str | None = None
    logprobs: bool = False
    top_logprobs: int = 0
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Check the fields, and normalise some; the engine checks its own options.

        Iterators of stops become tuples, since the first of several answers would use them up. Arrays become tuples
        too, since they cannot be compared with a default. Numpy's numbers become Python's, which engines can serialise.

        Raises:
            TypeError: A field has the wrong type; the message names the field and its value.
            ValueError: A number is out of range; likewise.

        """
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if hasattr(value, "tolist"):
                plain = value.tolist()
                force_setattr(self, name, tuple(plain) if isinstance(plain, list) else plain)
            elif isinstance(value, Iterator) and name in ("stop", "stop_token_ids"):
                force_setattr(self, name, tuple(value))
        check_flags(ignore_eos=self.ignore_eos, logprobs=self.logprobs)
        check_integers(n=self.n, min_tokens=self.min_tokens, top_logprobs=self.top_logprobs)
        for name, check in _CHECKED.items():
            if (value := getattr(self, name)) is not None:
                check(**{name: value})
        for name, low in (("max_tokens", 0), ("min_tokens", 0), ("n", 1), ("top_logprobs", 0)):
            if (value := getattr(self, name)) is not None and value < low:
                raise ValueError(f"{name}={value} is below {low}")
        if self.temperature is not None and not 0 <= self.temperature < inf:
            raise ValueError(f"temperature={self.temperature} is not a finite number of at least 0")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p} is not in (0, 1]")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p={self.min_p} is not in [0, 1]")

    def __repr__(self) -> str:
        """Return the fields that are given."""
        return f"Sampling({', '.join(f'{name}={value!r}' for name, value in self.given().items())})"

    def given(self) -> dict[str, Any]:
        """Return the fields whose value is not the default, by name."""
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
"""The check of each field of `Sampling` that is not None."""

DEFAULTS = {name: getattr(Sampling(), name) for name in Sampling.__struct_fields__}

ENFORCED_BY_DECODER = frozenset({"max_tokens", "min_tokens", "stop", "stop_token_ids", "ignore_eos", "n"})
"""The fields that hold with any engine, since the decoder enforces them and `chat()` asks once for each answer."""

NO_EFFECT = {"min_p": 0, "frequency_penalty": 0, "presence_penalty": 0, "repetition_penalty": 1}
"""Values that change nothing; clients send them explicitly."""
