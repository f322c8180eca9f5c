"""Models of `chat` and `serve`: an engine with the tokenizer and template of its model."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

import tokenweir
from tokenweir.cli.options import load_template, load_tokenizer
from tokenweir.encode.base.visible_text import visible
from tokenweir.encode.errors import EngineError, TokenizerFileError

if TYPE_CHECKING:
    from tokenweir.stream.engines.served_model import ServedModel
    from tokenweir.stream.engines.startup import RemoteEngine


class ServerClient(NamedTuple):
    """Client of an engine's server.

    Attributes:
        describe: Requests the description of the server's model.
        engine: Makes the engine, from the tokenizer and that description.
        has_template: Whether the description has the chat template.

    """

    describe: Callable[[], Awaitable[ServedModel]]
    engine: Callable[[tokenweir.Tokenizer, ServedModel], RemoteEngine]
    has_template: bool = False


def _openai(engine: tokenweir.VllmEngine | tokenweir.SglangEngine) -> ServerClient:
    return ServerClient(engine.served, lambda _, __: engine)


def _llama_server(url: str, key: str | None, _: bool) -> ServerClient:
    from tokenweir.stream.engines.llama_server import llama_server, served

    def connect(tokenizer: tokenweir.Tokenizer, model: ServedModel) -> RemoteEngine:
        engine = tokenweir.LlamaServerEngine(url, tokenizer, api_key=key)
        engine.context_size = model.context_size
        return engine

    return ServerClient(partial(served, llama_server(url, api_key=key)), connect, has_template=True)


SERVERS: dict[str, Callable[[str, str | None, bool], ServerClient]] = {
    "vllm": lambda url, key, first: _openai(tokenweir.VllmEngine(url, api_key=key, thinks_first=first)),
    "sglang": lambda url, key, first: _openai(tokenweir.SglangEngine(url, api_key=key, thinks_first=first)),
    "llama-server": _llama_server,
}
"""The engines behind a URL, by their names: clients, of the URL, the API key, and whether the server thinks first."""


def _gguf(file: str) -> tokenweir.Engine:
    from tokenweir.stream.engines.xllamacpp import XllamacppEngine

    return XllamacppEngine.from_file(Path(file))


FOLDERS: dict[str, Callable[[str], tokenweir.Engine]] = {
    "ctranslate2": lambda folder: tokenweir.CTranslate2Engine(folder, logprobs=True),
    "transformers": lambda folder: tokenweir.TransformersEngine(folder),
}
"""The engines that load a folder."""
FILES: dict[str, Callable[[str], tokenweir.Engine]] = {"gguf": _gguf}
"""The engines that load a file, which has the tokenizer, too."""


ENGINES = ", ".join(
    [
        "local",
        *(f"{kind}:URL" for kind in SERVERS),
        *(f"{kind}:FOLDER" for kind in FOLDERS),
        *(f"{kind}:FILE" for kind in FILES),
        "ngram, replay, replay:NAME, replay:FILE.json, or none or none:CONTEXT to render and derender only",
    ]
)

engine_option = click.option(
    "--engine",
    metavar="SPEC",
    help=f"{ENGINES}. Default: local, a small model, if `tokenweir fetch-model` has been run; else ngram, a toy.",
)

engine_key_option = click.option(
    "--engine-key",
    show_envvar=True,
    help="The API key of the engine's server. Better given in the environment, since other users see a command line.",
)

thinks_first_option = click.option(
    "--thinks-first",
    is_flag=True,
    help="The engine's server has a reasoning parser: it applies a schema or a grammar behind the thinking only. For vllm, "
    "sglang and none.",
)

TEXT_ONLY = (
    "it speaks text: no ids go in, so the guard's promise would end there, and none come out. Give vllm:URL, "
    "sglang:URL or llama-server:URL, which the same servers mostly offer"
)

TOY = "An n-gram toy answers: it strings together words that often follow each other, and understands nothing."


@dataclass(frozen=True)
class Model:
    """An engine with the tokenizer and the template of its model.

    Attributes:
        engine: The engine.
        tokenizer: The tokenizer.
        template: The chat template.
        about: A line for users that says where answers come from.
        name: The name of the model; "default" if its server or the toy has none.
        remote: The engine, if it is behind a URL.

    """

    engine: tokenweir.Engine
    tokenizer: tokenweir.Tokenizer
    template: tokenweir.ChatTemplate
    about: str
    name: str = "default"
    remote: RemoteEngine | None = None


def load_model(
    spec: str | None,
    tokenizer: Path | None,
    template: Path | None,
    *,
    engine_key: str | None = None,
    thinks_first: bool = False,
    wait: float | None = None,
) -> Model:
    """Make the engine that an `--engine` option names, with the tokenizer and the template of its model.

    Args:
        spec: The value of the option; None means the small model if it is installed, else the n-gram toy.
        tokenizer: A file or folder; None means what the engine brings, or the embedded vocabulary.
        template: A file or folder; None means the template that comes with the tokenizer, or that the server reports.
        engine_key: The API key of the engine's server.
        thinks_first: Whether that server applies a schema or a grammar behind the thinking only.
        wait: Seconds to wait until that server is up, if the tokenizer or the template comes from it; 0 and None do
            not wait. If neither does, the server is asked once and may be down; 0 does not ask it, and with None it
            must be up.

    Raises:
        click.UsageError: The engine is unknown or does not take `thinks_first`, its ids are not the tokenizer's, or a
            model comes without a tokenizer.
        EngineError: The engine cannot be made, or its server fails or is not up.
        TokenizerFileError: The tokenizer cannot be loaded.
        TemplateError: The template cannot be loaded.

    """
    from tokenweir.stream.engines.local_model import missing

    kind, _, argument = (spec or "").partition(":")
    if thinks_first and kind not in ("vllm", "sglang", "none"):
        raise click.UsageError(
            "--thinks-first is for vllm, sglang and none; other engines apply schemas from the first id"
        )
    if spec == "local" or (spec is None and tokenizer is None and not missing()):
        return _local(tokenizer, template)
    engine: tokenweir.Engine
    name = "default"
    if spec is None:
        if tokenizer is not None:
            raise click.UsageError("--tokenizer needs the --engine that speaks its ids")
        engine, about = _toy("ngram", ""), f"{missing()} {TOY}"
    elif kind in ("ngram", "replay"):
        if tokenizer is not None and not argument.endswith(".json"):
            raise click.UsageError(
                f"{kind} speaks the embedded vocabulary only: with --tokenizer give another --engine"
            )
        engine, about = _toy(kind, argument), TOY if kind == "ngram" else f"Answers come from {spec}."
    elif kind in SERVERS and argument:
        return _connect_to_server(kind, argument, tokenizer, template, engine_key, thinks_first, wait)
    elif kind in FOLDERS and argument:
        engine, about = FOLDERS[kind](argument), f"Answers come from {spec}."
        tokenizer, name = tokenizer or _tokenizer_in(Path(argument)), Path(argument).name
    elif kind in FILES and argument:
        engine, about = FILES[kind](argument), f"Answers come from {spec}."
        tokenizer, name = tokenizer or Path(argument), Path(argument).stem
    elif kind == "none":
        engine, about = _none(argument, thinks_first), "Nothing answers: this server renders and derenders."
    else:
        raise click.UsageError(f"unknown engine {spec!r}: {_meant(spec)}")
    tok = load_tokenizer(tokenizer)
    return Model(engine, tok, load_template(template, tok), about, name)


def _local(tokenizer: Path | None, template: Path | None) -> Model:
    from tokenweir.stream.engines.local_model import NAME, load_engine, model_file

    if tokenizer is not None:
        raise click.UsageError("local brings its own tokenizer: with --tokenizer give another --engine")
    engine = load_engine(note)
    tok = load_tokenizer(model_file())
    about = f"{NAME} answers, a small model in this process: quick to be had, often wrong."
    return Model(engine, tok, load_template(template, tok), about, NAME)


def _toy(kind: str, argument: str) -> tokenweir.Engine:
    if kind == "ngram" and not argument:
        return tokenweir.NgramEngine()
    if kind == "ngram":
        raise click.UsageError(f"unknown engine {kind}:{argument}: give {ENGINES}")
    if argument.endswith(".json"):
        return tokenweir.ReplayEngine([tokenweir.Recording.from_file(argument)])
    try:
        return tokenweir.ReplayEngine(name=argument or None)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _none(argument: str, thinks_first: bool) -> tokenweir.Engine:
    if argument and not (argument.isascii() and argument.isdigit() and int(argument)):
        raise click.UsageError(f"none:{argument}: give the length of the model's context, such as none:32768")
    return tokenweir.NoEngine(int(argument) if argument else None, thinks_first=thinks_first)


def _meant(spec: str) -> str:
    """Return what a specification that no engine has may mean, as the end of an error message."""
    kind, _, rest = spec.partition(":")
    if spec.endswith(".gguf"):
        return f"a GGUF file is gguf:{spec}"
    if kind in ("http", "https"):
        return f"say which server it is: vllm:{spec}, sglang:{spec} or llama-server:{spec}"
    if kind == "ollama":
        return (
            "Ollama takes and gives text only; its model files are GGUF: give gguf:FILE, or serve one by llama-server"
        )
    if kind in ("openai", "anthropic"):
        return TEXT_ONLY
    if not rest and Path(spec).is_dir():
        return f"a model's folder is transformers:{spec} or ctranslate2:{spec}"
    return f"give {ENGINES}"


def _tokenizer_in(folder: Path) -> Path:
    """Return the path of the tokenizer file in a model's folder; raise `click.UsageError` if there is no such file."""
    from tokenweir.encode.formats import find_in_folder

    try:
        return find_in_folder(folder)
    except TokenizerFileError as error:
        raise click.UsageError(f"{error}: give --tokenizer") from error


