"""`tokenweir check`: what holds for a chat template, and what does not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from tokenweir.check.model import Finding, Model

SIGNS = {"ok": "✓", "note": "!", "fault": "✗", "absent": "–"}
COLOURS = {"ok": "green", "note": "yellow", "fault": "red", "absent": None}
WIDTH = 52  # of a check's name
SHOWN = 600  # characters of an example


@click.command(context_settings=FROM_ENVIRONMENT)
@model_argument
@template_option
@json_option
def check(model: Path, template: Path | None, as_json: bool) -> None:
    """Check the chat template of MODEL: whether answers read back, prefixes stay, and texts stay text.

    MODEL is a model folder, a tokenizer file, a model's name in the hub's cache, `local`, or a .jinja file alone, whose control
    tokens are then taken from its source. Exits with 1 if a fault is found; notes are no faults.
    """
    from tokenweir.check.run import run_checks

    path = find_model(model)
    findings = list(run_checks(_load(path, template)))
    if as_json:
        told = [{name: getattr(finding, name) for name in finding.__struct_fields__} for finding in findings]
        sys.stdout.write(json.dumps({"model": str(path), "findings": told}) + "\n")
    else:
        click.echo(one_line(str(path)))
        for finding in findings:
            _show(finding)
        counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in SIGNS}
        names = {"ok": "hold", "note": "to note", "fault": "faults", "absent": "do not apply"}
        click.echo("\n" + ", ".join(f"{counts[verdict]} {name}" for verdict, name in names.items()))
    if any(finding.verdict == "fault" for finding in findings):
        raise click.exceptions.Exit(1)


def _load(path: Path, template: Path | None) -> Model:
    from tokenweir.check.model import Model, template_alone

    if path.suffix == ".jinja" and path.is_file():
        return template_alone(path)
    tokenizer = load_tokenizer(path)
    return Model(tokenizer, load_template(template, tokenizer))


def _show(finding: Finding) -> None:
    sign = SIGNS[finding.verdict]
    if styled(sys.stdout):
        sign = click.style(sign, fg=COLOURS[finding.verdict])
    click.echo(f"{sign} {finding.check:{WIDTH}} {one_line(finding.text)}")
    if finding.example and finding.verdict != "absent":
        shown = finding.example if len(finding.example) <= SHOWN else f"{finding.example[:SHOWN]}…"
        click.echo(f"    {one_line(shown)}")
