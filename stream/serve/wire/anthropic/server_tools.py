"""Results of tools that the provider of an earlier answer has run, as contents for a chat template."""

from __future__ import annotations

import json

import msgspec

from tokenweir.stream.serve.wire.anthropic.blocks import (
    BashResultBlock,
    CodeResultBlock,
    DocumentBlock,
    EditorResultBlock,
    FetchResultBlock,
    McpToolResultBlock,
    ServerResult,
)
from tokenweir.stream.serve.wire.shared.contents import Content, content_of
from tokenweir.stream.serve.wire.shared.errors import RequestError


def readable_result(result: ServerResult | None, where: str) -> Content | None:
    """Return the result of a call that the provider made, as content for the model; None if only the provider can read it.

    Results of searches are encrypted, and outputs of programs may be. `where` is the block's path in the request, for errors.
    """
    match result:
        case McpToolResultBlock():
            return result.shown(where)
        case FetchResultBlock(content={"type": "web_fetch_result", "url": str(url), "content": document}):
            try:
                page = msgspec.convert(document, DocumentBlock)
                return content_of([{"type": "text", "text": f"{url}:\n"}, *page.parts(where)])
            except (msgspec.ValidationError, RequestError):
                return None
        case CodeResultBlock() | BashResultBlock() | EditorResultBlock() | FetchResultBlock():
            given = result.content
            if not isinstance(given, dict) or any(name.startswith("encrypted") for name in given):
                return None
            return json.dumps(given, ensure_ascii=False)
        case _:
            return None
