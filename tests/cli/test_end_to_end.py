"""What a user runs: an emulator, genesis, a question, and everything read back by another command.

Nothing of the program's own fakes is imported here.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest
from tests.cli.processes import WITH_MODELS, User, answers_kept, as_answered, emulator, held, texts
from tests.memory.reading.pdf_files import pdf_of
from tests.waiting import wait_until

QUESTION = "How was the breach in the north pier closed, and what did it cost to build it again?"
CYCLE = ("--effort", "cycle")
TEXT = (
    "The north pier broke in the storm of 12 November 1953.\n\n"
    "The engineer, Maud Okafor, closed the breach with 1,940 blocks of granite. It cost 3.2 million crowns.\n"
)


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    """A text file to ask about."""
    path = tmp_path / "harbour.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_mission_is_answered_and_read_back(user: User, harbour: Path) -> None:
    """A mission asked in one process, under the loop watch, is whole in the next: route, states, calls, provenance."""
    unlearnt = {"BATOS_LEARN_SECONDS": "0"}  # what is learnt afterwards is told of it too
    asked = user.fork("ask", "--json", *CYCLE, "--file", str(harbour), QUESTION, environ=unlearnt)
    assert asked.code == 0, asked.err
    mission = asked.document["data"]
    assert mission["status"] == "done"
    assert [step["state"] for step in mission["states"]] == [
        "IDLE",
        "DECOMPOSING",
        "DELEGATING",
        "SYNTHESIZING",
        "COMPLETE",
        "IDLE",
    ]
    assert mission["cost"]["calls"] == 5 + mission["provenance"]["gate"]["revised"]
    assert len(mission["voices"]) == 3
    assert texts(asked.documents, "mission.token").endswith(mission["answer"])
    again = user.fork("show", mission["id"], "--json")
    assert {**again.document, "data": None} == {"v": 1, "ok": True, "data": None}
    assert as_answered(again.document["data"]) == as_answered(mission)


def test_a_person_has_the_system_audited(user: User) -> None:
    """Progress, findings and both answers; 1 where a check does not hold, 3 with the findings alone without Ollama."""
    told = user.run("trials", "audit", "now")
    assert told.code == 0, told.err
    assert "Cognitive Efficiency Audit ..." in told.err
    for part in ("codex.digest", "In the last 7 days", "System Integrity Audit (m-", "Cognitive Efficiency Audit (m-"):
        assert part in told.out
    codex = user.home / "codex" / "alfred.toml"
    codex.write_text(codex.read_text("utf-8").replace('"Is that your opinion', '"Is this your opinion'), "utf-8")
    wrong = user.run("trials", "audit", "--json")
    assert wrong.code == 1, wrong.err
    found = wrong.document["data"]
    assert [each["id"] for each in found["findings"] if not each["ok"]] == ["codex.digest"]
    assert [len(found["audits"]), found["error"]] == [2, None]
    away = User(user.home, "http://127.0.0.1:9").run("trials", "audit", "now")
    assert away.code == 3, away.err
    assert "models.listed" in away.out
    assert "ALFRED gives no answer" in away.out


def test_two_voices_are_told(user: User, harbour: Path) -> None:
    """Where two personas are nearly as likely both answer and one call joins them; every view of it names both."""
    near = {"BATOS_SECOND_VOICE_MARGIN": "1"}
    asked = user.run("ask", "--json", *CYCLE, "--file", str(harbour), QUESTION, environ=near)
    assert asked.code == 0, asked.err
    mission = asked.document["data"]
    first, second = mission["route"]["personas"]
    joined = mission["provenance"]["combined"]["mode"] == "weave"  # not where both said the same
    assert mission["cost"]["calls"] == 2 + joined + mission["provenance"]["gate"]["revised"]
    assert [step["state"] for step in mission["states"]] == ["IDLE", "DELEGATING", "SYNTHESIZING", "COMPLETE", "IDLE"]
    assert [voice["persona"] for voice in mission["voices"]] == mission["provenance"]["personas"] == [first, second]
    routed = [each for each in asked.documents if each.get("event") == "mission.routed"]
    assert routed[-1]["personas"] == [first, second]
    shown = user.run("show", mission["id"], "--voices", "--prompts")
    for line in (
        f"route    {first}, {second} at effort cycle",
        f"persona  {first}, asked: ",
        f"persona  {second}, asked: ",
    ):
        assert line in shown.out
    assert all(f"duet/delegating/{name.lower()}" in shown.out for name in (first, second))
    assert ("duet/synthesizing" in shown.out) == joined
    assert f"{first}, {second}, cycle · " in user.run("ask", *CYCLE, "--file", str(harbour), QUESTION, environ=near).err
    reflex = user.run("ask", "--json", "--effort", "reflex", "--file", str(harbour), QUESTION, environ=near)
    assert reflex.document["data"]["route"]["personas"] == [first]
    assert reflex.document["data"]["cost"]["calls"] == 1


def test_citations_are_verbatim(user: User, harbour: Path) -> None:
    """What is cited stands in the file, word for word, and the file's digest is in the provenance."""
    mission = user.run("ask", "--json", "--file", str(harbour), QUESTION).document["data"]
    cited = mission["provenance"]["citations"]
    assert cited
    flat = " ".join(TEXT.split())
    assert all(" ".join(each["quote"].split()) in flat for each in cited)
    assert mission["provenance"]["recalled"][0]["sha256"] == mission["brief"]["attachments"][0]["sha256"]
    assert mission["trust"] == {"brief": "user", "answer": "model", "lineage": "external"}


