"""Search for chat templates in the files of a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tokenweir.encode import formats
from tokenweir.encode.components.added_tokens import own_control_texts
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError, without_path
from tokenweir.encode.files import read_regular, read_text
from tokenweir.encode.formats.folder import read_beside
from tokenweir.encode.formats.gguf import chat_templates, is_gguf
from tokenweir.encode.formats.gguf.metadata import Metadata
from tokenweir.encode.formats.gguf.vocabulary import GGML, read_vocabulary
from tokenweir.encode.spec import BPE, AddedToken, TokenizerSpec
from tokenweir.templates.guard import control_texts

_OTHERS = ("tokenizer.model", "tekken.json", "*.gguf")  # files that name the tokens of the roles themselves


class TemplateFiles(Struct, frozen=True):
    """Chat templates of a model, and the tokens that they need.

    Attributes:
        templates: The Jinja sources, by name; the plain one is `default`.
        special_tokens: The texts of tokens by role, such as `bos_token`.
        control_tokens: The texts of the tokens that control the model; None if no file lists them.
        response_template: The description by which transformers parses an answer; None if no file has one.

    """

    templates: Mapping[str, str]
    special_tokens: Mapping[str, str] = {}
    control_tokens: tuple[str, ...] | None = None
    response_template: Mapping[str, object] | None = None


class _AddedTokens(Struct):
    """A tokenizer.json file of which only the added tokens are decoded."""

    added_tokens: list[AddedToken] = []


def read_template_files(path: Path) -> TemplateFiles:
    """Read the chat templates of a `.jinja` file, a GGUF file or a model folder, and the tokens that they need.

    `encode.formats.folder.read_chat_templates` has the precedence of the files in a folder.

    Raises:
        TokenizerFileError: A file cannot be read, or does not have the format that its name promises.

    """
    try:
        if not path.is_dir():
            if is_gguf(path):
                return _in_gguf(path)
            return TemplateFiles({"default": read_text(path)})
        listed = None
        if (tokenizer := path / "tokenizer.json").exists():
            listed = tuple(msgspec.json.decode(read_regular(tokenizer), type=_AddedTokens).added_tokens)
        beside = read_beside(TokenizerSpec(model=BPE(vocab={}, merges=[]), added_tokens=listed or ()), path)
        if listed is None and any(next(path.glob(pattern), None) for pattern in _OTHERS):
            inside = _with_tokenizer(path, beside.chat_templates)
            return replace(inside, response_template=beside.response_template)
    except TokenizerFileError:
        raise
    except OSError as error:
        raise TokenizerFileError(f"{path}: {without_path(error)}") from error
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as error:
        raise TokenizerFileError(f"{path}: {error}") from error
    control = tuple(dict.fromkeys(control_texts(beside.added_tokens))) if beside.added_tokens else None
    return TemplateFiles(beside.chat_templates, beside.special_roles, control, beside.response_template)


def _with_tokenizer(folder: Path, templates: Mapping[str, str]) -> TemplateFiles:
    """Read the templates and tokens of a folder whose tokenizer has another format than tokenizer.json.

    Args:
        folder: The folder.
        templates: The templates of the folder's other files. They win over those inside a GGUF file. For other formats
            the argument is not used, since `formats.read_file` reads the same files again.

    Raises:
        TokenizerFileError: The tokenizer cannot be read, or is not supported; a GGUF file needs no supported tokenizer.

    """
    path = formats.find_in_folder(folder)
    if is_gguf(path):
        inside = _in_gguf(path)
        return replace(inside, templates={**inside.templates, **templates})
    try:
        spec = formats.read_file(path)
    except UnsupportedTokenizerError as error:
        raise TokenizerFileError(str(error)) from error
    control = (*control_texts(spec.added_tokens), *own_control_texts(spec.model, spec.added_tokens))
    return TemplateFiles(spec.chat_templates, spec.special_roles, control)


def _in_gguf(path: Path) -> TemplateFiles:
    """Read the templates and tokens of a GGUF file, even if its tokenizer is not supported."""
    try:
        metadata = Metadata.from_file(path)
        if GGML + "tokens" not in metadata:
            return TemplateFiles(chat_templates(metadata))
        vocabulary = read_vocabulary(metadata)
        return TemplateFiles(
            chat_templates(metadata), vocabulary.special_roles(), control_texts(vocabulary.added_tokens())
        )
    except (TokenizerFileError, UnsupportedTokenizerError) as error:
        raise TokenizerFileError(f"{path}: {error}") from error
