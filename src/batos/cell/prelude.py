"""The text around a method inside the interpreter: its view, its messages, and how values cross the wall."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from batos.cell.lowering.statement_lowering import OURS
from batos.cell.values import DEPTH, MARK
from batos.guardian.policy import SHIPPED

#: Host calls: answered at once, answered later, and the slot of another object.
NOW: Final = OURS + "now"
LATER_CALL: Final = OURS + "later"
READ: Final = OURS + "read"
#: The receiver's number.
SELF: Final = 0
YIELDS: Final = 10_000

# Builtins are taken by names of ours first: a method may be called `len`.
_START = """\
import json as _cell_json
_cell_type, _cell_dict, _cell_list, _cell_tuple = type, dict, list, tuple
_cell_set, _cell_frozenset, _cell_len, _cell_sorted, _cell_repr = set, frozenset, len, sorted, repr
_cell_isinstance, _cell_py_getattr, _cell_py_setattr, _cell_py_hasattr = isinstance, getattr, setattr, hasattr
_cell_str, _cell_iter, _cell_TypeError, _cell_ValueError = str, iter, TypeError, ValueError
_cell_AttributeError, _cell_KeyError, _cell_RuntimeError = AttributeError, KeyError, RuntimeError
class _cell_Gone:
    pass
_cell_gone = _cell_Gone()
"""
_OBJECT = """\
class _cell_Object:
    _cell_n = 0
"""
_METHOD = """\
    def {name}(self, *a, **k):
        return _cell_took(_cell_now(_cell_message(self, {name!r}, a, k)))
"""
_LATER = """\
    async def _cell_later_{name}(self, *a, **k):
        before = _cell_before() if _cell_changes else None
        return _cell_took(await _cell_later(_cell_message(self, {name!r}, a, k)), before)
"""
_VALUES = f"""\
def _cell_flat(x, depth):
    t = _cell_type(x)
    if t is _cell_Object:
        return {{{MARK!r}: x._cell_n}}
    if depth > {DEPTH}:
        raise _cell_ValueError('it is nested too deep')
    if _cell_isinstance(x, _cell_dict):
        return {{k: _cell_flat(x[k], depth + 1) for k in x}}
    if _cell_isinstance(x, (_cell_list, _cell_tuple)) or t.__name__ == 'deque':
        return [_cell_flat(each, depth + 1) for each in x]
    if t is _cell_set or t is _cell_frozenset:
        return [_cell_flat(each, depth + 1) for each in _cell_sorted(x, key=_cell_repr)]
    return x
def _cell_dumps(x, most):
    try:
        text = _cell_json.dumps(x, separators=(',', ':'))
    except _cell_TypeError:
        text = _cell_json.dumps(_cell_flat(x, 0), separators=(',', ':'))
    if _cell_len(text) > most:
        raise _cell_ValueError('it has %d characters as JSON, at most %d may leave the cell' % (_cell_len(text), most))
    return text
_cell_known = {{}}
def _cell_revived(x):
    t = _cell_type(x)
    if t is _cell_dict:
        if _cell_len(x) == 1 and {MARK!r} in x:
            n = x[{MARK!r}]
            if n not in _cell_known:
                o = _cell_Object()
                o._cell_n = n
                _cell_known[n] = o
            return _cell_known[n]
        return {{k: _cell_revived(x[k]) for k in x}}
    if t is _cell_list:
        return [_cell_revived(each) for each in x]
    return x
"""
_SLOTS = """\
def _cell_slots():
    found = {}
    for name in _cell_changes:
        value = _cell_py_getattr(_cell_self, name, _cell_gone)
        if value is not _cell_gone:
            found[name] = value
    return found
def _cell_extra():
    return [name for name in _cell_stored if _cell_py_hasattr(_cell_self, name)]
def _cell_marked():
    return _cell_py_getattr(_cell_self, '_p_changed', False) is True
"""
_MESSAGES = """\
def _cell_message(o, selector, a, k):
    return _cell_dumps([o._cell_n, selector, a, k, _cell_slots(), _cell_marked(), _cell_extra()], _cell_most)
