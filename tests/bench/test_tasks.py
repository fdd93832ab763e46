"""The bench of tasks: its data, an equal share of it, the model's own arm, missions, prompts, resuming and goals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tasks
from batos.inference.ollama.bridge import Bridge, ChatRequest
from batos.protocol.brief import NO_MEMORY
from batos.protocol.errors import BatosError, ContextOverflow, OllamaUnreachable
from batos.testing import ScriptedBridge
from ollama_emulator.emulator import Emulator, Options
from tasks_arms_side import (
    BareModel,
    MeasuredModel,
    MissionHome,
    TaskAnswer,
    bare_text,
    opened_home,
    remember_folder,
    remembered_names,
)
from tasks_data_side import DataError, KeptLines, TaskData, pick, read_data
from tasks_figures_side import ScoredAnswer, figures, goals_of
from tasks_prompts_side import FoundPrompt, look_at_prompt, prompt_figures, prompt_goals, prompt_of, shown_share
from tasks_side import score

DOCUMENTS = {
    "lamp.md": "# The lamp\n\nThe oil is carried up 86 steps from the yard. The keeper winds the clockwork.",
    "ferry.csv": "day,trips\nMonday,4\nTuesday,7\n",
}


def task(name: str, kind: str = "lookup", language: str = "en", **also: Any) -> dict[str, Any]:
    """Return a task about the lamp."""
    usual = {"files": ["lamp.md"], "question": "How many steps is the oil carried up?", "before": []}
    checks = [{"type": "all_of", "items": ["86"]}, {"type": "words", "max": 30}]
    return {"id": name, "kind": kind, "language": language, **usual, "checks": checks, **also}


FOLLOW_UP = task("t-2", "follow_up", before=["What is carried up?"], question="And how many steps is that?")
IN_FOLDER = task("t-3", "folder")
DATA = TaskData((task("t-1"), FOLLOW_UP, IN_FOLDER), DOCUMENTS)
MODEL = MeasuredModel("llama3.2:3b", "d" * 64, 3 * 10**9, 4096, 1024)


def written(folder: Path, *rows: Mapping[str, Any]) -> Path:
    """Write a folder of data and return it."""
    (folder / "documents").mkdir(parents=True)
    for name, text in DOCUMENTS.items():
        (folder / "documents" / name).write_text(text, encoding="utf-8")
    (folder / "tasks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return folder


def test_data_is_read_with_its_documents(tmp_path: Path) -> None:
    """A task without earlier questions needs no word of them, and its files come in the order given."""
    given = task("t", files=["lamp.md", "ferry.csv"])
    del given["before"]
    data = read_data(written(tmp_path / "data", given))
    assert data.tasks[0]["before"] == []
    assert list(data.files_of(data.tasks[0])) == ["lamp.md", "ferry.csv"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (task("t", files=["gone.md"]), "tasks.jsonl:1: there is no document 'gone.md'"),
        (task("t", checks=[{"type": "rhymes"}]), "tasks.jsonl:1: the check 'rhymes' is not known"),
        (task("t", checks=[]), "it has no checks"),
        ({"id": "t"}, "the task has no 'kind'"),
    ],
)
def test_data_of_another_form_is_refused(tmp_path: Path, row: Mapping[str, Any], why: str) -> None:
    """The error names the line and its fault."""
    with pytest.raises(DataError, match=why):
        read_data(written(tmp_path / "data", row))


def test_data_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As is an id that is there twice, and a file without tasks."""
    for rows, why in (((task("t"), task("t")), "twice"), ((), "no tasks")):
        with pytest.raises(DataError, match=why):
            read_data(written(tmp_path / why, *rows))
    with pytest.raises(SystemExit):
        tasks.main(["--data", str(tmp_path / "nowhere")])
    assert "name a folder with tasks.jsonl" in capsys.readouterr().err


def test_a_share_is_equal_for_kinds_and_languages() -> None:
    """Whatever the order of the file; a larger share has the smaller one in it, and 0 takes all."""
    many = [task(f"{kind}-{language}-{number}", kind, language)
            for kind, count in (("lookup", 20), ("code", 4), ("folder", 9)) for language in ("en", "de", "zh")
            for number in range(count)]  # fmt: skip
    picked = pick(many, 18)
    assert Counter(each["kind"] for each in picked) == {"lookup": 6, "code": 6, "folder": 6}
    assert set(Counter((each["kind"], each["language"]) for each in picked).values()) == {2}
    assert picked == pick(many[::-1], 18) == pick(many, 30)[:18]
    assert sorted(each["id"] for each in pick(many, 0)) == sorted(each["id"] for each in many)


