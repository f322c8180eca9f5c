"""transformers: deltas of what `model.generate` makes, by way of its `streamer`.

Nothing of transformers is imported here, nor of PyTorch: a streamer is any object with `put` and `end`. Verified with
transformers 5.23, with PyTorch 2.15 on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import DecoderOptions
from tokenweir.stream.events import Delta


class ChatStreamer:
    """Decode while `generate` runs; pass it twice, since it also says when the answer has ended.

        streamer = ChatStreamer(tokenizer, show, stop=["\\n\\n"])
        model.generate(input_ids, streamer=streamer, stopping_criteria=[streamer])

    It takes one answer after another: each begins with the prompt, which `generate` gives first. `generate` blocks; to
    read deltas in an event loop, run it in a thread.

    Attributes:
        decoder: What decodes the answer.

    """

    def __init__(
        self, tokenizer: Tokenizer, emit: Callable[[list[Delta]], object], **options: Unpack[DecoderOptions]
    ) -> None:
        """Make a streamer.

        Args:
            tokenizer: The tokenizer of the model.
            emit: Called in `generate`'s thread with every list of deltas that is not empty; the last has the `Finish`.
            options: See `DecoderOptions`. `max_tokens` should be `generate`'s `max_new_tokens`, which says whether an
                answer that just ends is cut short.

        Raises:
            TokenIdError: An id among the options is outside the vocabulary.
            ValueError: An option that cannot be.

        """
        self._emit = emit
        self.decoder = ChatDecoder(tokenizer, **options)

    def put(self, value: Any) -> None:
        """Take a prompt, of shape (1, n), or new ids, of shape (k,).

        Raises:
            ValueError: There is more than one answer.
            TokenIdError: An id is outside the vocabulary.

        """
        if value.ndim > 1:
            if len(value) > 1:
                raise ValueError(f"a streamer takes one answer; generate() makes a batch of {len(value)}")
            self.decoder.reset(value[0].tolist())
        elif deltas := self.decoder.feed(value.tolist()):
            self._emit(deltas)

    def end(self) -> None:
        """Give what is held, and the `Finish` if it has not been given."""
        if deltas := self.decoder.finish():
            self._emit(deltas)

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> bool:
        """Say whether the answer has ended, as a stopping criterion of `generate`."""
        return self.decoder.finished
