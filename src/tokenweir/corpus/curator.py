"""A stage for NeMo Curator in the place of its `MegatronTokenizerWriter`, which writes the same files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from nemo_curator.stages.text.io.writer.megatron_tokenizer import MegatronTokenizerWriter as Original

from tokenweir.encode.tokenizer import Tokenizer, tokenizer_at
from tokenweir.encode.values.encoded import Ragged

if TYPE_CHECKING:
    from nemo_curator.backends.base import NodeInfo, WorkerMetadata


@dataclass
class MegatronTokenizerWriter(Original):  # type: ignore[misc]  # its package has no types
    """Writes a `DocumentBatch` as Curator's `MegatronTokenizerWriter` does, with its options, to the same bytes.

    With `resources` of a GPU, texts are encoded there.
    """

    name: str = "tokenweir_megatron_writer"

    def setup_on_node(self, _node_info: NodeInfo | None = None, _worker_metadata: WorkerMetadata | None = None) -> None:
        """Read the tokenizer once for the node's cache of loaded tokenizers."""
        tokenizer_at(self.model_identifier)

    def setup(self, _worker_metadata: WorkerMetadata | None = None) -> None:
        """Read the tokenizer."""
        self.tokenizer = _Texts(tokenizer_at(self.model_identifier), on_gpu=self.resources.gpus > 0)

    def write_data(
        self, bin_file: BinaryIO, token_dtype: Any, eod_token_id: int, tokens_batch: Ragged, sequence_lengths: list[int]
    ) -> None:
        """Write the ids of a batch of texts, with the end token behind each if that is wanted."""
        ids, sizes = tokens_batch.ids, np.diff(tokens_batch.offsets)
        if self.append_eod:
            ids, sizes = np.insert(ids, tokens_batch.offsets[1:], eod_token_id), sizes + 1
        sequence_lengths.extend(sizes.tolist())
        bin_file.write(ids.astype(token_dtype).tobytes())


class _Texts:
    """The part of a tokenizer of transformers that the original stage calls."""

    def __init__(self, tokenizer: Tokenizer, *, on_gpu: bool) -> None:
        self._encoder: Any = tokenizer
        if on_gpu:
            from tokenweir.gpu import GpuEncoder

            self._encoder = GpuEncoder(tokenizer)
        model: Any = tokenizer.spec.model
        self.vocab_size = len(model.vocab)  # without added tokens, as transformers counts
        ends = tokenizer.encode("", add_special_tokens=False, add_eos=True) if tokenizer.eos_ids else [None]
        self.eos_token_id = ends[-1]

    def batch_encode_plus(self, texts: Sequence[str], **_options: object) -> _Texts:
        made = self._encoder.encode_batch(list(texts), add_special_tokens=False)
        self.input_ids: Ragged = made if isinstance(made, Ragged) else made.to_host()
        return self
