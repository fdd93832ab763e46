"""The rules of form, checked node by node: permitted syntax, permitted names, and what a source may define."""

from __future__ import annotations

import ast
from typing import Any

from batos.guardian.name_uses import Uses
from batos.guardian.parsing import MODULES, Scope
from batos.guardian.policy import GuardianPolicy

#: Modules with functions that change what they are given.
MODULES_THAT_CHANGE = frozenset({"bisect", "heapq", "operator", "random"})
Def = ast.FunctionDef | ast.AsyncFunctionDef


class Forms(Uses):
    """Every fault of form, and what the source binds, imports, reads, writes and sends."""

    def __init__(self, policy: GuardianPolicy) -> None:
        super().__init__(policy)
        looks: dict[type[ast.AST], Any] = {
            ast.Name: self._name,
            ast.NamedExpr: self._walrus,
            ast.Nonlocal: self._nonlocal,
            ast.Global: self._nonlocal,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.Lambda: self._lambda,
            ast.Yield: self._yield,
            ast.YieldFrom: self._yield,
            ast.Await: self._await,
            ast.AsyncFor: self._async_for,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.MatchAs: self._capture,
            ast.MatchStar: self._capture,
            ast.MatchMapping: self._match_mapping,
            ast.MatchClass: self._match_class,
            ast.ExceptHandler: self._handler,
            ast.ClassDef: self._class,
            ast.Attribute: self._attribute,
            ast.Assign: self._assign,
            ast.AugAssign: self._augmented_assignment,
            ast.AnnAssign: self._annotated_assignment,
            ast.Call: self._call,
            ast.keyword: self._keyword,
            ast.Constant: self._constant,
            ast.Compare: self._compare,
            ast.Subscript: self._subscript,
            ast.If: self._if,
            ast.Expr: self._statement,
        }
        self.look = looks
        self._branches: dict[int, int] = {}

    def _name(self, node: ast.Name, scope: Scope, depth: int) -> None:
        if type(node.ctx) is ast.Store:
            self.bind(node.id, node, scope)
            self.texts.setdefault(node.id, []).append(None)
        elif node.id == self.policy.receiver:
            why = f"`{node.id}` is used as a value, so the audit cannot list the slots that it reads"
            self.fault(node, "receiver", why, f"write `{node.id}.<slot>` or `{node.id}.<selector>(...)` at each place")
        else:
            if node.id not in self.plain_names:
                self.name(node.id, node, "the name")
            scope.loads.append(node)
            if isinstance(node.ctx, ast.Del):
                scope.bound.add(node.id)

    def _walrus(self, node: ast.NamedExpr, scope: Scope, depth: int) -> None:
        self.bind(node.target.id, node.target, scope.function())
        self.texts.setdefault(node.target.id, []).append(None)
        self.todo.append((node.value, scope, depth))

    def _nonlocal(self, node: ast.Nonlocal | ast.Global, scope: Scope, depth: int) -> None:
        for name in node.names:
            self.name(name, node, "the name")
            if name == self.policy.receiver:
                self.fault(node, "receiver", f"`{name}` is the receiver and may not be bound again", "leave this out")
            scope.function().outward.add(name)

    def _import(self, node: ast.Import, scope: Scope, depth: int) -> None:
        for alias in node.names:
            if alias.name not in self.policy.modules:
                why = f"the module `{alias.name}` may not be imported"
                self.fault(node, "import", why, self._instead(alias.name))
            self._add_import(alias.asname or alias.name.partition(".")[0], (alias.name, ""), node, scope)
            self.may_change |= alias.name in MODULES_THAT_CHANGE

    def _import_from(self, node: ast.ImportFrom, scope: Scope, depth: int) -> None:
        names = self.policy.modules.get(node.module or "") if not node.level else None
        if names is None:
            why = f"the module `{'.' * node.level}{node.module or ''}` may not be imported"
            self.fault(node, "import", why, self._instead(node.module or ""))
        self.may_change |= node.module in MODULES_THAT_CHANGE
        for alias in node.names:
            if names is not None and alias.name not in names:
                why = f"`{alias.name}` may not be used from `{node.module}`"
                self.fault(node, "import", why, f"allowed: {', '.join(sorted(names))}")
            self.name(alias.name, node, "the name")
            self._add_import(alias.asname or alias.name, (node.module or "", alias.name), node, scope)

    def _instead(self, module: str) -> str:
        """Say what to write instead of a module that may not be imported."""
        return MODULES.get(module.partition(".")[0], f"allowed: {', '.join(sorted(self.policy.modules))}")

    def _add_import(self, name: str, found: tuple[str, str], node: ast.AST, scope: Scope) -> None:
        self.name(name, node, "the name")
        known = self.imports.setdefault(name, found)
        if known != found or name == self.policy.receiver:
            self.fault(node, "rebound", f"`{name}` names two things", "import each under its own name")

    def _function(self, node: Def, scope: Scope, depth: int) -> None:
        if scope.outer is not None:
            self.bind(node.name, node, scope)
        else:
            self.name(node.name, node, "the method", message=True)
            scope.outward.add(node.name)
        for one in node.decorator_list:
            self.fault(one, "decorator", "a decorator would run while the method is defined", "leave it out")
        inner = self.scope(node, scope)
        self._arguments(node.args, scope, inner, depth)
        if node.returns is not None:
            self.annotation(node.returns)
        self.push_all(node.decorator_list, scope, depth)
        self.push_all(reversed(node.body), inner, depth)

    def _lambda(self, node: ast.Lambda, scope: Scope, depth: int) -> None:
        inner = self.scope(node, scope)
        self._arguments(node.args, scope, inner, depth)
        self.todo.append((node.body, inner, depth))

    def _arguments(self, node: ast.arguments, scope: Scope, inner: Scope, depth: int) -> None:
        method = scope.outer is None
        given = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        for index, one in enumerate([*given, *(each for each in (node.vararg, node.kwarg) if each is not None)]):
            if method and index == 0 and one.arg == self.policy.receiver and one is not node.vararg:
                inner.bound.add(one.arg)
            else:
                self.bind(one.arg, one, inner)
            if one.annotation is not None:
                self.annotation(one.annotation)
        for default in (*node.defaults, *node.kw_defaults):
            if default is None:
                continue
            if not _is_constant(default) and (method or not (isinstance(default, ast.Name) or _is_empty(default))):
                why = "a default that is no constant runs while the function is defined"
                self.fault(default, "default", why, "use `None`, a number, a text or a tuple of them")
            self.todo.append((default, scope, depth))

    def _yield(self, node: ast.Yield | ast.YieldFrom, scope: Scope, depth: int) -> None:
        function = scope.function()
        function.generates = True
        outer = function.outer
        if outer is None or outer.outer is None:
            why = "a method returns plain data, and one with `yield` would return a generator"
            self.fault(node, "generator", why, "collect the values in a list and return the list")
        elif isinstance(function.node, ast.AsyncFunctionDef):
            self.fault(node, "generator", "there are no asynchronous generators", "collect the values in a list")
        elif isinstance(function.node, ast.Lambda) or scope is not function:
            self.fault(node, "generator", "`yield` is not in a local function", "write a local `def`")
        self.push(node, scope, depth)

    def _await(self, node: ast.Await, scope: Scope, depth: int) -> None:
        self._in_async(node, scope)
        self.todo.append((node.value, scope, depth))

    def _in_async(self, node: ast.AST, scope: Scope) -> None:
        if not isinstance(scope.function().node, ast.AsyncFunctionDef):
            self.fault(node, "async", "this is in a function that is not `async`", "write `async def`")

    def _async_for(self, node: ast.AsyncFor, scope: Scope, depth: int) -> None:
        self._in_async(node, scope)
        self._check_async_for(node.iter)
        self.push(node, scope, depth)

    def _check_async_for(self, node: ast.expr) -> None:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            why = "`async for` may only go over the answer to a message"
            self.fault(node, "async", why, "write `async for one in self.<selector>(...)`")

    def _comprehension(self, node: ast.AST, scope: Scope, depth: int) -> None:
        inner = self.scope(node, scope)
        for each in node.generators:  # type: ignore[attr-defined]  # the four kinds of comprehension
            if each.is_async:
                self._in_async(each.iter, scope)
                self._check_async_for(each.iter)
        self.push(node, inner, depth)

    def _if(self, node: ast.If, scope: Scope, depth: int) -> None:
        """Count the branches of an `if`, and correct the depth of an `elif`, which lies in the `if` before it."""
        length = self._branches.pop(id(node), 1)
        if length > self.policy.bounds.branches:
            self.fault(node, "bounds", f"an `if` has more than {length - 1} branches", "look it up in a dict")
        self.push_all((node.test, *node.body), scope, depth)
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            self._branches[id(node.orelse[0])] = length + 1
            depth -= 1
        self.push_all(node.orelse, scope, depth)

    def _capture(self, node: ast.MatchAs | ast.MatchStar, scope: Scope, depth: int) -> None:
        if node.name is not None:
            self.bind(node.name, node, scope)
        self.push(node, scope, depth)

    def _match_mapping(self, node: ast.MatchMapping, scope: Scope, depth: int) -> None:
        if node.rest is not None:
            self.bind(node.rest, node, scope)
        self.push(node, scope, depth)

    def _match_class(self, node: ast.MatchClass, scope: Scope, depth: int) -> None:
        plain = isinstance(node.cls, ast.Name) and node.cls.id in self.policy.pattern_classes
        if not plain or node.kwd_attrs or len(node.patterns) > 1:
            why = "a `case` may name a plain type with one pattern in it, and no attributes"
            self.fault(node, "pattern", why, f"allowed: {', '.join(sorted(self.policy.pattern_classes))}")
        for attribute in node.kwd_attrs:
            self.name(attribute, node, "the attribute")
        self.push(node, scope, depth)

    def _handler(self, node: ast.ExceptHandler, scope: Scope, depth: int) -> None:
        if node.name is not None:
            self.bind(node.name, node, scope)
        self.push(node, scope, depth)

    def _class(self, node: ast.ClassDef, scope: Scope, depth: int) -> None:
        """Check the parts of a class, so that all faults in it are reported. The class itself is refused as syntax."""
        self.bind(node.name, node, scope)
        inner = self.scope(node, scope)
        self.push_all((*node.bases, *node.keywords, *node.decorator_list), scope, depth)
        self.push_all(reversed(node.body), inner, depth)


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Tuple) and all(map(_is_constant, node.elts)))


def _is_empty(node: ast.expr) -> bool:
    """Test for `[]` or `{}`, which as a helper's default are made anew at each call of the method."""
    return (isinstance(node, ast.List) and not node.elts) or (isinstance(node, ast.Dict) and not node.keys)
