"""Functions within the method: the values that flow into them when they are called, and the effect of a call."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from batos.guardian.covenant.abstract_values import CLEAN, DIRTY, PLAIN, SENDS, Function, State, Value, join
from batos.guardian.covenant.effects import Frame
from batos.guardian.covenant.expressions import Expressions


class Functions(Expressions):
    """Calls of the method's own functions and lambdas."""

    def run(self, body: Sequence[ast.stmt]) -> bool:
        """Follow statements; defined where they are followed."""
        raise NotImplementedError

    def enter(self, function: Function, given: list[Value], node: ast.AST, *, spread: bool = True) -> Value:
        """Call a function of the method and apply its effect here, unless the effect waits until it is awaited or
        iterated.
        """
        more = self._give(function, given, node, spread=spread)
        more = self.close(function) or more
        if function.busy:
            function.again = True
        elif more or function.seen != self.version:
            self.follow(function)
        effect = function.bits | (SENDS if function.sends else 0)
        if function.generates or isinstance(function.node, ast.AsyncFunctionDef):
            thing = self.container_at(node, function.yields if function.generates else function.result, part=4)
            thing.effect |= 0 if effect == CLEAN else effect
            if function.generates and thing.effect:
                self.apply(thing.effect, node)  # in the cell it runs to its end when it is called
            return frozenset((thing,))
        if function.wrote and self.frame.tries:
            failed = self.state.copy()
            failed.bits, failed.line = DIRTY, failed.line or getattr(node, "lineno", 0)
            self.frame.tries[-1] = join(self.frame.tries[-1], failed)
        self.apply(effect, node, getattr(function.node, "name", "a lambda"))
        for name, value in function.outward.items():
            self.assign(name, self.state.variables.get(name, PLAIN) | value)
        return function.result

    def _give(self, function: Function, given: list[Value], node: ast.AST, *, spread: bool) -> bool:
        """Pass arguments to parameters, one by one or (`spread`) all to all; return True if a value is new."""
        named: dict[str, Value] = {}
        everything = PLAIN.union(*given) if given else PLAIN
        call = node if isinstance(node, ast.Call) and not spread else None
        if call is None or any(isinstance(one, ast.Starred) for one in call.args) or function.node.args.vararg:
            named = dict.fromkeys(function.parameters, everything)
        else:
            named = dict(zip(function.parameters, given, strict=False))
            for keyword, value in zip(call.keywords, given[len(call.args) :], strict=False):
                if keyword.arg in function.parameters:
                    named[keyword.arg] = value
                else:
                    named = {name: named.get(name, PLAIN) | value for name in function.parameters}
        more = False
        for name, value in named.items():
            known = function.given.get(name, PLAIN)
            if not value <= known:
                function.given[name] = known | value
                more = True
        return more

    def follow(self, function: Function) -> None:
        """Follow a function's body from a clean path, until what is known of it no longer grows."""
        state, frame = self.state, self.frame
        function.busy = True
        for _ in range(8):
            function.again = False
            known = (function.result, function.yields, function.bits, function.sends, dict(function.outward))
            variables = dict(function.closure)
            for name in function.parameters:
                variables[name] = function.given.get(name, PLAIN) | self.fresh((function.node, name))
            self.state, self.frame = State(variables, CLEAN), Frame(function)
            self._body(function)
            function.sends = function.sends or self.frame.sends
            function.wrote = function.wrote or self.frame.wrote
            now = (function.result, function.yields, function.bits, function.sends, dict(function.outward))
            if not function.again or known == now:
                break
        function.busy = False
        function.seen = self.version
        self.state, self.frame = state, frame

    def _body(self, function: Function) -> None:
        node = function.node
        ends: list[State] = []
        if isinstance(node, ast.Lambda):
            function.result |= self.eval(node.body)
            ends.append(self.state)
        else:
            if self.run(node.body):
                ends.append(self.state)
            ends += [state for state, _ in self.frame.returns]
        outward = self.outward.get(node, frozenset())
        for end in ends:
            function.bits |= end.bits
            for name in outward:
                function.outward[name] = function.outward.get(name, PLAIN) | end.variables.get(name, PLAIN)
