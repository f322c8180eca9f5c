"""A conversation: its messages, and the commands that change them."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

import tokenweir
from tokenweir.cli.attachments import Attachment, read_attachment
from tokenweir.cli.kept import KeptConversations
from tokenweir.cli.model import Model
from tokenweir.cli.options import load_template, load_tokenizer, missing_extra
from tokenweir.cli.terminal.answer import ShownAnswer, Think
from tokenweir.cli.terminal.escape_codes import dim, styled
from tokenweir.cli.terminal.keyboard import keys_wait
from tokenweir.cli.terminal.view import View, view_of, window
from tokenweir.encode.base.visible_text import visible
from tokenweir.encode.errors import without_number

if TYPE_CHECKING:
    import asyncio

COMMANDS = {
    "/system": "[TEXT]: set the system message; without a text there is none",
    "/set": "[NAME VALUE]: set a field of the sampling, such as temperature; without a value its default",
    "/think": "show, dim or hide: what to do with thinking",
    "/model": "[SPEC]: another engine, as --engine names it; the conversation goes on",
    "/attach": "[FILE]: send an image, sound, video or text file with the next message; without a file forget those attached",
    "/retry": "answer the last message again",
    "/tokens": "[TEXT]: the tokens of a text, or of the last answer",
    "/save": "FILE: write the conversation as JSON, which `tokenweir render` reads too",
    "/load": "FILE: go on with a conversation that was saved",
    "/clear": "forget the conversation, and delete what was kept of it",
    "/demo": "[NAME]: play a recorded answer: {recordings}",
    "/help": "this text",
    "/quit": "end; so does Ctrl-D, or Ctrl-C twice",
}

KEYS = """\
Alt-Enter, or Enter behind a backslash, begins another line; a paste is one message.
Ctrl-C stops an answer. A line that begins with a space is text, even if a / follows.
"""

THINK: tuple[Think, ...] = get_args(Think)


@dataclass
class TerminalConversation:
    """A conversation in the terminal: the messages so far, and the settings of the next answer.

    Attributes:
        model: The model that answers.
        sampling: The sampling.
        system: The system message; None without one.
        think: What to do with thinking; None means dim on a terminal that can, and hide elsewhere.
        load: Makes the model that a value of `--engine` names.
        messages: The messages of the user and the answers, without the system message.
        attached: The files of the next message.
        kept: Keeps the conversation after each answer; None keeps nothing.

    """

    model: Model
    sampling: tokenweir.Sampling
    system: str | None
    think: Think | None
    load: Callable[[str], Model]
    messages: list[dict[str, Any]] = field(default_factory=list)
    attached: list[Attachment] = field(default_factory=list)
    kept: KeptConversations | None = None
    _ids: list[int] = field(default_factory=list)

    def turn(self, line: str, runner: asyncio.Runner) -> bool:
        """Process a line that the user has typed: run it if it is a command (`/...`), else send it and show the answer.

        Args:
            line: The line.
            runner: Runs the generation.

        Returns:
            False if the conversation is to end, else true.

        Raises:
            TokenweirError: The message cannot be answered, or the command not run; nothing has changed.

        """
        if not line.startswith("/"):
            if line.strip():
                text, files = line.strip(), [file.part for file in self.attached]
                self.attached.clear()
                self._say([*files, {"type": "text", "text": text}] if files else text, runner)
            return True
        command, _, argument = line.strip().partition(" ")
        if command not in COMMANDS:
            self.note(f"{command} is not a command; /help lists them\n")
            return True
        return getattr(self, f"_{command[1:]}")(argument.strip(), runner) is not False

    def note(self, text: str, indent: int = 0) -> None:
        """Print a note to the user on stderr; at a terminal, long lines are wrapped and continue behind `indent` spaces."""
        sys.stdout.flush()
        if sys.stderr.isatty():
            width = window(sys.stderr)[0]
            margin = " " * (indent if width > 4 * indent else 0)
            text = "\n".join(textwrap.fill(line, width, subsequent_indent=margin) for line in text.split("\n"))
        sys.stderr.write(dim(text, styled(sys.stderr)))
        sys.stderr.flush()

    def resume(self, data: bytes) -> None:
        """Take up a conversation that was kept, and say how it ended; its system message gives way to one that is set.

        Raises:
            ValueError: The data are not a conversation.

        """
        system = self.system
        self._take(data.decode())
        self.system = system or self.system
        asked = next((each["content"] for each in reversed(self.messages) if each["role"] == "user"), "")
        if not isinstance(asked, str):  # parts, of files and a text
            asked = next((part["text"] for part in reversed(asked) if part["type"] == "text"), "")
        begun = textwrap.shorten(visible(asked), 60, placeholder=" …")
        self.note(f"{len(self.messages)} messages go before; the last of yours: {begun}\n")

    # -- commands ------------------------------------------------------------------------------------------------------

    def _quit(self, *_: object) -> bool:
        return False

    def _system(self, text: str, _: asyncio.Runner) -> None:
        self.system = text or None
        self.note("The system message is set.\n" if text else "There is no system message.\n")

    def _help(self, *_: object) -> None:
        names = ", ".join(recording.name for recording in recordings())
        for command, text in COMMANDS.items():
            self.note(f"{command:8} {text.format(recordings=names)}\n", indent=9)
        self.note(KEYS)

    def _set(self, argument: str, _: asyncio.Runner) -> None:
        name, value = argument.partition(" ")[::2]
        if not name:
            given = "; ".join(f"{name} {value!r}" for name, value in self.sampling.given().items())
            self.note(f"{given or 'Everything has its default.'}\n")
        elif name not in settings():
            self.note(f"{name} is no field of the sampling; there are: {', '.join(settings())}\n")
        else:
            try:
                self.sampling = _with_field(self.sampling, name, value.strip())
            except (TypeError, ValueError) as error:
                self.note(f"{error}\n")
            else:
                self.note(f"{name} is {getattr(self.sampling, name)!r}.\n")

    def _think(self, argument: str, _: asyncio.Runner) -> None:
        if argument not in THINK:
            self.note(f"give /think one of {', '.join(THINK)}\n")
            return
        self.think = THINK[THINK.index(argument)]
        self.note(f"Thinking is set to {argument}.\n")

    def _model(self, spec: str, _: asyncio.Runner) -> None:
        if spec:
            try:
                self.model = self.load(spec)
            except click.UsageError as error:
                self.note(f"{error.message}\n")
                return
        self.note(f"{self.model.about}\n")

    def _attach(self, path: str, _: asyncio.Runner) -> None:
        if not path:
            self.attached.clear()
            self.note("No file is attached.\n")
            return
        with self._noted("not attached"):
            self.attached.append(read_attachment(path, self.model.engine))
            names = ", ".join(file.name for file in self.attached)
            self.note(f"With the next message: {names}.\n")

    def _retry(self, _: str, runner: asyncio.Runner) -> None:
        asked = next((i for i in reversed(range(len(self.messages))) if self.messages[i]["role"] == "user"), None)
        if asked is None:
            self.note("There is no message to answer again.\n")
            return
        before = self.messages[asked:]
        del self.messages[asked:]
        try:
            self._say(before[0]["content"], runner)
        finally:
            if len(self.messages) == asked:  # no other answer came
                self.messages += before

    def _tokens(self, text: str, _: asyncio.Runner) -> None:
        from tokenweir.cli.terminal.token_view import TokenView

        if not text and not self._ids:
            self.note("There is no answer yet; give /tokens a text.\n")
            return
        ids = self.model.tokenizer.encode(text, add_special_tokens=False) if text else self._ids
        TokenView(self.model.tokenizer, ids).print(sys.stdout)

    def _save(self, name: str, _: asyncio.Runner) -> None:
        if not name:
            self.note("give /save a file\n")
            return
        with self._noted("not saved"):
            text = json.dumps(self._all(), ensure_ascii=False, indent=1) + "\n"
            Path(name).expanduser().write_bytes(text.encode())
            self.note(f"{len(self._all())} messages are in {name}.\n")

    def _load(self, name: str, _: asyncio.Runner) -> None:
        if not name:
            self.note("give /load a file\n")
            return
        with self._noted("not loaded"):
            self._take(Path(name).expanduser().read_text("utf-8"))
            if self.kept is not None:
                self.kept.begin()
            self.note(f"{len(self._all())} messages are loaded.\n")

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """Context manager that catches an error of a file or of its name, and notes it behind `what`."""
        try:
            yield
        except (OSError, ValueError, RuntimeError) as error:  # invalid UTF-8, nested too deep, an unknown home folder
            self.note(f"{what}: {without_number(error)}\n")

    def _take(self, text: str) -> None:
        """Take the messages that a text in JSON has; raise `ValueError` if it has none."""
        from tokenweir.templates.messages import ROLES, Messages

        checked = Messages(json.loads(text))
        checked.check(ROLES)
        messages = list(checked)
        system = messages[0].get("content") if messages and messages[0]["role"] == "system" else None
        self.system = system if isinstance(system, str) else None
        self.messages = messages if self.system is None else messages[1:]

    def _clear(self, *_: object) -> None:
        self.messages.clear()
        with self._noted("The kept file stays"):
            if self.kept is not None:
                self.kept.forget()
        self.note("The conversation is forgotten.\n")

    def _keep(self) -> None:
        try:
            if self.kept is not None:
                self.kept.save(self._all())
        except (OSError, ValueError) as error:  # a full disk must not end the conversation
            self.note(f"The conversation is no longer kept: {without_number(error)}\n")
            self.kept = None

    def _demo(self, name: str, runner: asyncio.Runner) -> None:
        recording = next((recording for recording in recordings() if name in recording.name), None)
        if recording is None:
            names = ", ".join(recording.name for recording in recordings())
            self.note(f"no recording is named {name}; there are: {names}\n")
            return
        tok = load_tokenizer(None)
        about = f"A recording named {recording.name}, not a model. The question was: {recording.prompt}"
        model = Model(tokenweir.ReplayEngine([recording]), tok, load_template(None, tok), about)
        self.note(f"{about}\n\n")
        self._show(model, tokenweir.Sampling(), [{"role": "user", "content": recording.prompt}], runner)

    # -- answers -------------------------------------------------------------------------------------------------------

    def _all(self) -> list[dict[str, Any]]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        return system + self.messages

    def _say(self, content: str | list[dict[str, Any]], runner: asyncio.Runner) -> None:
        before = len(self.messages)
        self.messages.append({"role": "user", "content": content})
        answered = ""
        try:
            answered = self._show(self.model, self.sampling, self._all(), runner)
        finally:
            if answered:
                self.messages.append({"role": "assistant", "content": answered})
                self._keep()
            else:  # templates refuse two user messages in a row
                del self.messages[before:]

    def _show(
        self, model: Model, sampling: tokenweir.Sampling, messages: list[dict[str, Any]], runner: asyncio.Runner
    ) -> str:
        """Generate and show an answer to `messages`, up to its end or to Ctrl-C, and return its text."""
        dimness = styled(sys.stdout)
        think = self.think or ("dim" if dimness else "hide")
        view = _view()
        answer = ShownAnswer(view, think, labelled=think == "show" or not dimness)
        try:
            with keys_wait():
                runner.run(_stream(model, sampling, messages, answer, view))
        except KeyboardInterrupt:
            if not sys.stdin.isatty():
                raise
        finally:
            view.close()
        self.note(f"[{answer.summary()}]\n")
        self._ids = answer.ids
        return answer.text


async def _stream(
    model: Model, sampling: tokenweir.Sampling, messages: list[dict[str, Any]], answer: ShownAnswer, view: View
) -> None:
    """Generate an answer to `messages`, and show it by `answer` in its view as it comes."""
    import asyncio

    drawing = asyncio.create_task(_draw(view))
    try:
        async with tokenweir.chat(
            messages, engine=model.engine, tokenizer=model.tokenizer, template=model.template, sampling=sampling
        ) as deltas:
            async for delta in deltas:
                answer.step(delta)
    finally:
        drawing.cancel()


async def _draw(view: View) -> None:
    """Draw a view again and again until cancelled: at most 30 times a second, and at most a quarter of the time."""
    import asyncio
    import time

    while True:
        began = time.monotonic()
        view.draw()
        await asyncio.sleep(max(1 / 30, 3 * (time.monotonic() - began)))


def _view() -> View:
    try:
        return view_of(sys.stdout)
    except ImportError as error:
        raise missing_extra("a chat at a terminal needs", error) from error


def recordings() -> tuple[tokenweir.Recording, ...]:
    """Return the recordings that `/demo` plays."""
    from tokenweir.stream.engines.replay import default_recordings

    return default_recordings()


def settings() -> list[str]:
    """Return the names of the fields of `Sampling` that `/set` can set: all but `n`."""
    from tokenweir.stream.events.sampling import DEFAULTS

    return [name for name in DEFAULTS if name != "n"]


def _with_field(sampling: tokenweir.Sampling, name: str, value: str) -> tokenweir.Sampling:
    """Return a copy of the sampling with one field changed.

    Args:
        sampling: The sampling.
        name: The field.
        value: The value as the user typed it: JSON, or else a text; empty for the default.

    Raises:
        TypeError: The value has the wrong type.
        ValueError: It is out of range.

    """
    from tokenweir.stream.events.sampling import DEFAULTS

    fields = {**sampling.given(), name: DEFAULTS[name]}
    if value:
        try:
            fields[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            fields[name] = value
        if name == "stop":
            fields[name] = tuple(fields[name]) if isinstance(fields[name], list) else (fields[name],)
    return tokenweir.Sampling(**fields)
