"""The verb chat: through pipes, at a terminal, and what Ctrl-C does while an answer is on its way."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.processes import User
from tests.conversations.written_turns import exchanges, is_record, recording, write_turns

from batos import config
from batos.cli.chat.chat import PipedInput
from batos.cli.chat.chat_session import Chat
from batos.cli.chat.commands import COMMANDS, completions
from batos.cli.doors.background_door import BackgroundDoor, Interrupted
from batos.cli.doors.door import Door
from batos.cli.doors.in_process import open_here
from batos.cli.render.mission_record import history_text, recalled_text
from batos.cli.verb_options import VerbCall
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.protocol.errors import BatosError, NotFound, UsageError
from batos.terminal.console import Console, Terminated
from batos.testing import ScriptedBridge, plain_reply
from batos.uvm import UVM, Seams

REFLEX = ("chat", "--effort", "reflex")


def documents(out: str) -> list[dict[str, Any]]:
    """The documents on stdout, without the events between them."""
    return [found for found in map(json.loads, out.splitlines()) if "event" not in found]


# -- through pipes


def test_each_line_of_a_pipe_is_a_turn_of_one_conversation(user: User) -> None:
    """With --json a document a turn; the second is shown the first; blank lines are none; what fails is told too."""
    ran = user.run(*REFLEX, "--json", "-q", stdin="Where is the pier?\n\n \n/effort absurd\nAnd who built it?\n")
    first, wrong, second = documents(ran.out)
    assert (first["ok"], wrong["ok"], second["ok"], ran.code) == (True, False, True, 2)
    assert wrong["error"]["field"] == "effort"
    assert second["data"]["brief"]["conversation"] == first["data"]["brief"]["conversation"]
    assert [each["mission"] for each in second["data"]["provenance"]["recalled"]] == [first["data"]["id"]]


def test_commands_are_answered_in_a_pipe_too(user: User) -> None:
    """History, cost and what was recalled are documents like the turns; two slashes begin a question."""
    lines = "/rate good\n//etc is what?\n/history\n/cost\n/recalled\n/rate bad It is no folder.\n/new\n/history\n"
    ran = user.run(*REFLEX, "--json", "-q", stdin=lines)
    early, turn, history, cost, recalled, rated, new, none = documents(ran.out)
    assert early["error"]["code"] == "not_found"
    assert [each["why"] for each in rated["data"]["outcomes"]] == ["It is no folder."]
    assert turn["data"]["brief"]["text"] == "/etc is what?"
    assert [each["question"] for each in history["data"]["turns"]] == ["/etc is what?"]
    assert (cost["data"]["turns"], cost["data"]["cost"]["calls"]) == (1, 1)
    assert recalled["data"]["omitted"]["turns"] == 0
    assert new["data"] == {"conversation": "new"}
    assert none["error"]["code"] == "not_found"


def test_a_conversation_goes_on_and_is_read_by_position(user: User) -> None:
    """--conversation last goes on with the newest; --history shows its turns word for word without asking anything."""
    user.run(*REFLEX, "-q", stdin="One?\nTwo?\n")
    ran = user.run(*REFLEX, "-q", "--conversation", "last", stdin="Three?\n")
    assert ran.code == 0
    page = user.run("chat", "--history", "--json", "--start", "2", "--limit", "5")
    assert [each["question"] for each in documents(page.out)[0]["data"]["turns"]] == ["Two?", "Three?"]
    told = user.run("chat", "--history", "--start", "-1")
    assert "3 turns" in told.out
    assert "Three?" in told.out
    assert "Two?" not in told.out


def test_a_conversation_that_is_not_there_is_said_before_anything_is_asked(user: User) -> None:
    """Who goes on with one is told which and how long it is; one that there is not ends the chat with 2."""
    ran = user.run("chat", "--conversation", "nosuch", stdin="")
    assert (ran.code, "there is no conversation 'nosuch'" in ran.err) == (2, True)
    user.run(*REFLEX, "-q", stdin="One?\n")
    assert ", 1 turn." in user.run("chat", "--conversation", "last", stdin="").err


def test_a_conversation_keeps_its_files(user: User, tmp_path: Path) -> None:
    """The second question, a chat that goes on later, and `ask -c` are answered from the file of the first."""
    basin = tmp_path / "basin.txt"
    basin.write_text("The basin is nine metres deep. The trust was founded by Orla Brandt.")
    ran = user.run(*REFLEX, "-q", "--file", str(basin), stdin="How deep is the basin?\nWho founded the trust?\n")
    assert ran.code == 0, ran.err
    assert "Orla Brandt" in ran.out
    asked = user.run("ask", "-c", "-q", "--effort", "reflex", "Who founded the trust?")
    assert "Orla Brandt" in asked.out, asked.err
    asked = user.run(*REFLEX, "-c", stdin="Who founded the trust?")
    assert "Orla Brandt" in asked.out, asked.err
    assert "with basin.txt" in asked.err
    page = documents(user.run("chat", "--history", "--json").out)[0]["data"]
    assert (page["count"], [each["name"] for each in page["files"]]) == (4, ["basin.txt"])
    wrong = user.run("ask", "-c", "--conversation", "new", "And?")
    assert (wrong.code, "another is named" in wrong.err) == (2, True)


def test_words_that_leave_are_no_questions(user: User) -> None:
    """As in other programs that one talks with; a sentence that has one is a question."""
    ran = user.run(*REFLEX, "--json", "-q", stdin="How does one exit a maze?\nExit\nNever asked?\n")
    assert [each["data"]["brief"]["text"] for each in documents(ran.out)] == ["How does one exit a maze?"]


def test_a_conversation_is_shown_by_its_id(user: User) -> None:
    """`show c-...` tells turns by position, word for word, to its user alone."""
    user.run(*REFLEX, "-q", stdin="One?\nTwo?\n")
    name = documents(user.run("chat", "--history", "--json").out)[0]["data"]["conversation"]
    told = user.run("show", name, "--start", "2", "--json")
    assert [each["question"] for each in documents(told.out)[0]["data"]["turns"]] == ["Two?"]
    assert "1. m-" in user.run("show", name, "--limit", "1").out
    other = user.run("show", name, environ={"BATOS_USER": "anna"})
    assert (other.code, "of anna's" in other.err) == (2, True)


def test_what_is_wrong_is_said_and_no_control_character_passes(user: User) -> None:
    """Unknown commands name the near one, and what was typed cannot move a cursor."""
    ran = user.run(*REFLEX, stdin="/histry\nsay \x1b[31mred\x07\n/history\n")
    assert "did you mean /history?" in ran.err
    assert "\x1b" not in ran.out + ran.err
    assert "\x07" not in ran.out
    assert "say [31mred" in ran.out


def test_a_pipe_that_is_no_text_or_too_long_costs_that_line_alone() -> None:
    """A line that is not UTF-8 is named; the rest of an endless one is passed over; the next is read."""
    source = PipedInput(io.BytesIO(b"\xff\xfe\n" + b"x" * 300_000 + b"\nlast"))
    with pytest.raises(BatosError, match="byte 0"):
        source.read("")
    assert len(source.read("")) > 20_000
    assert source.read("") == "last"
    with pytest.raises(EOFError):
        source.read("")


def test_without_stdin_or_with_a_file_of_it_it_says_so(user: User) -> None:
    """Stdin is the chat's: it can be no file, and a closed one is no chat."""
    assert user.run("chat", "--file", "-", stdin="x\n").code == 2
    closed = user.process("chat", shell="<&-")
    assert closed.code == 2
    assert "stdin is closed" in closed.err


