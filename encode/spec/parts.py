"""The components that a component consists of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from tokenweir.encode.spec.decoders import DecoderSequence
from tokenweir.encode.spec.normalizers import NormalizerSequence
from tokenweir.encode.spec.post_processors import PostProcessorSequence
from tokenweir.encode.spec.pre_tokenizers import PreTokenizerSequence

T = TypeVar("T")


def parts(component: T | None) -> Iterator[T]:
    """List what a normalizer, pre-tokenizer, post-processor or decoder consists of, in order, sequences taken apart.

    One that is no sequence is its only part; None has none. Files may nest sequences as they like, so there is no
    recursion, and nothing is looked at before it is asked for.
    """
    waiting: list[Any] = [] if component is None else [component]
    while waiting:
        match part := waiting.pop():
            case NormalizerSequence(normalizers=inner):
                waiting += reversed(inner)
            case PreTokenizerSequence(pretokenizers=inner):
                waiting += reversed(inner)
            case PostProcessorSequence(processors=inner):
                waiting += reversed(inner)
            case DecoderSequence(decoders=inner):
                waiting += reversed(inner)
            case _:
                yield part