def test_lines_outlive_a_process_that_was_killed(tmp_path: Path) -> None:
    """What was cut off is passed over, and the next line does not hang on it."""
    path = tmp_path / "cache" / "kept.jsonl"
    KeptLines(path).add("a", {"text": "one"})
    with path.open("a", encoding="utf-8") as file:
        file.write('{"key": "b", "te')
    again = KeptLines(path)
    assert again.rows == {"a": {"text": "one"}}
    again.add("c", {"text": "three"})
    assert KeptLines(path).rows == {"a": {"text": "one"}, "c": {"text": "three"}}


def bare_over(bridge: ScriptedBridge, path: Path, model: MeasuredModel = MODEL) -> BareModel:
    """Return the model's own arm over a scripted bridge whose texts have a token for every four bytes."""
    bridge.density = 0.25
    return BareModel(bridge, model, KeptLines(path))


async def test_the_model_itself_is_never_asked_again(tmp_path: Path) -> None:
    """Its answers are kept by model and request: in the next run too, and not those of another model."""
    bridge = ScriptedBridge(lambda request: "86 steps.")
    first = await bare_over(bridge, tmp_path / "bare").ask(FOLLOW_UP, DATA)
    assert (first.text, first.calls, len(bridge.history)) == ("86 steps.", 2, 2)
    assert await bare_over(bridge, tmp_path / "bare").ask(FOLLOW_UP, DATA) == first
    assert len(bridge.history) == 2
    await bare_over(bridge, tmp_path / "bare", replace(MODEL, digest="e" * 64)).ask(FOLLOW_UP, DATA)
    assert len(bridge.history) == 4


async def test_the_model_itself_gets_whole_files_and_later_turns_without_them(tmp_path: Path) -> None:
    """In one conversation, with the window and the answer's share of the missions."""
    bridge = ScriptedBridge(lambda request: "86 steps.")
    await bare_over(bridge, tmp_path / "bare").ask(FOLLOW_UP, DATA)
    request = bridge.history[-1]
    assert [each["role"] for each in request.messages] == ["user", "assistant", "user"]
    assert request.messages[0]["content"] == f"lamp.md:\n\n{DOCUMENTS['lamp.md']}\n\nWhat is carried up?"
    assert request.messages[2]["content"] == FOLLOW_UP["question"]
    assert (request.options["num_ctx"], request.options["num_predict"]) == (4096, 1024)


async def test_files_that_do_not_fit_are_left_out_whole_and_named(tmp_path: Path) -> None:
    """In the order given; all documents are given for a folder, and one that is longer than the window never fits."""
    long = {"long.md": "word " * 3_000, **DOCUMENTS, "other.md": "word " * 2_000, "last.md": "end"}
    bridge = ScriptedBridge(lambda request: "86 steps.")
    bare = bare_over(bridge, tmp_path / "bare")
    assert await bare.fit(long) == ["lamp.md", "ferry.csv", "other.md", "last.md"]
    await bare.ask(IN_FOLDER, TaskData((), long))
    said = bridge.history[-1].messages[0]["content"]
    assert said.startswith("lamp.md:\n\n")
    assert "not shown here: long.md.\n\nHow many" in said
    assert said == bare_text({name: long[name] for name in await bare.fit(long)}, long, IN_FOLDER["question"])


async def test_the_last_file_goes_where_the_daemon_says_that_all_are_too_long(tmp_path: Path) -> None:
    """Until nothing is left; then there is no answer."""

    def respond(request: ChatRequest) -> str | BatosError:
        return ContextOverflow(None, None) if "ferry.csv:" in request.messages[0]["content"] else "86"

    both = task("t", files=["lamp.md", "ferry.csv"])
    found = await bare_over(ScriptedBridge(respond), tmp_path / "bare").ask(both, DATA)
    assert (found.text, found.failed) == ("86", "")
    never = ScriptedBridge(lambda request: ContextOverflow(None, None))
    assert (await bare_over(never, tmp_path / "other").ask(both, DATA)).failed == ContextOverflow.code


async def test_a_loop_of_the_model_itself_is_its_answer(tmp_path: Path) -> None:
    """As far as it was streamed: a person would have read it."""
    text = "The lamp is lit. " * 400
    async with Emulator(Options(endless=True)).serving() as url, Bridge(url) as bridge:
        _ = [each async for each in bridge.pull(MODEL.name)]
        found = await BareModel(bridge, MODEL, KeptLines(tmp_path / "bare")).ask(task("t", question=text), DATA)
    assert (found.failed, bool(found.text.strip())) == ("", True)


async def test_a_daemon_that_is_gone_is_no_wrong_answer(tmp_path: Path) -> None:
    """The run ends, so that nothing of it is kept as an answer."""
    bridge = ScriptedBridge(lambda request: OllamaUnreachable("gone"))
    with pytest.raises(OllamaUnreachable):
        await bare_over(bridge, tmp_path / "bare").ask(task("t"), DATA)


