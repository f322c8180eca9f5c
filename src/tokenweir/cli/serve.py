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

    if api_key is not None and not (api_key and api_key.isascii()):
        raise click.UsageError("--api-key must be ASCII and not empty")
    tok = load_tokenizer(tokenizer)
    chat_template = load_template(template, tok)
    answering = load_engine(engine, embedded=tokenizer is None)

    async def run() -> None:
        async with start(
            engine={model: answering},
            tokenizer=tok,
            template=chat_template,
            host=host,
            port=port,
            api_key=api_key,
            origins=origin,
        ) as server:
            loop = asyncio.get_running_loop()
            signals = (signal.SIGTERM, signal.SIGINT)

            def stop() -> None:
                server.close()
                for number in signals:  # the next one ends the process
                    loop.remove_signal_handler(number)

            for number in signals:
                loop.add_signal_handler(number, stop)
            sys.stderr.write(f"{model} is served at http://{host}:{server.port}\n")
            await server.serve_forever()

    asyncio.run(run())
