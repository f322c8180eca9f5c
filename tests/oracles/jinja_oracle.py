"""Chat templates as transformers renders them: its own compiled environment, at a fixed time."""

from __future__ import annotations

import copy
import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from types import TracebackType
from typing import Any
from unittest import mock

CLOCK = datetime(2026, 11, 20, 9, 30, 15, 250)


@dataclass(frozen=True)
class Expected:
    """Expected result of a render: a text with the (start, end) of its generation blocks, or an error with its line.

    Attributes:
        text: The text; None if an error was raised.
        generation: (start, end) of each generation block, in characters.
        error: The error's message; empty if there was no error.
        line: The line of the template that the error names; None if it names no line.

    """

    text: str | None
    generation: tuple[tuple[int, int], ...] = ()
    error: str = ""
    line: int | None = None


class _Clock(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return CLOCK


def _module() -> Any:
    try:
        return import_module("transformers.utils.chat_template_utils")
    except ImportError:
        if "pytest" in sys.modules:  # benchmarks run without it
            sys.modules["pytest"].skip("transformers is absent")
        raise


@lru_cache(maxsize=256)
def _compiled(source: str) -> Any:
    template = _module()._cached_compile_jinja_template(source)
    # Templates look these up when they are reached, and the engines that the templates were written for have them.
    template.environment.filters |= {"from_json": json.loads, "fromjson": json.loads}
    return template


def _failed(error: Exception) -> Expected:
    if isinstance(error, SyntaxError):  # of the Python that the template is compiled to, which has other lines
        line = None
    else:
        line = getattr(error, "lineno", None) or _template_line(error.__traceback__)
    return Expected(None, error=f"{type(error).__name__}: {error}", line=line)


def _template_line(trace: TracebackType | None) -> int | None:
    """Return the template's line in the innermost frame of a traceback that is of the template; None if no frame is."""
    line = None
    while trace:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def expected(source: str, variables: Mapping[str, Any]) -> Expected:
    """Render a template by transformers' Jinja environment, on a copy of the variables; return the text or the error."""
    blocks: list[str] = []
    generation: list[tuple[int, int]] = []
    with mock.patch.object(_module(), "datetime", _Clock), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes, which Python warns of and Jinja takes
        try:
            template = _compiled(source)
            with template.environment.activate_tracker(blocks, generation):
                blocks.extend(template.generate(**copy.deepcopy(dict(variables))))
        except Exception as error:  # noqa: BLE001 - a template may raise any error of Python
            return _failed(error)
    return Expected("".join(blocks), tuple(generation))
