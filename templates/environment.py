"""The Jinja environment of HuggingFace's chat templates.

The rules are those of `transformers` 5.23, `utils/chat_template_utils.py`: an immutable sandbox with `trim_blocks` and
`lstrip_blocks`, the loop controls, `{% generation %}`, the filter `tojson` without HTML escaping, and the function
`raise_exception`. `strftime_now` is a variable of each render instead of a global, so that one render has one time.
Added are the limits of `limits.py`; taken away is `lipsum`, which makes text of any size from nothing.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Collection, Iterator
from functools import wraps
from io import StringIO
from types import BuiltinMethodType
from typing import Any, NoReturn, cast

import jinja2
from jinja2 import nodes, pass_context, pass_eval_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension
from jinja2.idtracking import VAR_LOAD_RESOLVE
from jinja2.lexer import Token, TokenStream
from jinja2.nodes import EvalContext
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro, markup_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from tokenweir.encode.errors import TemplateError
from tokenweir.templates import limits
from tokenweir.templates.charging import Charging


class BoundedSource(Extension):
    """Stops the parser where a template is too long."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Count the tokens."""
        return limits.tokens(stream)


class Generation(Extension):
    """`{% generation %}...{% endgeneration %}`: what training counts as the assistant's; renders its body unchanged."""

    tags = {"generation"}  # noqa: RUF012 - as the base class declares it

    def parse(self, parser: Parser) -> nodes.Node:
        """Parse the tag into a call block, which gives its body a scope of its own as in transformers."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Macro) -> str:
        return caller()


GENERATION_BEGINS, GENERATION_ENDS = "\ufdde", "\ufddf"
"""What stands around a body in a rendering that shows where they are; noncharacters, which no other text there has."""


class ShownGeneration(Generation):
    """The same with a mark before the body and one after it."""

    def _body(self, caller: Macro) -> str:
        return f"{GENERATION_BEGINS}{caller()}{GENERATION_ENDS}"


_SHORT = 256  # characters of a text that no filter takes long for


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """The environment; one serves all templates, since nothing in it changes.

    What templates do most, looking up keys of mappings and calling methods of text, is known to be safe here and skips
    the sandbox's questions, which take longer than the limits do.
    """

    concat = staticmethod(limits.join)  # what joins the output, and the text of macros and blocks
    intercepted_binops = frozenset({"+", "*", "**", "%"})
    generation: type[Generation] = Generation

    @property
    def rewriting(self) -> NodeTransformer:
        """What changes a template's tree before it is compiled."""
        return Charging()

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[BoundedSource, self.generation, "jinja2.ext.loopcontrols"],
            cache_size=0,
            finalize=_shown,
        )
        self.globals["raise_exception"] = _raise_exception
        del self.globals["lipsum"]
        self.filters["tojson"] = _tojson
        self.filters = {
            name: function if name in _CHEAP_FILTERS else _limited(name, function)
            for name, function in self.filters.items()
        }
        self.tests = {
            name: _limited_test(name, cast(Callable[..., Any], function)) if name in _COMPARING_TESTS else function
            for name, function in self.tests.items()
        }
        self.filters |= {"counted": limits.counted, "concatenated": _concatenated, "sliced": _sliced}
        self.filters |= {"spent": _spent, "made": limits.result, "looked_through": limits.looked_through}
        self.filters["searched"] = _searched

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look an attribute up, else a key."""
        kind = type(obj)
        if kind is dict:
            if attribute not in _OF_DICTS:
                try:
                    return obj[attribute]
                except KeyError:
                    return self.undefined(obj=obj, name=attribute)
            if attribute in _READING:
                return getattr(obj, attribute)
        elif (kind is str and attribute in _OF_TEXT) or (kind is LoopContext and attribute in _OF_LOOPS):
            return getattr(obj, attribute)
        elif kind is Namespace and attribute[:1] != "_":
            try:
                return getattr(obj, attribute)
            except AttributeError:
                return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Apply an operator within the limits."""
        if operator != "+":
            limits.operate(operator, left, right)
        elif type(left) is str and type(right) is str:
            return limits.text_made(left + right)
        return limits.result(super().call_binop(context, operator, left, right))

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, method or macro within the limits."""
        kind = type(function)
        if kind is BuiltinMethodType:
            subject, name = function.__self__, function.__name__
            if type(subject) is dict and name in _READING:
                for scope in _SCOPES:
                    kwargs.pop(scope, None)
                return function(*args, **kwargs)
            if isinstance(subject, str):
                for scope in _SCOPES:
                    kwargs.pop(scope, None)
                if name == "join":
                    args = tuple(map(list, args))
                    limits.looked_through(args[0] if args else None)
                limits.check_call(name, subject, args, kwargs)
                return limits.result(self.call_method(function, args, kwargs))
            if isinstance(subject, list | tuple):  # whose methods for reading compare every item
                limits.spend(len(subject))
                limits.looked_through(subject)
        elif function is Namespace and not args:
            limits.spend(1 + len(kwargs) // 4)
            for scope in _SCOPES:
                kwargs.pop(scope, None)
            return Namespace(**kwargs)
        elif kind is LoopContext:  # loop(children) of a recursive loop
            args = (limits.counted(args[0]), *args[1:])
        elif kind is Macro:  # which takes what `Context.call` would give it, and joins its text within the limits
            for scope in _SCOPES:
                kwargs.pop(scope, None)
            return function(context.eval_ctx, *args, **kwargs)
        elif isinstance(subject := getattr(function, "__self__", None), str):  # of Markup, which are Python's
            limits.check_call(function.__name__, subject, args, kwargs)
        elif isinstance(wrapped := getattr(function, "__wrapped__", None), BuiltinMethodType):
            limits.check_braces(wrapped.__self__, args, kwargs)  # the sandbox wraps str.format and str.format_map
        limits.spend(len(args) // 4)
        for value in args:
            limits.looked_through(value)
        return limits.result(super().call(context, function, *args, **kwargs))

    def call_method(self, method: BuiltinMethodType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of a string."""
        return method(*args, **kwargs)