def test_a_source_names_its_page(user: User, tmp_path: Path) -> None:
    """Of a PDF, whether it is asked about or remembered: under the answer, in its record and in the reasons for it."""
    path = tmp_path / "gates.pdf"
    path.write_bytes(pdf_of(["The first gate is of oak.", "A list of gates.", "The third gate weighs 950 kg."]))
    question = "How much does the third gate weigh?"
    for given in (("--file", str(path)), ()):
        if not given:
            assert user.run("remember", str(path)).code == 0
        asked = user.run("ask", "--effort", "reflex", "--conversation", "new", *given, question)
        assert asked.code == 0, asked.err
        assert '"The third gate weighs 950 kg." (page 3)' in asked.err
        cited = user.run("show", "last", "--json").document["data"]["provenance"]["citations"]
        assert {each["page"] for each in cited if "950" in each["quote"]} == {3}
        assert ", page 3, " in user.run("why", "The third gate weighs 950 kg.", "--whole").out


def test_people_read_text(user: User, harbour: Path) -> None:
    """For a person the answer is on stdout alone; how it came about is on stderr."""
    brief = user.run("ask", *CYCLE, "--file", str(harbour), QUESTION)
    assert '[1] harbour.txt: "' in brief.err
    assert "BABS, cycle · 5 calls · " in brief.err
    assert "DECOMPOSING" not in brief.err
    asked = user.run("ask", "-v", *CYCLE, "--file", str(harbour), QUESTION)
    assert asked.code == 0
    assert "not a model" in asked.out
    assert "IDLE > DECOMPOSING > DELEGATING > SYNTHESIZING > COMPLETE > IDLE" in asked.err
    assert "\x1b" not in asked.out + asked.err
    shown = user.run("show", "last", "--voices", "--prompts")
    assert QUESTION in shown.out
    assert "=== " in shown.out


def test_quiet_is_the_answer_alone(user: User) -> None:
    """--quiet leaves nothing but the answer."""
    asked = user.run("ask", "--quiet", "Why?")
    assert (asked.code, asked.err) == (0, "")
    assert asked.out.count("\n") >= 1


def test_reflex_is_one_call(user: User) -> None:
    """At effort reflex a mission is one call."""
    mission = user.run("ask", "--json", "--effort", "reflex", "--persona", "robin", "Why do I worry?").document["data"]
    assert mission["route"]["personas"] == ["ROBIN"]
    assert mission["cost"]["calls"] == 1 + mission["provenance"]["gate"]["revised"]
    assert [step["state"] for step in mission["states"]] == ["IDLE", "SYNTHESIZING", "COMPLETE", "IDLE"]


def test_an_answer_has_the_schema_of_who_asks(user: User, harbour: Path, tmp_path: Path) -> None:
    """JSON for another program; each view of the mission names what was asked for beside the question."""
    schema = {"type": "object", "properties": {"cost": {"type": "string"}, "blocks": {"type": "integer"}}}
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({**schema, "required": ["cost", "blocks"]}), encoding="utf-8")
    own = ("--schema", str(path), "--temperature", "0.5")
    asked = user.run("ask", "--quiet", *own, "--file", str(harbour), QUESTION)
    assert asked.code == 0, asked.err
    assert set(json.loads(asked.out)) == {"cost", "blocks"}
    assert "temperature 0.5" in user.run("show", "last").out
    why = user.run("why", "last").out
    assert "option: temperature 0.5" in why
    assert 'option: schema {"type": "object"' in why
    several = user.run("ask", *own, "--effort", "cycle", QUESTION)
    assert (several.code, "one call" in several.err) == (2, True)


