"""vLLM's reasoning and tool parsers over `ChatDecoder`.

`Parser` decodes an answer's ids; the prompt's ids tell whether the answer begins inside thinking. vLLM's
`ParserManager` creates one if all parsers that are chosen, for reasoning and for tools, are tokenweir's. Together with
a parser of vLLM's own, `Reasoning` or `Tools` does its part by vLLM's older interface.

The registered names are `tokenweir`, which finds the style by the vocabulary, and `tokenweir_` with the name of a
style, such as `tokenweir_hermes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from vllm.entrypoints.generate.base.protocol import ExtractedToolCallInformation, FunctionCall, ToolCall
from vllm.parser import DelegatingParser, ParserManager
from vllm.reasoning import ReasoningParser, ReasoningParserManager
from vllm.tool_parsers import ToolParser, ToolParserManager

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.per_tokenizer import weakly_cached
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.integrations.transformers.backend import Backend
from tokenweir.integrations.vllm.messages import (
    decoder_options,
    delta_message,
    join_deltas,
    plain_tools,
    reasoning_tokens,
    text_deltas,
)
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import DecoderOptions
from tokenweir.stream.decode.parsers.detection import read_prompt
from tokenweir.stream.events.deltas import Channel, Delta, ReasoningDelta, TextDelta
from tokenweir.templates.styles.reasoning import STYLES, style_of
from tokenweir.templates.styles.tools import TOOL_STYLES

NAME = "tokenweir"
"""The parsers' name, and the beginning of the names with a style."""

STRUCTURAL_TAGS = {
    "deepseek-v3.2": "deepseek_v3_2",
    "deepseek-v4": "deepseek_v4",
    "deepseek-v4.1": "deepseek_v4_1",
    "glm": "glm_4_7",
    "hermes": "hermes",
    "kimi-k2": "kimi",
    "kimi-k3": "kimi_k3",
    "llama3": "llama",
    "longcat": "longcat",
    "minimax-m2": "minimax",
    "plamo3": "plamo3",
    "qwen3-coder": "qwen_3_coder",
}
"""Styles of calls for which vLLM has a grammar, with its name there. Styles of several formats have none here."""


@weakly_cached
def _backend_of(tokenizer: Any) -> Any:
    return Backend.of(getattr(tokenizer, "_tokenizer", None))


def tokenizer_of(tokenizer: Any) -> Tokenizer:
    """Return tokenweir's tokenizer for a tokenizer of vLLM; it is cached for as long as vLLM's object lives.

    Raise `UnsupportedTokenizerError` unless it is a fast tokenizer of transformers that is reproduced exactly.
    """
    found = getattr(_backend_of(tokenizer), "tokenizer", None)
    if not isinstance(found, Tokenizer):
        raise UnsupportedTokenizerError(f"{type(tokenizer).__name__} has no tokenizer that tokenweir reproduces")
    return found


class Parser(DelegatingParser):  # type: ignore[misc]
    """vLLM's parser of one answer, for thinking and tool calls together; decodes the answer's ids."""

    def __init__(self, tokenizer: Any, tools: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, tools, *args, **kwargs)
        self._tokenizer = tokenizer_of(tokenizer)
        self._tools = tools
        self._prompt_ids: Sequence[int] = ()
        self._decoder: ChatDecoder | None = None

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Set the prompt, whose end tells whether the answer begins inside thinking."""
        super().set_prompt_token_ids(prompt_token_ids)
        self._prompt_ids = prompt_token_ids

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: list[int],
        request: Any,
        prompt_token_ids: list[int] | None = None,
        *,
        finished: bool,
    ) -> Any:
        """Decode the next ids of a stream; return a `DeltaMessage`, or None if there is nothing to send.

        The text that vLLM has decoded (`delta_text`) is not used, and `prompt_token_ids` only in the first call.
        `finished` flushes the decoder.
        """
        self._initialize_history_tool_call_cnt(request)
        if self._decoder is None:
            if prompt_token_ids is not None:
                self.set_prompt_token_ids(prompt_token_ids)
            self._decoder = ChatDecoder(self._tokenizer, prompt_ids=self._prompt_ids, **self._options(request))
        deltas = self._decoder.feed(delta_token_ids)
        if finished:
            deltas += self._decoder.finish()
        return self._message(deltas, request)

    def parse(
        self,
        model_output: str,
        request: Any,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[Any] | None]:
        """Parse a whole answer, by its ids, or by its text if vLLM gives no ids.

        Tool calls are parsed if a tool parser is chosen, the request has tools, and its `tool_choice` is not "none".
        `enable_auto_tools` is not used.

        Returns:
            The thinking, the answer's text, and the tool calls; None for each that the answer does not have. The
            thinking is also None if the request's `include_reasoning` is False.

        """
        self._initialize_history_tool_call_cnt(request)
        options = self._options(request)
        deltas: list[Delta]
        if len(model_output_token_ids):
            decoder = ChatDecoder(self._tokenizer, prompt_ids=self._prompt_ids, **options)
            deltas = decoder.feed(list(model_output_token_ids)) + decoder.finish()
        else:
            deltas = text_deltas(self._tokenizer, model_output, self._prompt_ids, options)
        reasoning, content, calls = join_deltas(deltas)
        found = [
            FunctionCall(id=self._make_tool_call_id(name), name=name, arguments=arguments) for name, arguments in calls
        ]
        return reasoning if getattr(request, "include_reasoning", True) else None, content, found or None

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Return how many of an answer's ids are thinking, its tags included."""
        if self._reasoning_parser is None:
            return 0
        return reasoning_tokens(self._tokenizer, self._prompt_ids, token_ids, type(self._reasoning_parser).style)

    def _options(self, request: Any) -> DecoderOptions:
        """Return the decoder's options for a request: styles of thinking and calls, tools, and the request's stops."""
        options = decoder_options(request)
        thinks, calls = self._reasoning_parser, self._tool_parser
        options["reasoning"] = None if thinks is None else type(thinks).style
        takes_calls = calls is not None and self._tools and getattr(request, "tool_choice", "auto") != "none"
        options["tool_style"] = type(calls).style if takes_calls else None
        options["tools"] = plain_tools(self._tools)
        return options

    def _message(self, deltas: Sequence[Delta], request: Any) -> Any:
        if not getattr(request, "include_reasoning", True):
            deltas = [delta for delta in deltas if not isinstance(delta, ReasoningDelta)]
        return delta_message(deltas, self._make_tool_call_id)


