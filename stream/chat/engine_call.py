"""The call of an engine's `generate`, with errors in place of a result that is no async iterable."""

from __future__ import annotations

from collections.abc import AsyncIterable, Coroutine, Generator, Sequence
from typing import Any, cast

from tokenweir.encode.errors import EngineError
from tokenweir.stream.chat.stages import engine_error
from tokenweir.stream.engines.protocol import Engine, MediaEngine
from tokenweir.stream.events.media import MediaPrompt
from tokenweir.stream.events.sampling import Sampling


def call_engine(
    engine: Engine, prompt_ids: Sequence[int], sampling: Sampling, media: MediaPrompt | None
) -> AsyncIterable[Any]:
    """Start a generation; the caller closes it.

    Raises:
        EngineError: The engine failed, or returned something other than an async iterable.

    """
    try:
        if media is None:
            source = engine.generate(prompt_ids, sampling)
        else:
            source = cast(MediaEngine, engine).generate(prompt_ids, sampling, media=media)
    except Exception as error:
        raise engine_error(error) from error
    if not hasattr(source, "__aiter__"):
        if isinstance(source, Coroutine):
            source.close()  # or Python warns that it was never awaited
        hint = "; SyncEngine makes one of a blocking generator" if isinstance(source, Generator) else ""
        given = f"{type(engine).__name__}.generate() gave {type(source).__name__}"
        raise EngineError(f"{given}, not an async iterable{hint}")
    return source
