"""What a method is given, what it may give, and that nothing else passes either way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cell.hosting import Answers, method, outcome, result, soon, uses

from batos.cell.cell import Cell, MethodCall
from batos.cell.values import MessageAnswer, RaisedError, Ref
from batos.protocol.errors import CovenantViolation, MethodFailed


async def test_a_method_computes(cell: Cell) -> None:
    """Arguments go in by position and name, the result comes out."""
    program = method("def add(self, a, b=2, *rest, c):\n    return [a + b + c, list(rest)]")
    assert (await outcome(cell, program, MethodCall({}, [1, 5, 7], {"c": 3}))).result == [9, [7]]


async def test_writes_come_back_when_they_are_marked(cell: Cell) -> None:
    """Changed slots come back, those that stayed as they were do not, and deleted ones are named."""
    program = method(
        """
        def change(self):
            self.count += 1
            self.items.append("x")
            same = self.same
            self.same = same
            del self.draft
            self._p_changed = True
        """,
        uses("same", "count same", "items", "draft"),
    )
    view: dict[str, Any] = {"count": 1, "items": ["a"], "same": {"k": 1}, "draft": "old", "other": "not named"}
    found = await outcome(cell, program, MethodCall(view))
    assert found.writes.values == {"count": 2, "items": ["a", "x"]}
    assert found.writes.deleted == {"draft"}
    assert found.writes.is_marked


@pytest.mark.parametrize("marker", ["pass", "self._p_changed = 1", "self._p_changed = False", "changed = True"])
async def test_an_unmarked_write_fails_the_run(cell: Cell, marker: str) -> None:
    """Without `self._p_changed = True` nothing is kept, and the slot is named."""
    program = method(f"def change(self):\n    self.count += 1\n    {marker}\n", uses("", "count"))
    with pytest.raises(CovenantViolation, match="count") as raised:
        await outcome(cell, program, MethodCall({"count": 1}))
    assert raised.value.faults[0]["rule"] == "covenant"


async def test_a_write_of_the_same_value_needs_no_marker(cell: Cell) -> None:
    """What differs is told by value and type: writing what was there is no change, True for 1 is one."""
    program = method("def change(self, value):\n    self.count = value\n", uses("", "count"))
    assert not (await outcome(cell, program, MethodCall({"count": 1}, [1]))).writes
    with pytest.raises(CovenantViolation):
        await outcome(cell, program, MethodCall({"count": 1}, [True]))


async def test_a_slot_that_the_audit_does_not_list_ends_the_run(cell: Cell) -> None:
    """An alias of the receiver writes no slot that is not read back."""
    program = method("def change(self):\n    me = self\n    me.count = 2\n    self._p_changed = True\n")
    with pytest.raises(MethodFailed, match="does not list: count"):
        await outcome(cell, program, MethodCall({"count": 1}))


async def test_setattr_reaches_listed_slots_alone(cell: Cell) -> None:
    """A computed name that is not listed raises in the method."""
    source = """
        def change(self, name):
            setattr(self, name, 2)
            self._p_changed = True
        """
    program = method(source, uses("", "count"))
    assert (await outcome(cell, program, MethodCall({"count": 1}, ["count"]))).writes.values == {"count": 2}
    with pytest.raises(MethodFailed, match="could not list"):
        await outcome(cell, program, MethodCall({"count": 1}, ["other"]))


@pytest.mark.parametrize(
    "name", ["_slots", "parent", "guardian_policy", "_doesNotUnderstand_", "doesNotUnderstand", "é"]
)
def test_a_protected_slot_is_in_no_view(name: str) -> None:
    """The kernel's own slots are refused before anything runs, whatever an audit listed."""
    with pytest.raises(MethodFailed, match="no method may use the slot"):
        method("def read(self):\n    return 1", uses(name))


async def test_an_absent_slot_is_an_attribute_error(cell: Cell) -> None:
    """Reading what the receiver does not have raises in the method, which may catch it."""
    source = """
        def read(self):
            try:
                return self.missing
            except AttributeError:
                return "none"
        """
    assert await result(cell, source, slots="missing") == "none"


