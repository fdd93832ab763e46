"""Plain words as a test: docstrings and pages hold the rules of bench/prose_side.py, and a name means one thing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import names_side
import prose_side
from batos.cli.imports import pause_collector

Trees = Sequence[tuple[Path, ast.Module]]

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
WORDS = ROOT / "docs" / "words.md"


@pytest.fixture(scope="module", autouse=True)
def collector_rests() -> Iterator[None]:
    """Hold the garbage collector back: it would look through the trees of all files, again and again."""
    with pause_collector():
        yield


@pytest.fixture(scope="module")
def trees(collector_rests: None) -> Trees:
    """The tree of each file of src/, bench/ and scripts/, which hold the same rules, read once for all tests here."""
    return [(path, ast.parse(text)) for path, text in [*sources(), *benches()]]


def pages() -> list[Path]:
    written = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")]
    return [*written, SRC / "ollama_emulator" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def sources() -> Iterator[tuple[Path, str]]:
    for path in sorted(SRC.rglob("*.py")):
        yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def benches() -> Iterator[tuple[Path, str]]:
    """Yield the programs of bench/ and scripts/, which hold the same rules as src/."""
    for path in sorted([*(ROOT / "bench").glob("*.py"), *(ROOT / "scripts").glob("*.py")]):
        yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def suite() -> Iterator[tuple[Path, str]]:
    """Yield the files of tests/."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def faults(text: str) -> list[str]:
    return [fault for entry in prose_side.entries(Path("src/a.py"), text) for fault in prose_side.faults(entry)]


def test_docstrings_hold_the_rules(trees: Trees) -> None:
    """No docstring breaks a rule, and none that should be there is missing."""
    found = [entry for path, tree in trees for entry in prose_side.entries(path, tree)]
    assert prose_side.list_faults(found) == []


def test_comments_hold_the_rules() -> None:
    """No sentence of a comment begins with a riddle or with a pronoun whose noun stands elsewhere."""
    assert [fault for path, text in [*sources(), *benches()] for fault in prose_side.comments(path, text)] == []


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_hold_the_rule_of_sentences(page: Path) -> None:
    """No sentence, heading or table cell of a page begins with a riddle; code, quotations and output are not prose."""
    assert list(prose_side.riddles(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_a_page_says_first_what_it_is_for(page: Path) -> None:
    """Below its title a page says its purpose, so that a reader knows at once if this is the right one."""
    assert page.read_text(encoding="utf-8").split("\n\n")[1].startswith("This page ")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("# Why\n\n- **What is kept.** It is kept.", 3),
        ("| key | what |\n|---|---|\n| how | A word. It is new. |", 3),
        ("See there. [Why](why.md) has more.", 1),
        ("| [why.md](why.md) | `it` and `a|what` |\n|---|---|\n| 0.5 | a \\| what |", 0),
        ("```text\nIt is output.\n```\n\n    It = code()\n\n> It is said.\n\nThe text.", 0),
    ],
)
def test_a_riddle_on_a_page_is_found(text: str, count: int) -> None:
    """Headings, items, paragraphs and cells are read; quotations, code and names of files are not."""
    assert len(list(prose_side.riddles(text))) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("#: What it gives.", 1),
        ("x = 1  # Counted. It is one.", 1),
        ("# a line goes on: it ends here. Who wrote it?", 1),
        ("#: The value, which is one.", 0),
        ("# goes on where the line before ended: what it says", 0),
        ("x = '# What'", 0),
    ],
)
def test_a_riddle_in_a_comment_is_found(text: str, count: int) -> None:
    """Comments are read as sentences, and texts of the program are not."""
    assert len(list(prose_side.comments(Path("a.py"), text))) == count


@pytest.mark.parametrize(
    "text",
    [
        '"""No full stop"""',
        '"""A module."""\ndef f():\n    """Value."""',
        '"""A module."""\ndef f():\n    """The value."""',
        '"""A module."""\ndef _f():\n    """The value."""',
        '"""A module."""\ndef f():\n    """Return a value. It is new."""',
        '"""A module."""\ndef f():\n    """Return a value.\n\n    Which one, nobody knows."""',
        '"""A module."""\nclass A:\n    """Values. One is enough."""',
        '"""A module."""\ndef f(): ...',
        '"""A module."""\nclass A:\n    """Values."""\n    async def f(self): ...',
        '"""A module.\n\n(They are many.)"""',
    ],
)
def test_a_docstring_that_breaks_a_rule_is_found(text: str) -> None:
    """Each rule can fail."""
    assert len(faults(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        '"""A module."""\ndef f():\n    """Return a value, which is new: it is never `None`. The caller closes it."""',
        '"""A module."""\ndef _f(): ...',
        '"""A module."""\nclass _A:\n    """Values."""\n    def f(self): ...',
        '"""A module."""\ndef f():\n    """Return a value."""\n    def g(): ...',
        '"""A module.\n\nAn example:\n\n    It = code()\n"""',
    ],
)
def test_a_docstring_that_holds_the_rules_is_let_pass(text: str) -> None:
    """Private and inner functions may go without a docstring, and code in one is not prose."""
    assert faults(text) == []


