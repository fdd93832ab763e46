"""The bare interpreter: it lacks each feature that the cell lowers or brings, and has the decimals of CPython."""

from __future__ import annotations

import ast
import asyncio
import decimal
import inspect
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from batos.cell.lowering import statement_lowering
from batos.cell.program import served_names
from batos.cell.worker_pool import interpreter

_TYPE = "class A:\n    x = 1\na = A()\n"
_CALLS = "import asyncio\nasync def f():\n    return 1\n"
#: Each feature that the cell lowers or brings: a text whose last expression is True in Python, and what may go when
#: the bare interpreter finds it True as well.
FEATURES: dict[str, tuple[str, str]] = {
    "heapq": ("import heapq\nheapq.nlargest(1, [1, 2]) == [2]", "library/heapq.py"),
    "statistics": ("import statistics\nstatistics.mean([1, 3]) == 2", "library/statistics.py"),
    "string": ("import string\nstring.digits == '0123456789'", "library/string.py"),
    "textwrap": ("import textwrap\ntextwrap.dedent('  a') == 'a'", "library/textwrap.py"),
    "yield": ("def g():\n    yield 1\nlist(g()) == [1]", "lowering/waiting.py"),
    "yield from": ("def g():\n    yield from [1]\nlist(g()) == [1]", "lowering/waiting.py"),
    "async for": (
        (
            "class A:\n    def __aiter__(self):\n        return self\n    async def __anext__(self):\n"
            "        raise StopAsyncIteration\nasync def f():\n    async for x in A():\n        pass\n    return True\n"
            "await f()"
        ),
        "lowering/waiting.py visit_AsyncFor",
    ),
    "asyncio.gather of exceptions": (
        _CALLS + "await asyncio.gather(f(), return_exceptions=True) == [1]",
        "lowering/waiting.py gather, prelude.py gather",
    ),
    "asyncio.create_task": (_CALLS + "await asyncio.create_task(f()) == 1", "lowering/waiting.py _TRANSPARENT"),
    "asyncio.ensure_future": (_CALLS + "await asyncio.ensure_future(f()) == 1", "lowering/waiting.py _TRANSPARENT"),
    "asyncio.wait_for": (_CALLS + "await asyncio.wait_for(f(), 9) == 1", "lowering/waiting.py _TRANSPARENT"),
    "asyncio.shield": (_CALLS + "await asyncio.shield(f()) == 1", "lowering/waiting.py _TRANSPARENT"),
    "del of a name": ("a = 1\ndel a\nTrue", "lowering/statement_lowering.py _lower_delete"),
    "del of an item": ("a = [1, 2]\ndel a[0]\na == [2]", "lowering/statement_lowering.py _lower_delete, delitem"),
    "del of a slice": ("a = [1, 2]\ndel a[1:]\na == [1]", "lowering/statement_lowering.py _lower_delete"),
    "del of an attribute": (_TYPE + "a.y = 1\ndel a.y\nTrue", "lowering/statement_lowering.py _lower_delete, delattr"),
    "delattr": (_TYPE + "a.y = 1\ndelattr(a, 'y')\nTrue", "prelude.py delattr"),
    "callable": ("callable(len)", "prelude.py callable"),
    "method of a type as a value": ("f = str.upper\nf('a') == 'A'", "lowering/statement_lowering.py _unbound"),
    "method of a type, called": ("str.upper('a') == 'A'", "lowering/statement_lowering.py visit_Call"),
    "method of a value as a value": ("f = ' a '.strip\nf() == 'a'", "prelude.py _reader"),
    "next of a generator expression": ("next(x for x in [1]) == 1", "lowering/statement_lowering.py _iterator"),
    "re.sub by a function": ("import re\nre.sub('a', lambda m: 'b', 'a') == 'b'", "prelude.py re_sub"),
    "text of a failed assert": (
        "try:\n    assert 3 > 5, 'small'\nexcept AssertionError as error:\n    told = str(error)\ntold == 'small'",
        "lowering/statement_lowering.py visit_Assert",
    ),
    "dataclasses.asdict": (
        "from dataclasses import asdict, dataclass\n@dataclass\nclass A:\n    x: int\nasdict(A(1)) == {'x': 1}",
        "guardian/tidying/record_classes.py asdict",
    ),
    "TypedDict": (
        "from typing import TypedDict\nclass A(TypedDict):\n    x: int\nA(x=1) == {'x': 1}",
        "guardian/tidying/record_classes.py TypedDict",
    ),
}
#: Modules of lowering that hold no feature of their own.
_SHARED = {"__init__", statement_lowering.__name__.rpartition(".")[2]}


@pytest.fixture(scope="module")
def bare() -> Iterator[Callable[..., Any]]:
    """Run a text in the interpreter without anything of ours, and return the value of its last expression."""
    kinds = interpreter()
    with kinds.Monty(min_processes=1, max_processes=1) as pool:

        def run(source: str, /, **inputs: Any) -> Any:
            with pool.checkout() as session:
                try:
                    return session.feed_run(source, inputs=inputs)
                except kinds.MontyError as error:
                    return error

        yield run


