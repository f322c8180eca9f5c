"""The options of every encoding method, the GPU's encoder's too, as types of keywords; and how options are checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypedDict


class AffixOptions(TypedDict, total=False):
    """What goes before and after the ids of a text.

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
    """How a text is encoded.

    Attributes:
        parse_special: Text that spells an added token becomes that token, which is the default. If False, no added token
            is matched and the model yields no control token either: the text is plain data. (A control token that is the
            only one for its single byte still stands for that byte.) User-defined pieces of a SentencePiece model are
            ordinary text to sentencepiece and so here; with `guarded` they are not.

    """

    parse_special: bool


def check_options(
    given: Iterable[str], known: frozenset[str], what: str, instead: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse an option that does not exist; the message says what to write `instead`, or names those of `what`."""
    for name in given:
        if name not in known:
            advice = instead.get(name, f"the options of {what} are {', '.join(sorted(known))}")
            raise TypeError(f"unexpected keyword argument {name!r}: {advice}")


def check_flags(**flags: object) -> None:
    """Refuse what is neither True nor False, by the names of the options.

    Raises:
        TypeError: One is neither.

    """
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name}={flag!r:.80} is neither True nor False")


def refuse_texts(**truths: object) -> None:
    """Refuse a text in place of a truth value: "no" and "False" are true.

    Raises:
        TypeError: One is a text; the message has its name.

    """
    for name, truth in truths.items():
        if isinstance(truth, str):
            raise TypeError(f"{name}={truth!r:.80} is neither True nor False")


def check_texts(**texts: object) -> None:
    """Refuse what is no text, by the names of the options.

    Raises:
        TypeError: One is none.

    """
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be str, not {type(text).__name__}")


def check_integers(**numbers: object) -> None:
    """Refuse what is no integer, by the names of the options; True and False are none.

    Raises:
        TypeError: One is none.

    """
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{name} must be int, not {number!r:.80}")


def check_numbers(**numbers: object) -> None:
    """Refuse what is no number, by the names of the options; True and False are none.

    Raises:
        TypeError: One is none.

    """
    for name, number in numbers.items():
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise TypeError(f"{name} must be int or float, not {number!r:.80}")
