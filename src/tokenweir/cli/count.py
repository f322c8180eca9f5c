"""`tokenweir count`: text in, the number of its tokens out."""

from __future__ import annotations

import json
import sys
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


@click.command(context_settings=FROM_ENVIRONMENT)
@text_options
@tokenizer_option
@json_option
def count(
    text: tuple[str, ...],
    file: tuple[BinaryIO, ...],
    lines: bool,
    no_parse_special: bool,
    no_add_special_tokens: bool,
    tokenizer: Path | None,
    as_json: bool,
) -> None:
    """Count the tokens of TEXT, files or stdin; prints one number for each input."""
    tok = load_tokenizer(tokenizer)
    for item in read_inputs(text, file, lines):
        tokens = tok.count(item, add_special_tokens=not no_add_special_tokens, parse_special=not no_parse_special)
        sys.stdout.write((json.dumps({"count": tokens}) if as_json else str(tokens)) + "\n")
