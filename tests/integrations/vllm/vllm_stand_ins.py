"""Stand-ins for the parts of vLLM 0.33 that the plug-ins touch, where vLLM is not installed.

`test_signatures.py` compares every method here with vLLM's sources, if the variable VLLM_SOURCE names a folder of them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field


class FunctionCall(BaseModel):
    id: str | None = Field(default=None, exclude=True)
    name: str
    arguments: str


class ToolCall(BaseModel):
    id: str = Field(default_factory=lambda: "call_1")
    type: Literal["function"] = "function"
    function: FunctionCall


class DeltaFunctionCall(BaseModel):
    name: str | None = None
    arguments: str | None = None


class DeltaToolCall(BaseModel):
    id: str | None = None
    type: Literal["function"] | None = None
    index: int
    function: DeltaFunctionCall | None = None


class ExtractedToolCallInformation(BaseModel):
    tools_called: bool
    tool_calls: list[ToolCall]
    content: str | None = None


class DeltaMessage(BaseModel):
    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[DeltaToolCall] = Field(default_factory=list)


class ReasoningParser:
    engine_based_streaming = False

    def __init__(self, tokenizer, *args, **kwargs):
        self.model_tokenizer = tokenizer

    def has_engine_confirmed_reasoning_end(self):
        return False

    def is_reasoning_end(self, input_ids): ...
    def is_reasoning_end_streaming(self, input_ids, delta_ids): ...
    def extract_content_ids(self, input_ids): ...
    def count_reasoning_tokens(self, token_ids): ...
    def extract_reasoning(self, model_output, request): ...
    def extract_reasoning_streaming(
        self, previous_text, current_text, delta_text, previous_token_ids, current_token_ids, delta_token_ids
    ): ...
    def adjust_request(self, request): ...
    def set_prompt_token_ids(self, prompt_token_ids): ...
    def adjust_initial_state_from_prompt(self, prompt_token_ids): ...


class ToolParser:
    supports_required_and_named = True
    structural_tag_model = None
    engine_based_streaming = False

    def __init__(self, tokenizer, tools=None):
        self.model_tokenizer = tokenizer

    def adjust_request(self, request): ...
    def extract_tool_calls(self, model_output, request): ...
    def extract_tool_calls_streaming(
        self, previous_text, current_text, delta_text, previous_token_ids, current_token_ids, delta_token_ids, request
    ): ...


class ReasoningParserManager:
    parsers: ClassVar[dict[str, Any]] = {}

    @classmethod
    def get_reasoning_parser(cls, name):
        return cls.parsers[name]

    @classmethod
    def register_module(cls, name=None, force=True, module=None):
        cls.parsers[name] = module
        return module


class ToolParserManager:
    parsers: ClassVar[dict[str, Any]] = {}

    @classmethod
    def get_tool_parser(cls, name):
        return cls.parsers[name]

    @classmethod
    def register_module(cls, name=None, force=True, module=None):
        cls.parsers[name] = module
        return module


class Parser:
    reasoning_parser_cls: Any = None
    tool_parser_cls: Any = None
    tool_strict_level = None

    def __init__(self, tokenizer, tools=None, *args, model_config=None, **kwargs):
        self.model_tokenizer = tokenizer
        kinds = type(self).reasoning_parser_cls, type(self).tool_parser_cls
        self._reasoning_parser = kinds[0] and kinds[0](tokenizer, *args, model_config=model_config, **kwargs)
        self._tool_parser = kinds[1] and kinds[1](tokenizer, tools)

    def _initialize_history_tool_call_cnt(self, request): ...
    def set_prompt_token_ids(self, prompt_token_ids): ...
    def parse(self, model_output, request, enable_auto_tools=False, model_output_token_ids=()): ...
    def parse_delta(self, delta_text, delta_token_ids, request, prompt_token_ids=None, *, finished): ...
    def count_reasoning_tokens(self, token_ids): ...


class DelegatingParser(Parser):
    def _make_tool_call_id(self, function_name):
        return None


class ParserManager:
    @classmethod
    def get_parser(
        cls,
        tool_parser_name=None,
        reasoning_parser_name=None,
        enable_auto_tools=False,
        model_name=None,
        is_harmony=False,
        tool_strict_level=None,
        tokenizer=None,
    ):
        tools = ToolParserManager.get_tool_parser(tool_parser_name) if tool_parser_name and enable_auto_tools else None
        thinks = ReasoningParserManager.get_reasoning_parser(reasoning_parser_name) if reasoning_parser_name else None
        if tools is None and thinks is None:
            return None
        return type("_Parser", (DelegatingParser,), {"reasoning_parser_cls": thinks, "tool_parser_cls": tools})


class RequestOutputKind(Enum):
    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclass
class StructuredOutputsParams:
    json: Any = None
    grammar: str | None = None


@dataclass
class SamplingParams:
    """Stand-in with the fields of vLLM's `SamplingParams` that the engine sets."""

    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    detokenize: bool = True
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    structured_outputs: StructuredOutputsParams | None = None
    logit_bias: dict[int, float] | None = None
    allowed_token_ids: list[int] | None = None
    extra_args: dict[str, Any] | None = None
    bad_words: list[str] | None = None
    thinking_token_budget: int | None = None
    repetition_detection: Any = None


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None
    logprobs: Any
    routed_experts: Any = None
    finish_reason: str | None = None
    stop_reason: Any = None


