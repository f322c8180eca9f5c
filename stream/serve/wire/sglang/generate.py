"""Request of SGLang's `POST /generate`, as `sglang-renderer` writes it, and the fields that ask for one.

Names, defaults and order are those of `rust/sglang-renderer` (`preprocessing/request.rs`, `preprocessing/sampling.rs`, `openai/
protocol.rs`) in SGLang's repository of November 2026.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from tokenweir.stream.engines.sglang import sampling_fields
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.wire.vllm.generate import PromptOrigins
from tokenweir.stream.serve.wire.vllm.render import Candidates

WHOLE_VOCABULARY = 1 << 30
"""The `top_k` that excludes nothing."""
GREEDY = 1e-6
"""A temperature below this one means greedy decoding."""
Key = Annotated[str, Meta(min_length=1, max_length=1024)]


class SglangFields(Struct, frozen=True, kw_only=True):
    """Fields for the engine that every request to render may have; names and meanings are SGLang's.

    Attributes:
        return_origins: Extension: ask for the origins of the prompt's ids.

    """

    rid: Key | None = None
    cache_salt: Key | None = None
    extra_key: Key | None = None
    priority: int | None = None
    bootstrap_host: str | None = None
    bootstrap_port: int | None = None
    bootstrap_room: int | None = None
    routed_dp_rank: int | None = None
    disagg_prefill_dp_rank: int | None = None
    regex: str | None = None
    ebnf: str | None = None
    stop_regex: str | list[str] | None = None
    no_stop_trim: bool | None = None
    custom_params: dict[str, Any] | None = None
    return_origins: bool = False

    def metadata(self) -> dict[str, Any]:
        """Return those fields that are set and that `SglangRequest` repeats, by their names.

        `rid` and `cache_salt` are left out, because the server can set them.
        """
        names = set(self.__struct_fields__) & set(SglangRequest.__struct_fields__) - {"rid", "cache_salt"}
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def sampling(self) -> dict[str, Any]:
        """Return those fields that are sampling parameters and are set, by their names."""
        names = ("regex", "ebnf", "no_stop_trim", "custom_params")
        found = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.stop_regex is not None:
            found["stop_regex"] = [self.stop_regex] if isinstance(self.stop_regex, str) else self.stop_regex
        return found


class SglangChatFields(SglangFields, frozen=True, kw_only=True):
    """Fields for the engine that a chat request may have besides OpenAI's."""

    top_logprobs: Candidates | None = None


class SglangCompletionFields(SglangFields, frozen=True, kw_only=True):
    """Fields for the engine that a completion request may have besides OpenAI's."""

    logprobs: Candidates | None = None


class SglangRequest(Struct, frozen=True, kw_only=True):
    """The body of `POST /generate`; fields that are unset are omitted, all others are always there.

    Two fields are extensions, as in `GenerateRequest` of vLLM's schema: `left_out` and `origins`.
    """

    rid: str
    model: str | UnsetType = UNSET
    cache_salt: str | UnsetType = UNSET
    extra_key: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    bootstrap_host: str | UnsetType = UNSET
    bootstrap_port: int | UnsetType = UNSET
    bootstrap_room: int | UnsetType = UNSET
    routed_dp_rank: int | UnsetType = UNSET
    disagg_prefill_dp_rank: int | UnsetType = UNSET
    input_ids: list[int]
    require_reasoning: bool
    sampling_params: dict[str, Any]
    stream: bool
    return_logprob: bool
    logprob_start_len: int = -1
    top_logprobs_num: int = 0
    return_hidden_states: bool = False
    left_out: list[str] | UnsetType = UNSET
    origins: PromptOrigins | UnsetType = UNSET

    @property
    def token_ids(self) -> list[int]:
        """The ids of the prompt, under the name of vLLM's schema."""
        return self.input_ids


def sampling_params(sampling: Sampling, given: dict[str, Any]) -> dict[str, Any]:
    """Return all sampling parameters of a request, with SGLang's defaults for those that are not set.

    Args:
        sampling: The sampling.
        given: Parameters that the request names in SGLang's words, which take precedence.

    Raises:
        EngineError: A field of the sampling cannot be honoured.

    """
    made: dict[str, Any] = {
        "max_new_tokens": None,
        "stop": list(sampling.stop),
        "stop_token_ids": None,
        "stop_regex": [],
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": WHOLE_VOCABULARY,
        "min_p": 0.0,
        "frequency_penalty": 0.0,
        "presence_penalty": 0.0,
        "repetition_penalty": 1.0,
        "min_new_tokens": 0,
        "n": 1,
        "json_schema": None,
        "regex": None,
        "ebnf": None,
        "structural_tag": None,
        "ignore_eos": False,
        "skip_special_tokens": True,
        "spaces_between_special_tokens": True,
        "no_stop_trim": False,
        "stream_interval": None,
        "logit_bias": None,
        "sampling_seed": None,
        "custom_params": None,
    }
    made |= sampling_fields(sampling) | given
    made["max_new_tokens"] = sampling.max_tokens
    if made["logit_bias"]:
        made["logit_bias"] = {str(token_id): bias for token_id, bias in made["logit_bias"].items()}
    if made["temperature"] < GREEDY:
        made["temperature"], made["top_k"] = 1.0, 1
    elif made["top_k"] < 1:
        made["top_k"] = WHOLE_VOCABULARY
    return made
