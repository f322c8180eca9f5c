"""`tokenweir serve`: an engine behind HTTP and websockets, with a page to try it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import nullcontext, suppress
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click

import tokenweir
from tokenweir.cli.model import engine_key_option, engine_option, load_model, note, thinks_first_option
from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    device_choice,
    load_gpu_encoder,
    missing_extra,
    template_option,
    tokenizer_option,
)
from tokenweir.encode.base.platform import END_SIGNALS, HAS_WORKERS
from tokenweir.encode.base.visible_text import visible

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import FrameType

ARGUMENTS = "tokenweir.serve.arguments"
LOOPBACK = ("127.0.0.1", "::1", "localhost")

LISTENS_AFTER = 3.0
"""Seconds until this server listens although the engine's has not answered yet."""

LAST_RESORT = 5.0
"""Seconds after the drain timeout until the process exits, even if an engine still runs."""


class _Serve(click.Command):
    """Command whose options include those of `ServerOptions` that have a flag.

    It keeps its command-line arguments in the context, so that worker processes can be started with them.
    """

    def get_params(self, context: click.Context) -> list[click.Parameter]:
        *own, help_option = super().get_params(context)
        return [*own, *_server_options(), help_option]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        given = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[ARGUMENTS] = given
        return context


@cache
def _server_options() -> tuple[click.Option, ...]:
    """Return the options of the command line that the options of a server declare, in their order."""
    from tokenweir.stream.serve.options import declared_options

    made = []
    for name, kind, option in declared_options():
        if not option.flag:
            continue
        about = " ".join(filter(None, (option.about, option.flag_about))).replace("`", "")
        extra: dict[str, Any] = {"show_default": True, "default": option.default}
        if kind is bool:
            flag = f"{option.flag}/--no-{option.flag[2:]}" if option.default else option.flag
            extra |= {"is_flag": True, "show_default": option.default}
        elif get_origin(kind) is Literal:
            flag, extra["type"] = option.flag, click.Choice(get_args(kind))
        elif kind == str | None:
            flag, extra = option.flag, {"show_envvar": True}
        else:
            flag, about = option.flag, f"{about} Can be repeated."
            extra = {"multiple": True, "show_envvar": name == "api_key"}
        variable = f"TOKENWEIR_{option.flag[2:].replace('-', '_').upper()}"
        made.append(click.Option([flag, name], envvar=variable, help=about, **extra))
    return tuple(made)


@click.command(cls=_Serve, context_settings=FROM_ENVIRONMENT)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free one.")
@engine_option
@engine_key_option
@thinks_first_option
@click.option(
    "--engine-wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=600,
    show_default=True,
    help="How long to wait at the start for the engine's server, until it has generated an id; 0: do not ask it. With "
    "--tokenizer, and --template for llama-server, this server runs meanwhile, and /ready answers with status 503.",
)
@tokenizer_option
@template_option
@click.option("--model", metavar="NAME", help="What clients call it.  [default: its own name, or default]")
@click.option(
    "--device",
    type=device_choice,
    default="cpu",
    show_default=True,
    help="Where prompts are encoded. gpu: together in batches, of which the GPU gets the large ones; auto: if it can.",
)
@click.option(
    "--limit",
    multiple=True,
    metavar="NAME=VALUE",
    help="What clients may cost, such as max_connections=100: the fields of tokenweir.Limits. Can be repeated.",
)
@click.option("--access-log", is_flag=True, help="Write a line of JSON a request to standard error, without content.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Processes that share the work. SIGHUP replaces them, one after the other, without a lost stream.",
)
@click.pass_context
def serve(
    context: click.Context,
    /,
    host: str,
    port: int,
    engine: str | None,
    engine_key: str | None,
    thinks_first: bool,
    engine_wait: float,
    tokenizer: Path | None,
    template: Path | None,
    model: str | None,
    device: str,
    limit: tuple[str, ...],
    access_log: bool,
    workers: int,
    **options: Any,
) -> None:
    """Serve an engine over OpenAI's and Anthropic's HTTP interfaces and a websocket of responses, with a page to chat at.

    Without --engine it serves the small model that `tokenweir fetch-model` has fetched, else a toy that makes words up;
    and `demo`, which plays recorded answers. The name `default` always means the first model.

    SIGTERM and SIGINT let the answers in flight end first; a second one cuts them off. If an engine has not stopped
    when the time to drain is over, the process prints a line that says so, and exits with code 1.
    """
    import asyncio

    from tokenweir.stream.engines.startup import check_answer, until_up

    try:
        from tokenweir.stream.serve.answers.cache_salt import LEAST_SECRET
        from tokenweir.stream.serve.answers.generation import abandoned
        from tokenweir.stream.serve.app.memory import prepare_memory
        from tokenweir.stream.serve.transport.listener import raise_descriptor_limit
        from tokenweir.stream.serve.transport.server import serve as start
        from tokenweir.stream.serve.transport.server import url_of
    except ModuleNotFoundError as error:
        raise missing_extra("the server needs", error, "serve") from error

    if options["history"] != "canonical" and not options["prompt_cache"]:
        raise click.UsageError(
            f"--history {options['history']} needs the cache of prompts, which --no-prompt-cache turns off"
        )
    if not all(key and key.isascii() for key in options["api_key"]):
        raise click.UsageError("--api-key must be ASCII and not empty")
    if (secret := options["salt_secret"]) is not None and len(secret) < LEAST_SECRET:
        raise click.UsageError(f"--salt-secret needs {LEAST_SECRET} characters or more")
    limits = _limits(limit)
    given = context.obj  # in a worker process: its place
    if workers > 1 and given is None:
        if not HAS_WORKERS:
            raise click.UsageError(
                f"--workers {workers} needs POSIX signals and unix sockets; this system runs one worker"
            )
        from tokenweir.cli.workers import run as run_workers

        sys.exit(run_workers(context.meta[ARGUMENTS], host=host, port=port, count=workers))
    if access_log:
        _log_accesses()
    served = load_model(engine, tokenizer, template, engine_key=engine_key, thinks_first=thinks_first, wait=engine_wait)
    engines: dict[str, tokenweir.Engine] = {model or served.name: served.engine}
    if isinstance(served.engine, tokenweir.NgramEngine):
        engines.setdefault("demo", tokenweir.ReplayEngine())  # over the same vocabulary, and better to look at
    gpu = load_gpu_encoder(served.tokenizer, device)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        starting: asyncio.Task[None] | None = None
        if served.remote is not None and engine_wait:
            starting = loop.create_task(until_up(partial(check_answer, served.remote), engine_wait, note))
            await asyncio.wait([starting], timeout=LISTENS_AFTER)
            if starting.done():
                starting.result()
        prepare_memory(loop)
        raise_descriptor_limit(limits.max_connections)
        async with (
            tokenweir.PromptBatcher(gpu) if gpu else nullcontext() as encoder,
            start(
                engine=engines,
                tokenizer=served.tokenizer,
                template=served.template,
                encoder=encoder,
                host=host,
                port=port,
                limits=limits,
                place=None if given is None else given.place,
                **options,
            ) as server,
        ):
            exit_later = _last_resort(limits.drain_timeout + LAST_RESORT)

            def end() -> None:  # also called by a signal handler, which must start no thread
                exit_later()
                with suppress(RuntimeError):  # the loop is closed already
                    loop.call_soon_threadsafe(server.close)

            about = f"{' and '.join(engines)} served at {url_of(host, server.port)}\n"
            if engine is None:
                about += f"{served.about}\n"
            if not options["api_key"] and host not in LOOPBACK:
                about += "Anyone who reaches this address can use it: no --api-key is set.\n"
            about = visible(about)
            if given is not None:
                given.begin(about, end)
            else:
                _call_by_signal(end)
                sys.stderr.write(about)
            if starting is not None:
                starting.add_done_callback(_close_on_failure(server))
            await server.serve_forever()
            await server.wait_closed()
        if starting is not None and not starting.cancel():
            starting.result()
        if abandoned():
            _end()

    asyncio.run(run())