def test_a_share_counts_a_missing_docstring_as_a_fault() -> None:
    """One of three public entries is plain: one breaks a rule and one has no docstring."""
    found = list(prose_side.entries(Path("a.py"), '"""A module."""\ndef f(): ...\ndef g():\n    """A value."""'))
    assert prose_side.shares(found) == (0.3333, 0.5)


def test_a_class_name_in_two_files_is_ambiguous() -> None:
    """The same class name twice is two things; a file name twice needs its row in the table with both folders."""
    files = [(Path("src/a/x.py"), "class A: ..."), (Path("src/b/x.py"), "class A: ...\nclass B: ...")]
    page = f"{names_side.HEADING}\n\n| file | folders | reason |\n|---|---|---|\n| `x` | `a`, `b` | layers |\n"
    assert set(names_side.ambiguous(files, page)) == {"class A"}
    assert set(names_side.ambiguous(files, "")) == {"class A", "file x"}


def test_a_class_name_means_one_thing(trees: Trees) -> None:
    """No class name stands twice in src/, and no file name that is not in the table."""
    files = [(path, tree) for path, tree in trees if path.parts[0] == "src"]
    assert names_side.ambiguous(files, WORDS.read_text(encoding="utf-8")) == {}


def test_the_table_of_file_names_is_short_and_true() -> None:
    """Each row names a file that stands in exactly these folders, and there are at most 25."""
    page = WORDS.read_text(encoding="utf-8")
    paths = [path.relative_to(ROOT) for path in SRC.rglob("*.py")]
    assert names_side.stale(paths, page) == []
    assert len(names_side.table(page)) <= names_side.ROWS


def test_our_own_words_are_few() -> None:
    """A newcomer looks up at most thirty words; a word more needs another one gone."""
    table = WORDS.read_text(encoding="utf-8").partition("## Ours\n")[2].partition("\n## ")[0]
    assert 20 <= table.count("\n| *") <= 30


def test_a_function_is_a_verb_or_the_noun_that_it_returns(trees: Trees) -> None:
    """No function is named by a bare participle or by a clause; `bench/house.py --list participles` prints them."""
    assert [fault for path, tree in trees for fault in names_side.participles(path, tree)] == []


def test_a_class_is_a_noun(trees: Trees) -> None:
    """No class but exceptions and the payloads of events has a name that ends with a participle, in tests/ neither."""
    assert names_side.nameless_classes([*trees, *suite()]) == []


def test_a_class_named_by_a_participle_is_found() -> None:
    """An exception may be a participle, by a base of another file too; a class with a noun after it is plain."""
    files = [
        (Path("a.py"), "class Stopped(Exception): ...\nclass Called: ..."),
        (Path("b.py"), "class Forced(a.Stopped): ...\nclass SavedVectors: ...\nclass VectorsKept: ..."),
        (Path(names_side.EVENTS), "class MissionEnded: ..."),
    ]
    assert names_side.nameless_classes(files) == ["a.py:2: Called is no noun", "b.py:3: VectorsKept is no noun"]


@pytest.mark.parametrize(
    "text",
    [
        "def streamed(): ...",
        "def _held(): ...",
        "def told_by() -> str: ...",
        "def last_said() -> str: ...",
        "def as_declared() -> 'list[bool]': ...",
        "async def why_not() -> bool: ...",
        "def of(): ...",
        "class A:\n    @property\n    def ended(self) -> int: ...",
        "def read():\n    def _found(): ...",
    ],
)
def test_a_participle_or_a_clause_as_a_name_is_found(text: str) -> None:
    """Methods, properties, private and inner functions are read, and small words after a participle are no noun."""
    assert len(list(names_side.participles(Path("a.py"), text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def is_ended() -> bool: ...",
        "def streamed() -> bool: ...",
        "def parsed_header() -> str: ...",
        "def created_at() -> float: ...",
        "def raise_if_closed(): ...",
        "def on_ended(): ...",
        "def connection_made(): ...",
        "def read(): ...",
        "def embed(): ...",
        "def __enter__(): ...",
        "def _(): ...",
    ],
)
def test_a_verb_a_noun_and_a_predicate_are_let_pass(text: str) -> None:
    """A bool, a noun after the participle, a verb before it, an event's handler and a name from outside are plain."""
    assert list(names_side.participles(Path("a.py"), text)) == []
