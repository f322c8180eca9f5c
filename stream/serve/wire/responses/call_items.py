"""Items of calls and their results in a request's input, as those of functions for a chat template.

Calls may be of functions, of custom tools, and of other providers' own tools. Those of a tool that the client ran are
written as calls of a function. So is a call that a provider ran, if the item has its result. Items without a result, such
as a web search, and those that only their provider understands, are left out of the prompt.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from tokenweir.stream.serve.wire.responses.input_parts import InputPart, input_content
from tokenweir.stream.serve.wire.responses.response_tools import ClientTool, ServerTool
from tokenweir.stream.serve.wire.shared.contents import content_of, image_part
from tokenweir.stream.serve.wire.shared.marks import CacheMarks
from tokenweir.stream.serve.wire.shared.message_builder import FunctionName, MessageBuilder
from tokenweir.stream.serve.wire.shared.tool_names import custom_arguments, joined_name


class _Call(Struct, frozen=True, tag_field="type"):
    call_id: str


class FunctionCall(
    CacheMarks,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="type",
    tag="function_call",
    rename={"asynchronous": "async"},
):
    """Call of a function. `arguments` is JSON text, or what a client has in its place. `caller` and `async` have no effect."""

    call_id: str
    name: FunctionName
    arguments: Any = None
    namespace: FunctionName | None = None
    id: str | None = None
    status: str | None = None
    caller: Any = None
    asynchronous: bool | None = None


class FunctionCallOutput(
    CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function_call_output"
):
    """Result of a function. The fields behind `output` are accepted and have no effect."""

    call_id: str
    output: str | list[InputPart] | None = None
    id: str | None = None
    status: str | None = None
    name: str | None = None
    namespace: str | None = None
    caller: Any = None


class CustomToolCall(_Call, frozen=True, tag="custom_tool_call"):
    """Call of a custom tool."""

    name: FunctionName
    input: str
    namespace: FunctionName | None = None


class CustomToolCallOutput(_Call, frozen=True, tag="custom_tool_call_output"):
    """Result of a custom tool."""

    output: str | list[InputPart] | None = None


class LocalShellCall(_Call, frozen=True, tag="local_shell_call"):
    """Command for the client's shell."""

    action: dict[str, Any]


class LocalShellCallOutput(Struct, frozen=True, tag_field="type", tag="local_shell_call_output"):
    """Output of a command; `id` is the id of the call, for which some clients use `call_id`."""

    output: str
    id: str = ""
    call_id: str | None = None


class ShellCall(_Call, frozen=True, tag="shell_call"):
    """Commands for a shell."""

    action: dict[str, Any]


class ShellCallOutput(_Call, frozen=True, tag="shell_call_output"):
    """Outputs of commands, each with its streams and its outcome."""

    output: list[dict[str, Any]]


class ApplyPatchCall(_Call, frozen=True, tag="apply_patch_call"):
    """Change of a file by a patch."""

    operation: dict[str, Any]


class ApplyPatchCallOutput(_Call, frozen=True, tag="apply_patch_call_output"):
    """Result of a patch."""

    status: str
    output: str | None = None


class ComputerCall(_Call, frozen=True, tag="computer_call"):
    """Actions on a screen."""

    action: dict[str, Any] | None = None
    actions: list[dict[str, Any]] | None = None


class Screenshot(Struct, frozen=True):
    """Picture of a screen."""

    image_url: str | None = None


class ComputerCallOutput(_Call, frozen=True, tag="computer_call_output"):
    """The screen after actions."""

    output: Screenshot


class Program(_Call, frozen=True, tag="program"):
    """Program of the model that calls tools."""

    code: str


class ProgramOutput(_Call, frozen=True, tag="program_output"):
    """Result of a program."""

    result: str


class McpCall(Struct, frozen=True, tag_field="type", tag="mcp_call"):
    """Call that the provider has made on an MCP server, with its result."""

    id: str
    name: FunctionName
    server_label: FunctionName
    arguments: str
    output: str | None = None
    error: Any = None


class CodeOutput(Struct, frozen=True):
    """Output of a program: text, or a picture, which is left out."""

    logs: str = ""


class CodeInterpreterCall(Struct, frozen=True, tag_field="type", tag="code_interpreter_call"):
    """Program that the provider has run, with its output."""

    id: str
    code: str | None = None
    outputs: list[CodeOutput] | None = None


class FileResult(Struct, frozen=True):
    """Part of a file that a search has found."""

    filename: str | None = None
    text: str | None = None


class FileSearchCall(Struct, frozen=True, tag_field="type", tag="file_search_call"):
    """Search in files of the provider, with its results."""

    id: str
    queries: list[str]
    results: list[FileResult] | None = None


class WebSearchCall(Struct, frozen=True, tag_field="type", tag="web_search_call"):
    """Search of the provider, without its results."""


class ImageGenerationCall(Struct, frozen=True, tag_field="type", tag="image_generation_call"):
    """Picture that the provider has made."""