@cache
def _compiled(text: str) -> tuple[CodeType, CodeType]:
    tree = ast.parse(text)
    last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]  # each ends with an expression
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return compile(tree, "text", "exec", flags), compile(last, "text", "eval", flags)


def in_python(source: str, /, **inputs: Any) -> Any:
    """Return the value of a text's last expression in CPython."""
    statements, last = _compiled(source)
    exec(statements, inputs)  # texts of this file
    found = eval(last, inputs)  # as above
    return asyncio.run(found) if inspect.iscoroutine(found) else found


@pytest.mark.parametrize("name", FEATURES)
def test_no_lowered_feature_has_become_native(bare: Callable[..., Any], name: str) -> None:
    """The cell neither lowers nor brings a feature that the interpreter has itself."""
    text, ours = FEATURES[name]
    assert in_python(text) is True
    assert bare(text) is not True, f"{name} is native now: delete {ours}"


def test_each_module_that_lowers_or_serves_has_a_row() -> None:
    """A new module brings the text by which it is known to be needed."""
    folder = Path(statement_lowering.__file__).parent
    modules = {f"lowering/{path.name}" for path in folder.glob("*.py") if path.stem not in _SHARED}
    modules |= {f"library/{name}.py" for name in served_names()}
    assert {ours.partition(" ")[0] for _, ours in FEATURES.values()} >= modules


NUMBERS = (
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9)
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40)
    | st.integers(-(10**6), 10**6).map(Decimal)
)
_ROUNDINGS = [name for name in dir(decimal) if name.startswith("ROUND_")]
#: Expressions of methods over two numbers `a` and `b` and a small integer `n`, and how they show it.
_WORK = [
    *"a + b|a - b|a * b|a / b|a // b|a % b|divmod(a, b)|a ** n|-a|+a|abs(a)|3 - a|7 * a|n / a".split("|"),
    *"a < b|a <= b|a > b|a >= b|a == b|a != b|0 < a < b|a < n|a == n|a < 1.5|a == 0.5|a in [b, a]|bool(a)".split("|"),
    *"sorted([b, a, -a])|sorted([(b, 1), (a, 2)], reverse=True)|min(a, b)|max([a, b], key=abs)|sum([a, b])".split("|"),
    *"len({a, b, a + 0})|int(a)|float(a)|round(a)|round(a, n)|str(a)|f'{a}'|'%.2f' % a".split("|"),
    *"a.normalize()|abs(a).sqrt()|a.copy_abs()|a.is_signed()|a.is_zero()|a.to_integral_value()|a.quantize(b)".split(
        "|"
    ),
    *(f"a.quantize(Decimal(1).scaleb(-n), rounding=decimal.{rounding})" for rounding in _ROUNDINGS),
    *(f"format(a, {spec!r})" for spec in ".2f|,.2f|+.1f|012.3f|>14.2f|*^20.2f|.0%|e|.3e|g|,|f|<10| .2f".split("|")),
]
_EACH = "try:\n    told.append(str({}))\nexcept Exception as error:\n    told.append(type(error).__name__)\n"
_ALL = "import decimal\nfrom decimal import Decimal\na, b, told = Decimal(one), Decimal(other), []\n"
_DECIMALS = _ALL + "".join(map(_EACH.format, _WORK)) + "told"


@example(Decimal("0.0345"), Decimal(0), 2)
@example(Decimal("-0"), Decimal("1E+3"), 0)
@given(NUMBERS, NUMBERS, st.integers(0, 6))
def test_decimals_are_those_of_cpython(bare: Callable[..., Any], one: Decimal, other: Decimal, n: int) -> None:
    """Arithmetic, comparisons, roundings and formats, digit for digit, and the same failure where there is one."""
    given = {"one": str(one), "other": str(other), "n": n}
    ours, theirs = bare(_DECIMALS, **given), in_python(_DECIMALS, **given)
    assert dict(zip(_WORK, ours, strict=True)) == dict(zip(_WORK, theirs, strict=True))


@example(Decimal("0.0345"), 2)
@given(NUMBERS.filter(bool), st.integers(1, 6))
def test_negative_powers_are_rounded_once(bare: Callable[..., Any], one: Decimal, n: int) -> None:
    """CPython's own is off by one in the last digit now and then."""
    with decimal.localcontext() as exact:
        exact.prec = 400
        power = one**-n
    assert bare("from decimal import Decimal\nstr(Decimal(one) ** -n)", one=str(one), n=n) == str(+power)


@pytest.mark.parametrize("text", ["12,5", "", " 1.50 ", "1_000", "-.5E-3", "NaN", "-Infinity", "0E-10"])
def test_texts_are_read_as_cpython_reads_them(bare: Callable[..., Any], text: str) -> None:
    """A number, or InvalidOperation, which is an ArithmeticError and no ValueError."""
    source = (
        "from decimal import Decimal, InvalidOperation\ntry:\n    told = str(Decimal(text))\nexcept ValueError:\n"
        "    told = 'wrong'\nexcept InvalidOperation:\n    told = 'invalid'\ntold"
    )
    assert bare(source, text=text) == in_python(source, text=text)