class GenerationEnvironment(ChatEnvironment):
    """The environment in which a template shows what it marks as generated."""

    generation = ShownGeneration


_SCOPES = ("_loop_vars", "_block_vars")  # which Jinja passes on with every call
_OF_DICTS = frozenset(dir(dict))
_READING = frozenset({"get", "items", "keys", "values"})
_OF_TEXT = frozenset(name for name in dir(str) if not name.startswith("_")) - {"format", "format_map"}
_OF_LOOPS = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"}) | {
    "previtem",
    "nextitem",
}
# Of which neither time nor result grows with what they are given, or which only pass it on.
_CHEAP_FILTERS = frozenset({"abs", "attr", "count", "d", "default", "first", "items", "last", "length"})
_LAZY_FILTERS = frozenset({"map", "reject", "rejectattr", "select", "selectattr"})
_SHALLOW_FILTERS = frozenset({"batch", "list", "random", "reverse", "slice", "sum"})  # that do not look into items
_ITEM_FILTERS = _SHALLOW_FILTERS | {
    "dictsort",
    "groupby",
    "join",
    "max",
    "min",
    "sort",
    "unique",
}  # a text's characters
_COMPARING_TESTS = frozenset({"in", "eq", "equalto", "==", "ne", "!=", "gt", "greaterthan", ">", "ge", ">=", "lt"}) | {
    *("lessthan", "<", "le", "<=", "lower", "upper"),
}


class _CodeGenerator(CodeGenerator):
    """Writes a template's code, and notes the variables on the way, for which `jinja2.meta` would go all of it once more.

    Attributes:
        variables: Those that the template reads and does not set; globals are none.

    """

    def __init__(self, environment: ChatEnvironment, filename: str, code: StringIO) -> None:
        super().__init__(environment, None, filename, code)
        self.variables: set[str] = set()

    def enter_frame(self, frame: Frame) -> None:
        super().enter_frame(frame)
        for action, name in frame.symbols.loads.values():
            if action == VAR_LOAD_RESOLVE and name is not None and name not in self.environment.globals:
                self.variables.add(name)


