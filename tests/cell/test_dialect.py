"""What the guardian's policy allows, the cell runs: every module and name, builtin, and method of a plain value."""

from __future__ import annotations

import asyncio

import pytest
from tests.cell.hosting import method, outcome

from batos.cell.cell import Cell
from batos.guardian.policy import SHIPPED

#: A value of each type whose methods the policy lists, as an expression.
VALUES = {
    "str": "'a'",
    "list": "[1]",
    "dict": "{'a': 1}",
    "set": "{1}",
}


async def missing(cell: Cell, checks: dict[str, str]) -> list[str]:
    """Which of the checks, statements by name, raise in a worker."""
    body = "".join(
        f"    try:\n        {check}\n    except (ImportError, AttributeError, NameError) as error:\n"
        f"        found.append({name!r} + ': ' + str(error))\n    except Exception:\n        pass\n"
        for name, check in checks.items()
    )
    source = f"def give(self):\n    import collections, datetime, re\n    found = []\n{body}    return found"
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