# -- in this process


@contextmanager
def at_hand(
    home: Path, bridge: ScriptedBridge, *, quiet: bool = True
) -> Iterator[tuple[BackgroundDoor, Chat, io.StringIO]]:
    """A chat in this process over a scripted bridge, its door, and what it has written."""
    out = io.StringIO()
    loaded = config.load({}, {"home": str(home), "image": "memory://chat", "user": "tester"})
    home.mkdir(parents=True, exist_ok=True)
    called = VerbCall(loaded, Console.from_streams(out, io.StringIO(), as_json=False), quiet=quiet)
    chat = Chat(called, {"effort": "reflex"}, "new", voices=False, stream=False)
    with BackgroundDoor(open_here(loaded.settings, Seams(bridge=bridge))) as way:
        way.do(lambda door: _uvm(door).readiness.genesis())
        yield way, chat, out


def _uvm(door: Door) -> UVM:
    assert door.uvm is not None
    return door.uvm


def typed(way: BackgroundDoor, chat: Chat, name: str, rest: str = "") -> int:
    """A command."""
    return COMMANDS[name].run(chat, way, rest)


class CtrlCBridge(ScriptedBridge):
    """Presses Ctrl-C when it is asked, or ends the process by another signal, and never answers; once."""

    pressed, number = False, signal.SIGINT

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As scripted after the first time."""
        if not self.pressed:
            self.pressed = True
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, self.number)
            await asyncio.Event().wait()
        return await super().think(request, on_token, stream=stream)


def test_ctrl_c_cancels_the_answer_and_keeps_the_chat(tmp_path: Path) -> None:
    """The mission under way is cancelled, is no turn, and the next question is answered in the same conversation."""
    with at_hand(tmp_path / "home", CtrlCBridge()) as (way, chat, _):
        with pytest.raises(Interrupted):
            way.do(lambda door: chat.turn(door, "Stop me?"))
        conversation = chat.conversation
        assert conversation.startswith("c-")
        with pytest.raises(NotFound):
            typed(way, chat, "recalled")
        assert way.do(lambda door: chat.turn(door, "And now?")) == 0
        assert chat.conversation == conversation
        page = way.do(lambda door: chat.page(door, 1, 10))
        assert [each["question"] for each in page["turns"]] == ["And now?"]
        found = way.do(lambda door: door.call("missions", {"limit": 9}))["missions"]
        assert sorted(each["status"] for each in found) == ["cancelled", "done"]


def test_ctrl_c_at_any_moment_leaves_the_door_open(tmp_path: Path) -> None:
    """Whether it comes before the work, in the middle of it or at its end: nothing waits for ever, or goes on."""
    ends: list[str] = []

    async def work(door: Door) -> str:
        await asyncio.sleep(0.002)  # any pace: whatever Ctrl-C comes before or after is right
        return "done"

    with at_hand(tmp_path / "home", ScriptedBridge()) as (way, _, _):
        for number in range(60):
            timer = threading.Timer(number / 15_000, os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()
                ends.append(way.do(work))
                timer.join()
            except Interrupted:
                ends.append("interrupted")
            except KeyboardInterrupt:  # before the work was handed over, or after its end
                ends.append("outside")
            timer.join()
        assert way.do(work) == "done"
        assert not way.under_way
    assert len(ends) >= 60


def test_what_a_stopped_question_leaves_in_a_chat(tmp_path: Path) -> None:
    """What it cost, without options that cannot be typed here; what was recalled is still the last answer's."""
    bridge = CtrlCBridge()
    bridge.pressed = True
    with at_hand(tmp_path / "home", bridge, quiet=False) as (way, chat, out):
        way.do(lambda door: chat.turn(door, "And now?"))
        bridge.pressed = False
        with pytest.raises(Interrupted):
            way.do(lambda door: chat.turn(door, "Stop me?"))
        assert typed(way, chat, "recalled") == 0
        assert "word for word" in out.getvalue()
        said = chat.console.err
        assert isinstance(said, io.StringIO)
        assert "It was cancelled; " in said.getvalue()
        assert "batos retry" not in said.getvalue()
        chat.part()
        assert "--conversation c-" in said.getvalue()
        typed(way, chat, "new")
        chat.part()
        assert "--conversation new" not in said.getvalue()


