"""The Jinja environment of HuggingFace's chat templates.

The rules are those of `transformers` 5.18, `utils/chat_template_utils.py`: an immutable sandbox with `trim_blocks` and
`lstrip_blocks`, the loop controls, `{% generation %}`, the filter `tojson` without HTML escaping, and the function
`raise_exception`. `strftime_now` is a variable of each render instead of a global, so that one render has one time.
Added are the limits of `limits.py`; taken away is `lipsum`, which makes text of any size from nothing.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from functools import wraps
from types import BuiltinMethodType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes, pass_eval_context
from jinja2.ext import Extension
from jinja2.nodes import EvalContext
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro, markup_join, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from tokenweir.encode.errors import TemplateError
from tokenweir.templates import limits


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


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """The environment; one serves all templates, since nothing in it changes."""

    concat = staticmethod(limits.join)  # what joins the output, and the text of macros and blocks
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    @property
    def rewriting(self) -> NodeTransformer:
        """What changes a template's tree before it is compiled."""
        return Counting()

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"], cache_size=0
        )
        self.globals["raise_exception"] = _raise_exception
        del self.globals["lipsum"]
        self.filters["tojson"] = _tojson
        self.filters = {name: _limited(name, function) for name, function in self.filters.items()}
        self.filters["counted"] = limits.counted
        self.filters["concatenated"] = _concatenated

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Apply an operator within the limits."""
        limits.check_operator(operator, left, right)
        return limits.result(super().call_binop(context, operator, left, right))

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, method or macro within the limits."""
        if isinstance(function, LoopContext):  # loop(children) of a recursive loop
            args = (limits.counted(args[0]), *args[1:])
        method = getattr(function, "__wrapped__", function)  # the sandbox wraps str.format and str.format_map
        if isinstance(method, BuiltinMethodType) and isinstance(method.__self__, str):
            if method.__name__ in ("format", "format_map"):
                limits.check_format(method.__self__)
            else:
                if method.__name__ == "join":
                    args = tuple(map(list, args))
                limits.check_call(method.__name__, method.__self__, args, kwargs)
        return limits.result(super().call(context, function, *args, **kwargs))


class Counting(NodeTransformer):
    """Sends every loop through `counted` and every `~` through `concatenated`; neither has a hook in the sandbox."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = filtered(node.iter, "counted")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return filtered(nodes.List(node.nodes, lineno=node.lineno), "concatenated")


def compile_tree(environment: ChatEnvironment, tree: nodes.Template, filename: str) -> jinja2.Template:
    """Compile a parsed template with its loops counted; `tree` is changed.

    Args:
        environment: The environment that parsed it.
        tree: What `environment.parse` returned.
        filename: The name under which tracebacks show the template.

    """
    tree = environment.rewriting.visit(tree)
    tree.set_environment(environment)
    with limits.budget():  # constant expressions run now
        code = environment.compile(tree, filename=filename)
    return jinja2.Template.from_code(environment, code, environment.make_globals(None))


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


def filtered(value: nodes.Node, name: str, *arguments: nodes.Node) -> nodes.Filter:
    """The expression `value | name(*arguments)`."""
    return nodes.Filter(value, name, list(arguments), [], None, None, lineno=value.lineno)


@pass_eval_context
def _concatenated(context: EvalContext, values: list[object]) -> str:
    return limits.result((markup_join if context.autoescape else str_join)(values))


def _limited(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter `function` within the limits; its first argument may be Jinja's context, environment or the like.

    What `join` joins is made a list beforehand, here and in `call`, since its size counts.
    """
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        if name == "join":
            args = (*args[:first], list(args[first]), *args[first + 1 :])
        limits.check_call(name, args[first], args[first + 1 :], kwargs)
        args = (*args[:first], limits.filtered(name, args[first]), *args[first + 1 :])
        return limits.result(function(*args, **kwargs))

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
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
