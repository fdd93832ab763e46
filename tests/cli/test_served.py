"""The command line through a running `batos serve`: one server, a process, for all of these, over an emulator."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cli.gate import Gate, gate_before
from tests.cli.processes import (
    ProcessResult,
    User,
    answers_kept,
    as_answered,
    emulator,
    held,
    status_with_daemon,
    texts,
)
from tests.fork_server import ForkedCommand
from tests.server.dispatch.test_looking import TOLD
from tests.waiting import wait_until

from batos import Client
from batos.image.ids import iso

QUESTION = "How was the breach in the north pier closed, and what did it cost to build it again?"
REFLEX = ("--effort", "reflex", "--persona", "BRICK")
CYCLE = ("--effort", "cycle", "--persona", "BRICK")
MODELS = ("--model", "llama3.1:8b-instruct-q4_K_M", "--model", "all-minilm:latest")
ANYWHERE = ("--bind", "tcp://127.0.0.1:*", "--events", "tcp://127.0.0.1:*")


def served(user: User, *arguments: str) -> ForkedCommand:
    """A server that has left its note."""
    process = user.start("serve", *ANYWHERE, *arguments)
    wait_until(lambda: (user.home / "server.json").exists() or process.poll() is not None, "the server's note")
    assert process.poll() is None, process.communicate()
    return process


def stopped(process: ForkedCommand) -> tuple[str, str]:
    """End a server as systemd does."""
    process.send_signal(signal.SIGTERM)
    return process.communicate()


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    """A gate before a daemon, which no question passes while it is closed."""
    with emulator(*MODELS) as url, gate_before(url) as found:
        yield found


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, gate: Gate, grown: Path) -> Iterator[User]:
    """A user whose home a server holds."""
    found = User(Path(shutil.copytree(grown, tmp_path_factory.mktemp("served") / "home")), gate.url)
    # Missions by which the mind makes methods would come between those that the tests wait for.
    (found.home / "batos.toml").write_text('install = "never"\n', encoding="utf-8")
    process = served(found)
    try:
        yield found
    finally:
        _, err = stopped(process)
        assert "Traceback" not in err, err


def mission_of(ran: ProcessResult) -> str:
    """The mission that `submit` accepted."""
    assert ran.code == 0, ran.err
    return str(ran.document["data"]["id"])


def test_a_question_is_answered_by_the_server(user: User, tmp_path: Path) -> None:
    """Events, tokens and the answer come as from this process itself, the bytes of a file go first."""
    path = tmp_path / "harbour.txt"
    path.write_text("The engineer, Maud Okafor, closed the breach with 1,940 blocks of granite.\n", encoding="utf-8")
    asked = user.run("ask", "--json", *CYCLE, "--file", str(path), QUESTION)
    assert asked.code == 0, asked.err
    mission = asked.document["data"]
    assert (mission["status"], mission["brief"]["origin"]["client"]) == ("done", "batos ask")
    assert mission["provenance"]["recalled"][0]["name"] == "harbour.txt"
    states = [line["state"] for line in asked.documents if line.get("event") == "mission.state"]
    assert states == [step["state"] for step in mission["states"]]
    assert texts(asked.documents, "mission.token").endswith(mission["answer"])
    assert as_answered(user.run("show", mission["id"], "--json").document["data"]) == as_answered(mission)


def test_people_read_the_same_through_the_server(user: User) -> None:
    """The answer on stdout, how it came about on stderr; nothing of a process that ended."""
    asked = user.run("ask", "-v", *CYCLE, "How do I build a shed?")
    assert asked.code == 0, asked.err
    assert "not a model" in asked.out
    assert "IDLE > DECOMPOSING > DELEGATING > SYNTHESIZING > COMPLETE > IDLE" in asked.err
    assert "\x1b" not in asked.out + asked.err
    shown = user.run("show", "last", "--voices")
    assert "How do I build a shed?" in shown.out
    assert "brick/synthesizing#0" in shown.out


@pytest.mark.parametrize(
    "arguments",
    [("ask", *REFLEX, "Why?"), ("missions",), ("status",), ("genesis",), ("adapters", "use", "babs", "none")],
    ids=lambda arguments: arguments[0],
)
def test_a_client_is_light(user: User, arguments: tuple[str, ...]) -> None:
    """Through the server a verb loads neither the database, nor Ollama's client, nor numpy."""
    program = (
        "import json, sys\nfrom batos.cli.entry import run\ncode = run(sys.argv[1:])\n"
        "sys.stderr.write(json.dumps([code, sorted(name for name in ('ZODB', 'BTrees', 'persistent', 'transaction',"
        "'ollama', 'httpx', 'numpy', 'batos.uvm', 'batos.image.image') if name in sys.modules)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--quiet", "--json"],
        env=user.environ(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stderr.splitlines()[-1]) == [0, []]


