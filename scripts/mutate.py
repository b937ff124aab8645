"""Small changes of a module that its tests should notice: mutants, each one named by its line and what was changed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
SILENT = ("logger", "print", "warnings")
"""Calls of these say something and change nothing."""


@dataclass(frozen=True)
class Mutant:
    """One change: the position of its node in the walk over the tree, the number of the change, and its description."""

    position: int
    change: int
    line: int
    what: str


def find_mutants(source: str) -> list[Mutant]:
    """Return every change of a module's code."""
    tree = ast.parse(source)
    skipped = _find_skipped(tree)
    return [
        Mutant(position, number, getattr(node, "lineno", 0), what)
        for position, node in enumerate(ast.walk(tree))
        if id(node) not in skipped
        for number, (what, _) in enumerate(_changes(node))
    ]


def apply_mutant(source: str, mutant: Mutant) -> ast.Module:
    """Return the tree of a module with one change made."""
    tree = ast.parse(source)
    for position, node in enumerate(ast.walk(tree)):
        if position == mutant.position:
            _, changed = list(_changes(node))[mutant.change]
            return ast.fix_missing_locations(_replace(tree, node, changed))
    raise ValueError(f"there is no node {mutant.position}")


def _replace(tree: ast.Module, old: ast.AST, new: ast.AST) -> ast.Module:
    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return ast.copy_location(new, old) if node is old else self.generic_visit(node)

    changed = Replacing().visit(tree)
    assert isinstance(changed, ast.Module)
    return changed


def _find_skipped(tree: ast.Module) -> set[int]:
    """Return the nodes whose change no test could see, or none should look at, such as annotations and messages."""
    return {id(inner) for node in ast.walk(tree) for root in _unseen(node) if root for inner in ast.walk(root)}


def _unseen(node: ast.AST) -> Sequence[ast.AST | None]:
    """Return the parts of a node that are not changed."""
    match node:
        case ast.AnnAssign() | ast.arg():
            return [node.annotation]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [node.returns, *node.decorator_list]
        case ast.ClassDef():
            return [*node.decorator_list, *node.bases]
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.FormattedValue() | ast.Assert():
            return [node]
        case ast.Expr() if _is_silent(node.value):
            return [node]
    return []


def _is_silent(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and called.id in SILENT


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.expr):
        yield from _expression_changes(node)
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "return None", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.If | ast.While):
        negated = copy.copy(node)
        negated.test = ast.UnaryOp(ast.Not(), node.test)
        yield "negated condition", negated
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield "removed call", ast.Pass()
    elif isinstance(node, ast.Raise):
        yield "removed raise", ast.Pass()


def _expression_changes(node: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            other = COMPARISONS[type(operator)]
            ops = [other() if number == place else op for number, op in enumerate(node.ops)]
            yield f"{type(operator).__name__} to {other.__name__}", ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"{type(node.op).__name__} to {type(other_op).__name__}", ast.BoolOp(other_op, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "removed not", node.operand
    elif isinstance(node, ast.IfExp):
        yield "swapped branches", ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_text(node):
        yield f"{type(node.op).__name__} changed", ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} to {not node.value}", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield f"{node.value} to {node.value + 1}", ast.Constant(node.value + 1)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str) for side in sides)
