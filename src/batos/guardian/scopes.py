"""Where names are bound and where they are loaded: a name that is neither bound nor a known builtin is refused."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Scope:
    """One function, lambda, comprehension or the module: the names that it binds, and those that it looks up."""

    node: ast.AST
    outer: Scope | None = None
    bound: set[str] = field(default_factory=set)
    loads: list[ast.Name] = field(default_factory=list)
    outward: set[str] = field(default_factory=set)
    generates: bool = False

    @property
    def is_function(self) -> bool:
        """Whether `return` and `:=` belong to it."""
        return isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module)

    def function(self) -> Scope:
        """The function that a `:=` or a `yield` in it belongs to."""
        scope = self
        while not scope.is_function and scope.outer is not None:
            scope = scope.outer
        return scope

    def sees(self, name: str) -> bool:
        """Whether a name is bound here or in a scope around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bound:
                return True
            scope = scope.outer
        return False
