"""Lowering: what the interpreter lacks runs as Python means it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cell.hosting import Answers, method, outcome, result, uses

from batos.cell.cell import Cell, MethodCall
from batos.cell.program import LONGEST, prepare
from batos.guardian.policy import SlotUse
from batos.protocol.errors import MethodFailed

#: Bodies of `def give(self):` with what they return in Python.
BODIES: dict[str, tuple[str, Any]] = {
    "generator": ("def g(n):\n    for i in range(n):\n        yield i\nreturn list(g(3))", [0, 1, 2]),
    "generator with return": ("def g():\n    yield 1\n    return\n    yield 2\nreturn list(g())", [1]),
    "generator from": ("def g():\n    yield 0\n    yield from [1, 2]\nreturn sum(g())", 3),
    "next of a generator": (
        "def g():\n    yield 1\n    yield 2\na = g()\nreturn [next(a), next(a), next(a, None)]",
        [1, 2, None],
    ),
    "next of a generator expression": (
        "a = (x * 2 for x in [1, 2])\nreturn [next(a), next((x for x in [1, 5] if x > 4), None), next(a), next(a, 0)]",
        [2, 5, 4, 0],
    ),
    "text of a failed assert": (
        "try:\n    assert 3 > 5, 'small'\nexcept AssertionError as error:\n    return [str(error)]",
        ["small"],
    ),
    "failed assert without a text": (
        "try:\n    assert not 'a'\nexcept AssertionError as error:\n    return [str(error)]",
        [""],
    ),
    "absent module": (
        "try:\n    import os.path as path\nexcept ImportError:\n    return 'absent'\nreturn path.sep",
        "absent",
    ),
    "absent module by its names": (
        "try:\n    from sys import platform\nexcept ImportError:\n    return 'absent'\nreturn platform",
        "absent",
    ),
    "endless generator": (
        (
            "def g():\n    n = 0\n    while True:\n        yield n\n        n += 1\n"
            "for x in g():\n    if x > 5:\n        break\nreturn x"
        ),
        6,
    ),
    "endless generator cut": (
        "import itertools\ndef g():\n    while True:\n        yield 1\nreturn len(list(itertools.islice(g(), 7)))",
        7,
    ),
    "nested generators": (
        (
            "def f():\n    def g():\n        yield 1\n        yield 2\n    for x in g():\n        yield x * 2\n"
            "return list(f())"
        ),
        [2, 4],
    ),
    "generator closes over": (
        (
            "found = []\ndef g():\n    try:\n        yield 1\n    finally:\n        found.append('end')\n"
            "list(g())\nreturn found"
        ),
        ["end"],
    ),
    "del item": (
        "a = {'x': 1, 'y': 2}\ndel a['x']\nb = [1, 2, 3, 4]\ndel b[0], b[-1]\nreturn [a, b]",
        [{"y": 2}, [2, 3]],
    ),
    "del slice": ("b = [1, 2, 3, 4]\ndel b[1:3]\nreturn b", [1, 4]),
    "del missing key": ("a = {}\ntry:\n    del a['x']\nexcept KeyError:\n    return 'missing'", "missing"),
    "del name": ("a = 1\ndel a\nreturn 2", 2),
    "annotations": (
        "x: 'Nowhere' = 1\ny: int\ndef f(a: Missing, b: int = 2) -> Missing:\n    return a + b\nreturn f(x)",
        3,
    ),
    "callable": ("return [callable(len), callable(3), callable(lambda: 1)]", [True, False, True]),
    "re.sub by function": ("import re\nreturn re.sub(r'\\d+', lambda m: str(int(m.group()) * 2), 'a1b22')", "a2b44"),
    "re.sub by text": ("import re\nreturn re.sub(r'(a)(b)', r'\\2\\1', 'abab', count=1)", "baab"),
    "bound method": (
        "t = ' a '\nf = t.strip\nfound = []\nlist(map(found.append, [1, 2]))\nreturn [f(), found]",
        ["a", [1, 2]],
    ),
    "method of a type": (
        "return [sorted(['b', 'A'], key=str.lower), str.upper('a'), dict.fromkeys('a')]",
        [["A", "b"], "A", {"a": None}],
    ),
    "unbound method": ("return list(map(str.strip, [' a ', 'b ']))", ["a", "b"]),
    "attributes of values": (
        "import datetime\nd = datetime.date(2026, 3, 4)\nreturn [d.year, d.month]",
        [2026, 3],
    ),
    "statistics": (
        "import statistics as st\nfrom statistics import median as m\nreturn [st.mean([1, 2]), m([3, 1, 2])]",
        [1.5, 2],
    ),
    "import in a function": ("def f():\n    import textwrap\n    return textwrap.dedent('  a')\nreturn f()", "a"),
    "two imports at once": ("import json, statistics\nreturn json.loads('3') + statistics.fmean([1])", 4.0),
    "local class": (
        (
            "class Point:\n    def __init__(self, x):\n        self.x = x\n"
            "    def twice(self):\n        return self.x * 2\nreturn Point(2).twice()"
        ),
        4,
    ),
    "getattr with a default": (
        "return [getattr(self, 'gone', 7), hasattr(self, 'kept'), hasattr(self, 'gone')]",
        [7, True, False],
    ),
    "nested quotes": ("n = {'a': {'b': 'c'}}\nreturn f\"{n['a']['b']!r:>5} {'x' if n else 2}\"", "  'c' x"),
    "names of builtins": ("len = 3\ntype = 4\nreturn [len, type, {1} | {2}]", [3, 4, [1, 2]]),
}


@pytest.mark.parametrize(("body", "expected"), BODIES.values(), ids=BODIES.keys())
async def test_a_body_means_what_it_means_in_python(cell: Cell, body: str, expected: Any) -> None:
    """Each form gives the value that CPython gives."""
    lines = "\n    ".join(body.split("\n"))
    assert await result(cell, f"def give(self):\n    {lines}\n", view={"kept": 1}, slots="gone") == expected


async def test_a_deleted_slot_is_gone_for_the_method_too(cell: Cell) -> None:
    """Reading it raises, it may be written again, and deleting what is not there raises."""
    source = """
        def forget(self):
            del self.draft
            found = [hasattr(self, "draft"), getattr(self, "draft", None)]
            try:
                self.draft
            except AttributeError:
                found.append("absent")
            try:
                del self.draft
            except AttributeError:
                found.append("twice")
            delattr(self, "note")
            self.title = "new"
            self._p_changed = True
            return found
        """
    program = method(source, uses("", "title", "", "draft note"))
    found = await outcome(cell, program, MethodCall({"draft": "d", "title": "t", "note": "n"}))
    assert found.result == [False, None, "absent", "twice"]
    assert found.writes.deleted == {"draft", "note"}
    assert found.writes.values == {"title": "new"}


async def test_async_for_over_a_message_and_a_local_generator(cell: Cell) -> None:
    """A message that streams answers with a list; a local asynchronous generator is read the same way."""
    source = """
        async def tell(self):
            parts = []
            async for piece in self.stream_("x"):
                parts.append(piece)

            async def echo(words):
                for word in words:
                    yield await self.infer_(word)

            async for word in echo(["a", "b"]):
                parts.append(word)
            return parts + [each async for each in self.stream_("y")]
        """

    async def infer(word: str) -> str:
        return word.upper()

    async def stream(name: str) -> list[str]:
        return [name, name]

    found = await outcome(cell, method(source), host=Answers({"stream_": stream, "infer_": infer}))
    assert found.result == ["x", "x", "A", "B", "y", "y"]


async def test_awaiting_a_value_is_no_error(cell: Cell) -> None:
    """A message that waited where it stands may be awaited afterwards; so may gather's results be excepted."""
    source = """
        import asyncio

        async def ask(self):
            first = self.infer_("a")
            value = first
            async def fails():
                raise ValueError("x")
            found = await asyncio.gather(self.infer_("b"), fails(), return_exceptions=True)
            return [await value, found[0], str(found[1])]
        """

    async def infer(word: str) -> str:
        return word * 2

    assert (await outcome(cell, method(source), host=Answers({"infer_": infer}))).result == ["aa", "bb", "x"]


