"""tokenweir: chat messages in, prompt ids out to any engine; token ids back, clean text out, token by token.

Every public name is here, grouped by the folder it comes from, and loaded when it is first used. `tokenweir.gpu` is
imported by name; nothing here needs a GPU.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenweir.encode.decode import DecodeStream
    from tokenweir.encode.decode_batch import DecodeBatch
    from tokenweir.encode.encoded import Encoded, Ragged
    from tokenweir.encode.errors import (
        DeliveryError,
        DeviceError,
        EngineError,
        ProtocolError,
        TemplateError,
        TextError,
        TokenIdError,
        TokenizerFileError,
        TokenweirError,
        UnsupportedTokenizerError,
    )
    from tokenweir.encode.spec import AddedToken, TokenizerSpec
    from tokenweir.encode.tokenizer import Tokenizer
    from tokenweir.stream.decode.chat_decoder import ChatDecoder
    from tokenweir.stream.decode.chunk import Chunk
    from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
    from tokenweir.stream.decode.stops import StopStep, StopStrings
    from tokenweir.stream.delivery.broadcast import Handoff, View
    from tokenweir.stream.delivery.fan_out import fan_out
    from tokenweir.stream.engines import Engine, EngineStep, NgramEngine, ReplayEngine, Sampling, SyncEngine
    from tokenweir.stream.events import (
        Alignment,
        Channel,
        Delta,
        Finish,
        FinishReason,
        ReasoningDelta,
        TextDelta,
        ToolCallDelta,
        Usage,
    )
    from tokenweir.stream.pipeline.chat import chat
    from tokenweir.stream.pipeline.stages import (
        decode_chat,
        detokenize,
        split_reasoning,
        split_tool_calls,
        stop_at,
        strip_reasoning,
        until_eos,
    )
    from tokenweir.stream.prompts.batcher import PromptBatcher
    from tokenweir.stream.prompts.prompt_encoding import encode_prompts
    from tokenweir.stream.server.limits import Limits
    from tokenweir.stream.server.serve import serve
    from tokenweir.templates import ChatTemplate, Prompt, Segment
    from tokenweir.templates.reasoning_styles import ReasoningStyle
    from tokenweir.templates.tool_styles import ToolStyle

_MODULES = {
    # text <-> ids
    "encode.decode": ["DecodeStream"],
    "encode.decode_batch": ["DecodeBatch"],
    "encode.encoded": ["Encoded", "Ragged"],
    "encode.errors": [
        "DeliveryError",
        "DeviceError",
        "EngineError",
        "ProtocolError",
        "TemplateError",
        "TextError",
        "TokenIdError",
        "TokenizerFileError",
        "TokenweirError",
        "UnsupportedTokenizerError",
    ],
    "encode.spec": ["AddedToken", "TokenizerSpec"],
    "encode.tokenizer": ["Tokenizer"],
    # messages -> prompt
    "templates": ["ChatTemplate", "Prompt", "Segment"],
    "templates.reasoning_styles": ["ReasoningStyle"],
    "templates.tool_styles": ["ToolStyle"],
    # ids -> deltas
    "stream.prompts.batcher": ["PromptBatcher"],
    "stream.pipeline.chat": ["chat"],
    "stream.decode.chat_decoder": ["ChatDecoder"],
    "stream.decode.chunk": ["Chunk"],
    "stream.engines": ["Engine", "EngineStep", "NgramEngine", "ReplayEngine", "Sampling", "SyncEngine"],
    "stream.events": [
        "Alignment",
        "Channel",
        "Delta",
        "Finish",
        "FinishReason",
        "ReasoningDelta",
        "TextDelta",
        "ToolCallDelta",
        "Usage",
    ],
    "stream.delivery.fan_out": ["fan_out"],
    "stream.delivery.broadcast": ["Handoff", "View"],
    "stream.prompts.prompt_encoding": ["encode_prompts"],
    "stream.server.limits": ["Limits"],
    "stream.decode.parsers.reasoning": ["ReasoningParser"],
    "stream.server.serve": ["serve"],
    "stream.pipeline.stages": [
        "decode_chat",
        "detokenize",
        "split_reasoning",
        "split_tool_calls",
        "stop_at",
        "strip_reasoning",
        "until_eos",
    ],
    "stream.decode.stops": ["StopStep", "StopStrings"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AddedToken",
    "Alignment",
    "Channel",
    "ChatDecoder",
    "ChatTemplate",
    "Chunk",
    "DecodeBatch",
    "DecodeStream",
    "DeliveryError",
    "Delta",
    "DeviceError",
    "Encoded",
    "Engine",
    "EngineError",
    "EngineStep",
    "Finish",
    "FinishReason",
    "Handoff",
    "Limits",
    "NgramEngine",
    "Prompt",
    "PromptBatcher",
    "ProtocolError",
    "Ragged",
    "ReasoningDelta",
    "ReasoningParser",
    "ReasoningStyle",
    "ReplayEngine",
    "Sampling",
    "Segment",
    "StopStep",
    "StopStrings",
    "SyncEngine",
    "TemplateError",
    "TextDelta",
    "TextError",
    "TokenIdError",
    "Tokenizer",
    "TokenizerFileError",
    "TokenizerSpec",
    "TokenweirError",
    "ToolCallDelta",
    "ToolStyle",
    "UnsupportedTokenizerError",
    "Usage",
    "View",
    "chat",
    "decode_chat",
    "detokenize",
    "encode_prompts",
    "fan_out",
    "serve",
    "split_reasoning",
    "split_tool_calls",
    "stop_at",
    "strip_reasoning",
    "until_eos",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # 30 ms, which nobody else needs

        return version("tokenweir")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tokenweir' has no attribute {name!r}")
    value = getattr(import_module(f"tokenweir.{_MODULE_OF[name]}"), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
