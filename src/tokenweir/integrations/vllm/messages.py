"""Between vLLM's requests and messages and the decoder's options and deltas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    FunctionCall,
    ToolCall,
)

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import DecoderOptions
from tokenweir.stream.decode.parsers.base import Piece
from tokenweir.stream.decode.parsers.detection import find_splitter
from tokenweir.stream.decode.parsers.schemas import tool_schemas_of
from tokenweir.stream.events.deltas import Channel, Delta, Finish, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.tools import tool_style_of


def decoder_options(request: Any) -> DecoderOptions:
    """Return a decoder's options from a request: vLLM cuts the same stops out of its text, which is not used."""
    stop = getattr(request, "stop", None) or []
    return DecoderOptions(
        stop=[stop] if isinstance(stop, str) else list(stop),
        stop_scope="all",
        stop_token_ids=getattr(request, "stop_token_ids", None) or [],
        include_stop=bool(getattr(request, "include_stop_str_in_output", False)),
        min_tokens=getattr(request, "min_tokens", None) or 0,
        ignore_eos=True,  # vLLM ends the answer
    )


def plain_tools(tools: Any) -> list[dict[str, Any]]:
    """Return the functions among a request's tools as plain objects."""
    found = [tool if isinstance(tool, dict) else tool.model_dump() for tool in tools or ()]
    return [tool for tool in found if isinstance(tool.get("function", tool).get("name"), str)]


def delta_message(deltas: Iterable[Delta], make_id: Callable[[str], str | None] = lambda name: None) -> Any:
    """Return vLLM's message of deltas; None if there is nothing to send."""
    texts: dict[str, str] = {}
    calls: dict[int, Any] = {}
    for delta in deltas:
        match delta:
            case TextDelta(text):
                texts["content"] = texts.get("content", "") + text
            case ReasoningDelta(text):
                texts["reasoning"] = texts.get("reasoning", "") + text
            case ToolCallDelta(name, arguments, call=call) if name:
                function = DeltaFunctionCall(name=name, arguments=arguments)
                new_id = make_id(name) or ToolCall(function=FunctionCall(name=name, arguments="")).id
                calls[call] = DeltaToolCall(index=call, id=new_id, type="function", function=function)
            case ToolCallDelta(_, arguments, call=call) if arguments:
                if call not in calls:
                    calls[call] = DeltaToolCall(index=call, function=DeltaFunctionCall(arguments=""))
                calls[call].function.arguments += arguments
            case ToolCallDelta() | Finish():
                pass
    if not texts and not calls:
        return None
    return DeltaMessage(tool_calls=list(calls.values()), **texts)


def joined(deltas: Iterable[Delta]) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    """Return the thinking, the answer, and the name and arguments of each call."""
    reasoning = content = ""
    calls: dict[int, tuple[str, str]] = {}
    for delta in deltas:
        match delta:
            case TextDelta(text):
                content += text
            case ReasoningDelta(text):
                reasoning += text
            case ToolCallDelta(name, arguments, call=call):
                known = calls.get(call, ("", ""))
                calls[call] = known[0] + name, known[1] + arguments
            case Finish():
                pass
    return reasoning or None, content or None, list(calls.values())


def text_deltas(tok: Tokenizer, text: str, prompt_ids: Sequence[int], options: DecoderOptions) -> list[Delta]:
    """Parse a whole text without ids, by the same splitters; stop strings are vLLM's own here."""
    reasoning, calls = options.get("reasoning"), options.get("tool_style")
    splitter, _ = find_splitter(
        tok,
        list(prompt_ids),
        style_of(reasoning) if reasoning not in (None, "auto") else reasoning,  # type: ignore[arg-type]
        tool_style_of(calls) if calls not in (None, "auto") else calls,  # type: ignore[arg-type]
        tool_schemas_of(options.get("tools")),
    )
    if splitter is None:
        return [TextDelta(text)] if text else []
    return [_delta_of(piece) for piece in [*splitter.feed(text), *splitter.finish()] if piece.channel is not None]


def _delta_of(piece: Piece) -> Delta:
    match piece.channel:
        case Channel.REASONING:
            return ReasoningDelta(piece.text)
        case Channel.TOOL_CALL:
            return ToolCallDelta(piece.name, piece.text, call=piece.call)
        case _:
            return TextDelta(piece.text)


def reasoning_tokens(tok: Tokenizer, prompt_ids: Sequence[int], ids: Sequence[int], style: str) -> int:
    decoder = ChatDecoder(tok, prompt_ids=prompt_ids, reasoning=style, ignore_eos=True)
    deltas = decoder.feed(list(ids)) + decoder.finish()
    return next(delta.usage.reasoning_tokens for delta in deltas if isinstance(delta, Finish))
