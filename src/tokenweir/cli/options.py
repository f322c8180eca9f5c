"""Options and inputs that several commands share."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

import tokenweir
from tokenweir.encode.base.visible_text import visible
from tokenweir.encode.errors import (
    DeviceError,
    TextError,
    TokenizerFileError,
    TokenweirError,
    UnsupportedTokenizerError,
)

if TYPE_CHECKING:
    from tokenweir.gpu import GpuEncoder

Command = TypeVar("Command", bound=Callable[..., Any])

FROM_ENVIRONMENT = {"auto_envvar_prefix": "TOKENWEIR"}

tokenizer_option = click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A tokenizer file, a model folder, or a model's name in the hub's cache. Default: the embedded vocabulary.",
)
model_argument = click.argument("model", type=click.Path(path_type=Path))
template_option = click.option(
    "--template",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A chat template file or a model folder. Default: the one that comes with the tokenizer.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, envvar="TOKENWEIR_JSON", help="Print JSON, one value a line."
)
device_choice = click.Choice(["auto", "cpu", "gpu"])
file_option = click.option(
    "-f", "--file", type=click.File("rb"), multiple=True, help="Read a file; - is stdin. Can be repeated."
)
no_parse_special_option = click.option(
    "--no-parse-special", is_flag=True, help="Text that looks like an added token is text; none is matched."
)
no_add_special_tokens_option = click.option(
    "--no-add-special-tokens", is_flag=True, help="Leave out the tokens that the tokenizer puts around."
)
lines_option = click.option("--lines", is_flag=True, help="Every line of a file is an input of its own.")


def text_options(command: Command) -> Command:
    """Decorate a command with the parameters of `encode` and `count`: texts, files, and how special tokens are treated."""
    for option in (
        no_parse_special_option,
        no_add_special_tokens_option,
        lines_option,
        file_option,
        click.argument("text", nargs=-1),
    ):
        command = option(command)
    return command


def load_tokenizer(path: Path | None) -> tokenweir.Tokenizer:
    """Load the tokenizer at a path.

    Args:
        path: A file or folder, or the name of a model in the cache of the Hugging Face hub; None for the embedded
            tokenizer.

    Raises:
        click.UsageError: The path is a device.
        TokenizerFileError: There is no such file or model, or it is not a tokenizer.

    """
    return tokenweir.Tokenizer.default() if path is None else tokenweir.Tokenizer.from_file(find_model(path))


def find_model(path: Path) -> Path:
    """Return the path itself, or the folder in the hub's cache of the model that it names; of `local` the small model's file.

    Raises:
        click.UsageError: The path is a device.
        TokenizerFileError: There is no such file or model.

    """
    from tokenweir.encode.formats.hub import find_snapshot, is_name

    if path.is_char_device() or path.is_block_device():  # such as /dev/zero, which never ends
        raise click.UsageError(f"--tokenizer {path} is a device, not a file or folder")
    if str(path) == "local" and not path.exists():
        from tokenweir.stream.engines.local_model import model_file

        return model_file()
    if not path.exists() and is_name(str(path)):
        try:
            return find_snapshot(str(path))
        except TokenizerFileError as error:
            raise TokenizerFileError(f"{path}: no such file or folder, and {error}") from error
    return path


def load_gpu_encoder(tokenizer: tokenweir.Tokenizer, device: str) -> GpuEncoder | None:
    """Make the encoder on a GPU for a value of `--device`; return None if the tokenizer is to encode on the CPU.

    Args:
        tokenizer: The tokenizer.
        device: "gpu", "cpu", or "auto", which takes a GPU if one is available and supports the tokenizer.

    Raises:
        DeviceError: `device` is "gpu", and no GPU is available.
        UnsupportedTokenizerError: `device` is "gpu", and the kernels do not support this tokenizer.

    """
    if device == "cpu":
        return None
    from tokenweir.gpu import GpuEncoder

    try:
        return GpuEncoder(tokenizer)
    except (DeviceError, UnsupportedTokenizerError):
        if device == "gpu":
            raise
        return None


def load_template(path: Path | None, tokenizer: tokenweir.Tokenizer, **options: Any) -> tokenweir.ChatTemplate:
    """Load the chat template at `path` for `tokenizer`; None for the template that came with the tokenizer.

    The options are those of `ChatTemplate`.
    """
    if path is None:
        return tokenweir.ChatTemplate.from_tokenizer(tokenizer, **options)
    options |= {"special_tokens": tokenizer.spec.special_roles, "control_tokens": tokenizer.control_texts}
    return tokenweir.ChatTemplate.from_file(path, **options)


def missing_extra(what: str, error: ImportError, extra: str = "chat") -> TokenweirError:
    """Return an error that says how to install a missing package.

    Args:
        what: The beginning of the message, to which the package's name is added, such as "colours need".
        error: The failed import.
        extra: The extra of tokenweir that installs the package.

    """
    return TokenweirError(f"{what} {error.name}: pip install 'tokenweir[{extra}]'")


def read_inputs(arguments: tuple[str, ...], files: tuple[BinaryIO, ...], lines: bool) -> Iterator[str]:
    """Yield the inputs: the arguments, else the files or stdin, whole or line by line.

    A line's end, `\\n`, is not part of it; a whole file is taken as it is, with its last `\\n`.

    Raises:
        click.UsageError: Both arguments and files are given.
        TextError: A file is not UTF-8; says which byte, and where.

    """
    if arguments and files:
        raise click.UsageError("give arguments or --file, not both")
    for argument in arguments:
        if os.path.isfile(argument):  # False for a text that cannot be a name, where a Path would raise
            told = f"{argument} is taken as text; to read the file of that name write -f {shlex.quote(argument)}"
            click.echo(visible(told), err=True)
        yield argument
    if arguments:
        return
    for file in files or (sys.stdin.buffer,):
        if lines:
            offset = 0
            for line in file:
                yield decode_utf8(line, file, offset).removesuffix("\n")
                offset += len(line)
        else:
            yield decode_utf8(file.read(), file)


def file_name(file: BinaryIO) -> str:
    """Return the name of a file for messages; "<stdin>" if it has no name."""
    return str(getattr(file, "name", "<stdin>"))


def decode_utf8(data: bytes, file: BinaryIO, offset: int = 0) -> str:
    """Decode a part of a file as UTF-8; raise `TextError` with the place of the first invalid byte.

    Args:
        data: The bytes.
        file: The file, for the message.
        offset: Where `data` begins in the file, in bytes.

    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"{file_name(file)}: byte 0x{data[error.start]:02x} at offset {offset + error.start}"
        raise TextError(f"{place} is not UTF-8 ({error.reason})") from error
