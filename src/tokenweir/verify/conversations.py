"""Conversations of every shape that chat templates and their clients have, each with variables of the template.

They are in `conversations.json`. A message there is an object, or its role and content; tools are named.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Message = dict[str, Any]


def _conversation(messages: list[Any], variables: dict[str, Any]) -> tuple[list[Message], dict[str, Any]]:
    if "tools" in variables:
        variables["tools"] = [_FILE["tools"][name] for name in variables["tools"]]
    whole = [{"role": each[0], "content": each[1]} if isinstance(each, list) else each for each in messages]
    return whole, variables


_FILE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
CONVERSATIONS = {name: _conversation(*given) for name, given in _FILE["conversations"].items()}
