"""What lies beside a tokenizer file in a model folder: configuration and chat templates.

transformers 5 is the model: tokenizer_config.json names the tokens that play a role and may override the template's
beginning and end tokens; the ids that end a generation are the union of all files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.known_rank_files import Recognised, recognise
from tokenweir.encode.spec import AddedToken, SentencePiece, TokenizerSpec

CHANGING_CLASSES = frozenset(
    f"{name}Tokenizer"
    for name in [
        "Albert",
        "Barthez",
        "Camembert",
        "FNet",
        "M2M100",
        "MBart",
        "MBart50",
        "Nllb",
        "PLBart",
        "Pegasus",
        "XGLM",
        "XLMRoberta",
        "XLNet",
    ]
)
"""Classes of transformers whose ids are not those of their SentencePiece model, or that prepare the text in Python."""

ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def beside(path: Path) -> list[Path]:
    """Every file that reading `path` may look at besides, whether it is there or not."""
    folder = path.parent
    names = ("tokenizer_config.json", "generation_config.json", "config.json", "chat_template.jinja")
    more = [*folder.glob("tokenization_*.py"), *(folder / "additional_chat_templates").glob("*.jinja")]
    return [*(folder / name for name in names), *sorted(more)]


def read_beside(spec: TokenizerSpec, folder: Path, *, tokenizer_config: bool = True) -> TokenizerSpec:
    """Complete `spec` with the files of its folder that exist.

    Args:
        spec: What the tokenizer file says.
        folder: The folder.
        tokenizer_config: What tokenizer_config.json says of tokens counts; if not, its chat templates alone do.

    Raises:
        TokenizerFileError: If one of them is not a JSON object, or an entry has the wrong type.

    """
    templates = read_chat_templates(folder, config := _json(folder / "tokenizer_config.json"))
    config = config if tokenizer_config else {}
    generation, model = _json(folder / "generation_config.json"), _json(folder / "config.json")
    text_model: dict[str, Any] = nested if isinstance(nested := model.get("text_config"), dict) else model
    roles = {role: token for role in ROLES if (token := _token(config, role)) is not None}
    eos = {*_ids(generation, "eos_token_id"), *_ids(model, "eos_token_id"), *_ids(text_model, "eos_token_id")}
    return replace(
        spec,
        added_tokens=_added_tokens(spec, config),
        special_roles={**spec.special_roles, **roles},
        eos_ids=tuple(sorted({*spec.eos_ids, *eos})),
        add_bos=_flag(config, "add_bos_token", spec.add_bos),
        add_eos=_flag(config, "add_eos_token", spec.add_eos),
        chat_templates={**spec.chat_templates, **templates},
        vocab_size=_count(text_model, "vocab_size"),
    )


def recognise_beside(path: Path) -> Recognised | None:
    """Tell what a rank file belongs to by its own name and the files of its folder; code there is not read.

    Raises:
        TokenizerFileError: If a configuration is not a JSON object.

    """
    code = [file.name for file in path.parent.glob("tokenization_*.py")]
    return recognise(path.name, _json(path.parent / "tokenizer_config.json"), _json(path.parent / "config.json"), code)


def check_class_beside(folder: Path) -> None:
    """Refuse a SentencePiece model whose folder names a class that gives its pieces other ids or changes its text.

    Raises:
        TokenizerFileError: If a configuration is not a JSON object.
        UnsupportedTokenizerError: If there is such a class.

    """
    name = _json(folder / "tokenizer_config.json").get("tokenizer_class")
    if isinstance(name, str) and name.removesuffix("Fast") in CHANGING_CLASSES:
        raise UnsupportedTokenizerError(
            f"tokenizer_config.json: {name} gives a SentencePiece model's pieces other ids or changes the text before it;"
            " a tokenizer.json of the model can be loaded"
        )


def read_chat_templates(folder: Path, config: dict[str, Any] | None = None) -> dict[str, str]:
    """The chat templates of a model folder, by name; the plain one is `default`.

    chat_template.jinja comes before tokenizer_config.json's `chat_template`, which is a string or a list of
    `{name, template}`; additional_chat_templates/NAME.jinja add named ones.

    Args:
        folder: The folder.
        config: The content of its tokenizer_config.json, if it has been read already.

    Raises:
        TokenizerFileError: If a file is unreadable or an entry has the wrong type.

    """
    config = _json(folder / "tokenizer_config.json") if config is None else config
    templates: dict[str, str] = {}
    match config.get("chat_template"):
        case None:
            pass
        case str(source):
            templates["default"] = source
        case [*entries]:
            for entry in entries:
                match entry:
                    case {"name": str(name), "template": str(source)}:
                        templates[name] = source
                    case _:
                        raise TokenizerFileError(f"tokenizer_config.json: chat_template has an entry {entry!r:.60}")
        case other:
            raise TokenizerFileError(f"tokenizer_config.json: chat_template is {other!r:.60}")
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        templates[path.stem] = _text(path)
    if (path := folder / "chat_template.jinja").is_file():
        templates["default"] = _text(path)
    return templates


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TokenizerFileError(f"{path}: {error}") from error


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = msgspec.json.decode(_text(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise TokenizerFileError(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise TokenizerFileError(f"{path}: an object is expected, not {type(value).__name__}")
    return value


def _token(config: dict[str, Any], role: str) -> str | None:
    match config.get(role):
        case None:
            return None
        case str(content) | {"content": str(content)}:
            return content
        case other:
            raise TokenizerFileError(f"tokenizer_config.json: {role} is {other!r:.60}")


def _added_tokens(spec: TokenizerSpec, config: dict[str, Any]) -> tuple[AddedToken, ...]:
    """The spec's tokens and those of the config that it does not list.

    A SentencePiece model lists its control pieces, but how their text is found only the config can say. It is not found
    in normalized text, which has U+2581 before it.
    """
    tokens = {t.content: t for t in spec.added_tokens}
    more = _added_tokens_decoder(config)
    if not isinstance(spec.model, SentencePiece):
        return (*spec.added_tokens, *(t for t in more if t.content not in tokens))
    for token in more:
        special = token.special or (token.content in tokens and tokens[token.content].special)
        tokens[token.content] = replace(token, normalized=False, special=special)
    return tuple(tokens.values())


def _added_tokens_decoder(config: dict[str, Any]) -> list[AddedToken]:
    entries = config.get("added_tokens_decoder") or {}
    try:
        pairs = sorted((int(token_id), entry) for token_id, entry in entries.items())
        return [msgspec.convert({"id": token_id, **entry}, AddedToken) for token_id, entry in pairs]
    except (AttributeError, TypeError, ValueError) as error:
        raise TokenizerFileError(f"tokenizer_config.json: added_tokens_decoder: {error}") from error


def _flag(config: dict[str, Any], key: str, otherwise: bool | None) -> bool | None:
    value = config.get(key)
    if value is not None and not isinstance(value, bool):
        raise TokenizerFileError(f"tokenizer_config.json: {key} is {value!r:.60}")
    return otherwise if value is None else value


def _ids(config: dict[str, Any], key: str) -> list[int]:
    """An id or a list of ids."""
    value = config.get(key)
    ids = value if isinstance(value, list) else [] if value is None else [value]
    for token_id in ids:
        if type(token_id) is not int:
            raise TokenizerFileError(f"{key}: {token_id!r:.60} is not a token id")
    return ids


def _count(config: dict[str, Any], key: str) -> int | None:
    value = config.get(key)
    if value is not None and (type(value) is not int or not 0 < value < 1 << 24):
        raise TokenizerFileError(f"config.json: {key} is {value!r:.60}")
    return value
