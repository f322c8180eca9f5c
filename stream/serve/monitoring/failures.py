"""Failures of answers: the public error for the client, and the details in the log."""

from __future__ import annotations

import logging

from tokenweir.encode.base.visible_text import visible
from tokenweir.encode.errors import ContextLengthError, EngineError, EngineFailure, TemplateError, TextError
from tokenweir.stream.serve.wire.shared.errors import RequestError, unsupported_parameter

logger = logging.getLogger("tokenweir.serve")


PUBLIC: dict[EngineFailure, tuple[str, str, int]] = {
    "overloaded": ("the engine has no room at the moment", "engine_overloaded", 503),
    "unreachable": ("the engine's server cannot be reached", "engine_unreachable", 503),
    "timeout": ("the engine's server did not answer in time", "engine_timeout", 504),
    "refused": ("the engine's server refused the request", "engine_refused", 500),
    "failed": ("the engine failed", "server_error", 500),
}
"""Message, code and status that a client gets for each kind of failure of an engine."""


class NeutralTracebacks(logging.Filter):
    """Log filter that escapes control characters in tracebacks, which quote untrusted engine messages."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Format the record's traceback with control characters escaped, for formatters to use; always return True."""
        if record.exc_info:
            record.exc_text = visible(logging.Formatter().formatException(record.exc_info))
        return True


logger.addFilter(NeutralTracebacks())


def explain(failure: BaseException, answer_id: str) -> RequestError:
    """Return the error that a client gets for a failure of its answer; log the details of a failure of the engine.

    Errors of the request are reported in full. Of an engine's failure the client gets the kind; its message may contain
    paths, addresses and other clients' data. It goes to the log, under the `answer_id` that the client gets.
    """
    match failure:
        case RequestError():
            return failure
        case ContextLengthError():
            return RequestError(str(failure), code="context_length_exceeded", param=None)
        case TemplateError() | TextError():
            return RequestError(str(failure), code="invalid_prompt")
        case EngineError(kind="unsupported"):
            return unsupported_parameter(str(failure), failure.option)
        case _:
            pass
    logger.error(
        "answer %s failed: %s: %s", answer_id, type(failure).__name__, ascii(str(failure)), exc_info=_traceback(failure)
    )
    message, code, status = PUBLIC[failure.kind if isinstance(failure, EngineError) else "failed"]
    if status == 503:
        return RequestError(message, code=code, status=status, retry_after=1)
    return RequestError(f"{message}; the server's log says why, under {answer_id}", code=code, status=status)


def server_failed() -> RequestError:
    """Return the error that a client gets for a failure of the server itself, which the caller logs."""
    return RequestError("the server failed; its log says why", code="server_error", status=500)


def _traceback(failure: BaseException) -> BaseException | None:
    """Return the failure if its traceback should be logged; None for an engine's error whose message is sufficient."""
    return None if isinstance(failure, EngineError) and failure.__cause__ is None else failure
