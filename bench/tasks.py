"""Answers to tasks over people's own files, by the bare model and by missions of the same model.

The data is a folder with `tasks.jsonl` and `documents/` in the form of the corpus' tasks, whose README describes the
checks. `right` is the share of the answers for which all checks hold, `score` the mean share of the checks, `content`
that of the checks that an empty phrase cannot pass. `arms` has the tasks with files, `folder` those for which all
documents were remembered, once for each arm, and none is attached. `tokens` and `seconds` are those of a task in the
mean, over all turns of its conversation. `alarms_on_right` is the share of right answers in which the gate found
faults, `alarms_on_wrong` that of the answers that miss a value. `windows` is how many windows all documents fill.

The arm `bare` is the model itself: as many whole files as fit the window beside the answer's share, in the order given,
then the names of those that are missing, then the question. Its answers are kept in the user's cache by the digest of
model and request, and are not asked again.

Each finished answer is a line of --results, under the model's digest, the data, the settings and --label, which names
the version of the code. --resume takes the lines that are there and asks for the rest.

Tasks that run the code of an answer are only asked with --run-code: the code runs in a child with limits on time,
memory and written files, but in no sandbox.

--prompts asks nothing of a model's mind: it prints, by kind, the share of the documents' text that stands in the first
prompt of a reflex (`shown`), and the `content` that the prompt's own text gets, beside that of the documents. `beyond`
has the tasks whose files do not fit the window.

    python bench/tasks.py [--data DIR] [--gguf FILE|smollm2 | --url URL] [--arms A,B] [--n N] [--kinds K,L]
                          [--window TOKENS] [--form auto|full|lean] [--vectors] [--run-code] [--resume]
                          [--label TEXT] [--results FILE] [--prompts] [--deadline S] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from batos.inference.ollama.bridge import Bridge
from batos.inference.ollama.deadline import Deadlines
from batos.protocol.errors import OllamaUnreachable
from batos.version import __version__
from decisions import FORMS
from report import report
from tasks_arms_side import (
    ARMS,
    BARE,
    BareModel,
    MeasuredModel,
    MissionHome,
    TaskAnswer,
    look_up_model,
    opened_home,
    remember_folder,
    remembered_names,
)
from tasks_data_side import FOLDER, DataError, KeptLines, TaskData, digest_of, pick, read_data, user_cache
from tasks_figures_side import ScoredAnswer, figures, goals_of
from tasks_prompts_side import FoundPrompt, look_at_prompt, prompt_figures, prompt_goals
from tasks_side import Task, runs_code, score
from voice_side import BESIDE, daemon

#: Asks a task.
Ask: TypeAlias = Callable[[Task], Awaitable[TaskAnswer]]
#: Tasks of a quick run.
QUICK = 4


@dataclass(frozen=True, slots=True)
class Run:
    """A run: its arguments, tasks and daemon; `settings` are those of its homes."""

    given: argparse.Namespace
    data: TaskData
    tasks: Sequence[Task]
    url: str
    bare: BareModel
    settings: Mapping[str, Any]

    @property
    def model(self) -> MeasuredModel:
        """Return the model that answers."""
        return self.bare.model

    def key(self, arm: str, task: Task) -> str:
        """Return the key of an answer: all that it depends on."""
        documents = self.data.documents if task["kind"] == FOLDER else self.data.files_of(task)
        about = [self.model.digest, self.model.window, dict(self.settings), self.given.vectors, self.given.label]
        return digest_of([arm, dict(task), dict(documents), *about, list(asdict(TaskAnswer("")))])

    @asynccontextmanager
    async def home(self, *, in_folder: bool) -> AsyncIterator[MissionHome]:
        """Open a fresh home for missions; all documents are remembered in that of a folder's."""
        async with opened_home(self.url, self.model.window, self.settings) as uvm:
            if in_folder:
                await remember_folder(uvm, self.data.documents, vectors=self.given.vectors)
            yield MissionHome(uvm, self.data, self.given.deadline, remembered_names(uvm))

    @asynccontextmanager
    async def asking(self, arm: str, *, in_folder: bool) -> AsyncIterator[Ask]:
        """Yield what asks one task after another of an arm, on a fresh home where the arm needs one."""
        if arm == BARE:
            yield lambda task: self.bare.ask(task, self.data)
            return
        async with self.home(in_folder=in_folder) as home:
            yield lambda task: home.ask(task, arm)

    def in_places(self) -> list[tuple[bool, list[Task]]]:
        """Return the tasks with files, and those over a folder, which is told by True."""
        places = {each: [task for task in self.tasks if (task["kind"] == FOLDER) is each] for each in (False, True)}
        return [(in_folder, tasks) for in_folder, tasks in places.items() if tasks]


