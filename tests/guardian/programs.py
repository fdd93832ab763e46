"""Random methods over slots, aliases and paths, and the plain receiver that they are tried on."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from hypothesis import strategies as st

#: Values: what may be (part of) a slot, under every name that these methods know.
VALUES = st.sampled_from(
    """self.items|self.rows|self.table|a|b|c|self.rows[0]|self.table.get('k', [])|a[0]|list(self.rows)|self.rows[:1]
[a, b]|[self.items]|dict(self.table)|sorted(self.items)|next(iter(self.rows), a)|(a or self.items)|a + [b]
(b if self.flag else self.rows)|[x for x in self.rows]|list(map(lambda x: x, self.rows))|first(self.rows)|[*self.rows]
(c := self.rows)|{'k': self.items}['k']|list(reversed(self.rows))|self.rows.copy()|max(self.rows, key=len)|[1]|(7)
list(zip(self.rows, b))[0]|[y for x in self.rows for y in x]|dict(k=self.items)|[a, *self.rows]|self.rows[-1][0]
getattr(self, 'items', [])|(lambda x: x)(self.rows)|held|held[0]|list(enumerate(self.rows))[0][1]
list(self.table.values())|list(self.table.items())[0][1]|[*map(first, self.rows)]|list(filter(None, self.rows))
{**self.table}|list({'z': self.items}.values())|(self.flag and self.items)|tuple(self.rows)[0]""".replace(
        "\n", "|"
    ).split("|")
)
TARGETS = st.sampled_from(("a", "b", "c", "a, b", "[a, *b]", "self.items", "self.rows[0]", "held[:]"))
ONCE = """self.count += 1|self._p_changed = True|self._p_changed = True|self._p_changed = True|bump()|bump()|take()|pass
held.append(self.rows)|held[-1].append(4)|for a in self.rows: a.append(1)|lazy = (bump() for x in [1])|list(lazy)
return|return 1|raise ValueError|x = self.items.pop()|[bump() for x in [1, 2]]|[x.append(2) for x in self.rows]|break
continue|return self.items|self.table['k'] = a|self.table.setdefault('n', []).append(1)|return self.items.pop()
a.extend([9])|for self.count in [1, 2]: pass|list(map(push, self.rows))|lazy = map(push, self.rows)|mark()
sorted([a, self.items], key=push)|self.rows.sort(key=len)|x = [bump() for y in a if push(self.items)]|del self.count
(a or self.items).append(2)|setattr(self, 'items', a)|a, b = self.items, a|keep(self.rows)|c = keep(b)|b = list(walk())
for b in walk(): b.append(8)|assert self.flag|x = bump() or self.items.append(1) if self.flag else None"""
SIMPLE = st.one_of(
    st.builds("{} = {}".format, TARGETS, VALUES),
    st.builds("push({})".format, VALUES),
    st.builds("({}).append(5)".format, VALUES),
    st.builds("({})[0] = 6".format, VALUES),
    st.builds("{}.append({})".format, st.sampled_from("abc"), VALUES),
    st.builds("self.items = {}".format, VALUES),
    st.builds("{} += [3]".format, st.sampled_from("abc")),
    st.builds("del ({})[:1]".format, VALUES),
    st.builds("held.append({})".format, VALUES),
    st.sampled_from(ONCE.replace("\n", "|").split("|")),
    st.sampled_from(ONCE.replace("\n", "|").split("|")),
)


def _block(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines] or ["    pass"]


def _flat(blocks: list[list[str]]) -> list[str]:
    return [line for block in blocks for line in block]


def _compound(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    heads = st.sampled_from(("if self.flag:", "for a in self.rows:", "for b in [1, 2]:", "while turn():", "if a:"))
    return st.one_of(
        st.builds(lambda head, body: [head, *_block(body)], heads, inner),
        st.builds(lambda body, rest: ["if self.flag:", *_block(body), "else:", *_block(rest)], inner, inner),
        st.builds(lambda body, rest: ["try:", *_block(body), "except ValueError:", *_block(rest)], inner, inner),
        st.builds(lambda body, rest: ["try:", *_block(body), "except Exception:", *_block(rest)], inner, inner),
        st.builds(lambda body, rest: ["try:", *_block(body), "finally:", *_block(rest)], inner, inner),
        st.builds(
            lambda body, last, rest: [
                "try:",
                *_block(body),
                "except Exception:",
                *_block(last),
                "else:",
                *_block(rest),
            ],
            inner,
            inner,
            inner,
        ),
        st.builds(lambda body: ["match self.rows:", "    case [a, *b]:", *_block(_block(body))], inner),
    )


_LINES = st.recursive(
    st.lists(SIMPLE, min_size=1, max_size=4),
    lambda inner: st.lists(st.one_of(_compound(inner), inner), min_size=1, max_size=3).map(_flat),
    max_leaves=8,
)
_HEAD = """def run(self, turns):
    a, b, c, held, lazy = [], [], [], [], []
    def turn():
        nonlocal turns
        turns -= 1
        return turns > 0
    def bump():
        self.count += 1
    def push(x):
        x.append(2)
    def first(x):
        return x[0]
    def take():
        nonlocal c
        c = self.items
    def mark():
        self.count += 1
        self._p_changed = True
    def keep(x):
        held.append(x)
        return held
    def walk():
        for x in self.rows:
            yield x
            bump()
"""
METHODS = _LINES.map(lambda lines: _HEAD + "\n".join(f"    {line}" for line in lines) + "\n")


class Endless(Exception):
    """A method took more steps than these tests wait for."""


class Receiver:
    """A receiver whose slots are its attributes."""

    def __init__(self, *, flag: bool) -> None:
        self.items: list[Any] = [3, 1, 2]
        self.rows: list[Any] = [[[1]], [[2], [3]]]
        self.table: dict[str, Any] = {"k": [1]}
        self.count = 0
        self.flag = flag
        self._p_changed = False


def _steps(most: int) -> Callable[[FrameType, str, Any], Any]:
    left = most

    def trace(frame: FrameType, event: str, given: Any) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        left -= 1
        if left < 0:
            raise Endless
        return trace

    return trace


def _slots(receiver: Receiver) -> dict[str, bytes]:
    """Each slot as bytes, whatever it holds, itself included."""
    return {name: pickle.dumps(value) for name, value in vars(receiver).items() if name != "_p_changed"}


def tried(source: str, *, flag: bool) -> tuple[set[str], bool] | None:
    """The slots that a call changed and whether it was marked then; None when it did not return normally."""
    scope: dict[str, Any] = {}
    exec(source, scope)
    receiver = Receiver(flag=flag)
    before = _slots(receiver)
    former = sys.gettrace()
    sys.settrace(_steps(4000))
    try:
        scope["run"](receiver, 3)
    except Exception:  # a path that does not return normally commits nothing, whatever it raised
        return None
    finally:
        sys.settrace(former)
    now = _slots(receiver)
    changed = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    return changed, receiver._p_changed is True
