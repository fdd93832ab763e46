"""Reads a source as it is commonly written: helpers, constants, records, `with` and `logging` become the dialect's."""

from __future__ import annotations

import ast

from batos.guardian.tidying import contexts, gathering, record_classes, speaking


def tidied(tree: ast.Module, selector: str, receiver: str) -> ast.Module:
    """Tidy a tree in place and return it; what has no equal in the dialect stays as it is, and is refused as such.

    Only for a source of which it is known which method is wanted: of two functions one may be the other's helper.
    Guardian and cell both read a source through this, so that what is judged is what runs.
    """
    method = gathering.wanted(tree, selector, receiver)
    if method is None:
        return tree
    kinds = {type(node) for node in ast.walk(tree)}
    if ast.Import in kinds or ast.ImportFrom in kinds:
        speaking.spoken(tree, receiver)
    if ast.ClassDef in kinds:
        record_classes.plain(tree, receiver)
    if ast.With in kinds:
        contexts.unfolded(tree)
    if len(tree.body) > 1:
        gathering.gathered(tree, method, receiver)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Pass)]
    return ast.fix_missing_locations(tree)