def test_stdin(user: User) -> None:
    """A question and a file may come from stdin, but not both."""
    assert user.run("ask", "-q", "-", stdin="Why do I worry?").code == 0
    assert user.run("ask", "-q", "--file", "-", QUESTION, stdin=TEXT).code == 0
    for question in (["-"], []):
        both = user.run("ask", "--json", "--file", "-", *question, stdin=TEXT)
        assert (both.code, both.document["error"]["field"]) == (2, "text")
        assert "both the question and a file" in both.document["error"]["message"]


def test_genesis_twice_changes_nothing(user: User) -> None:
    """A second genesis has nothing to do and leaves the image's file as it was."""
    image = user.home / "live_image.fs"
    before = image.read_bytes()
    again = user.run("genesis", "--json").document["data"]
    assert (again["plan"]["steps"], again["changes"]) == ([], [])
    assert all(finding["ok"] for finding in again["audit"])
    assert image.read_bytes() == before


def test_a_changed_codex_acts_at_the_next_question(user: User) -> None:
    """An edited codex needs no genesis: the next question makes the new models and thinks with them."""
    codex = user.home / "codex" / "brick.toml"
    text = codex.read_text(encoding="utf-8")
    codex.write_text(text.replace("You are BRICK, logical", "You are BRICK the literal, logical", 1), encoding="utf-8")
    mission = user.run("ask", "--json", "--persona", "BRICK", "How do I build a shed?").document["data"]
    prompts = user.run("show", mission["id"], "--json", "--prompts").document["data"]["prompts"]
    assert all("You are BRICK the literal," in call["messages"][-1]["content"] for call in prompts[:4])


def test_a_conversation_remembers(user: User) -> None:
    """The turns of a conversation stand in the prompts of the next one."""
    first = user.run("ask", "--json", "--conversation", "new", "My boat is called Wren.").document["data"]
    name = first["brief"]["conversation"]
    second = user.run("ask", "--json", "--conversation", name, "What is my boat called?").document["data"]
    prompts = user.run("show", second["id"], "--json", "--prompts").document["data"]["prompts"]
    assert {"role": "user", "content": "My boat is called Wren."} in prompts[0]["messages"]
    assert second["provenance"]["recalled"] == [{"mission": first["id"], "turn": 1, "trust": "model"}]


def test_no_daemon(tmp_path: Path) -> None:
    """Without a daemon genesis and questions end with 3 and say what to do; the question is a mission that failed."""
    user = User(tmp_path / "home", "http://127.0.0.1:9")
    for verb in (("genesis",), ("ask", QUESTION)):
        ran = user.run(*verb, "--json")
        assert ran.code == 3, ran.err
        assert ran.document["error"]["code"] == "ollama_unreachable"
        assert "ollama serve" in ran.document["error"]["remedy"]
    [line] = user.run("missions", "--json").document["data"]["missions"]
    assert "no such mission" in user.run("missions", "--status", "parked").out
    assert (line["status"], line["text"][:40]) == ("failed", QUESTION[:40])


def test_before_genesis(tmp_path: Path, ollama: str) -> None:
    """A question before genesis names the verb that is missing, and pulls no gigabytes by itself."""
    with emulator() as url:
        ran = User(tmp_path / "home", url).run("ask", "--json", QUESTION)
    assert (ran.code, ran.document["error"]["code"]) == (3, "model_missing")
    assert "batos genesis" in ran.document["error"]["remedy"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("ask", "--json", "  "), "text"),
        (("ask", "--json", "--file", "no-such-file.txt", "x"), "attachments"),
        (("ask", "--json", "--effort", "much", "x"), "effort"),
        (("ask", "--json", "--conversation", "c-nonsense", "x"), "conversation"),
        (("show", "--json", "m-none"), "mission"),
        (("inspect", "--json", "nobody"), "object"),
    ],
)
def test_bad_input(user: User, arguments: tuple[str, ...], field: str) -> None:
    """Bad input ends with 2 and names the field and the remedy."""
    ran = user.run(*arguments)
    assert ran.code == 2, ran.err
    error = ran.document["error"]
    assert error["field"] == field
    assert error["remedy"]


