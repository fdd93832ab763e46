"""The scorer of tasks: the same results as the corpus' own, each check by itself, and code only where it is allowed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tasks_code_side import run_cases, same
from tasks_side import KNOWN, Row, TaskScore, content_of, score

ANSWER = "1. The roof costs 1.234,50 euro.\n2. Mrs Okafor comes on **3 May**."
FUNCTION = "```python\ndef double(value):\n    return 2 * value\n```"


def reference(corpus: Path) -> ModuleType:
    """Load the corpus' own scorer, which only a test does."""
    spec = importlib.util.spec_from_file_location("reference_score", corpus / "tasks" / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_reference(found: TaskScore) -> dict[str, Any]:
    """Return a score in the form of the corpus' scorer, without the reasons."""
    checks = [(each.check, bool(each.ok)) for each in found.rows]
    return {"score": found.score, "right": found.right, "content": found.content, "checks": checks}


def test_scores_are_those_of_the_corpus(corpus: Path) -> None:
    """The expected answer of each task is right and the wrong one is not; each row is as the reference has it."""
    theirs, tasks = reference(corpus), (corpus / "tasks" / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    seen: set[str] = set()
    for task in map(json.loads, tasks):
        texts = [(corpus / "tasks" / "documents" / name).read_text(encoding="utf-8") for name in task["files"]]
        foils = ("", task["question"], "\n\n".join(texts), "The text does not say.", f"- {task['expected']}", ANSWER)
        for answer in (task["expected"], task["wrong"], *foils):
            wanted = theirs.score(task, answer)
            rows = [(each["check"], each["ok"]) for each in wanted["checks"]]
            assert as_reference(score(task, answer, run_code=True)) == {**wanted, "checks": rows}, task["id"]
        assert score(task, task["expected"], run_code=True).right
        assert not score(task, task["wrong"], run_code=True).right
        seen |= {each["type"] for each in task["checks"]}
    assert seen <= KNOWN


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        ({"type": "all_of", "items": ["roof", ["Okafor", "Okoye"]]}, ANSWER, "The roof."),
        ({"type": "any_of", "items": ["Okoye", "re:ok.for"]}, ANSWER, "The roof."),
        ({"type": "none_of", "items": ["64"]}, "640 or 64.5", "64"),
        ({"type": "number", "value": 1234.5}, ANSWER, "12345"),
        ({"type": "number", "value": 1.5, "tol": 0.1}, "about 1,45", "1.7"),
        ({"type": "numbers_from", "allowed": [1234.5, 3]}, ANSWER, "4 May"),
        ({"type": "order", "items": ["roof", "Okafor"]}, ANSWER, "Okafor, roof"),
        ({"type": "matches", "pattern": "ja|nein"}, "**Nein**", "Nein."),
        ({"type": "each_line", "pattern": "^- "}, "- a\n\n- b", "- a\nb"),
        ({"type": "json_equal", "fields": {"a": 1, "b": "Größe"}}, '{"a": "1 kg", "b": "grosse", "c": 0}', '{"a": 1}'),
        ({"type": "json_equal", "fields": [1, "x"]}, "```json\n[1, 'x']\n```\n[1, \"X\"]", "[1]"),
        ({"type": "only_json"}, "```json\n{}\n```", "Here: {}"),
        ({"type": "sentences", "max": 1}, "It was Dr. Roth on the 3. Mai.", "One. Two."),
        ({"type": "bullets", "min": 2, "max": 2}, ANSWER, "- one"),
        ({"type": "words", "min": 3, "max": 4}, "四个词语", "one two"),
        ({"type": "lines", "max": 1}, "```\none\n```", ANSWER),
        ({"type": "language", "is": "de"}, "Das Dach ist neu und nicht alt.", "The roof is new and not old."),
        ({"type": "only_code"}, FUNCTION, f"Here it is:\n{FUNCTION}"),
        ({"type": "only_code"}, "a = 1", "It is one."),
        ({"type": "declines", "language": "de"}, "Das steht nicht im Text.", "Am 3. Mai."),
        ({"type": "table_has", "rows": [["roof", ["1", "1.234,50"]]]}, ANSWER, "roof\n1.234,50"),
        ({"type": "code_runs", "function": "double", "cases": [[[2], 4]]}, FUNCTION, FUNCTION.replace("2 *", "3 *")),
    ],
)
def test_a_check_holds_and_fails(check: dict[str, Any], good: str, bad: str) -> None:
    """Each type has an answer that passes, and one that does not."""
    assert score({"checks": [check]}, good, run_code=True).right
    assert not score({"checks": [check]}, bad, run_code=True).right


