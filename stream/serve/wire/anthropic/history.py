"""Anthropic's messages as messages for a chat template.

Nothing is put between the blocks of a message. Neighbouring messages of one role are one turn, with an empty line
between them. A system message further down stays in its place if the template can write it there; otherwise its text
joins the turn before it, so that the prompt of each request still begins with that of the one before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from tokenweir.stream.serve.wire.anthropic.blocks import (
    Block,
    McpToolResultBlock,
    McpToolUseBlock,
    Message,
    ServerCall,
    ServerResult,
    ShownBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    block_parts,
)
from tokenweir.stream.serve.wire.anthropic.server_tools import readable_result
from tokenweir.stream.serve.wire.shared.contents import Content, content_of, paragraphs
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage, MessageBuilder
from tokenweir.stream.serve.wire.shared.tool_names import joined_name

BILLING_HEADER = re.compile(r"x-anthropic-billing-header:[^\n]*\n?")
"""A system block of Claude Code that changes with its requests, so that no prompt would begin like the one before."""


class MessageHistory(Struct, frozen=True):
    """Messages for a chat template, and the paths of the parts of the request that they omit."""

    messages: list[ChatMessage]
    left_out: list[str]

    @property
    def continues(self) -> bool:
        """Whether the last message is the assistant's, so that the answer continues it."""
        last = self.messages[-1] if self.messages else {}
        return "assistant" == last.get("role")


def read_history(
    system: str | Sequence[TextBlock] | None,
    messages: Sequence[Message],
    *,
    later_system: bool,
    keep_billing_header: bool = False,
) -> MessageHistory:
    """Convert a request's system text and messages to messages for a chat template.

    Args:
        system: The system text that comes before the messages; None without one.
        messages: The request's messages.
        later_system: Whether the template can write a system message after others. If not, its text joins another turn.
        keep_billing_header: Keep Claude Code's billing header, a first system block that changes with each request.

    Raises:
        RequestError: The last message is the assistant's and ends in a call or in thinking, which an answer cannot continue.

    """
    left_out: list[str] = []
    conversation = MessageBuilder()
    if text := _system_text(system, left_out, keep_billing_header):
        conversation.say("system", text)
    last_user = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    for place, message in enumerate(messages):
        if message.clear_at == "next_user_message" and place < last_user:
            left_out.append(f"messages[{place}]")
            continue
        _add(conversation, message, f"messages[{place}]", left_out)
    history = MessageHistory(_turns(conversation.end(), later_system), left_out)
    if history.continues:
        last = history.messages[-1]
        if last.get("tool_calls") or not last["content"]:
            raise RequestError(
                f"messages[{len(messages) - 1}] ends with a call or thinking of the assistant; "
                "an answer can go on with the assistant's text only",
                param="messages",
            )
    return history


def _system_text(system: str | Sequence[TextBlock] | None, left_out: list[str], keep_billing_header: bool) -> str:
    blocks = [system] if isinstance(system, str) else [block.text for block in system or ()]
    if blocks and not keep_billing_header and BILLING_HEADER.fullmatch(blocks[0]):
        left_out.append("system" if isinstance(system, str) else "system[0]")
        del blocks[0]
    return "".join(blocks)


def _add(conversation: MessageBuilder, message: Message, where: str, left_out: list[str]) -> None:
    """Add a message's blocks to a conversation.

    Results of the client's tools come first. Neighbouring texts and images become one message. Paths of blocks that the
    model is not shown are appended to `left_out`. `where` is the path of the message in the request.
    """
    parts: list[dict[str, Any]] = []

    def say() -> None:
        if parts:
            conversation.say(message.role, content_of(parts))
            parts.clear()

    results = {
        block.tool_use_id: (block, f"{where}.content[{place}]")
        for place, block in enumerate(message.blocks)
        if isinstance(block, ServerResult)
    }
    written: set[str] = set()  # calls of a provider, with their results
    # Results stand beside their calls, as Anthropic's server demands: some templates leave out others.
    by_result = sorted(enumerate(message.blocks), key=lambda placed: not _is_client_result(placed[1]))
    for place, block in by_result:
        if isinstance(block, ShownBlock):
            parts += block_parts(block, f"{where}.content[{place}]")
            continue
        say()
        if isinstance(block, ServerResult) and block.tool_use_id in written:
            continue
        if isinstance(block, ServerCall):
            result = readable_result(*results.get(block.id, (None, "")))
            if result is not None:
                name = joined_name(block.name, block.server_name if isinstance(block, McpToolUseBlock) else None)
                conversation.call(block.id, name, block.input)
                conversation.answer(block.id, result)
                written.add(block.id)
                continue
        match block:
            case ThinkingBlock():
                conversation.think(block.thinking)
            case ToolUseBlock():
                conversation.call(block.id, block.name, block.input)
            case ToolResultBlock() if _is_client_result(block):
                conversation.answer(block.tool_use_id, block.shown(f"{where}.content[{place}]"))
            case _:
                left_out.append(f"{where}.content[{place}]")
    say()


def _is_client_result(block: Block) -> bool:
    return isinstance(block, ToolResultBlock) and not isinstance(block, McpToolResultBlock)


def _turns(messages: Sequence[ChatMessage], later_system: bool) -> list[ChatMessage]:
    """Join neighbouring messages of one role.

    Unless `later_system`, the texts of system messages after the first turn join the turns around them.
    """
    turns: list[ChatMessage] = []
    contents: list[list[Content]] = []  # of each turn
    waiting: list[Content] = []  # texts of system messages after the assistant's turn
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "system" and not later_system and turns and (last := turns[-1]["role"]) != "system":
            if content:
                (waiting if last == "assistant" else contents[-1]).append(content)
            continue
        if waiting and role == "assistant":
            turns.append({"role": "user"})
            contents.append(waiting)
            waiting = []
        new = [*waiting, content] if role == "user" else [content, *waiting]
        waiting = []
        if turns and _is_one_turn(turns[-1], message):
            contents[-1] += new
            turns[-1].update({key: value for key, value in message.items() if key == "tool_calls"})
        else:
            turns.append(message)
            contents.append(new)
    if waiting:
        turns.append({"role": "user"})
        contents.append(waiting)
    for turn, joined in zip(turns, contents, strict=True):
        turn["content"] = paragraphs(*joined)
    return turns


def _is_one_turn(before: ChatMessage, after: ChatMessage) -> bool:
    """Return whether two neighbouring messages of one role can be joined."""
    same = before["role"] == after["role"] != "tool"
    return same and "tool_calls" not in before and "reasoning_content" not in after
