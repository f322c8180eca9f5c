"""Errors of requests, in OpenAI's form and, below `/v1/messages`, in Anthropic's.

OpenAI has `{"error": {"message", "type", "param", "code"}}`, Anthropic `{"type": "error", "error": {"type",
"message"}}`, where `details.error_code` is the word that programs compare.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from tokenweir.encode.errors import ProtocolError

MESSAGES_PATH = "/v1/messages"
"""Path prefix of Anthropic's interface."""


class RequestError(ProtocolError):
    """A request that is not answered.

    Attributes:
        code: A word that programs can compare.
        param: The field at fault, such as `input[0].role`; None where it is the whole message.
        status: The status that HTTP has for it.
        retry_after: Seconds after which the same request may succeed; None if it will not.

    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "invalid_value",
        param: str | None = None,
        status: int = 400,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.param = param
        self.status = status
        self.retry_after = retry_after

    def within(self, field: str) -> RequestError:
        """Return this error for a part of the request: message and `param` begin with the name of its field."""
        param = field if self.param is None else f"{field}.{self.param}"
        return RequestError(f"{field}: {self}", code=self.code, param=param, status=self.status)

    @property
    def kind(self) -> str:
        """OpenAI's word for the group that the error belongs to, its `type`."""
        return _KINDS.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")


_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_MESSAGES_KINDS = _KINDS | {408: "timeout_error", 503: "overloaded_error"}


class ErrorDetail(Struct, frozen=True):
    """Description of an error; `param` is the field at fault."""

    message: str
    code: str
    param: str | None = None
    type: str = "invalid_request_error"


class ErrorBody(Struct, frozen=True):
    """The body of an answer that says no."""

    error: ErrorDetail


class MessagesErrorDetails(Struct, frozen=True, omit_defaults=True):
    """Machine-readable part of an error; `param` is an extension: the field at fault."""

    error_code: str
    param: str | None = None


class MessagesErrorDetail(Struct, frozen=True):
    """Description of an error in Anthropic's form."""

    type: str
    message: str
    details: MessagesErrorDetails


class MessagesErrorBody(Struct, frozen=True, tag_field="type", tag="error"):
    """The body of an answer that says no, in Anthropic's form; also the event that ends a stream."""

    error: MessagesErrorDetail


def error_detail(error: RequestError) -> ErrorDetail:
    """The error in OpenAI's form; its message may hold any characters, such as halves of surrogate pairs."""
    message = str(error).encode("utf-8", "replace").decode()
    param = None if error.param is None else error.param.encode("utf-8", "replace").decode()
    return ErrorDetail(message, error.code, param, error.kind)


def messages_error(error: RequestError) -> MessagesErrorBody:
    """The error in Anthropic's form."""
    told = error_detail(error)
    kind = _MESSAGES_KINDS.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return MessagesErrorBody(MessagesErrorDetail(kind, told.message, MessagesErrorDetails(told.code, told.param)))


def error_body(error: RequestError, path: str = "") -> bytes:
    """Return the body of an HTTP answer, as JSON, in the form of the interface at `path`."""
    if path == MESSAGES_PATH or path.startswith(f"{MESSAGES_PATH}/"):
        return msgspec.json.encode(messages_error(error))
    return msgspec.json.encode(ErrorBody(error_detail(error)))
