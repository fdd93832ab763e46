"""Asks tasks: of the model itself with whole files before the question, and of missions by the product's own path."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from batos.inference.ollama.bridge import Answer, Bridge, ChatRequest
from batos.minds.prompt import MARGIN
from batos.protocol.brief import DEFAULT_SCOPE, NO_MEMORY, as_file
from batos.protocol.errors import BatosError, ContextOverflow, OllamaUnreachable, Runaway
from batos.protocol.mission_documents import MissionDocument
from batos.server.dispatch.sent_files import OwnedPlace, SentFiles
from batos.uvm import UVM
from batos.verbs.memory_verbs import RememberedFile
from quality import run_until
from tasks_data_side import FOLDER, KeptLines, TaskData, digest_of
from tasks_side import Task
from voice_side import uvm_over

BARE: Final = "bare"
#: The arms, each with the effort of its missions.
ARMS: Final = (BARE, "reflex", "auto", "cycle")
PERSONA: Final = "BABS"
MISSING: Final = "These files do not fit and are not shown here: {}."
#: The least window of a daemon, and a text of which a prompt has hardly more than the template's own tokens.
_LEAST: Final = 256
_NOTHING: Final = "."
#: Tokens a byte where a daemon does not say how long a prompt is.
_GUESSED: Final = 0.3
#: Documents that a home is asked for at most.
_MANY: Final = 10**6


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """An answer with what it cost in all turns; `faulty` says if the gate found faults, None where it never looked.

    `mission` is the last one that was asked.
    """

    text: str
    tokens: int = 0
    seconds: float = 0.0
    calls: int = 0
    failed: str = ""
    faulty: bool | None = None
    mission: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """The model that is measured, with its window and the most tokens of an answer."""

    name: str
    digest: str
    parameters: int
    window: int
    answer: int

    @property
    def room(self) -> int:
        """Return the tokens that a prompt may have."""
        return self.window - self.answer - MARGIN


@asynccontextmanager
async def opened_home(url: str, window: int, settings: Mapping[str, Any]) -> AsyncIterator[UVM]:
    """Open a UVM on a fresh home whose personas have this window; with 0 that of their codex."""
    async with uvm_over(url, **settings) as uvm:
        if window and any(each["num_ctx"] != window for each in _options(uvm)):
            await asyncio.to_thread(_write_window, uvm.settings.home / "codex", window)
            await uvm.readiness.genesis()
        yield uvm


def _options(uvm: UVM) -> list[dict[str, Any]]:
    codex = uvm.reconciler.codex()
    return [codex.options_for(name, uvm.settings.profile) for name in codex.personas]


def _write_window(folder: Path, window: int) -> None:
    for path in folder.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"num_ctx = \d+", f"num_ctx = {window}", text), encoding="utf-8")


async def look_up_model(uvm: UVM, bridge: Bridge) -> MeasuredModel:
    """Return the base model of the personas as the daemon has it, with the options of their codex."""
    codex, profile = uvm.reconciler.codex(), uvm.settings.profile
    name, options = codex.model_for(PERSONA, profile), codex.options_for(PERSONA, profile)
    digest = next((row.digest for row in await bridge.list() if row.name == name), name)
    window = int(options["num_ctx"])
    card = await bridge.show(name)
    return MeasuredModel(
        name, digest, card.parameter_count, window, min(int(options["num_predict"]), window // 2)
    )  # fmt: skip


class Counting(Protocol):
    """A bridge, as far as the model's own arm needs it."""

    async def think(self, request: ChatRequest, on_token: Callable[[str], None] | None = None) -> Answer:
        """Return the answer to a request; tell each piece of it as it comes."""
        ...

    async def count(self, request: ChatRequest) -> int:
        """Return the tokens of a prompt."""
        ...


@dataclass(frozen=True, slots=True)
class BareModel:
    """The model itself. Its answers and counts are kept by the digest of model and request, and never asked again."""

    bridge: Counting
    model: MeasuredModel
    kept: KeptLines

    async def ask(self, task: Task, data: TaskData) -> TaskAnswer:
        """Ask a task with as many of its files as fit, all of the documents for a folder; turn by turn."""
        files = dict(data.documents) if task["kind"] == FOLDER else data.files_of(task)
        shown = await self.fit(files)
        while True:
            try:
                return await self._converse(task, files, shown)
            except ContextOverflow as error:  # the counts of its parts were too small, or its turns are long
                if not shown:
                    return TaskAnswer("", failed=error.code)
                shown = shown[:-1]
            except OllamaUnreachable:
                raise
            except BatosError as error:
                return TaskAnswer("", failed=error.code)

    async def fit(self, files: Mapping[str, str]) -> list[str]:
        """Return the names of the files that fit beside the question, in the order given, each whole."""
        beside = await self.count(_NOTHING)
        left = self.model.room - beside
        shown = []
        for name, text in files.items():
            tokens = await self.count(text) - beside
            if tokens <= left:
                shown.append(name)
                left -= tokens
        return shown

    async def count(self, text: str) -> int:
        """Return the tokens of a prompt with a text alone.

        The least window is asked for: the daemon refuses what is longer without reading it, and says how long it is.
        """
        key = digest_of(["count", self.model.digest, text])
        if key not in self.kept.rows:
            message = {"role": "user", "content": text}
            try:
                tokens = await self.bridge.count(ChatRequest(self.model.name, (message,), {"num_ctx": _LEAST}))
            except ContextOverflow as error:
                tokens = error.prompt_tokens or int(_GUESSED * len(text.encode()))
            self.kept.add(key, {"tokens": tokens})
        return int(self.kept.rows[key]["tokens"])

    async def _converse(self, task: Task, files: Mapping[str, str], shown: Sequence[str]) -> TaskAnswer:
        """Put all turns of a task. Raises: BatosError: the model gave no answer to one."""
        messages: list[dict[str, str]] = []
        turns = [*task["before"], task["question"]]
        rows = []
        for number, text in enumerate(turns):
            said = text if number else bare_text({name: files[name] for name in shown}, files, text)
            messages.append({"role": "user", "content": said})
            rows.append(await self._answer(messages))
            messages.append({"role": "assistant", "content": rows[-1]["text"]})
        tokens, seconds = sum(each["tokens"] for each in rows), sum(each["seconds"] for each in rows)
        return TaskAnswer(rows[-1]["text"], tokens, seconds, len(rows))

    async def _answer(self, messages: Sequence[dict[str, str]]) -> dict[str, Any]:
        """Return the model's answer with its cost, as it was kept or as it comes."""
        options = {"num_ctx": self.model.window, "num_predict": self.model.answer, "temperature": 0, "seed": 1}
        key = digest_of([self.model.digest, list(messages), options])
        if key not in self.kept.rows:
            pieces: list[str] = []
            began = time.perf_counter()
            try:
                found = await self.bridge.think(ChatRequest(self.model.name, tuple(messages), options), pieces.append)
                text, tokens = found.text, found.prompt_tokens + found.answer_tokens
            except Runaway as error:  # a person would read it: it counts as the answer, up to where it was stopped
                sent = sum(len(each["content"].encode()) for each in messages)
                text, tokens = "".join(pieces), error.wasted + int(_GUESSED * sent)
            seconds = round(time.perf_counter() - began, 3)
            self.kept.add(key, {"text": text, "tokens": tokens, "seconds": seconds})
        return self.kept.rows[key]


