"""The two forms of a reply in words: a table of things that are alike, and a card of one thing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from batos.terminal.layout import table

#: A column: the key of a value, or a function that makes the cell.
Column: TypeAlias = str | Callable[[Any], object]
#: Columns of a label, with the space behind it.
_LABEL: Final = 9


def listing(
    lines: Sequence[Mapping[str, object]], columns: Mapping[str, Column], empty: str = "", whole: Collection[int] = ()
) -> str:
    """Write a table of lines, a column for each head; `empty` where there is no line.

    >>> print(listing([{"name": "notes", "uses": 2}], {"grant": "name", "used": lambda each: f"{each['uses']} times"}))
    grant  used
    notes  2 times
    """
    rows = [[str(each[of] if isinstance(of, str) else of(each)) for of in columns.values()] for each in lines]
    return table(rows, tuple(columns), whole) if rows else empty


def card(rows: Iterable[tuple[str, object]]) -> str:
    r"""Write a thing, a label and a value a line; further lines of a value stand below its first one.

    >>> print(card([("dream", "m-1"), ("answer", "yes\nand no"), ("", "more")]))
    dream    m-1
    answer   yes
             and no
             more
    """
    return "\n".join(row(label, value) for label, value in rows)


def row(label: str, value: object) -> str:
    """Write a line of a card."""
    return f"{label.ljust(_LABEL - 1)} {value}".replace("\n", f"\n{' ' * _LABEL}").rstrip(" ")
