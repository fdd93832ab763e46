"""The tests begin with the files that take longest, and the end of a run says where its time went."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.timing import SLOW_CALLBACK, TABLE, Timing, folder_of, read_table

ROOT = Path(__file__).resolve().parents[1]
BODY = "import pytest\n\ndef test_one(): pass\n\ndef test_two(subtests):\n    with subtests.test('a'): pass\n"


def folders(pytester: pytest.Pytester) -> None:
    """Three files in two folders."""
    for name in ("one/test_a.py", "one/test_b.py", "two/test_c.py"):
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(BODY, encoding="utf-8")


def run(pytester: pytest.Pytester, timing: Timing, *arguments: str) -> pytest.RunResult:
    """A run of pytest with the plugin, none of the checkout's settings, and no other plugin that orders tests."""
    others = [word for name in ("cacheprovider", "asyncio", "batos", "randomly") for word in ("-p", f"no:{name}")]
    return pytester.runpytest_inprocess(*others, *arguments, plugins=[timing])


def test_files_with_long_tests_come_first(pytester: pytest.Pytester) -> None:
    """A file's tests stay together and in their order; files without a long test stay where they were."""
    folders(pytester)
    found = run(pytester, Timing({"two/test_c.py": 2.5, "one/test_b.py": 7.0}), "--collect-only", "-q")
    found.stdout.fnmatch_lines(
        [
            "one/test_b.py::test_one",
            "one/test_b.py::test_two",
            "two/test_c.py::test_one",
            "two/test_c.py::test_two",
            "one/test_a.py::test_one",
            "one/test_a.py::test_two",
        ],
        consecutive=True,
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_time_of_each_folder_is_printed(pytester: pytest.Pytester, workers: str) -> None:
    """Items, cases inside them and seconds by folder, in one process and in several alike."""
    folders(pytester)
    timing = Timing({})
    found = run(pytester, timing, "-n", workers)
    assert {name: (row.items, row.cases) for name, row in timing.rows.items()} == {"one": (4, 2), "two": (2, 1)}
    assert all(row.seconds > 0 for row in timing.rows.values())
    found.stdout.fnmatch_lines(["*time by folder*", "*items*cases*seconds*folder", "*6 *3 *in all workers"])


def test_one_folder_needs_no_table(pytester: pytest.Pytester) -> None:
    """A run of one folder prints no table: the summary has its seconds."""
    folders(pytester)
    run(pytester, Timing({}), "two").stdout.no_fnmatch_line("*time by folder*")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_slow_callbacks_are_told(pytester: pytest.Pytester, workers: str) -> None:
    """What a test notes of its event loop stands at the end of the run, which passes."""
    pytester.makepyfile(f"def test_one(record_property): record_property({SLOW_CALLBACK!r}, '120 ms in greedy')")
    found = run(pytester, Timing({}), "-n", workers)
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(["*callbacks that held*", "120 ms in greedy  *::test_one"])


def test_the_table_is_written_from_a_run(pytester: pytest.Pytester) -> None:
    """Files whose longest test took a second or more are kept, the longest first."""
    timing = Timing({}, pytester.path / "times.json")
    timing.seconds |= {"a.py::one": 1.0, "a.py::two": 2.04, "b.py::one": 0.99, "c.py::one": 5.0}
    timing.write()
    assert read_table(pytester.path / "times.json") == {"c.py": 5.0, "a.py": 2.0}
    assert list(read_table(pytester.path / "times.json")) == ["c.py", "a.py"]
    assert read_table(pytester.path / "none.json") == {}


@pytest.mark.parametrize(
    ("nodeid", "folder"),
    [
        ("tests/test_uvm.py::test_x", "tests"),
        ("tests/image/test_x.py::test_x[a/b]", "tests/image"),
        ("tests/cli/verbs/test_x.py::test_x", "tests/cli"),
        ("test_x.py::test_x", "."),
    ],
)
def test_a_folder_is_two_deep(nodeid: str, folder: str) -> None:
    """A test is counted in the folder of `tests` that it lies in, however deep."""
    assert folder_of(nodeid) == folder


def test_each_file_of_the_table_is_there() -> None:
    """No file that moved or went is kept in tests/times.json: `make times` writes it anew."""
    assert [name for name in read_table(TABLE) if not (ROOT / name).is_file()] == []
