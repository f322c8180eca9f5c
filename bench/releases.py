"""Ids and texts beside several releases of `tokenizers`. Prints a table; --write puts it into bench/RESULTS.md.

    python bench/releases.py [--python OTHER/bin/python ...] [--every 20] [--fuzz 2000] [--write]

The installed release and those of other environments encode the texts of bench/parity.py with every tokenizer.json, with the
post-processor's tokens and without, and decode the ids. An environment for another release needs nothing but it:

    python -m venv OTHER && OTHER/bin/pip install --pre 'tokenizers>=1.0.0rc1'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shared.report import DATA, ROOT, arguments, heading, machine, publish, table

Answer = dict[str, list[Any]]
"""By question, the answer for each text; None where the library raises an error."""


def attempt(call: Callable[[], Any]) -> Any:
    """The result of a call, or None if it raises; some releases panic, which is no Exception."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def answers(texts: Sequence[str], encode: Callable[..., Any], decode: Callable[..., str]) -> Answer:
    """Ask one library, whose `encode` returns ids."""
    whole = [attempt(lambda text=text: encode(text, add_special_tokens=True)) for text in texts]
    return {
        "ids": whole,
        "ids without special tokens": [
            attempt(lambda text=text: encode(text, add_special_tokens=False)) for text in texts
        ],
        "text": [attempt(lambda ids=ids: decode(ids, skip_special_tokens=True)) for ids in whole],
        "text with special tokens": [attempt(lambda ids=ids: decode(ids, skip_special_tokens=False)) for ids in whole],
    }


def answer_for(path: Path) -> dict[str, Any]:
    """The version of the `tokenizers` of this interpreter, and its answers or its refusal of the file."""
    import tokenizers

    asked = json.loads(path.read_text("utf-8"))
    try:
        tok = tokenizers.Tokenizer.from_file(asked["file"])
    except Exception as error:  # noqa: BLE001 - the libraries raise what they like
        return {"version": tokenizers.__version__, "refusal": str(error)}
    if hasattr(tok, "no_padding"):  # which files may have saved, and ours never applies
        tok.no_padding()
        tok.no_truncation()
        encode: Callable[..., Any] = tok.encode
    else:  # from 1.0 on they are options of a call

        def encode(text: str, **options: Any) -> Any:
            return tok.encode(text, padding=None, truncation=None, **options)

    found = answers(asked["texts"], lambda text, **options: list(encode(text, **options).ids), tok.decode)
    return {"version": tokenizers.__version__, "answers": found}


def asked_of(python: str, path: Path) -> dict[str, Any]:
    """The same from another interpreter, which sees its own packages only."""
    environment = os.environ | ({} if python == sys.executable else {"PYTHONPATH": str(ROOT / "bench")})
    command = [python, "-P", __file__, "--answer", str(path)]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, env=environment, stderr=subprocess.DEVNULL))
    return found


def texts_for(name: str, every: int, fuzz: int) -> list[str]:
    """The texts of bench/parity.py for one file."""
    sys.path.append(str(ROOT / "tests" / "oracles"))
    from real_parity import texts_by_kind

    from tokenweir.verify.references import load_reference

    reference = load_reference(DATA / "tokenizers" / name)
    return [text for _, texts in texts_by_kind(DATA, name, reference, fuzz, every) for text in texts]


def compared(given: dict[str, Any], ours: Answer, texts: Sequence[str]) -> tuple[str, str]:
    """A cell, and the first difference as a line for the terminal."""
    if "refusal" in given:
        return f"refused: {given['refusal'].partition('. ')[0]}", ""
    wrong = [
        (question, text, own, their)
        for question, found in ours.items()
        for text, own, their in zip(texts, found, given["answers"][question], strict=True)
        if own != their
    ]
    counts = {question: sum(one[0] == question for one in wrong) for question in ours}
    cell = ", ".join(f"{number} {question}" for question, number in counts.items() if number)
    example = min(wrong, key=lambda one: len(one[1]), default=None)
    if example is None:
        return "0", ""
    question, text, own, their = example
    return cell, f"{question} of {text[:60]!r}: ours {str(own)[:120]}, theirs {str(their)[:120]}"


def releases(pythons: Sequence[str], every: int, fuzz: int, only: str = "") -> str:
    """Texts for which a release of `tokenizers` gives other ids or another text than tokenweir, by question."""
    from tokenweir import Tokenizer

    names = sorted(
        f"{path.parent.name}/{path.name}"
        for path in (DATA / "tokenizers").glob("*/tokenizer*.json")
        if path.name != "tokenizer_config.json"
    )
    rows, versions = [], ["?"] * len(pythons)
    for name in (name for name in names if only in name):
        file = DATA / "tokenizers" / name
        texts, tok = texts_for(name, every, fuzz), Tokenizer.from_file(file)

        def decode(ids: Any, skip_special_tokens: bool, tok: Tokenizer = tok) -> str:
            return tok.decode(ids, skip_special_tokens=skip_special_tokens, byte_fallback="huggingface")

        ours = answers(texts, tok.encode, decode)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "asked.json"
            path.write_text(json.dumps({"file": str(file.resolve()), "texts": texts}), "utf-8")
            given = [asked_of(python, path) for python in pythons]
        versions = [one["version"] for one in given]
        cells, examples = zip(*(compared(one, ours, texts) for one in given), strict=True)
        rows.append([name, f"{len(texts):,}", *cells])
        print(name, *cells, *examples, sep="\n    ", file=sys.stderr, flush=True)
    same = [int(row[1].replace(",", "")) for row in rows if set(row[2:]) == {"0"}]
    differing = [row for row in rows if set(row[2:]) != {"0"}]
    shown = table(["file", "texts", *(f"tokenizers {version}" for version in versions)], differing)
    return f"{shown}\n\nOther files without a difference: {len(same)}, of {sum(same):,} texts."


def main() -> None:
    """Compare and print."""
    options = arguments(
        __doc__,
        python={"action": "append", "default": [], "help": "an interpreter with another release"},
        every=(20, "every n-th line of the corpora (20)"),
        fuzz=(2000, "adversarial strings a file (2000)"),
        only=("", "only files whose name contains NAME"),
        answer={"type": Path, "help": "answer what a file asks, for another process"},
    )
    if options.answer:
        print(json.dumps(answer_for(options.answer)))
        return
    found = releases([sys.executable, *options.python], options.every, options.fuzz, options.only)
    publish("releases", f"{heading(releases)}\n\n{found}\n\n{machine()}", options.write)


if __name__ == "__main__":
    main()
