"""`tokenweir verify`: a model's ids, texts and prompts beside those of the reference libraries."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    find_model,
    json_option,
    load_template,
    load_tokenizer,
    model_argument,
    template_option,
)
from tokenweir.cli.terminal.escape_codes import styled
from tokenweir.cli.terminal.token_view import one_line
from tokenweir.encode.base.visible_text import visible
from tokenweir.encode.errors import TemplateError, TokenweirError

if TYPE_CHECKING:
    from tokenweir.verify.run import Part, Verification

SHOWN = 400  # characters of a value in an example
WIDTH = 52  # of a part's name


@click.command(context_settings=FROM_ENVIRONMENT)
@model_argument
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@template_option
@click.option(
    "--strings",
    type=click.IntRange(0),
    default=2000,
    show_default=True,
    help="Built-in adversarial strings; a fifth as many lists of random ids.",
)
@click.option("--seed", default="", help="Draw other strings and ids.")
@json_option
def verify(model: Path, files: tuple[Path, ...], template: Path | None, strings: int, seed: str, as_json: bool) -> None:
    """Compare MODEL with the reference libraries that are installed, on FILES and on built-in strings and conversations.

    MODEL is a tokenizer file, a model folder, a model's name in the hub's cache, or `local`. A line of a .jsonl file is a list
    of messages, an object with messages or text, or a string; other files are text. Exits with 1 if anything differs, and
    prints the smallest example found.
    """
    from tokenweir.encode.formats import find_in_folder
    from tokenweir.verify.prompts import CLOCK
    from tokenweir.verify.run import prepare

    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # that PyTorch is missing
    path = find_model(model)
    path = find_in_folder(path) if path.is_dir() else path
    tok = load_tokenizer(path)
    try:
        chat = load_template(template, tok, clock=lambda: CLOCK)
    except TemplateError:
        if template is not None or tok.spec.chat_templates:
            raise
        chat = None
    verification = prepare(path, tok, chat)
    if not verification.libraries:
        raise TokenweirError("; ".join([*verification.absent, "pip install 'tokenweir[verify]'"]))
    parts: dict[str, Part] = {}
    try:
        with _progress("built-in", strings + strings // 5, as_json) as bar:
            for part in verification.built_in(strings, seed):
                parts[part.name] = part
                bar.update(max(0, sum(each.items for each in parts.values()) - bar.pos))
        for file in files:
            with _progress(file.name, file.stat().st_size, as_json) as bar:
                for part, size in verification.file(file):
                    parts[part.name] = part
                    bar.update(size)
    except KeyboardInterrupt:
        _report(path, verification, parts.values(), as_json)
        raise
    _report(path, verification, parts.values(), as_json)
    if any(part.differences for part in parts.values()):
        raise click.exceptions.Exit(1)


def _progress(label: str, length: int, as_json: bool) -> Any:
    """Return a progress bar on stderr, a context manager, which is hidden unless a person watches."""
    hidden = as_json or not styled(sys.stderr)
    return click.progressbar(length=length, label=visible(label), file=sys.stderr, hidden=hidden)


def _report(path: Path, verification: Verification, parts: Iterable[Part], as_json: bool) -> None:
    libraries = verification.libraries
    if as_json:
        found = {
            "model": str(path),
            "tokenweir": version("tokenweir"),
            "libraries": libraries,
            "compared": verification.covers,
            "absent": verification.absent,
            "parts": [
                {name: value for name, value in vars(part).items() if name != "place"} | {"example": _example(part)}
                for part in parts
            ],
        }
        sys.stdout.write(json.dumps(found) + "\n")
        return
    lines = [
        f"{path} ({verification.tokenizer.spec.source})",
        f"tokenweir {version('tokenweir')} beside {', '.join(libraries)}",
        *verification.absent,
        "",
        f"{'':{WIDTH}}{'items':>10}{'characters':>14}{'differences':>14}",
    ]
    for part in parts:
        name = part.name if len(part.name) < WIDTH else f"…{part.name[-WIDTH + 2 :]}"
        lines.append(f"{one_line(name):{WIDTH}}{part.items:>10,}{part.characters:>14,}{part.differences:>14,}")
    lines += ["", f"compared: {'; '.join(verification.covers)}"]
    guarded = sum(part.guarded for part in parts)
    if guarded:
        lines.append(
            f"in {guarded:,} prompts a text spells a control token: text here, a control token in the references"
        )
    for part in parts:
        if example := _example(part):
            lines += ["", f"{part.name}: {example['what']} differs ({example['place']})"]
            lines += [f"  {name:7}{example[name]}" for name in ("given", "ours", "theirs")]
    sys.stdout.write(visible("\n".join(lines)) + "\n")


def _example(part: Part) -> dict[str, str] | None:
    """Return the example of a difference as texts; None without one."""
    difference = part.example
    if difference is None:
        return None
    shown = {name: repr(getattr(difference, name)) for name in ("given", "ours", "theirs")}
    if isinstance(difference.given, tuple):  # a conversation
        shown["given"] = json.dumps({"messages": difference.given[0]} | difference.given[1], ensure_ascii=False)
    elif isinstance(difference.given, str):
        shown["given"] = json.dumps(difference.given)
    short = {name: text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,})" for name, text in shown.items()}
    return {"what": difference.what, "place": part.place} | short
