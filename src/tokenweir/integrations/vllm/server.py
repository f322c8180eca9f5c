"""vLLM's endpoint plug-in: tokenweir's server in the place of vLLM's routes for text, over vLLM's engine in the same process.

Each route is an operation of vLLM's application, which puts a plug-in's operations before its own ones of the same path and method. All
others, such as `/v1/models`, `/health` and `/metrics`, stay vLLM's.
"""

from __future__ import annotations

import os
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from tokenweir.encode.files import read_text
from tokenweir.encode.tokenizer import Tokenizer, tokenizer_at
from tokenweir.integrations.vllm.engine import ClientEngine
from tokenweir.stream.serve.app.application import Application, asgi_app
from tokenweir.templates.chat_template import ChatTemplate

NAME = "tokenweir_server"

ROUTES = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/chat/completions/render",
    "/v1/completions/render",
    "/v1/responses/render",
    "/v1/messages/render",
    "/v1/chat/completions/derender",
    "/v1/completions/derender",
)
"""Paths that take POST. `/v1/responses` is a websocket as well."""

UNSUPPORTED = ("default_chat_template_kwargs", "skip_tokenizer_init", "tokens_only")
"""Arguments of vLLM's server that change answers in a way this server does not."""


class EngineFrontEnd:
    """vLLM's endpoint plug-in: serves the paths of `ROUTES` by tokenweir's server."""

    name = NAME
    required_tasks = ("generate",)

    def __init__(self) -> None:
        self._application: Application | None = None

    def attach_router(self, app: Any) -> None:
        """Register the routes in vLLM's application; vLLM calls it once, after it has registered its own."""
        for path in ROUTES:
            app.add_api_route(path, self._answer, methods=["POST"], include_in_schema=False, response_model=None)
        app.add_api_websocket_route("/v1/responses", self._connect)

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        """Create tokenweir's server over vLLM's engine; vLLM calls it once, after it has set up its own state.

        Raises:
            TemplateError: The model has no chat template.
            TokenizerFileError: The tokenizer is neither a local file or folder nor in the hub's cache.
            UnsupportedTokenizerError: The tokenizer is not reproduced exactly.
            ValueError: `args` has an option of `UNSUPPORTED`, which this server does not support.

        """
        for name in UNSUPPORTED:
            if getattr(args, name, None):
                raise ValueError(f"the plug-in {NAME} does not know --{name.replace('_', '-')}")
        model = engine_client.model_config
        tokenizer = tokenizer_of(model)
        names = args.served_model_name or [args.model]
        engine = partial(ClientEngine, engine_client, thinks_first=bool(getattr(args, "reasoning_parser", None)))
        engines: dict[str, Any] = dict.fromkeys(names, engine())
        adapters = getattr(getattr(state, "openai_serving_models", None), "lora_requests", {})
        engines |= {name: engine(lora_request=one) for name, one in adapters.items()}
        keys = [key for key in (args.api_key or [os.environ.get("VLLM_API_KEY")]) if key]
        self._application = asgi_app(
            engine=engines,
            tokenizer=tokenizer,
            template=template_of(args.chat_template, tokenizer),
            api_key=keys or None,
            origins=[origin for origin in args.allowed_origins if origin != "*"],
            hosts=["*"],
        )

    async def _answer(self, request: Request) -> Response:
        return _Forwarded(self._ready())

    async def _connect(self, websocket: WebSocket) -> None:
        await self._ready()(websocket.scope, websocket.receive, websocket.send)

    def _ready(self) -> Application:
        if self._application is None:
            raise RuntimeError(f"the plug-in {NAME} has no engine yet")
        return self._application


class _Forwarded(Response):
    """Response that passes the request on to another ASGI application, which answers it."""

    def __init__(self, application: Application) -> None:
        super().__init__()
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._application(scope, receive, send)


def tokenizer_of(model_config: Any) -> Tokenizer:
    """Load the tokenizer that vLLM's model configuration names: a local folder or file, or a name in the hub's cache."""
    return tokenizer_at(model_config.tokenizer, model_config.tokenizer_revision or "main")


def template_of(given: str | None, tokenizer: Tokenizer) -> ChatTemplate:
    """Return the chat template.

    Args:
        given: The value of `--chat-template`: the path of a file, or a source. None takes the tokenizer's own template.
        tokenizer: The tokenizer.

    """
    if given is None:
        return ChatTemplate.from_tokenizer(tokenizer)
    if "\n" not in given and Path(given).is_file():
        given = read_text(Path(given))
    return ChatTemplate(given, special_tokens=tokenizer.spec.special_roles, control_tokens=tokenizer.control_texts)