def _cell_took(text, before=None):
    answer = _cell_json.loads(text)
    if answer['r']:
        answer = _cell_revived(answer)
    fresh = answer['s']
    if fresh is not None:
        for name in fresh:
            value = _cell_py_getattr(_cell_self, name, _cell_gone)
            if before is not None and name in before and before[name] != _cell_dumps(value, _cell_most):
                continue
            if value is _cell_gone or value != fresh[name]:
                _cell_py_setattr(_cell_self, name, fresh[name])
    return answer['v']
def _cell_before():
    found = _cell_slots()
    return {name: _cell_dumps(found[name], _cell_most) for name in found}
"""
_BEGIN = """\
_cell_in = _cell_json.loads(_cell_input)
_cell_most = _cell_in['most']
if _cell_in['refs']:
    _cell_in = _cell_revived(_cell_in)
_cell_self = _cell_Object()
for _cell_name in _cell_in['view']:
    _cell_py_setattr(_cell_self, _cell_name, _cell_in['view'][_cell_name])
"""

#: Parts that are there only when a method uses them, each with what it needs.
_PARTS: Final[dict[str, str]] = {
    "get": """\
def _cell_get(x, name):
    if _cell_type(x) is _cell_Object and x._cell_n:
        return _cell_took(_cell_read(_cell_dumps([x._cell_n, name], _cell_most)))
    value = _cell_py_getattr(x, name)
    if value is _cell_gone:
        raise _cell_AttributeError(name)
    return value
""",
    "getattr": """\
def _cell_getattr(x, name, *default):
    if _cell_type(x) is _cell_Object and x._cell_n:
        raise _cell_TypeError('getattr of another object: write object.' + name)
    value = _cell_py_getattr(x, name, _cell_gone)
    if value is not _cell_gone:
        return value
    if default:
        return default[0]
    raise _cell_AttributeError(name)
""",
    "hasattr": """\
def _cell_hasattr(x, name):
    return _cell_py_getattr(x, name, _cell_gone) is not _cell_gone
""",
    "setattr": """\
def _cell_setattr(x, name, value):
    if _cell_type(x) is _cell_Object and name != '_p_changed' and (x._cell_n or name not in _cell_changes):
        raise _cell_TypeError('setattr of a name that the audit could not list: ' + name)
    _cell_py_setattr(x, name, value)
""",
    "delattr": """\
def _cell_delattr(x, name):
    if _cell_py_getattr(x, name, _cell_gone) is _cell_gone:
        raise _cell_AttributeError(name)
    _cell_py_setattr(x, name, _cell_gone)
""",
    "delitem": """\
def _cell_delitem(x, key):
    if _cell_isinstance(x, _cell_dict) and key not in x:
        raise _cell_KeyError(key)
    x.pop(key)
""",
    "callable": """\
def _cell_callable(x):
    return _cell_type(x).__name__ in ('function', 'method', 'builtin_function_or_method', 'type', 'partial')
""",
    "yield": f"""\
def _cell_yield(out, value):
    out.append(value)
    return _cell_len(out) >= {YIELDS}
""",
    "yielded": f"""\
class _cell_Cut:
    def __init__(self, items):
        self.items = items
        self.at = 0
    def __iter__(self):
        return self
    def __next__(self):
        if self.at == _cell_len(self.items):
            raise _cell_RuntimeError('a local generator gives at most {YIELDS:,} items')
        self.at += 1
        return self.items[self.at - 1]
def _cell_yielded(out):
    if _cell_len(out) < {YIELDS}:
        return _cell_iter(out)
    return _cell_Cut(out)
""",
    "waited": """\
async def _cell_waited(x):
    if _cell_type(x).__name__ == 'coroutine':
        return await x
    return x
""",
    "gather": """\
import asyncio as _cell_asyncio
async def _cell_caught(x):
    try:
        return await _cell_waited(x)
    except Exception as error:
        return error
async def _cell_gather(*a, return_exceptions=False):
    if return_exceptions:
        return await _cell_asyncio.gather(*[_cell_caught(x) for x in a])
    return await _cell_asyncio.gather(*[_cell_waited(x) for x in a])
""",
    "re_sub": """\
import re as _cell_re
def _cell_re_sub(pattern, by, text, count=0, flags=0):
    if _cell_isinstance(by, _cell_str):
        return _cell_re.sub(pattern, by, text, count=count, flags=flags)
    out = []
    at = 0
    done = 0
    for found in _cell_re.finditer(pattern, text, flags):
        if count and done == count:
            break
        out.append(text[at:found.start()])
        out.append(by(found))
        at = found.end()
        done += 1
    out.append(text[at:])
    return ''.join(out)