def test_an_end_from_outside_cancels_the_answer_before_the_door_closes(tmp_path: Path) -> None:
    """Whoever leaves in the middle of an answer leaves no mission that runs, and waits for nothing else."""
    told: list[str] = []

    def terminated(number: int, frame: object) -> None:
        raise Terminated

    def talks() -> None:
        bridge = CtrlCBridge()
        bridge.number = signal.SIGTERM
        with at_hand(tmp_path / "home", bridge) as (way, chat, _):
            way.do(lambda door: _watched(door, told))
            way.do(lambda door: chat.turn(door, "Stop me?"))

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        with pytest.raises(Terminated):
            talks()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert told[-1] == "cancelled"


async def _watched(door: Door, told: list[str]) -> None:
    """Note every status."""

    def heard(event: str, keys: Any) -> None:
        if event == "mission.status":
            told.append(keys["status"])

    _uvm(door).events.subscribe(heard)


def test_work_that_fails_raises_in_the_main_thread(tmp_path: Path) -> None:
    """What a door raises comes through, and it is still open."""
    with at_hand(tmp_path / "home", ScriptedBridge()) as (way, chat, _):
        with pytest.raises(NotFound):
            way.do(lambda door: door.call("show", {"mission": "m-none"}))
        assert way.do(lambda door: chat.turn(door, "Still there?")) == 0


