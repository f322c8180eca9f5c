"""Known streaming bugs as streams of ids, through the detokenizers and parsers that are installed here. Prints two tables; --write
puts them into docs/explanation/streaming-bugs.md, which says what each bug is.

    python bench/museum.py [--write]

The streams and answers are in `museum.toml`, each fed as the issue describes it. A detokenizer passes if its joined text is the true
one, and if it is never silent for more ids than an unfinished character needs. A parser passes if the joined thinking, the joined
answer (both without white space at their ends) and all calls are those of the text. vLLM's and SGLang's run where these are installed,
the others everywhere. vLLM's parsers take ids and their text. SGLang's take the text; what its server adds at the end of a stream is
added.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
from shared.report import DATA, arguments, machine, publish, table

from tokenweir import ChatDecoder, Finish, TextDelta, Tokenizer
from tokenweir.encode._core import byte_alphabet
from tokenweir.stream.chat.message import AssistantMessage

MAX_SILENCE = 4
"""Ids that may pass without text: those of one character of four bytes."""
TRACKERS = {
    "Dynamo": "ai-dynamo/dynamo",
    "SGLang": "sgl-project/sglang",
    "exllamav3": "turboderp-org/exllamav3",
    "vLLM": "vllm-project/vllm",
}
"""The repositories in which the issues are."""
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


class Parsed(NamedTuple):
    """Joined thinking, answer and calls of a stream."""

    thinking: str
    answer: str
    calls: list[tuple[str, str]]


class Stream(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A stream with a known bug of another library's detokenizer."""

    issue: str
    name: str
    text: str
    prompt: str = "Go: "
    bytes: str = ""
    prompted: int = 0
    texts: list[str] = []
    size: int = 1
    stop: str | None = None
    folder: str = "qwen3"

    def ids(self) -> tuple[list[int], list[list[int]]]:
        """Return the prompt's ids, and the answer's as they come."""
        tok = Tokenizer.from_file(DATA / "tokenizers" / self.folder)
        letters = byte_alphabet() if self.folder == "qwen3" else [f"<0x{byte:02X}>" for byte in range(256)]
        single = [tok.vocab[letters[byte]] for byte in bytes.fromhex(self.bytes)]
        chunks = [single[self.prompted :], *(tok.encode(text, add_special_tokens=False) for text in self.texts)]
        return tok.encode(self.prompt) + single[: self.prompted], _steps(chunks, self.size)

    def fault(self, steps: list[str]) -> str:
        """Return what is wrong with the text of each step, and of the end last; nothing if it is right."""
        text = "".join(steps)
        if text != self.text:
            return f"{text[:12]!r}" + ("…" if len(text) > 12 else "") + " for " + f"{self.text[:12]!r}"
        silent = most = 0
        for step, chunk in zip(steps, self.ids()[1], strict=False):
            silent = 0 if step else silent + len(chunk)
            most = max(most, silent)
        return f"silent for {most} ids" if most >= MAX_SILENCE else ""


class Answer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An answer with a known bug of another library's parser."""

    issue: str
    name: str
    source: str
    size: int = 1
    style: str = "hermes"
    before: str = ""
    after: str = ""
    spelled: bool = False
    thinking: str = ""
    text: str = ""
    cities: list[str] = []

    @property
    def prompt(self) -> str:
        """The prompt."""
        return f"{self.before}<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n{self.after}"

    @property
    def expected(self) -> Parsed:
        """The parts into which it is parsed."""
        return Parsed(self.thinking, self.text, [("look", json.dumps({"city": city})) for city in self.cities])

    def chunks(self, tok: Tokenizer) -> list[list[int]]:
        """The ids of each step."""
        parts = self.source.replace(">", "\0>").split("\0") if self.spelled else [self.source]
        ids = [i for part in parts for i in tok.encode(part, add_special_tokens=False)]
        return _steps([ids], self.size)

    def fault(self, found: Parsed) -> str:
        """Return which part is wrong; nothing if all are right."""
        expected = self.expected
        if found.thinking.strip() != expected.thinking:
            return f"thinking {found.thinking[:16]!r}"
        if [name for name, _ in found.calls] != [name for name, _ in expected.calls]:
            return f"{len(found.calls)} of {len(expected.calls)} calls"
        for (_, text), (_, true) in zip(found.calls, expected.calls, strict=True):
            if not _equal(text, true):
                return f"arguments {text[:16]!r}"
        return "" if found.answer.strip() == expected.answer else f"text {found.answer.strip()[:16]!r}"


