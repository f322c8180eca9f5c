"""Conversion of tokenizers for libraries that constrain decoding by grammars.

The adapters of those libraries for transformers guess the bytes of tokens from their names. Here they are
`Tokenizer.token_bytes`, and control tokens are marked, so that no text of a grammar matches one.
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
    """Convert a tokenizer to an `llguidance.LLTokenizer`.

    Args:
        tokenizer: The tokenizer.
        vocab_size: The number of the model's logits, if it is larger than the tokenizer's number of ids.

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
    """Object with the attributes that llguidance's `TokenizerWrapper` reads from a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = _end(tokenizer)
        self.bos_token_id = tokenizer.bos_id
        self.special_token_ids = sorted(control_tokens(tokenizer))
        self.tokens = token_contents(tokenizer, special=True)

    def __call__(self, text: str | bytes) -> list[int]:
        """Encode text of a grammar, in which names of control tokens are plain text; no tokens are added.

        Bytes that are not UTF-8 become U+FFFD.
        """
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        return self._tokenizer.encode(text, add_special_tokens=False, parse_special=False)


def to_xgrammar(tokenizer: Tokenizer, *, vocab_size: int | None = None) -> xgrammar.TokenizerInfo:
    """Convert a tokenizer to an `xgrammar.TokenizerInfo`; arguments and errors are those of `to_llguidance`."""
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
    """Convert a tokenizer to an `outlines_core.Vocabulary`.

    Its end token is the least of `eos_ids`. Other end tokens and control tokens are left out, so no grammar produces them.

    Raises:
        ImportError: outlines_core is not installed.
        ValueError: The tokenizer has no end token.

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
    """Return the bytes of each id, by id.

    A control token has no bytes; with `special`, it has the byte 0xFF and its name. The byte 0xFF never occurs in UTF-8, and
    llguidance reads it as the mark of a control token.
    """
    control = control_tokens(tokenizer)
    return [
        (b"\xff" + control[i].encode() if special else b"") if i in control else tokenizer.token_bytes(i)
        for i in range(tokenizer.vocab_size)
    ]


def control_tokens(tokenizer: Tokenizer) -> dict[int, str]:
    """Return the ids that text of a grammar must never produce, each with its token: control, special and end tokens."""
    found = {i: name for name in tokenizer.control_texts if (i := tokenizer.token_to_id(name)) is not None}
    found |= {i: name for name, i in tokenizer.special_tokens.items()}
    return found | {i: name for i in tokenizer.eos_ids if (name := tokenizer.id_to_token(i)) is not None}


@contextmanager
def _needed_by(function: str) -> Iterator[None]:
    """Convert a failed import in the block to an `ImportError` that says what `function` needs installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = "xgrammar" if package == "xgrammar" else "grammars"
        raise ImportError(f"{function}() needs {package}: pip install 'tokenweir[{extra}]'") from error


def _end(tokenizer: Tokenizer) -> int:
    ends: Iterable[int] = tokenizer.eos_ids
    if not ends:
        raise ValueError("this tokenizer has no end token, which a grammar needs")
    return min(ends)


def _size(tokenizer: Tokenizer, vocab_size: int | None) -> int:
    if vocab_size is not None and vocab_size < tokenizer.vocab_size:
        raise ValueError(f"vocab_size is {vocab_size}, but the tokenizer has {tokenizer.vocab_size} ids")
    return tokenizer.vocab_size if vocab_size is None else vocab_size
