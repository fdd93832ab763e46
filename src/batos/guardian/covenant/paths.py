"""Branches, loops, `try` and functions within the method: splits paths, joins them again, and keeps their states."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from batos.guardian.covenant.abstract_values import (
    CLEAN,
    DIRTY,
    PLAIN,
    SENDS,
    Function,
    State,
    Value,
    elements,
    join,
    reachable,
)
from batos.guardian.covenant.effects import Frame
from batos.guardian.covenant.expressions import Expressions
from batos.guardian.forms import Forms
from batos.guardian.policy import GuardianPolicy


class Functions(Expressions):
    """Calls of the method's own functions and lambdas."""

    def run(self, body: Sequence[ast.stmt]) -> bool:
        """Follow statements; defined where they are followed."""
        raise NotImplementedError

    def enter(self, function: Function, given: list[Value], node: ast.AST, *, spread: bool = True) -> Value:
        """Call a function of the method and apply its effect here, unless it waits until it is awaited or iterated."""
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


class Paths(Functions):
    """Statements that hold others; each says whether what follows it can be reached."""

    def __init__(self, policy: GuardianPolicy, forms: Forms) -> None:
        super().__init__(policy, forms)
        self.heads: dict[ast.AST, State] = {}

    def _ends(self, ends: list[State | None]) -> bool:
        met: State | None = None
        for one in ends:
            met = join(met, one)
        if met is None:
            return False
        self.state = met
        return True

    def _branch(self, body: Sequence[ast.stmt], start: State) -> State | None:
        self.state = start
        return self.state if self.run(body) else None

    def _if(self, node: ast.If) -> bool:
        ends: list[State | None] = []
        while True:
            self.eval(node.test)
            otherwise = self.state.copy()
            ends.append(self._branch(node.body, self.state))
            self.state = otherwise
            rest = node.orelse
            if len(rest) == 1 and isinstance(rest[0], ast.If):
                node = rest[0]
                continue
            ends.append(self._branch(rest, otherwise))
            return self._ends(ends)

    def _match(self, node: ast.Match) -> bool:
        subject = self.eval(node.subject)
        ends: list[State | None] = []
        for case in node.cases:
            missed = self.state.copy()
            self._captures(case.pattern, subject, nested=False)
            if case.guard is not None:
                self.eval(case.guard)
                met = join(missed, self.state.copy())
                missed = met if met is not None else missed
            ends.append(self._branch(case.body, self.state))
            self.state = missed
            if case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None:
                return self._ends(ends)
        ends.append(self.state)
        return self._ends(ends)

    def _captures(self, pattern: ast.pattern, subject: Value, *, nested: bool) -> None:
        value = reachable(subject) if nested else subject
        if isinstance(pattern, ast.MatchAs | ast.MatchStar) and pattern.name is not None:
            self.assign(pattern.name, value)
        if isinstance(pattern, ast.MatchMapping) and pattern.rest is not None:
            self.assign(pattern.rest, self.container(pattern, reachable(subject)))
        for child in ast.iter_child_nodes(pattern):
            if isinstance(child, ast.pattern):
                self._captures(child, subject, nested=nested or not isinstance(pattern, ast.MatchAs | ast.MatchOr))
            elif isinstance(child, ast.expr):
                self.eval(child)

    def _while(self, node: ast.While) -> bool:
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)

        def head() -> State | None:
            self.eval(node.test)
            return None if endless else self.state.copy()

        return self._loop(node, head)

    def _for(self, node: ast.For | ast.AsyncFor) -> bool:
        self.last = node.iter
        value = self.eval(node.iter)
        effects = 0
        if isinstance(node, ast.AsyncFor):
            for thing in value:
                effects |= thing.effect
            value = elements(value)

        def head() -> State | None:
            self.apply(effects, node.iter, "what is iterated")
            given = self.iterate(value, node.iter)
            left = self.state.copy()
            self.bind(node.target, given, node)
            return left

        return self._loop(node, head)

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, head: Callable[[], State | None]) -> bool:
        """Follow a loop until another round adds nothing; `head` is what happens before each round."""
        frame, entry = self.frame, self.state
        while True:
            met = join(entry.copy(), self.heads.get(node))
            start = met if met is not None else entry
            self.heads[node] = start.copy()
            version = self.version
            frame.breaks.append(None)
            frame.continues.append(None)
            self.state = start.copy()
            self.may_raise()
            left = head()
            live = self.run(node.body)
            broken, back = frame.breaks.pop(), frame.continues.pop()
            if live:
                back = join(back, self.state)
            if back is None or (start.covers(back) and version == self.version):
                break
            again = join(start, back)
            if again is not None:
                self.heads[node] = again
        if left is not None:
            self.state = left
            left = self.state if self.run(node.orelse) else None
        return self._ends([left, broken])

    def _break(self, node: ast.Break) -> bool:
        if self.frame.breaks:
            self.frame.breaks[-1] = join(self.frame.breaks[-1], self.state.copy())
        return False

    def _continue(self, node: ast.Continue) -> bool:
        if self.frame.continues:
            self.frame.continues[-1] = join(self.frame.continues[-1], self.state.copy())
        return False

    def _try(self, node: ast.Try) -> bool:
        frame = self.frame
        outer_break, outer_continue = frame.breaks[-1:], frame.continues[-1:]
        if node.finalbody and frame.breaks:
            frame.breaks[-1] = frame.continues[-1] = None
        first = len(frame.returns)
        frame.tries.append(self.state.copy())
        ended = self._branch(node.body, self.state)
        caught = frame.tries.pop() or self.state
        frame.tries.append(caught.copy())
        ends: list[State | None] = [None]
        if ended is not None:
            ends[0] = self._branch(node.orelse, ended)
        for handler in node.handlers:
            start = caught.copy()
            if handler.name is not None:
                start.variables.pop(handler.name, None)
                if self.raised:
                    start.variables[handler.name] = self.fresh(handler, self.raised)
            self.state = start
            if handler.type is not None:
                self.eval(handler.type)
            ends.append(self._branch(handler.body, start))
        raised = frame.tries.pop()
        if node.finalbody:
            return self._finally(node, ends, raised, first, (outer_break, outer_continue))
        if raised is not None and frame.tries:
            frame.tries[-1] = join(frame.tries[-1], raised)
        return self._ends(ends)

    def _finally(
        self,
        node: ast.Try,
        ends: list[State | None],
        raised: State | None,
        first: int,
        outer: tuple[list[State | None], list[State | None]],
    ) -> bool:
        """Follow every way out of a `try` through its `finally`: its end, an exception and jumps."""
        frame = self.frame
        returns = frame.returns[first:]
        del frame.returns[first:]
        if raised is not None:
            out = self._branch(node.finalbody, raised)
            if out is not None and frame.tries:
                frame.tries[-1] = join(frame.tries[-1], out)
        for state, statement in returns:
            out = self._branch(node.finalbody, state)
            if out is not None:
                frame.returns.append((out, statement))
        for jumps, before in ((frame.breaks, outer[0]), (frame.continues, outer[1])):
            if jumps and before:
                jumped, jumps[-1] = jumps[-1], before[0]
                out = self._branch(node.finalbody, jumped) if jumped is not None else None
                jumps[-1] = join(jumps[-1], out)
        return self._ends(ends) and self.run(node.finalbody)