UNPLAIN = {
    "a function": "return len",
    "a lambda": "return lambda: 1",
    "a class": "class A:\n        pass\n    return A",
    "an object": "class A:\n        pass\n    return [A()]",
    "its receiver": "return self",
    "its receiver within": "return {'me': self}",
    "a coroutine": "async def f():\n        return 1\n    return f()",
    "a module": "import json\n    return json",
    "a cycle": "a = [1]\n    a.append(a)\n    return a",
    "a cycle with a set": "a = [{1}]\n    a.append(a)\n    return a",
    "bytes": "return b'x'",
    "a date": "import datetime\n    return datetime.date(2026, 1, 1)",
    "not a number": "return float('nan')",
    "infinity": "return [1e308 * 10]",
    "a huge integer": "return 10 ** 2000",
    "a huge text": "return 'x' * 3_000_000",
    "a deep list": "a = []\n    for _ in range(100):\n        a = [a]\n    return a",
    "a range": "return range(3)",
    "a tuple as a key": "return {(1, 2): 3}",
    "an exception": "return ValueError('x')",
}


@pytest.mark.parametrize("body", UNPLAIN.values(), ids=UNPLAIN.keys())
async def test_what_is_no_plain_data_does_not_cross(cell: Cell, body: str) -> None:
    """As a result or in a slot, it fails the run."""
    with pytest.raises(MethodFailed):
        await outcome(cell, method(f"def give(self):\n    {body}\n"))
    before, _, value = body.rpartition("return ")
    source = f"def keep(self):\n    {before}self.slot = {value}\n    self._p_changed = True\n"
    with pytest.raises(MethodFailed):
        await outcome(cell, method(source, uses("", "slot")))


async def test_half_a_surrogate_pair_does_not_survive(cell: Cell) -> None:
    """The interpreter has no such text: what comes out can be written as UTF-8."""
    found = await result(cell, "def give(self):\n    return 'a\\ud800'")
    assert found.encode() == "a\N{REPLACEMENT CHARACTER}".encode()


async def test_sequences_and_sets_become_lists(cell: Cell) -> None:
    """What reads as plain data does: tuples, sets in a fixed order, generators, Counters; keys become text."""
    source = """
        from collections import Counter, deque

        def give(self):
            return [(1, 2), {2, 1}, (n for n in [1]), Counter("aab"), deque([1]), {1: "a", None: 2}]
        """
    assert await result(cell, source) == [[1, 2], [1, 2], [1], {"a": 2, "b": 1}, [1], {"1": "a", "null": 2}]


async def test_nothing_leaks_between_calls(cell: Cell) -> None:
    """A default that is changed, a global, a module that is changed: the next call has none of it."""
    sources = (
        "def keep(self, item, seen=[]):\n    seen.append(item)\n    return seen",
        "SEEN = []\ndef keep(self, item):\n    SEEN.append(item)\n    return SEEN",
        "import json\ndef keep(self, item):\n    json.mine = getattr(json, 'mine', []) + [item]\n    return json.mine",
    )
    for source in sources:
        program = method(source)
        for item in ("a", "b", "c"):
            try:
                assert (await outcome(cell, program, MethodCall({}, [item]))).result == [item]
            except MethodFailed:  # a module of the interpreter cannot be written to
                assert "json" in source


async def test_arguments_must_be_plain(cell: Cell) -> None:
    """What the kernel gives is checked like what it gets."""
    program = method("def take(self, a):\n    return a")
    wrongs: tuple[Any, ...] = ({1: 2}, [object()], float("inf"), "\ud800", "x" * 2_000_000)
    for wrong in wrongs:
        with pytest.raises(MethodFailed):
            await outcome(cell, program, MethodCall({}, [wrong]))


async def test_messages_go_to_the_host_with_plain_data(cell: Cell) -> None:
    """To self and to another object, by position and name; sync methods send too."""
    program = method(
        """
        def ask(self, topic):
            first = self.oracle.consult(topic, mood="calm")
            return [first, self.log_("info", {"n": (1, 2)})]
        """,
        uses("oracle"),
    )
    host = Answers({"1.consult": "rain", "log_": None})
    assert (await outcome(cell, program, MethodCall({"oracle": Ref(1)}, ["sky"]), host)).result == ["rain", None]
    assert [(each.to, each.args, each.kwargs) for each in host.asked] == [
        (Ref(1), ["sky"], {"mood": "calm"}),
        (None, ["info", {"n": [1, 2]}], {}),
    ]


