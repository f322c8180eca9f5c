"""The keyword options of all encoding methods, also of the GPU's encoder, and checks of option values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Literal, TypedDict, get_args


class AffixOptions(TypedDict, total=False):
    """Options for the ids before and after those of a text.

    Attributes:
        add_special_tokens: Add the ids of the post-processor, such as a beginning-of-text token; True by default.
        add_bos: What stands before a text. None, the default: the post-processor's ids. True: these, and first of all
            the beginning-of-text token if it is not one of them. False: nothing, whatever the post-processor has there
            (BERT's `[CLS]`, too).
        add_eos: What stands after a text. None: the post-processor's ids. True: these, and last of all the end token if it
            is not one of them. False: nothing.

    """

    add_special_tokens: bool
    add_bos: bool | None
    add_eos: bool | None


class EncodeOptions(AffixOptions, total=False):
    """Options of encoding a text.

    Attributes:
        parse_special: Whether text that spells an added token becomes that token; True by default. If False, no added
            token is matched and the model yields no control token: the text is plain data. (A control token that is the
            only token of its single byte still encodes that byte.) User-defined pieces of a SentencePiece model count as
            ordinary text, as in sentencepiece, except where `guarded`. A set of added tokens: only these are matched, and
            the rest of the text is plain data; like tiktoken's `allowed_special`.
        disallowed_special: Tokens that a text must not spell, or "all" for every control token that `parse_special` does
            not name; none by default. Like tiktoken's option of this name.

    """

    parse_special: bool | Collection[str]
    disallowed_special: Collection[str] | Literal["all"]


ByteFallback = Literal["eager", "huggingface"]
"""The rule for decoding byte-fallback tokens; see `Tokenizer.decode`."""

BYTE_FALLBACK_MODES = get_args(ByteFallback)


def check_options(
    given: Iterable[str], known: frozenset[str], what: str, instead: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise `TypeError` if a keyword is not a known option.

    Args:
        given: The names of the keywords.
        known: The names of the options.
        what: The function whose options they are, for the message, which lists them.
        instead: For some unknown names the advice with which the message ends in place of the list.

    """
    for name in given:
        if name not in known:
            advice = instead.get(name, f"the options of {what} are {', '.join(sorted(known))}")
            raise TypeError(f"unexpected keyword argument {name!r}: {advice}")


def check_flags(**flags: object) -> None:
    """Raise `TypeError`, with the name, for an option that is not a bool."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name}={flag!r:.80} is neither True nor False")


def refuse_texts(**truths: object) -> None:
    """Raise `TypeError`, with the name, for an option used as a truth value that is a text: "no" and "False" are true."""
    for name, truth in truths.items():
        if isinstance(truth, str):
            raise TypeError(f"{name}={truth!r:.80} is neither True nor False")


def check_texts(**texts: object) -> None:
    """Raise `TypeError`, with the name, for an option that is not a text."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be str, not {type(text).__name__}")


def check_integers(**numbers: object) -> None:
    """Raise `TypeError`, with the name, for an option that is not an integer, or is a bool."""
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{name} must be int, not {number!r:.80}")


def check_numbers(**numbers: object) -> None:
    """Raise `TypeError`, with the name, for an option that is not a number, or is a bool."""
    for name, number in numbers.items():
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise TypeError(f"{name} must be int or float, not {number!r:.80}")


def check_byte_fallback(mode: str) -> None:
    """Raise `ValueError` unless `mode` is a valid value of the option `byte_fallback`: "eager" or "huggingface"."""
    if mode not in BYTE_FALLBACK_MODES:
        raise ValueError(f"byte_fallback must be one of {BYTE_FALLBACK_MODES}, not {mode!r}")
