"""What a user also does: closes streams, leaves early, stops, mistypes, breaks files, goes on talking."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.processes import BATOS, WITH_MODELS, User, answers_kept, emulator, held
from tests.waiting import wait_until

NOBODY = User(Path("nowhere"), "http://127.0.0.1:9")
CYCLE = ("--persona", "brick", "--effort", "cycle")
REFLEX = ("--persona", "robin", "--effort", "reflex")


def test_help_loads_nothing_of_the_system() -> None:
    """`batos --help` imports neither the database nor the daemon's client nor what validates and logs."""
    program = (
        "import sys; from batos.cli import entry; code = entry.run(['--help']); "
        "print(sorted({'ZODB', 'pydantic', 'ollama', 'httpx', 'structlog'} & set(sys.modules)), file=sys.stderr); "
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert "genesis" in done.stdout


def test_an_interrupt_while_the_command_is_loaded_shows_no_traceback() -> None:
    """Ctrl-C may come before there is a verb: the exit code is that of an interrupt, and nothing is printed."""
    program = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'batos.protocol.errors': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from batos.cli import entry"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_bare_is_help() -> None:
    """Without a verb there is help, and that is no error."""
    bare = NOBODY.run()
    assert (bare.code, bare.err) == (0, "")
    assert "Usage: batos" in bare.out
    assert "resume" in bare.out


def test_a_closed_stdout_is_no_error(user: User) -> None:
    """Whoever closes stdout wants no answer now: the mission is done all the same, and can be read."""
    asked = user.process("ask", *REFLEX, "Why do I worry?", shell=">&-")
    assert asked.code == 0, asked.err
    assert user.run("show", "last", "--json").document["data"]["status"] == "done"


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_full_disk_under_the_answer(user: User, as_json: tuple[str, ...]) -> None:
    """The answer cannot be written where it goes: that is told, and the mission is done all the same."""
    asked = user.fork("ask", *as_json, *REFLEX, "Why do I worry?", out=Path("/dev/full"))
    assert asked.code == 1
    assert "Traceback" not in asked.err
    assert "batos show last" in asked.err
    assert user.run("show", "last", "--json").document["data"]["status"] == "done"


def test_a_stderr_that_is_full_or_closed(user: User) -> None:
    """Notes that nobody can read keep no answer from being given."""
    question, debug = ("ask", *REFLEX, "Why do I worry?"), {"BATOS_LOG_LEVEL": "debug"}
    full = user.fork(*question, err=Path("/dev/full"), environ=debug)
    for asked in (full, user.process(*question, shell="2>&-", environ=debug)):
        assert asked.code == 0
        assert "not a model" in asked.out


def test_a_reader_that_leaves_in_the_middle(user: User) -> None:
    """Its program has heard enough after the first event: the mission goes on and is done, which the exit code says."""
    process = user.start("ask", "--json", *CYCLE, "How do I build a shed?")
    assert process.stdout is not None
    assert process.stderr is not None
    assert "mission.accepted" in process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (0, "")
    assert user.run("show", "last", "--json").document["data"]["status"] == "done"


def test_what_was_stopped_or_killed_can_be_read(user: User) -> None:
    """SIGTERM cancels a mission and ends with 143; of one that was killed, the journal knows what was paid."""
    with emulator(*WITH_MODELS, faults=held(after=1)) as url:
        stopped = User(user.home, url).start("ask", "--json", *CYCLE, "How do I build a shed?")
        stopped.told_until("inference.first_token")
        stopped.send_signal(signal.SIGTERM)
        out, err = stopped.communicate()
        assert stopped.returncode == 143, err
        assert '"code": "terminated"' in out.splitlines()[-1]
        cancelled = user.run("show", "last", "--json").document["data"]
    with emulator(*WITH_MODELS, faults=held(after=1)) as url:
        killed = User(user.home, url).start("ask", "--json", *CYCLE, "How do I build a boat?")
        killed.told_until("DELEGATING")
        wait_until(lambda: answers_kept(user), "the first answer in the journal")
        killed.kill()
        killed.communicate()
    assert cancelled["status"] == "cancelled"
    assert 1 <= cancelled["cost"]["calls"] < 5  # a second call may begin before the signal is seen
    assert cancelled["reason"]["remedy"]
    left = user.run("show", "last")
    assert left.code == 0
    assert "stands   the process that ran it has ended" in left.out
    assert "spent    0 calls" not in left.out
    assert "spent    nothing" not in left.out
    assert "unfinished" in user.run("doctor").out


def test_conversations_by_name(user: User) -> None:
    """`last` needs one, `new` begins one, `last` goes on with it, and one that is not there is refused."""
    none = user.run("ask", "--json", *REFLEX, "--conversation", "last", "Hello?")
    assert (none.code, none.document["error"]["field"]) == (2, "conversation")
    assert "new" in none.document["error"]["remedy"]
    first = user.run("ask", "--json", *REFLEX, "--conversation", "new", "My boat is called Wren.").document["data"]
    second = user.run("ask", "--json", *REFLEX, "--conversation", "last", "What is it called?").document["data"]
    assert second["brief"]["conversation"] == first["brief"]["conversation"]
    other = user.run("ask", "--json", *REFLEX, "--conversation", f"c-{'0' * 26}", "Hello?")
    assert (other.code, other.document["error"]["code"]) == (2, "not_found")


def test_the_same_question_again_costs_nothing(user: User) -> None:
    """With the mission before as its ancestor every answer comes from the journal."""
    first = user.run("ask", "--json", *CYCLE, "How do I build a shed?").document["data"]
    again = user.run("ask", "--json", "--ancestor", "last", *CYCLE, "How do I build a shed?").document["data"]
    assert again["brief"]["ancestor"] == first["id"]
    assert (again["cost"]["calls"], again["cost"]["from_journal"]) == (0, first["cost"]["calls"])
    assert again["answer"] == first["answer"]


def test_quiet_json_is_one_document(user: User) -> None:
    """Of a question that is answered and of one that fails: exactly one line."""
    answered = user.run("ask", "--json", "--quiet", *REFLEX, "Why do I worry?")
    assert [line["ok"] for line in answered.documents] == [True]
    failed = user.run(
        "ask", "--json", "--quiet", *CYCLE, "How do I build a shed?", environ={"BATOS_MISSION_CALLS": "2"}
    )
    assert [line["ok"] for line in failed.documents] == [False]
    assert (failed.code, failed.document["error"]["code"]) == (4, "refused")


def test_every_fault_of_a_codex_is_told(user: User) -> None:
    """Two broken files are two faults, told at once with file and line."""
    for name in ("brick", "robin"):
        path = user.home / "codex" / f"{name}.toml"
        path.write_text(f"unheard_of = 1\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    ran = user.run("genesis", "--json")
    assert (ran.code, ran.document["error"]["code"]) == (2, "codex")
    told = [ran.document["error"]["message"], *ran.document["error"]["also"]]
    assert "`unheard_of`. " in told[1], "fault and remedy are two sentences"
    assert any("brick.toml:1" in each for each in told)
    assert any("robin.toml:1" in each for each in told)
    spoken = user.run("genesis")
    assert "brick.toml" in spoken.err
    assert "robin.toml" in spoken.err


def test_inspect_without_a_name_lists_the_names(user: User) -> None:
    """The root's objects, each of which can be looked at by its name."""
    names = user.run("inspect", "--json").document["data"]["objects"]
    assert {"brick_prototype_obj", "robin_prototype_obj", "orchestrator_obj"} <= set(names)
    assert user.run("inspect", "brick_prototype_obj").code == 0


def test_inspect_knows_the_last_mission(user: User) -> None:
    """`last` is your newest mission, as for every other verb, and so is a slot of it."""
    mission = user.run("submit", "--quiet", "Is it there?").out.strip()
    found = user.run("inspect", "last", "--json").document["data"]
    assert found == user.run("inspect", mission, "--json").document["data"]
    assert user.run("inspect", "last.nosuch", "--json").document["error"]["code"] == "not_found"


def test_a_database_server_that_is_away(tmp_path: Path) -> None:
    """An image on a server that does not answer ends with 5 and says what to do."""
    user = User(tmp_path / "home", "http://127.0.0.1:9")
    ran = user.run("missions", "--json", "--image", "zeo://127.0.0.1:9/?wait_timeout=1")
    assert ran.code == 5, ran.err
    assert "zeo://127.0.0.1:9/" in ran.document["error"]["message"]
    assert "Start it" in ran.document["error"]["remedy"]


def test_a_question_that_is_no_text(user: User) -> None:
    """stdin that is closed and bytes that are no UTF-8 are refused by name, on stdin and as an argument."""
    closed = user.process("ask", "--json", "-", shell="<&-")
    assert (closed.code, closed.document["error"]["message"]) == (2, "stdin is closed")
    for how in ('"$(printf "a\\377")"', ""):
        program = f'"$@" {how}' if how else 'printf "a\\377" | "$@" -'
        done = subprocess.run(
            ["sh", "-c", program, "sh", *BATOS, "ask", "--json"], env=user.environ(), capture_output=True, check=False
        )
        assert done.returncode == 2
        assert b'"field": "text"' in done.stdout
        assert b"Traceback" not in done.stderr


def test_a_terminal_that_is_closed(user: User) -> None:
    """SIGHUP cancels a mission as SIGTERM does; under nohup it is not heard, and the mission is done."""
    with emulator(*WITH_MODELS, faults=held(after=1)) as url:
        closed = User(user.home, url).start("ask", "--json", *CYCLE, "How do I build a shed?")
        closed.told_until("inference.first_token")
        closed.send_signal(signal.SIGHUP)
        out, err = closed.communicate()
    assert closed.returncode == 143, err
    assert '"code": "terminated"' in out.splitlines()[-1]
    assert user.run("show", "last", "--json").document["data"]["status"] == "cancelled"
    # A handler of ours would be called by this; what is ignored stays so.
    program = (
        "import os, signal, sys; from batos.cli.verb_options import run; "
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "async def work():\n    os.kill(os.getpid(), signal.SIGHUP); return 5\n"
        "sys.exit(run(work()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 5
