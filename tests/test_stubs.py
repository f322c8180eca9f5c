"""The stubs declare what the compiled modules have: the same names, and parameters in the same order.

mypy's stubtest does not take nanobind's functions for functions; they tell their signatures themselves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tokenweir.encode import _core
from tokenweir.templates import _native

TREES = {
    module: ast.parse(Path(module.__file__).with_name(f"{module.__name__.rpartition('.')[2]}.pyi").read_text("utf-8"))
    for module in (_core, _native)
}
CLASSES = [(module, node) for module, tree in TREES.items() for node in tree.body if isinstance(node, ast.ClassDef)]
MIXINS = {"get", "items", "keys", "values"}
OPENING, CLOSING = "([{", ")]}"


def signature_parameters(signature: str) -> list[str]:
    """The names of the parameters of `def name(a: T, b: T = ...) -> R`; "" for one without a name."""
    begin, depth, parts = signature.index("(") + 1, 0, [""]
    for character in signature[begin:]:
        if character in CLOSING and not depth:
            break
        depth += (character in OPENING) - (character in CLOSING)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    names = [re.split(r"[:=]", part)[0].strip() for part in parts]
    return ["" if re.fullmatch(r"arg\d*", name) else name for name in names if name not in ("", "/", "*")]


def declared_parameters(function: ast.FunctionDef) -> list[str]:
    given = function.args
    names = [argument.arg for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    return [*names, f"*{given.vararg.arg}"] if given.vararg else names


def functions_of(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    return (node for node in body if isinstance(node, ast.FunctionDef))


def check_parameters(function: ast.FunctionDef, found: object) -> None:
    signatures = getattr(found, "__nb_signature__", None)
    if signatures is None:  # a slot of Python, or a method that is no nanobind function
        return
    declared = declared_parameters(function)
    overloads = [signature_parameters(one[0]) for one in signatures]
    fits = any(
        len(names) == len(declared) and all(a in ("", b) for a, b in zip(names, declared, strict=True))
        for names in overloads
    )
    assert fits, f"line {function.lineno}: {function.name}({', '.join(declared)}) is {overloads}"


def members_of(node: ast.ClassDef) -> set[str]:
    names = {target.target.id for target in node.body if isinstance(target, ast.AnnAssign)}
    names |= {name.id for one in node.body if isinstance(one, ast.Assign) for name in one.targets}
    is_mapping = any(ast.unparse(base).startswith("Mapping") for base in node.bases)
    return names | {function.name for function in functions_of(node.body)} | (MIXINS if is_mapping else set())


@pytest.mark.parametrize(("module", "tree"), TREES.items())
def test_the_module_has_the_declared_names_only(module, tree):
    declared = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    declared |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    present = {name for name in vars(module) if not name.startswith("_")}
    assert {name for name in declared if not name.startswith("_")} == present


@pytest.mark.parametrize(("module", "tree"), TREES.items())
def test_functions(module, tree):
    for function in functions_of(tree.body):
        check_parameters(function, getattr(module, function.name))


@pytest.mark.parametrize(("module", "node"), CLASSES, ids=lambda value: getattr(value, "name", ""))
def test_classes(module, node):
    made = getattr(module, node.name)
    public = {member for member in vars(made) if not member.startswith(("_", "@"))}
    assert {member for member in members_of(node) if not member.startswith("_")} == public
    for function in functions_of(node.body):
        found = vars(made).get(function.name)
        is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in function.decorator_list)
        assert is_property == isinstance(found, property), f"line {function.lineno}: {function.name}"
        check_parameters(function, found)
    for attribute in (one for one in node.body if isinstance(one, ast.AnnAssign)):
        found = vars(made).get(attribute.target.id)
        is_final = ast.unparse(attribute.annotation).startswith("Final[")
        read_only = isinstance(found, property) and not found.fset
        assert is_final == read_only, f"line {attribute.lineno}: {'not ' if is_final else ''}read only"
