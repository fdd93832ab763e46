"""Scores answers to tasks as the corpus' own score.py does: the checks of a task, and the shares of them that hold.

A task is a line of tasks.jsonl as the corpus' README describes it. Code of a folder of data is never loaded, and the
code of an answer runs only where that is allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from tasks_code_side import json_of, run_cases, same
from tasks_texts_side import (
    MARKER,
    count_bullets,
    count_sentences,
    count_words,
    find,
    fold,
    language,
    lines,
    numbers,
    plain,
    readings,
)
from tasks_words_side import DECLINES

#: A task, a check: lines of JSON whose fields README.md of the corpus describes.
Task: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Mapping[str, Any]

#: Checks that an empty phrase can pass.
FORM: Final = frozenset(
    "none_of numbers_from sentences bullets words lines language only_code only_json each_line".split()
)


class Row(NamedTuple):
    """A check, or one entry of it: its name, and the reason why it does not hold, where it does not."""

    check: str
    ok: bool
    why: str = ""

    @property
    def kind(self) -> str:
        """Return the first word of its name."""
        return self.check.split()[0]

    @property
    def is_of_a_value(self) -> bool:
        """Test if it asks for a value: a number, the numbers that may occur, a text with digits, a field of JSON."""
        with_digit = self.kind == "all_of" and any(each.isdigit() for each in self.check)
        return with_digit or self.kind in ("number", "numbers_from", "json", "json_equal")


@dataclass(frozen=True, slots=True)
class TaskScore:
    """The rows of an answer's checks."""

    rows: tuple[Row, ...]

    @property
    def score(self) -> float:
        """Return the share of the checks that hold."""
        return round(sum(each.ok for each in self.rows) / len(self.rows), 4)

    @property
    def right(self) -> bool:
        """Test if all checks hold."""
        return all(each.ok for each in self.rows)

    @property
    def content(self) -> float:
        """Return the share that holds of the checks that no empty phrase passes; of all if there are only others."""
        inner = [each.ok for each in self.rows if each.kind not in FORM]
        return round(sum(inner) / len(inner), 4) if inner else float(self.right)

    @property
    def misses_a_value(self) -> bool:
        """Test if a check of a value does not hold."""
        return any(each.is_of_a_value and not each.ok for each in self.rows)


def score(task: Task, answer: str, *, run_code: bool = False) -> TaskScore:
    """Score an answer to a task. Raises: ValueError: a check is of no known type."""
    if not answer.strip():
        return TaskScore((Row("empty", False, "no answer"),))
    folded = fold(answer)
    return TaskScore(tuple(row for each in task["checks"] for row in _look(each, answer, folded, run_code=run_code)))


def _look(check: Check, answer: str, folded: str, *, run_code: bool) -> Sequence[Row]:
    kind = check["type"]
    if kind == "code_runs":
        return [Row(kind, *(run_cases(answer, check) if run_code else (False, "it was not run: --run-code runs it")))]
    if kind not in CHECKS:
        raise ValueError(f"unknown check {kind!r}: one of {', '.join(sorted(KNOWN))}")
    return CHECKS[kind](check, answer, folded)


def _rows(kind: str, ok: bool, why: str) -> list[Row]:
    """Return one row, with its reason where it does not hold."""
    return [Row(kind, ok, "" if ok else why)]


def _has(wanted: str | Sequence[str], folded: str) -> bool:
    """Test if a folded text has one of the wanted strings."""
    return any(find(each, folded) >= 0 for each in _several(wanted))


def _several(wanted: str | Sequence[str]) -> Sequence[str]:
    return [wanted] if isinstance(wanted, str) else wanted


def _all_of(check: Check, _answer: str, folded: str) -> list[Row]:
    return [
        row for item in check["items"] for row in _rows(f"all_of {_several(item)[0]}", _has(item, folded), "absent")
    ]


def _any_of(check: Check, _answer: str, folded: str) -> list[Row]:
    return _rows("any_of", _has(check["items"], folded), "none present")


def _none_of(check: Check, _answer: str, folded: str) -> list[Row]:
    bad = [each for each in check["items"] if find(each, folded) >= 0]
    return [Row("none_of", not bad, ", ".join(bad))]


def _number(check: Check, answer: str, _folded: str) -> list[Row]:
    most = check.get("tol", 0) + 1e-9
    ok = any(abs(each - check["value"]) <= most for each in numbers(answer))
    return _rows(f"number {check['value']}", ok, "absent")


def _numbers_from(check: Check, answer: str, _folded: str) -> list[Row]:
    unnumbered = "\n".join(MARKER.sub("", each) for each in answer.splitlines())
    allowed = set(check["allowed"])
    found = re.findall(r"\d+(?:[.,]\d+)*", unnumbered)
    bad = [each for each in found if not any(value in allowed for value in readings(each))]
    return [Row("numbers_from", not bad, ", ".join(bad[:5]))]