def test_a_door_that_does_not_open_is_an_error_of_the_verb(tmp_path: Path) -> None:
    """Whatever keeps the image shut is raised where the chat begins."""
    (tmp_path / "no-folder").write_text("")
    image = f"file://{tmp_path}/no-folder/image.fs"
    settings = config.load({}, {"home": str(tmp_path / "home"), "image": image}).settings
    with pytest.raises(BatosError, match="no-folder"), BackgroundDoor(open_here(settings)):
        pass


def test_commands_change_how_the_next_question_is_asked(tmp_path: Path) -> None:
    """Persona, effort, policies and files are those of the next brief; auto leaves them to the router again."""
    with at_hand(tmp_path / "home", ScriptedBridge()) as (way, chat, _):
        policies = (("combine", "vote"), ("install", "ask"), ("interpret", "allow"))
        for name, rest in (("persona", "robin"), *policies, ("voices", "on"), ("voices", "")):
            assert typed(way, chat, name, rest) == 0
        (tmp_path / "lamp.txt").write_text("The lamp is wound every four hours.")
        typed(way, chat, "file", str(tmp_path / "lamp.txt"))
        way.do(lambda door: chat.turn(door, "How?"))
        brief = way.do(lambda door: door.call("show", {"mission": "last"}))["brief"]
        assert brief["persona"] == "ROBIN"
        assert set(policies) <= brief["policy"].items()
        assert [each["name"] for each in brief["attachments"]] == ["lamp.txt"]
        typed(way, chat, "persona", "auto")
        typed(way, chat, "combine", "auto")
        typed(way, chat, "install", "auto")  # a policy of its own: what is configured has another word
        typed(way, chat, "interpret", "configured")
        way.do(lambda door: chat.turn(door, "And then?"))
        brief = way.do(lambda door: door.call("show", {"mission": "last"}))["brief"]
        assert "persona" not in brief
        assert brief["policy"]["install"] == "auto"
        assert "interpret" not in brief["policy"]
        assert chat.prompt == "you> "


def test_a_file_is_at_hand_until_it_is_dropped(tmp_path: Path) -> None:
    """It belongs to the conversation from the question on that it came with; another of its name takes its place."""
    lamp, oil = tmp_path / "lamp.txt", tmp_path / "oil.txt"
    lamp.write_text("The lamp is wound every four hours.")
    oil.write_text("The oil is whale oil.")
    with at_hand(tmp_path / "home", ScriptedBridge()) as (way, chat, out):

        def asked() -> list[str]:
            assert way.do(lambda door: chat.turn(door, "How?")) == 0
            brief = way.do(lambda door: door.call("show", {"mission": "last"}))["brief"]
            return [each["name"] for each in brief["attachments"]]

        with pytest.raises(UsageError, match="takes a file's name"):
            typed(way, chat, "drop")
        typed(way, chat, "file", str(lamp))
        assert out.getvalue().endswith("In this conversation: lamp.txt.\n")
        assert (asked(), asked()) == (["lamp.txt"], ["lamp.txt"])
        typed(way, chat, "files")
        assert out.getvalue().endswith("\nIn this conversation: lamp.txt.\n")
        lamp.write_text("The lamp is wound every five hours.")
        for path in (lamp, oil):
            typed(way, chat, "file", str(path))
        assert asked() == ["lamp.txt", "oil.txt"]
        for wrong in ("nosuch.txt", ""):
            with pytest.raises(UsageError):
                typed(way, chat, "drop", wrong)
        typed(way, chat, "drop", "lamp.txt")
        assert out.getvalue().endswith("In this conversation: oil.txt.\n")
        assert asked() == ["oil.txt"]
        typed(way, chat, "file", str(lamp))
        typed(way, chat, "drop", "all")
        assert out.getvalue().endswith("There is no file; /file PATH attaches one.\n")
        assert asked() == []
        with pytest.raises(UsageError, match="the chat reads its questions from stdin"):
            typed(way, chat, "file", "-")


