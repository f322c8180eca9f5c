"""No engine: for a server that renders and derenders around an engine that somebody else asks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from tokenweir.encode.errors import EngineError
from tokenweir.encode.options import check_integers
from tokenweir.stream.events.sampling import DEFAULTS, Sampling


class NoEngine:
    """Stands where an engine is named, and refuses to generate.

    Attributes:
        context_size: The most ids that prompt and answer may have, which render tells from what is too long.

    """

    supports = frozenset(DEFAULTS)

    def __init__(self, context_size: int | None = None) -> None:
        """Say how long the model's context is, if that is known.

        Raises:
            TypeError: It is no int.
            ValueError: It is below 1.

        """
        if context_size is not None:
            check_integers(context_size=context_size)
            if context_size < 1:
                raise ValueError(f"context_size={context_size} is below 1")
        self.context_size = context_size

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> AsyncGenerator[Sequence[int], None]:
        """Refuse.

        Raises:
            EngineError: Always; its `kind` is "unsupported".

        """
        raise EngineError("there is no engine here: this server only renders and derenders", kind="unsupported")
        yield []
