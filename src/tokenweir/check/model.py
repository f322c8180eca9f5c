"""A chat template with its tokenizer, and findings about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from tokenweir.encode.errors import TemplateError
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate, token_forms
from tokenweir.templates.prompt import Prompt

Message = dict[str, Any]
Verdict = Literal["ok", "note", "fault", "absent"]

ASKED, ANSWERED, THOUGHT, TOLD = "What is new?", "Nothing is new.", "I look around.", "All is quiet."
CALL_IDS = ("callnumb1", "callnumb2")  # nine letters and digits, as some templates want
TOOL: Message = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks it up.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Where."}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
ARGUMENTS: Message = {"city": "Bern", "days": 3}
MORE_ARGUMENTS: Message = {"city": "Basel", "days": 14}


class Finding(Struct, frozen=True):
    """A result of one check.

    Attributes:
        check: The name of the check.
        verdict: "ok", "note" for what a user should know, "fault" for what goes wrong, "absent" if it does not apply.
        text: The result as a sentence.
        example: What was expected and what was found, for a fault or a note.

    """

    check: str
    verdict: Verdict
    text: str
    example: str = ""


class Model(Struct, frozen=True):
    """A chat template with the tokenizer that encodes its prompts.

    Attributes:
        tokenizer: The tokenizer.
        template: The template.
        alone: The template came without a tokenizer.
        needs_tools: The template refuses conversations without tools.

    """

    tokenizer: Tokenizer
    template: ChatTemplate
    alone: bool = False
    needs_tools: bool = False

    def prompt(self, *messages: Message, tools: bool = False, generation: bool = False, **options: Any) -> Prompt:
        """Render messages, tidied as in `chat()`.

        Args:
            messages: The conversation.
            tools: Whether to show `TOOL`. A template that `needs_tools` always gets it.
            generation: Whether the prompt ends with the opening of an answer.
            options: Further arguments of `ChatTemplate.render`, which take precedence.

        Raises:
            TemplateError: The template refuses the messages.

        """
        given = {
            "tools": [TOOL] if tools or self.needs_tools else None,
            "add_generation_prompt": generation,
            "tidy": True,
        } | options
        return self.template.render(list(messages), **given)

    def text(self, *messages: Message, **options: Any) -> str | None:
        """Return the text of `prompt`; None if the template refuses the messages."""
        try:
            return self.prompt(*messages, **options).text
        except TemplateError:
            return None


def user(content: Any = ASKED) -> Message:
    """Return a user's message."""
    return {"role": "user", "content": content}


def assistant(content: Any = ANSWERED, **fields: Any) -> Message:
    """Return an assistant's message with further fields."""
    return {"role": "assistant", "content": content, **fields}


def thinking() -> dict[str, str]:
    """Return the fields that add the sample thinking to an assistant's message."""
    return {"reasoning_content": THOUGHT}


def calls(*arguments: Message) -> dict[str, list[Message]]:
    """Return the field of a message that has calls of `TOOL`."""
    return {
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": "look_up", "arguments": each}}
            for call_id, each in zip(CALL_IDS, arguments, strict=False)
        ]
    }


def result(content: Any = TOLD, number: int = 0) -> Message:
    """Return the result of a call."""
    return {"role": "tool", "name": "look_up", "tool_call_id": CALL_IDS[number], "content": content}


def template_alone(path: Path) -> Model:
    """Load a template file without its model: the tokenizer is the embedded one, with the control tokens of the source."""
    template = ChatTemplate.from_file(path, special_tokens={"bos_token": "<s>", "eos_token": "</s>"})
    tok = Tokenizer.default()
    written = Model(tok, template).text(
        user(), assistant("", **thinking(), **calls(ARGUMENTS)), result(), user(), tools=True
    )
    texts = dict.fromkeys([*template.control_tokens, *token_forms(written or "")])  # some are joined of parts
    new = [AddedToken(text, special=True) for text in texts if tok.token_to_id(text) is None]
    return Model(tok.with_added_tokens(new) if new else tok, template, alone=True)
