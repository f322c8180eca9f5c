"""Where chat templates are found on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from tokenweir.encode.errors import TemplateError, TokenizerFileError
from tokenweir.encode.formats.folder import read_beside
from tokenweir.encode.spec import AddedToken, RankBPE, TokenizerSpec
from tokenweir.templates.guard import control_texts


class TemplateFiles(Struct, frozen=True):
    """What the files of a model say about its chat templates.

    Attributes:
        templates: Name to Jinja source.
        special_tokens: `bos_token` and the like to their text.
        control_tokens: The texts of the tokens that control the model; None if no file tells.

    """

    templates: Mapping[str, str]
    special_tokens: Mapping[str, str] = {}
    control_tokens: tuple[str, ...] | None = None


class _AddedTokens(Struct):
    """The one field of tokenizer.json that is wanted; the decoder skips the rest without keeping it."""

    added_tokens: list[AddedToken] = []


def read_template_files(path: Path) -> TemplateFiles:
    """Read a template file or what a model folder says of templates; see `encode.formats.folder` for the order.

    Raises:
        TemplateError: The file is of a kind that is not read here.
        TokenizerFileError: A file cannot be read or is not what its name says.

    """
    if path.suffix == ".gguf":
        raise TemplateError(f"{path.name}: load a GGUF file with Tokenizer.from_file and ChatTemplate.from_tokenizer")
    try:
        if not path.is_dir():
            return TemplateFiles({"default": path.read_text("utf-8")})
        beside = read_beside(TokenizerSpec(model=RankBPE({})), path)
        added = list(beside.added_tokens)
        if (tokenizer := path / "tokenizer.json").exists():
            added += msgspec.json.decode(tokenizer.read_bytes(), type=_AddedTokens).added_tokens
    except TokenizerFileError:
        raise
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise TokenizerFileError(f"{path}: {error}") from error
    return TemplateFiles(beside.chat_templates, beside.special_roles, control_texts(added) if added else None)