class _Streaming:
    """Mixin of `Reasoning` and `Tools`: the `ChatDecoder` of one stream, made at first use, and its flush."""

    engine_based_streaming = True
    style: ClassVar[str] = "auto"
    _decoder: ChatDecoder | None = None

    def finish_streaming(self) -> Any:
        """Flush the decoder; return a `DeltaMessage` of what it still held, or None if there is nothing to send."""
        return None if self._decoder is None else delta_message(self._decoder.finish())


class Reasoning(_Streaming, ReasoningParser):  # type: ignore[misc]
    """vLLM's reasoning parser: splits thinking from the answer, for use together with a tool parser of vLLM's own."""

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self._tokenizer = tokenizer_of(tokenizer)
        known = None if self.style == "auto" else style_of(self.style)
        self._style = read_prompt(self._tokenizer, (), known).style
        self._prompt_ids: Sequence[int] = ()
        self._thought = self._answered = False

    @property
    def reasoning_start_str(self) -> str | None:
        """The tag that begins the thinking; None if the vocabulary has no style of thinking."""
        return None if self._style is None else self._style.openers[0]

    @property
    def reasoning_end_str(self) -> str | None:
        """The tag that ends the thinking; None if the vocabulary has no style of thinking."""
        return None if self._style is None else self._style.closers[0]

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Set the prompt, whose end tells whether the answer begins inside thinking."""
        self._prompt_ids = prompt_token_ids

    adjust_initial_state_from_prompt = set_prompt_token_ids

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether the thinking of the last turn has ended: its last tag closes thinking.

        True if there is no style of thinking.
        """
        if self._style is None:
            return True
        if read_prompt(self._tokenizer, list(input_ids), self._style).inside:
            return False
        return self._closed(input_ids)

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether the thinking has ended within the newest ids, `delta_ids`, which are the last of `input_ids`."""
        if self._style is None:
            return True
        tags = self._style.openers + self._style.closers
        reach = len(list(delta_ids)) + max(len(tag.encode()) for tag in tags)  # no token is shorter than a byte
        return self._closed(input_ids[-reach:])

    def _closed(self, ids: Sequence[int]) -> bool:
        style = self._style
        assert style is not None
        text = self._tokenizer.decode(list(ids), skip_special_tokens=False)
        last = max(text.rfind(tag) for tag in style.closers)
        return last >= 0 and last > max(text.rfind(tag) for tag in style.openers)

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """Return the ids behind the end of the thinking; an empty list if it has not ended within `input_ids`."""
        decoder = self._begin()
        for place, token_id in enumerate(input_ids):
            before = decoder.channel
            decoder.feed([token_id])
            if before is Channel.REASONING and decoder.channel is not Channel.REASONING:
                return list(input_ids[place + 1 :])
        return []

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Split a whole text; return the thinking and the answer, each None if it is empty. `request` is not used."""
        options = DecoderOptions(reasoning=self.style)
        reasoning, content, _ = join_deltas(text_deltas(self._tokenizer, model_output, self._prompt_ids, options))
        return reasoning, content

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> Any:
        """Decode the next ids of a stream.

        Return a `DeltaMessage` of thinking and answer, or None if there is nothing to send. Only `delta_token_ids` is
        used.
        """
        if self._decoder is None:
            self._decoder = self._begin()
        deltas = self._decoder.feed(list(delta_token_ids))
        self._thought |= any(isinstance(delta, ReasoningDelta) for delta in deltas)
        self._answered |= any(isinstance(delta, TextDelta) for delta in deltas)
        return delta_message(deltas)

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Whether the stream has left the thinking and begun the answer, by the ids decoded so far."""
        channel = Channel.REASONING if self._decoder is None else self._decoder.channel
        return self._answered or (self._thought and channel is not Channel.REASONING)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Return how many of an answer's ids are thinking, its tags included."""
        return reasoning_tokens(self._tokenizer, self._prompt_ids, token_ids, self.style)

    def adjust_request(self, request: Any) -> Any:
        """Set the request to keep special tokens in vLLM's text, which a tool parser may read; return the request."""
        if hasattr(request, "skip_special_tokens"):
            request.skip_special_tokens = False
        return request

    def _begin(self) -> ChatDecoder:
        return ChatDecoder(self._tokenizer, prompt_ids=self._prompt_ids, reasoning=self.style, ignore_eos=True)


