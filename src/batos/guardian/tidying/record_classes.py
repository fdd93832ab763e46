"""Classes without behaviour become what they hold: a function that makes a dict, or a dict of constants."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Final

from batos.guardian.tidying import marking

#: Options of `dataclass` under which a dict is as good.
_OPTIONS: Final = frozenset({"frozen", "slots", "eq", "repr", "kw_only", "init", "unsafe_hash"})
#: Ask an object for a name, which a dict does not have.
_ASKS: Final = frozenset({"delattr", "getattr", "hasattr", "setattr", "vars"})
_EXCEPTIONS: Final = frozenset({
    "ArithmeticError", "AssertionError", "Exception", "IndexError", "KeyError", "LookupError", "RuntimeError",
    "TypeError", "ValueError",
})  # fmt: skip


@dataclass(slots=True)
class _Record:
    """A class that can be written as data: its node, its fields in order, and the function that makes one."""

    node: ast.ClassDef
    fields: dict[str, ast.expr | None]
    maker: ast.FunctionDef | None = None
    error: str = ""
    #: A value of it is made once for all in Python, and would be made for each.
    is_shared: bool = False


@dataclass(slots=True)
class _Modules:
    """The names that a source imports from the modules that make records."""

    made: dict[str, str]
    typed: dict[str, str]
    modules: set[str] = field(default_factory=set)


def plain(tree: ast.Module, receiver: str) -> None:
    """Rewrite every class that only holds data, if all its uses can be; any other stays, and is refused."""
    known = _Modules(marking.imported_names(tree, "dataclasses"), marking.imported_names(tree, "typing"))
    known.modules = {
        each.asname or each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names
    }
    records: dict[str, _Record] = {}
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        record = _read(node, known)
        if record is None or node.name in records:
            return
        records[node.name] = record
    uses = _Uses(tree, records, known)
    if not uses.is_understood() or any(each.is_shared and name not in uses.spaces for name, each in records.items()):
        return
    fields = {name for record in records.values() for name in record.fields}
    if any(not record.fields and not record.error for record in records.values()):
        fields |= _attributes_set(tree, receiver)
    _RecordRewriting(records, fields, known, receiver).visit(tree)
    for block in marking.blocks(tree):
        block[:] = [new for node in block for new in _replacement(node, records, uses)]
    marking.unimport(tree, "dataclasses")
    marking.unimport(tree, "typing", only="TypedDict")


def _replacement(node: ast.stmt, records: dict[str, _Record], uses: _Uses) -> list[ast.stmt]:
    if not isinstance(node, ast.ClassDef):
        return [node]
    record = records[node.name]
    if record.error:
        return [ast.copy_location(ast.Pass(), node)]
    if node.name in uses.spaces:
        shown = ast.Dict(
            [ast.Constant(name) for name in record.fields], [_value_or_none(each) for each in record.fields.values()]
        )
        return [ast.copy_location(ast.Assign([ast.Name(node.name, ast.Store())], shown), node)]
    return [ast.copy_location(record.maker or _maker(node.name, record.fields), node)]


# -- reading a class


def _read(node: ast.ClassDef, known: _Modules) -> _Record | None:
    """Read a class as a record; None if it has behaviour, or is made of more than its fields."""
    if node.keywords or len(node.bases) > 1 or any(not _is_dataclass(each, known) for each in node.decorator_list):
        return None
    makers = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    fields: dict[str, ast.expr | None] = {}
    for each in node.body:
        if each not in makers and not _is_field(each, fields):
            return None
    base = node.bases[0] if node.bases else None
    if isinstance(base, ast.Name) and base.id in _EXCEPTIONS:
        return None if fields or makers else _Record(node, {}, error=base.id)
    if base is not None and not (isinstance(base, ast.Name) and base.id == "object") and not _is_typed(base, known):
        return None
    if not makers:
        made = {name: _default(value, known) for name, value in fields.items()}
        if any(value is not None and marking.loaded_names(value) & made.keys() for value in made.values()):
            return None  # a field is no variable of the function
        return _Record(
            node, made, is_shared=any(value is made[name] and _is_computed(value) for name, value in fields.items())
        )
    return None if fields or len(makers) > 1 or node.decorator_list else _read_initialiser(node, makers[0])


def _is_field(node: ast.stmt, fields: dict[str, ast.expr | None]) -> bool:
    """Test if a statement of a class's body only declares a field, which is then among `fields`."""
    target, value = marking.assignment(node)
    if not isinstance(target, ast.Name):
        return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    if target.id != "__slots__" or isinstance(node, ast.AnnAssign):
        fields[target.id] = value
    return True


