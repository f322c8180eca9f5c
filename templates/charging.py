"""A template's syntax tree with charges wherever the sandbox has no hook for them.

Loops, slices, `~`, literals and comparisons are compiled to Python's own; here each is sent through a filter of
`ChatEnvironment` that charges for it. What a constant bounds is left as it is, which is nearly every comparison.
"""

from __future__ import annotations

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

_NODES_A_STEP = 64  # of the body of a loop or macro, so that the clock is read often enough
_FEW = 32  # constants that are compared in no time
_SHORT = 256  # characters of such a constant


class Charging(NodeTransformer):
    """Changes a tree in place."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        cost = _cost(node)
        self.generic_visit(node)
        node.iter = filtered(node.iter, "counted", nodes.Const(cost, lineno=node.lineno))
        if node.recursive:
            node.body.insert(0, _spending(node, cost))
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Macro:
        cost = _cost(node)
        self.generic_visit(node)
        node.body.insert(0, _spending(node, cost))
        return node

    visit_CallBlock = visit_Block = visit_Macro

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return filtered(nodes.Tuple(node.nodes, "load", lineno=node.lineno), "concatenated")

    def visit_List(self, node: nodes.List) -> nodes.Expr:
        return self._made(node)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        return self._made(node) if node.ctx == "load" else node

    def visit_Dict(self, node: nodes.Dict) -> nodes.Expr:
        return self._made(node)

    def _made(self, node: nodes.List | nodes.Tuple | nodes.Dict) -> nodes.Expr:
        self.generic_visit(node)
        return filtered(node, "made") if node.items else node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        ends = (node.arg.start, node.arg.stop, node.arg.step)
        return filtered(node.node, "sliced", *(end or nodes.Const(None, lineno=node.lineno) for end in ends))

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        searching = any(operand.op in ("in", "notin") for operand in node.ops)
        bounded = any(_is_bounded(side) for side in (node.expr, *(operand.expr for operand in node.ops)))
        holders: tuple[nodes.Compare | nodes.Operand, ...] = (node, *node.ops)
        for holder in holders:
            if _is_bounded(holder.expr):
                continue
            holder.expr = self.visit(holder.expr)
            if searching and holder is not node:
                holder.expr = filtered(holder.expr, "searched")
            elif not bounded and not searching:
                holder.expr = filtered(holder.expr, "looked_through")
        return node


def filtered(value: nodes.Node, name: str, *arguments: nodes.Node) -> nodes.Filter:
    """The expression `value | name(*arguments)`."""
    return nodes.Filter(value, name, list(arguments), [], None, None, lineno=value.lineno)


def _spending(place: nodes.Node, cost: int) -> nodes.ExprStmt:
    return nodes.ExprStmt(filtered(nodes.Const(cost, lineno=place.lineno), "spent"), lineno=place.lineno)


def _cost(node: nodes.Node) -> int:
    return 1 + sum(1 for _ in node.find_all(nodes.Node)) // _NODES_A_STEP


def _is_bounded(node: nodes.Expr) -> bool:
    """Whether comparing anything with this takes no time: it is a short constant, or a few."""
    if isinstance(node, nodes.List | nodes.Tuple):
        return len(node.items) <= _FEW and all(isinstance(i, nodes.Const) and _is_bounded(i) for i in node.items)
    return isinstance(node, nodes.Const) and not (isinstance(node.value, str) and len(node.value) > _SHORT)