async def test_missions_are_asked_as_people_ask(tmp_path: Path) -> None:
    """Files go with the first turn of a conversation; a folder is remembered, and none of its answers is."""
    async with Emulator(Options()).serving() as url:
        async with opened_home(url, 8192, {"profile": "small"}) as uvm:
            home = MissionHome(uvm, DATA, 900.0, frozenset())
            found = await home.ask(FOLLOW_UP, "reflex")
            brief = uvm.readings.mission(found.mission)["brief"]
            assert (found.failed, found.calls, found.faulty is None) == ("", 2, False)
            assert (brief["text"], brief["policy"]["memory"]) == (FOLLOW_UP["question"], NO_MEMORY)
            assert [each["name"] for each in brief["attachments"]] == ["lamp.md"]
            (call,) = uvm.readings.prompts(found.mission)
            assert call["options"] is not None
            assert call["options"]["num_ctx"] == 8192
            assert "86 steps from the yard" in prompt_of(uvm, found.mission)
            assert FOLLOW_UP["before"][0] in prompt_of(uvm, found.mission)
        async with opened_home(url, 0, {"profile": "small"}) as uvm:
            await remember_folder(uvm, DOCUMENTS, vectors=False)
            kept = remembered_names(uvm)
            home = MissionHome(uvm, DATA, 900.0, kept)
            shown = await look_at_prompt(home, IN_FOLDER, bare_over(ScriptedBridge(), tmp_path / "bare"))
            assert (len(kept), remembered_names(uvm)) == (2, kept)
            assert (shown.fits, shown.prompt_content, shown.document_content) == (True, 1.0, 1.0)
            assert shown.shown > 0.5


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], str]:
    """Run the bench; return its document and what it told meanwhile."""
    tasks.main(arguments)
    out, err = capsys.readouterr()
    document: dict[str, Any] = json.loads(out.splitlines()[-1])
    return document, err


def asked_in(told: str) -> list[str]:
    """Return the tasks that were asked, each by its arm, place, kind and id."""
    return [line.split(":")[0] for line in told.splitlines() if line.startswith(("bare ", "reflex "))]


def test_a_run_goes_on_where_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer is not asked for again, unless the version of the code is another, or nothing is to be resumed.

    Only the kinds that are named are asked.
    """
    data = written(tmp_path / "data", *DATA.tasks)
    given = ["--data", str(data), "--arms", "bare,reflex", "--results", str(tmp_path / "results.jsonl")]
    whole, told = run(capsys, *given)
    assert len(asked_in(told)) == 6
    path = tmp_path / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:40], encoding="utf-8")
    resumed, told = run(capsys, *given, "--resume")
    assert asked_in(told) == ["reflex 1 of 1 folder t-3"]
    assert resumed["arms"] == whole["arms"]
    bare = [*given[:-3], "bare", *given[-2:]]
    assert len(asked_in(run(capsys, *bare, "--resume", "--label", "other")[1])) == 3
    assert len(asked_in(run(capsys, *bare)[1])) == 3
    only = asked_in(run(capsys, *bare, "--kinds", "lookup,follow_up")[1])
    assert {each.split()[-2] for each in only} == {"lookup", "follow_up"}


def test_tasks_that_run_code_are_asked_only_where_that_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The document says how many were left out; prompts run nothing."""
    check = {"type": "code_runs", "function": "f", "cases": [[[], 1]]}
    data = written(tmp_path / "data", task("t-1"), task("t-4", "code", checks=[check]))
    given = ["--data", str(data), "--arms", "bare"]
    found, _ = run(capsys, *given)
    assert (found["n"], found["code_left_out"]) == (1, 1)
    found, _ = run(capsys, *given, "--run-code")
    assert (found["arms"]["bare"]["by_kind"]["code"]["right"], found["code_left_out"]) == (0.0, 0)
    found, _ = run(capsys, *given, "--prompts")
    assert (found["n"], found["by_kind"]["code"]["prompt_content"]) == (2, None)


def test_prompts_are_told_by_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The document has the shares of each kind, and a goal for each that has content."""
    data = written(tmp_path / "data", *DATA.tasks)
    found, _ = run(capsys, "--data", str(data), "--prompts", "--form", "full", "--window", "8192")
    assert (found["window"], found["by_kind"].keys()) == (8192, {"lookup", "follow_up", "folder"})
    assert found["by_kind"]["lookup"] == {
        "n": 1, "shown": 1.0, "prompt_content": 1.0, "document_content": 1.0, "kept": 1.0,
    }  # fmt: skip
    assert [each["ok"] for each in found["goals"]] == [True] * 3


@pytest.mark.parametrize("arguments", [["--arms", "bare,magic"], ["--window", "1000"]])
def test_flags_that_mean_nothing_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With the values that there are."""
    with pytest.raises(SystemExit):
        tasks.main(arguments)
    assert "one of bare, reflex" in (err := capsys.readouterr().err) or "multiple of 256" in err