class RequestOutput:
    def __init__(
        self, request_id, prompt, prompt_token_ids, prompt_logprobs, outputs, finished, *, num_cached_tokens=None
    ):
        self.request_id, self.outputs, self.finished = request_id, outputs, finished
        self.prompt_logprobs, self.num_cached_tokens = prompt_logprobs, num_cached_tokens


@dataclass
class Logprob:
    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


class EngineClient:
    def generate(
        self,
        prompt,
        sampling_params,
        request_id,
        *,
        prompt_text=None,
        lora_request=None,
        tokenization_kwargs=None,
        trace_headers=None,
        priority=0,
        data_parallel_rank=None,
        session_id=None,
        kv_hints=None,
        reasoning_ended=None,
        reasoning_parser_kwargs=None,
    ): ...


class EndpointPlugin:
    def attach_router(self, app): ...
    async def init_state(self, engine_client, state, args): ...


def tokens_input(prompt_token_ids, *, prompt=None, cache_salt=None):
    given = {"type": "token", "prompt_token_ids": prompt_token_ids, "prompt": prompt, "cache_salt": cache_salt}
    return {name: value for name, value in given.items() if value is not None}


@dataclass
class Place:
    """A module of vLLM with the names that its stand-in has."""

    module: str
    names: list[str] = field(default_factory=list)
    source: str = ""
    """The file in vLLM's sources, if it is another than the module's."""


PLACES = [
    Place(
        "vllm.entrypoints.generate.base.protocol",
        [
            "DeltaFunctionCall",
            "DeltaMessage",
            "DeltaToolCall",
            "ExtractedToolCallInformation",
            "FunctionCall",
            "ToolCall",
        ],
    ),
    Place("vllm.parser", ["DelegatingParser", "Parser"], "vllm/parser/abstract_parser.py"),
    Place("vllm.parser", ["ParserManager"], "vllm/parser/parser_manager.py"),
    Place("vllm.reasoning", ["ReasoningParser", "ReasoningParserManager"], "vllm/reasoning/abs_reasoning_parsers.py"),
    Place("vllm.tool_parsers", ["ToolParser", "ToolParserManager"], "vllm/tool_parsers/abstract_tool_parser.py"),
    Place("vllm.sampling_params", ["RequestOutputKind", "SamplingParams", "StructuredOutputsParams"]),
    Place("vllm.outputs", ["CompletionOutput", "RequestOutput"]),
    Place("vllm.logprobs", ["Logprob"]),
    Place("vllm.engine.protocol", ["EngineClient"]),
    Place("vllm.plugins.endpoint_plugins.interface", ["EndpointPlugin"]),
    Place("vllm.inputs", ["tokens_input"], "vllm/inputs/engine.py"),
]


def install(setitem) -> None:
    """Put the stand-ins into `sys.modules` by a function that undoes it, such as `monkeypatch.setitem`."""
    for place in PLACES:
        parts = place.module.split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            if name not in sys.modules:
                setitem(sys.modules, name, ModuleType(name))
        for name in place.names:
            setattr(sys.modules[place.module], name, globals()[name])