def _connect_to_server(
    kind: str,
    url: str,
    tokenizer: Path | None,
    template: Path | None,
    key: str | None,
    thinks_first: bool,
    wait: float | None,
) -> Model:
    """Connect to an engine's server, and return the engine with the tokenizer and the template of the server's model.

    Args:
        kind: A name of `SERVERS`.
        url: The server's address.
        tokenizer: A file or folder; None for the path that the server reports.
        template: A file or folder; None for the template that the server reports, or the tokenizer's.
        key: The server's API key.
        thinks_first: Whether the server applies a schema or a grammar behind the thinking only.
        wait: Seconds to wait for the server, as for `load_model`.

    Raises:
        click.UsageError: The server does not report where the tokenizer is, or the path is not on this machine.
        EngineError: The server fails or is not up, as for `load_model`.
        TokenizerFileError: The tokenizer cannot be loaded.
        TemplateError: The template cannot be loaded.

    """
    import anyio

    from tokenweir.stream.engines.served_model import ServedModel
    from tokenweir.stream.engines.startup import NOT_UP, until_up

    client = SERVERS[kind](url, key, thinks_first)
    needed = tokenizer is None or (client.has_template and template is None)
    model = ServedModel()
    if needed or wait != 0:
        try:
            model = anyio.run(until_up, client.describe, wait or 0 if needed else 0, note)
        except EngineError as error:
            if needed or wait is None or error.kind not in NOT_UP:
                raise
    tok = load_tokenizer(tokenizer or _require_local_path(url, model.path))
    if template is None and model.template is not None:
        chosen = tokenweir.ChatTemplate(
            model.template,
            name=f"of {url}",
            special_tokens=tok.spec.special_roles,
            control_tokens=tok.control_texts,
        )
    else:
        chosen = load_template(template, tok)
    engine = client.engine(tok, model)
    return Model(engine, tok, chosen, f"Answers come from {kind}:{url}.", remote=engine)


def _require_local_path(url: str, path: str | None) -> Path:
    """Return the path of the model's files that a server reports; raise `click.UsageError` if it is not on this machine.

    Args:
        url: The server's address, for the message.
        path: The reported path; None if the server reports no path, which raises, too.

    """
    if path is None:
        raise click.UsageError(f"{url} does not tell its tokenizer: give --tokenizer")
    if not Path(path).exists():
        raise click.UsageError(f"{url} has loaded {path}, which is not on this machine: give its --tokenizer")
    return Path(path)


def note(line: str) -> None:
    """Print a line about the progress of a slow operation on stderr."""
    sys.stderr.write(f"{visible(line)}\n")
    sys.stderr.flush()