def _is_dataclass(node: ast.expr, known: _Modules) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    given = node.keywords if isinstance(node, ast.Call) else []
    options = {each.arg for each in given if not (isinstance(each.value, ast.Constant) and each.value.value is False)}
    compared = all(each.arg != "eq" or "eq" in options for each in given)
    return marking.member(called, known.made) == "dataclass" and compared and options <= _OPTIONS


def _is_typed(base: ast.expr, known: _Modules) -> bool:
    return marking.member(base, known.typed) == "TypedDict"


def _default(value: ast.expr | None, known: _Modules) -> ast.expr | None:
    """Return the default of a field; `field(default_factory=list)` gives `list()`."""
    if not isinstance(value, ast.Call) or marking.member(value.func, known.made) != "field":
        return value
    given = {each.arg: each.value for each in value.keywords}
    if "default" in given:
        return given["default"]
    factory = given.get("default_factory")
    if factory is None:
        return None
    return factory.body if isinstance(factory, ast.Lambda) else ast.Call(factory, [], [])


def _is_computed(value: ast.expr | None) -> bool:
    """Test if a value may differ each time that it is computed."""
    still = (ast.Constant, ast.Name, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context)
    return value is not None and not all(isinstance(each, still) for each in ast.walk(value))


def _read_initialiser(node: ast.ClassDef, maker: ast.FunctionDef) -> _Record | None:
    """Read a class whose `__init__` does nothing but put values into attributes."""
    given = [*maker.args.posonlyargs, *maker.args.args]
    if maker.decorator_list or not given or maker.args.posonlyargs:
        return None
    own, values = given[0].arg, {}
    for each in maker.body:
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            continue
        target, value = marking.assignment(each)
        if value is None or not isinstance(target, ast.Attribute) or target.attr in values:
            return None
        mine = isinstance(target.value, ast.Name) and target.value.id == own
        if not mine or own in marking.loaded_names(value):
            return None
        values[target.attr] = value
    arguments = maker.args
    del arguments.args[0]
    shown = ast.Dict([ast.Constant(name) for name in values], list(values.values()))
    made = ast.FunctionDef(node.name, arguments, [ast.Return(shown)], [], None, None)
    return _Record(node, dict.fromkeys(values), made)


def _maker(name: str, fields: dict[str, ast.expr | None]) -> ast.FunctionDef:
    """Write `def Row(x, tags=None)`, which returns a dict of its fields and makes defaults anew where need be."""
    args = [ast.arg(each) for each in fields]
    defaults: list[ast.expr] = []
    values: list[ast.expr] = []
    for each, value in fields.items():
        found = ast.Name(each, ast.Load())
        if value is None:
            values.append(found)
            if defaults:
                defaults.append(ast.Constant(None))
        elif isinstance(value, ast.Constant):
            defaults.append(value)
            values.append(found)
        else:
            defaults.append(ast.Constant(None))
            missing = ast.Compare(ast.Name(each, ast.Load()), [ast.Is()], [ast.Constant(None)])
            values.append(ast.IfExp(missing, value, found))
    shown = ast.Dict([ast.Constant(each) for each in fields], values)
    arguments = ast.arguments([], args, None, [], [], None, defaults)
    return ast.FunctionDef(name, arguments, [ast.Return(shown)], [], None, None)


def _value_or_none(value: ast.expr | None) -> ast.expr:
    return ast.Constant(None) if value is None else value


