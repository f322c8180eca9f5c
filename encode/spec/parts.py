"""The components that a component consists of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokenweir.encode.spec.decoders import Decoder, DecoderSequence
from tokenweir.encode.spec.normalizers import Normalizer, NormalizerSequence
from tokenweir.encode.spec.post_processors import PostProcessor, PostProcessorSequence
from tokenweir.encode.spec.pre_tokenizers import PreTokenizer, PreTokenizerSequence


def parts(component: Normalizer | PreTokenizer | PostProcessor | Decoder | None) -> Iterator[Any]:
    """Yield the parts of a normalizer, pre-tokenizer, post-processor or decoder, in order, with nested sequences flattened.

    A component that is not a sequence is its only part; for None nothing is yielded. The parts are of the component's
    kind, so the caller declares their type (such as `SingleNormalizer`). Nesting may be of any depth.
    """
    waiting: list[Any] = [] if component is None else [component]
    while waiting:
        match part := waiting.pop():
            case NormalizerSequence(of) | PreTokenizerSequence(of) | PostProcessorSequence(of) | DecoderSequence(of):
                waiting += reversed(of)
            case _:
                yield part
