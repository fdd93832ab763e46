"""Reads a source as it is commonly written: helpers, constants, records, `with` and `logging` become the dialect's."""

from __future__ import annotations

import ast

from batos.guardian.tidying import contexts, gathering, record_classes, speaking


def tidy(tree: ast.Module, selector: str, receiver: str) -> ast.Module:
    """Tidy a tree in place and return it; what has no equal in the dialect stays as it is, and is refused as such.

    Only for a source of which it is known which method is wanted: of two functions one may be the other's helper.
    Guardian and cell both read a source through this, so that what is judged is what runs.
    """
    method = gathering.find_method(tree, selector, receiver)
    if method is None:
        return tree
    kinds = {type(node) for node in ast.walk(tree)}
    if ast.Import in kinds or ast.ImportFrom in kinds:
        speaking.rewrite_logging(tree, receiver)
    if ast.ClassDef in kinds:
        record_classes.plain(tree, receiver)
    if ast.With in kinds:
        contexts.unfold(tree)
    if len(tree.body) > 1:
        gathering.gather(tree, method, receiver)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Pass)]
    return ast.fix_missing_locations(tree)