def _attributes_set(tree: ast.AST, receiver: str) -> set[str]:
    """Return the attributes that are set on anything but the receiver: those of a class without fields."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and not (isinstance(node.value, ast.Name) and node.value.id == receiver)
    }


# -- how it is used


class _Uses:
    """The uses of a source's classes: called, as a place of constants, raised, or in a way that no dict allows."""

    def __init__(self, tree: ast.Module, records: dict[str, _Record], known: _Modules) -> None:
        self._records = records
        self._known = known
        self._seen: set[int] = set()
        self.spaces: set[str] = set()
        self._called: set[str] = set()
        self._tree = tree
        self._look()

    def _look(self) -> None:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._records:
                self._see(node.func, self._called)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                kinds = [each for each in node.args[1:] if isinstance(each, ast.Name) and each.id in self._records]
                self._seen.update(id(each) for each in kinds if not self._records[each.id].error)
            elif (
                isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._records
            ):
                self._see(node.value, self.spaces)
            elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
                self._annotation(node.annotation)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
                self._annotation(node.returns)
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name):
                self._see(node.exc, self._called)
            elif isinstance(node, ast.Call) and marking.member(node.func, self._known.made) == "field":
                self._seen.update(id(each.value) for each in node.keywords)

    def _see(self, node: ast.Name, kind: set[str]) -> None:
        kind.add(node.id)
        self._seen.add(id(node))

    def _annotation(self, node: ast.expr) -> None:
        self._seen.update(id(each) for each in ast.walk(node))

    def is_understood(self) -> bool:
        """Test if what takes the place of the classes can stand every use of them."""
        if self.spaces & self._called or marking.loaded_names(self._tree) & _ASKS:
            return False
        classes = [record.node for record in self._records.values()]
        inside = {
            id(node) for each in classes for part in (*each.decorator_list, *each.bases) for node in ast.walk(part)
        }
        makers = {id(node) for each in self._records.values() for node in ast.walk(each.node)}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and node.id in self._records and id(node) not in self._seen | inside:
                return False
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in self._records:
                return False
            tool = marking.member(node, self._known.made) if id(node) not in self._seen | inside | makers else ""
            if tool and tool not in ("asdict", "replace", "astuple"):
                return False
        return True


class _RecordRewriting(ast.NodeTransformer):
    """Attributes that are fields become keys, and the tools of `dataclasses` what they do to a dict."""

    def __init__(self, records: dict[str, _Record], fields: set[str], known: _Modules, receiver: str) -> None:
        self._records = records
        self._fields = fields
        self._known = known
        self._receiver = receiver

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        record = self._records[node.name]
        record.fields = {name: None if value is None else self.visit(value) for name, value in record.fields.items()}
        if record.maker is not None:
            self.visit(record.maker)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        tool = marking.member(node.func, self._known.made)
        if isinstance(node.func, ast.Attribute) and not tool:
            node.func.value = self.visit(node.func.value)  # what is called is no field
        elif not isinstance(node.func, ast.Attribute):
            node.func = self.visit(node.func)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        if tool and len(node.args) == 1:
            return ast.copy_location(_tool(tool, node), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        base = node.value
        plain = isinstance(base, ast.Name) and (base.id == self._receiver or base.id in self._known.modules)
        self.generic_visit(node)
        if plain or node.attr not in self._fields:
            return node
        return ast.copy_location(ast.Subscript(node.value, ast.Constant(node.attr), node.ctx), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        record = self._records.get(node.id)
        if record is not None and record.error:
            node.id = record.error
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = self._remaining_annotation(node.annotation)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        named = self._remaining_annotation(node.annotation) is None
        self.generic_visit(node)
        if named and node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node) if named and node.value else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = self._remaining_annotation(node.returns)
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = self._remaining_annotation(node.returns)
        return self.generic_visit(node)

    def _remaining_annotation(self, annotation: ast.expr | None) -> ast.expr | None:
        """Return an annotation that names none of the classes; drop others, which would name no type any more."""
        if annotation is None:
            return None
        said = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
        texts = [node.value for node in ast.walk(annotation) if isinstance(node, ast.Constant)]
        quoted = any(name in str(text) for text in texts for name in self._records)
        return None if quoted or said & self._records.keys() else annotation


def _tool(tool: str, node: ast.Call) -> ast.expr:
    given = node.args[0]
    if tool == "asdict":
        return ast.Call(ast.Name("dict", ast.Load()), [given], [])
    if tool == "astuple":
        values = ast.Call(ast.Attribute(given, "values", ast.Load()), [], [])
        return ast.Call(ast.Name("tuple", ast.Load()), [values], [])
    keys: list[ast.expr | None] = [None, *(ast.Constant(each.arg) if each.arg else None for each in node.keywords)]
    return ast.Dict(keys, [given, *(each.value for each in node.keywords)])
