"""`tokenweir serve`: an engine behind a websocket, with a page to try it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    engine_option,
    load_engine,
    load_template,
    load_tokenizer,
    template_option,
    tokenizer_option,
)


@click.command(context_settings=FROM_ENVIRONMENT)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free one.")
@engine_option
@tokenizer_option
@template_option
@click.option("--model", metavar="NAME", default="tokenweir", show_default=True, help="What clients call the model.")
@click.option(
    "--api-key",
    show_envvar=True,
    help="What clients must send. Better given in the environment, since other users can see a command line.",
)
@click.option(
    "--origin", multiple=True, help="A web origin that may connect, besides the server's own. Can be repeated."
)
def serve(
    host: str,
    port: int,
    engine: str | None,
    tokenizer: Path | None,
    template: Path | None,
    model: str,
    api_key: str | None,
    origin: tuple[str, ...],
) -> None:
    """Serve an engine over a websocket that speaks the OpenAI Responses protocol.

    SIGTERM and SIGINT let the answers in flight end first; a second one cuts them off.
    """
    import asyncio
    import signal

    from tokenweir.stream.serve import serve as start

    tok = load_tokenizer(tokenizer)
    chat_template = load_template(template, tok)
    models = {model: load_engine(engine, embedded=tokenizer is None)}

    async def run() -> None:
        async with start(
            engines=models,
            tokenizer=tok,
            template=chat_template,
            host=host,
            port=port,
            api_key=api_key,
            origins=origin,
        ) as server:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, server.close)
            sys.stderr.write(f"tokenweir {model} at http://{host}:{server.port}\n")
            await server.serve_forever()

    asyncio.run(run())
