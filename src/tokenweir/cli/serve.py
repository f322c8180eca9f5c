"""`tokenweir serve`: an engine behind a websocket, with a page to try it."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import click

from tokenweir.cli.model import engine_key_option, engine_option, load_model
from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    device_choice,
    load_gpu_encoder,
    template_option,
    tokenizer_option,
)

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command(context_settings=FROM_ENVIRONMENT)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free one.")
@engine_option
@engine_key_option
@tokenizer_option
@template_option
@click.option("--model", metavar="NAME", default="default", show_default=True, help="What clients call it.")
@click.option(
    "--device",
    type=device_choice,
    default="cpu",
    show_default=True,
    help="Where prompts are encoded. gpu: together in batches, of which the GPU gets the large ones; auto: if it can.",
)
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
    engine_key: str | None,
    tokenizer: Path | None,
    template: Path | None,
    model: str,
    device: str,
    api_key: str | None,
    origin: tuple[str, ...],
) -> None:
    """Serve an engine over a websocket that speaks the OpenAI Responses protocol, with a page to chat at.

    Without --engine it is the small model that `tokenweir fetch-model` has fetched, else a toy that makes words up, and `demo`, which plays
    recorded answers.

    SIGTERM and SIGINT let the answers in flight end first; a second one cuts them off.
    """
    import asyncio
    import signal

    from tokenweir.stream.engines.ngram import NgramEngine
    from tokenweir.stream.engines.protocol import Engine
    from tokenweir.stream.engines.replay import ReplayEngine
    from tokenweir.stream.prompts.batcher import PromptBatcher
    from tokenweir.stream.server.serve import serve as start

    if api_key is not None and not (api_key and api_key.isascii()):
        raise click.UsageError("--api-key must be ASCII and not empty")
    served = load_model(engine, tokenizer, template, engine_key=engine_key)
    engines: dict[str, Engine] = {model: served.engine}
    if isinstance(served.engine, NgramEngine):
        engines.setdefault("demo", ReplayEngine())  # over the same vocabulary, and better to look at
    gpu = load_gpu_encoder(served.tokenizer, device)

    async def run() -> None:
        async with (
            PromptBatcher(gpu) if gpu else nullcontext() as encoder,
            start(
                engine=engines,
                tokenizer=served.tokenizer,
                template=served.template,
                encoder=encoder,
                host=host,
                port=port,
                api_key=api_key,
                origins=origin,
            ) as server,
        ):
            loop = asyncio.get_running_loop()
            signals = (signal.SIGTERM, signal.SIGINT)

            def stop() -> None:
                server.close()
                for number in signals:  # the next one ends the process, and not by an exception that waits for answers
                    loop.remove_signal_handler(number)
                    signal.signal(number, signal.SIG_DFL)

            for number in signals:
                loop.add_signal_handler(number, stop)
            sys.stderr.write(f"{' and '.join(engines)} served at http://{host}:{server.port}\n")
            if engine is None:
                sys.stderr.write(f"{served.about}\n")
            if api_key is None and host not in LOOPBACK:
                sys.stderr.write("Anyone who reaches this address can use it: no --api-key is set.\n")
            await server.serve_forever()

    asyncio.run(run())
