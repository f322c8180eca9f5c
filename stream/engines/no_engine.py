"""Null engine for a server that only renders and derenders, while clients call the engine themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from tokenweir.encode.base.options import check_flags
from tokenweir.encode.errors import EngineError
from tokenweir.stream.events.media import MediaKind, MediaPrompt
from tokenweir.stream.events.sampling import DEFAULTS, Sampling


class NoEngine:
    """Placeholder for servers that only render prompts and decode ids; it refuses to generate.

    Attributes:
        thinks_first: Whether the engine that gets the rendered prompts applies a schema or a grammar behind the thinking only.
        context_size: Most ids of prompt and answer together; longer prompts are refused when they are rendered.

    """

    media: frozenset[MediaKind] = frozenset({"image", "audio", "video"})
    supports = frozenset(DEFAULTS)

    def __init__(self, context_size: int | None = None, *, thinks_first: bool = False) -> None:
        """Make the placeholder.

        Args:
            context_size: Most ids of prompt and answer together; None if unknown.
            thinks_first: Whether the engine that gets the rendered prompts applies a schema or a grammar behind the thinking
                only.

        Raises:
            TypeError: An argument is of the wrong type.
            ValueError: The size is below 1.

        """
        if context_size is not None and context_size < 1:
            raise ValueError(f"context_size={context_size} is below 1")
        check_flags(thinks_first=thinks_first)
        self.context_size = context_size
        self.thinks_first = thinks_first

    def __repr__(self) -> str:
        return f"NoEngine({self.context_size})"

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, media: MediaPrompt | None = None
    ) -> AsyncGenerator[Sequence[int], None]:
        """Refuse to generate.

        Raises:
            EngineError: Always; its `kind` is "unsupported".

        """
        raise EngineError("there is no engine here: this server only renders and derenders", kind="unsupported")
        yield []