async def measure_arms(run: Run, results: KeptLines) -> dict[str, Any]:
    """Ask all tasks of each arm, but for those whose answer is kept, and return the figures."""
    arms = run.given.arms.split(",")
    rows: dict[bool, dict[str, list[ScoredAnswer]]] = {place: {arm: [] for arm in arms} for place in (False, True)}
    for arm in arms:
        for in_folder, tasks in run.in_places():
            answers = await _answers(run, arm, tasks, results)
            rows[in_folder][arm] = [await _score(run, *each) for each in answers]
    attached, folder = ({arm: figures(each) for arm, each in rows[place].items()} for place in (False, True))
    return {"arms": attached, "folder": folder}


async def _answers(run: Run, arm: str, tasks: Sequence[Task], results: KeptLines) -> list[tuple[Task, TaskAnswer]]:
    """Return the answers of an arm, those that are kept and those that are asked for now."""
    keys = {each["id"]: run.key(arm, each) for each in tasks}
    waiting = [each for each in tasks if keys[each["id"]] not in results.rows]
    if waiting:
        async with run.asking(arm, in_folder=waiting[0]["kind"] == FOLDER) as ask:
            for number, task in enumerate(waiting, start=1):
                found = await ask(task)
                if found.failed == OllamaUnreachable.code:
                    raise OllamaUnreachable(f"the daemon is gone: {task['id']} was not answered")
                about = {"arm": arm, "id": task["id"], "model": run.model.digest, "label": run.given.label}
                results.add(keys[task["id"]], {**about, "answer": asdict(found)})
                _tell(f"{arm} {number} of {len(waiting)}", await _score(run, task, found))
    return [(each, TaskAnswer(**results.rows[keys[each["id"]]]["answer"])) for each in tasks]


async def _score(run: Run, task: Task, found: TaskAnswer) -> ScoredAnswer:
    scored = await asyncio.to_thread(score, task, found.text, run_code=run.given.run_code)
    return ScoredAnswer(task, found, scored)


def _tell(place: str, row: ScoredAnswer) -> None:
    mark = row.answer.failed or ("right" if row.scored.right else f"content {row.scored.content:.2f}")
    shown = " ".join(row.answer.text.split())[:100]
    named = f"{place} {row.task['kind']} {row.task['id']}"
    print(f"{named}: {mark}, {row.answer.seconds:.1f} s: {shown}", file=sys.stderr, flush=True)


async def measure_prompts(run: Run) -> dict[str, Any]:
    """Ask all tasks by reflex, and return what their prompts held."""
    found: list[FoundPrompt] = []
    for in_folder, tasks in run.in_places():
        async with run.home(in_folder=in_folder) as home:
            for task in tasks:
                found.append(await look_at_prompt(home, task, run.bare))
                print(f"{task['id']}: {found[-1]}", file=sys.stderr, flush=True)
    return prompt_figures(found)


