"""`tokenweir chat`: a conversation in the terminal, token by token."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

import tokenweir
from tokenweir.cli.attachments import read_attachment
from tokenweir.cli.conversation import COMMANDS, THINK, TerminalConversation, recordings, settings
from tokenweir.cli.kept import KeptConversations
from tokenweir.cli.model import engine_key_option, engine_option, load_model
from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    decode_utf8,
    missing_extra,
    read_inputs,
    template_option,
    tokenizer_option,
)
from tokenweir.cli.terminal.answer import Think
from tokenweir.cli.terminal.keyboard import default_history, typed
from tokenweir.encode.errors import TokenweirError, without_number

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer


def _not_empty(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    if "" in values:
        raise click.BadParameter("the empty text would end every answer")
    return values


@click.command(context_settings=FROM_ENVIRONMENT)
@engine_option
@engine_key_option
@tokenizer_option
@template_option
@click.option("--system", help="The system message.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Most tokens of an answer.")
@click.option("--temperature", type=click.FloatRange(min=0), help="0 takes the likeliest token. Default: the engine's.")
@click.option("--seed", type=int, help="For answers that repeat.")
@click.option("--stop", multiple=True, callback=_not_empty, help="Text that ends an answer. Can be repeated.")
@click.option(
    "--reasoning",
    type=click.Choice(THINK),
    help="What to do with thinking. Default: dim on a terminal, hide elsewhere.",
)
@click.option("--once", metavar="TEXT", help="Answer this message and end; - takes all of stdin as one message.")
@click.option(
    "--attach",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="An image, sound, video or text file for the first message. Can be repeated.",
)
@click.option(
    "--history",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file that keeps what was typed. Default: history in the user's state folder.",
)
@click.option("--no-history", is_flag=True, help="Keep nothing of what is typed and answered.")
@click.option("--continue", "resume", is_flag=True, help="Take up the last conversation that was kept.")
def chat(
    engine: str | None,
    engine_key: str | None,
    tokenizer: Path | None,
    template: Path | None,
    system: str | None,
    max_tokens: int | None,
    temperature: float | None,
    seed: int | None,
    stop: tuple[str, ...],
    reasoning: Think | None,
    once: str | None,
    attach: tuple[str, ...],
    history: Path | None,
    no_history: bool,
    resume: bool,
) -> None:
    """Chat in the terminal; tokens show as they come.

    With input from a pipe or a file every line is a message, and only the answers go to stdout, as the model gave them.
    Conversations at a terminal are kept beside the history, the last 20 of them, for --continue; --no-history keeps none.
    """
    import asyncio

    model = load_model(engine, tokenizer, template, engine_key=engine_key)
    sampling = tokenweir.Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed, stop=stop)
    conversation = TerminalConversation(
        model, sampling, system, reasoning, lambda spec: load_model(spec, None, None, engine_key=engine_key)
    )
    interactive = once is None and sys.stdin.isatty()
    conversation.attached += [read_attachment(path, model.engine) for path in attach]
    if interactive or engine is None:
        conversation.note(f"{model.about}\n")
    if interactive:
        conversation.note("/help lists the commands.\n")
    history = history or default_history()
    kept = KeptConversations(history.with_name(f"{history.name}.conversations"))
    if resume:
        _take_up(conversation, kept)
    if (interactive or resume) and not no_history:
        conversation.kept = kept
    with asyncio.Runner() as runner:
        for message in _messages(once, None if no_history else history):
            try:
                if not conversation.turn(message, runner):
                    break
            except TokenweirError as error:
                if not interactive:
                    raise
                conversation.note(f"error: {error}\n")
            except KeyboardInterrupt:  # too late to stop the answer
                if not interactive:
                    raise


def _take_up(conversation: TerminalConversation, kept: KeptConversations) -> None:
    """Take up the last conversation that was kept; raise `click.UsageError` without one, or if it cannot be read."""
    try:
        data = kept.last()
        if data is not None:
            conversation.resume(data)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--continue: the last conversation cannot be read: {without_number(error)}") from error
    if data is None:
        raise click.UsageError("--continue: no conversation is kept yet; those at a terminal are")


def _messages(once: str | None, history: Path | None) -> Iterator[str]:
    if once is not None:
        text = decode_utf8(sys.stdin.buffer.read(), sys.stdin.buffer) if once == "-" else once
        if not text.strip():
            raise click.UsageError("--once has no message")
        return iter([f" {text}"])  # the space makes it a message, even if it begins with /
    if not sys.stdin.isatty():
        return read_inputs((), (), lines=True)
    try:
        return typed(_completers(), history)
    except ImportError as error:
        raise missing_extra("a chat at a terminal needs", error) from error


def _completers() -> dict[str, Completer | None]:
    """Return the completer for the argument of each command, by command; None for a command without one."""
    from prompt_toolkit.completion import PathCompleter, WordCompleter

    known: dict[str, Completer] = {
        "/think": WordCompleter(list(THINK)),
        "/set": WordCompleter(settings()),
        "/demo": WordCompleter([recording.name for recording in recordings()]),
        "/save": PathCompleter(expanduser=True),
        "/load": PathCompleter(expanduser=True),
        "/attach": PathCompleter(expanduser=True),
    }
    return {command: known.get(command) for command in COMMANDS}
