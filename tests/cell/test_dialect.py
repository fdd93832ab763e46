"""One dialect: what a model is told, the guardian holds it to; what the guardian's policy allows, the cell runs."""

from __future__ import annotations

import ast
import asyncio
from textwrap import dedent
from typing import Any

import pytest
from tests.cell.hosting import Answers, method, outcome

from batos.cell.cell import Cell, MethodCall
from batos.cell.program import prepare
from batos.guardian import policy
from batos.guardian.audit import audit
from batos.guardian.policy import SHIPPED

#: A value of each type whose methods the policy lists, as an expression.
VALUES = {
    "str": "'a'",
    "list": "[1]",
    "dict": "{'a': 1}",
    "set": "{1}",
}
#: Values that have these methods between them.
KINDS = {
    "collection": ("collections.Counter('a')", "collections.deque([1])"),
    "datetime": (
        "datetime.datetime(2026, 1, 2)", "datetime.datetime", "datetime.date(2026, 1, 2)", "datetime.date",
        "datetime.timedelta(1)",
    ),
    "decimal": ("decimal.Decimal(1)",),
    "re": ("re.compile('a')", "re.match('a', 'a')"),
}  # fmt: skip
#: Methods that between them use all of the policy's syntax, with what `give_(self, [1, 2, 3])` answers in Python.
FORMS: dict[str, tuple[str, Any]] = {
    "loops": (
        '''
        def give_(self, items, *more, size: int = 2, **named):
            """Counts."""
            total: float = 0
            for item in items:
                if item == 0 or not item:
                    continue
                elif item is None:
                    break
                total += item
            else:
                total = -total
            while total < 0 and size > 0:
                total, size = total + 8, size - 1
            del self.gone
            self.found = [total, *items]
            assert total >= 1, "none"
            self._p_changed = True
            return total if total != 3 else +total
        ''',
        2,
    ),
    "values": (
        """
        def give_(self, items):
            counts = {key: len(key) for key in ("a", "bb")}
            seen = {each for each in items} | {1}
            both = [lambda x: x * 2, max][0](items[0:2:1][-1])
            pairs = {"k": [n for n in items if (half := n // 2) not in (5,)]}
            bits = (5 << 1 >> 1) | 2 ^ 7 & 3
            text = f"{bits:>4}{half!r}"
            odd = sum((n % 2 for n in items), start=0) / 1 ** 2
            return [counts, sorted(seen), both, pairs, ~bits, text, odd, "a" in counts, counts is not seen, 3 > 2 <= 4]
        """,
        [{"a": 1, "bb": 2}, [1, 2, 3], 4, {"k": [1, 2, 3]}, -6, "   51", 2.0, True, True, True],
    ),
    "failures": (
        """
        def give_(self, items):
            count = 0

            def more():
                nonlocal count
                count += 1
                pass
                yield count
                yield from items

            try:
                raise ValueError("no")
            except (ValueError, KeyError) as problem:
                told = str(problem)
            finally:
                count += 10
            return [told, list(more())]
        """,
        ["no", [11, 1, 2, 3]],
    ),
    "patterns": (
        """
        import math
        from json import dumps as shown


        def give_(self, items):
            found = []
            for each in [*items, None, "x", {"a": 1, "b": 2}, [7, 8, 9], 4.5]:
                match each:
                    case 1 | 2:
                        found.append("few")
                    case None:
                        found.append("none")
                    case str(text) if text:
                        found.append(text)
                    case {"a": a, **rest}:
                        found.append([a, rest])
                    case [first, *others] as whole:
                        found.append([first, others, len(whole)])
                    case _:
                        found.append(shown(math.floor(each)))
            return found
        """,
        ["few", "few", "3", "none", "x", [1, {"b": 2}], [7, [8, 9], 3], "4"],
    ),
    "waiting": (
        """
        async def give_(self, items):
            found = []
            async for each in self.several_(items):
                found.append(each)
            return found + [await self.infer_("why?")]
        """,
        [4, 5, "so"],
    ),
}
#: What the text tells a model not to write, by the words that say so.
REFUSED = {
    "No decorators": "@print\ndef give_(self):\n    return 1\n",
    "no classes": "def give_(self):\n    class A:\n        pass\n    return 1\n",
    "no `global`": "def give_(self):\n    global a\n    return 1\n",
    "no `with`": "def give_(self):\n    with self.a:\n        return 1\n",
    "nothing else": "a = 1\ndef give_(self):\n    return a\n",
    "none begins with an underscore": "def give_(self):\n    _a = 1\n    return _a\n",
    "`exec`": "def give_(self):\n    exec('1')\n",
    "`eval`": "def give_(self):\n    return eval('1')\n",
    "`open`": "def give_(self):\n    return open('a')\n",
    "`setattr` only on `self`": "def give_(self, other):\n    setattr(other, 'a', 1)\n",
    "with a literal name": "def give_(self, name):\n    return getattr(self, name)\n",
    "ends with": "def give_(self):\n    self.a = 1\n",
    "After the marker": "def give_(self):\n    self.a = 1\n    self._p_changed = True\n    self.b = 1\n",
    "marked before it": "async def give_(self):\n    self.a = 1\n    await self.b_()\n    self._p_changed = True\n",
    "Functions": "def give_(self):\n    return compile('1')\n",
    "Exceptions": "def give_(self):\n    raise SystemExit(1)\n",
    "Modules": "import os\ndef give_(self):\n    return 1\n",
}