async def measure(given: argparse.Namespace, data: TaskData, folder: Path) -> dict[str, Any]:
    """Ask what was asked for; `folder` is where answers are kept."""
    picked = pick(data.tasks, QUICK if given.quick else given.n)
    if given.kinds:
        picked = [each for each in picked if each["kind"] in given.kinds.split(",")]
    tasks = [each for each in picked if given.run_code or given.prompts or not runs_code(each)]
    profile = "default" if given.gguf or given.url else "small"
    settings = {"profile": profile, **FORMS[given.form]}
    results = KeptLines(given.results or folder / "tasks-results.jsonl")
    if not given.resume:
        results.rows.clear()
    async with (
        daemon(given) as url,
        Bridge(url, deadlines=Deadlines(first_token=given.deadline)) as bridge,
    ):
        async with opened_home(url, given.window, settings) as uvm:
            model = await look_up_model(uvm, bridge)
        bare = BareModel(bridge, model, KeptLines(folder / "tasks-bare.jsonl"))
        sizes = [await bare.count(each) for each in data.documents.values()]  # at once: another window is loaded for it
        run = Run(given, data, tasks, url, bare, settings)
        found = await (measure_prompts(run) if given.prompts else measure_arms(run, results))
    return {
        "n": len(tasks),
        "code_left_out": len(picked) - len(tasks),
        "form": given.form,
        "parameters": model.parameters,
        "window": model.window,
        "windows": round(sum(sizes) / model.window, 2),
        **found,
    }


def parser() -> argparse.ArgumentParser:
    """Return the parser of the flags."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    corpus = Path(os.environ.get("BATOS_CORPUS", BESIDE))
    found.add_argument("--data", type=Path, metavar="DIR", default=corpus / "tasks")
    model = found.add_mutually_exclusive_group()
    model.add_argument("--url", metavar="URL", help="the Ollama that answers")
    model.add_argument("--gguf", metavar="FILE|smollm2", help="the real model of an emulator that answers")
    found.add_argument("--arms", default=",".join(ARMS), metavar="A,B", help=f"of {', '.join(ARMS)}")
    found.add_argument("--n", type=int, default=0, metavar="N", help="an equal share of each kind and language; 0: all")
    found.add_argument("--kinds", default="", metavar="K,L", help="of these tasks those of some kinds alone")
    found.add_argument("--window", type=int, default=0, metavar="TOKENS", help="of all arms; 0: that of the codex")
    found.add_argument("--form", choices=sorted(FORMS), default="auto", help="the form of the prompts")
    found.add_argument("--vectors", action="store_true", help="the daemon embeds what is remembered")
    found.add_argument("--run-code", action="store_true", help="ask tasks whose answer is code, and run that")
    found.add_argument("--resume", action="store_true", help="take the answers that --results has already")
    found.add_argument("--label", default=__version__, metavar="TEXT", help="the version of the code, for --resume")
    found.add_argument("--results", type=Path, metavar="FILE", help="default: in the user's cache")
    found.add_argument("--prompts", action="store_true", help="what prompts hold of the documents")
    found.add_argument("--deadline", type=float, default=900.0, metavar="S", help="seconds that a mission may take")
    found.add_argument("--quick", action="store_true", help="a few tasks: shape, not figures")
    found.add_argument("--json", type=Path, default=None, metavar="FILE")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    flags = parser()
    given = flags.parse_args(arguments)
    unknown = set(given.arms.split(",")) - set(ARMS)
    if unknown:
        flags.error(f"there is no arm {', '.join(sorted(unknown))}: one of {', '.join(ARMS)}")
    if given.window % 256:
        flags.error(f"a window is a multiple of 256, not {given.window}")
    try:
        data = read_data(given.data)
    except DataError as error:
        flags.error(str(error))
    with ExitStack() as stack:
        # Invented words are not kept: nobody waits for them a second time.
        is_real = given.gguf or given.url
        folder = user_cache() if is_real else Path(stack.enter_context(TemporaryDirectory(prefix="batos-bench-")))
        try:
            values = asyncio.run(measure(given, data, folder))
        except OllamaUnreachable as error:
            sys.exit(f"{error}. {error.remedy} Then go on with --resume: what was answered is kept.")
    goals = prompt_goals(values["by_kind"]) if given.prompts else goals_of(values)
    report(values, goals, given.json)


if __name__ == "__main__":
    main()
