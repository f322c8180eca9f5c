"""Ids that end the thinking: behind a prompt that opens it, and behind an answer that has used up its budget.

Markup is what the template itself writes between the thinking and the content of an answer, or else the style's closing tag.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenweir.encode.errors import TemplateError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.parsers.detection import as_spelled, read_prompt
from tokenweir.stream.decode.parsers.harmony import START
from tokenweir.stream.decode.parsers.inkling import START as MESSAGE_MODEL
from tokenweir.stream.decode.parsers.inkling import TEXTS
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.styles.reasoning import INKLING, MESSAGES, ReasoningStyle, style_of

_TAIL = 64
"""Ids at the end of a text among which its last markup is looked for."""


def ids_to_answer(tokenizer: Tokenizer, template: ChatTemplate, prompt_ids: Sequence[int]) -> list[int]:
    """Return the ids behind which the content of an answer to a prompt begins.

    They close the thinking that the prompt opens, or, in a message format, begin the message of the answer.

    Raises:
        TemplateError: The prompt opens thinking that no known markup ends.

    """
    style = None if template.reasoning is None else style_of(template.reasoning)
    reading = read_prompt(tokenizer, prompt_ids, style)
    if reading.style is None:
        return []
    if reading.inside:
        ids = ids_to_end_thinking(tokenizer, template, reading.style, prompt_ids)
    elif reading.style.name in MESSAGES:
        ids = _ids_of_header(tokenizer, template, reading.style, prompt_ids)
    else:
        return []
    if read_prompt(tokenizer, [*prompt_ids, *ids], style).inside:
        raise TemplateError(
            f"the chat template {template.name!r} opens thinking in this prompt, and no text that ends it is known"
        )
    return ids


def ids_to_end_thinking(
    tokenizer: Tokenizer, template: ChatTemplate, style: ReasoningStyle, ids: Sequence[int]
) -> list[int]:
    """Return the ids that end the thinking behind other ids.

    Args:
        tokenizer: The tokenizer.
        template: The template that wrote the prompt.
        style: The style of the thinking.
        ids: Ids that end inside the thinking.

    """
    before = tokenizer.decode(ids[-_TAIL:], skip_special_tokens=False)
    end = thinking_end(template, as_spelled(tokenizer, style), before)
    if not before or before[-1].isspace():  # the template's white space before the tag is there already
        end = end.lstrip()
    return tokenizer.encode(end, add_special_tokens=False)


def thinking_end(template: ChatTemplate, style: ReasoningStyle, before: str) -> str:
    """Return the text that ends the thinking behind the text `before`: a closing tag, with white space as in the template."""
    shown = template.thinking_end
    if any(closer in shown for closer in style.closers):
        return shown
    pairs = zip(style.openers, style.closers, strict=False)
    closer = next((closer for opener, closer in pairs if before.rstrip().endswith(opener)), style.closers[0])
    if style.name == INKLING:
        return f"{closer}{MESSAGE_MODEL}{TEXTS[0]}"
    return f"{closer}\n\n" if before.endswith("\n") else closer


def _ids_of_header(
    tokenizer: Tokenizer, template: ChatTemplate, style: ReasoningStyle, prompt_ids: Sequence[int]
) -> list[int]:
    """Return the ids of the rest of an answer's header, behind a prompt that ends within it; none if it ends elsewhere."""
    before = tokenizer.decode(prompt_ids[-_TAIL:], skip_special_tokens=False)
    start = MESSAGE_MODEL if style.name == INKLING else START
    _, _, header = thinking_end(template, style, before).rpartition(start)
    _, begun, written = before.rpartition(start)
    if not begun or not header.startswith(written):
        return []
    return tokenizer.encode(header.removeprefix(written), add_special_tokens=False)
