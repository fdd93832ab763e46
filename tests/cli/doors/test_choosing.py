"""One door: verbs start the home's server and share it; it is replaced, lends its image, and can be left out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.processes import BATOS, WITH_MODELS, User, emulator, held
from tests.waiting import wait_until

from batos.client import addresses, server_life
from batos.client.addresses import ServerRecord

AUTO = {"BATOS_SERVER": "auto"}


@pytest.fixture
def person(user: User) -> Iterator[User]:
    """A user whose verbs may start a server, which is stopped at the end."""
    yield user
    server_life.stop(user.home)


def running(user: User) -> ServerRecord:
    """The note of the server that runs."""
    found = addresses.running_server(user.home)
    assert found is not None
    return found


def test_verbs_share_the_server_that_the_first_started(person: User) -> None:
    """What was submitted runs by itself; `batos stop` ends it; `--here` needs none."""
    mission = person.run("submit", "What is water?", "-q", environ=AUTO).out.strip()
    first = running(person)
    assert first.by == "verb"
    assert person.run("wait", mission, "-q", environ=AUTO).code == 0
    assert person.run("show", mission, "-q", environ=AUTO).code == 0
    assert running(person) == first
    assert str(first.pid) in person.run("stop", environ=AUTO).out
    assert addresses.running_server(person.home) is None
    assert person.run("stop", environ=AUTO).out == "No server runs.\n"
    assert person.run("show", mission, "-q", "--here", environ=AUTO).code == 0
    assert addresses.running_server(person.home) is None


def test_a_server_that_is_killed_while_it_answers_is_started_again(person: User) -> None:
    """The verb waits on, and the next server finishes what the first one began."""
    with emulator(*WITH_MODELS, faults=held(lines=2)[:1]) as url:
        slow = User(person.home, url)
        environ = {**slow.environ(), **AUTO}
        with subprocess.Popen(
            [*BATOS, "ask", "--effort", "reflex", "--json", "-q", "What is water?"], env=environ,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as asking:  # fmt: skip
            log = person.home / "logs" / "batos.log"
            wait_until(lambda: "inference.first_token" in log.read_text(encoding="utf-8"), "an answer that began")
            os.kill(running(person).pid, signal.SIGKILL)
            out, err = asking.communicate()
            assert (asking.returncode, '"status": "done"' in out) == (0, True), err


def test_other_settings_replace_an_idle_server_alone(person: User) -> None:
    """One at work goes on, and a line says what to do; a person's server takes the place of a verb's, in order."""
    # The mission has no end meanwhile, however slow the machine is.
    with emulator(*WITH_MODELS, faults=held(lines=2)[:1]) as url:
        away = {**AUTO, "OLLAMA_HOST": url}
        assert person.run("missions", environ=AUTO).code == 0
        first = running(person)
        assert person.run("submit", "What is water?", environ=away).code == 0
        second = running(person)
        assert second.pid != first.pid
        told = person.run("missions", environ=AUTO)
        assert (told.code, "`batos stop` ends it" in told.err, running(person).pid) == (0, True, second.pid)
        serving = person.start("serve", "-q")
        wait_until(lambda: (note := addresses.running_server(person.home)) and note.by == "person", "a person's server")
        assert addresses.birth_time(second.pid) != second.born
        told = person.run("missions", environ=away)
        assert (told.code, told.err, running(person).pid) == (0, "", serving.pid)
        assert person.run("stop", environ=AUTO).code == 0
        serving.communicate()
        assert serving.wait() == 0


def test_a_server_lends_its_image_to_a_verb_that_needs_it_alone(person: User) -> None:
    """It opens it again afterwards, in the same process, whoever started it."""
    assert person.run("missions", environ=AUTO).code == 0
    first = running(person)
    assert person.run("repair", "--json", environ=AUTO).code == 0
    assert person.run("missions", environ=AUTO).code == 0
    assert running(person).pid == first.pid
    # A borrower that is killed gives it back as well.
    borrower = (
        "import sys, time, pathlib; from batos.client import server_life\n"
        "with server_life.image_alone(pathlib.Path(sys.argv[1]), lambda: False):\n"
        "    print('alone', flush=True); time.sleep(1e6)"
    )
    with subprocess.Popen([sys.executable, "-c", borrower, person.home], stdout=subprocess.PIPE, text=True) as lent:
        assert lent.stdout is not None
        assert lent.stdout.readline() == "alone\n"
        assert addresses.running_server(person.home) is None
        lent.kill()
    assert person.run("missions", environ=AUTO).code == 0
    assert running(person).pid == first.pid


def test_where_no_server_can_start_a_verb_says_why(user: User) -> None:
    """An image that does not open is told as it is without a server; a copy is read in the verb's own process."""
    copy = user.home.with_name("copy.fs")
    copy.write_bytes((user.home / "live_image.fs").read_bytes())
    assert user.run("missions", "--image", f"file://{copy}", environ=AUTO).code == 0
    assert addresses.running_server(user.home) is None
    (user.home / "live_image.fs").write_bytes(b"no image")
    told, alone = (user.run("missions", "--json", environ=each) for each in (AUTO, {}))
    assert (told.code, told.document) == (alone.code, alone.document)
    assert told.code == 5


def test_a_verb_that_only_reads_makes_no_image(tmp_path: Path) -> None:
    """Where there is none, no server is started for it."""
    nobody = User(tmp_path / "home", "http://127.0.0.1:9")
    assert nobody.run("missions", environ=AUTO).code == nobody.run("missions").code != 0
    assert not (nobody.home / "live_image.fs").exists()
