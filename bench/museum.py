"""Known streaming bugs as streams of ids, through the detokenizers and parsers that are installed here. Prints two tables; --write
puts them into docs/explanation/streaming-bugs.md, which says what each bug is.

    python bench/museum.py [--write]

Each stream is fed as the issue describes it. A detokenizer passes if its joined text is the true one, and if it is never silent for more
ids than an unfinished character needs. vLLM's and SGLang's run where these are installed, the others everywhere.
"""

from __future__ import annotations

import argparse
import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, TypeVar

import museum_parsers
from shared.report import DATA, machine, publish, table

from tokenweir import ChatDecoder, Finish, TextDelta, Tokenizer

Run = TypeVar("Run")
ICE, FAMILY = "\U0001f9ca", "\U0001f469‍\U0001f469‍\U0001f467"
MAX_SILENCE = 4
"""Ids that may pass without text: those of one character of four bytes."""


TRACKERS = {
    "Dynamo": "ai-dynamo/dynamo",
    "SGLang": "sgl-project/sglang",
    "exllamav3": "turboderp-org/exllamav3",
    "vLLM": "vllm-project/vllm",
}
"""The repositories in which the issues are."""


@dataclass
class Stream:
    """A stream with a known bug of another library.

    Attributes:
        issue: Where it was reported.
        name: The symptom.
        prompt: The prompt's ids.
        chunks: The answer's ids as they come.
        text: The text that a reader should see.
        stop: A stop string.
        folder: The tokenizer.

    """

    issue: str
    name: str
    prompt: list[int]
    chunks: list[list[int]]
    text: str
    stop: str | None = None
    folder: str = "qwen3"
    silence: int = MAX_SILENCE
    ids: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = [i for chunk in self.chunks for i in chunk]


def streams() -> list[Stream]:
    """The cases."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / "qwen3")
    encode = tok.encode

    def singly(ids: Sequence[int]) -> list[list[int]]:
        return [[i] for i in ids]

    def bytewise(text: str) -> list[int]:
        return [tok.vocab[_letter(byte)] for byte in text.encode()]

    ice, korean = bytewise(ICE), bytewise("안녕하세요")
    lone = tok.vocab[_letter(0x80)]
    found = [
        Stream(
            "vLLM 48853",
            "the prompt ends inside a character",
            encode("Ice: ") + ice[:2],
            singly(ice[2:] + encode(" ok")),
            f"{ICE} ok",
        ),
        Stream(
            "vLLM 48854",
            "the same, one byte before its end",
            encode("Ice: ") + ice[:3],
            singly(ice[3:] + encode(" ok")),
            f"{ICE} ok",
        ),
        Stream(
            "Dynamo 12630", "syllables that are split into bytes", encode("Say hello. "), singly(korean), "안녕하세요"
        ),
        Stream("Dynamo 12630", "the same, two ids a step", encode("Say hello. "), _pairs(korean), "안녕하세요"),
        Stream(
            "SGLang 34852",
            "bytes that never become a character",
            encode("Go: "),
            singly([lone] * 40 + encode(" end")),
            "�" * 40 + " end",
        ),
        Stream("SGLang 34852", "emoji in bytes without blanks", encode("Go: "), singly(ice * 12), ICE * 12),
        Stream("vLLM 46159", "a family of emoji, joined by U+200D", encode("Go: "), singly(bytewise(FAMILY)), FAMILY),
        Stream(
            "vLLM 47616",
            "a stop string within a step of several ids",
            encode("Go: "),
            [encode("one STOP two three")],
            "one ",
            "STOP",
        ),
        Stream(
            "vLLM 49391",
            "a stop string over two steps",
            encode("Go: "),
            [encode("one ST"), encode("OP two")],
            "one ",
            "STOP",
        ),
        Stream(
            "vLLM 38864",
            "a stop string that is begun and not ended",
            encode("Go: "),
            singly(encode("one STO two")),
            "one STO two",
            "STOP",
        ),
    ]
    if (DATA / "tokenizers" / "llama-2").exists():
        llama = Tokenizer.from_file(DATA / "tokenizers" / "llama-2")
        raw = [llama.vocab[f"<0x{byte:02X}>"] for byte in ICE.encode()]
        begin = llama.encode("Go:")
        word = llama.encode("ok", add_special_tokens=False)
        found += [
            Stream(
                "exllamav3 171",
                "byte tokens: a whole character",
                begin,
                singly(raw + word),
                f"{ICE} ok",
                folder="llama-2",
            ),
        ]
    return found


def _letter(byte: int) -> str:
    """The character by which byte-level vocabularies write a byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return chr(byte) if byte in plain else chr(256 + sum(1 for other in range(byte) if other not in plain))


def _pairs(ids: list[int]) -> list[list[int]]:
    return [ids[i : i + 2] for i in range(0, len(ids), 2)]


Detokenizer = Callable[[Stream], list[str] | None]
"""Gives the text of each step, and of the end last; None if the stream is not its part."""


