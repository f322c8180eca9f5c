"""Options of a server: each is declared once, with its type, default, description and flag.

`serve()`, `asgi_app()`, the command line and the documentation derive from `ServerOptions`. A new option is an entry there, and
the place that reads it: code of the server gets the options with all defaults set.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Required, TypedDict, cast, get_args, get_origin, get_type_hints

from msgspec import Struct

from tokenweir.encode.base.options import check_flags
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.parsers.detection import Markup
from tokenweir.stream.engines.protocol import Engine
from tokenweir.stream.prompts.batching.prompt_encoding import Encoder
from tokenweir.stream.prompts.cache.prompt_cache import History
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.templates.chat_template import ChatTemplate, HistoryThinking

ReasoningEvents = Literal["reasoning_text", "reasoning"]
RenderSchemaName = Literal["vllm", "sglang"]


class Option(Struct, frozen=True):
    """The declaration of an option, beside its type.

    Attributes:
        about: The description, as in docstrings. It is the help of the flag, too.
        default: The value of an option that is left out.
        flag: The flag of the command line; empty if the command has no flag for it, or one with a type of its own.
        flag_about: More help for the flag.

    """

    about: str
    default: Any = None
    flag: str = ""
    flag_about: str = ""


class ServerOptions(TypedDict, total=False):
    """Options of `serve()` and `asgi_app()`."""

    engine: Required[
        Annotated[
            Engine | Mapping[str, Engine],
            Option(
                "One engine, served as the model `default`; or several by their model names, of which the first answers "
                "requests that name none, or `default`. All take the ids of `tokenizer`."
            ),
        ]
    ]
    tokenizer: Required[Annotated[Tokenizer, Option("Prompts to ids, and ids to text.")]]
    template: Annotated[
        ChatTemplate | None, Option("Messages to prompt; None means the template that came with the tokenizer.")
    ]
    history_thinking: Annotated[
        HistoryThinking,
        Option(
            '`"control"`: thinking tags in an assistant\'s messages are control tokens, as models know them; `"text"` makes '
            "them text, since clients can forge a history.",
            default="control",
            flag="--history-thinking",
        ),
    ]
    markup: Annotated[
        Markup,
        Option(
            'What tags of thinking and of calls are in answers: `"text"`, however its tokens are cut, or `"ids"`, the tokens '
            "that the vocabulary has for them, so that text which a model quotes is no call. A model whose tags are no tokens "
            "of their own is refused with `ids`.",
            default="text",
            flag="--markup",
        ),
    ]
    encoder: Annotated[Encoder | None, Option("Encodes prompts in place of the tokenizer, such as a `PromptBatcher`.")]
    prompt_cache: Annotated[
        bool,
        Option(
            "Keep the prompts of the last ten minutes in memory, within `Limits.max_stored_bytes`, so that a conversation's "
            "next turn is encoded from where it differs. Clients share nothing.",
            default=True,
            flag="--prompt-cache",
        ),
    ]
    history: Annotated[
        History,
        Option(
            'The ids of answers in later prompts: `"canonical"` encodes their text, `"exact"` keeps those that the engine '
            'sampled as far as the text is the same, `"sampled"` keeps the last answer as a whole; see '
            "`PromptCache.render`. The last two make a prompt's ids depend on what is cached.",
            default="canonical",
            flag="--history",
        ),
    ]
    api_key: Annotated[
        str | Sequence[str] | None,
        Option(
            "The key that clients must send, or several keys: as `Authorization: Bearer KEY`, as `x-api-key: KEY`, or in a "
            "browser's websocket as the subprotocol `openai-insecure-api-key.KEY` beside another one. ASCII.",
            flag="--api-key",
            flag_about="Several in the environment are separated by blanks. Better given there, since other users can see a "
            "command line.",
        ),
    ]
    origins: Annotated[
        Collection[str],
        Option(
            "Origins of web pages that may connect besides the server's own page, such as `https://chat.example.org`.",
            default=(),
            flag="--origin",
        ),
    ]
    hosts: Annotated[
        Collection[str],
        Option(
            'Names under which the server answers, besides addresses and `localhost`; "*" allows any. With keys and '
            "without `hosts` it answers under any name.",
            default=(),
            flag="--allow-host",
        ),
    ]
    limits: Annotated[Limits | None, Option("Bounds on what clients cost.")]
    reasoning_events: Annotated[
        ReasoningEvents,
        Option(
            "The name of the events of thinking in responses: `reasoning_text` as OpenAI has it, which its clients "
            "understand, or `reasoning` as Open Responses has it.",
            default="reasoning_text",
            flag="--reasoning-events",
        ),
    ]
    render_schema: Annotated[
        RenderSchemaName,
        Option(
            "The schema of requests in ids that the paths `render` answer with: `vllm` for `POST /inference/v1/generate`, or "
            "`sglang` as SGLang's renderer writes them for `POST /generate`.",
            default="vllm",
            flag="--render-schema",
        ),
    ]
    keep_billing_header: Annotated[
        bool,
        Option(
            "Show the model the system block of Claude Code that holds a billing header only. By default it is left out, as it "
            "changes with the requests, and the answer's `left_out` says so.",
            default=False,
            flag="--keep-billing-header",
        ),
    ]
    remote_media: Annotated[
        bool,
        Option(
            "Pass web addresses of images, sound and video on to the engine, which then fetches what clients name.",
            default=False,
            flag="--remote-media",
        ),
    ]
    salt_secret: Annotated[
        str | None,
        Option(
            "Secret of the salts that keep clients apart in an engine's prefix cache, of 16 characters or more. Servers with "
            "the same one and the same keys have the same salts. None takes that of this machine's user.",
            flag="--salt-secret",
        ),
    ]


class DeclaredOption(NamedTuple):
    """An option of a server: its name, its type without annotations, and its declaration."""

    name: str
    type: Any
    option: Option


def declared_options() -> Iterator[DeclaredOption]:
    """Yield the options of `ServerOptions` in their order."""
    for name, hint in get_type_hints(ServerOptions, include_extras=True).items():
        if get_origin(hint) is Required:
            (hint,) = get_args(hint)
        kind, option = get_args(hint)
        yield DeclaredOption(name, kind, option)


def with_defaults(options: ServerOptions) -> ServerOptions:
    """Return the options with the default of each that is left out; check the values of flags and choices.

    Raises:
        TypeError: A required option is missing, or a flag is no bool.
        ValueError: A choice has an unknown value.

    """
    if missing := ServerOptions.__required_keys__ - options.keys():
        raise TypeError(f"missing keyword argument: {', '.join(sorted(missing))}")
    defaults = {name: option.default for name, _, option in declared_options()}
    complete: dict[str, Any] = defaults | dict(options)
    for name, kind, _ in declared_options():
        if kind is bool:
            check_flags(**{name: complete[name]})
        elif get_origin(kind) is Literal and complete[name] not in get_args(kind):
            *first, last = get_args(kind)
            raise ValueError(f"{name} is {', '.join(first)} or {last}, not {complete[name]!r:.80}")
    return cast("ServerOptions", complete)


ServerOptions.__doc__ = f"{ServerOptions.__doc__}\n\nAttributes:\n" + "".join(
    f"    {name}: {option.about}\n" for name, _, option in declared_options()
)
