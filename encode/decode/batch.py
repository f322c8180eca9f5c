"""Incremental decoding of many sequences at once, for engines that step them together."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.base.options import ByteFallback, check_byte_fallback, check_flags
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer, core_of
from tokenweir.encode.values.ids import as_ids


class DecodeBatch(_core.DecodeBatch):
    """A `DecodeStream` for many sequences, one per slot; a step is one call for all of them.

    A slot is a small integer; slots of removed sequences are reused. `len` is the number of sequences.

    Args:
        tokenizer: The tokenizer of the ids.
        skip_special_tokens: Decode control tokens to nothing.
        byte_fallback: The rule for byte-fallback tokens; see `Tokenizer.decode`.

    """

    def __init__(
        self, tokenizer: Tokenizer, *, skip_special_tokens: bool = True, byte_fallback: ByteFallback = "eager"
    ) -> None:
        check_tokenizer(tokenizer)
        check_byte_fallback(byte_fallback)
        check_flags(skip_special_tokens=skip_special_tokens)
        super().__init__(core_of(tokenizer).tokens, skip_special_tokens, byte_fallback == "huggingface")

    def add(self, prompt_ids: Sequence[int] | NDArray[Any] = ()) -> int:
        """Begin a sequence after a prompt, as `DecodeStream` does.

        Returns:
            Its slot.

        Raises:
            TokenIdError: An id of the prompt is outside the vocabulary.
            TypeError: `prompt_ids` are not ids.

        """
        return super().add(as_ids(prompt_ids, "prompt_ids"))

    def copy(self, slot: int) -> int:
        """Begin a sequence with the state of another, as for a forking beam; return its slot.

        Raises:
            TypeError: The slot is not an integer.
            ValueError: The slot is not in use.

        """
        return super().copy(index(slot))

    def step(self, slots: Sequence[int] | NDArray[Any], ids: Sequence[Any] | NDArray[Any]) -> list[str]:
        """Decode the next ids of some sequences. An error leaves all sequences unchanged.

        Args:
            slots: The slots of the sequences. A slot may occur several times, and takes its ids in this order.
            ids: For each slot one id, or a row of ids if a step yields several, as in speculative decoding. Rows may have
                any lengths, or be padded with -1, as in a two-dimensional array.

        Returns:
            For each slot the text that its ids complete, as `DecodeStream.step` returns it.

        Raises:
            TokenIdError: An id is outside the vocabulary; the message names the slot.
            TypeError: A slot or an id is not an integer.
            ValueError: A slot is not in use, or the numbers of slots and ids differ.

        """
        return super().step(_as_list(slots), _as_list(ids))

    def remove(self, slot: int) -> str:
        """End a sequence; return its held text.

        Raises:
            TypeError: The slot is not an integer.
            ValueError: The slot is not in use.

        """
        return super().remove(index(slot))


def _as_list(items: Any) -> Any:
    # NumPy, CuPy and PyTorch, on any device
    return items.tolist() if hasattr(items, "tolist") else items
