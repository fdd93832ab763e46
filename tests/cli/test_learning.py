"""Learning as its user meets it: facets become methods on first use, a person decides, nothing is paid for twice."""

from __future__ import annotations

import json
import shutil
import signal
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.processes import FOR_EVER, ProcessResult, User, emulator
from tests.waiting import HANG, wait_until

QUESTION = "Why is the weekly report late?"
BRICK = ("--persona", "brick", "--effort", "cycle")
FACETS = ("guide_facet_", "rogues_gallery_facet_", "tamland_facet_")
GUIDE = "brick_prototype_obj.guide_facet_"


@dataclass(frozen=True, slots=True)
class Daemon:
    """An emulator that can be told what goes wrong, and asked what it was asked."""

    url: str

    def fault(self, *faults: dict[str, Any]) -> None:
        """These faults and no others."""
        self._call("DELETE", "fault")
        self._call("POST", "fault", list(faults))

    def written(self) -> Counter[str]:
        """How often a method was asked for, by its selector."""
        asked: Counter[str] = Counter()
        for request in self._call("GET", "log")["requests"]:
            form = request["body"].get("format")
            if isinstance(form, dict) and "source" in json.dumps(form):
                text = request["body"]["messages"][1]["content"]
                lines = (line.partition(": ")[2] for line in text.splitlines() if line.startswith("Selector: "))
                asked[next(lines, "a whole object")] += 1
        return asked

    def thinking(self) -> int:
        """How many questions of methods it was asked."""
        messages = [request["body"].get("messages") or [{}] for request in self._call("GET", "log")["requests"]]
        return sum("Your part of the question:\n" in str(each[-1].get("content")) for each in messages)

    def _call(self, method: str, what: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_emulator/{what}", data, method=method)
        with urllib.request.urlopen(request, timeout=HANG) as reply:
            return json.load(reply)


@pytest.fixture(scope="module")
def scripted() -> Iterator[str]:
    """The address of an emulator that answers to its control; who stalls keeps nobody waiting."""
    with emulator(
        "--control", "--parallel", "8", "--model", "llama3.1:8b-instruct-q4_K_M", "--model", "all-minilm:latest"
    ) as url:
        yield url


@pytest.fixture
def daemon(scripted: str) -> Daemon:
    """It, without faults."""
    found = Daemon(scripted)
    found.fault()
    return found


@pytest.fixture
def learner(tmp_path: Path, daemon: Daemon, grown: Path) -> User:
    """A user who has learnt nothing yet, waits for methods, and whose methods have no control: every use is theirs."""
    home = Path(shutil.copytree(grown, tmp_path / "home"))
    (home / "batos.toml").write_text('method_control = 0\ninstall = "now"\n', encoding="utf-8")
    return User(home, daemon.url)


def data(ran: ProcessResult, code: int = 0) -> Any:
    """What a verb says in JSON."""
    assert ran.code == code, ran.out + ran.err
    return ran.document["data"]


def thoughts_kept(learner: User) -> int:
    """Count the answers to methods that are in the journal: one that is only on its way is lost by a kill."""
    shown = data(learner.run("show", "last", "--prompts", "--json"))
    asked = [each["messages"][-1]["content"] for each in shown["prompts"] if each["state"] == "done"]
    return sum("Your part of the question:\n" in each for each in asked)


def told(mission: Any) -> dict[str, str]:
    """What ran for each facet of a mission."""
    return {each["selector"]: each["as"] for each in mission["provenance"]["methods"]}


def test_facets_are_learnt_on_first_use(learner: User, daemon: Daemon) -> None:
    """The first mission makes a method of each facet, the second runs them from the image and asks for none."""
    before = daemon.written()
    first = data(learner.run("ask", "--json", *BRICK, QUESTION))
    assert daemon.written() - before == Counter(FACETS)
    assert {each["selector"]: each["outcome"] for each in first["provenance"]["generated"]} == dict.fromkeys(
        FACETS, "installed"
    )
    assert first["cost"]["calls"] == 5 + first["provenance"]["gate"]["revised"]
    second = data(learner.run("ask", "--json", *BRICK, "What makes the queue long?"))
    assert daemon.written() - before == Counter(FACETS)
    assert second["provenance"]["generated"] == []
    assert (set(told(first)), set(told(second).values())) == (set(FACETS), {"method"})
    listed = data(learner.run("method", "list", "--json"))["methods"]
    assert [(each["method"], each["active"], each["calls"]) for each in listed] == [
        (f"brick_prototype_obj.{facet}", 1, 2) for facet in FACETS
    ]


def test_the_answer_comes_first(learner: User, daemon: Daemon) -> None:
    """Under `auto` facets are interpreted; methods are made when the answer is out, as far as there is time for it."""
    before = daemon.written()
    (learner.home / "batos.toml").write_text("method_control = 0\nlearn_seconds = 0\n", encoding="utf-8")
    asked = learner.run("ask", *BRICK, QUESTION)
    assert asked.code == 0
    assert "3 methods to be made" in asked.err
    first = data(learner.run("show", "last", "--json"))
    assert set(told(first).values()) == {"interpreted intent"}
    assert daemon.written() == before
    for holder, waits in ((), 3), (("brick_prototype_obj",), 3), (("robin_prototype_obj",), 0):
        listed = learner.run("method", "list", *holder).out
        assert f"There is no method yet; {waits} methods wait to be made: `batos method make`." in listed or not waits
        assert ("methods wait" in listed) is bool(waits)
    again = learner.run("ask", *BRICK, "What makes the queue long?")
    assert (again.code, "to be made" in again.err) == (0, False)  # it was told, and nothing came to it
    assert sorted(each["selector"] for each in data(learner.run("method", "make", "--json"))["made"]) == list(FACETS)
    assert daemon.written() - before == Counter(FACETS)
    second = data(learner.run("ask", "--json", *BRICK, "What makes the queue long?"))
    assert set(told(second).values()) == {"method"}
    assert learner.run("method", "make").out.strip() == "There is nothing to make."


def test_what_is_made_after_the_answer_outlives_its_process(learner: User, daemon: Daemon) -> None:
    """A process that is killed while it makes methods loses the one under way, and the next makes that one."""
    (learner.home / "batos.toml").write_text("method_control = 0\nlearn_seconds = 0\n", encoding="utf-8")
    before = daemon.written()
    assert learner.run("ask", *BRICK, QUESTION).code == 0
    daemon.fault({"match": {"selector": "tamland_facet_"}, "do": "stall", "seconds": FOR_EVER})
    making = learner.start("method", "make")
    wait_until(lambda: (daemon.written() - before)["tamland_facet_"] == 1)
    wait_until(lambda: len(data(learner.run("method", "list", "--json"))["methods"]) == 2, "the others in the image")
    making.send_signal(signal.SIGKILL)
    making.communicate()
    daemon.fault()
    again = learner.run("method", "make")
    assert "Making brick_prototype_obj.tamland_facet_ ..." in again.err.splitlines()
    assert "Methods now: " in again.out
    assert "tamland_facet_" in again.out
    assert data(learner.run("method", "make", "--json")) == {"made": [], "left": 0}
    assert daemon.written() - before == Counter({**dict.fromkeys(FACETS, 1), "tamland_facet_": 2})
    shown = data(learner.run("show", "last", "--json"))
    assert {each["outcome"] for each in shown["provenance"]["generated"]} == {"installed"}


def test_a_generation_that_is_killed_is_taken_up_where_it_was(learner: User, daemon: Daemon) -> None:
    """What was answered is not asked again: not the methods that were made, not the attempt that was refused."""
    (learner.home / "batos.toml").write_text(
        'method_control = 0\ninstall = "now"\nparallel = 8\nvram = "80GiB"\n', encoding="utf-8"
    )
    before, thought = daemon.written(), daemon.thinking()
    guide = {"selector": "guide_facet_"}
    daemon.fault(
        {"match": {**guide, "nth": 1}, "do": "author", "author": "no_marker"},
        {"match": guide, "do": "stall", "seconds": FOR_EVER},
    )
    asking = learner.start("ask", "--json", *BRICK, QUESTION)
    wait_until(lambda: (daemon.written() - before)["guide_facet_"] == 2)
    # Methods are made one after another: those before this one have thought by now, those after it are not begun.
    wait_until(lambda: thoughts_kept(learner) == (daemon.written() - before).total() - 2)
    asking.send_signal(signal.SIGKILL)
    asking.communicate()
    daemon.fault()
    assert learner.run("resume").code == 0
    assert daemon.written() - before == Counter({**dict.fromkeys(FACETS, 1), "guide_facet_": 3})
    assert daemon.thinking() == thought + 3
    mission = data(learner.run("show", "last", "--json"))
    assert mission["status"] == "done"
    told = [each["selector"] for each in mission["provenance"]["generated"]]
    assert "guide_facet_" in told
    assert len(told) == len(set(told))


def test_a_person_is_asked_and_the_mission_goes_on(learner: User, daemon: Daemon) -> None:
    """Under `ask` intents are interpreted until somebody approves; approved methods run in the next mission."""
    first = data(learner.run("ask", "--json", *BRICK, "--install", "ask", QUESTION))
    assert set(told(first).values()) == {"interpreted intent"}
    waiting = data(learner.run("approvals", "--json"))["approvals"]
    assert sorted(each["selector"] for each in waiting) == sorted(FACETS)
    before = daemon.written()
    assert learner.run("approve", "--all", "--matching", "brick*.guide_facet_").code == 0
    shown = data(learner.run("method", "show", GUIDE, "--json"))
    assert shown["provenance"]["approval"] in [each["id"] for each in waiting]
    second = data(learner.run("ask", "--json", *BRICK, "--install", "ask", "What makes the queue long?"))
    assert told(second)["guide_facet_"] == "method"
    assert told(second)["tamland_facet_"] == "interpreted intent"
    assert daemon.written() == before


def test_a_mission_may_wait_for_a_person(learner: User, daemon: Daemon) -> None:
    """Where nothing may be interpreted it waits, exits 7, and when it is answered pays for nothing a second time."""
    asked = learner.run("ask", "--json", *BRICK, "--install", "ask", "--interpret", "never", QUESTION)
    assert (asked.code, asked.document["error"]["code"]) == (7, "approval_needed")
    paid = daemon.written()
    approved = learner.run("approve", "--all", "--matching", "*")
    assert approved.code == 0, approved.err
    assert learner.run("resume").code == 0
    mission = data(learner.run("show", "last", "--json"))
    assert mission["status"] == "done"
    assert set(told(mission)) == set(FACETS)
    assert daemon.written() == paid


def test_a_message_by_hand_learns_and_what_it_learnt_can_be_changed(learner: User, daemon: Daemon) -> None:
    """`send` makes a method, a wish makes another, a rollback brings the first one back: each acts at once."""
    send = ("send", "--json", "brick_prototype_obj", "guide_facet_", "Why is the sky blue?")
    before = data(learner.run(*send, environ={"BATOS_INSTALL": "never"}))
    assert told(before) == {"guide_facet_": "interpreted intent"}
    made = data(learner.run(*send))
    assert [each["outcome"] for each in made["provenance"]["generated"]] == ["installed"]
    wished = data(learner.run("method", "redefine", GUIDE, "--json", "--wish", "Answer as a lighthouse keeper would."))
    assert (wished["revision"], "lighthouse keeper" in wished["source"]) == (2, True)
    after = data(learner.run(*send))
    [call] = data(learner.run("show", after["id"], "--json", "--prompts"))["prompts"]
    assert "lighthouse keeper" in call["messages"][-1]["content"]
    assert learner.run("method", "rollback", GUIDE).code == 0
    history = data(learner.run("method", "history", GUIDE, "--json"))
    assert [(each["event"], each["former"], each["revision"]) for each in history["changes"]] == [
        ("installed", 0, 1),
        ("installed", 1, 2),
        ("restored", 2, 1),
    ]
    assert "lighthouse" not in data(learner.run("method", "show", GUIDE, "--json"))["source"]


def test_an_object_that_is_declared_is_made_whole(learner: User, daemon: Daemon) -> None:
    """The first message to it makes all its methods in one dialogue; then they are tools, and the next makes none."""
    before = daemon.written()
    send = ("send", "--json", "text_agent", "often_", "high tide, low tide", "tide")
    found = data(learner.run(*send))
    assert daemon.written() - before == Counter({"a whole object": 1})
    assert (found["answer"], found["cost"]["calls"]) == ("2", 0)
    assert data(learner.run(*send))["provenance"]["generated"] == []
    tools = data(learner.run("tools", "--json"))["tools"]
    assert [each["tool"] for each in tools] == ["text_agent.often_", "text_agent.words_"]
    parents = ["tools_obj", "pLLM_obj", "traits_obj"]
    given = data(learner.run("method", "reparent", "text_agent", *parents, "--why", "it computes", "--json"))
    assert (given["slot"], given["value"]) == ("text_agent.parents", parents)
    shown = learner.run("undo", "text_agent.parents")
    assert shown.code == 0
    assert "it computes" in shown.out
    assert "pLLM_obj" in learner.run("slot", "show", "text_agent.parents").out
    refused = learner.run("method", "reparent", "robin_prototype_obj", "text_agent", "--json")
    assert (refused.code, json.loads(refused.out)["error"]["code"]) == (4, "refused")


def test_a_gadget_goes_on_being_usable(learner: User, daemon: Daemon) -> None:
    """What BRICK forged from an answer is listed, and a message to it computes without a call."""
    wish = "Convert 2 h 30 min and 45 s to seconds, and build a tool for it."
    asked = data(learner.run("ask", "--json", *BRICK, wish))
    assert "Forged: `seconds_of_durations_`" in asked["answer"]
    assert learner.run("method", "make").code == 0  # where there was no time for it after the answer
    [tool] = data(learner.run("tools", "--json"))["tools"]
    assert (tool["tool"], tool["signature"]) == ("tools_obj.seconds_of_durations_", "seconds_of_durations_(self, text)")
    used = data(learner.run("send", "--json", "tools_obj", "seconds_of_durations_", "2 h 30 min, 45 s"))
    assert (used["answer"], used["cost"]["calls"]) == ("9045", 0)


def test_people_read_what_was_learnt(learner: User) -> None:
    """In words, without a sign of a terminal's that a model wrote."""
    assert "learning guide_facet_" in learner.run("send", "-v", "brick_prototype_obj", "guide_facet_", "Why?").err
    for verb in (("method", "list"), ("method", "show", GUIDE), ("method", "history", GUIDE)):
        shown = learner.run(*verb)
        assert shown.code == 0, shown.err
        assert "guide_facet_" in shown.out
        assert "\x1b" not in shown.out
    assert "There are no tools yet" in learner.run("tools").out
    nothing = learner.run("method", "show", "brick_prototype_obj.tamland_facet_")
    assert nothing.code == 2
    assert "batos method redefine" in nothing.err
