"""The post-processor: the ids that it puts before and after a text's own, and how it trims offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.base.options import refuse_texts
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import (
    BertProcessing,
    ByteLevel,
    PostProcessor,
    RobertaProcessing,
    TemplateProcessing,
    TokenizerSpec,
)
from tokenweir.encode.spec.parts import parts
from tokenweir.encode.spec.post_processors import SinglePostProcessor

_Ids = tuple[int, ...]

MAX_PARTS = 32
"""The most parts of a post-processor; real ones have two."""

MAX_IDS_AROUND = 1 << 16
"""The most ids that may go around a text; real ones are one or two."""

_BLANKS = (
    "Ġ\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
"""The byte alphabet's space, and White_Space."""


class Trim(NamedTuple):
    """One pass of a post-processor that removes white space from the offsets of tokens.

    Attributes:
        keep_prefix_space: As for `trim_offsets`.
        enclosed: Whether an earlier part of the post-processor puts a special token first, if special tokens are added.
            Then no token of the text counts as the first.

    """

    keep_prefix_space: bool
    enclosed: bool = False


class Added(NamedTuple):
    """The ids that a post-processor adds to a single text, and its passes over the offsets.

    Attributes:
        prefix: The ids before the text's own.
        suffix: The ids after them.
        trims: The passes that trim offsets, in order.

    """

    prefix: _Ids = ()
    suffix: _Ids = ()
    trims: tuple[Trim, ...] = ()


class Affixes(NamedTuple):
    """The ids that may go around a text.

    Attributes:
        added: The ids that the post-processor adds.
        bos_id: The id of the beginning-of-text token, for `add_bos=True`; None if the tokenizer lacks one.
        eos_id: The id of the end token, for `add_eos=True`; None if the tokenizer lacks one.

    """

    added: Added
    bos_id: int | None
    eos_id: int | None

    def ids(
        self, *, add_special_tokens: bool = True, add_bos: bool | None = None, add_eos: bool | None = None
    ) -> tuple[_Ids, _Ids]:
        """Return the ids before a text and those after it, by the options that `AffixOptions` describes.

        Raises:
            TypeError: An option is a text.
            ValueError: `add_bos` or `add_eos` is true, and the tokenizer lacks the token.

        """
        refuse_texts(add_special_tokens=add_special_tokens, add_bos=add_bos, add_eos=add_eos)
        before, after = (self.added.prefix, self.added.suffix) if add_special_tokens else ((), ())
        if add_bos is not None:
            bos = _wanted(before, self.bos_id, add_bos, "add_bos")
            before = (*bos, *before) if add_bos else ()
        if add_eos is not None:
            eos = _wanted(after, self.eos_id, add_eos, "add_eos")
            after = (*after, *eos) if add_eos else ()
        return before, after


def _wanted(ids: _Ids, token_id: int | None, wanted: bool, option: str) -> _Ids:
    """Return the ids to add for `add_bos` or `add_eos`: one id, or nothing.

    Args:
        ids: The ids that are there already; `token_id` is not added again.
        token_id: The id of the token; None if the tokenizer lacks it.
        wanted: The value of the option.
        option: The option's name, for errors.

    Raises:
        ValueError: The token is wanted and `token_id` is None.

    """
    if not wanted:
        return ()
    if token_id is None:
        raise ValueError(f"{option}: this tokenizer has no such token")
    return () if token_id in ids else (token_id,)


def affixes_of(spec: TokenizerSpec, bos_id: int | None, eos_id: int | None, vocab_size: int) -> Affixes:
    """Return the ids that go around a text, by the spec's post-processor.

    Args:
        spec: The description of the tokenizer.
        bos_id: The id of the beginning-of-text token, or None.
        eos_id: The id of the end token, or None.
        vocab_size: The number of ids.

    Raises:
        UnsupportedTokenizerError: A template does not have its sequence exactly once, or another part that adds tokens
            follows a template.
        TokenizerFileError: A template names a special token that it does not define, or an id is outside the
            vocabulary.

    """
    added = _added(spec.post_processor)
    for token_id in added.prefix + added.suffix:
        if not 0 <= token_id < vocab_size:
            raise TokenizerFileError(
                f"post_processor: token id {token_id} is outside the vocabulary (0 to {vocab_size - 1})"
            )
    return Affixes(added, bos_id, eos_id)


