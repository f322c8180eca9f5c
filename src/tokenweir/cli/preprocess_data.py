"""`tokenweir preprocess-data`: the arguments of Megatron-LM's `tools/preprocess_data.py`, and its files."""

from __future__ import annotations

from pathlib import Path

import click

from tokenweir.cli.options import FROM_ENVIRONMENT, load_tokenizer
from tokenweir.encode.base.visible_text import visible


class _SeveralKeys(click.Command):
    """Command whose `--json-keys` takes several values, as argparse has it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given: list[str] = []
        inside = False
        for argument in args:
            inside = argument == "--json-keys" or (inside and not argument.startswith("-"))
            if inside and argument != "--json-keys":
                given.append("--json-keys")
            if argument != "--json-keys":
                given.append(argument)
        return super().parse_args(ctx, given)


@click.command(cls=_SeveralKeys, context_settings=FROM_ENVIRONMENT)
@click.option("--input", "path", metavar="FILE", required=True, help="A JSONL file, perhaps compressed; a path or URL.")
@click.option("--output-prefix", metavar="PREFIX", required=True, help="The beginning of the files' names.")
@click.option(
    "--json-keys", metavar="KEY...", multiple=True, default=["text"], show_default=True, help="Fields to encode."
)
@click.option("--append-eod", is_flag=True, help="End every document with the end token.")
@click.option(
    "--tokenizer-model", type=click.Path(path_type=Path), required=True, help="A tokenizer file, or a folder with one."
)
@click.option("--tokenizer-type", help="Without effect: the file decides.")
@click.option("--workers", type=click.IntRange(1), help="Threads. Default: one a core.")
@click.option(
    "--log-interval", type=click.IntRange(1), default=1000, show_default=True, help="Documents between two lines."
)
@click.option(
    "--partitions", type=click.IntRange(1, 1), default=1, help="Without effect, since one process suffices: 1."
)
@click.option("--keep-sequential-samples", is_flag=True, help="Without effect: the order is always kept.")
def preprocess_data(
    path: str,
    output_prefix: str,
    json_keys: tuple[str, ...],
    append_eod: bool,
    tokenizer_model: Path,
    tokenizer_type: str | None,
    workers: int | None,
    log_interval: int,
    partitions: int,
    keep_sequential_samples: bool,
) -> None:
    """Encode a JSONL file to PREFIX_KEY_document.bin and .idx, as Megatron-LM's preprocess_data does, to the same bytes.

    Other arguments of Megatron's, such as --split-sentences, are refused.
    """
    from tokenweir.corpus.megatron import preprocess

    tok = load_tokenizer(tokenizer_model)
    if append_eod and not tok.eos_ids:
        raise click.UsageError("--append-eod: this tokenizer has no end token")
    eod = tok.encode("", add_special_tokens=False, add_eos=True)[-1] if append_eod else None
    said = 0

    def report(documents: int) -> None:
        nonlocal said
        if documents >= said + log_interval:
            said = documents
            click.echo(f"Processed {documents} documents", err=True)

    found = preprocess(path, output_prefix, tok, keys=json_keys, eod=eod, threads=workers, report=report)
    click.echo(f"{found:,} documents in {visible(output_prefix)}")
