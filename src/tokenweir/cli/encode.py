"""`tokenweir encode`: text in, token ids out."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    device_choice,
    json_option,
    load_gpu_encoder,
    load_tokenizer,
    read_inputs,
    text_options,
    tokenizer_option,
)
from tokenweir.cli.terminal.escape_codes import styled

BATCH_CHARACTERS = 1 << 20  # inputs encoded together; enough for all threads
GPU_BATCH_CHARACTERS = 1 << 26  # likewise for a GPU; with their ids about a gigabyte at most
WORTH_A_GPU = 1 << 28  # bytes; loading CuPy, the tables and the kernels takes seconds
WATCHABLE_BYTES = 1 << 22  # about half a second and up


@click.command(context_settings=FROM_ENVIRONMENT)
@text_options
@tokenizer_option
@click.option(
    "--device",
    type=device_choice,
    default="auto",
    show_default=True,
    help="Where to encode. auto: on a GPU if there is one and the files are worth it. The ids are the same.",
)
@json_option
def encode(
    text: tuple[str, ...],
    file: tuple[BinaryIO, ...],
    lines: bool,
    no_parse_special: bool,
    no_add_special_tokens: bool,
    tokenizer: Path | None,
    device: str,
    as_json: bool,
) -> None:
    """Turn TEXT, files or stdin into token ids.

    Prints a line for each input: the ids, separated by spaces. With --json an object for each input, with the ids and
    the tokens they stand for.
    """
    tok = load_tokenizer(tokenizer)
    files = () if text else file or (sys.stdin.buffer,)
    size = _size(files)
    gpu = None if device == "auto" and size < WORTH_A_GPU else load_gpu_encoder(tok, device)
    options: dict[str, Any] = {"add_special_tokens": not no_add_special_tokens, "parse_special": not no_parse_special}
    with _progress(size) as bar:
        for batch in _batches(read_inputs(text, file, lines), GPU_BATCH_CHARACTERS if gpu else BATCH_CHARACTERS):
            rows = gpu.encode_batch(batch, **options).to_host() if gpu else tok.encode_batch(batch, **options)
            for row in rows:
                ids = row.tolist()
                if as_json:
                    line = json.dumps({"ids": ids, "tokens": [tok.id_to_token(token_id) for token_id in ids]})
                else:
                    line = " ".join(map(str, ids))
                sys.stdout.write(line + "\n")
            if not bar.hidden:
                bar.update(sum(f.tell() for f in files) - bar.pos)


def _batches(texts: Iterable[str], characters: int) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size(files: tuple[BinaryIO, ...]) -> int:
    """Return the total bytes of the files; 0 if one is not a regular file, so that its size is unknown."""
    try:
        facts = [os.fstat(f.fileno()) for f in files]
    except OSError:  # not even a file
        return 0
    return sum(fact.st_size for fact in facts) if all(stat.S_ISREG(fact.st_mode) for fact in facts) else 0


def _progress(size: int) -> Any:
    """Return a progress bar on stderr for `size` bytes.

    It is visible for large inputs only, and only if stderr is a terminal and stdout is not.
    """
    shown = size >= WATCHABLE_BYTES and styled(sys.stderr) and not sys.stdout.isatty()
    return click.progressbar(length=size, label="encoding", file=sys.stderr, hidden=not shown)