class McpListTools(Struct, frozen=True, tag_field="type", tag="mcp_list_tools"):
    """List of the tools that the provider has found on an MCP server."""


class McpApprovalRequest(Struct, frozen=True, tag_field="type", tag="mcp_approval_request"):
    """Question of the provider whether it may make a call."""


class McpApprovalResponse(Struct, frozen=True, tag_field="type", tag="mcp_approval_response"):
    """Answer of the client to an `McpApprovalRequest`."""


class ToolSearchCall(Struct, frozen=True, tag_field="type", tag="tool_search_call"):
    """Search for tools."""


class ToolSearchOutput(Struct, frozen=True, tag_field="type", tag="tool_search_output"):
    """Tools that a search has found. The model is shown them with those of the request."""

    tools: list[ClientTool | ServerTool]


class AdditionalTools(Struct, frozen=True, tag_field="type", tag="additional_tools"):
    """Further tools. The model is shown them with those of the request."""

    tools: list[ClientTool | ServerTool]


ToolItem = ToolSearchOutput | AdditionalTools
"""An item that brings tools."""

_Written = (
    FunctionCall
    | FunctionCallOutput
    | CustomToolCall
    | LocalShellCall
    | ShellCall
    | ApplyPatchCall
    | ComputerCall
    | Program
    | CustomToolCallOutput
    | LocalShellCallOutput
    | ShellCallOutput
    | ApplyPatchCallOutput
    | ComputerCallOutput
    | ProgramOutput
)
_Done = McpCall | CodeInterpreterCall | FileSearchCall
_LeftOut = (
    WebSearchCall | ImageGenerationCall | McpListTools | McpApprovalRequest | McpApprovalResponse | ToolSearchCall
)
CallItem = _Written | _Done | _LeftOut | ToolItem
"""An item of a call, of a result, or of tools."""


def is_left_out(item: CallItem) -> bool:
    """Return whether the prompt has nothing of the item."""
    match item:
        case McpCall():
            return item.output is None and item.error is None
        case CodeInterpreterCall():
            return item.outputs is None
        case FileSearchCall():
            return item.results is None
        case _:
            return isinstance(item, _LeftOut)


def add_item(conversation: MessageBuilder, item: CallItem, where: str) -> None:
    """Add an item to a conversation; items that `is_left_out` names, and tools, add nothing.

    Args:
        conversation: The conversation.
        item: The item.
        where: Path of the item in the request, for errors.

    Raises:
        LookupError: A result belongs to no earlier call, as for `MessageBuilder.answer`.
        RequestError: A result has an unsupported image or file.

    """
    if is_left_out(item):
        return
    match item:
        case FunctionCall():
            conversation.call(item.call_id, joined_name(item.name, item.namespace), item.arguments)
        case FunctionCallOutput() | CustomToolCallOutput():
            conversation.answer(item.call_id, input_content(item.output, f"{where}.output"))
        case CustomToolCall():
            conversation.call(item.call_id, joined_name(item.name, item.namespace), custom_arguments(item.input))
        case LocalShellCall():
            conversation.call(item.call_id, "local_shell", _json(item.action))
        case ShellCall():
            conversation.call(item.call_id, "shell", _json(item.action))
        case ApplyPatchCall():
            conversation.call(item.call_id, "apply_patch", _json(item.operation))
        case ComputerCall():
            actions = item.actions or [action for action in (item.action,) if action is not None]
            conversation.call(item.call_id, "computer", {"actions": actions})
        case Program():
            conversation.call(item.call_id, "program", {"code": item.code})
        case LocalShellCallOutput():
            conversation.answer(item.call_id or item.id, item.output)
        case ShellCallOutput():
            conversation.answer(item.call_id, _json(item.output))
        case ApplyPatchCallOutput():
            conversation.answer(item.call_id, ": ".join(filter(None, (item.status, item.output))))
        case ComputerCallOutput():
            image = image_part(item.output.image_url, f"{where}.output.image_url")
            conversation.answer(item.call_id, content_of([image]))
        case ProgramOutput():
            conversation.answer(item.call_id, item.result)
        case McpCall():
            conversation.call(item.id, joined_name(item.name, item.server_label), item.arguments)
            conversation.answer(item.id, f"Error: {_json(item.error)}" if item.output is None else item.output)
        case CodeInterpreterCall():
            conversation.call(item.id, "code_interpreter", {"code": item.code or ""})
            conversation.answer(item.id, "".join(output.logs for output in item.outputs or ()))
        case FileSearchCall():
            conversation.call(item.id, "file_search", {"queries": item.queries})
            found = (f"{result.filename or ''}:\n{result.text or ''}\n" for result in item.results or ())
            conversation.answer(item.id, "".join(found))
        case _:
            pass


def _json(value: Any) -> str:
    """Return JSON text of a value; fields that are null are left out of an object."""
    if isinstance(value, dict):
        value = {name: each for name, each in value.items() if each is not None}
    return json.dumps(value, ensure_ascii=False)
