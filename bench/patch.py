"""Speed of an unmodified transformers script under the patches of libraries. Prints tables; --write puts them into bench/RESULTS.md.

    python bench/patch.py [--rounds 5] [--documents 100] [--write]

The script tokenizes a data set, applies chat templates and streams recorded answers. Every run is a process of its own, which
sees every text for the first time, as such a script does. The libraries take turns. Libraries that are not
installed have no column.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from shared.report import DATA, arguments, heading, machine, publish, table
from shared.texts import code, corpus, documents, gsm8k

CHARACTERS = 2_000
MODELS = {
    "qwen3": "templates/Qwen-Qwen3-0.6B.jinja",
    "llama-3.1": "templates/meta-llama-Llama-3.1-8B-Instruct.jinja",
}
SPECIAL = {
    "qwen3": {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    "llama-3.1": {
        "bos_token": "<|begin_of_text|>",
        "eos_token": "<|eot_id|>",
        "pad_token": "<|finetune_right_pad_id|>",
    },
}
LIBRARIES = {"plain": "transformers", "tokenweir": "tokenweir", "fastokens": "fastokens", "gigatoken": "gigatoken"}

Part = tuple[str, Callable[[], Any]]
Result = dict[str, Any]
"""Of one part: CPU `seconds` and a digest for each `key` of its output, or the `error` that it raised."""


# -- the script, which knows transformers alone ------------------------------------------------------------------------


def parts(tok: Any, inputs: Mapping[str, Any]) -> Iterator[Part]:
    """The script's parts; each runs once and returns its output."""
    from transformers import TextIteratorStreamer, TextStreamer

    class Collected(TextStreamer):  # type: ignore[misc]
        """Keep the text that a script prints."""

        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            pieces.append(text)

    pieces: list[str] = []
    prompt, *answers = inputs["answers"]

    def tokenize(texts: Sequence[str], size: int, **options: Any) -> list[Any]:
        return [tok(texts[start : start + size], **options) for start in range(0, len(texts), size)]

    def stream(streamer: Any) -> Any:
        import numpy as np

        streamer.put(np.array([prompt]))
        for ids in answers:
            for token_id in ids:
                streamer.put(np.array([token_id]))
        streamer.end()
        return streamer

    first, second, third = inputs["texts"]
    options = {"padding": True, "truncation": True, "max_length": 512}
    chats = inputs["chats"]
    yield "tokenize a data set", lambda: tokenize(first, 1000)
    yield "with padding and truncation, to arrays", lambda: tokenize(second, 64, return_tensors="np", **options)
    yield "with offsets", lambda: tokenize(third, 64, return_offsets_mapping=True, **options)
    yield "chat templates to text", lambda: [tok.apply_chat_template(chat, tokenize=False) for chat in chats[::2]]
    yield "chat templates to ids", lambda: [tok.apply_chat_template(chat) for chat in chats[1::2]]
    yield (
        "TextStreamer",
        lambda: (stream(Collected(tok, skip_prompt=True, skip_special_tokens=True)), "".join(pieces))[1],
    )
    yield "TextIteratorStreamer", lambda: "".join(stream(TextIteratorStreamer(tok, skip_prompt=True)))
    yield "batch_decode", lambda: tok.batch_decode(answers, skip_special_tokens=True)


# -- a run of it -------------------------------------------------------------------------------------------------------


def run(library: str, folder: Path) -> dict[str, Result]:
    """Run the script under a library's patch, in this process, and return the result of every part."""
    if library in ("tokenweir", "fastokens"):
        import_module(library).patch_transformers()
    from transformers import AutoTokenizer

    inputs = json.loads((folder / "inputs.json").read_text("utf-8"))
    start = time.process_time()
    tok: Any = AutoTokenizer.from_pretrained(folder)
    if library == "gigatoken":  # it has no patch; its documentation gives this line
        tok = import_module("gigatoken").Tokenizer(tok).as_hf()
    tok("Hi")  # some build their tables at the first call
    found: dict[str, Result] = {
        "from_pretrained and a first call": {"seconds": time.process_time() - start, "keys": {}}
    }
    for name, work in parts(tok, inputs):
        start = time.process_time()
        try:
            output = work()
        except Exception as error:  # noqa: BLE001 - a peer may raise anything
            found[name] = {"error": type(error).__name__}
            continue
        found[name] = {"seconds": time.process_time() - start, "keys": digests(output)}
    return found


def digests(output: Any) -> dict[str, str]:
    """A digest for each key of an output: of encodings `input_ids`, `offset_mapping` and so on, else `text`."""
    if isinstance(output, str) or isinstance(output[0], str):
        columns = {"text": output}
    else:
        columns = {key: [plain(encoding[key]) for encoding in output] for key in output[0]}
    return {key: hashlib.sha256(json.dumps(column).encode()).hexdigest() for key, column in columns.items()}


def plain(value: Any) -> Any:
    """An array as lists, so that a library is free to choose its type."""
    return value.tolist() if hasattr(value, "tolist") else value


# -- inputs ------------------------------------------------------------------------------------------------------------


def texts(count: int) -> list[list[str]]:
    """Three data sets without a text in common: English, Chinese, Japanese and code, `count` documents of each kind."""
    names = ("war-and-peace.txt", "zh-hongloumeng.txt", "ja-wagahai-neko.txt")
    kinds = [documents("".join(lines), CHARACTERS) for lines in (*map(corpus, names), code())]
    return [[text for kind in kinds for text in kind[part::3][:count]] for part in range(3)]


