"""Options of a server, checked and resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from tokenweir.encode.base.options import check_texts
from tokenweir.encode.tokenizer import check_tokenizer
from tokenweir.stream.chat.chat import check_template
from tokenweir.stream.chat.plan import own_template
from tokenweir.stream.engines.protocol import Engine, check_engine
from tokenweir.stream.prompts.batching.prompt_encoding import check_encoder
from tokenweir.stream.serve.answers.cache_salt import LEAST_SECRET, installation_secret, make_secret
from tokenweir.stream.serve.answers.service import DEFAULT
from tokenweir.stream.serve.app.auth import Gate
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.options import ServerOptions, with_defaults
from tokenweir.templates.chat_template import ChatTemplate


class ServerSettings(Struct, frozen=True, kw_only=True):
    """The options of a server, checked and resolved.

    Attributes:
        options: All options, with their defaults.
        engines: The engines by their model names; the first is the default.
        template: The chat template.
        limits: Bounds on what clients cost.
        gate: The check of keys, hosts and origins.
        secret: Secret of the salts by which engines keep clients' prompts apart.

    """

    options: ServerOptions
    engines: dict[str, Engine]
    template: ChatTemplate
    limits: Limits
    gate: Gate
    secret: bytes


def resolve_options(
    options: ServerOptions, *, own_name: str = "localhost", secret: bytes | None = None
) -> ServerSettings:
    """Check the options of a server and resolve their defaults.

    Args:
        options: The options.
        own_name: A name under which the server answers besides `hosts`.
        secret: The secret of the cache salts that the workers of a server share; None takes that of this installation. The
            option `salt_secret` takes precedence.

    Raises:
        TemplateError: No template is given and none came with the tokenizer.
        TypeError: A required option is missing, or an option has the wrong type.
        ValueError: There is no engine, an API key is empty or not ASCII, a choice has an unknown value, `salt_secret` is
            short, or `history` needs the prompt cache, which is off.

    """
    options = with_defaults(options)
    engine, tokenizer, template = options["engine"], options["tokenizer"], options["template"]
    engines = dict(engine) if isinstance(engine, Mapping) else {DEFAULT: engine}
    if not engines:
        raise ValueError("there is no model to serve")
    for name, one in engines.items():
        check_engine(one, "engine" if one is engine else f"engine[{name!r}]")
    check_tokenizer(tokenizer)
    check_template(template)
    check_encoder(options["encoder"])
    limits = options["limits"] or Limits()
    if not isinstance(limits, Limits):
        raise TypeError(f"limits is a {type(limits).__name__}, not a Limits")
    if options["history"] != "canonical" and not options["prompt_cache"]:
        raise ValueError(
            f"history={options['history']!r} needs the cache of prompts, which prompt_cache=False turns off"
        )
    api_key = options["api_key"]
    if api_key is None or (isinstance(api_key, Iterable) and not isinstance(api_key, str | bytes)):
        keys = list(api_key or ())
    else:
        keys = [api_key]
    if (salt_secret := options["salt_secret"]) is not None:
        check_texts(salt_secret=salt_secret)
        if len(salt_secret) < LEAST_SECRET:
            raise ValueError(f"salt_secret has {len(salt_secret)} characters; at least {LEAST_SECRET} are needed")
        secret = salt_secret.encode("utf-8", "surrogatepass")
    return ServerSettings(
        options=options,
        engines=engines,
        template=template or own_template(tokenizer),
        limits=limits,
        gate=Gate(keys=keys, origins=options["origins"], hosts=options["hosts"], own_name=own_name),
        secret=make_secret(keys, secret or installation_secret()),
    )
