"""Options of a server: declared once for `serve()` and `asgi_app()`, then checked and resolved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypedDict, get_args

from msgspec import Struct

from tokenweir.encode.decode import check_tokenizer
from tokenweir.encode.options import check_flags, check_texts
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.chat import check_template
from tokenweir.stream.chat.plan import own_template
from tokenweir.stream.engines.protocol import Engine, check_engine
from tokenweir.stream.prompts.prompt_cache import History, check_history
from tokenweir.stream.prompts.prompt_encoding import Encoder, check_encoder
from tokenweir.stream.serve.answers.cache_salt import LEAST_SECRET, installation_secret, make_secret
from tokenweir.stream.serve.answers.service import DEFAULT
from tokenweir.stream.serve.entry.auth import Gate
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.templates.chat_template import ChatTemplate, HistoryThinking

ReasoningEvents = Literal["reasoning_text", "reasoning"]


class _RequiredOptions(TypedDict):
    engine: Engine | Mapping[str, Engine]
    tokenizer: Tokenizer


class ServerOptions(_RequiredOptions, total=False):
    """Options of `serve()` and `asgi_app()`.

    Attributes:
        engine: One engine, served as the model `default`; or several by their model names, of which the first answers
            requests that name none, or `default`. All take the ids of `tokenizer`.
        tokenizer: Prompts to ids, and ids to text.
        template: Messages to prompt; None means the template that came with the tokenizer.
        history_thinking: `"control"`: thinking tags in an assistant's messages are control tokens, as models know them;
            `"text"` makes them text, since clients can forge a history.
        encoder: Encodes prompts in place of the tokenizer, such as a `PromptBatcher`.
        prompt_cache: Keep the prompts of the last ten minutes in memory, within `Limits.max_stored_bytes`, so that a
            conversation's next turn is encoded from where it differs. Clients share nothing.
        history: The ids of answers in later prompts: `"canonical"` encodes their text, `"exact"` keeps those that the engine
            sampled as far as the text is the same, `"sampled"` keeps the last answer as a whole; see `PromptCache.render`.
            The last two make a prompt's ids depend on what is cached.
        api_key: The key that clients must send, or several keys: as `Authorization: Bearer KEY`, as `x-api-key: KEY`, or in a
            browser's websocket as the subprotocol `openai-insecure-api-key.KEY` beside another one. ASCII.
        origins: Origins of web pages that may connect besides the server's own page, such as
            `https://chat.example.org`.
        hosts: Names under which the server answers, besides addresses and `localhost`; "*" allows any. With keys and
            without `hosts` it answers under any name.
        limits: Bounds on what clients cost.
        reasoning_events: The name of the events of thinking in responses: `reasoning_text` as OpenAI has it, which its
            clients understand, or `reasoning` as Open Responses has it.
        keep_billing_header: Show the model the system block of Claude Code that holds a billing header only. By default it is
            left out, as it changes with the requests, and the answer's `left_out` says so.
        remote_media: Pass web addresses of images, sound and video on to the engine, which then fetches what clients name.
        salt_secret: Secret of the salts that keep clients apart in an engine's prefix cache, of 16 characters or more.
            Servers with the same one and the same keys have the same salts. None takes that of this machine's user.

    """

    template: ChatTemplate | None
    history_thinking: HistoryThinking
    encoder: Encoder | None
    prompt_cache: bool
    history: History
    api_key: str | Sequence[str] | None
    origins: Collection[str]
    hosts: Collection[str]
    limits: Limits | None
    reasoning_events: ReasoningEvents
    keep_billing_header: bool
    remote_media: bool
    salt_secret: str | None


class ServerSettings(Struct, frozen=True, kw_only=True):
    """The options of a server, checked and resolved.

    Attributes:
        engines: The engines by their model names; the first is the default.
        gate: The check of keys, hosts and origins.
        secret: Secret of the salts by which engines keep clients' prompts apart.

    The other attributes are the options of the same name in `ServerOptions`.

    """

    engines: dict[str, Engine]
    tokenizer: Tokenizer
    template: ChatTemplate
    history_thinking: HistoryThinking
    encoder: Encoder | None
    prompt_cache: bool
    history: History
    gate: Gate
    secret: bytes
    limits: Limits
    reasoning_events: ReasoningEvents
    keep_billing_header: bool
    remote_media: bool


def resolve_options(
    options: ServerOptions, *, own_name: str = "localhost", secret: bytes | None = None
) -> ServerSettings:
    """Check the options of a server and resolve their defaults.

    Args:
        options: The options.
        own_name: A name under which the server answers besides `hosts`.
        secret: The secret of the cache salts that the workers of a server share; None takes that of this installation.

    Raises:
        TemplateError: No template is given and none came with the tokenizer.
        TypeError: A required option is missing, or an option has the wrong type.
        ValueError: There is no engine, an API key is empty or not ASCII, `history_thinking` or `history` has an unknown
            value, `salt_secret` is short, or `history` needs the prompt cache, which is off.

    """
    if missing := ServerOptions.__required_keys__ - options.keys():
        raise TypeError(f"missing keyword argument: {', '.join(sorted(missing))}")
    engine, tokenizer, template = options["engine"], options["tokenizer"], options.get("template")
    engines = dict(engine) if isinstance(engine, Mapping) else {DEFAULT: engine}
    if not engines:
        raise ValueError("there is no model to serve")
    for name, one in engines.items():
        check_engine(one, "engine" if one is engine else f"engine[{name!r}]")
    check_tokenizer(tokenizer)
    check_template(template)
    history_thinking = options.get("history_thinking", "control")
    if history_thinking not in get_args(HistoryThinking):
        raise ValueError(f"history_thinking is control or text, not {history_thinking!r}")
    limits = options.get("limits") or Limits()
    if not isinstance(limits, Limits):
        raise TypeError(f"limits is a {type(limits).__name__}, not a Limits")
    encoder = options.get("encoder")
    check_encoder(encoder)
    keep_billing_header = options.get("keep_billing_header", False)
    remote_media = options.get("remote_media", False)
    prompt_cache = options.get("prompt_cache", True)
    check_flags(keep_billing_header=keep_billing_header, remote_media=remote_media, prompt_cache=prompt_cache)
    history = options.get("history", "canonical")
    check_history(history)
    if history != "canonical" and not prompt_cache:
        raise ValueError(f"history={history!r} needs the cache of prompts, which prompt_cache=False turns off")
    api_key = options.get("api_key")
    if api_key is None or (isinstance(api_key, Iterable) and not isinstance(api_key, str | bytes)):
        keys = list(api_key or ())
    else:
        keys = [api_key]
    if (salt_secret := options.get("salt_secret")) is not None:
        check_texts(salt_secret=salt_secret)
        if len(salt_secret) < LEAST_SECRET:
            raise ValueError(f"salt_secret has {len(salt_secret)} characters; at least {LEAST_SECRET} are needed")
        secret = salt_secret.encode("utf-8", "surrogatepass")
    gate = Gate(keys=keys, origins=options.get("origins", ()), hosts=options.get("hosts", ()), own_name=own_name)
    return ServerSettings(
        engines=engines,
        tokenizer=tokenizer,
        template=template or own_template(tokenizer),
        history_thinking=history_thinking,
        encoder=encoder,
        prompt_cache=bool(prompt_cache),
        history=history,
        gate=gate,
        secret=make_secret(keys, secret or installation_secret()),
        limits=limits,
        reasoning_events=options.get("reasoning_events", "reasoning_text"),
        keep_billing_header=keep_billing_header,
        remote_media=remote_media,
    )
