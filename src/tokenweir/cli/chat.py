"""`tokenweir chat`: a conversation in the terminal, token by token."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    decode_utf8,
    engine_option,
    load_engine,
    load_template,
    load_tokenizer,
    template_option,
    tokenizer_option,
)
from tokenweir.cli.terminal import dim, styled
from tokenweir.encode.errors import TokenweirError

if TYPE_CHECKING:
    import asyncio

    from tokenweir.encode.tokenizer import Tokenizer
    from tokenweir.stream.engines.protocol import Engine, Sampling
    from tokenweir.stream.engines.replay import Recording
    from tokenweir.stream.events import Delta
    from tokenweir.templates.chat_template import ChatTemplate

NO_MODEL = """\
There is no model here. What you type goes to an n-gram engine over the embedded vocabulary: it strings together words
that often follow each other and understands nothing. /demo plays recorded answers. --engine brings a real model.
"""
HELP = """\
/demo [name]  play a recorded answer: {recordings}
/clear        forget the conversation
/help         this text
/quit         end; so does Ctrl-D, or Ctrl-C twice
Ctrl-C stops an answer. A line that begins with a space is text, even if a / follows.
"""


def _not_empty(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    if "" in values:
        raise click.BadParameter("the empty text would end every answer")
    return values


@click.command(context_settings=FROM_ENVIRONMENT)
@engine_option
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

    tok = load_tokenizer(tokenizer)
    model = Model(
        load_engine(engine, embedded=tokenizer is None),
        tok,
        load_template(template, tok),
        Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed, stop=stop),
    )
    conversation = Conversation(model, system, think)
    interactive = sys.stdin.isatty()
    if interactive:
        conversation.note(NO_MODEL if engine is None else f"Answers come from {engine}.\n")
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


@dataclass(frozen=True)
class Model:
    """What answers: an engine, and how messages become its ids and its ids text."""

    engine: Engine
    tokenizer: Tokenizer
    template: ChatTemplate
    sampling: Sampling

    async def answer(self, messages: list[dict[str, str]], shown: Answer) -> None:
        """Show the answer to `messages` as it comes."""
        from tokenweir.stream.chat import chat as stream

        async with stream(
            messages, engine=self.engine, tokenizer=self.tokenizer, template=self.template, sampling=self.sampling
        ) as deltas:
            async for delta in deltas:
                shown.step(delta)


@dataclass
class Conversation:
    """The messages so far, and what a typed line does to them."""

    model: Model
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
            answered = self._show(self.model, system + self.messages, runner)
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
        model = Model(ReplayEngine([recording]), tok, load_template(None, tok), Sampling())
        self.note(f"A recording named {recording.name}, not a model. The question was: {recording.prompt}\n")
        self._show(model, [{"role": "user", "content": recording.prompt}], runner)

    def _show(self, model: Model, messages: list[dict[str, str]], runner: asyncio.Runner) -> str:
        """Show an answer up to its end or to Ctrl-C; returns its text."""
        answer = Answer(sys.stdout, self.think)
        try:
            runner.run(model.answer(messages, answer))
        except KeyboardInterrupt:
            if not sys.stdin.isatty():
                raise
        finally:
            answer.end_line()
        self.note(f"[{answer.summary()}]\n")
        return answer.text


class Answer:
    """One answer on its way to the terminal: deltas in, visible text out, and what it took."""

    def __init__(self, out: TextIO, think: str | None) -> None:
        self.text = ""
        self._out = out
        self._styled = styled(out)
        self._think = think or ("dim" if self._styled else "hide")
        self._labelled = self._think == "show" or not self._styled  # else dimness tells thinking from the answer
        self._channel: str | None = None
        self._midline = False
        self._reason = "Ctrl-C"
        self._prompt_tokens = self._tokens = self._thinking_tokens = 0
        self._started = time.monotonic()
        self._arrivals: list[tuple[float, int]] = []  # the first and the last: the time, and the tokens until then

    def step(self, delta: Delta) -> None:
        """Show a delta at once."""
        from tokenweir.stream.events import Finish, ReasoningDelta, TextDelta

        self._tokens += len(delta.token_ids)
        if delta.token_ids:
            self._arrivals[1:] = [(time.monotonic(), self._tokens)]
        match delta:
            case Finish(reason, stop_reason, usage):
                self._reason = str(reason) if stop_reason is None else f"{reason} at {stop_reason!r}"
                self._prompt_tokens, self._thinking_tokens = usage.prompt_tokens, usage.reasoning_tokens
            case TextDelta(text):
                self.text += text
                self._write("answer", text)
            case ReasoningDelta(text):
                if self._think != "hide":
                    self._write("thinking", text)
            case _:
                self._write("tool call", delta.name or delta.arguments)

    def _write(self, channel: str, text: str) -> None:
        if channel != self._channel:
            text = text.lstrip("\n")  # models put line feeds around their thinking
            if not text:
                return
            if self._channel is not None:
                self._out.write("\n\n" if self._midline else "\n")
            if channel == "tool call" or (self._labelled and (channel, self._channel) != ("answer", None)):
                self._out.write(f"[{channel}]\n")
            self._channel = channel
        self._out.write(dim(text, self._styled and self._think == "dim" and channel == "thinking"))
        self._out.flush()
        self._midline = not text.endswith("\n")

    def end_line(self) -> None:
        """End the line that the answer is on."""
        if self._midline:
            self._out.write("\n")
            self._out.flush()
            self._midline = False

    def summary(self) -> str:
        """What it took, in one line."""
        tokens = f"{self._tokens} tokens"
        if self._thinking_tokens:
            tokens += f", {self._thinking_tokens} of them thinking"
        if self._prompt_tokens:
            tokens += f", prompt {self._prompt_tokens}"
        parts = [tokens]
        if self._arrivals:
            (first, so_far), (last, total) = self._arrivals[0], self._arrivals[-1]
            parts.append(f"first token after {first - self._started:.2f} s")
            if last > first:
                parts.append(f"{(total - so_far) / (last - first):.1f} tokens/s")
        return " | ".join([*parts, f"ended by {self._reason}"])


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
