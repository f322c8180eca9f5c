"""SGLang's plug-in: its tokenizers run on tokenweir, and its detokenizer on tokenweir's streams.

SGLang calls every installed plug-in of its group if SGLANG_PLUGINS is not set. This one does nothing unless that variable names it, so an
installation alone changes no server. Written by the interfaces of SGLang 0.5.23.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.integrations.counts import count
from tokenweir.integrations.transformers.backend import is_backend
from tokenweir.integrations.transformers.patch import patch_transformers

PLUGIN = "tokenweir"
"""The plug-in's name in SGLANG_PLUGINS."""

DECODING = "sglang.srt.managers.detokenizer_manager.DetokenizerManager._decode_batch_token_id_output"
"""The method that makes text of a batch's new ids."""


def register() -> None:
    """Patch transformers, and hook the detokenizer, if SGLANG_PLUGINS names this plug-in. SGLang calls it once a process."""
    if PLUGIN not in (name.strip() for name in os.environ.get("SGLANG_PLUGINS", "").split(",")):
        return
    patch_transformers()
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(DECODING, decode_batch, HookType.AROUND)


class _Answer:
    """The decoding state of one request: its `DecodeStream`, its text so far, and the number of characters sent."""

    def __init__(
        self, tokenizer: Tokenizer, prompt_ids: Sequence[int], text: str, *, skip_special_tokens: bool
    ) -> None:
        self.stream = DecodeStream(tokenizer, prompt_ids=prompt_ids, skip_special_tokens=skip_special_tokens)
        self.parts = [text] if text else []
        self.sent = len(text)


def decode_batch(original: Callable[..., list[str]], manager: Any, batch: Any) -> list[str]:
    """Return the new text of each request of a batch; a hook around the method of SGLang's `DetokenizerManager`.

    Text is returned once its characters are complete. Each id is decoded once, while SGLang's method decodes all ids
    since the last complete character again at each step.

    Args:
        original: The replaced method, which is called for tokenizers that tokenweir does not reproduce.
        manager: The `DetokenizerManager`.
        batch: Its batch of requests with new ids.

    """
    tokenizer = _tokenizer_of(manager.tokenizer)
    if tokenizer is None:
        count(type(manager.tokenizer).__name__, "DetokenizerManager", "not a tokenizer of tokenweir", len(batch.rids))
        return original(manager, batch)
    count(type(manager.tokenizer).__name__, "DetokenizerManager", None, len(batch.rids))
    return [_decode(manager, batch, place, tokenizer) for place in range(len(batch.rids))]


def _decode(manager: Any, batch: Any, place: int, tokenizer: Tokenizer) -> str:
    states, request_id = manager.decode_status, batch.rids[place]
    ids = manager._clamp_decode_ids(list(batch.decode_ids[place]), manager.vocab_size)
    if request_id in states:
        answer = states[request_id]
    else:
        begin = batch.read_offsets[place]
        answer = _Answer(
            tokenizer, ids[:begin], batch.decoded_texts[place], skip_special_tokens=batch.skip_special_tokens[place]
        )
        states[request_id] = answer
        ids = ids[begin:]
    reason, keeps_stop = batch.finished_reasons[place], batch.no_stop_trim[place]
    if ids:
        ids = manager.trim_matched_stop(ids, reason, keeps_stop)  # a stop token
    text: str = answer.stream.feed(ids)
    if reason is None:
        answer.parts.append(text)
        answer.sent += len(text)
        return text
    del states[request_id]
    whole = "".join([*answer.parts, text, answer.stream.flush()])
    trimmed: str = manager.trim_matched_stop(whole, reason, keeps_stop)  # a stop string
    return trimmed[answer.sent :]


def _tokenizer_of(tokenizer: Any) -> Tokenizer | None:
    backend: Any = getattr(tokenizer, "_tokenizer", None)
    if not is_backend(backend):
        return None
    found: Tokenizer | None = backend.tokenizer
    return found
