"""`tokenweir chat`: a conversation in the terminal, token by token."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from tokenweir.cli.answer import Answer
from tokenweir.cli.model import Model, engine_key_option, engine_option, load_model
from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    decode_utf8,
    load_template,
    load_tokenizer,
    template_option,
    tokenizer_option,
)
from tokenweir.cli.terminal import dim, styled
from tokenweir.encode.errors import TokenweirError

if TYPE_CHECKING:
    import asyncio

    from tokenweir.stream.engines.protocol import Sampling
    from tokenweir.stream.engines.replay import Recording

HELP = """\
/demo [name]  play a recorded answer: {recordings}
/clear        forget the conversation
/help         this text
/quit         end; so does Ctrl-D, or Ctrl-C twice
Ctrl-C stops an answer. A line that begins with a space is text, even if a /
follows.
"""


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
    "--think",
    type=click.Choice(["show", "dim", "hide"]),
    help="What to do with thinking. Default: dim on a terminal, hide elsewhere.",
)
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
    think: str | None,
) -> None:
    """Chat in the terminal; tokens show as they come.

    With input from a pipe or a file every line is a message, and only the answers go to stdout.
    """
    import asyncio

    from tokenweir.stream.engines.protocol import Sampling

    model = load_model(engine, tokenizer, template, engine_key=engine_key)
    sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed, stop=stop)
    conversation = Conversation(model, sampling, system, think)
    interactive = sys.stdin.isatty()
    if interactive or engine is None:
        conversation.note(f"{model.about}\n")
    if interactive:
        conversation.note("/help lists the commands.\n")
    with asyncio.Runner() as runner:
        for line in _typed() if interactive else _piped():
            try:
                if not conversation.turn(line, runner):
                    break
            except TokenweirError as error:
                if not interactive:
                    raise
                conversation.note(f"error: {error}\n")
            except KeyboardInterrupt:  # a moment too late to stop the answer
                if not interactive:
                    raise


@dataclass
class Conversation:
    """The messages so far, and what a typed line does to them."""

    model: Model
    sampling: Sampling
    system: str | None
    think: str | None
    messages: list[dict[str, str]] = field(default_factory=list)

    def turn(self, line: str, runner: asyncio.Runner) -> bool:
        """Answer a line or obey its command; False ends the conversation."""
        if line.startswith("/"):
            command, _, argument = line.strip().partition(" ")
            match command:
                case "/quit":
                    return False
                case "/clear":
                    self.messages.clear()
                    self.note("The conversation is forgotten.\n")
                case "/demo":
                    self._demo(argument.strip(), runner)
                case "/help":
                    self.note(HELP.format(recordings=", ".join(recording.name for recording in _recordings())))
                case _:
                    self.note(f"{command} is not a command; /help lists them\n")
        elif line.strip():
            self._say(line.strip(), runner)
        return True

    def note(self, text: str) -> None:
        """Say something that is not part of an answer."""
        sys.stdout.flush()
        sys.stderr.write(dim(text, styled(sys.stderr)))
        sys.stderr.flush()

    def _say(self, text: str, runner: asyncio.Runner) -> None:
        before = len(self.messages)
        self.messages.append({"role": "user", "content": text})
        system = [{"role": "system", "content": self.system}] if self.system else []
        answered = ""
        try:
            answered = self._show(self.model, self.sampling, system + self.messages, runner)
        finally:
            if answered:
                self.messages.append({"role": "assistant", "content": answered})
            else:  # no template takes two user messages in a row
                del self.messages[before:]

    def _demo(self, name: str, runner: asyncio.Runner) -> None:
        from tokenweir.stream.engines.protocol import Sampling
        from tokenweir.stream.engines.replay import ReplayEngine

        recordings = _recordings()
        recording = next((recording for recording in recordings if name in recording.name), None)
        if recording is None:
            names = ", ".join(recording.name for recording in recordings)
            self.note(f"no recording is named {name}; there are: {names}\n")
            return
        tok = load_tokenizer(None)
        about = f"A recording named {recording.name}, not a model. The question was: {recording.prompt}"
        model = Model(ReplayEngine([recording]), tok, load_template(None, tok), about)
        self.note(f"{about}\n\n")
        self._show(model, Sampling(), [{"role": "user", "content": recording.prompt}], runner)

    def _show(self, model: Model, sampling: Sampling, messages: list[dict[str, str]], runner: asyncio.Runner) -> str:
        """Show an answer up to its end or to Ctrl-C; returns its text."""
        answer = Answer(sys.stdout, self.think)
        try:
            runner.run(_stream(model, sampling, messages, answer))
        except KeyboardInterrupt:
            if not sys.stdin.isatty():
                raise
        finally:
            answer.end_line()
        self.note(f"[{answer.summary()}]\n")
        return answer.text


async def _stream(model: Model, sampling: Sampling, messages: list[dict[str, str]], shown: Answer) -> None:
    """Show the answer to `messages` as it comes."""
    from tokenweir.stream.pipeline.chat import chat as stream

    async with stream(
        messages, engine=model.engine, tokenizer=model.tokenizer, template=model.template, sampling=sampling
    ) as deltas:
        async for delta in deltas:
            shown.step(delta)


def _recordings() -> tuple[Recording, ...]:
    from tokenweir.stream.engines.replay import default_recordings

    return default_recordings()


def _typed() -> Iterator[str]:
    """The lines that a person types, with history and editing where the terminal allows it."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (input() uses it once it is there)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    interrupted = False
    while True:
        try:
            line = input("> ") if sys.stdout.isatty() else _line_after(sys.stderr, "> ")
        except EOFError:
            sys.stderr.write("\n")
            return
        except KeyboardInterrupt:
            sys.stderr.write("\n" if interrupted else "\n(Ctrl-C again or Ctrl-D ends)\n")
            if interrupted:
                return
            interrupted = True
        else:
            interrupted = False
            yield line


def _line_after(out: TextIO, prompt: str) -> str:
    """`input()` with its prompt on `out`, since stdout is not the terminal."""
    out.write(prompt)
    out.flush()
    if not (line := sys.stdin.readline()):
        raise EOFError
    return line


def _piped() -> Iterator[str]:
    """The lines of a pipe or file."""
    offset = 0
    for line in sys.stdin.buffer:
        yield decode_utf8(line, sys.stdin.buffer, offset)
        offset += len(line)