def chats(count: int) -> list[list[dict[str, str]]]:
    """Conversations of one to six turns: GSM8K's questions and answers behind a system message."""
    problems = gsm8k()
    turns = iter(problems)
    found = []
    for number in range(min(count, len(problems) // 4)):
        chat = [{"role": "system", "content": "Reason step by step."}]
        for one in (next(turns, problems[0]) for _ in range(1 + number % 6)):
            chat += [
                {"role": "user", "content": one["question"]},
                {"role": "assistant", "content": one["answer"]},
            ]
        found.append(chat)
    return found


def prepare(model: str, folder: Path, count: int) -> tuple[str, int]:
    """Write a model folder and the script's inputs into it; return the inputs' sizes, and how many ids are streamed."""
    import tokenizers

    source = DATA / "tokenizers" / model / "tokenizer.json"
    (folder / "tokenizer.json").symlink_to(source.resolve())
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 1 << 20, **SPECIAL[model]}
    template = (DATA / MODELS[model]).read_text("utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": template}))
    sets, conversations = texts(count), chats(6 * count)
    spoken = ["Hi.", *(text for kind in range(4) for text in sets[0][kind * count : (kind + 1) * count][:3])]
    recorded = tokenizers.Tokenizer.from_file(str(source))
    answers = [recorded.encode(text, add_special_tokens=False).ids for text in spoken]
    inputs = {"texts": sets, "chats": conversations, "answers": answers}
    (folder / "inputs.json").write_text(json.dumps(inputs), "utf-8")
    megabytes = sum(len(text.encode()) for text in sets[0]) / 1e6
    ids = sum(map(len, answers[1:]))
    return f"{len(sets[0]):,} texts of {megabytes:.1f} MB a data set, {len(conversations):,} conversations.", ids


# -- tables ------------------------------------------------------------------------------------------------------------


def rounds_of(libraries: Sequence[str], folder: Path, rounds: int) -> dict[str, dict[str, list[Result]]]:
    """The results of each part by library; the libraries take turns, beginning with another one each round."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    found: dict[str, dict[str, list[Result]]] = {library: {} for library in libraries}
    for number in range(rounds):
        at = number % len(libraries)
        for library in (*libraries[at:], *libraries[:at]):
            command = [sys.executable, "-P", __file__, "--run", library, str(folder)]
            output = subprocess.check_output(command, env=environment, text=True)
            for name, result in json.loads(output.splitlines()[-1]).items():
                found[library].setdefault(name, []).append(result)
    return found


def cell(results: Sequence[Result], reference: Sequence[Result]) -> str:
    """Return milliseconds of a part and its speedup over plain, with the names of differing results; or the errors."""
    if errors := {result["error"] for result in results if "error" in result}:
        return f"refused: {', '.join(sorted(errors))}"
    wanted = reference[0]["keys"]
    wrong = {key for one in results for key in wanted.keys() | one["keys"] if one["keys"].get(key) != wanted.get(key)}
    own, plain_ = (median(one["seconds"] for one in runs) for runs in (results, reference))
    ratio = "" if results is reference else f" ({plain_ / own:.1f}×)"
    return f"{own * 1e3:.0f}{ratio}" + (f" differs: {', '.join(sorted(wrong))}" if wrong else "")


def whole(parts_: Mapping[str, Sequence[Result]], reference: Mapping[str, Sequence[Result]]) -> list[Result]:
    """The whole script as one result, the sum of its parts' medians; refused unless every part gives what plain gives."""
    runs = [(one, reference[name][0]) for name, found in parts_.items() for one in found]
    if any(one.get("keys") != plain_["keys"] for one, plain_ in runs):
        return [{"error": "a part"}]
    return [{"seconds": sum(median(one["seconds"] for one in found) for found in parts_.values()), "keys": {}}]


def patch(models: Sequence[str], count: int, rounds: int) -> str:
    """Milliseconds of CPU time of the parts of one script, of all threads together: the median of fresh processes, and in
    parentheses how many times as fast as plain transformers. "differs": the named part of the output is not plain's. gigatoken has
    no patch; its `as_hf()` replaces the tokenizer by a line in the script."""
    libraries = [library for library, package in LIBRARIES.items() if find_spec(package)]
    tables = []
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            size, streamed = prepare(model, Path(folder), count)
            found = rounds_of(libraries, Path(folder), rounds)
        wanted = found["plain"]
        rows = [[name, *(cell(found[library][name], wanted[name]) for library in libraries)] for name in wanted]
        totals = {library: whole(found[library], wanted) for library in libraries}
        rows.append(["the whole script", *(cell(totals[library], totals["plain"]) for library in libraries)])
        tables.append(table([f"{model}, {streamed:,} ids streamed", *libraries], rows))
    return "\n\n".join((f"{heading(patch)} {size}", *tables))


def main() -> None:
    """Measure and print."""
    options = arguments(
        __doc__,
        rounds=(5, "how often every library runs the script (5)"),
        documents=(100, "documents of each kind in a data set (100)"),
        models={"nargs": "*", "default": [*MODELS], "choices": [*MODELS]},
        run={"nargs": 2, "metavar": ("LIBRARY", "FOLDER"), "help": "run the script once and print its results"},
    )
    if options.run:
        print(json.dumps(run(options.run[0], Path(options.run[1]))))
        return
    result = patch(options.models, options.documents, options.rounds)
    packages = dict.fromkeys(["transformers", "tokenizers", *LIBRARIES.values()])
    versions = ", ".join(f"{name} {version(name)}" for name in packages if name != "tokenweir" and find_spec(name))
    publish("patch", f"{result}\n\n{machine()}; {versions}", options.write)


if __name__ == "__main__":
    main()