def _added(post_processor: PostProcessor | None) -> Added:
    """Combine the ids that all parts of a post-processor add to a single text, and their passes over the offsets.

    `UnsupportedTokenizerError` if a part other than `ByteLevel` follows a template that adds tokens: to such a part, these
    would be sequences of their own (tokenizers 0.23).
    """
    whole = Added()
    enclosed = beside = False
    part: SinglePostProcessor
    for number, part in enumerate(parts(post_processor)):
        if number == MAX_PARTS:
            raise UnsupportedTokenizerError(f"post_processor: a Sequence of more than {MAX_PARTS} parts")
        if beside and not isinstance(part, ByteLevel):
            raise UnsupportedTokenizerError(f"post_processor: {type(part).__name__} after a template")
        prefix, suffix, trims = _alone(part)
        trims = tuple(trim._replace(enclosed=enclosed) for trim in trims)
        whole = Added(prefix + whole.prefix, whole.suffix + suffix, whole.trims + trims)
        if prefix or suffix:
            beside = isinstance(part, TemplateProcessing)
            enclosed = enclosed or not beside
    return whole


def _alone(part: SinglePostProcessor) -> Added:
    match part:
        case TemplateProcessing():
            return _template(part)
        case BertProcessing():
            return Added((part.cls[1],), (part.sep[1],))
        case ByteLevel():
            return Added(trims=_trims(part))
        case RobertaProcessing():
            return Added((part.cls[1],), (part.sep[1],), _trims(part))
        case _:
            assert_never(part)


def _trims(part: ByteLevel | RobertaProcessing) -> tuple[Trim, ...]:
    return (Trim(part.add_prefix_space),) if part.trim_offsets else ()


def type_id_of(part: Mapping[str, str | int]) -> str | int:
    """Return the type id of a template's item, unchecked, as the file has it; 0 if it is missing."""
    return part.get("type_id", 0)


def _check_items(template: TemplateProcessing) -> None:
    """Raise `TokenizerFileError` for a template with an item that is not as `TemplateProcessing` describes it."""
    for items, sequences in ((template.single, ("A",)), (template.pair, ("A", "B"))):
        for item in items:
            for kind, part in item.items():
                name, type_id = part.get("id"), type_id_of(part)
                known = name in sequences if kind == "Sequence" else kind == "SpecialToken" and isinstance(name, str)
                if not known:
                    raise TokenizerFileError(f"post_processor: a template has {kind!r:.60} {name!r:.60}")
                if not isinstance(type_id, int) or not 0 <= type_id < 1 << 32:
                    raise TokenizerFileError(f"post_processor: a type_id of the template is {type_id!r:.60}")
            if len(item) != 1:
                raise TokenizerFileError(f"post_processor: an item of the template has {len(item)} kinds")
    for special in template.special_tokens.values():
        if special.tokens and len(special.tokens) != len(special.ids):
            raise TokenizerFileError(f"post_processor: {special.id!r:.60} has other numbers of ids and tokens")


def _template(template: TemplateProcessing) -> Added:
    _check_items(template)
    sides: list[list[int]] = [[]]
    for item in template.single:
        if "Sequence" in item:
            sides.append([])
            continue
        name = str(item.get("SpecialToken", {}).get("id"))
        if name not in template.special_tokens:
            raise TokenizerFileError(f"post_processor: the template's special token {name!r:.60} is not defined")
        sides[-1].extend(template.special_tokens[name].ids)
        if sum(map(len, sides)) > MAX_IDS_AROUND:
            raise UnsupportedTokenizerError(f"post_processor: a template of more than {MAX_IDS_AROUND} ids")
    if len(sides) != 2:
        raise UnsupportedTokenizerError(f"post_processor: a template with {len(sides) - 1} sequences instead of one")
    return Added(tuple(sides[0]), tuple(sides[1]))


def blank_edges(names: Iterable[str]) -> NDArray[np.int64]:
    """Return the number of blank characters at both ends of each token, shape (n, 2)."""
    edges = [(len(name) - len(name.lstrip(_BLANKS)), len(name) - len(name.rstrip(_BLANKS))) for name in names]
    return np.array(edges, np.int64).reshape(-1, 2)


def trim_offsets(
    edges: NDArray[np.int64], spans: NDArray[np.int64], first: NDArray[np.bool_], *, keep_prefix_space: bool
) -> NDArray[np.int64]:
    """Return offsets without the white space at a token's edges, as HuggingFace's ByteLevel post-processor trims them.

    Args:
        edges: The `blank_edges` of the tokens: as the vocabulary spells them; for matched added tokens and unknown ones of
            a Unigram model, of the text that they took.
        spans: The (start, end) characters of each token; shape (n, 2).
        first: Whether each token is the first of its text.
        keep_prefix_space: Whether to ignore a single leading blank of a first token, which `add_prefix_space` may have put
            there.

    """
    leading, trailing = edges.T
    start, end = spans.T
    if keep_prefix_space:
        leading = np.where((leading == 1) & (first | (start == 0)), 0, leading)
    start = np.minimum(start + leading, end)
    end = np.where((trailing > 0) & (end >= trailing), np.maximum(end - trailing, start), end)
    return np.stack([start, end], axis=1)