async def test_helpers_stand_beside_the_method(cell: Cell) -> None:
    """Functions and constants of the source may be used; the method is the named one, or the last."""
    source = "FACTOR = 3\ndef len(x):\n    return x * FACTOR\ndef give(self, x):\n    return len(x)\n"
    assert (await outcome(cell, method(source), MethodCall({}, [2]))).result == 6
    assert method(source, selector="give").selector == "give"
    with pytest.raises(MethodFailed, match="defines no method absent"):
        method(source, selector="absent")


@pytest.mark.parametrize(
    "source",
    [
        "",
        "x = (",
        "def f(self):\n    return 'a\0b'",
        "def f():\n    return 1",
        "def f(self):\n    return 1\nprint('run')",
        "@staticmethod\ndef f(self):\n    return 1",
        "def f(self):\n    x = yield 1\n    return x",
        "from statistics import sys\ndef f(self):\n    return 1",
        "def f(self):\n    return __builtins__",
        "def f(self):\n    return " + "-" * 20000 + "1",
        "def f(self):\n    return " + "(" * 300 + ")" * 300,
        "def f(self):\n    x = 0\n    if x:\n        pass\n"
        + "".join(f"    elif x == {n}:\n        pass\n" for n in range(3000)),
        "def f(self):\n    import math as __builtins__",
        "def f(self):\n    match {}:\n        case {**__builtins__}:\n            pass",
        "def f(self):\n    match 1:\n        case int() as __class__:\n            pass",
        "def f(self, *__class__):\n    pass",
        "def f(self):\n    try:\n        pass\n    except Exception as __import__:\n        pass",
        "def f(self):\n    return dict(__class__=1)",
        "def f(self):\n    return '" + "x" * LONGEST + "'",
    ],
)
def test_what_cannot_be_lowered_is_refused(source: str) -> None:
    """Before any worker sees it, with a reason, and without hurting the kernel."""
    with pytest.raises(MethodFailed):
        prepare(source, SlotUse())


def test_preparing_is_pure_and_cached() -> None:
    """The same source and names are the same program."""
    slots = uses("a", "b")
    assert prepare("def f(self):\n    self.b = self.a", slots) is prepare(
        "def f(self):\n    self.b = self.a", uses("a", "b")
    )
    program = prepare("def f(self):\n    self.b = self.a", slots)
    assert (set(program.view), set(program.changes), program.is_async) == ({"a", "b"}, {"b"}, False)


async def test_a_set_makes_a_simple_method_run_in_its_long_form(cell: Cell) -> None:
    """The short form cannot make it plain; the run is begun again, to the caller it is one."""
    program = method(
        "def give(self, names):\n    self.seen = dict(zip(names, names)).keys() & {'a'}\n"
        "    self._p_changed = True\n    return 1",
        uses("", "seen"),
    )
    found = await outcome(cell, program, MethodCall({}, [["a", "b"]]))
    assert (found.result, found.writes.values) == (1, {"seen": ["a"]})
