"""Why an answer failed: what a client is told, and what only the log has."""

from __future__ import annotations

import logging

from tokenweir.encode.errors import ContextLengthError, EngineError, TemplateError, TextError
from tokenweir.encode.visible_text import visible
from tokenweir.stream.serve.wire.errors import RequestError

logger = logging.getLogger("tokenweir.serve")


class NeutralTracebacks(logging.Filter):
    """Makes the controls in tracebacks visible: they end with an engine's own words, which a terminal would obey."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Put the traceback into the record, from where formatters take it."""
        if record.exc_info:
            record.exc_text = visible(logging.Formatter().formatException(record.exc_info))
        return True


logger.addFilter(NeutralTracebacks())


def explain(failure: BaseException, answer_id: str) -> RequestError:
    """What a client is told of a failure.

    What is wrong with the request is said. An engine's own words are not: they may hold paths, addresses and parts of
    other people's data. They go to the log, under the id that the client is given.

    Args:
        failure: What was raised.
        answer_id: The id of the answer that failed.

    """
    match failure:
        case RequestError():
            return failure
        case ContextLengthError():
            return RequestError(str(failure), code="context_length_exceeded", param=None)
        case TemplateError() | TextError():
            return RequestError(str(failure), code="invalid_prompt")
        case EngineError(kind="unsupported"):
            return RequestError(str(failure), code="unsupported_parameter", param=failure.option)
        case _:
            pass
    logger.error(
        "answer %s failed: %s: %s", answer_id, type(failure).__name__, ascii(str(failure)), exc_info=_traceback(failure)
    )
    if isinstance(failure, EngineError) and failure.kind == "overloaded":
        return RequestError("the engine has no room at the moment", code="engine_overloaded", status=503, retry_after=1)
    return RequestError(
        f"the engine failed; the server's log says why, under {answer_id}", code="server_error", status=500
    )


def _traceback(failure: BaseException) -> BaseException | None:
    """The failure, for its traceback, unless its words say it all."""
    return None if isinstance(failure, EngineError) and failure.__cause__ is None else failure
