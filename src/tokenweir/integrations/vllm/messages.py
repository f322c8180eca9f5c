"""Conversion of vLLM's requests to decoder options, and of deltas to vLLM's messages."""

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
from tokenweir.stream.chat.message import AssistantMessage
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import DecoderOptions
from tokenweir.stream.decode.parsers.detection import find_splitter
from tokenweir.stream.decode.parsers.pieces import Piece
from tokenweir.stream.decode.parsers.schemas import tool_schemas_of
from tokenweir.stream.events.deltas import Channel, Delta, Finish, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.tools import tool_style_of


def decoder_options(request: Any) -> DecoderOptions:
    """Return the decoder's options for a request of vLLM: its stop strings and stop ids, without styles and tools.

    vLLM cuts its own text at the same stops. The decoder does not use that text, so it has to look for them itself.
    """
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
    """Return a request's tools as dicts, without those that are not functions with a name."""
    found = [tool if isinstance(tool, dict) else tool.model_dump() for tool in tools or ()]
    return [tool for tool in found if isinstance(tool.get("function", tool).get("name"), str)]


def delta_message(deltas: Iterable[Delta], make_id: Callable[[str], str | None] = lambda name: None) -> Any:
    """Convert deltas to one vLLM `DeltaMessage`; None if they have no text and no calls.

    Args:
        deltas: The deltas.
        make_id: Returns the id of a new call by its function's name; None for an id as vLLM makes it.

    """
    texts: dict[str, list[str]] = {}
    calls: dict[int, Any] = {}
    arguments: dict[int, list[str]] = {}
    for delta in deltas:
        match delta:
            case TextDelta(text):
                texts.setdefault("content", []).append(text)
            case ReasoningDelta(text):
                texts.setdefault("reasoning", []).append(text)
            case ToolCallDelta(name, more, call=call) if name:
                new_id = make_id(name) or ToolCall(function=FunctionCall(name=name, arguments="")).id
                function = DeltaFunctionCall(name=name)
                calls[call] = DeltaToolCall(index=call, id=new_id, type="function", function=function)
                arguments[call] = [more]
            case ToolCallDelta(_, more, call=call) if more:
                if call not in calls:
                    calls[call] = DeltaToolCall(index=call, function=DeltaFunctionCall())
                arguments.setdefault(call, []).append(more)
            case ToolCallDelta() | Finish():
                pass
    if not texts and not calls:
        return None
    for call, pieces in arguments.items():
        calls[call].function.arguments = "".join(pieces)
    return DeltaMessage(tool_calls=list(calls.values()), **{name: "".join(pieces) for name, pieces in texts.items()})


def join_deltas(deltas: Iterable[Delta]) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    """Return the thinking and the answer's text, each None if it is empty, and the name and arguments of each call."""
    message = AssistantMessage.of(deltas).as_dict()
    functions = (call["function"] for call in message.get("tool_calls", ()))
    calls = [(function["name"], function["arguments"]) for function in functions]
    return message.get("reasoning_content") or None, message["content"] or None, calls


def text_deltas(tok: Tokenizer, text: str, prompt_ids: Sequence[int], options: DecoderOptions) -> list[Delta]:
    """Split a whole answer's text into deltas of text, thinking and tool calls, without its ids.

    Stop strings are not looked for, because vLLM has cut the text at them.

    Args:
        tok: The tokenizer.
        text: The text of the answer.
        prompt_ids: The ids of the prompt, whose end tells whether the answer begins inside thinking.
        options: The styles of thinking and calls, and the tools.

    """
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