""",
}
_NEEDS: Final = {"gather": ("waited",), "yield": (), "hasattr": ()}


@dataclass(frozen=True, slots=True)
class PreludeNames:
    """The names for which a prelude is generated."""

    selectors: frozenset[str]  # called of an object, waiting where it stands
    later: frozenset[str]  # called of an object and awaited
    read: frozenset[str]  # attributes of other objects
    view: frozenset[str]  # slots that are given
    changes: frozenset[str]  # of these, what is read back
    marks: bool  # whether the method says the marker's name
    stored: frozenset[str]  # attributes that are stored somewhere and may not appear on the receiver


def prelude(around: PreludeNames, body: str, libraries: Iterable[str]) -> str:
    """Return the text before the method, with only the parts that the body uses: every call compiles it."""
    parts = {name for name in _PARTS if re.search(rf"\b{OURS}{name}\b", body)}
    parts |= {"get"} if around.read else set()
    parts |= {need for name in tuple(parts) for need in _NEEDS.get(name, ())}
    text = [_START, *libraries]
    text.append(_OBJECT)
    text += (_METHOD.format(name=name) for name in sorted(around.selectors))
    text += (_LATER.format(name=name) for name in sorted(around.later))
    text += (_VALUES, _SLOTS)
    if around.selectors or around.later or around.read:
        text.append(_MESSAGES)
    text += (_PARTS[name] for name in _PARTS if name in parts)
    text += (_reader(name) for name in sorted(around.read))
    text.append(f"{OURS}changes = {sorted(around.changes)!r}\n{OURS}stored = {sorted(around.stored)!r}\n")
    text.append(_BEGIN)
    return "".join(text)


def _reader(name: str) -> str:
    """Return a function that reads an attribute; a plain value's method, which exists only when called, is wrapped."""
    text = f"def {OURS}get_{name}(x):\n"
    if name in SHIPPED.plain_methods:
        text += f"    if _cell_type(x) is not _cell_Object and not _cell_py_hasattr(x, {name!r}):\n"
        text += f"        return lambda *a, **k: x.{name}(*a, **k)\n"
    return text + f"    return {OURS}get(x, {name!r})\n"


#: Builtins that the short form calls after the method's own names are bound.
BUILTINS: Final = frozenset({"getattr", "hasattr", "len", "ValueError"})


def short(around: PreludeNames, is_async: bool) -> tuple[str, str]:
    """Return the texts before and after a method that meets no other object and returns JSON data.

    Each call compiles its program, so this short form halves the time of a small method. If the result is not JSON (a
    set), the run begins again with the long form.
    """
    before = "import json as _cell_json\nclass _cell_Object:\n    pass\n_cell_self = _cell_Object()\n"
    if around.view:
        before += "for _cell_n in _cell_in['view']:\n    setattr(_cell_self, _cell_n, _cell_in['view'][_cell_n])\n"
    changes, stored = sorted(around.changes), sorted(around.stored)
    slots, extra, marked = "{}", "[]", "False"
    if changes:
        slots = f"{{n: getattr(_cell_self, n) for n in {changes!r} if hasattr(_cell_self, n)}}"
    if stored:
        extra = f"[n for n in {stored!r} if hasattr(_cell_self, n)]"
    if around.marks:
        marked = "getattr(_cell_self, '_p_changed', False) is True"
    wait = "await " if is_async else ""
    after = (
        f"_cell_result = {wait}{OURS}method(_cell_self, *_cell_in['args'], **_cell_in['kwargs'])\n"
        f"_cell_out = _cell_json.dumps([_cell_result, {slots}, {marked}, {extra}])\n"
        "if len(_cell_out) > _cell_in['most']:\n    raise ValueError('it is too long as JSON to leave the cell')\n"
        "_cell_out\n"
    )
    return before, after


def epilogue(is_async: bool) -> str:
    """Return the text after the method: the call, and one JSON text with everything that leaves the cell."""
    wait = "await " if is_async else ""
    return (
        f"_cell_result = {wait}{OURS}method(_cell_self, *_cell_in['args'], **_cell_in['kwargs'])\n"
        "_cell_dumps([_cell_result, _cell_slots(), _cell_marked(), _cell_extra()], _cell_most)\n"
    )