def _order(check: Check, _answer: str, folded: str) -> list[Row]:
    places = [find(each, folded) for each in check["items"]]
    return _rows("order", min(places) >= 0 and places == sorted(places), str(places))


def _matches(check: Check, _answer: str, folded: str) -> list[Row]:
    ok = re.fullmatch(plain(check["pattern"]), folded, re.IGNORECASE | re.DOTALL) is not None
    return _rows("matches", ok, "another form")


def _each_line(check: Check, answer: str, _folded: str) -> list[Row]:
    bad = [each for each in lines(answer) if not re.search(check["pattern"], each)]
    return [Row("each_line", not bad and bool(lines(answer)), (bad or [""])[0][:60])]


def _json_equal(check: Check, answer: str, _folded: str) -> list[Row]:
    value, fields = json_of(answer), check["fields"]
    if isinstance(fields, list):
        return [Row("json_equal", value is not None and same(fields, value), f"{value!r:.100}")]
    if not isinstance(value, dict):
        return [Row(f"json {key}", False, "no object") for key in fields]
    return [
        row
        for key, wanted in fields.items()
        for row in _rows(f"json {key}", key in value and same(wanted, value[key]), f"{value.get(key)!r:.60}")
    ]


def _only_json(_check: Check, answer: str, _folded: str) -> list[Row]:
    try:
        json.loads(re.sub(r"^```\w*\s*|\s*```$", "", answer.strip()))
    except (ValueError, RecursionError) as error:
        return [Row("only_json", False, str(error)[:80])]
    return [Row("only_json", True)]


def _count_check(kind: str, count: Callable[[str], int]) -> CheckFunction:
    """Return the check of a count within its bounds."""

    def check_count(check: Check, answer: str, _folded: str) -> list[Row]:
        found = count(answer)
        return _rows(kind, check.get("min", 0) <= found <= check.get("max", 10**9), f"{found} {kind}")

    return check_count


def _language(check: Check, answer: str, _folded: str) -> list[Row]:
    got = language(answer, check["is"])
    ok = got == check["is"] or (got is None and count_words(answer) < 6)
    return [Row(f"language {check['is']}", ok, str(got))]


def _only_code(_check: Check, answer: str, _folded: str) -> list[Row]:
    if "```" in answer:
        outside = re.sub(r"```[^\n]*\n.*?(?:```|\Z)", "", answer, flags=re.DOTALL).strip()
        return [Row("only_code", not outside, outside[:60])]
    try:
        compile(answer, "answer", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [Row("only_code", False, str(error)[:60])]
    return [Row("only_code", True)]


def _declines(check: Check, _answer: str, folded: str) -> list[Row]:
    ways = dict.fromkeys((*DECLINES[check["language"]], *DECLINES["en"]))
    return _rows("declines", any(re.search(each, folded, re.DOTALL) for each in ways), "does not decline")


def _table_has(check: Check, answer: str, _folded: str) -> list[Row]:
    folded = [fold(each) for each in answer.splitlines()]
    rows = []
    for key, value in check["rows"]:
        ok = any(find(key, each) >= 0 and _has(value, each) for each in folded)
        rows += _rows(f"row {key} {_several(value)[0]}", ok, "absent")
    return rows


CheckFunction: TypeAlias = Callable[[Check, str, str], Sequence[Row]]

#: The checks by their type, beside that which runs code.
CHECKS: Final[Mapping[str, CheckFunction]] = {
    "all_of": _all_of,
    "any_of": _any_of,
    "none_of": _none_of,
    "number": _number,
    "numbers_from": _numbers_from,
    "order": _order,
    "matches": _matches,
    "each_line": _each_line,
    "json_equal": _json_equal,
    "only_json": _only_json,
    "sentences": _count_check("sentences", count_sentences),
    "bullets": _count_check("bullets", count_bullets),
    "words": _count_check("words", count_words),
    "lines": _count_check("lines", lambda answer: len(lines(answer))),
    "language": _language,
    "only_code": _only_code,
    "declines": _declines,
    "table_has": _table_has,
}
KNOWN: Final = CHECKS.keys() | {"code_runs"}


def runs_code(task: Task) -> bool:
    """Test if a check of a task runs the code of the answer."""
    return any(each["type"] == "code_runs" for each in task["checks"])


#: Checks that a text of any form can hold: by them prompts and documents are compared.
OF_CONTENT: Final = frozenset(("all_of", "any_of", "number", "order", "table_has"))


def content_of(task: Task, text: str) -> float | None:
    """Return the share of the checks of content that a text holds; None if a task has none."""
    checks = [each for each in task["checks"] if each["type"] in OF_CONTENT]
    return score({"checks": checks}, text).content if checks else None
