"""`tokenweir encode-files`: a corpus in files to shards of token ids."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    json_option,
    load_template,
    load_tokenizer,
    no_add_special_tokens_option,
    no_parse_special_option,
    template_option,
    tokenizer_option,
)
from tokenweir.cli.terminal.escape_codes import styled
from tokenweir.encode.base.visible_text import visible

if TYPE_CHECKING:
    from tokenweir.corpus.run import Progress
    from tokenweir.corpus.shards import Format


@click.command(context_settings=FROM_ENVIRONMENT)
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FOLDER", required=True, help="The shards' folder, a path or URL.")
@tokenizer_option
@click.option(
    "--format",
    "shard_format",
    type=click.Choice(["parquet", "npy", "megatron", "datatrove"]),
    default="parquet",
    show_default=True,
    help="parquet: a row a document; npy: ids and offsets; megatron: .bin and .idx; datatrove: .ds and .ds.index.",
)
@click.option(
    "--column",
    metavar="NAME",
    help="The column or field; a text file has none. Default: text, or with --chat messages.",
)
@click.option("--chat", is_flag=True, help="Documents are lists of messages; the chat template renders them.")
@template_option
@click.option(
    "--loss-mask", is_flag=True, help="With --chat: also write what {% generation %} marks, 1 for each such id."
)
@no_parse_special_option
@no_add_special_tokens_option
@click.option("--skip-null", is_flag=True, help="Leave out rows that are missing or null, and count them.")
@click.option("--add-eos", is_flag=True, help="End every document with the end token.")
@click.option("--keep", metavar="NAME", multiple=True, help="Another column that stays with the documents; repeatable.")
@click.option(
    "--pack",
    metavar="LENGTH",
    type=click.IntRange(1),
    help="Pack documents into sequences of LENGTH ids, with boundaries.",
)
@click.option(
    "--shuffle", metavar="SEED", type=click.IntRange(0), help="Shuffle: a shard has documents of several random places."
)
@click.option(
    "--machines",
    metavar="I/N",
    callback=lambda _context, _option, value: _share(value),
    help="Write share I of N; the other machines write theirs into the same folder.",
)
@click.option(
    "--part-size", metavar="MB", type=click.IntRange(1), default=64, show_default=True, help="MB of input a shard."
)
@click.option("--workers", type=click.IntRange(1), help="Processes. Default: one a core.")
@json_option
def encode_files(
    files: tuple[str, ...],
    output: str,
    tokenizer: Path | None,
    shard_format: str,
    column: str | None,
    chat: bool,
    template: Path | None,
    loss_mask: bool,
    no_parse_special: bool,
    no_add_special_tokens: bool,
    skip_null: bool,
    add_eos: bool,
    keep: tuple[str, ...],
    pack: int | None,
    shuffle: int | None,
    machines: tuple[int, int],
    part_size: int,
    workers: int | None,
    as_json: bool,
) -> None:
    """Encode FILES (Parquet, Arrow, JSONL, or text with a document a line) to shards in a folder, on all cores.

    Files and the folder may be URLs, such as s3://bucket/*.parquet. The same command resumes a run that was stopped or killed, and ends with the same shards.
    """
    from tokenweir.corpus.documents import DocumentEncoder
    from tokenweir.corpus.inputs import expanded, kind_of
    from tokenweir.corpus.run import encode_files as run
    from tokenweir.encode.base.options import EncodeOptions

    for given, flag in ((template is not None, "--template"), (loss_mask, "--loss-mask")):
        if given and not chat:
            raise click.UsageError(f"{flag} goes with --chat")
    for given, flag in (
        (no_parse_special, "--no-parse-special"),
        (no_add_special_tokens, "--no-add-special-tokens"),
        (add_eos, "--add-eos"),
    ):
        if given and chat:
            raise click.UsageError(f"{flag} does not go with --chat: the template writes all special tokens")
    files = tuple(path for file in files for path in expanded(file))
    kinds = {kind_of(file) for file in files}
    if column is not None and kinds == {"text"}:
        raise click.UsageError("--column: text files have none")
    if keep and "text" in kinds:
        raise click.UsageError("--keep: text files have no columns")
    if pack is not None and shard_format not in ("parquet", "npy"):
        raise click.UsageError("--pack goes with the formats parquet and npy")
    tok = load_tokenizer(tokenizer)
    if add_eos and not tok.eos_ids:
        raise click.UsageError("--add-eos: this tokenizer has no end token")
    options = EncodeOptions(add_special_tokens=not no_add_special_tokens, parse_special=not no_parse_special)
    if add_eos:
        options["add_eos"] = True
    encoder = DocumentEncoder(
        tok,
        column or ("messages" if chat else "text"),
        options,
        load_template(template, tok) if chat else None,
        loss_mask,
        skip_null,
        keep,
    )
    bar = _Bar()
    try:
        found = run(
            files,
            output,
            encoder,
            format=cast("Format", shard_format),
            part_bytes=part_size << 20,
            pack=pack,
            shuffle=shuffle,
            machine=machines,
            workers=workers,
            report=bar.show,
        )
    except KeyboardInterrupt:
        bar.end()
        click.echo("stopped; the same command goes on", err=True)
        raise
    bar.end()
    made = {"document": found.documents, "token": found.tokens, "shard": found.shards}
    if as_json:
        counts = {f"{name}s": number for name, number in made.items()}
        more = {"skipped": found.skipped} if skip_null else {}
        sys.stdout.write(json.dumps(counts | more | ({"missing": found.missing} if machines[1] > 1 else {})) + "\n")
    else:
        told = ", ".join(f"{number:,} {name}{'s' * (number != 1)}" for name, number in made.items())
        click.echo(f"{told} in {visible(output)}")
        if found.missing:
            click.echo(f"{found.missing:,} shard{'s' * (found.missing != 1)} of other machines not there yet")
        if found.skipped:
            click.echo(f"{found.skipped:,} row{'s' * (found.skipped != 1)} without a value left out")


def _share(value: str | None) -> tuple[int, int]:
    """Read the value of `--machines`."""
    try:
        number, machines = map(int, (value or "1/1").split("/"))
    except ValueError:
        number = machines = 0
    if not 1 <= number <= machines:
        raise click.BadParameter("must be I/N, such as 1/4, with I from 1 to N")
    return number, machines


class _Bar:
    """Display of a run's progress on stderr: a line that is rewritten at a terminal, else a new line every 30 seconds."""

    EVERY = 30.0

    def __init__(self) -> None:
        self._begun = self._said = time.monotonic()
        self._live = styled(sys.stderr)

    def show(self, progress: Progress) -> None:
        """Show the progress of a run; elsewhere than at a terminal, at most every 30 seconds."""
        now = time.monotonic()
        if not self._live and now - self._said < self.EVERY:
            return
        self._said = now
        line = describe(progress, now - self._begun)
        click.echo(f"\r\x1b[2K{line}" if self._live else line, err=True, nl=not self._live)

    def end(self) -> None:
        """Erase the line from the terminal."""
        if self._live:
            click.echo("\r\x1b[2K", err=True, nl=False)


def describe(progress: Progress, seconds: float) -> str:
    """Return a line about a run's progress: share, megabytes and tokens so far, rate, and time left.

    Args:
        progress: The progress.
        seconds: Seconds since the run began.

    """
    share = progress.done / progress.total if progress.total else 1.0
    line = f"{share:4.0%}  {progress.done / 1e6:,.0f} of {progress.total / 1e6:,.0f} MB  {progress.tokens:,} tokens"
    rate = (progress.done - progress.resumed) / seconds if seconds > 0 else 0.0
    if rate == 0:
        return line
    left = round((progress.total - progress.done) / rate)
    return f"{line}  {rate / 1e6:,.1f} MB/s  {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"
