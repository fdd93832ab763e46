"""Scopes: finds where names are bound and loaded. A name that is neither bound nor a known builtin is refused."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Scope:
    """A function, lambda, comprehension or the module, with the names that it binds and those that it loads."""

    node: ast.AST
    outer: Scope | None = None
    bound: set[str] = field(default_factory=set)
    loads: list[ast.Name] = field(default_factory=list)
    outward: set[str] = field(default_factory=set)
    generates: bool = False

    @property
    def is_function(self) -> bool:
        """Test if `return` and `:=` belong to this scope."""
        return isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module)

    def function(self) -> Scope:
        """Return the innermost function around this scope, to which a `:=` or a `yield` in it belongs."""
        scope = self
        while not scope.is_function and scope.outer is not None:
            scope = scope.outer
        return scope

    def sees(self, name: str) -> bool:
        """Test if a name is bound in this scope or in one around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bound:
                return True
            scope = scope.outer
        return False
