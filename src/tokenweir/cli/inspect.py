"""`tokenweir inspect`: the components and tokens of a tokenizer."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import fields

import tokenweir
from tokenweir.cli.options import FROM_ENVIRONMENT, json_option, load_tokenizer, tokenizer_option
from tokenweir.encode.base.visible_text import visible

MARGIN = 16  # columns of the text form's names
ONE_LINE = str.maketrans("\t\n", "␉␊")
SHOWN = 12  # entries of a long list that the text form prints
LONG_TEXT = 4000  # characters of a text that are printed, not counted
SPELLED_OUT = 32  # entries of a mapping or list of the spec that are printed, not counted


@click.command(context_settings=FROM_ENVIRONMENT)
@tokenizer_option
@json_option
def inspect(tokenizer: Path | None, as_json: bool) -> None:
    """Print a tokenizer's components, its added tokens and end tokens, and the settings of its files.

    Padding, truncation and the flags add_bos_token and add_eos_token are printed as the files have them. Encoding never
    applies padding or truncation. The ids that encoding adds around a text are printed too.
    """
    tok = load_tokenizer(tokenizer)
    facts = describe(tok)
    if as_json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        sys.stdout.write(visible(_text(tok, facts)))


def describe(tokenizer: tokenweir.Tokenizer) -> dict[str, Any]:
    """Return what is known about a tokenizer as JSON values, by name; of large tables only the number of entries."""
    from tokenweir.encode.tokenizer import core_of
    from tokenweir.stream.decode.parsers.detection import read_prompt

    spec = tokenizer.spec
    style = read_prompt(tokenizer).style
    return {
        "source": spec.source,
        "notes": list(spec.notes),
        "vocab_size": tokenizer.vocab_size,
        "model": _component(spec.model),
        "normalizer": _component(spec.normalizer),
        "pre_tokenizer": _component(spec.pre_tokenizer),
        "patterns": [
            {
                "pattern": automaton.pattern,
                "dialect": automaton.dialect,
                "states": automaton.n_states,
                "classes": automaton.n_classes,
            }
            for automaton in core_of(tokenizer).pre_tokenizer.automata
        ],
        "post_processor": _component(spec.post_processor),
        "around": tokenizer.encode(""),
        "decoder": _component(spec.decoder),
        "added_tokens": [
            {name: value for name, value in _component(token).items() if value is not False}
            for token in tokenizer.added_tokens
        ],
        "special_roles": dict(spec.special_roles),
        "add_bos": spec.add_bos,
        "add_eos": spec.add_eos,
        "eos": {
            "tokens": {token_id: tokenizer.id_to_token(token_id) for token_id in sorted(tokenizer.eos_ids)},
            "inferred": tokenizer.eos_inferred,
        },
        "reasoning": None if style is None else style.name,
        "chat_templates": {name: {"characters": len(source)} for name, source in spec.chat_templates.items()},
        "truncation": spec.truncation,
        "padding": spec.padding,
    }


def _component(value: Any) -> Any:
    """Convert a part of the tokenizer's spec to JSON values; long texts and large collections become their sizes."""
    if isinstance(value, Struct):
        tag = {} if value.__struct_config__.tag is None else {"type": value.__struct_config__.tag}
        return tag | {name: _component(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, str) and len(value) > LONG_TEXT:
        return f"{len(value)} characters"
    if isinstance(value, Mapping):
        if len(value) > SPELLED_OUT:
            return len(value)
        return {str(name): _component(item) for name, item in value.items()}
    if isinstance(value, Collection) and not isinstance(value, str):
        return len(value) if len(value) > SPELLED_OUT else [_component(item) for item in value]
    return value


def _text(tokenizer: tokenweir.Tokenizer, facts: Mapping[str, Any]) -> str:
    """Format the result of `describe` for people: a label, one line for each part, and the first entries of long lists."""
    ends = [f"{token_id} {token}" for token_id, token in facts["eos"]["tokens"].items()]
    added = [
        " ".join([str(token["id"]), token["content"], *(name for name, value in token.items() if value is True)])
        for token in facts["added_tokens"]
    ]
    if len(added) > SHOWN:
        added[SHOWN:] = [f"and {len(added) - SHOWN} more; --json prints all"]
    sections = {
        "source": [facts["source"]],
        "notes": facts["notes"],
        "ids": [facts["vocab_size"]],
        "model": _parts(tokenizer.spec.model),
        "normalizer": _parts(tokenizer.spec.normalizer),
        "pre-tokenizer": _parts(tokenizer.spec.pre_tokenizer),
        "automata": [f"{a['states']} states by {a['classes']} classes, {a['dialect']}" for a in facts["patterns"]],
        "patterns": [a["pattern"] for a in facts["patterns"]],
        "post-processor": _parts(tokenizer.spec.post_processor),
        "flags": [
            f"add_{which}_token {str(facts[f'add_{which}']).lower()}"
            for which in ("bos", "eos")
            if facts[f"add_{which}"] is not None
        ],
        "puts around": [f"{token_id} {tokenizer.id_to_token(token_id)}" for token_id in facts["around"]],
        "decoder": _parts(tokenizer.spec.decoder),
        "added tokens": added,
        "roles": [f"{role} {token}" for role, token in facts["special_roles"].items()],
        "end tokens": [f"{end} (by its name: no file says)" if facts["eos"]["inferred"] else end for end in ends],
        "reasoning": [facts["reasoning"]] if facts["reasoning"] else [],
        "chat templates": [f"{name}, {t['characters']} characters" for name, t in facts["chat_templates"].items()],
        "truncation": [f"{json.dumps(facts['truncation'])}, never applied"] if facts["truncation"] else [],
        "padding": [f"{json.dumps(facts['padding'])}, never applied"] if facts["padding"] else [],
    }
    lines = (
        f"{label:{MARGIN}}{str(entry).translate(ONE_LINE)}\n"
        for name, entries in sections.items()
        if entries or name != "notes"
        for label, entry in zip_longest([name], entries or ["none"], fillvalue="")
    )
    return "".join(lines)


def _parts(component: Struct | None) -> list[str]:
    """Return a line for each part of a component: its type, and its simple fields that differ from their defaults.

    Return an empty list for None.
    """
    if component is None:
        return []
    config = component.__struct_config__
    if config.tag == "Sequence":
        (parts,) = (getattr(component, name) for name in component.__struct_fields__)
        return [line for part in parts for line in _parts(part)]
    words = []
    for field in fields(component):
        value = getattr(component, field.name)
        if isinstance(value, Collection) and len(value) > _limit(value):
            words.append(f"{field.name} {len(value)}")
        elif isinstance(value, bool | int | float | str) and value != field.default:
            words.append(f"{field.name} {str(value).lower() if isinstance(value, bool) else json.dumps(value)}")
    return [" ".join([f"{config.tag}", ", ".join(words)]).rstrip()]


def _limit(value: Any) -> int:
    return LONG_TEXT if isinstance(value, str) else SPELLED_OUT
