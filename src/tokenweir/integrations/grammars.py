"""Tokenizers for libraries of grammars, from the bytes of every token.

Those libraries' own adapters for transformers find the bytes of tokens from their names. Here they are `Tokenizer.token_bytes`, and control
tokens are marked, so no text of a grammar matches one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tokenweir.encode.tokenizer import Tokenizer

if TYPE_CHECKING:
    import llguidance
    import outlines_core
    import xgrammar


def to_llguidance(tokenizer: Tokenizer, *, vocab_size: int | None = None) -> llguidance.LLTokenizer:
    """Return an `llguidance.LLTokenizer`.

    Args:
        tokenizer: The tokenizer.
        vocab_size: The number of the model's logits, if it is larger than that of ids.

    Raises:
        ImportError: llguidance is not installed.
        ValueError: The tokenizer has no end token, or more ids than `vocab_size`.

    """
    with _needed_by("to_llguidance"):
        import llguidance
        from llguidance._tokenizer import TokenizerWrapper

    wrapped = _LLGuidanceTokens(tokenizer)
    size = _size(tokenizer, vocab_size)
    return llguidance.LLTokenizer(TokenizerWrapper(wrapped), n_vocab=size, eos_token=sorted(tokenizer.eos_ids))


class _LLGuidanceTokens:
    """The attributes that llguidance reads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = _end(tokenizer)
        self.bos_token_id = tokenizer.bos_id
        self.special_token_ids = sorted(control_tokens(tokenizer))
        self.tokens = token_contents(tokenizer, special=True)

    def __call__(self, text: str | bytes) -> list[int]:
        """Encode text of a grammar, which spells no control token."""
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        return self._tokenizer.encode(text, add_special_tokens=False, parse_special=False)


def to_xgrammar(tokenizer: Tokenizer, *, vocab_size: int | None = None) -> xgrammar.TokenizerInfo:
    """Return an `xgrammar.TokenizerInfo`; arguments and errors as for `to_llguidance`."""
    with _needed_by("to_xgrammar"):
        import xgrammar

    _end(tokenizer)
    return xgrammar.TokenizerInfo(
        token_contents(tokenizer, special=False),
        xgrammar.VocabType.RAW,
        vocab_size=_size(tokenizer, vocab_size),
        stop_token_ids=sorted(tokenizer.eos_ids),
        add_prefix_space=False,
    )


def to_outlines(tokenizer: Tokenizer) -> outlines_core.Vocabulary:
    """Return an `outlines_core.Vocabulary`; errors as for `to_llguidance`.

    It has one end token, the least id of `eos_ids`; the others match nothing.
    """
    with _needed_by("to_outlines"):
        import outlines_core

    end = _end(tokenizer)
    ids: dict[bytes, list[int]] = {}
    for token_id, content in enumerate(token_contents(tokenizer, special=False)):
        if content and token_id not in tokenizer.eos_ids:
            ids.setdefault(content, []).append(token_id)
    given: dict[Any, list[int]] = dict(ids)
    return outlines_core.Vocabulary(end, given)


def token_contents(tokenizer: Tokenizer, *, special: bool) -> list[bytes]:
    """Return the bytes of each id; of control tokens with `special` their names after a byte 0xFF, otherwise nothing.

    No UTF-8 has the byte 0xFF, so llguidance takes it as the mark of control tokens.
    """
    control = control_tokens(tokenizer)
    return [
        (b"\xff" + control[i].encode() if special else b"") if i in control else tokenizer.token_bytes(i)
        for i in range(tokenizer.vocab_size)
    ]


def control_tokens(tokenizer: Tokenizer) -> dict[int, str]:
    """Return the ids that no text of a grammar may become, with their tokens: those that user text may not become, and ends."""
    found = {i: name for name in tokenizer.control_texts if (i := tokenizer.token_to_id(name)) is not None}
    found |= {i: name for name, i in tokenizer.special_tokens.items()}
    return found | {i: name for i in tokenizer.eos_ids if (name := tokenizer.id_to_token(i)) is not None}


@contextmanager
def _needed_by(function: str) -> Iterator[None]:
    """Name the extra if an import in the block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise ImportError(f"{function}() needs {package}: pip install 'tokenweir[grammars]'") from error


def _end(tokenizer: Tokenizer) -> int:
    ends: Iterable[int] = tokenizer.eos_ids
    if not ends:
        raise ValueError("this tokenizer has no end token, which a grammar needs")
    return min(ends)


def _size(tokenizer: Tokenizer, vocab_size: int | None) -> int:
    if vocab_size is not None and vocab_size < tokenizer.vocab_size:
        raise ValueError(f"vocab_size is {vocab_size}, but the tokenizer has {tokenizer.vocab_size} ids")
    return tokenizer.vocab_size if vocab_size is None else vocab_size
