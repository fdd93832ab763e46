"""The tree of errors: each of its kinds has its exit code, and says what a person can do."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from batos.protocol import errors
from batos.protocol.errors import BatosError, CodexError, MessageNotUnderstood, UsageError

SOURCES = Path(__file__).resolve().parents[2] / "src" / "batos"

#: What CONTRACT gives an exit code of its own.
EXITS = {
    "UsageError": 2,
    "OllamaError": 3,
    "Refused": 4,
    "ImageError": 5,
    "NoServer": 6,
    "TimedOut": 7,
    "ApprovalNeeded": 7,
    "OutcomeUnknown": 7,
    "LookUpFailed": 1,
    "MethodFailed": 1,
    "MissionFailed": 1,
    "ObjectError": 1,
    "InternalError": 1,
}
#: The daemon was reached and is fit: what then fails is the mission.
FAILED = {"ContextOverflow", "RequestRejected", "AnswerError"}


def kinds() -> list[type[BatosError]]:
    return [
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, BatosError) and kind is not BatosError
    ]


def example(kind: type[BatosError]) -> BatosError:
    """One of this kind, with something for whatever it must be given."""
    given: dict[str, Any] = {"str": "word", "int": 3, "float": 1.5, "int | None": 3, "str | None": "word"}
    given["Mapping[str, object]"] = {}
    wanted = inspect.signature(kind).parameters.values()
    return kind(**{each.name: given[each.annotation] for each in wanted if each.default is inspect.Parameter.empty})


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_each_kind_ends_with_its_exit_code(kind: type[BatosError]) -> None:
    """The exit code is CONTRACT's, by the branch that the error is on."""
    lineage = [each.__name__ for each in kind.__mro__]
    expected = 1 if FAILED & set(lineage) else next(EXITS[name] for name in lineage if name in EXITS)
    assert kind.exit_code == expected


def test_codes_are_names_of_their_own() -> None:
    """No two kinds share a code, and codes are words that a program can compare."""
    codes = [kind.code for kind in kinds()]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


#: What some kinds tell beside what all do.
MORE = {errors.BudgetExceeded: {"largest_num_ctx", "budget"}, errors.ApprovalNeeded: {"approval", "approvals"}}


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_each_kind_can_be_told_to_a_program(kind: type[BatosError]) -> None:
    """Code, message, remedy and retry are always there, a field and further faults only where there are any."""
    error = example(kind)
    shown = json.loads(json.dumps(error.as_dict()))
    more = MORE.get(kind, set())
    always = {"code", "message", "remedy", "retry"}
    assert always <= set(shown) <= {*always, "field", *more}
    assert (shown["code"], shown["message"], shown["retry"]) == (kind.code, error.message, kind.retry)
    assert str(error) == "\n".join(filter(None, (error.message, error.remedy)))
    error.also = ("another",)
    error.field = "text"
    assert error.as_dict()["also"] == ["another"]
    assert error.as_dict()["field"] == "text"


#: Of these only who raises them knows what is to be done.
RAISER_KNOWS = {"Refused", "ImageError", "TimedOut"}


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_each_kind_says_what_to_do(kind: type[BatosError]) -> None:
    """There is a remedy in the class or its constructor, but where only who raises it can know."""
    error = example(kind)
    assert error.remedy or kind.__name__ in RAISER_KNOWS
    assert not error.remedy or error.remedy.endswith(".")


def test_who_raises_them_says_it() -> None:
    """Wherever src makes an error whose kind has no remedy, it gives one."""
    silent, kinds_without = [], RAISER_KNOWS | {"BatosError"}
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # A file that has none of the names makes none of the errors, and is not parsed.
        for node in ast.walk(ast.parse(text)) if any(name in text for name in kinds_without) else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in kinds_without and "remedy" not in {each.arg for each in node.keywords}:
                silent.append(f"{path.name}:{node.lineno} {node.func.id}")
    assert silent == []


def test_a_remedy_of_ones_own_wins() -> None:
    """What the raiser knows better is told in the place of the kind's remedy, of this error alone."""
    assert UsageError("no", remedy="Do this.").remedy == "Do this."
    assert UsageError("no").remedy == UsageError.remedy


def test_a_fault_of_a_codex_is_found_by_file_and_line() -> None:
    """File and line stand before the message."""
    assert CodexError("no such slot", file="brick.toml", line=7).message == "brick.toml:7: no such slot"
    assert CodexError("it is empty", file="brick.toml").message == "brick.toml: it is empty"


def test_an_absent_slot_is_an_absent_attribute() -> None:
    """`hasattr` and `getattr` with a default work on objects of the image."""
    error = MessageNotUnderstood("oid:0x2a", "fly")
    assert isinstance(error, AttributeError)
    assert error.message == "oid:0x2a does not understand 'fly'"


def test_a_busy_image_says_what_to_do_about_its_holder() -> None:
    """A server is stopped; for another process it is waited for."""
    served, asked = (errors.ImageBusy("a.fs", f"process 7 (batos {verb})").remedy for verb in ("serve", "ask"))
    assert ("stop that server" in served, "wait for that process" in asked) == (True, True)
