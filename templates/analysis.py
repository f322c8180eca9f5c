"""What a template's syntax tree says about the data it expects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from jinja2 import nodes

ArgumentForm = Literal["object", "text", "either"]


def iterates_over_content(tree: nodes.Template) -> bool:
    """Whether the template loops over a message's content, so that it takes a list of parts."""
    content = _Values(tree, "content")
    return any(content.includes(loop.iter) for loop in tree.find_all(nodes.For))


def argument_form(tree: nodes.Template) -> ArgumentForm:
    """In which form the template takes a tool call's arguments: as an object, only as JSON text, or as either.

    One that writes an object's members one by one, or somewhere makes JSON of it without looking, does better with the
    object, whatever else it takes; one that only adds the arguments to text fails with it.
    """
    arguments = _Values(tree, "arguments")
    if any(arguments.includes(_owner(loop.iter)) for loop in tree.find_all(nodes.For)):
        return "object"
    tests = {test.name for test in tree.find_all(nodes.Test) if arguments.includes(test.node)}
    if "string" in tests:
        return "either"
    added = any(arguments.includes(side) for add in tree.find_all(nodes.Add) for side in (add.left, add.right))
    written = any(arguments.includes(part) for joined in tree.find_all(nodes.Concat) for part in joined.nodes) or any(
        arguments.includes(part) for output in tree.find_all(nodes.Output) for part in output.nodes
    )
    if (added or written) and "mapping" in tests:
        return "either"
    if any(arguments.includes(made.node) for made in tree.find_all(nodes.Filter) if made.name == "tojson"):
        return "object"
    return "text" if added else "either" if written else "object"


def literals(tree: Iterable[nodes.Node]) -> frozenset[str]:
    """All text that a template itself holds, of its nodes."""
    return frozenset(
        node.data if isinstance(node, nodes.TemplateData) else node.value
        for node in tree
        if isinstance(node, nodes.TemplateData) or (isinstance(node, nodes.Const) and isinstance(node.value, str))
    )


def branches(tree: Iterable[nodes.Node]) -> tuple[int, int]:
    """How many conditional statements and how many names there are among a template's nodes."""
    found = list(tree)
    return sum(isinstance(n, nodes.If) for n in found), len({n.name for n in found if isinstance(n, nodes.Name)})


def _owner(members: nodes.Node) -> nodes.Node | None:
    """The object whose members an expression gives one by one."""
    match members:
        case (
            nodes.Call(node=nodes.Getattr(node=owner, attr="items"))
            | nodes.Filter(name="items" | "dictsort", node=owner)
        ):
            return owner
        case _:
            return None


_ROUNDS = 8  # of following names to other names; two find all in templates of real models


class _Values:
    """The expressions that stand for some object's field `key`, directly or through variables and macro parameters.

    Variables are told apart by name only, without their scopes. That finds all loops of a template and at worst one
    that is not over the field; vLLM's detection has the same limits.
    """

    def __init__(self, tree: nodes.Template, key: str) -> None:
        self._key = key
        self._names: set[str] = set()
        macros = {macro.name: macro for macro in tree.find_all(nodes.Macro)}
        for _ in range(_ROUNDS):
            size = len(self._names)
            for assign in tree.find_all(nodes.Assign):
                if isinstance(assign.target, nodes.Name) and self.includes(assign.node):
                    self._names.add(assign.target.name)
            for call in tree.find_all(nodes.Call):
                if isinstance(call.node, nodes.Name) and call.node.name in macros:
                    for parameter, argument in zip(macros[call.node.name].args, call.args, strict=False):
                        if self.includes(argument):
                            self._names.add(parameter.name)
            if len(self._names) == size:
                break

    def includes(self, node: nodes.Node | None) -> bool:
        match node:
            case nodes.Name():
                return node.name in self._names
            case nodes.Getattr():
                return node.attr == self._key
            case (
                nodes.Getitem(arg=nodes.Const(value=name))
                | nodes.Call(node=nodes.Getattr(attr="get"), args=[nodes.Const(value=name), *_])
            ):
                return bool(name == self._key)
            case (
                nodes.Getitem(arg=nodes.Slice())
                | nodes.Filter(name="trim" | "list" | "safe" | "default" | "selectattr")
            ):
                return self.includes(node.node)
            case nodes.CondExpr():
                return self.includes(node.expr1) or self.includes(node.expr2)
            case nodes.Or():
                return self.includes(node.left) or self.includes(node.right)
            case _:
                return False
