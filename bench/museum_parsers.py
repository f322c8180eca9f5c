"""Reported bugs of streaming parsers as streams of ids, for `bench/museum.py`: thinking and tool calls.

A parser passes if the joined thinking, the joined answer (both without white space at their ends) and all calls are those of the text.
vLLM's parsers take ids and their text. SGLang's take the text; what its server adds at the end of a stream is added.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from shared.report import DATA

from tokenweir import ChatDecoder, ReasoningDelta, TextDelta, Tokenizer, ToolCallDelta

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "d",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
PROMPT = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


class Parsed(NamedTuple):
    """Joined thinking, answer and calls of a stream."""

    thinking: str
    answer: str
    calls: list[tuple[str, str]]


@dataclass
class Answer:
    """An answer with a known bug of another library's parser.

    Attributes:
        issue: Where it was reported.
        name: The symptom.
        text: The answer, in the markup of its style.
        expected: The expected thinking, text and calls.
        size: The number of ids a step; 0 for all at once.
        style: The style of the calls, by vLLM's name.
        prompt: The prompt.
        spelled: Tags are spelled with ordinary tokens.

    """

    issue: str
    name: str
    text: str
    expected: Parsed
    size: int = 1
    style: str = "hermes"
    prompt: str = PROMPT
    spelled: bool = False

    def chunks(self, tok: Tokenizer) -> list[list[int]]:
        """The ids of each step."""
        parts = self.text.replace(">", "\0>").split("\0") if self.spelled else [self.text]
        ids = [i for part in parts for i in tok.encode(part, add_special_tokens=False)]
        size = self.size or len(ids)
        return [ids[start : start + size] for start in range(0, len(ids), size)]


def _hermes(city: str) -> str:
    call = {"name": "look", "arguments": {"city": city}}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


def _xml(city: str) -> str:
    return f"<tool_call>\n<function=look>\n<parameter=city>\n{city}\n</parameter>\n</function>\n</tool_call>"


def _calls(*cities: str) -> list[tuple[str, str]]:
    return [("look", json.dumps({"city": city})) for city in cities]


def answers() -> list[Answer]:
    """The cases."""
    two = f"{_hermes('Bern')}\n{_hermes('Rome')}"
    both = Parsed("", "", _calls("Bern", "Rome"))
    tag = Parsed("", "", _calls("a </tool_call> b"))
    thought = Parsed("Hm.", "Yes.", [])
    earlier = f"<|im_start|>user\nSay </think> or <think>.<|im_end|>\n{PROMPT}"
    return [
        Answer("SGLang 31915", "one call, all ids in one step", _hermes("Bern"), Parsed("", "", _calls("Bern")), 0),
        Answer("SGLang 31915", "two calls, all ids in one step", two, both, 0),
        Answer("SGLang 31915", "two calls, seven ids a step", two, both, 7),
        Answer(
            "vLLM 41967",
            "two calls in XML, seven ids a step",
            f"{_xml('Bern')}\n{_xml('Rome')}",
            both,
            7,
            "qwen3_coder",
        ),
        Answer(
            "vLLM 56077",
            "a call in XML, five ids a step",
            _xml("Bern"),
            Parsed("", "", _calls("Bern")),
            5,
            "qwen3_coder",
        ),
        Answer("SGLang 28698", "an end tag within an argument", _hermes("a </tool_call> b"), tag),
        Answer("SGLang 28698", "the same, all ids in one step", _hermes("a </tool_call> b"), tag, 0),
        Answer(
            "SGLang 40739",
            "text behind a call, one id a step",
            f"{_xml('Bern')}after",
            Parsed("", "after", _calls("Bern")),
            1,
            "qwen3_coder",
        ),
        Answer(
            "SGLang 40739",
            "the same, all ids in one step",
            f"{_xml('Bern')}after",
            Parsed("", "after", _calls("Bern")),
            0,
            "qwen3_coder",
        ),
        Answer("vLLM 58105", "tags of ordinary tokens", _hermes("Bern"), Parsed("", "", _calls("Bern")), spelled=True),
        Answer("vLLM 46042", "the end of the thinking within a step", "<think>\nHm.\n</think>\n\nYes.", thought, 0),
        Answer(
            "vLLM 50549", "the prompt's text has the tags", "<think>\nHm.\n</think>\n\nYes.", thought, prompt=earlier
        ),
        Answer(
            "vLLM 50549",
            "the prompt opens the thinking",
            "Hm.\n</think>\n\nYes.",
            thought,
            3,
            prompt=f"{earlier}<think>\n",
        ),
    ]


Parser = Callable[[Answer], Parsed]


def _tokenizer() -> Tokenizer:
    return Tokenizer.from_file(DATA / "tokenizers" / "qwen3")


def _parsed(pieces: Iterator[tuple[str, int, str, str]]) -> Parsed:
    """Join pieces: channel, number of the call, its name, text."""
    texts = {"thinking": "", "answer": ""}
    calls: dict[int, tuple[str, str]] = {}
    for channel, number, name, text in pieces:
        if channel == "call":
            known = calls.get(number, ("", ""))
            calls[number] = known[0] + name, known[1] + text
        else:
            texts[channel] += text
    return Parsed(texts["thinking"], texts["answer"], [calls[number] for number in sorted(calls)])


def tokenweir_(answer: Answer) -> Parsed:
    """This library's decoder."""
    tok = _tokenizer()
    style = {"hermes": "hermes", "qwen3_coder": "qwen3-coder"}[answer.style]
    decoder = ChatDecoder(
        tok, prompt_ids=tok.encode(answer.prompt), reasoning="think", tool_style=style, tools=TOOLS, ignore_eos=True
    )

    def pieces() -> Iterator[tuple[str, int, str, str]]:
        for step in [*map(decoder.feed, answer.chunks(tok)), decoder.finish()]:
            for delta in step:
                match delta:
                    case ReasoningDelta(text):
                        yield "thinking", 0, "", text
                    case TextDelta(text):
                        yield "answer", 0, "", text
                    case ToolCallDelta(name, text, call=number):
                        yield "call", number, name, text

    return _parsed(pieces())