def test_shown_is_the_share_of_sentences_that_stand_in_the_prompt() -> None:
    """Whatever the blanks between words; a line is looked at by itself."""
    assert shown_share(["One two.\nThree."], "Text:\nOne\n two. Four.") == round(8 / 14, 4)
    assert (shown_share(["a,b\n1,2"], "x"), shown_share([], "x"), shown_share(["a,b\n1,2"], "a,b\n1,2")) == (0, 0, 1)


def test_words_of_the_question_make_up_for_no_loss() -> None:
    """The share that prompts keep is taken task by task; files that do not fit have no goal."""
    rows = [
        FoundPrompt("compare", True, 1.0, 0.5, 0.0),
        FoundPrompt("compare", True, 0.5, 0.5, 1.0),
        FoundPrompt("compare", False, 0.1, 0.1, 1.0),
        FoundPrompt("folder", True, 0.1, 0.9, 1.0),
        FoundPrompt("extract_json", True, 1.0, None, None),
    ]
    found = prompt_figures(rows)
    assert (found["by_kind"]["compare"]["prompt_content"], found["by_kind"]["compare"]["kept"]) == (0.5, 0.5)
    assert (found["by_kind"]["extract_json"]["kept"], found["beyond"]["compare"]["n"]) == (None, 1)
    goals = prompt_goals(found["by_kind"])
    assert [(each.name, each.ok) for each in goals] == [
        ("kept by prompts: compare", False), ("kept by prompts: folder", True),
    ]  # fmt: skip


def answered(kind: str, text: str, *, faulty: bool | None, **also: Any) -> ScoredAnswer:
    """Return a scored answer to a task of a kind."""
    asked = task("t", kind)
    return ScoredAnswer(asked, TaskAnswer(text, 100, 2.0, 1, faulty=faulty, **also), score(asked, text))


def test_alarms_are_counted_on_right_answers_and_on_wrong_values() -> None:
    """What the gate never looked at counts for neither, nor does a wrong answer that misses no value."""
    rows = [
        answered("lookup", "86 steps", faulty=True),
        answered("lookup", "86 steps", faulty=False),
        answered("lookup", "96 steps", faulty=True),
        answered("compare", "86 " + "word " * 40, faulty=False),
        answered("compare", "", faulty=None, failed="overdue"),
    ]
    found = figures(rows)
    assert (found["alarms_on_right"], found["alarms_on_wrong"], found["failed"]) == (0.5, 1.0, 1)
    assert (found["right"], found["by_group"]["facts"]["content"], found["tokens"]) == (0.4, 0.6667, 100)
    assert (found["by_kind"]["lookup"]["n"], found["by_language"]["en"]["n"]) == (3, 5)
    assert figures([])["alarms_on_right"] is None


def values_of(bare: str, reflex: str, parameters: int, windows: float = 1.0) -> dict[str, Any]:
    """Return the document of two arms with one answer in each group and in the folder."""
    arms = {
        name: figures([answered(kind, text, faulty=False) for kind in ("lookup", "aggregate", "code")])
        for name, text in (("bare", bare), ("reflex", reflex))
    }
    folder = {
        name: figures([answered("folder", text, faulty=False)]) for name, text in (("bare", bare), ("reflex", reflex))
    }
    return {"arms": arms, "folder": folder, "parameters": parameters, "windows": windows}


def test_the_goals_are_those_of_the_models_size() -> None:
    """A capable model is to gain, a small one to lose nothing; a goal is never beyond all."""
    goals = {each.name: each for each in goals_of(values_of("none", "86", 1_500_000_000))}
    assert (goals["right: reflex"].goal, goals["content of reckoning: reflex"].goal) == (0.08, 0.15)
    assert goals["content of facts: reflex"].goal == -0.03
    assert goals["missions that failed: reflex"].ok
    small = {each.name: each for each in goals_of(values_of("86", "none", 500_000_000))}
    assert "right: reflex" not in small
    assert (small["content of reckoning: reflex"].goal, small["content of reckoning: reflex"].ok) == (0.95, False)
    assert {each.name: each for each in goals_of(values_of("86", "86", 10**10))}["right: reflex"].goal == 1.0


def test_a_folder_is_to_gain_where_its_notes_are_long() -> None:
    """Where they fit, little may be lost."""
    fitting = {each.name: each.goal for each in goals_of(values_of("86", "86", 10**10))}
    long = {each.name: each.goal for each in goals_of(values_of("none", "86", 10**10, windows=3.2))}
    assert (fitting["right of folders: reflex"], long["right of folders: reflex"]) == (0.98, 0.15)
