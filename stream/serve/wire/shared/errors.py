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
    """A request that the server refuses or cannot answer.

    Attributes:
        code: Machine-readable reason, such as `invalid_value`.
        param: Path of the field at fault, such as `input[0].role`; None if the error concerns the whole request.
        status: The HTTP status.
        retry_after: Seconds after which the client should send the request again, for the header `retry-after`; None if
            no time is given, which does not mean that a second attempt fails.

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
        """Return a copy for an enclosing field, without `retry_after`.

        The message begins with `field: `. `param` becomes `field.param`, or `field` if it was None.
        """
        param = field if self.param is None else f"{field}.{self.param}"
        return RequestError(f"{field}: {self}", code=self.code, param=param, status=self.status)

    @property
    def kind(self) -> str:
        """The error's `type` in OpenAI's form, such as `invalid_request_error`."""
        return _KINDS.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")


_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_MESSAGES_KINDS = _KINDS | {408: "timeout_error", 503: "overloaded_error"}


def unsupported_parameter(message: str, param: str | None = None) -> RequestError:
    """Return the error for a field that this server does not offer, or that the model's engine cannot honour."""
    return RequestError(message, code="unsupported_parameter", param=param)


class ErrorDetail(Struct, frozen=True):
    """Description of an error in OpenAI's form; `param` is the path of the field at fault."""

    message: str
    code: str
    param: str | None = None
    type: str = "invalid_request_error"


class ErrorBody(Struct, frozen=True):
    """The body of an error response in OpenAI's form."""

    error: ErrorDetail


class MessagesErrorDetails(Struct, frozen=True, omit_defaults=True):
    """Machine-readable part of an error in Anthropic's form.

    `param` is an extension: the path of the field at fault.
    """

    error_code: str
    param: str | None = None


class MessagesErrorDetail(Struct, frozen=True):
    """Description of an error in Anthropic's form."""

    type: str
    message: str
    details: MessagesErrorDetails


class MessagesErrorBody(Struct, frozen=True, tag_field="type", tag="error"):
    """The body of an error response in Anthropic's form; also the event that ends a stream with an error."""

    error: MessagesErrorDetail


def error_detail(error: RequestError) -> ErrorDetail:
    """Return the error in OpenAI's form. Lone surrogates in its message and `param` are replaced."""
    message = str(error).encode("utf-8", "replace").decode()
    param = None if error.param is None else error.param.encode("utf-8", "replace").decode()
    return ErrorDetail(message, error.code, param, error.kind)


def messages_error(error: RequestError) -> MessagesErrorBody:
    """Return the error in Anthropic's form."""
    told = error_detail(error)
    kind = _MESSAGES_KINDS.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return MessagesErrorBody(MessagesErrorDetail(kind, told.message, MessagesErrorDetails(told.code, told.param)))


def error_body(error: RequestError, path: str = "") -> bytes:
    """Return the body of an error response as JSON.

    It has Anthropic's form if `path`, the path of the request, is `/v1/messages` or below it, and OpenAI's otherwise.
    """
    if path == MESSAGES_PATH or path.startswith(f"{MESSAGES_PATH}/"):
        return msgspec.json.encode(messages_error(error))
    return msgspec.json.encode(ErrorBody(error_detail(error)))
