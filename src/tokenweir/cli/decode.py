"""`tokenweir decode`: token ids in, text out."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO

import click

from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    file_option,
    json_option,
    lines_option,
    load_tokenizer,
    read_inputs,
    tokenizer_option,
)
from tokenweir.encode.base.visible_text import visible
from tokenweir.encode.errors import TokenIdError


@click.command(context_settings=FROM_ENVIRONMENT)
@click.argument("ids", nargs=-1)
@file_option
@lines_option
@click.option("--no-skip-special-tokens", is_flag=True, help="Print control tokens too.")
@tokenizer_option
@json_option
def decode(
    ids: tuple[str, ...],
    file: tuple[BinaryIO, ...],
    lines: bool,
    no_skip_special_tokens: bool,
    tokenizer: Path | None,
    as_json: bool,
) -> None:
    """Turn IDS, files or stdin into text.

    Ids are separated by white space or commas, or are a JSON list, or an object of `encode --json`. The text is printed
    as it is; with --lines a line end follows each. On a terminal, control characters are shown and not obeyed.
    """
    tok = load_tokenizer(tokenizer)
    watched = sys.stdout.isatty()
    for source in read_inputs((" ".join(ids),) if ids else (), file, lines):
        text = tok.decode(parse_ids(source), skip_special_tokens=not no_skip_special_tokens)
        if as_json:
            text = json.dumps({"text": text}) + "\n"
        elif lines or (watched and not text.endswith("\n")):
            text += "\n"
        sys.stdout.write(visible(text) if watched else text)


def parse_ids(source: str) -> list[int]:
    """Read ids from text: numbers separated by white space or commas, a JSON list, or a JSON object with a list `ids`.

    Raises:
        TokenIdError: A value is not a whole number (the message has its position, from 1), or the JSON is invalid.

    """
    values: Any
    if source.lstrip()[:1] in ("[", "{"):
        try:
            values = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise TokenIdError(f"the ids look like JSON but are not: {error}") from error
        if isinstance(values, dict):
            values = values.get("ids")
        if not isinstance(values, list):
            raise TokenIdError('the JSON is neither a list nor an object with a list "ids"')
    else:
        values = [int(v) if re.fullmatch(r"-?[0-9]{1,19}", v) else v for v in re.split(r"[\s,]+", source) if v]
    for position, value in enumerate(values, start=1):
        if type(value) is not int:
            raise TokenIdError(f"value {position}, {value!r:.60}, is not a token id")
    return list(values)