def test_tab_completes_commands_words_and_paths(tmp_path: Path) -> None:
    """Nothing is offered in a question, nor behind a command that takes no word."""
    (tmp_path / "harbour.txt").write_text("x")
    (tmp_path / "harbours").mkdir()
    assert completions("/pe", "/pe") == ["/persona "]
    assert completions("/persona b", "b") == ["BRICK ", "BABS "]
    assert completions(f"/file {tmp_path}/harb", f"{tmp_path}/harb") == [
        f"{tmp_path}/harbour.txt ",
        f"{tmp_path}/harbours/",
    ]
    for line, word in (("how /pe", "/pe"), ("/nosuch x", "x"), ("/cost x", "x"), ("/file /nosuch/x", "/nosuch/x")):
        assert completions(line, word) == []


def test_a_long_conversation_is_compacted_while_the_person_types(tmp_path: Path) -> None:
    """A turn that makes it due begins it; nobody waits for it, and the next answer is shown the summary."""
    bridge = ScriptedBridge(recording(lambda request: "Anna Lund sealed jars.", plain_reply))
    with at_hand(tmp_path / "home", bridge) as (way, chat, out):
        chat.conversation = way.do(lambda door: write_turns(_uvm(door), exchanges(20)))
        way.do(lambda door: chat.turn(door, "And now?"))
        typed(way, chat, "recalled")
        begun = out.getvalue().rpartition("compacted by ")[2].strip()
        way.do(lambda door: _uvm(door).missions.wait_for_end(begun))
        way.do(lambda door: chat.turn(door, "And then?"))
        typed(way, chat, "recalled")
        assert "a summary of turns 1 to" in out.getvalue()
        assert any(is_record(request) for request in bridge.history)


def test_a_chat_that_ends_waits_for_its_compaction(tmp_path: Path) -> None:
    """A pipe has nobody who would ask the next question: nothing is left in the queue."""
    bridge = ScriptedBridge(recording(lambda request: "Anna Lund sealed jars.", plain_reply))
    with at_hand(tmp_path / "home", bridge) as (way, chat, _):
        chat.conversation = way.do(lambda door: write_turns(_uvm(door), exchanges(20)))
        way.do(lambda door: chat.turn(door, "And now?"))
        assert chat.compaction is not None
        assert way.do(chat.settle) == 0
        found = way.do(lambda door: door.call("show", {"mission": chat.compaction}))
        assert found["status"] == "done"


def test_compaction_on_demand_says_what_it_made(tmp_path: Path) -> None:
    """/compact makes what is due, and afresh makes it anew; before the first turn there is nothing."""
    bridge = ScriptedBridge(recording(lambda request: "Anna Lund sealed jars.", plain_reply))
    with at_hand(tmp_path / "home", bridge) as (way, chat, out):
        with pytest.raises(NotFound):
            typed(way, chat, "compact")
        chat.conversation = way.do(lambda door: write_turns(_uvm(door), exchanges(20)))
        assert typed(way, chat, "compact") == 0
        assert "1 summary of turns 1 to" in out.getvalue()
        assert typed(way, chat, "compact", "afresh") == 0
        assert len([request for request in bridge.history if is_record(request)]) == 2


def test_texts_of_pages_and_recalls() -> None:
    """A page names its next one and what stands for older turns; a recall says what was word for word."""
    turn = {"position": 3, "mission": "m-3", "at": "then", "question": "Q?", "answer": "A.", "personas": ["BABS"]}
    made = {"turns": [1, 2], "by": "first sentences", "text": "So."}
    page: Any = {"conversation": "c-1", "count": 9, "turns": [turn], "next": 4, "files": [], "compactions": [made]}
    told = history_text(page)
    assert "The next is 4." in told
    assert "turns 1 to 2, by first sentences:" in told
    recalled: Any = [
        {"turns": [1, 2], "by_model": False, "trust": "model"},
        {"mission": "m-3", "turn": 3},
        {"mission": "m-x", "turn": 0},
    ]
    told = recalled_text({"recalled": recalled, "omitted": {"passages": 0, "turns": 1}}, None)
    assert told.splitlines() == ["word for word: 3, m-x", "first sentences of turns 1 to 2", "left out: 1 turn"]