class Cases(msgspec.Struct, forbid_unknown_fields=True):
    """The cases: those whose tokenizer is here."""

    stream: list[Stream]
    answer: list[Answer]

    @classmethod
    def load(cls) -> Cases:
        """Read the table."""
        found = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=cls)
        found.stream = [one for one in found.stream if (DATA / "tokenizers" / one.folder).exists()]
        return found


def _steps(chunks: list[list[int]], size: int) -> list[list[int]]:
    if size == 0:
        return list(filter(None, chunks))
    ids = [i for chunk in chunks for i in chunk]
    return [ids[start : start + size] for start in range(0, len(ids), size)]


def _equal(text: str, true: str) -> bool:
    try:
        return bool(json.loads(text) == json.loads(true))
    except ValueError:
        return False


Run = Callable[[Any], list[str] | Parsed | None]
"""Gives what a library makes of a case; None if the case is not its part."""


def tokenweir_(stream: Stream) -> list[str]:
    """This library's decoder."""
    prompt, chunks = stream.ids()
    tok = Tokenizer.from_file(DATA / "tokenizers" / stream.folder)
    stops = [] if stream.stop is None else [stream.stop]
    decoder = ChatDecoder(tok, prompt_ids=prompt, reasoning=None, stop=stops, ignore_eos=True)
    steps = [decoder.feed(chunk) for chunk in chunks] + [decoder.finish()]
    assert all(isinstance(delta, TextDelta | Finish) for step in steps for delta in step)
    return ["".join(delta.text for delta in step if isinstance(delta, TextDelta)) for step in steps]


def huggingface(stream: Stream) -> list[str] | None:
    """`tokenizers.decoders.DecodeStream`, primed with the prompt; it has no stop strings."""
    import tokenizers

    if stream.stop is not None:
        return None
    prompt, chunks = stream.ids()
    tok = tokenizers.Tokenizer.from_file(str(DATA / "tokenizers" / stream.folder / "tokenizer.json"))
    decoding = tokenizers.decoders.DecodeStream(ids=prompt, skip_special_tokens=True)
    return ["".join(decoding.step(tok, i) or "" for i in chunk) for chunk in chunks]


def _transformers(folder: str) -> Any:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(DATA / "tokenizers" / folder)


def vllm(stream: Stream) -> list[str]:
    """vLLM's `FastIncrementalDetokenizer`."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.detokenizer import FastIncrementalDetokenizer

    prompt, chunks = stream.ids()
    request = SimpleNamespace(
        request_id="r",
        prompt_token_ids=prompt,
        prompt_embeds=None,
        sampling_params=SamplingParams(stop=stream.stop),
    )
    decoding = FastIncrementalDetokenizer(_transformers(stream.folder), request)
    steps = []
    for place, chunk in enumerate(chunks):
        stopped = decoding.update(chunk, False) is not None
        steps.append(decoding.get_next_output_text(stopped or place == len(chunks) - 1, True))
        if stopped:
            break
    return steps


def sglang(stream: Stream) -> list[str] | None:
    """The method of SGLang's `DetokenizerManager`; stop strings are its scheduler's."""
    from sglang.srt.managers.detokenizer_manager import DetokenizerManager

    if stream.stop is not None:
        return None
    manager = object.__new__(DetokenizerManager)
    manager.tokenizer = _transformers(stream.folder)
    manager.vocab_size, manager.decode_status = len(manager.tokenizer), {}
    manager.disable_tokenizer_batch_decode = manager.is_tool_call_parser_gpt_oss = False
    manager.tool_close_token_ids = frozenset()
    prompt, chunks = stream.ids()
    steps, before = [], prompt[-5:]
    for place, chunk in enumerate(chunks):
        batch = SimpleNamespace(
            rids=["r"],
            decoded_texts=[""],
            decode_ids=[array("q", chunk if place else before + chunk)],
            read_offsets=[len(before)],
            finished_reasons=[{"type": "length"} if place == len(chunks) - 1 else None],
            skip_special_tokens=[True],
            spaces_between_special_tokens=[True],
            no_stop_trim=[False],
        )
        steps += manager._decode_batch_token_id_output(batch)
    return steps


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


def tokenweir_parser(answer: Answer) -> Parsed:
    """This library's decoder."""
    tok = _tokenizer()
    style = answer.style.replace("_", "-")
    decoder = ChatDecoder(
        tok, prompt_ids=tok.encode(answer.prompt), reasoning="think", tool_style=style, tools=TOOLS, ignore_eos=True
    )
    steps = [*map(decoder.feed, answer.chunks(tok)), decoder.finish()]
    message = AssistantMessage.of(chain.from_iterable(steps)).as_dict()
    functions = [call["function"] for call in message.get("tool_calls", ())]
    calls = [(function["name"], function["arguments"]) for function in functions]
    return Parsed(message.get("reasoning_content", ""), message["content"], calls)