def test_unknown_verb() -> None:
    """An unknown verb or option ends with 2."""
    user = User(Path("nowhere"), "http://127.0.0.1:9")
    assert user.run("dance").code == 2
    assert user.run("ask", "--json", "--louder", "x").document["ok"] is False


def test_a_binary_file_is_refused(user: User, tmp_path: Path) -> None:
    """A file that is no text is refused by name."""
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    ran = user.run("ask", "--json", "--file", str(path), QUESTION)
    assert (ran.code, ran.document["error"]["code"]) == (2, "brief")
    assert "picture.png" in ran.document["error"]["message"]


def test_ctrl_c_cancels(user: User) -> None:
    """Ctrl-C cancels the mission: status cancelled with its cost, exit 130, and what was paid for stays paid."""
    with emulator(*WITH_MODELS, faults=held(lines=2)) as url:
        process = User(user.home, url).start("ask", "--json", *CYCLE, QUESTION)
        process.told_until("inference.first_token")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130, err
    mission = user.run("show", "last", "--json").document["data"]
    assert mission["status"] == "cancelled"
    assert mission["cost"]["calls"] == 1
    assert mission["states"][-1]["state"] == "FAILED"


def test_killed_and_resumed(user: User) -> None:
    """A mission whose process was killed is run again by `resume`, and no answer is paid for twice."""
    with emulator(*WITH_MODELS, faults=held(after=4)) as url:
        process = User(user.home, url).start("ask", "--json", *CYCLE, QUESTION)
        process.told_until("SYNTHESIZING")
        wait_until(lambda: answers_kept(user) == 4, "four answers in the journal")
        process.kill()
        process.communicate()
    assert user.run("doctor", "--json").code == 1
    resumed = user.run("resume", "--json")
    assert resumed.code == 0, resumed.err
    [mission] = resumed.document["data"]["missions"]
    assert (mission["status"], mission["cost"]["from_journal"]) == ("done", 4)
    assert mission["cost"]["calls"] == 5 + mission["provenance"]["gate"]["revised"]
    assert user.run("resume", "--json").document["data"] == {"missions": []}


def test_ollama_dies_in_the_middle(user: User) -> None:
    """When the daemon goes away in the middle, the mission ends failed with a reason, and the next one works."""
    with emulator(*WITH_MODELS, faults=held(after=1)) as url:
        process = User(user.home, url).start("ask", "--json", *CYCLE, QUESTION)
        process.told_until("DELEGATING")
        # The emulator is stopped here, by leaving the block.
    out, _ = process.communicate()
    assert process.returncode in (1, 3), out
    mission = user.run("show", "last", "--json").document["data"]
    assert mission["status"] == "failed"
    assert mission["reason"]["remedy"]
    assert "answer" not in mission
    assert user.run("ask", "-q", QUESTION).code == 0


def test_a_reader_that_leaves(user: User) -> None:
    """Output into a pipe that closes is no crash."""
    process = user.start("missions", "--json")
    assert process.stdout is not None
    process.stdout.close()
    process.wait()
    assert process.returncode in (0, 1)
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()


def test_ps_config_doctor(user: User) -> None:
    """The three verbs about the system answer people and programs."""
    found = user.run("ps", "--json").document["data"]
    # Models of one base share a runner: whether they are hot is up to who asked before.
    names = {row["name"] for row in found["cold"]}.union(*(row["serves"] for row in found["hot"]))
    assert any(name.startswith("batos-brick:") for name in names)
    settings = user.run("config", "--json").document["data"]
    assert settings["ollama_host"] == {"value": user.ollama, "source": "OLLAMA_HOST"}
    assert settings["missions"] == {"value": 8, "source": "default"}
    health = user.run("doctor", "--json")
    assert (health.code, health.document["data"]["ok"]) == (0, True), health.out
    for verb in ("ps", "config", "doctor"):
        assert user.run(verb).code == 0
    told = user.run("config", environ={"BATOS_VRMA": "6", "BATOS_PROFILE": "huge"})
    assert told.code == 0
    warning = "warning: BATOS_VRMA is not a setting and is not read; did you mean BATOS_VRAM?"
    assert warning in " ".join(told.err.split())
    assert "the codex has no profile 'huge'" in told.err


def test_the_emulator_says_when_its_port_is_taken() -> None:
    """A port that is taken is an error that says so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        user = User(Path(os.devnull), "http://127.0.0.1:9")
        ran = user.run("emulator", "--port", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert "another port" in ran.err