class Tools(_Streaming, ToolParser):  # type: ignore[misc]
    """vLLM's tool parser: finds tool calls in an answer, for use together with a reasoning parser of vLLM's own.

    vLLM constrains a required or named call by its own grammar for the style, if `STRUCTURAL_TAGS` names one. The
    style `auto` has no grammar, because a vocabulary alone does not tell Qwen3's calls from Qwen3-Coder's.
    """

    supports_required_and_named = False

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        super().__init__(tokenizer, tools)
        self._tokenizer = tokenizer_of(tokenizer)
        self._plain = plain_tools(tools)

    def adjust_request(self, request: Any) -> Any:
        """Set a request with tools to keep special tokens in vLLM's text, which `extract_tool_calls` reads.

        Return the request.
        """
        if request.tools and request.tool_choice != "none":
            request.skip_special_tokens = False
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """Find the tool calls in a whole text; return vLLM's `ExtractedToolCallInformation`. `request` is not used."""
        options = DecoderOptions(reasoning=None, tool_style=self.style, tools=self._plain)
        _, content, calls = join_deltas(text_deltas(self._tokenizer, model_output, (), options))
        found = [ToolCall(function=FunctionCall(name=name, arguments=arguments)) for name, arguments in calls]
        return ExtractedToolCallInformation(tools_called=bool(found), tool_calls=found, content=content)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> Any:
        """Decode the next ids of a stream.

        Return a `DeltaMessage` of text and calls, or None if there is nothing to send. Only `delta_token_ids` is used,
        and in the first call the stops of `request`.
        """
        if self._decoder is None:
            options = decoder_options(request)
            options |= {"reasoning": None, "tool_style": self.style, "tools": self._plain}
            self._decoder = ChatDecoder(self._tokenizer, **options)
        return delta_message(self._decoder.feed(list(delta_token_ids)))


def register_all() -> None:
    """Register the parsers of all styles in vLLM's managers, and let `ParserManager` replace a pair of them by `Parser`."""
    for name, style in _names(TOOL_STYLES):
        fields = {"style": style, "structural_tag_model": STRUCTURAL_TAGS.get(style)}
        ToolParserManager.register_module(name, module=type(Tools.__name__, (Tools,), fields))
    for name, style in _names(STYLES):
        ReasoningParserManager.register_module(name, module=type(Reasoning.__name__, (Reasoning,), {"style": style}))
    original = ParserManager.get_parser
    if getattr(original, "joins_tokenweir", False):
        return

    def get_parser(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        halves = [] if found is None else [found.reasoning_parser_cls, found.tool_parser_cls]
        given = [half for half in halves if half is not None]
        if kwargs.get("is_harmony") or not given or not all(issubclass(half, Reasoning | Tools) for half in given):
            return found  # vLLM serves harmony by a parser of its own
        named = ("reasoning_parser_cls", "tool_parser_cls", "tool_strict_level")
        return type(Parser.__name__, (Parser,), {name: getattr(found, name, None) for name in named})

    get_parser.joins_tokenweir = True  # type: ignore[attr-defined]
    ParserManager.get_parser = staticmethod(get_parser)


def _names(styles: Iterable[str]) -> list[tuple[str, str]]:
    return [(NAME, "auto"), *((f"{NAME}_{style.replace('-', '_')}", style) for style in styles)]
