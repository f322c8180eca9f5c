"""Steps of the package's Python code, bytes that it copies included: a count that depends on no clock.

The modules of the package are compiled with a call around each expression that makes a value: calls, sums, slices, displays,
comprehensions and formatted texts. It counts one step, and the length of the value if that is a text, bytes or a list that
the expression has made anew. So a text that is joined to another in a loop counts each time it is copied.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

SIZED = (str, bytes, bytearray, list, tuple)
MADE = (ast.Call, ast.BinOp, ast.JoinedStr, ast.ListComp, ast.SetComp, ast.DictComp, ast.List, ast.Dict, ast.Tuple)
STEP = "_counted_step"
KEPT = {
    ast.AnnAssign: ["annotation"],
    ast.arg: ["annotation"],
    ast.FunctionDef: ["returns", "decorator_list"],
    ast.AsyncFunctionDef: ["returns", "decorator_list"],
    ast.ClassDef: ["bases", "keywords", "decorator_list"],
    ast.match_case: ["pattern"],
    ast.JoinedStr: ["values"],
}
"""Parts of the tree that are no expressions to count."""


class Steps:
    """Counter of steps.

    Attributes:
        count: The steps so far, of all threads.

    """

    count = 0

    def __init__(self) -> None:
        self._last: Any = None
        self._references, self._new = 0, sys.maxsize
        self([])
        self._new = self._references  # of a value that nobody else has
        self.count = 0

    def __call__(self, value: Any) -> Any:
        """Count the expression that has made a value; return the value."""
        self.count += 1
        if isinstance(value, SIZED):
            self._references = sys.getrefcount(value)
            if self._references <= self._new and value is not self._last:  # functions pass on what they got
                self.count += len(value)
                self._last = value
        return value

    def add(self, before: Any, more: Any) -> Any:
        """Return `before + more`, in place if that is possible, and count what is copied."""
        if isinstance(before, str | bytes | tuple):
            return self(before + more)
        self.count += 1
        before += more
        return before


class _Counting(ast.NodeTransformer):
    """Puts calls of the counter round expressions; annotations, patterns, decorators and class bodies stay as they are."""

    def visit(self, node: ast.AST) -> Any:
        kept = {name: getattr(node, name) for name in KEPT.get(type(node), ())}
        for name, value in kept.items():
            setattr(node, name, [] if isinstance(value, list) else None)
        if isinstance(node, ast.ClassDef):
            self._visit_functions(node.body)
        else:
            self.generic_visit(node)
        for name, value in kept.items():
            setattr(node, name, value)
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and not isinstance(node.target, ast.Name):
            return self._assigned(node)
        made = isinstance(node, MADE) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice))
        return _counted(node) if made and isinstance(getattr(node, "ctx", ast.Load()), ast.Load) else node

    def _visit_functions(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.visit(statement)

    def _assigned(self, node: ast.AugAssign) -> ast.Assign:
        """Return `a.b = STEP.add(a.b, c)` for `a.b += c`. Python joins a text in place only if a local variable has it."""
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        add = ast.Attribute(ast.Name(STEP, ast.Load()), "add", ast.Load())
        return ast.copy_location(ast.Assign([node.target], ast.Call(add, [load, node.value], [])), node)


def _counted(node: Any) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(STEP, ast.Load()), [node], []), node)


class _Loader(SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree = ast.parse(data)
        _Counting()._visit_functions(tree.body)  # what a module does once counts nothing
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True, optimize=_optimize)

    def get_code(self, fullname: str) -> CodeType:  # none from a file of byte code
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder(MetaPathFinder):
    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self._packages):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def count_steps(*packages: str) -> Steps:
    """Return the counter of the steps of packages, which must not have been imported yet."""
    assert not [name for name in sys.modules if name.startswith(packages)]
    steps = Steps()
    setattr(builtins, STEP, steps)
    sys.meta_path.insert(0, _Finder(packages))
    return steps
