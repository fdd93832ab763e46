"""`batos genesis` as people meet it: a daemon that is away, too old or full, a registry that fails, two at once."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import urllib.request
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest
from tests.cli.gate import gate_before
from tests.cli.processes import FOR_EVER, User
from tests.fork_server import ForkedCommand, forking
from tests.genesis.genesis_processes import REGISTRY, World, daemon, world
from tests.waiting import HANG, wait_until

BASE, EMBEDDER = (model["name"] for model in REGISTRY["models"])
REFUSED = "pull model manifest: 403: access to this model is denied"


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    """Where processes come from."""
    return forking()


def registry(name: str, **changed: Any) -> dict[str, Any]:
    """The small registry, one model of it changed."""
    models = [{**model, **changed} if model["name"] == name else model for model in REGISTRY["models"]]
    return {"only": True, "models": models}


def failed(where: World, *arguments: str, **settings: str) -> tuple[int | None, dict[str, Any]]:
    """A genesis that fails: its exit code and its error; what it leaves can be opened and read."""
    code, lines = where.ran("genesis", *arguments, **settings)
    assert lines[-1]["ok"] is False, lines[-1]
    assert where.ran("missions")[0] == 0
    error: dict[str, Any] = lines[-1]["error"]
    assert error["remedy"]
    return code, error


def files(home: Path) -> dict[str, bytes]:
    """The image and the journal, byte for byte."""
    return {name: (home / name).read_bytes() for name in ("live_image.fs", "journal.fs")}


def steps(lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Step and status of each event."""
    return [(line["step"], line["status"]) for line in lines if line.get("event") == "genesis.step"]


