"""The components that a component consists of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokenweir.encode.spec.decoders import Decoder, DecoderSequence
from tokenweir.encode.spec.normalizers import Normalizer, NormalizerSequence
from tokenweir.encode.spec.post_processors import PostProcessor, PostProcessorSequence
from tokenweir.encode.spec.pre_tokenizers import PreTokenizer, PreTokenizerSequence


def parts(component: Normalizer | PreTokenizer | PostProcessor | Decoder | None) -> Iterator[Any]:
    """List what a normalizer, pre-tokenizer, post-processor or decoder consists of, in order, sequences taken apart.

    One that is no sequence is its only part; None has none. The parts are of the component's kind, so the caller says
    which type they have (`SingleNormalizer` and the like). Files may nest sequences as they like, so there is no
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