async def missing(cell: Cell, checks: dict[str, str]) -> list[str]:
    """Which of the checks, statements by name, raise in a worker."""
    body = "".join(
        f"    try:\n        {check}\n    except (ImportError, AttributeError, NameError) as error:\n"
        f"        found.append({name!r} + ': ' + str(error))\n    except Exception:\n        pass\n"
        for name, check in checks.items()
    )
    source = f"def give(self):\n    import collections, datetime, decimal, re\n    found = []\n{body}    return found"
    program = await asyncio.to_thread(method, source)  # longer than any method
    found = (await outcome(cell, program)).result
    assert isinstance(found, list)
    return [str(each) for each in found]


async def test_what_the_cell_lacks_is_found(cell: Cell) -> None:
    """The question that these tests ask can be answered with no."""
    checks = {
        "module": "import subprocess",
        "name": "from math import nothing",
        "builtin": "absent",
        "method": "'a'.absent()",
    }
    assert [each.partition(":")[0] for each in await missing(cell, checks)] == list(checks)


async def test_every_module_has_every_name(cell: Cell) -> None:
    """Imported from it, and as its attribute."""
    checks: dict[str, str] = {}
    for module, names in SHIPPED.modules.items():
        if module != "typing":  # only annotations use it, which are dropped
            checks.update((f"{module}.{name}", f"from {module} import {name}") for name in names)
    assert await missing(cell, checks) == []


@pytest.mark.parametrize("group", ["functions", "exceptions"])
async def test_every_builtin_is_there(cell: Cell, group: str) -> None:
    """As a name that can be loaded."""
    names = SHIPPED.functions if group == "functions" else SHIPPED.exceptions
    assert await missing(cell, {name: name for name in sorted(names)}) == []


async def test_plain_values_have_their_methods(cell: Cell) -> None:
    """Called with nothing: a complaint about arguments is an answer, an absent attribute is none."""
    checks: dict[str, str] = {}
    for kind, value in VALUES.items():
        checks.update((f"{kind}.{name}", f"({value}).{name}()") for name in sorted(SHIPPED.methods[kind]))
    assert await missing(cell, checks) == []


@pytest.mark.parametrize("group", KINDS)
async def test_other_values_have_their_methods(cell: Cell, group: str) -> None:
    """Each method is that of one of them."""
    absent = set(SHIPPED.methods[group])
    for value in KINDS[group]:
        found = await missing(cell, {name: f"({value}).{name}()" for name in sorted(SHIPPED.methods[group])})
        absent &= {each.partition(":")[0] for each in found}
    assert absent == set()


@pytest.mark.parametrize(("source", "expected"), FORMS.values(), ids=FORMS.keys())
async def test_every_form_is_accepted_and_runs(cell: Cell, source: str, expected: Any) -> None:
    """As Python means it."""
    text = dedent(source).lstrip("\n")
    verdict = audit(text)
    assert verdict.faults == ()
    host = Answers({"several_": [4, 5], "infer_": "so"})
    call = MethodCall({"gone": 1, "found": 0} if verdict.slots.writes else {}, [[1, 2, 3]])
    assert (await outcome(cell, prepare(text, verdict.slots, "give_"), call, host)).result == expected


def test_the_forms_are_all_of_the_syntax() -> None:
    """A node that the policy allows and no method here uses would be allowed on trust."""
    seen = {type(node).__name__ for source, _ in FORMS.values() for node in ast.walk(ast.parse(dedent(source)))}
    assert seen == SHIPPED.statements | SHIPPED.expressions | SHIPPED.parts


@pytest.mark.parametrize(("told", "source"), REFUSED.items(), ids=REFUSED.keys())
def test_what_a_model_is_told_not_to_write_is_refused(told: str, source: str) -> None:
    """Each thing that the text forbids, it forbids in these words, and the guardian refuses it."""
    assert told in policy.dialect_text()
    assert not audit(source).accepted