def test_an_unknown_check_is_an_error() -> None:
    """A data set with checks of another version is not scored wrongly in silence."""
    with pytest.raises(ValueError, match="rhymes"):
        score({"checks": [{"type": "rhymes"}]}, "an answer")


def test_an_empty_phrase_has_a_score_and_no_content() -> None:
    """Lengths and what must be absent count for the score alone."""
    checks = [{"type": "words", "max": 9}, {"type": "none_of", "items": ["x"]}, {"type": "all_of", "items": ["86"]}]
    found = score({"checks": checks}, "A phrase.")
    assert (found.score, found.content, found.right, found.misses_a_value) == (0.6667, 0.0, False, True)
    assert score({"checks": checks}, " ").rows == (Row("empty", False, "no answer"),)


def test_what_misses_a_value() -> None:
    """Numbers, fields of JSON and texts with digits are values; names, lengths and languages are none."""
    values = ("number 5", "numbers_from", "json total", "json_equal", "all_of 3 May")
    assert all(TaskScore((Row(each, False),)).misses_a_value for each in values)
    assert not any(TaskScore((Row(each, False),)).misses_a_value for each in ("all_of roof", "words", "language de"))


def test_contents_of_texts_are_compared_by_what_any_text_can_hold() -> None:
    """Forms, refusals, JSON and code are none of a document's matter."""
    checks = [{"type": "all_of", "items": ["86", "yard"]}, {"type": "words", "max": 3}, {"type": "only_json"}]
    assert content_of({"checks": checks}, "86 steps lead up to the lamp.") == 0.5
    assert content_of({"checks": checks[1:]}, "86 steps") is None


def test_code_is_not_run_unless_allowed(tmp_path: Path) -> None:
    """The check fails, says why, and nothing happened."""
    mark = tmp_path / "ran"
    answer = f"def f():\n    import os\n    os.mkdir({str(mark)!r})"
    check: dict[str, Any] = {"type": "code_runs", "function": "f", "cases": [[[], None]]}
    found = score({"checks": [check]}, answer)
    assert (found.right, mark.exists()) == (False, False)
    assert "--run-code" in found.rows[0].why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise ValueError('no')", "ValueError: no"),
        ("exit()", "SystemExit"),
        ("import os; os._exit(0)", "no output"),
        ("return 'x' * 2**31", "MemoryError"),
        ("open('large', 'w').write('x' * 10**6)", "OSError"),
        ("input()", "EOFError"),
        ("return {1}", "TypeError"),
        ("return 2", "not 1"),
    ],
)
def test_bad_code_fails_with_its_reason(body: str, why: str) -> None:
    """It can neither say another's result, nor write, nor take the machine's memory, nor wait for a person."""
    good, said = run_cases(f"def f():\n    print('{{}}')\n    {body}", {"function": "f", "cases": [[[], 1]]})
    assert not good
    assert why in said


def test_code_that_does_not_end_is_ended() -> None:
    """Nor does a mistake before the function keep a scorer waiting."""
    good, said = run_cases("while True: pass", {"function": "f", "cases": []}, 0.2)
    assert (good, said) == (False, "took longer than 0.2 s")


def test_values_of_json_are_compared_with_tolerance() -> None:
    """A text may carry a number, and a number never a truth."""
    assert same({"a": [1, "Größe", True]}, {"a": [1.0, "GROSSE.", True], "b": 0})
    assert same(12.5, "12,50 euro")
    assert same("re:^3 ma", "3 Mai")
    assert not any((same(1, True), same(True, 1), same([1], [1, 2]), same({"a": 1}, []), same("a", None), same(2, "3")))