def vllm_parser(answer: Answer) -> Parsed:
    """The parser that vLLM's server makes of its tool parser and its parser `qwen3`."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.parser import ParserManager

    tok, own = _tokenizer(), _transformers("qwen3")
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


def sglang_parser(answer: Answer) -> Parsed:
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


DETOKENIZERS: dict[str, tuple[Run, str]] = {
    "tokenweir": (tokenweir_, "tokenweir"),
    "tokenizers": (huggingface, "tokenizers"),
    "vLLM": (vllm, "vllm.v1.engine.detokenizer"),
    "SGLang": (sglang, "sglang.srt.managers.detokenizer_manager"),
}
"""The detokenizers, each with its module."""
PARSERS: dict[str, tuple[Run, str]] = {
    "tokenweir": (tokenweir_parser, "tokenweir"),
    "vLLM": (vllm_parser, "vllm.parser"),
    "SGLang": (sglang_parser, "sglang.srt.function_call.function_call_parser"),
}
"""The parsers, each with its module."""


def verdict(case: Stream | Answer, run: Run) -> str:
    """Return the verdict on a case: "right", or the fault; "-" if it is not the library's part."""
    try:
        found: Any = run(case)
    except Exception as error:  # noqa: BLE001 - a verdict as any other
        return f"raises {type(error).__name__}"
    return "-" if found is None else case.fault(found) or "right"


def linked(issue: str) -> str:
    """Return a link to an issue such as "vLLM 48853"."""
    project, number = issue.split()
    return f"[{issue}](https://github.com/{TRACKERS[project]}/issues/{number})"


def cell(verdict: str) -> str:
    """Return a cell for a verdict: as code if it quotes text, which may be markup."""
    return f"`{verdict}`" if "'" in verdict else verdict


def table_of(kind: str, cases: list[Stream] | list[Answer], runs: Mapping[str, tuple[Run, str]]) -> str:
    """Return the table of the verdicts of the libraries that can be imported, by name and version."""
    there = {}
    for name, (run, module) in runs.items():
        try:
            import_module(module)
        except Exception:  # noqa: BLE001, S112 - not installed, or not for this machine
            continue
        there[f"{name} {version(name.lower())}"] = run
    rows = [[linked(one.issue), one.name, *(cell(verdict(one, run)) for run in there.values())] for one in cases]
    return table(["issue", kind, *there], rows)


def measure() -> str:
    """The tables."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    cases = Cases.load()
    where = f"{machine()}. Repeat it: `scripts/bench museum`."
    streams, answers = table_of("stream", cases.stream, DETOKENIZERS), table_of("answer", cases.answer, PARSERS)
    return f"{streams}\n\n{answers}\n\n{where}"


def main() -> None:
    """Measure, and print or write."""
    publish("museum", measure(), arguments(__doc__).write)


if __name__ == "__main__":
    main()