async def test_another_object_is_a_mark(cell: Cell) -> None:
    """It can be kept, compared, listed, returned; its slots are read by the host; it is never an argument."""
    program = method(
        """
        def meet(self):
            self.friends.append(self.friends[0])
            self._p_changed = True
            same = self.friends[0] == self.friends[2] and self.friends[0] is not self.friends[1]
            self.log_([each.name for each in self.friends], same)
            return self.friends[1]
        """,
        uses("", "", "friends"),
    )
    host = Answers({"log_": None}, {(1, "name"): "al", (2, "name"): "bo"})
    found = await outcome(cell, program, MethodCall({"friends": [Ref(1), Ref(2)]}), host)
    assert host.asked[0].args == [["al", "bo", "al"], True]
    assert found.result == Ref(2)
    assert found.writes.values == {"friends": [Ref(1), Ref(2), Ref(1)]}
    wrong = method("def tell(self):\n    self.log_(self.friend)", uses("friend"))
    with pytest.raises(MethodFailed, match="only plain data can be sent"):
        await outcome(cell, wrong, MethodCall({"friend": Ref(1)}), host)


@pytest.mark.parametrize(
    "selector",
    [
        "_private_",
        "install_method_",
        "compile_",
        "parent",
        "disable_guardian_",
        "doesNotUnderstand_",
        "compile_method_",
    ],
)
async def test_a_kernel_selector_is_never_sent(cell: Cell, selector: str) -> None:
    """The host does not even hear of it, and the method cannot catch that."""
    host = Answers({selector: "answered"})
    source = f"def ask(self):\n    try:\n        return self.{selector}(1)\n    except Exception:\n        return 2\n"
    with pytest.raises(MethodFailed, match="no method may send"):
        await outcome(cell, method(source), host=host)
    assert host.asked == []


async def test_a_host_call_that_no_message_makes_is_refused(cell: Cell) -> None:
    """Names of ours cannot be said in a method, nor in any text that it could run."""
    for source in (
        "def f(self):\n    return _cell_now('[0, \"install_method_\", [], {}]')",
        "def f(self):\n    return eval('_cell_now')",
        "def f(self):\n    return self.__init__(1)",
        "def f(self):\n    global len\n    len = None",
        "def f(self):\n    match self.x:\n        case {**_cell_now}:\n            return 1",
    ):
        with pytest.raises(MethodFailed, match="does not run"):
            method(source)


async def test_what_a_message_raises_can_be_caught(cell: Cell) -> None:
    """An error that the host gives arrives by its name; one that it does not know is a RuntimeError."""
    source = """
        async def ask(self):
            found = []
            for name in ("one", "two", "three"):
                try:
                    await self.pick_(name)
                except KeyError as error:
                    found.append("key " + str(error.args[0]))
                except RuntimeError as error:
                    found.append("run " + str(error))
            try:
                self.absent()
            except AttributeError:
                found.append("absent")
            return found
        """
    kinds = {"one": "KeyError", "two": "RuntimeError", "three": "OllamaError"}

    async def pick(name: str) -> MessageAnswer:
        return MessageAnswer(raised=RaisedError(kinds[name], name))

    found = await outcome(cell, method(source), host=Answers({"pick_": pick}))
    assert found.result == ["key one", "run two", "run three", "absent"]


async def test_what_the_host_raises_ends_the_run(cell: Cell) -> None:
    """An error of the kernel passes through, whatever the method catches."""

    async def broken() -> Any:
        raise ZeroDivisionError("the host's own")

    source = "def ask(self):\n    try:\n        self.pick_()\n    except Exception:\n        return 1"
    with pytest.raises(ZeroDivisionError, match="the host's own"):
        await outcome(cell, method(source), host=Answers({"pick_": broken}))