def vllm(answer: Answer) -> Parsed:
    """The parser that vLLM's server makes of its tool parser and its parser `qwen3`."""
    import transformers
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.parser import ParserManager

    tok, own = _tokenizer(), transformers.AutoTokenizer.from_pretrained(DATA / "tokenizers" / "qwen3")
    names = {"tool_parser_name": answer.style, "reasoning_parser_name": "qwen3"}
    kind = ParserManager.get_parser(enable_auto_tools=True, tokenizer=own, **names)
    request = ChatCompletionRequest(messages=[{"role": "user", "content": "Hi"}], tools=TOOLS, tool_choice="auto")
    parser = kind(own, request.tools, chat_template_kwargs=None, model_config=None)
    prompt = tok.encode(answer.prompt)

    def pieces() -> Iterator[tuple[str, int, str, str]]:
        chunks = answer.chunks(tok)
        for place, chunk in enumerate(chunks):
            text = tok.decode(chunk, skip_special_tokens=False)
            message = parser.parse_delta(text, chunk, request, prompt, finished=place == len(chunks) - 1)
            if message is None:
                continue
            yield "thinking", 0, "", message.reasoning or ""
            yield "answer", 0, "", message.content or ""
            for call in message.tool_calls:
                yield "call", call.index, call.function.name or "", call.function.arguments or ""

    return _parsed(pieces())


def sglang(answer: Answer) -> Parsed:
    """SGLang's `ReasoningParser("qwen3")` and the `FunctionCallParser` behind it."""
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    tok = _tokenizer()
    calls = FunctionCallParser([Tool(**tool) for tool in TOOLS], answer.style)
    thinking = ReasoningParser("qwen3", force_reasoning=answer.prompt.endswith("<think>\n"))

    def split(text: str, found: list[Any]) -> Iterator[tuple[str, int, str, str]]:
        yield "answer", 0, "", text
        for call in found:
            yield "call", call.tool_index, call.name or "", call.parameters or ""

    def pieces() -> Iterator[tuple[str, int, str, str]]:
        for chunk in answer.chunks(tok):
            thought, text = thinking.parse_stream_chunk(tok.decode(chunk, skip_special_tokens=False))
            yield "thinking", 0, "", thought or ""
            if text:
                yield from split(*calls.parse_stream_chunk(text))
        yield from split(*calls.parse_stream_end())
        yield from _unsent(calls.detector)

    return _parsed(pieces())


def _unsent(detector: Any) -> Iterator[tuple[str, int, str, str]]:
    """The arguments of the last call that SGLang's server sends at the end, if they go on from those that were sent."""
    known, sent = detector.prev_tool_call_arr, detector.streamed_args_for_tool
    last = len(known) - 1
    if 0 <= last < len(sent):
        arguments = known[last].get("arguments", {})
        whole = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        if whole.startswith(sent[last]):
            yield "call", last, "", whole[len(sent[last]) :]


PARSERS: dict[str, tuple[Parser, str]] = {
    "tokenweir": (tokenweir_, "tokenweir"),
    "vLLM": (vllm, "vllm.parser"),
    "SGLang": (sglang, "sglang.srt.function_call.function_call_parser"),
}
"""The parsers, each with its module."""


def verdict(answer: Answer, parser: Parser) -> str:
    """Return the verdict on an answer: "right", or the part that is wrong."""
    try:
        found = parser(answer)
    except Exception as error:  # noqa: BLE001 - a verdict as any other
        return f"raises {type(error).__name__}"
    expected = answer.expected
    if found.thinking.strip() != expected.thinking:
        return f"thinking {found.thinking[:16]!r}"
    if [name for name, _ in found.calls] != [name for name, _ in expected.calls]:
        return f"{len(found.calls)} of {len(expected.calls)} calls"
    for (_, text), (_, true) in zip(found.calls, expected.calls, strict=True):
        if not _equal(text, true):
            return f"arguments {text[:16]!r}"
    return "right" if found.answer.strip() == expected.answer else f"text {found.answer.strip()[:16]!r}"


def _equal(text: str, true: str) -> bool:
    try:
        return bool(json.loads(text) == json.loads(true))
    except ValueError:
        return False