def deleted(url: str, model: str) -> None:
    """Somebody deletes a model."""
    body = json.dumps({"model": model}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{url}/api/delete", body, method="DELETE")).close()


def test_events_and_the_document_last(tmp_path: Path, context: ForkServerContext) -> None:
    """A run tells each step as an event; the last line is the document, with plan, changes and audit."""
    with world(tmp_path / "w", context) as where:
        code, lines = where.ran("genesis")
        again, none = where.ran("genesis")
    assert code == again == 0
    assert [line.get("event") for line in lines[:-1]] == ["genesis.step"] * (len(lines) - 1)
    assert lines[-1]["data"].keys() == {"plan", "done", "changes", "found", "audit", "audited_at"}
    assert ("graph the image", f"{len(lines[-1]['data']['changes'])} changes written") in steps(lines)
    assert {(f"pull {BASE}", "success"), (f"pull {EMBEDDER}", "success")} <= set(steps(lines))
    assert len(none) == 1
    assert none[0]["data"]["audited_at"] == lines[-1]["data"]["audited_at"]


def test_a_plan_is_only_shown(tmp_path: Path, context: ForkServerContext) -> None:
    """--plan names the steps, their sizes and reasons, and asks the daemon for its version and list alone."""
    with world(tmp_path / "w", context) as where:
        code, lines = where.ran("genesis", "--plan")
        requests = [request["path"] for request in where.requests()]
    plan = lines[-1]["data"]
    assert (code, len(lines)) == (0, 1)
    assert [step["kind"] for step in plan["steps"]] == ["pull", *["create"] * 4, "graph", "pull"]
    assert (plan["satisfied"], plan["needs_pull"]) == (False, True)
    assert requests == ["/api/version", "/api/tags"]
    assert not (where.home / "modelfiles").exists()


def test_a_model_of_ones_own_is_one_option(tmp_path: Path, context: ForkServerContext) -> None:
    """Its name goes into the codex, and the plan is of it; one that runs elsewhere is refused."""
    with world(tmp_path / "w", context) as where:
        code, lines = where.ran("genesis", "--model", "other:1b", "--plan")
        kept = (where.home / "codex" / "mind.toml").read_text(encoding="utf-8")
        refused, wrong = where.ran("genesis", "--model", "gpt-oss:120b-cloud")
    assert (code, refused) == (0, 2)
    assert 'default_model = "other:1b"' in kept
    assert [step["name"] for step in lines[-1]["data"]["steps"] if step["kind"] == "pull"] == ["other:1b", EMBEDDER]
    assert wrong[-1]["error"]["field"] == "model"


def test_a_question_looks_once(tmp_path: Path, context: ForkServerContext) -> None:
    """A process that asks one question looks once: version and list, then the question, which its words route."""
    with world(tmp_path / "w", context) as where:
        where.converged()
        assert where.ran("ask", "--effort", "reflex", "Who?")[0] == 0
        before = len(where.requests())
        code, _ = where.ran("ask", "--effort", "reflex", "Why?")
        requests = [request["path"] for request in where.requests()[before:]]
    assert code == 0
    assert requests[:2] == ["/api/version", "/api/tags"]
    # What follows is where the persona's runner lies.
    for path in ("/api/version", "/api/tags", "/api/chat", "/api/ps"):
        assert requests.count(path) == 1, path
    assert "/api/embed" not in requests


def test_no_daemon(tmp_path: Path, context: ForkServerContext) -> None:
    """Without a daemon genesis ends with 3 and the image stays, byte for byte, as it was."""
    with world(tmp_path / "w", context) as where:
        where.converged()
    before = files(where.home)
    code, error = failed(where)
    assert (code, error["code"], error["retry"]) == (3, "ollama_unreachable", True)
    assert "ollama serve" in error["remedy"]
    assert files(where.home) == before


def test_no_daemon_and_no_image(tmp_path: Path, context: ForkServerContext) -> None:
    """A first genesis without a daemon leaves an image in which nothing is, and the next one with a daemon works."""
    with world(tmp_path / "w", context) as where:
        away = World(where.folder, "http://127.0.0.1:9", context)
        code, error = failed(away)
        assert code == 3
        # Somebody is here for the first time: where to get it, how to start it, what comes then, what there is else.
        for told in ("https://ollama.com/download", "`ollama serve`", "`batos genesis`", "`batos emulator`"):
            assert told in error["remedy"]
        assert where.ran("inspect")[1][-1]["data"]["objects"] == {}
        where.converged()


def test_a_daemon_that_is_too_old(tmp_path: Path, context: ForkServerContext) -> None:
    """A daemon whose wire is another is refused before anything is asked of it or written."""
    with world(tmp_path / "w", context, "--speaks-as", "0.29.4") as where:
        code, error = failed(where)
        requests = [request["path"] for request in where.requests()]
    assert (code, error["code"]) == (3, "ollama_unfit")
    assert "0.29.4" in error["message"]
    assert "0.30" in error["remedy"]
    assert requests == ["/api/version"]


def test_an_offline_daemon(tmp_path: Path, context: ForkServerContext) -> None:
    """Without a network the error names what to pull by hand, both models, and nothing is made or written."""
    with world(tmp_path / "w", context, registry={**REGISTRY, "offline": True}) as where:
        code, error = failed(where)
        assert not where.store()["tags"]
        assert where.ran("inspect")[1][-1]["data"]["objects"] == {}
    assert (code, error["code"]) == (3, "pull_failed")
    assert f"`ollama pull {BASE}`" in error["remedy"]
    assert error["message"].startswith(f"pull {BASE}: ")


def test_an_unknown_model(tmp_path: Path, context: ForkServerContext) -> None:
    """A name that no registry knows is told with the file, the line and the key where it stands."""
    with world(tmp_path / "w", context) as where:
        where.ran("genesis", "--plan")
        mind, brick = where.home / "codex" / "mind.toml", where.home / "codex" / "brick.toml"
        text = mind.read_text(encoding="utf-8")
        line = text[: text.index("default_model =")].count("\n") + 1
        mind.write_text(text.replace(BASE, "lama3.1:8b"), encoding="utf-8")
        code, error = failed(where)
        assert (code, error["code"]) == (3, "model_missing")
        assert f"Correct the name in `default_model` (mind.toml:{line}), or" in error["remedy"]
        mind.write_text(text, encoding="utf-8")
        brick.write_text(f'model = "brrick"\n{brick.read_text(encoding="utf-8")}', encoding="utf-8")
        assert "`model` (brick.toml:1)" in failed(where)[1]["remedy"]


def test_a_pull_that_is_cut_goes_on(tmp_path: Path, context: ForkServerContext) -> None:
    """Cut twice in the middle, a pull is taken up where it stopped: no byte is pulled twice."""
    cuts = [{"do": "cut", "match": {"path": "/api/pull", "model": BASE}, "after": 6, "times": 2}]
    with world(tmp_path / "w", context, "--pull-s", "0.6", faults=cuts) as where:
        code, lines = where.ran("genesis")
        pulls = [request for request in where.requests() if request["path"] == "/api/pull"]
    assert code == 0
    assert len(pulls) == 2 + 2
    told = [line for line in lines if line.get("step") == f"pull {BASE}"]
    assert sum("going on" in line["status"] for line in told) == 2
    grown = [line["completed"] for line in told if line["completed"] is not None and line["status"] != "success"]
    assert grown == sorted(grown)
    assert len(set(grown)) > 5


def test_a_registry_that_breaks_off(tmp_path: Path, context: ForkServerContext) -> None:
    """A download that the registry breaks off, told by the daemon as an error, is taken up again."""
    broken = registry(BASE, fails_at=300_000)
    with world(tmp_path / "w", context, "--pull-s", "0.6", registry=broken) as where:
        code, lines = where.ran("genesis")
    assert code == 0
    assert any("going on" in status for _, status in steps(lines))


def test_a_registry_that_refuses(tmp_path: Path, context: ForkServerContext) -> None:
    """What a registry says is told with the step; the other pull has its bytes, and the next genesis needs no more."""
    with world(tmp_path / "w", context, registry=registry(BASE, error=REFUSED)) as where:
        code, error = failed(where)
        assert list(where.store()["tags"]) == [EMBEDDER]
    assert (code, error["code"]) == (3, "pull_failed")
    assert REFUSED in error["message"]
    assert "by hand" in error["remedy"]


def test_the_daemons_disk_is_full(tmp_path: Path, context: ForkServerContext) -> None:
    """No space where the daemon keeps its models is told as that, whether it pulls or makes."""
    full = "write /models/blobs/sha256-0a0b-partial-0: no space left on device"
    orders = [{"do": "error_line", "match": {"path": path}, "error": full, "times": 9} for path in ("/api/pull",)]
    with world(tmp_path / "w", context, faults=orders) as where:
        code, error = failed(where)
    assert (code, error["retry"]) == (1, False)
    assert "no space left" in error["message"]
    assert "OLLAMA_MODELS" in error["remedy"]


def test_a_model_that_cannot_be_made(tmp_path: Path, context: ForkServerContext) -> None:
    """A create that answers 200 and then an error is an error; what was made before is there, the next run goes on."""
    orders = [{"do": "error_line", "match": {"path": "/api/create", "nth": 3}, "error": "open blob: input/output"}]
    with world(tmp_path / "w", context, faults=orders) as where:
        code, error = failed(where)
        assert re.match(r"create batos-babs:[0-9a-f]{12}: .*input/output", error["message"])
        assert len(where.store()["tags"]) == 4
        assert where.ran("inspect")[1][-1]["data"]["objects"] == {}
        where.converged()
    assert code == 1


def stalled_pull(after: int) -> dict[str, Any]:
    """A fault: of the next pull of the base no more than so many lines come."""
    return {"do": "stall", "match": {"path": "/api/pull", "model": BASE}, "after": after, "seconds": FOR_EVER}


def models_asked(where: World) -> int:
    """How many models the daemon was asked to make."""
    return sum(request["path"] == "/api/create" for request in where.requests())


def test_a_daemon_that_dies_in_the_middle(tmp_path: Path, context: ForkServerContext) -> None:
    """When the daemon dies between two models genesis fails with what to do; with a new daemon it goes on."""
    folder = tmp_path / "w"
    folder.mkdir()
    stalls = [{"do": "stall", "match": {"path": "/api/create", "nth": 2}, "seconds": FOR_EVER}]
    for name, content in (("registry", REGISTRY), ("faults", stalls)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    given = ("--registry", str(folder / "registry.json"))
    with daemon(folder, context, *given, "--faults", str(folder / "faults.json")) as (url, process):
        where = World(folder, url, context)
        running = where.genesis()
        wait_until(lambda: not running.is_alive() or models_asked(where) == 2, "the second model")
        process.kill()
        running.join(HANG)
    error = json.loads((folder / "out").read_text(encoding="utf-8").splitlines()[-1])["error"]
    assert running.exitcode == {"ollama_unreachable": 3, "stream_cut": 1}[error["code"]]
    assert (error["retry"], bool(error["remedy"])) == (True, True)
    with daemon(folder, context, *given) as (url, _):
        (folder / "out").unlink()
        World(folder, url, context).converged()


def test_a_pull_that_stands_still(tmp_path: Path, context: ForkServerContext) -> None:
    """A registry that gives nothing more is waited for as long as is set, three times, and then told with a remedy."""
    stalls = [{**stalled_pull(2), "times": 9}]
    with world(tmp_path / "w", context, faults=stalls) as where:
        code, error = failed(where, BATOS_PROGRESS_SECONDS="0.4")  # any pace: no more comes
    assert (code, error["code"]) == (3, "ollama_timeout")
    assert "0.4 s" in error["message"]
    assert f"ollama pull {BASE}" in error["remedy"]
    assert "progress_seconds" in error["remedy"]


def test_two_at_once(tmp_path: Path, context: ForkServerContext) -> None:
    """The image has one owner: the second genesis is told who holds it, ends with 5, and the first is not disturbed."""
    with world(tmp_path / "w", context) as where, gate_before(where.url, "/api/create") as gate:
        with gate.closed():
            first = World(where.folder, gate.url, context).genesis()
            gate.wait_for_question()
            code, lines = where.ran("genesis", BATOS_BUSY_SECONDS="0")
        first.join(HANG)
    assert (code, lines[-1]["error"]["code"]) == (5, "image_busy")
    assert str(first.pid) in lines[-1]["error"]["message"]
    assert first.exitcode == 0


def test_a_plan_over_the_budget(tmp_path: Path, context: ForkServerContext) -> None:
    """What does not fit the card is refused with 4 when the bases are there, and nothing is made or written."""
    with world(tmp_path / "w", context) as where:
        code, error = failed(where, BATOS_USABLE="100MiB")
        assert sorted(where.store()["tags"]) == sorted([BASE, EMBEDDER])
        assert where.ran("inspect")[1][-1]["data"]["objects"] == {}
        assert code == 4
        assert "usable" in error["remedy"]
        where.converged()
        code, lines = where.ran("genesis", BATOS_USABLE="100MiB")
    assert code == 1
    assert [finding["id"] for finding in lines[-1]["data"]["audit"] if not finding["ok"]] == ["vram.budget"]


def test_a_pull_that_can_never_fit(tmp_path: Path, context: ForkServerContext) -> None:
    """Weights that are more than the card are refused as soon as the daemon names their size: nobody waits for them."""
    with world(tmp_path / "w", context, "--pull-s", str(FOR_EVER)) as where:
        code, error = failed(where, BATOS_USABLE="0.5MiB")
        assert where.store()["tags"] == {}
    assert (code, error["code"]) == (4, "budget_exceeded")
    assert 'profile = "small"' in error["remedy"]
    assert error["budget"]["runners"][0]["rows"][0] == {"what": "weights", "bytes": 600_000, "note": ""}


def test_ctrl_c_in_a_pull(tmp_path: Path, context: ForkServerContext) -> None:
    """Ctrl-C ends genesis with 130 at once; the next one takes the pull up where it stopped."""
    with world(tmp_path / "w", context, "--pull-s", "0.6", faults=[stalled_pull(6)]) as where:
        running = User(where.home, where.url).start("genesis", "--json")
        grown: dict[str, Any] = {"completed": 0}
        while not (grown.get("step") == f"pull {BASE}" and grown["completed"]):
            grown = json.loads(running.told_until('"completed"').splitlines()[-1])
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
        assert (running.returncode, json.loads(out.splitlines()[-1])["error"]["code"]) == (130, "interrupted"), err
        told = [line for line in where.ran("genesis")[1] if line.get("step") == f"pull {BASE}"]
    first = next(line["completed"] for line in told if line["total"])
    assert first > 0


def test_ctrl_c_tells_a_person_what_is_kept(tmp_path: Path, context: ForkServerContext) -> None:
    """Who stops gigabytes in the middle is told that nothing of them is lost, and how to go on."""
    with world(tmp_path / "w", context, faults=[stalled_pull(1)]) as where:
        running = User(where.home, where.url).start("genesis")
        assert running.stderr is not None
        assert any("pulling manifest" in line for line in running.stderr), f"it ended with {running.wait()}"
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    assert running.returncode == 130
    told = [line for line in err.splitlines() if line]
    assert told[-2:] == [
        "What was pulled and made so far is kept: `batos genesis` goes on from there.",
        "interrupted",
    ]


def test_without_an_embedder(tmp_path: Path, context: ForkServerContext) -> None:
    """The embedder is optional: without it genesis succeeds and says what was left out."""
    only = {"only": True, "models": [model for model in REGISTRY["models"] if model["name"] == BASE]}
    with world(tmp_path / "w", context, registry=only) as where:
        code, lines = where.ran("genesis")
    assert code == 0
    assert any(step == f"pull {EMBEDDER}" and status.startswith("left out") for step, status in steps(lines))
    assert [step["name"] for step in lines[-1]["data"]["done"] if step["kind"] == "pull"] == [BASE]
    assert all(finding["ok"] for finding in lines[-1]["data"]["audit"])


def test_stale_models_are_named_and_pruned(tmp_path: Path, context: ForkServerContext) -> None:
    """What nothing is made of any more is named with what removes it; --prune removes it, and nothing else."""
    with world(tmp_path / "w", context) as where:
        models = where.converged()["plan"]
        path = where.home / "codex" / "babs.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("temperature = ", "top_k = 7\ntemperature = ", 1), encoding="utf-8")
        old = next(name for name in where.store()["tags"] if name.startswith("batos-babs:"))
        assert where.converged()["plan"]["stale"] == [old]
        spoken = User(where.home, where.url).run("genesis")
        assert f"ollama rm {old}" in spoken.err
        assert old in where.store()["tags"]
        pruned = where.converged("--prune")
        assert [step["name"] for step in pruned["plan"]["steps"]] == [old]
        assert old not in where.store()["tags"]
        assert len(where.store()["tags"]) == 6
        assert where.converged("--prune")["plan"]["steps"] == []
    assert models["stale"] == []


def test_models_of_another_home_are_left_to_it(tmp_path: Path, context: ForkServerContext) -> None:
    """What this image did not make is named, but nobody is told to remove it, and --prune does not."""
    foreign, named = "batos-robin:123456789abc", "batos-robin:latest"
    with world(tmp_path / "w", context) as where:
        where.converged()
        made = next(name for name in where.store()["tags"] if name.startswith("batos-robin:"))
        for name in (foreign, named):
            body = json.dumps({"source": made, "destination": name}).encode()
            urllib.request.urlopen(urllib.request.Request(f"{where.url}/api/copy", body)).close()
        spoken = User(where.home, where.url).run("genesis", "--prune")
        assert f"This image did not make {foreign}: leave" in spoken.err
        assert "ollama rm" not in spoken.err
        assert {foreign, named} <= where.store()["tags"].keys()


def test_a_model_deleted_behind_our_back(tmp_path: Path, context: ForkServerContext) -> None:
    """It is made again, by genesis as by a question, and is the same."""
    with world(tmp_path / "w", context) as where:
        where.converged()
        before = where.store()["tags"]
        gone = next(name for name in before if name.startswith("batos-alfred:"))
        deleted(where.url, gone)
        report = where.converged()
        assert [(step["kind"], step["name"]) for step in report["plan"]["steps"]] == [("create", gone)]
        deleted(where.url, gone)
        code, lines = where.ran("ask", "--persona", "ALFRED", "--effort", "reflex", "What do you doubt?")
        assert (code, list(lines[-1]["data"]["provenance"]["models"])) == (0, [gone])
        assert where.store()["tags"] == before


def test_modelfiles_work_by_hand(tmp_path: Path, context: ForkServerContext) -> None:
    """Each persona has one, with base, parameters and text; one of a persona's own is never removed."""
    with world(tmp_path / "w", context) as where:
        where.converged()
        folder = where.home / "modelfiles"
        (folder / "batos-mine.Modelfile").write_text("FROM x\n", encoding="utf-8")
        names = {path.name for path in folder.iterdir()}
        where.converged()
        assert {path.name for path in folder.iterdir()} == names
        text = (folder / "batos-brick.Modelfile").read_text(encoding="utf-8")
    assert f"\nFROM {BASE}\n" in text
    assert "\nPARAMETER num_ctx 4096\n" in text
    assert '\nSYSTEM """You are BRICK' in text


def test_bars_on_a_terminal(tmp_path: Path, context: ForkServerContext) -> None:
    """On a terminal both pulls have a bar, redrawn in place; with NO_COLOR no line moves."""
    bar = rf"pull {re.escape(BASE)}  \[#+\.+\]  [^\n]*, [^\n]*/s, [^\n]* left\r?\n"
    redrawn = r"\x1b\[2A\x1b\[J"

    def drawn(so_far: str) -> bool:
        return all(re.search(each, so_far) for each in (bar, redrawn))

    with world(tmp_path / "w", context, "--pull-s", "60") as where:  # any pace: it is stopped when there are bars
        shown, code = _on_a_terminal(User(where.home, where.url), "", drawn)
    assert drawn(shown), shown
    assert code == 130, shown
    with world(tmp_path / "w1", context, "--pull-s", "0.8") as where:
        shown, code = _on_a_terminal(User(where.home, where.url), "1")
    assert code == 0, shown
    assert "\x1b" not in shown
    assert f"pull {BASE}: done, " in shown


def test_a_person_is_asked_once_whether_the_mind_may_work_by_itself(tmp_path: Path, context: ForkServerContext) -> None:
    """On a terminal; the answer is kept, and who is no person is not asked."""
    with world(tmp_path / "w", context) as where:
        where.converged()
        user = User(where.home, where.url)
        shown, code = _on_a_terminal(user, "1", answer=b"y\n")
        assert (code, shown.count("May the mind work by itself")) == (0, 1), shown
        shown, code = _on_a_terminal(user, "1", answer=b"y\n")
        assert (code, "May the mind" in shown) == (0, False), shown
        told = user.run("heartbeat", "--json").document["data"]
        assert told["on"] is True, told


def _on_a_terminal(
    user: User, no_colour: str, enough: Callable[[str], bool] | None = None, answer: bytes = b""
) -> tuple[str, int]:
    """What genesis writes to a terminal, and its exit code; Ctrl-C comes when enough was written.

    With an answer a person sits there, who gives it to a question.
    """
    ours, theirs = pty.openpty()
    environ = {**user.environ(), "NO_COLOR": no_colour, "COLUMNS": "200", "TERM": "xterm"}
    with Path(os.devnull).open("r+b") as nothing:
        inherits = (theirs, theirs, theirs) if answer else (nothing.fileno(), nothing.fileno(), theirs)
        process = ForkedCommand(["genesis"], environ, *inherits)
    os.close(theirs)
    found = b""
    try:
        while piece := os.read(ours, 65_536):
            found += piece
            if answer and b"[y/N]" in found:
                os.write(ours, answer)
                answer = b""
            if enough is not None and enough(found.decode(errors="replace")):
                process.send_signal(signal.SIGINT)
                enough = None
    except OSError:
        pass  # Linux says so when the other side is closed
    finally:
        os.close(ours)
    return found.decode(), process.wait()


def test_a_home_that_is_copied_goes_on(tmp_path: Path, context: ForkServerContext) -> None:
    """A copy of a home knows its models: on the same daemon nothing is to be done."""
    with world(tmp_path / "w", context) as where:
        where.converged()
        copied = tmp_path / "copy"
        shutil.copytree(where.home, copied / "home")
        other = World(copied, where.url, context)
        assert other.converged()["plan"]["steps"] == []
