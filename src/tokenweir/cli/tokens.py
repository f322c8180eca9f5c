"""`tokenweir tokens`: text in, a readable display of its tokens out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import click

from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    json_option,
    load_tokenizer,
    read_inputs,
    text_options,
    tokenizer_option,
)
from tokenweir.cli.terminal.token_view import TokenView, shown


@click.command(context_settings=FROM_ENVIRONMENT)
@text_options
@tokenizer_option
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw the tokens into this file.")
@json_option
def tokens(
    text: tuple[str, ...],
    file: tuple[BinaryIO, ...],
    lines: bool,
    no_parse_special: bool,
    no_add_special_tokens: bool,
    tokenizer: Path | None,
    svg: Path | None,
    as_json: bool,
) -> None:
    """Show the tokens of TEXT, files or stdin: coloured, with their ids.

    If the output is not a terminal, prints a line for each token: its id, where its characters begin and end, and the
    token, separated by tabs. With --json an object for each input.
    """
    tok = load_tokenizer(tokenizer)
    items: Iterable[str] = read_inputs(text, file, lines)
    if svg is not None:
        items = list(items)
        if len(items) != 1:
            raise click.UsageError(f"--svg draws one input, not {len(items)}")
    watched = sys.stdout.isatty()
    for item in items:
        encoded = tok.encode_with_offsets(
            item, add_special_tokens=not no_add_special_tokens, parse_special=not no_parse_special
        )
        if svg is not None:
            svg.write_text(TokenView(tok, encoded.ids).svg(), "utf-8")
            continue
        if watched and not as_json:
            TokenView(tok, encoded.ids).print(sys.stdout)
            continue
        rows = list(zip(encoded.ids, encoded.offsets, map(tok.token_bytes, encoded.ids), strict=True))
        if as_json:
            listed = [
                {
                    "id": token_id,
                    "start": start,
                    "end": end,
                    "text": token.decode("utf-8", "replace"),
                    "bytes": list(token),
                }
                for token_id, (start, end), token in rows
            ]
            sys.stdout.write(json.dumps({"count": len(rows), "tokens": listed}) + "\n")
        else:
            for token_id, (start, end), token in rows:
                sys.stdout.write(f"{token_id}\t{start}\t{end}\t{shown(token)}\n")
