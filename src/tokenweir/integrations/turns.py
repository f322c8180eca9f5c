"""Turns of a rendered conversation, and the ids of the text after an answer, from the origins of the prompt's text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tokenweir.encode.errors import TemplateError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.prompt import Prompt
from tokenweir.templates.styles.tools import Tools

Message = Mapping[str, Any]

_MESSAGE = re.compile(r"messages\[([0-9]+)\]")
_THINKING = re.compile(r"messages\[([0-9]+)\]\.(?:reasoning_content|reasoning|thinking)\b")


class RenderedTurns(NamedTuple):
    """The ids of a rendered conversation, each with its message.

    Attributes:
        ids: All ids.
        messages: For each id the number of the message whose turn it is in, its markup included; -1 outside of all turns.
        content: For each id whether it is a message's own text, or one that a model generates as an assistant.
        sampled: For each id whether a model generates it as an assistant, the end token included.

    """

    ids: list[int]
    messages: list[int]
    content: list[bool]
    sampled: list[bool]


def turns(prompt: Prompt, tokenizer: Tokenizer, opening: Sequence[int] = ()) -> RenderedTurns:
    """Encode a prompt, and find for each id the message of its turn and whether a model generates it.

    Args:
        prompt: The rendered conversation.
        tokenizer: The tokenizer.
        opening: The ids of the generation prompt. In an assistant's turn that begins with them, all ids behind them
            are marked as sampled, markup included, up to and with the end token. In other turns, and in all turns if
            it is empty, the marked ids are those of `Prompt.loss_mask` with `end_tokens=True`.

    """
    ids = prompt.encode(tokenizer)
    written = prompt.message_indices(tokenizer)
    sampled = [bool(flag) for flag in prompt.loss_mask(tokenizer, end_tokens=True)]
    owners = [-1] * len(ids)
    numbers = sorted({number for number in written if number >= 0})
    firsts = {number: written.index(number) for number in numbers}
    lasts = {number: len(written) - 1 - written[::-1].index(number) for number in numbers}
    begin = int(bool(ids) and ids[0] == tokenizer.bos_id)
    first = firsts[numbers[0]] if numbers else 0
    for place in range(first):  # turns of the template's own, such as that of the tools
        if ids[place] in tokenizer.eos_ids and place:
            begin = _end_of_turn(tokenizer, ids, place, first)
    for place, number in enumerate(numbers):
        until = firsts[numbers[place + 1]] if place + 1 < len(numbers) else len(ids)
        end = max(begin, _end_of_turn(tokenizer, ids, lasts[number] + 1, max(until, lasts[number] + 1), sampled))
        owners[begin:end] = [number] * (end - begin)
        if opening and ids[begin : begin + len(opening)] == list(opening) and sampled[begin + len(opening) : end]:
            last = max((at for at in range(begin, end) if sampled[at]), default=-1)
            sampled[begin + len(opening) : last + 1] = [True] * max(0, last + 1 - begin - len(opening))
        begin = end
    others = prompt.loss_mask(tokenizer, roles=("system", "developer", "user", "tool"))
    content = [
        flag or bool(other and number >= 0) for flag, other, number in zip(sampled, others, written, strict=True)
    ]
    return RenderedTurns(ids, owners, content, sampled)


def _end_of_turn(tokenizer: Tokenizer, ids: Sequence[int], start: int, until: int, sampled: Sequence[bool] = ()) -> int:
    """Return the index of the id behind a turn.

    That is behind the end token and the white space that follows. If a role token of the next turn ends an answer, it
    counts as the answer's end token if a model generates it. Without an end token it is the next control token that
    does not close a tag, or `until`.

    Args:
        tokenizer: The tokenizer.
        ids: The ids of the prompt.
        start: The index behind the last id of the turn's text.
        until: The index of the first id of the next turn's text, or the number of ids.
        sampled: For each id whether a model generates it; empty if no id is.

    """
    for place in range(start, until):
        if ids[place] in tokenizer.eos_ids:
            if _begins_turn(tokenizer, ids[place]):
                if sampled and sampled[place]:
                    return place + 1
                continue
            place += 1
            while place < until and tokenizer.token_bytes(ids[place]).isspace():
                place += 1
            return place
    controls = tokenizer.control_texts
    for place in range(start, until):
        name = tokenizer.id_to_token(ids[place])
        if name in controls and not name.startswith("</"):
            return place
    return until


def _begins_turn(tokenizer: Tokenizer, token_id: int) -> bool:
    """Whether an end token is also the role token that begins the next turn, as in GLM's templates."""
    return tokenizer.id_to_token(token_id) in ("<|user|>", "<|observation|>", "<|assistant|>")


