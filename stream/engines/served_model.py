"""Models that inference servers describe, and the common part of engines whose servers do so at `/v1/models`."""

from __future__ import annotations

from msgspec import Struct, field

from tokenweir.stream.engines.engine_server import EngineServer, Event, ServerError


class _Card(Struct):
    id: str = ""
    root: str | None = None
    max_model_len: int | None = None


class _Cards(Event):
    data: list[_Card] = field(default_factory=list)


class ServedModel(Struct, frozen=True):
    """Description of the model that a server runs; fields that the server does not tell are None.

    Attributes:
        path: The path of its files on the server's machine, or its name on a hub.
        template: Its chat template.
        context_size: Most ids of prompt and answer together.

    """

    path: str | None = None
    template: str | None = None
    context_size: int | None = None


class ServedEngine:
    """Base class of the engines whose servers describe their model.

    Attributes:
        context_size: Most ids of prompt and answer together; None until `served` has set it.
        ready: Whether the server has answered; True if nobody has asked yet.

    """

    context_size: int | None = None
    ready = True

    def __init__(self, server: EngineServer, logprobs: bool) -> None:
        self._server = server
        self._logprobs = logprobs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._server.url!r})"


class ModelCardEngine(ServedEngine):
    """Base class of the engines for vLLM and SGLang, whose servers describe their model at `/v1/models`."""

    async def served(self) -> ServedModel:
        """Request the description of the model, and set `context_size` from it.

        The description is empty if the server has no such endpoint or lists no model.
        """
        try:
            cards = (await self._server.get("/v1/models", _Cards)).data
        except ServerError as error:
            if error.status != 404:
                raise
            cards = []
        model = ServedModel(cards[0].root or cards[0].id, None, cards[0].max_model_len) if cards else ServedModel()
        self.context_size = model.context_size
        return model

    async def _rest_of_context(self, prompt: int) -> int | None:
        """Return the most ids of an answer to a prompt of `prompt` ids, at least 1; None if the context size is unknown."""
        if self.context_size is None:
            await self.served()
        return None if self.context_size is None else max(1, self.context_size - prompt - 1)
