"""tokenweir: chat messages in, prompt ids out to any engine; token ids back, clean text out, token by token.

Begin with five names: `Tokenizer` (text and ids), `ChatTemplate` (messages to a prompt), `ChatDecoder` (ids to thinking, text and
tool calls), `chat` (all of it around an engine; `ask` in a script without async) and `serve` (over HTTP and websockets).

The public names are written once, in `__init__.pyi`, where type checkers and editors read them. Each is loaded when it is
first used. `tokenweir.gpu` is imported by name; nothing here needs a GPU.
"""

import ast
from importlib import import_module
from pathlib import Path

_MODULE_OF = {
    name.name: statement.module
    for statement in ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    if isinstance(statement, ast.ImportFrom)
    for name in statement.names
}
__all__ = sorted(_MODULE_OF)  # noqa: PLE0605

_INSTALLED_BY = {
    **dict.fromkeys(("httptools", "prometheus_client", "starlette", "uvicorn", "websockets"), "tokenweir[serve]"),
    "tokenizers": "transformers>=5",
}
"""For each package that some names need: the argument of pip that installs it."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # 30 ms, for this name only

        return version("tokenweir")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tokenweir' has no attribute {name!r}")
    try:
        module = import_module(_MODULE_OF[name])
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _INSTALLED_BY:
            raise
        raise ImportError(f"tokenweir.{name} needs {package}: pip install '{_INSTALLED_BY[package]}'") from None
    value = getattr(module, name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
