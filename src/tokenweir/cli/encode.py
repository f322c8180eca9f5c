"""`tokenweir encode`: text in, token ids out."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    json_option,
    load_tokenizer,
    read_inputs,
    text_options,
    tokenizer_option,
)
from tokenweir.cli.terminal import styled

BATCH_CHARACTERS = 1 << 20  # inputs encoded together; enough for all threads
WATCHABLE_BYTES = 1 << 22  # about half a second and up


@click.command(context_settings=FROM_ENVIRONMENT)
@text_options
@tokenizer_option
@json_option
def encode(
    text: tuple[str, ...],
    file: tuple[BinaryIO, ...],
    lines: bool,
    plain: bool,
    no_special_tokens: bool,
    tokenizer: Path | None,
    as_json: bool,
) -> None:
    """Turn TEXT, files or stdin into token ids.

    Prints one line an input: the ids, separated by spaces. With --json one object an input, with the ids and the
    tokens they stand for.
    """
    tok = load_tokenizer(tokenizer)
    files = () if text else file or (sys.stdin.buffer,)
    with _progress(files) as bar:
        for batch in _batches(read_inputs(text, file, lines)):
            rows = tok.encode_batch(batch, add_special_tokens=not no_special_tokens, parse_special=not plain)
            for row in rows:
                ids = row.tolist()
                if as_json:
                    line = json.dumps({"ids": ids, "tokens": [tok.id_to_token(token_id) for token_id in ids]})
                else:
                    line = " ".join(map(str, ids))
                sys.stdout.write(line + "\n")
            if not bar.hidden:
                bar.update(sum(f.tell() for f in files) - bar.pos)


def _batches(texts: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _progress(files: tuple[BinaryIO, ...]) -> Any:
    """A bar on stderr, shown when a person watches, the ids go elsewhere and the files are worth it."""
    facts = [os.fstat(f.fileno()) for f in files] if styled(sys.stderr) and not sys.stdout.isatty() else []
    total = sum(fact.st_size for fact in facts)
    shown = total >= WATCHABLE_BYTES and all(stat.S_ISREG(fact.st_mode) for fact in facts)
    return click.progressbar(length=total, label="encoding", file=sys.stderr, hidden=not shown)
