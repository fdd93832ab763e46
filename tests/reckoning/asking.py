"""Questions to small tables with their results, and the judge of a reckoning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path

from batos.reckoning.reckon import reckon_texts
from batos.reckoning.reckonings import Reckoning
from batos.reckoning.tables import Text

DATA = Path(__file__).parents[1] / "data" / "reckoning"
TODAY = date(2026, 11, 28)

#: A number, a text, nothing (not computed), or a note that several columns fit.
Expected = float | int | str | dict[str, bool] | None


def ask(question: str, text: str, name: str = "table.csv") -> Reckoning | None:
    """Return what a question gets from one text."""
    return reckon_texts(question, [Text(name, text)], TODAY)


def result(question: str, text: str, name: str = "table.csv") -> str | None:
    """Return the result that a question gets from one text, None if nothing is computed."""
    found = ask(question, text, name)
    return found.result if found else None


def asked(name: str) -> Iterator[tuple[str, str, Expected, Reckoning | None]]:
    """Yield each question of a file with its table, what is expected and what it gets."""
    for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        table = json.loads(line)
        for question, expected in table["questions"]:
            texts = [Text(table["name"], table["text"])]
            found = reckon_texts(question, texts, date.fromisoformat(table["today"]))
            yield table["name"], question, expected, found


def holds(expected: Expected, found: Reckoning | None) -> bool:
    """Test if a reckoning is what is expected."""
    if expected is None or isinstance(expected, dict):
        return found is None if expected is None else found is not None and bool(found.ambiguous) and not found.result
    if found is None or not found.result:
        return False
    if isinstance(expected, str):
        return found.result.startswith(expected) or str(found.day) == expected
    return any(abs(value - Decimal(str(expected))) < Decimal("0.001") for value in _values(found.result))


def gives_wrong(expected: Expected, found: Reckoning | None) -> bool:
    """Test if a reckoning gives a result that is not the expected one; none at all is no wrong one."""
    return found is not None and bool(found.result) and not holds(expected, found)


def _values(text: str) -> Iterator[Decimal]:
    for number in re.findall(r"-?\d[\d.,]*(?: \d{3})*(?:[.,]\d+)?", text):
        for decimal, thousands in ((".", ","), (",", ".")):
            try:
                yield Decimal(number.strip(".,").replace(" ", "").replace(thousands, "").replace(decimal, "."))
            except InvalidOperation:
                continue