def test_submit_and_wait(user: User, gate: Gate) -> None:
    """The id is all that is written; the server runs it by itself, and waiting ends with its answer."""
    with gate.closed():
        submitted = user.run("submit", *CYCLE, "How do I build a boat?")
        assert submitted.code == 0, submitted.err
        name = submitted.out.strip()
        assert name.startswith("m-")
        assert "undone" not in user.run("show", name).out
        early = user.run("wait", name, "--seconds", "0", "--json")
        assert (early.code, early.document["error"]["code"]) == (7, "timed_out")
    waited = user.run("wait", name, "--json")
    assert (waited.code, waited.document["data"]["status"]) == (0, "done")
    again = user.run("wait", name, "--json").document["data"]
    assert as_answered(again) == as_answered(waited.document["data"])


def test_a_running_mission_is_cancelled_at_once(user: User, gate: Gate) -> None:
    """Whoever waits for it is told so."""
    with gate.closed():
        gone = mission_of(user.run("submit", "--json", *CYCLE, "How do I build a bridge?"))
        assert user.run("cancel", gone, "--json").document["data"]["status"] == "cancelled"
    assert user.run("wait", gone, "--json").code == 1


def test_a_paused_mission_stands_still_and_goes_on(user: User, gate: Gate) -> None:
    """It stands where it was until it is resumed, and pays nothing twice."""
    with gate.closed():
        name = mission_of(user.run("submit", "--json", *CYCLE, "How do I build a house?"))
        gate.wait_for_question()
        pausing = user.start("pause", name, "--json")
        user.start("show", name).communicate()  # it began later and has ended: the other was most likely heard
        with gate.slow():  # and if not, is heard before the mission ends
            out, err = pausing.communicate()
        assert (json.loads(out)["data"]["status"], err) == ("paused", "")
        stands = user.run("wait", name, "--json")
        assert (stands.code, stands.document["error"]["code"]) == (7, "timed_out")
    resumed = user.run("resume", name)
    assert (resumed.code, resumed.out.split()[:2]) == (0, [name, "is"])
    done = user.run("wait", name, "--json").document["data"]
    prompts = user.run("show", name, "--json", "--prompts").document["data"]["prompts"]
    paths = [call["path"] for call in prompts if call["path"].startswith("brick/")]
    assert (done["status"], done["cost"]["calls"]) == ("done", len(paths))
    assert len(set(paths)) == len(paths)
    assert "The server runs the waiting missions." in user.run("resume").err


def test_ctrl_c_cancels_on_the_server(user: User, gate: Gate) -> None:
    """The first one cancels the mission there, and what it cost is told."""
    with gate.closed():
        process = user.start("ask", "--json", "--effort", "council", "How do I build a tower?")
        told = process.told_until("inference.start")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130, err
    lines = [json.loads(line) for line in (told + out).splitlines()]
    [report] = [line["mission"] for line in lines if line.get("event") == "mission.report"]
    assert (report["status"], lines[-1]["error"]["code"]) == ("cancelled", "interrupted")
    assert user.run("show", report["id"], "--json").document["data"]["status"] == "cancelled"


def test_a_second_ctrl_c_leaves_at_once(user: User, gate: Gate) -> None:
    """While the server does not answer, the second one ends the client, which says how to find the mission."""
    pid = json.loads((user.home / "server.json").read_bytes())["pid"]
    with gate.closed():
        process = user.start("ask", "-v", "--effort", "council", "How do I build a wall?")
        assert process.stderr is not None
        line = next(line for line in process.stderr if "accepted" in line)
        os.kill(pid, signal.SIGSTOP)
        try:
            process.send_signal(signal.SIGINT)
            assert any("Ctrl-C again leaves at once" in line for line in process.stderr)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate()
        finally:
            os.kill(pid, signal.SIGCONT)
    assert process.returncode == 130
    assert f"batos show {line.split()[0]}" in err


