"""Incremental decoding of many sequences at once, for the loop of an engine that steps them together."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.decode import ByteFallback, check_byte_fallback, check_tokenizer
from tokenweir.encode.ids import as_ids
from tokenweir.encode.options import check_flags

if TYPE_CHECKING:
    from tokenweir.encode.tokenizer import Tokenizer


class DecodeBatch(_core.DecodeBatch):
    """Decodes many sequences, one a slot, as `DecodeStream` does one; a step is one call whatever their number.

    A slot is a small integer, and one that has been removed is used again. `len` is the number of sequences.

    Args:
        tokenizer: The tokenizer whose ids these are.
        skip_special_tokens: Control tokens decode to nothing.
        byte_fallback: How byte-fallback tokens decode; see `Tokenizer.decode`.

    """

    def __init__(
        self, tokenizer: Tokenizer, *, skip_special_tokens: bool = True, byte_fallback: ByteFallback = "eager"
    ) -> None:
        check_tokenizer(tokenizer)
        check_byte_fallback(byte_fallback)
        check_flags(skip_special_tokens=skip_special_tokens)
        super().__init__(tokenizer.token_table, skip_special_tokens, byte_fallback == "huggingface")

    def add(self, prompt_ids: Sequence[int] | NDArray[Any] = ()) -> int:
        """Begin a sequence after a prompt, as `DecodeStream` does.

        Returns:
            Its slot.

        Raises:
            TokenIdError: An id of the prompt is outside the vocabulary.
            TypeError: `prompt_ids` are no ids.

        """
        return super().add(as_ids(prompt_ids, "prompt_ids"))

    def copy(self, slot: int) -> int:
        """Begin a sequence in the state of another, as a beam that forks does; return its slot.

        Raises:
            TypeError: The slot is no integer.
            ValueError: It is not in use.

        """
        return super().copy(index(slot))

    def step(self, slots: Sequence[int] | NDArray[Any], ids: Sequence[Any] | NDArray[Any]) -> list[str]:
        """Take the next ids of some sequences.

        Args:
            slots: Which sequences; one that is there twice takes its ids in this order.
            ids: For each slot one id, or a row of ids where a step gives several, as speculative decoding does. Rows may
                have any lengths, or be those of a two-dimensional array that -1 fills up; nested lists may be so filled
                up as well.

        Returns:
            For each slot the text that is final with its ids, as `DecodeStream.step` would give.

        Raises:
            TokenIdError: An id is outside the vocabulary; the message names the slot.
            ValueError: A slot is not in use, or there are not as many of one as of the other. No error has changed any
                sequence: call again without that slot.

        """
        return super().step(_as_list(slots), _as_list(ids))

    def remove(self, slot: int) -> str:
        """End a sequence; return what was held of it.

        Raises:
            TypeError: The slot is no integer.
            ValueError: It is not in use.

        """
        return super().remove(index(slot))


def _as_list(items: Any) -> Any:
    # NumPy, CuPy and PyTorch, from whatever device
    return items.tolist() if hasattr(items, "tolist") else items
