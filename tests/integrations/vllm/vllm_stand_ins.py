"""Stand-ins for the parts of vLLM 0.33 that the plug-ins touch, where vLLM is not installed.

`test_signatures.py` compares every method here with vLLM's sources, if the variable VLLM_SOURCE names a folder of them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, make_dataclass
from enum import Enum
from types import ModuleType
from typing import Any, ClassVar


def record(name: str, /, *needed: str, **defaults: Any) -> type:
    """Make a class of named fields, some with defaults; a callable makes one."""
    fields = [(each, Any, field(default_factory=one) if callable(one) else one) for each, one in defaults.items()]
    return make_dataclass(name, [*((each, Any) for each in needed), *fields], kw_only=True)


FunctionCall = record("FunctionCall", "name", "arguments", id=None)
ToolCall = record("ToolCall", "function", id=lambda: "call_1", type="function")
DeltaFunctionCall = record("DeltaFunctionCall", name=None, arguments=None)
DeltaToolCall = record("DeltaToolCall", "index", id=None, type=None, function=None)
ExtractedToolCallInformation = record("ExtractedToolCallInformation", "tools_called", "tool_calls", content=None)
DeltaMessage = record("DeltaMessage", role=None, content=None, reasoning=None, tool_calls=list)


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


StructuredOutputsParams = record("StructuredOutputsParams", json=None, grammar=None)
SamplingParams = record(
    "SamplingParams",
    n=1,
    temperature=1.0,
    top_p=1.0,
    top_k=0,
    min_p=0.0,
    max_tokens=16,
    min_tokens=0,
    presence_penalty=0.0,
    frequency_penalty=0.0,
    repetition_penalty=1.0,
    ignore_eos=False,
    detokenize=True,
    output_kind=RequestOutputKind.CUMULATIVE,
    **dict.fromkeys(("seed", "stop_token_ids", "logprobs", "prompt_logprobs", "structured_outputs", "logit_bias")),
    **dict.fromkeys(("allowed_token_ids", "extra_args", "bad_words", "thinking_token_budget", "repetition_detection")),
)
"""With the fields of vLLM's `SamplingParams` that the engine sets."""


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None
    logprobs: Any
    finish_reason: str | None = None


class RequestOutput:
    def __init__(
        self, request_id, prompt, prompt_token_ids, prompt_logprobs, outputs, finished, *, num_cached_tokens=None
    ):
        self.request_id, self.outputs, self.finished = request_id, outputs, finished
        self.prompt_logprobs, self.num_cached_tokens = prompt_logprobs, num_cached_tokens


@dataclass
class Logprob:
    logprob: float


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
