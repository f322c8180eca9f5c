"""`tokenweir render`: messages in, the prompt out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from tokenweir.cli.options import (
    FROM_ENVIRONMENT,
    decode_utf8,
    file_name,
    json_option,
    load_template,
    load_tokenizer,
    template_option,
    tokenizer_option,
)
from tokenweir.cli.terminal import origin_view
from tokenweir.cli.terminal.escape_codes import styled
from tokenweir.cli.terminal.token_view import one_line
from tokenweir.encode.base.visible_text import visible
from tokenweir.encode.errors import TemplateError

if TYPE_CHECKING:
    from tokenweir.templates.chat_template import HistoryThinking

RENDER_ARGUMENTS = (
    "messages",
    "tools",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
    "find_generated",
    "tidy",
    "history_thinking",
)
"""Names of arguments of `ChatTemplate.render`."""
MOST_PATHS = 10
"""Paths in a warning."""


class _MessagesFile(click.File):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Open the file that an argument names. If the argument is JSON itself, raise an error that says how to pass it."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
                raise
            hint = "MESSAGES is the name of a file, and JSON itself is read from stdin"
            raise click.BadParameter(f"{error.message}; {hint}", ctx, param) from error


@click.command(context_settings=FROM_ENVIRONMENT)
@click.argument("messages", type=_MessagesFile("rb"), default="-")
@tokenizer_option
@template_option
@click.option(
    "--template-kwarg", "variables", multiple=True, metavar="NAME=JSON", help="A variable of the template's own."
)
@click.option("--no-generation-prompt", is_flag=True, help="Leave out the opening of the assistant's turn.")
@click.option("--tidy", is_flag=True, help="Tidy the history first, as chat() and the server do.")
@click.option(
    "--history-thinking",
    type=click.Choice(["control", "text"]),
    default="control",
    show_default=True,
    help="What thinking tags in an assistant's content are: control tokens, or text.",
)
@click.option("--origins", is_flag=True, help="Show who wrote what: the template, the engine, or a path of the input.")
@json_option
def render(
    messages: BinaryIO,
    tokenizer: Path | None,
    template: Path | None,
    variables: tuple[str, ...],
    no_generation_prompt: bool,
    tidy: bool,
    history_thinking: HistoryThinking,
    origins: bool,
    as_json: bool,
) -> None:
    """Render MESSAGES, a JSON file or stdin, to the prompt that a model gets.

    MESSAGES is a list of objects with role and content, or an object with such a list as messages and, if need be,
    tools. With --json prints one object: the text, its segments, and the ids.

    With --origins, a terminal shows the text in colours. Elsewhere it prints a line for each span of the text: where
    its characters begin and end, who wrote it, and the text, separated by tabs. Texts of the input that the template
    never wrote are named on standard error.
    """
    tok = load_tokenizer(tokenizer)
    try:
        request = json.loads(decode_utf8(messages.read(), messages))
    except (json.JSONDecodeError, RecursionError) as error:
        raise TemplateError(f"{file_name(messages)}: not JSON: {error}") from error
    conversation, tools = (
        (request.get("messages"), request.get("tools")) if isinstance(request, dict) else (request, None)
    )
    if not isinstance(conversation, list):
        raise TemplateError(f"{file_name(messages)}: neither a list of messages nor an object with a list as messages")
    prompt = load_template(template, tok).render(
        conversation,
        tools=tools,
        add_generation_prompt=not no_generation_prompt,
        tidy=tidy,
        history_thinking=history_thinking,
        **dict(_variable(assignment) for assignment in variables),
    )
    if prompt.left_out:
        paths, more = prompt.left_out[:MOST_PATHS], len(prompt.left_out) - MOST_PATHS
        others = f" and {more} more" if more > 0 else ""
        click.echo(f"tokenweir: the template left out {', '.join(map(one_line, paths))}{others}", err=True)
    if as_json:
        segments = [{"text": segment.text, "control": segment.control} for segment in prompt.segments]
        told = {"text": prompt.text, "segments": segments, "ids": prompt.encode(tok)}
        if origins:
            told["origins"] = [span._asdict() for span in prompt.origins]
        sys.stdout.write(json.dumps(told) + "\n")
    elif origins and styled(sys.stdout):
        origin_view.draw(prompt, sys.stdout)
    elif origins:
        for start, end, origin, _ in prompt.origins:
            sys.stdout.write(f"{start}\t{end}\t{one_line(origin)}\t{one_line(prompt.text[start:end])}\n")
    else:
        sys.stdout.write(visible(prompt.text) if sys.stdout.isatty() else prompt.text)


def _variable(assignment: str) -> tuple[str, Any]:
    name, equals, value = assignment.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--template-kwarg {assignment}: give NAME=JSON")
    if name in RENDER_ARGUMENTS:
        raise click.UsageError(f"--template-kwarg {assignment}: {name} is not a variable of the template's own")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value  # a plain word needs no quotes