def bare_text(shown: Mapping[str, str], files: Mapping[str, str], question: str) -> str:
    """Return what the model itself is given: whole files, the names of those that are missing, and the question."""
    blocks = [f"{name}:\n\n{text.strip()}" for name, text in shown.items()]
    missing = ", ".join(name for name in files if name not in shown)
    return "\n\n".join([*blocks, *([MISSING.format(missing)] if missing else []), question])


@dataclass(frozen=True, slots=True)
class MissionHome:
    """A home in which missions are asked. `kept` are the documents of a folder that was remembered there."""

    uvm: UVM
    data: TaskData
    deadline: float
    kept: frozenset[str]

    async def ask(self, task: Task, effort: str) -> TaskAnswer:
        """Ask a task, turn by turn in one conversation if it has several; the answer is that of the last one.

        The files go with the first turn. For a folder none goes, and afterwards nothing of the mission is remembered,
        so that each question is asked of the same documents.
        """
        is_folder = task["kind"] == FOLDER
        texts = {} if is_folder else self.data.files_of(task)
        files = [as_file(name, text.encode()) for name, text in texts.items()]
        brief = {"effort": effort, **({} if is_folder else {"policy": {"memory": NO_MEMORY}})}
        if task["before"]:
            brief["conversation"] = "new"
        tokens, calls, began = 0, 0, time.perf_counter()
        for number, text in enumerate((*task["before"], task["question"])):
            mission = await self.uvm.missions.submit({**brief, "text": text}, [] if number else files)
            shown, failed = await self._run(mission)
            tokens += shown["cost"]["prompt_tokens"] + shown["cost"]["answer_tokens"]
            calls += shown["cost"]["calls"]
            failed = failed or ("" if shown["status"] == "done" else str(shown["status"]))
            if failed:
                break
            brief = {**brief, **({"conversation": shown["brief"]["conversation"]} if task["before"] else {})}
        seconds = round(time.perf_counter() - began, 3)
        if is_folder:
            await self._forget_exchange()
        gate = (shown.get("provenance") or {}).get("gate")
        faulty = None if failed or gate is None else not gate["ok"]
        answer = "" if failed else str(shown.get("answer") or "")
        return TaskAnswer(answer, tokens, seconds, calls, failed, faulty, mission)

    async def _run(self, mission: str) -> tuple[MissionDocument, str]:
        """Run a mission; return its report and the code of its failure, "" if it is done."""
        try:
            return await run_until(self.uvm, mission, self.deadline)
        except Exception as error:  # a fault of ours is a failed mission, and the other tasks are still asked
            return self.uvm.readings.mission(mission), type(error).__name__

    async def _forget_exchange(self) -> None:
        """Forget what missions left behind beside the folder's documents."""
        await self.uvm.mission_memory.write()
        if left := sorted(remembered_names(self.uvm) - self.kept):
            await self.uvm.document_store.forget(left, self.uvm.settings.asker)


def remembered_names(uvm: UVM) -> frozenset[str]:
    """Return the names of all that is remembered."""
    return frozenset(each["document"] for each in uvm.readings.memories(_MANY)["memories"])


async def remember_folder(uvm: UVM, documents: Mapping[str, str], *, vectors: bool) -> None:
    """Remember all documents as the verb `remember` does, with their vectors if wanted."""
    files = [as_file(name, text.encode()) for name, text in documents.items()]
    held = {each.ref.sha256: each.data for each in files}

    async def content(ref: Any, _sender: str | None) -> bytes:
        return held[ref.sha256]

    async def forget(_digests: object, _sender: str) -> None:
        return None

    asked = [RememberedFile(**each.ref.model_dump(), source=each.ref.name) for each in files]
    owned, limit = OwnedPlace(uvm.settings.asker, DEFAULT_SCOPE), uvm.settings.attachment_bytes
    sent = await SentFiles(content, forget).texts(asked, None, owned, limit)
    await uvm.document_store.remember(sent.texts)
    if vectors:
        await uvm.backfill.wait(lambda state: None)