def _close_on_failure(server: tokenweir.Server) -> Callable[[asyncio.Task[None]], None]:
    """Return a callback of the task that waits for the engine: it closes the server if the engine cannot answer."""

    def close(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            server.close()

    return close


def _last_resort(seconds: float) -> Callable[[], None]:
    """Return a function that makes the process exit after some seconds, even if the event loop is blocked then.

    It only wakes a thread that waits already, so signal handlers may call it.
    """
    asked: SimpleQueue[None] = SimpleQueue()  # its `put` is reentrant

    def wait() -> None:
        asked.get()
        time.sleep(seconds)
        _end()

    threading.Thread(target=wait, daemon=True).start()
    return lambda: asked.put(None)


def _call_by_signal(end: Callable[[], None]) -> None:
    """Install signal handlers: the first SIGTERM or SIGINT calls `end`, the second ends the process."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in END_SIGNALS:  # the next signal ends the process without waiting for answers
            signal.signal(each, signal.SIG_DFL)
        end()

    for number in END_SIGNALS:  # not the loop's handlers, which an engine that never awaits would block
        signal.signal(number, stop)


def _log_accesses() -> None:
    """Configure logging so that the lines of the access log go to standard error, without a prefix."""
    import logging

    lines = logging.StreamHandler()
    lines.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("tokenweir.access")
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _end() -> None:
    """Exit the process at once with code 1, although an engine still runs, and say so on stderr."""
    sys.stderr.write("An engine did not stop, and is left behind.\n")
    sys.stderr.flush()
    os._exit(1)


def _limits(given: tuple[str, ...]) -> tokenweir.Limits:
    """Parse the values of `--limit`, each `NAME=VALUE`; raise `click.UsageError` for an unknown name or bad value."""
    kinds = {field.name: float if isinstance(field.default, float) else int for field in fields(tokenweir.Limits)}
    values: dict[str, Any] = {}  # each of its field's kind
    for item in given:
        name, _, value = item.partition("=")
        if name not in kinds:
            raise click.UsageError(f"--limit {item}: no limit {name!r}; there are {', '.join(kinds)}")
        try:
            values[name] = kinds[name](value)
        except ValueError:
            kind = "integer" if kinds[name] is int else "number"
            raise click.UsageError(f"--limit {item}: {value!r} is not a valid {kind}") from None
    try:
        return tokenweir.Limits(**values)
    except ValueError as error:
        raise click.UsageError(f"--limit {error}") from error
