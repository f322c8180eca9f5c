"""A step for datatrove in the place of its `DocumentTokenizer`, which writes the same files."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from datatrove.pipeline.tokens import DocumentTokenizer as Original
from datatrove.pipeline.tokens.tokenizer import TokenizedFile
from datatrove.utils.batching import batched

from tokenweir.encode.tokenizer import Tokenizer, tokenizer_at

if TYPE_CHECKING:
    from datatrove.data import DocumentsPipeline
    from numpy.typing import NDArray


class DocumentTokenizer(Original):  # type: ignore[misc]  # its package has no types
    """Tokenizes documents as `datatrove.pipeline.tokens.DocumentTokenizer` does, with its options, to the same bytes."""

    name = "Writer (tokenweir)"

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return tokenizer_at(self.tokenizer_name_or_path)

    @cached_property
    def token_size(self) -> int:
        """Bytes of an id."""
        return 4 if len(self._tokenizer.vocab) > 1 << 16 else 2

    def write_unshuffled(self, data: DocumentsPipeline, filename: str) -> TokenizedFile:
        """Tokenize documents in batches and write them, with their loss masks if these are wanted."""
        shuffles = self.shuffle_documents or self.shuffle_chunk_size
        made = TokenizedFile(
            self.local_working_dir if shuffles and self.local_working_dir else self.output_folder,
            filename,
            save_index=self.save_index or shuffles,
            save_loss_metadata=self.save_loss_metadata,
            upload_block_size=self.upload_block_size,
            tokenizer_name_or_path=self.tokenizer_name_or_path,
            save_final_metadata=self.save_final_metadata,
            token_size=self.token_size,
        )
        for batch in batched(data, self.batch_size):
            with self.track_time(unit="batch"):
                rows = self._encoded([document.text for document in batch])
                if self.save_loss_metadata:
                    for document, row in zip(batch, rows, strict=True):
                        loss = self.get_loss_values(document, row)
                        made.write(row.ids[: len(loss)].tolist(), loss)
                        self.stat_update("tokens", value=len(loss))
                else:
                    ids = np.concatenate([row.ids for row in rows])
                    sizes = [len(row.ids) for row in rows]
                    made.write_bytes(ids.astype(f"<u{self.token_size}").tobytes(), np.cumsum(sizes).tolist())
                    for size in sizes:
                        self.stat_update("tokens", value=size)
        made.close()
        return made

    def _encoded(self, texts: list[str]) -> list[_Encoded]:
        """Encode texts; with an end token, which datatrove sets in the place of the post-processor, it stands behind each."""
        tok = self._tokenizer
        plain = self.eos_token is None
        rows = tok.encode_batch(texts, offsets=self.save_loss_metadata, add_special_tokens=plain)
        end = np.array([] if plain else [tok.token_to_id(self.eos_token)], np.int32)
        found = []
        for start, stop in zip(rows.offsets, rows.offsets[1:], strict=False):
            spans = None if rows.spans is None else rows.spans[start:stop]
            found.append(_Encoded(np.concatenate([rows.ids[start:stop], end]), spans))
        return found


class _Encoded(NamedTuple):
    """An encoded text, with the part of tokenizers' `Encoding` that `get_loss_values` reads."""

    ids: NDArray[np.int32]
    spans: NDArray[np.int64] | None

    def char_to_token(self, place: int) -> Any:
        """Return the number of the id that has a character; None for white space that no id has."""
        assert self.spans is not None
        found = np.flatnonzero((self.spans[:, 0] <= place) & (place < self.spans[:, 1]))
        return int(found[0]) if len(found) else None