def test_a_deadline(user: User, gate: Gate) -> None:
    """What has no answer by then ends failed, timed out: 7."""
    with gate.closed():
        ran = user.run("ask", "--json", *CYCLE, "--deadline", "0.2s", "How do I build a dam?")
    assert (ran.code, ran.document["error"]["code"]) == (7, "timed_out")


def test_ctrl_c_ends_waiting_and_nothing_else(user: User, gate: Gate) -> None:
    """The mission goes on, and has its answer later."""
    with gate.closed():
        name = mission_of(user.run("submit", "--json", *CYCLE, "How do I build a well?"))
        gate.wait_for_question()
        process = user.start("wait", name, "--json")
        user.start("show", name).communicate()  # it began later and has ended: the other most likely waits by now
        with gate.slow():  # and if not, hears of a later state
            process.told_until("mission.state")
        process.send_signal(signal.SIGINT)
        said = process.communicate()
        assert process.returncode == 130, said
        assert user.run("show", name, "--json").document["data"]["status"] == "running"
    assert user.run("wait", name, "--json").code == 0


def test_a_shell_is_offered_missions(user: User) -> None:
    """Their ids, as far as the server tells them, and the names of objects."""
    name = mission_of(user.run("submit", "--json", *REFLEX, "Why?"))
    for words, offered in ((f"batos show {name[:12]}", name), ("batos inspect brick", "brick_prototype_obj")):
        environ = {"_BATOS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "2"}
        # Which tells a shell nothing where the server has not answered within a second.
        wait_until(lambda: f"plain,{offered}" in user.run(environ=environ).out.splitlines(), offered)  # noqa: B023


def test_the_screen(user: User) -> None:
    """Server, image, daemon, queue, missions and totals, for people and for programs."""
    user.run("ask", *REFLEX, "Why?")
    found = status_with_daemon(user)
    assert found.keys() == TOLD
    assert found["queue"]["limit"] == 1_000
    assert found["missions"]["done"] >= 1
    ollama = found["ollama"]
    assert (ollama["host"], ollama["version"], ollama["answers"]) == (user.ollama, "0.33.0", True)
    said = user.run("status").out
    for word in ("server   tcp://127.0.0.1:", "image    /", "ollama   http", "queue    0 of 1,000", "missions "):
        assert word in said
    assert len(said.splitlines()) < 40


def test_missions_are_followed(user: User) -> None:
    """Whoever follows hears of missions that others ask, until Ctrl-C."""
    process = user.start("missions", "--follow", "--json", "--limit", "1")
    process.told_until('"missions"')
    asked = mission_of(user.run("submit", "--json", *REFLEX, "Why?"))
    told = ""
    while not any(asked in line and "mission.done" in line for line in told.splitlines()):
        told += process.told_until("mission.done")  # the first may be another test's
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    heard = {json.loads(line)["mission"] for line in told.splitlines()}
    # Missions of other tests may go on meanwhile, and methods may be made that they did without.
    assert asked in heard


def test_genesis_and_adapters_go_through_the_server(user: User) -> None:
    """A second genesis has nothing to do, its plan nothing to show, and a choice is made where the image is."""
    first = user.run("genesis", "--json")  # the models, where no test before this one needed them
    assert first.code == 0, first.err
    again = user.run("genesis", "--json")
    assert again.code == 0, again.err
    assert again.document["data"]["plan"]["steps"] == []
    planned = user.run("genesis", "--plan")
    assert "There is nothing to do." in planned.out
    assert "needed at once" in planned.out
    used = user.run("adapters", "use", "robin", "none")
    assert (used.code, used.out) == (0, "ROBIN thinks with its bare base from its next mission on.\n")
    assert user.run("adapters", "use", "ROBIN", "none").out == "ROBIN thinks with its bare base already.\n"
    assert user.run("adapters", "use", "robin", "nothing", "--json").document["error"]["field"] == "name"


def test_objects_through_the_server(user: User) -> None:
    """They can be looked at and sent messages; a mission is what comes of a message."""
    assert "brick_prototype_obj" in user.run("inspect", "--json").document["data"]["objects"]
    assert user.run("inspect", "nobody", "--json").document["error"]["code"] == "not_found"
    sent = user.run("send", "genesis_obj", "nothing_", "--json", "1")
    assert sent.code == 1
    assert sent.document["error"]["code"] == "message_not_understood"


def test_a_wrong_token(user: User, tmp_path: Path) -> None:
    """A home with another token is refused with 4 and told what to use."""
    address = json.loads((user.home / "server.json").read_bytes())["bind"]
    home = tmp_path / "other"
    home.mkdir(mode=0o700)
    (home / "token").write_text("not-this-one\n", encoding="utf-8")
    ran = User(home, user.ollama).run("missions", "--json", "--server", address)
    assert (ran.code, ran.document["error"]["code"]) == (4, "unauthorised")


def test_without_a_server(tmp_path: Path, grown: Path, gate: Gate) -> None:
    """Following, waiting for what is queued and `status --ready` end with 6; submit leaves it queued,
    resume runs it, and Ctrl-C in it puts it back."""
    alone = User(Path(shutil.copytree(grown, tmp_path / "home")), gate.url)
    (alone.home / "server.json").write_text(json.dumps({"pid": 2**22 + 1}), encoding="utf-8")
    submitted = alone.run("submit", "--json", *REFLEX, "Why?")
    name = mission_of(submitted)
    assert submitted.document["data"] == {"id": name, "status": "queued", "served": False}
    for verb in (("status", "--ready"), ("missions", "--follow"), ("wait", name)):
        ran = alone.run(*verb, "--json")
        assert (ran.code, ran.document["error"]["code"]) == (6, "no_server"), verb
        assert "batos serve" in ran.document["error"]["remedy"]
    assert "no server runs" in alone.run("show", name).out
    assert "waits for `batos resume`" in alone.run("missions").err
    with gate.closed():
        process = alone.start("resume", "--json")
        process.told_until("inference.start")
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert (process.returncode, alone.run("show", name, "--json").document["data"]["status"]) == (130, "queued")
    resumed = alone.run("resume", "--json")
    assert [each["status"] for each in resumed.document["data"]["missions"]] == ["done"]
    later = mission_of(alone.run("submit", "--json", *REFLEX, "Who trims the wick?"))
    assert f"{later} goes on: Who trims the wick?" in alone.run("resume").err
    assert "resume" not in alone.run("missions").err


def test_a_server_that_dies(tmp_path: Path, grown: Path, gate: Gate) -> None:
    """Whoever waits is told, and gets the answer from the next server; nothing is paid for twice."""
    path = Path(shutil.copytree(grown, tmp_path / "home"))
    with emulator(*MODELS, faults=held(after=1)) as url:
        home = User(path, url)
        first = served(home)
        process = home.start("ask", "--json", *CYCLE, "How do I build a shed?")
        told = process.told_until("DELEGATING")
        wait_until(lambda: answers_kept(home), "the first answer in the journal")
        first.kill()
        first.communicate()
    told += process.told_until("connection.lost")
    second = served(User(path, gate.url))
    out, err = process.communicate()
    stopped(second)
    assert process.returncode == 0, out + err
    lines = [json.loads(line) for line in (told + out).splitlines()]
    names = [line.get("event") for line in lines]
    assert names.index("connection.lost") < names.index("connection.restored")
    done = lines[-1]["data"]
    assert (done["status"], done["cost"]["calls"]) == ("done", 5 + done["provenance"]["gate"]["revised"])
    assert done["cost"]["from_journal"] >= 1


def test_the_past_why_and_dreams_through_the_server(user: User, gate: Gate) -> None:
    """As without one; a question to the past that is interrupted is cancelled, and a dream is promoted."""
    first = user.run("ask", QUESTION, *REFLEX, "--json").documents[-1]["data"]["id"]
    before = len(user.run("missions", "--json").document["data"]["missions"])
    asked = user.run("ask", "What was asked?", *REFLEX, "--as-of", first, "--json").documents[-1]["data"]
    assert (asked["status"], asked["as_of"]["mission"]) == ("done", first)
    assert user.run("show", asked["id"], "--prompts").code == 0
    with gate.closed():
        asking = user.start("ask", "--json", "What was asked?", *CYCLE, "--as-of", first)
        asking.told_until("inference.start")
        asking.send_signal(signal.SIGINT)
        asking.communicate()
    assert asking.returncode == 130
    assert len(user.run("missions", "--json").document["data"]["missions"]) == before
    assert user.run("why", first, "--as-of", first).out.startswith(f"mission {first}")
    dreamt = user.run("dream", "new", "What if it were of steel?", *REFLEX, "--json").documents[-1]["data"]["id"]
    assert dreamt in user.run("dream", "diff", "last").out
    assert user.run("dream", "promote", dreamt).code == 0
    assert user.run("show", dreamt, "--json").document["data"]["status"] == "done"
    assert len(user.run("missions", "--json").document["data"]["missions"]) == before + 1


def _at_rest(client: Client, looks: Mapping[str, dict[str, Any]]) -> list[Any]:
    """What looks show and a moment of that, if it is the same after it: missions of before may still be learnt from."""
    before = {verb: client.call(verb, args) for verb, args in looks.items()}
    moment = iso(datetime.now(UTC))
    return [before, moment] if before == {verb: client.call(verb, args) for verb, args in looks.items()} else []


def test_each_look_at_the_past_shows_what_was(user: User, tmp_path: Path) -> None:
    """Every verb that takes a moment answers as it did then, whatever came since; so does the client of Python."""
    (tmp_path / "harbour.txt").write_text("The breach in the north pier was closed with oak in 1901.\n")
    assert user.run("remember", str(tmp_path / "harbour.txt")).code == 0
    mission = user.run("ask", QUESTION, *REFLEX, "--conversation", "new", "--json").documents[-1]["data"]
    conversation = mission["brief"]["conversation"]
    looks: dict[str, dict[str, Any]] = {
        "show": {"mission": mission["id"], "prompts": True},
        "turns": {"conversation": conversation},
        "inspect": {"object": conversation},
        "method_list": {},
        "why": {"what": mission["id"]},
        "recall": {"query": "north pier oak", "mode": "text"},
        "memories": {},
    }
    with Client(user.home) as client:
        wait_until(lambda: any(mission["id"] in str(each) for each in client.call("memories")["memories"]))
        before, moment = wait_until(lambda: _at_rest(client, looks), "a moment at which nothing is written")
        (tmp_path / "harbour.txt").write_text("The north pier has a gate of oak and a lamp of brass.\n")
        user.run("remember", str(tmp_path / "harbour.txt"))
        client.ask("And what did the oak cost?", effort="reflex", persona="BRICK", conversation=conversation)
        for verb in ("turns", "recall", "memories"):
            assert client.call(verb, looks[verb]) != before[verb]
        for verb, args in looks.items():
            shown = client.call(verb, {**args, "as_of": moment})
            assert shown.pop("as_of")["at"] <= moment
            assert shown == before[verb], verb
        assert (client.inspect(conversation, as_of=mission["id"]))["as_of"]["mission"] == mission["id"]
        assert (client.show(mission["id"], as_of=mission["tid"]))["answer"] == mission["answer"]
        assert len((client.turns(conversation, as_of=mission["id"]))["turns"]) == 1
        asked = client.ask("What was asked?", effort="reflex", as_of=mission["id"])
        assert (asked.status, asked["as_of"]["mission"]) == ("done", mission["id"])


def test_words_are_erased_through_the_server(user: User) -> None:
    """While it runs: its own log, its journal and its image lose them, and the screen of missions stays."""
    secret = "q7f3a9c1e5b2d8f4a6c0e9b7d3f1"
    mission = user.run("ask", f"My key is {secret}. {QUESTION}", *REFLEX, "--json").documents[-1]["data"]["id"]
    with Client(user.home) as client:
        wait_until(lambda: any(mission in str(each) for each in client.call("memories")["memories"]))
    told = user.run("forget", "--erase", secret, "--yes", "--json")
    assert (told.code, mission in told.document["data"]["missions"], told.document["data"]["found"]) == (0, True, [])
    assert not [each for each in user.home.rglob("*") if _holds(each, secret.encode())]
    assert user.run("show", mission, "--json").document["data"]["status"] == "undone"
    assert user.run("audit", "verify").code == 0


def _holds(path: Path, words: bytes) -> bool:
    """Whether a file has the words; one that its server has removed meanwhile has none."""
    with suppress(FileNotFoundError):
        return path.is_file() and words in path.read_bytes()
    return False