def tokenweir_(stream: Stream) -> list[str]:
    """This library's decoder."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / stream.folder)
    stops = [] if stream.stop is None else [stream.stop]
    decoder = ChatDecoder(tok, prompt_ids=stream.prompt, reasoning=None, stop=stops, ignore_eos=True)
    steps = [decoder.feed(chunk) for chunk in stream.chunks] + [decoder.finish()]
    assert all(isinstance(delta, TextDelta | Finish) for step in steps for delta in step)
    return ["".join(delta.text for delta in step if isinstance(delta, TextDelta)) for step in steps]


def huggingface(stream: Stream) -> list[str] | None:
    """`tokenizers.decoders.DecodeStream`, primed with the prompt; it has no stop strings."""
    import tokenizers

    if stream.stop is not None:
        return None
    tok = tokenizers.Tokenizer.from_file(str(DATA / "tokenizers" / stream.folder / "tokenizer.json"))
    decoding = tokenizers.decoders.DecodeStream(ids=stream.prompt, skip_special_tokens=True)
    return ["".join(decoding.step(tok, i) or "" for i in chunk) for chunk in stream.chunks]


def _transformers(stream: Stream) -> Any:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(DATA / "tokenizers" / stream.folder)


def vllm(stream: Stream) -> list[str]:
    """vLLM's `FastIncrementalDetokenizer`."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.detokenizer import FastIncrementalDetokenizer

    request = SimpleNamespace(
        request_id="r",
        prompt_token_ids=stream.prompt,
        prompt_embeds=None,
        sampling_params=SamplingParams(stop=stream.stop),
    )
    decoding = FastIncrementalDetokenizer(_transformers(stream), request)
    steps = []
    for place, chunk in enumerate(stream.chunks):
        stopped = decoding.update(chunk, False) is not None
        steps.append(decoding.get_next_output_text(stopped or place == len(stream.chunks) - 1, True))
        if stopped:
            break
    return steps


def sglang(stream: Stream) -> list[str] | None:
    """The method of SGLang's `DetokenizerManager`; stop strings are its scheduler's."""
    from sglang.srt.managers.detokenizer_manager import DetokenizerManager

    if stream.stop is not None:
        return None
    manager = object.__new__(DetokenizerManager)
    manager.tokenizer = _transformers(stream)
    manager.vocab_size, manager.decode_status = len(manager.tokenizer), {}
    manager.disable_tokenizer_batch_decode = manager.is_tool_call_parser_gpt_oss = False
    manager.tool_close_token_ids = frozenset()
    steps, before = [], stream.prompt[-5:]
    for place, chunk in enumerate(stream.chunks):
        batch = SimpleNamespace(
            rids=["r"],
            decoded_texts=[""],
            decode_ids=[array("q", chunk if place else before + chunk)],
            read_offsets=[len(before)],
            finished_reasons=[{"type": "length"} if place == len(stream.chunks) - 1 else None],
            skip_special_tokens=[True],
            spaces_between_special_tokens=[True],
            no_stop_trim=[False],
        )
        steps += manager._decode_batch_token_id_output(batch)
    return steps


DETOKENIZERS: dict[str, tuple[Detokenizer, str]] = {
    "tokenweir": (tokenweir_, "tokenweir"),
    "tokenizers": (huggingface, "tokenizers"),
    "vLLM": (vllm, "vllm.v1.engine.detokenizer"),
    "SGLang": (sglang, "sglang.srt.managers.detokenizer_manager"),
}
"""The detokenizers, each with its module."""


def verdict(stream: Stream, detokenizer: Detokenizer) -> str:
    """Return the verdict on a stream: "right", or the fault."""
    try:
        steps = detokenizer(stream)
    except Exception as error:  # noqa: BLE001 - a verdict as any other
        return f"raises {type(error).__name__}"
    if steps is None:
        return "-"
    text = "".join(steps)
    if text != stream.text:
        return f"{text[:12]!r}" + ("…" if len(text) > 12 else "") + " for " + f"{stream.text[:12]!r}"
    silent = most = 0
    for step, chunk in zip(steps, stream.chunks, strict=False):
        silent = 0 if step else silent + len(chunk)
        most = max(most, silent)
    return "right" if most < stream.silence else f"silent for {most} ids"


def installed(runs: Mapping[str, tuple[Run, str]]) -> dict[str, Run]:
    """Return the runs whose library can be imported, by name and version."""
    there = {}
    for name, (run, module) in runs.items():
        try:
            import_module(module)
        except Exception:  # noqa: BLE001, S112 - not installed, or not for this machine
            continue
        there[f"{name} {version(name.lower())}"] = run
    return there


def linked(issue: str) -> str:
    """Return a link to an issue such as "vLLM 48853"."""
    project, number = issue.split()
    return f"[{issue}](https://github.com/{TRACKERS[project]}/issues/{number})"


def cell(verdict: str) -> str:
    """Return a cell for a verdict: as code if it quotes text, which may be markup."""
    return f"`{verdict}`" if "'" in verdict else verdict


def measure() -> str:
    """The tables."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    detokenizers, parsers = installed(DETOKENIZERS), installed(museum_parsers.PARSERS)
    rows = [
        [linked(one.issue), one.name, *(cell(verdict(one, run)) for run in detokenizers.values())] for one in streams()
    ]
    found = [
        [linked(one.issue), one.name, *(cell(museum_parsers.verdict(one, run)) for run in parsers.values())]
        for one in museum_parsers.answers()
    ]
    text = table(["issue", "stream", *detokenizers], rows)
    where = f"{machine()}. Repeat it: `scripts/bench museum`."
    return f"{text}\n\n{table(['issue', 'answer', *parsers], found)}\n\n{where}"


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    publish("museum", measure(), parser.parse_args().write)


if __name__ == "__main__":
    main()
