"""Uses: finds the slots, messages, module members, builtins and format texts that a source uses."""

from __future__ import annotations

import ast
import math
import re
import string
from typing import Final

from batos.guardian import parsing
from batos.guardian.parsing import ALLOWED, MISSING, Scope, Walk

_FORMATTER: Final = string.Formatter()
#: An annotation in quotes.
_TYPE_TEXT: Final = re.compile(r"[A-Za-z\[\], |]{1,80}")
_TYPE_WORD: Final = re.compile(r"[A-Za-z]+")
#: Their results hold nothing of what `key` gives, so that it may be a `get` of a dict.
_KEYED: Final = frozenset({"max", "min", "sorted"})


class Uses(Walk):
    """Attributes, calls and constants, and the names that are looked up."""

    def _attribute(self, node: ast.Attribute, scope: Scope, depth: int) -> None:
        base = node.value
        if isinstance(base, ast.Name) and base.id == self.policy.receiver:
            self._slot(node)
            return
        self.name(node.attr, node, "the attribute")
        self.may_change |= node.attr in self.policy.mutators
        if isinstance(base, ast.Name):
            self.members.append((node, None))
            scope.loads.append(base)
            self.name(base.id, base, "the name")
        else:
            self.todo.append((base, scope, depth))
        if node.attr in self.policy.mutators:
            self.handed_on.append(node)
        if node.attr == "format":
            self.fault(node, "format", "`format` is used without a call", "use an f-string")
        if not isinstance(node.ctx, ast.Load):
            why = f"`.{node.attr}` of another object is changed"
            self.fault(node, "foreign-write", why, "send that object a message that asks for the change")

    def _slot(self, node: ast.Attribute) -> None:
        name = node.attr
        if name == self.policy.marker:
            why = "the marker is only for its own statement"
            self.fault(node, "marker", why, f"write `self.{name} = True` as a statement of its own, and nothing else")
            return
        self.name(name, node, "the slot")
        kind = type(node.ctx)
        used = self.writes if kind is ast.Store else self.deletes if kind is ast.Del else self.reads
        self.may_change |= kind is not ast.Load
        if kind is not ast.Load:
            self._check_write(name, node)
        used.add(name)

    def _check_write(self, name: str, node: ast.AST) -> None:
        if name in self.policy.kernel_slots:
            self.faults.append(parsing.kernels(name, node))

    def _subscript(self, node: ast.Subscript, scope: Scope, depth: int) -> None:
        if type(node.ctx) is not ast.Load:
            self.may_change = True
        self.todo += ((node.value, scope, depth), (node.slice, scope, depth))

    def _assign(self, node: ast.Assign, scope: Scope, depth: int) -> None:
        target = node.targets[0]
        marked = isinstance(target, ast.Attribute) and target.attr == self.policy.marker and len(node.targets) == 1
        if (
            marked
            and isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == self.policy.receiver
            and isinstance(node.value, ast.Constant)
            and node.value.value is True
        ):
            return
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            self.bind(target.id, target, scope)
            self.texts.setdefault(target.id, []).append(node.value)
            self.todo.append((node.value, scope, depth))
            return
        self.push(node, scope, depth)

    def _augmented_assignment(self, node: ast.AugAssign, scope: Scope, depth: int) -> None:
        target = node.target
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if target.value.id == self.policy.receiver and target.attr != self.policy.marker:
                self.reads.add(target.attr)
        elif isinstance(target, ast.Name):
            scope.loads.append(target)
            self.may_change |= isinstance(node.op, ast.Mult) or not isinstance(node.value, ast.Constant)
        self.push(node, scope, depth)

    def annotation(self, node: ast.expr) -> None:
        """Check that an annotation consists of type names and brackets. The cell never evaluates one."""
        words = self.policy.annotations
        todo: list[ast.expr] = [node]
        while todo:
            one = todo.pop()
            if isinstance(one, ast.Subscript):
                todo += (one.value, one.slice)
            elif isinstance(one, ast.Tuple | ast.List):
                todo += one.elts
            elif isinstance(one, ast.BinOp) and isinstance(one.op, ast.BitOr):
                todo += (one.left, one.right)
            elif not _is_type_word(one, words):
                self.fault(one, "annotation", "an annotation may only name types", "leave it out")

    def _statement(self, node: ast.Expr, scope: Scope, depth: int) -> None:
        """Refuse a primitive whose answer is dropped: its author forgot to await it, or pays for something unused."""
        call = node.value
        called = call.func if isinstance(call, ast.Call) else None
        to_self = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)
        selector = called.attr if isinstance(called, ast.Attribute) and to_self else ""
        if selector in self.policy.primitives - {"log_"}:
            why = f"`{selector}` is sent and its answer neither awaited nor used"
            self.fault(node, "async", why, f"write `answer = await self.{selector}(...)`")
        self.todo.append((call, scope, depth))

    def _annotated_assignment(self, node: ast.AnnAssign, scope: Scope, depth: int) -> None:
        self.annotation(node.annotation)
        if node.value is None and not isinstance(node.target, ast.Name):
            self.fault(node, "annotation", "this annotates a slot and gives it no value", "give it a value")
        self.push_all((node.target, node.value), scope, depth)

    def _call(self, node: ast.Call, scope: Scope, depth: int) -> None:
        called = node.func
        if isinstance(called, ast.Attribute):
            self._called_attribute(node, called, scope, depth)
        elif isinstance(called, ast.Name) and called.id in self.policy.called_only:
            self.called.append((node, scope, False))
            if self._by_name(node, called, scope, depth):
                return
        else:
            self.todo.append((called, scope, depth))
            if isinstance(called, ast.Name):
                self._call_by_name(node, called.id)
        self.push_all((*node.args, *node.keywords), scope, depth)

    def _call_by_name(self, node: ast.Call, name: str) -> None:
        if name in ("map", "filter", "reduce", "partial") and node.args:
            self.handed_on.append(node.args[0])
        elif name in _KEYED:
            self.keys.update((id(one.value), name) for one in node.keywords if one.arg == "key")
        elif name in self.policy.exceptions and (len(node.args) > 1 or node.keywords):
            why = f"`{name}` has more than one argument"
            self.fault(node, "exception", why, 'give it one text: ValueError(f"{name}: {value}")')

    def _called_attribute(self, node: ast.Call, called: ast.Attribute, scope: Scope, depth: int) -> None:
        base, name = called.value, called.attr
        self._capability(node, base, name)
        if isinstance(base, ast.Name) and base.id == self.policy.receiver:
            self._selector(name, called, to_self=True)
            return
        self.name(name, called, "the method")
        self.may_change |= name in self.policy.mutators
        if name == "format":
            self.formats.append((node, called))
        if isinstance(base, ast.Name):
            self.members.append((called, node))
            self.name(base.id, base, "the name")
            scope.loads.append(base)
            return
        if name not in self.policy.plain_methods and not isinstance(base, ast.Constant | ast.JoinedStr):
            self.members.append((called, node))
        self.todo.append((base, scope, depth))

    def _selector(self, name: str, node: ast.AST, *, to_self: bool = False) -> None:
        """Check a message to the receiver (`to_self`) or to another object."""
        self.name(name, node, "the selector", message=to_self)
        if self.policy.kernel_pattern.search(name):
            why = f"`{name}` makes, changes or approves methods: only people and the kernel send it"
            self.fault(node, "kernel-selector", why, "leave it to a person")
        self.sends.add(name)

    def _capability(self, node: ast.Call, base: ast.expr, name: str) -> None:
        """List the grant or the made object that a message reaches for; the name of a grant is a literal text."""
        if isinstance(base, ast.Attribute) and isinstance(base.value, ast.Attribute) and base.value.attr == "tools":
            self.capabilities.add(base.attr)
        if name != "capability_":
            return
        given = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            self.capabilities.add(given.value)
        else:
            why = "the name of the grant is not a literal text, so the audit cannot list it"
            self.fault(node, "computed-name", why, 'write `await self.capability_("name")`')

    def _by_name(self, node: ast.Call, called: ast.Name, scope: Scope, depth: int) -> bool:
        """Check `getattr(x, "name")` and its kin; return True if this function queued the remaining arguments."""
        if called.id == "type":
            scope.loads.append(called)
            return False
        least, most = {"getattr": (2, 3), "setattr": (3, 3)}.get(called.id, (2, 2))
        text = node.args[1] if len(node.args) > 1 else None
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str) or node.keywords or not (
            least <= len(node.args) <= most
        ):  # fmt: skip
            why = f"the name in `{called.id}` is not a literal text, so the audit cannot list it"
            self.fault(node, "computed-name", why, f'write `{called.id}(self, "name")`, or use a dict in a slot')
            return False
        if not text.value.isidentifier() or not text.value.isascii():
            self.fault(text, "protected", "this text is not the name of a slot", "write a name of ASCII letters")
        self._slot_by_name(node, called.id, text, scope, depth)
        self.push_all(node.args[2:], scope, depth)
        return True

    def _slot_by_name(self, node: ast.Call, called: str, text: ast.Constant, scope: Scope, depth: int) -> None:
        name, owner = str(text.value), node.args[0]
        receiver = isinstance(owner, ast.Name) and owner.id == self.policy.receiver
        if name == self.policy.marker and receiver:
            self.fault(node, "marker", "the marker is set by its statement only", "write `self._p_changed = True`")
            return
        self.name(name, text, "the slot")
        if name == "format":
            self.fault(text, "format", "`format` is used without a call", "use an f-string")
        if receiver:
            if called in ("setattr", "delattr"):
                self.may_change = True
                self._check_write(name, node)
            {"setattr": self.writes, "delattr": self.deletes}.get(called, self.reads).add(name)
            return
        if called == "getattr" and name in self.policy.plain_methods:
            self.may_change = True
            why = f"the method `{name}` is used without a call"
            self.fault(text, "bound-method", why, f"write `value.{name}(...)` where it is called")
        if called in ("setattr", "delattr"):
            why = f"`.{name}` of another object is changed"
            self.fault(node, "foreign-write", why, "send that object a message that asks for the change")
        self.todo.append((owner, scope, depth))

    def _check_bound_method(self, node: ast.expr | None) -> None:
        """Refuse a bound method where a function is wanted: in the cell it exists only where it is called."""
        if not isinstance(node, ast.Attribute) or node.attr not in self.policy.plain_methods:
            return
        base = node.value
        if node.attr == "get" and self.keys.get(id(node), self.policy.receiver) not in self.bound:
            return  # max(scores, key=scores.get)
        of_module = isinstance(base, ast.Name) and base.id in self.imports
        of_type = isinstance(base, ast.Name) and base.id in self.policy.functions and base.id not in self.bound
        if not (of_module or of_type or self._is_of_module(base)):
            why = f"the method `{node.attr}` is passed on without a call"
            self.fault(node, "bound-method", why, f"write `lambda value: ....{node.attr}(value)`")

    def _keyword(self, node: ast.keyword, scope: Scope, depth: int) -> None:
        if node.arg is not None:
            self.name(node.arg, node.value, "the keyword")
        if node.arg == "key":
            self.handed_on.append(node.value)
        self.todo.append((node.value, scope, depth))

    def _constant(self, node: ast.Constant, scope: Scope, depth: int) -> None:
        value = node.value
        if isinstance(value, str):
            if not value.isascii() and any("\ud800" <= one <= "\udfff" for one in value):
                self.fault(node, "literal", "the text contains half of a surrogate pair", "leave it out")
        elif isinstance(value, int):
            if value.bit_length() > self.policy.bounds.integer_digits * 10 // 3:
                self.fault(node, "bounds", "the number is too long", "compute it from shorter numbers")
        elif value is not None and not (isinstance(value, float) and math.isfinite(value)):
            what = "`...`" if value is ... else f"a literal of type {type(value).__name__}"
            self.fault(node, "literal", f"{what} is not plain data", "use texts, finite numbers, True, False, None")

    # -- when everything has been seen

    def resolve(self) -> None:
        """Check everything that needs all names of the source, after the whole tree was walked."""
        self.bound = frozenset().union(*(scope.bound for scope in self.scopes))
        for name in sorted(self.bound & set(self.imports)):
            for node in self.binds.get(name, ()):
                self.fault(node, "rebound", f"`{name}` is imported and may not be bound again", "use another name")
        for attribute, call in self.members:
            self._member(attribute, call)
        for call, _, _ in self.called:
            self._checked_type(call)
        for taken in self.handed_on:
            self._check_bound_method(taken)
        for call, attribute in self.formats:
            self._format(call, attribute)
        members = {id(attribute.value) for attribute, _ in self.members}
        types = {id(call.func) for call, _, _ in self.called}
        for scope in self.scopes:
            for node in scope.loads:
                self._load(node, scope, member=id(node) in members, typed=id(node) in types)

    def _load(self, node: ast.Name, scope: Scope, *, member: bool, typed: bool) -> None:
        name = node.id
        if name == self.policy.receiver or scope.sees(name):
            return
        found = self.imports.get(name)
        if found is not None:
            if not found[1] and not member:
                why = f"the module `{name}` is used as a value"
                self.fault(node, "module-value", why, f"write `{name}.<name>` at each place")
        elif name in self.policy.builtins:
            if name in self.policy.called_only and not typed:
                why = f"`{name}` is passed on as a value, so the audit cannot list its arguments"
                self.fault(node, "called-only", why, "call it here")
        elif not self.policy.protected_pattern.search(name):
            why = f"the name `{name}` is not defined in the method and is not an allowed builtin"
            self.fault(node, "unknown-name", why, self._remedy_for(name))

    def _remedy_for(self, name: str) -> str:
        """Say what to do about a name that is bound nowhere: the method's own is a message, a function's is not."""
        if name == self.method:
            return f"send it as a message, `self.{name}(...)`"
        if name in self.scopes[0].outward | self.scopes[0].bound:
            return f"move the definition of `{name}` into `{self.method}`, before its first use"
        return MISSING.get(name, ALLOWED)

    def _member(self, node: ast.Attribute, call: ast.Call | None) -> None:
        """Check `json.loads`, `str.upper`, `child.answer_(...)` or `child.name` by the kind of its base."""
        base, name = node.value, node.attr
        if isinstance(base, ast.Name) and base.id in self.imports:
            module, taken = self.imports[base.id]
            names = self.policy.modules.get(module)
            if not taken and names is not None and name not in names:
                why = f"`{name}` may not be used from `{module}`"
                self.fault(node, "import", why, f"allowed: {', '.join(sorted(names))}")
        elif isinstance(base, ast.Name) and base.id in self.policy.functions and base.id not in self.bound:
            if name not in self.policy.unbound.get(base.id, frozenset()):
                why = f"`{base.id}.{name}` is used on a type"
                self.fault(node, "unbound", why, f"call it on a value, or write `lambda value: value.{name}()`")
        elif call is not None and name not in self.policy.plain_methods and not self._is_of_module(base):
            self._selector(name, node)

    def _is_of_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.imports

    def _compare(self, node: ast.Compare, scope: Scope, depth: int) -> None:
        for one in (node.left, *node.comparators):
            if isinstance(one, ast.Call) and len(one.args) == 1 and not one.keywords:
                self.compared.add(id(one))
        self.push(node, scope, depth)

    def _checked_type(self, call: ast.Call) -> None:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name == "type" and name not in self.bound and id(call) not in self.compared:
            self.fault(call, "type", "`type` is only for a comparison", "write `type(x) is str`, or `isinstance`")

    def _format(self, call: ast.Call, attribute: ast.Attribute) -> None:
        """Check that `.format` is called on a text in the source with plain fields; others reach into arguments."""
        text: ast.expr | None = attribute.value
        if isinstance(text, ast.Name) and len(self.binds.get(text.id, ())) == 1:
            given = self.texts.get(text.id, [])
            text = given[0] if len(given) == 1 else None
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
            why = "the format string is not a literal text"
            self.fault(call, "format", why, "use an f-string, or `replace`")
            return
        why = _bad_field(text.value)
        if why:
            self.fault(call, "format", why, "name the fields only: {}, {0}, {key:>8}; or use an f-string")


def _bad_field(text: str, depth: int = 0) -> str:
    """Return the reason why a format text is refused, or an empty text."""
    if depth > 2:
        return "the fields of the format string are nested too deeply"
    try:
        for _, name, spec, _ in _FORMATTER.parse(text):
            if name and not (name.isascii() and (name.isdigit() or (name.isidentifier() and name[0] != "_"))):
                return f"the field {name!r} reads a part of its value"
            inner = _bad_field(spec, depth + 1) if spec else ""
            if inner:
                return inner
    except ValueError as error:
        return f"the format cannot be read: {error}"
    return ""


def _is_type_word(node: ast.expr, words: frozenset[str]) -> bool:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):  # `"dict[str, int | None]"`: nothing but words and brackets
            said = _TYPE_TEXT.fullmatch(node.value) is not None
            return said and all(one in words or one == "None" for one in _TYPE_WORD.findall(node.value))
        return node.value is None or node.value is ...
    name = node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
    return name in words or (isinstance(node, ast.Name) and node.id in words)
