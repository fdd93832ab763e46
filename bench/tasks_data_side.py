"""Reads tasks with their documents, picks an equal share of them, and keeps lines that a later run goes on from."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tasks_side import KNOWN, Task

FOLDER: Final = "folder"
#: The kinds that are looked at together.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "facts": ("lookup", "follow_up"),
    "sets": ("list_all", "compare", "summarise", "multi_file"),
    "forms": ("extract_json", "code", "rewrite", "instruction"),
    "reckoning": ("aggregate", "date_reasoning"),
    "restraint": ("unanswerable",),
}
_FIELDS: Final = ("id", "kind", "language", "files", "question", "checks")


class DataError(Exception):
    """The data cannot be read; the message says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class TaskData:
    """Tasks, and the text of each document by its name."""

    tasks: Sequence[Task]
    documents: Mapping[str, str]

    def files_of(self, task: Task) -> dict[str, str]:
        """Return the documents that are attached to a task, or that hold its answer, in the order given."""
        return {name: self.documents[name] for name in task["files"]}


def read_data(folder: Path) -> TaskData:
    """Read the tasks of a folder: `tasks.jsonl`, and `documents` beside it.

    Raises: DataError: a file is missing, or a task has not the form that is described beside the data.
    """
    file = folder / "tasks.jsonl"
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        paths = sorted(each for each in (folder / "documents").iterdir() if each.is_file())
        documents = {each.name: each.read_text(encoding="utf-8") for each in paths}
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"no tasks at {folder}: {error}; name a folder with tasks.jsonl and documents/") from error
    tasks = [_task(line, f"{file}:{number}", documents) for number, line in enumerate(lines, 1) if line.strip()]
    doubled = [name for name, count in Counter(each["id"] for each in tasks).items() if count > 1]
    if doubled or not tasks:
        what = f"the id {doubled[0]!r} is there twice" if doubled else "there are no tasks"
        raise DataError(f"{file}: {what}")
    return TaskData(tasks, documents)


def _task(line: str, place: str, documents: Mapping[str, str]) -> Task:
    """Return the task of a line. Raises: DataError: it is none."""
    try:
        task: dict[str, Any] = {"before": [], **json.loads(line)}
    except (TypeError, ValueError) as error:
        raise DataError(f"{place}: this is no JSON object: {error}") from error
    missing = [name for name in _FIELDS if name not in task]
    absent = [name for name in task.get("files", ()) if name not in documents]
    unknown = [each.get("type") for each in task.get("checks", ()) if each.get("type") not in KNOWN]
    if missing:
        raise DataError(f"{place}: the task has no {missing[0]!r}")
    if absent:
        raise DataError(f"{place}: there is no document {absent[0]!r}")
    if unknown or not task["checks"]:
        raise DataError(f"{place}: the check {unknown[0]!r} is not known" if unknown else f"{place}: it has no checks")
    return task


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a value as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def pick(tasks: Sequence[Task], most: int) -> list[Task]:
    """Return so many tasks in the order in which they are asked: equal shares of kinds, and of languages in a kind.

    The hash of the id decides among equals, so that the order of the file does not matter, and a larger number takes
    the same tasks and some more. With 0 all are taken.
    """
    waiting: defaultdict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in sorted(tasks, key=lambda each: digest_of(each["id"]), reverse=True):
        waiting[task["kind"], task["language"]].append(task)
    kinds, languages, within = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    picked: list[Task] = []
    while waiting and (most == 0 or len(picked) < most):
        kind, language = min(
            waiting, key=lambda each: (kinds[each[0]], digest_of(each[0]), within[each], languages[each[1]], each[1])
        )
        kinds[kind] += 1
        languages[language] += 1
        within[kind, language] += 1
        picked.append(waiting[kind, language].pop())
        if not waiting[kind, language]:
            del waiting[kind, language]
    return picked


def user_cache() -> Path:
    """Return the folder of this bench in the user's cache."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "batos" / "bench"


@dataclass(slots=True)
class KeptLines:
    """A file with a line of JSON for each key, to which lines are added; the last one of a key counts."""

    path: Path
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the lines that are there. A line that was cut off by the end of a process is passed over."""
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        for line in text.splitlines():
            try:
                row = json.loads(line)
                self.rows[row.pop("key")] = row
            except (AttributeError, KeyError, TypeError, ValueError):  # it was cut, and is asked again
                continue
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if text and not text.endswith("\n"):
            self._append("\n")

    def add(self, key: str, row: Mapping[str, Any]) -> None:
        """Add a line, which is on the disk when this returns."""
        self.rows[key] = dict(row)
        self._append(json.dumps({"key": key, **row}, ensure_ascii=False) + "\n")

    def _append(self, text: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
