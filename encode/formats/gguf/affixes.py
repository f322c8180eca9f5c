"""Tokens added around a text, by a GGUF file's flags or llama.cpp's defaults (src/llama-vocab.cpp, 2026-11)."""

from __future__ import annotations

from msgspec.structs import replace

from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.formats.gguf.metadata import Metadata
from tokenweir.encode.formats.gguf.vocabulary import GGML, GgufVocabulary
from tokenweir.encode.spec import TemplateProcessing, TokenizerSpec
from tokenweir.encode.spec.models import CONTROL, UNKNOWN


def flag(metadata: Metadata, key: str, otherwise: bool) -> bool:
    """Return the boolean under `tokenizer.ggml.KEY` of a GGUF file, or `otherwise` if the file lacks it."""
    value = metadata.flag(GGML + key)
    return otherwise if value is None else value


def with_defaults(vocabulary: GgufVocabulary, **roles: int) -> GgufVocabulary:
    """Return the vocabulary with default ids for roles that the file does not name.

    A default does not apply if the token with that id is not a control or unknown token. If the file names no ids that end
    a generation, the id of `eos_token` becomes one.

    Args:
        vocabulary: The tokens of the file.
        roles: llama.cpp's default id of each role, such as `bos_token=1`.

    """
    found = {
        role: token_id
        for role, token_id in roles.items()
        if token_id < len(vocabulary.types) and vocabulary.types[token_id] in (UNKNOWN, CONTROL)
    }
    found |= vocabulary.roles
    ends = {*vocabulary.eos_ids} or {found[role] for role in ("eos_token",) if role in found}
    return replace(vocabulary, roles=found, eos_ids=tuple(sorted(ends)))


def with_affixes(
    spec: TokenizerSpec,
    metadata: Metadata,
    vocabulary: GgufVocabulary,
    add_bos: bool,
    *,
    add_eos: bool = False,
    add_sep: bool = False,
) -> TokenizerSpec:
    """Return the spec with the post-processor that the file's flags describe, the roles, and the ids that end a generation.

    Args:
        spec: The spec of the tokenizer.
        metadata: The file's metadata, with the flags.
        vocabulary: The file's tokens.
        add_bos: Whether to add the beginning-of-text token if the file has it but no flag about it.
        add_eos: The same for the end token.
        add_sep: The same for the separator.

    Raises:
        TokenizerFileError: A flag asks for a token that the file does not name.

    """
    roles = vocabulary.special_roles()
    wanted = {}
    for name, default in ("bos", add_bos), ("eos", add_eos), ("sep", add_sep):
        explicit, token = metadata.flag(f"{GGML}add_{name}_token"), vocabulary.role(f"{name}_token")
        if explicit and token is None:
            raise TokenizerFileError(f"{GGML}add_{name}_token: set, and there is no {name} token")
        wanted[name] = token is not None and (default if explicit is None else explicit)
        if wanted[name] and token is not None:
            roles[f"{name}_token"] = token
    bos, eos, sep = (vocabulary.roles[f"{name}_token"] if wanted[name] else None for name in ("bos", "eos", "sep"))
    before = [i for i in (bos,) if i is not None]
    after = list(dict.fromkeys(i for i in (sep, eos) if i is not None))  # RoBERTa's </s> is both
    return replace(
        spec,
        post_processor=template(vocabulary, before, after) if before or after else None,
        special_roles=roles,
        eos_ids=vocabulary.eos_ids,
        add_bos=wanted["bos"],
        add_eos=wanted["eos"],
    )


def template(vocabulary: GgufVocabulary, before: list[int], after: list[int]) -> TemplateProcessing:
    """Return the post-processor that adds the tokens with these ids before and after a text."""
    return TemplateProcessing.around(
        [(vocabulary.tokens[i], i) for i in before], [(vocabulary.tokens[i], i) for i in after]
    )