def compile_tree(environment: ChatEnvironment, tree: nodes.Template, filename: str) -> tuple[jinja2.Template, set[str]]:
    """Compile a parsed template with its loops counted; `tree` is changed.

    Args:
        environment: The environment that parsed it.
        tree: What `environment.parse` returned.
        filename: The name under which tracebacks show the template.

    Returns:
        The template, and the variables that it reads.

    """
    tree = environment.rewriting.visit(tree)
    tree.set_environment(environment)
    text = StringIO()
    generator = _CodeGenerator(environment, filename, text)
    with limits.budget():  # constant expressions run now
        generator.visit(tree)
    code = compile(text.getvalue(), filename, "exec")
    return jinja2.Template.from_code(environment, code, environment.make_globals(None)), generator.variables


def as_template_error(error: Exception, filename: str) -> TemplateError:
    """What went wrong in a template, with its line if that is known, in its own words if it used `raise_exception`."""
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == filename), None)
    if isinstance(error, jinja2.TemplateSyntaxError):
        line = error.lineno
    words = f"{type(error).__name__}: {error.args[0] if error.args else error}"
    if isinstance(error, jinja2.TemplateError) and error.message:
        words = error.message
    return TemplateError(f"{filename}: {words}" if line is None else f"{filename}, line {line}: {words}")


@pass_eval_context
def _concatenated(context: EvalContext, values: tuple[object, ...]) -> str:
    if context.autoescape:
        return limits.text_made(markup_join(values))
    return limits.join([value if type(value) is str else str(_shown(value)) for value in values])


@pass_context
def _spent(context: Context, work: int) -> str:
    """Charge for what follows; with the context, lest it be taken for a constant."""
    limits.spend(work)
    return ""


def _shown(value: Any) -> Any:
    """A value that is going to be written as text."""
    return value if type(value) is str else limits.looked_through(value)


def _sliced(value: Any, start: Any, stop: Any, step: Any) -> Any:
    return limits.result(value[start:stop:step])


def _searched(value: Any) -> Any:
    """A value in which something is looked for; mappings find it at once."""
    return value if isinstance(value, dict) else limits.looked_through(value)


def _limited(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter `function` within the limits; its first argument may be Jinja's context, environment or the like."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0
    alone = first + 1 if name != "join" else 0
    lazy, shallow, by_item = name in _LAZY_FILTERS, name in _SHALLOW_FILTERS, name in _ITEM_FILTERS
    is_json = name == "tojson"  # whose options change nothing about a text that would make it long

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        subject = given = args[first]
        if type(subject) is str and len(subject) < _SHORT and len(args) == alone and (is_json or not kwargs):
            return function(*args, **kwargs)  # a short text, or a list of its characters
        if isinstance(subject, Iterator) or (lazy and isinstance(subject, Collection)):
            subject = limits.counted(subject)
        elif isinstance(subject, Collection):
            if by_item or not isinstance(subject, list | tuple | dict | str):
                limits.spend(len(subject))
            if not (shallow or isinstance(subject, str) or (name == "dictsort" and len(args) == alone and not kwargs)):
                limits.looked_through(subject)
        if name == "join" and subject:  # its size counts
            subject = limits.looked_through(list(limits.counted(subject)))
        arguments = args[first + 1 :]
        for value in arguments:
            limits.looked_through(value)
        limits.check_call(name, subject, arguments, kwargs)
        if subject is not given:
            args = (*args[:first], subject, *arguments)
        return limits.result(function(*args, **kwargs))

    return limited


def _limited_test(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The test `function` within the limits; none of those that compare is given Jinja's context."""

    @wraps(function)
    def limited(*args: Any) -> Any:
        for value in args:
            (_searched if name == "in" else limits.looked_through)(value)
        return function(*args)

    return limited


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    if ensure_ascii is False and indent is None and separators is None and sort_keys is False:
        return _plain_json(value)
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


_plain_json = json.JSONEncoder(ensure_ascii=False).encode  # which `json.dumps` would make anew for each value
