"""Parse Python source into a syntax tree, one thread at a time."""

from __future__ import annotations

import ast
import threading
import warnings
from typing import Final

#: CPython 3.11 counts the depth of the tree that it builds in one place for all threads. Where a collection of garbage
#: runs Python code while a tree is built, another thread may build one too: SystemError, "AST constructor recursion
#: depth mismatch". The filters of warnings are of the whole process as well.
_ONE_AT_A_TIME: Final = threading.Lock()


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a module. Warnings about the source are silenced.

    Raises: SyntaxError: it is not Python. ValueError: it has a null character. MemoryError, RecursionError: it is
    nested too deep.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """Return the syntax tree of an expression; see `parse` for the errors."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, mode="eval").body
