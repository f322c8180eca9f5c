"""Conversations for templates: roles, tools, thinking, parts, odd values and odd texts.

They stand in `conversations.json`, whose conversations name their tools. Each value is one of JSON, so that a conversation can
be given as a request's body as well. A new conversation is an entry there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Variables = dict[str, Any]

BASE: Variables = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
_FILE = json.loads(Path(__file__).with_name("conversations.json").read_text(encoding="utf-8"))
TOOLS: dict[str, dict[str, Any]] = _FILE["tools"]


def _with_tools(conversation: Variables) -> Variables:
    fields = [field for field in ("tools", "custom_tools") if conversation.get(field)]
    return conversation | {field: [TOOLS[name] for name in conversation[field]] for field in fields}


CONVERSATIONS = {name: BASE | _with_tools(conversation) for name, conversation in _FILE["shapes"].items()}
"""Conversations of every shape, also of shapes that `ChatTemplate` changes or refuses."""