async def test_pending_writes_go_along_and_the_view_is_refreshed(cell: Cell) -> None:
    """A message has what was written before it; slots that it answers with are what the method then sees."""
    program = method(
        """
        def work(self):
            self.count = 5
            self._p_changed = True
            self.step()
            seen = self.count
            self.items.append("mine")
            return seen
        """,
        uses("count", "count", "items"),
    )
    host = Answers({"step": MessageAnswer(None, {"count": 6, "items": ["theirs"]})})
    found = await outcome(cell, program, MethodCall({"count": 1, "items": []}), host)
    assert host.asked[0].pending.values == {"count": 5}
    assert host.asked[0].pending.is_marked
    assert found.result == 6
    assert found.writes.values == {"items": ["theirs", "mine"]}


async def test_a_refresh_does_not_undo_what_was_written_meanwhile(cell: Cell) -> None:
    """Beside a message that waits, the method writes on; the answer's older view does not take it back."""
    source = """
        import asyncio

        async def work(self):
            async def other():
                self.count = 9
                self._p_changed = True

            await asyncio.gather(self.step_(), other())
            return self.count
        """
    host = Answers({"step_": MessageAnswer(None, {"count": 1})})
    found = await outcome(cell, method(source, uses("count", "count")), MethodCall({"count": 1}), host)
    assert found.result == 9
    assert found.writes.values == {"count": 9}


async def test_the_clock_stands_still_and_chance_is_seeded(cell: Cell) -> None:
    """The same call is the same run: time is `now`, random numbers are the seed's, with and without a suspension."""
    source = """
        import datetime
        import random

        async def draw(self):
            first = random.random()
            await self.infer_("x")
            return [first, random.random(), datetime.datetime.now().isoformat()]
        """
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    async def slow(_: str) -> str:
        await soon()
        return "y"

    program = method(source)
    call = MethodCall({}, seed="a", now=now)
    first, second = [await outcome(cell, program, call, Answers({"infer_": each})) for each in ("y", slow)]
    other = await outcome(cell, program, MethodCall({}, seed="b", now=now), Answers({"infer_": "y"}))
    assert first.result == second.result != other.result
    assert isinstance(first.result, list)
    assert first.result[2] == "2026-01-02T03:04:05"


async def test_sleeping_takes_no_time(cell: Cell) -> None:
    """`time.sleep` returns at once: nobody holds a worker by sleeping."""
    assert await result(cell, "import time\ndef nap(self):\n    time.sleep(3600)\n    return 1") == 1


async def test_there_is_no_machine(cell: Cell) -> None:
    """No files, environment or processes; modules that reach them do not exist or answer nothing."""
    for body in (
        "import os\n    return os.environ['HOME']",
        "import subprocess\n    return subprocess.run(['ls'])",
        "import pathlib\n    return pathlib.Path('/etc/passwd').read_text()",
        "import socket\n    return 1",
        "import os\n    return os.getpid()",
        "import os\n    return os.listdir('/')",
    ):
        with pytest.raises(MethodFailed):
            await outcome(cell, method(f"def reach(self):\n    {body}\n"))


async def test_an_error_names_the_line_of_the_source(cell: Cell) -> None:
    """Not that of what was lowered; and no control characters of the method's reach whoever reads it."""
    source = "# comment\ndef fail(self):\n    x = 1\n\n    raise ValueError('red \\x1b[31m' + 'x' * 5000)\n"
    with pytest.raises(MethodFailed, match=r"fail raised ValueError: red  \[31mx+.* \(line 5\)") as raised:
        await outcome(cell, method(source))
    assert len(str(raised.value)) < 600


async def test_what_is_printed_is_kept_apart(cell: Cell) -> None:
    """It is in the outcome, not on our stdout."""
    program = method("def say(self):\n    print('hello', 1)\n    return 2")
    assert (await outcome(cell, program)).printed == "hello 1\n"


async def test_a_slot_that_is_not_there_is_named(cell: Cell) -> None:
    """In the words of who wrote the method, which never saw the class that stands for its receiver."""
    for source in ("return self.tally", "self.tally.append(1)", "self.tally += 1\n    self._p_changed = True"):
        with pytest.raises(MethodFailed, match=r"AttributeError: there is no slot 'tally' \(line 2\)") as raised:
            await outcome(cell, method(f"def bad(self):\n    {source}", uses(reads="tally", writes="tally")))
        assert "_cell" not in raised.value.message