class Continuation(NamedTuple):
    """The ids that new messages add behind an answer.

    Attributes:
        ids: The ids, from the token that ends the answer's turn to the place where the next answer begins.
        messages: For each id the number of its message among the new ones; -1 for other ids.
        content: For each id whether it is a new message's own text.

    """

    ids: list[int]
    messages: list[int]
    content: list[bool]


class Turns:
    """Base of what renders conversations and appends messages to the ids of an answer."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        keep_thinking: bool,
        template_kwargs: Mapping[str, Any],
    ) -> None:
        """Take a model's tokenizer and template.

        Args:
            tokenizer: The tokenizer.
            template: The template; None takes the tokenizer's own.
            keep_thinking: Continue an answer although the template drops its thinking once new messages are there.
            template_kwargs: Further arguments of `ChatTemplate.render`.

        """
        self._tokenizer = tokenizer
        self._template = ChatTemplate.from_tokenizer(tokenizer) if template is None else template
        self._keep_thinking = keep_thinking
        self._template_kwargs = template_kwargs

    def _prompt(self, messages: Sequence[Message], tools: Tools | None, add_generation_prompt: bool) -> Prompt:
        return self._template.render(
            messages, tools=tools, add_generation_prompt=add_generation_prompt, **self._template_kwargs
        )

    def _continuation(
        self, messages: Sequence[Message], new: Sequence[Message], tools: Tools | None, ids: Sequence[int]
    ) -> Continuation | str:
        """Return the ids that new messages add behind the ids of an answer, up to the generation prompt's end.

        Return the reason as a str if these ids cannot be found, such as that the template writes an earlier message
        behind the answer.

        Args:
            messages: A conversation that ends with the answer.
            new: The messages that follow; none of them may be an assistant's.
            tools: As for `ChatTemplate.render`.
            ids: The ids that end with the answer's.

        """
        if not messages or not new:
            return "there is no answer, or nothing new"
        if any(message.get("role") == "assistant" for message in new):
            return "a new message is an assistant's"
        try:
            prompt = self._prompt([*messages, *new], tools, True)
        except TemplateError as error:
            return str(error)
        found = _continuation(prompt, self._tokenizer, messages, self._keep_thinking)
        return _fitted(ids, found, self._tokenizer) if isinstance(found, Continuation) else found


def _continuation(
    prompt: Prompt, tokenizer: Tokenizer, messages: Sequence[Message], keep_thinking: bool
) -> Continuation | str:
    """Return the ids of a prompt behind those of its first `messages`, of which the last one is an answer."""
    count = len(messages)
    spans = [(span, _number(span.origin)) for span in prompt.origins]
    start = min((span.start for span, number in spans if number >= count), default=None)
    if start is None:
        return "the template does not write the new messages"
    for span, number in spans:
        if span.end > start and (0 <= number < count or span.origin.startswith("tools")):
            return f"the template writes {span.origin} behind the answer"
    thinking = any(match and int(match[1]) == count - 1 for match in map(_THINKING.match, (s.origin for s, _ in spans)))
    thought = any(messages[-1].get(name) for name in ("reasoning_content", "reasoning", "thinking"))
    if thought and not thinking and not keep_thinking:
        return "the template drops the answer's thinking"
    found = turns(prompt, tokenizer)
    written = prompt.message_indices(tokenizer)
    own = [place for place, number in enumerate(written) if number == count - 1]
    if not own:
        return "the template writes nothing of the answer"
    first = next(place for place, number in enumerate(written) if number >= count)
    end = next((place for place in range(own[-1] + 1, first) if found.ids[place] in tokenizer.eos_ids), None)
    if end is None:
        return "no end token closes the answer"
    numbers = [number - count if number >= count else -1 for number in found.messages[end:]]
    content = [flag and number >= 0 for flag, number in zip(found.content[end:], numbers, strict=True)]
    return Continuation(found.ids[end:], numbers, content)


def _number(origin: str) -> int:
    match = _MESSAGE.match(origin)
    return -1 if match is None else int(match[1])


def _fitted(ids: Sequence[int], following: Continuation, tokenizer: Tokenizer) -> Continuation | str:
    """Return a continuation that fits behind the ids of an answer.

    Drop the continuation's first id, an end token, if the ids end with the same token. If they end with another end
    token, return a str: why the continuation does not fit.
    """
    if not ids or ids[-1] not in tokenizer.eos_ids:
        return following
    if following.ids[0] != ids[-1]:
        ends = tokenizer.id_to_token(ids[-1]), tokenizer.id_to_token(following.ids[0])
        return f"the answer ends with {ends[0]!r}, the template writes {ends[1]!r}"
    return Continuation(following.ids[1:], following.messages[1:], following.content[1:])
