"""Finds one entry of a table that an answer gives where a total was asked for."""

from __future__ import annotations

import re

from batos.gate.ground import Draft, Spot
from batos.gate.occurrence import claims
from batos.gate.values import figures, sums
from batos.gate.values.sums import asks_for_total

#: Separators of a row, and rows of a table at least.
_CELLS, _ROWS = 2, 3
_MARKS = (r"[|;\t]", r"\s{2,}", r",(?=\S)")


def single_entries(draft: Draft) -> list[Spot] | None:
    """Check that a total which was asked for is none of the entries of a table alone; None if none was."""
    ground = draft.ground
    if not ground.passages or not asks_for_total(ground.question):
        return None
    text = claims(draft.answer)
    found = figures.find(text)
    asked, worked = figures.read_numbers(ground.question).values, figures.read_numbers(ground.computed).values
    stated = [each for each in found if each.values and not each.values & asked]
    if not stated or sums.calculate_sums(text, found).results:
        return None
    if any(each.values & worked for each in stated) or not all(_is_entry(each, ground.documents) for each in stated):
        return []
    return [Spot("total", stated[0].text)]


def _is_entry(figure: figures.Figure, documents: tuple[str, ...]) -> bool:
    """Test if a number stands in rows of tables alone, none of which is a total itself."""
    places = 0
    for text in documents:
        lines = text.splitlines()
        rows = [_is_row(line) for line in lines]
        if sum(rows) < _ROWS and figure.values & figures.read_numbers(text).values:
            return False
        for line, is_row in zip(lines, rows, strict=True):
            if any(char.isdigit() for char in line) and _has(figure, line, is_row=is_row):
                if not is_row or asks_for_total(line):
                    return False
                places += 1
    return places > 0


def _has(figure: figures.Figure, line: str, *, is_row: bool) -> bool:
    cells = _cells(line) if is_row else [line]
    return any(figure.values & each.values for cell in cells for each in figures.find(cell))


def _is_row(line: str) -> bool:
    return len(_cells(line)) > _CELLS


def _cells(line: str) -> list[str]:
    """Return the cells of a row; a comma parts them only where no other mark does, since numbers have it too."""
    parted = (re.split(mark, line.strip()) for mark in _MARKS)
    return next((cells for cells in parted if len(cells) > _CELLS), [line])
