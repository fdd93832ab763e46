"""The trace of a mission while it thinks: methods, objects, writes, and what was decided without being asked.

A note is written with the mission's next call, at the latest: what was paid for is never there without the choices that
led to it. docs/running.md lists what is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from batos.agency.records.api_records import ApiReplyPayload
from batos.agency.records.effect_records import EffectData
from batos.agency.toolbox import JoinedTools, ToolResult
from batos.inference.cost import LEAST_RATIO
from batos.inference.journal import Journal
from batos.memory.evidence import Evidence, Passage
from batos.memory.exchanges import IndexedDocument
from batos.objects.method import Method
from batos.protocol.evidence_documents import (
    FocusDocument,
    FocusSpan,
    RuleDocument,
    ToolUseDocument,
    WantedCallDocument,
    WrittenSlot,
)
from batos.protocol.method_documents import UsePayload
from batos.protocol.mission_documents import LearntDocument, RanDocument, WithdrawnDocument
from batos.reckoning.reckonings import Reckoning

Note: TypeAlias = Mapping[str, Any]
How: TypeAlias = Literal["method", "control", "interpreted"]

#: The fields of a note about a slot: which one, what answers it, and of which revision.
_SLOT: Final = "slot"
_HOW: Final = "answered_by"
_REVISION: Final = "revision"


class Choice(NamedTuple):
    """Says what answers messages to a slot in this mission; `revision` is 0 where no method was there."""

    how: How
    revision: int = 0


class MissionChoices:
    """Keeps a mission's choices: of its earlier attempts, of the missions that it retries, and those made now."""

    def __init__(self, journal: Journal, mission: str, retried: Sequence[str] = ()) -> None:
        """Read the notes of the mission and of `retried`, the missions that asked the same question, nearest first."""
        self._journal = journal
        self._mission = mission
        self._own: list[Note] = list(journal.notes(mission))
        others = [journal.notes(each) for each in retried]
        self._others: list[Note] = [note for notes in others for note in notes]
        self._choices = choices_in(self._own)
        self._retried: dict[str, Choice] = {}
        for notes in reversed(others):
            self._retried |= choices_in(notes)

    def notes(self) -> Iterator[Note]:
        """Yield every note, the mission's own before those of the ones that it retries; of each the oldest first."""
        yield from self._own
        yield from self._others

    def mine(self) -> tuple[Note, ...]:
        """Return the mission's own notes, oldest first."""
        return tuple(self._own)

    def own(self, name: str) -> Any:
        """Return what this mission's first note of that name says; None: it has none."""
        return next((note[name] for note in self._own if name in note), None)

    def note(self, **decided: object) -> None:
        """Note what was decided, each by its name; durable with the next call."""
        self._own.append(decided)
        self._journal.note(self._mission, decided)

    def choice(self, slot: str) -> Choice | None:
        """Return what this mission has chosen to answer a slot with; None: nothing yet."""
        return self._choices.get(slot)

    def earlier_choice(self, slot: str) -> Choice | None:
        """Return what the nearest of those chose that it retries."""
        return self._retried.get(slot)

    def choose(self, slot: str, choice: Choice) -> None:
        """Note what answers a slot from now on, unless it is what did before."""
        if self._choices.get(slot) != choice:
            self._choices[slot] = choice
            self.note(**{_SLOT: slot, _HOW: choice.how, _REVISION: choice.revision})


def choices_in(notes: Sequence[Note]) -> dict[str, Choice]:
    """Return the choices that one mission's notes tell of, by slot; the last of each stands."""
    found: dict[str, Choice] = {}
    for note in notes:
        if _SLOT in note:
            found[note[_SLOT]] = Choice(cast("How", note[_HOW]), int(note[_REVISION]))
    return found


@dataclass(frozen=True, slots=True)
class MethodUse:
    """A use of a slot that holds or may get a method: the ledger's entry once the mission has ended.

    `revision` is 0 for an intent that was interpreted because there is no method. `calls` and `tokens` (prompts and
    answers) are the inference that it used, whoever paid for it first. `seconds` is the time of Ollama and of the
    processor, without waiting.
    """

    holder: str
    selector: str
    revision: int
    outcome: Literal["ok", "fault"]
    is_control: bool
    seconds: float
    tokens: int
    calls: int

    def payload(self, gate_faults: int) -> UsePayload:
        """Return the contribution ("method", ...), with the number of faults that the gate found in the mission's
        answer.
        """
        return {
            "holder": self.holder,
            "selector": self.selector,
            "revision": self.revision,
            "outcome": self.outcome,
            "control": self.is_control,
            "seconds": round(self.seconds, 3),
            "tokens": self.tokens,
            "calls": self.calls,
            "gate_faults": gate_faults,
        }


class ToldAnswer(NamedTuple):
    """An answer that was made by rule before any call, and the rule."""

    why: str
    text: str


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """The find of a mission in its memory: something near, `perhaps` some that is not near enough, or nothing.

    The state is "" where nothing is remembered, or it was not looked.
    """

    state: Literal["", "nothing", "perhaps", "found"] = ""
    perhaps: tuple[Passage, ...] = ()


@dataclass(slots=True)
class Trace:
    """Everything that the minds of one mission add to while they think; all of them share one trace.

    Each list only grows, oldest entry first. `generated` and `learned` outlive an attempt.
    """

    #: Choices that this mission made without being asked, in earlier attempts too.
    decided: MissionChoices
    #: Tokens that a byte of prompt is taken to cost, by model.
    ratios: Mapping[str, float]
    #: Methods made for this mission while it ran, by the holder's reference and the selector; not in its snapshot.
    generated: dict[tuple[str, str], Method] = field(default_factory=dict)
    #: Methods made, waited for or tried, for provenance.
    learned: list[LearntDocument] = field(default_factory=list)
    #: (holder, selector) of every intent interpreted and every method run.
    behaviour: list[RanDocument] = field(default_factory=list)
    #: Tools that are declared with the thought's commit: {selector, intent, trust}.
    forged: list[dict[str, object]] = field(default_factory=list)
    #: Documents that methods gave to be remembered with the mission.
    indexed: list[IndexedDocument] = field(default_factory=list)
    #: Documents, by their ids, of which methods ask a person whether they may be forgotten.
    forgets: list[str] = field(default_factory=list)
    #: Effects on the world that are staged with the thought's commit: {grant, oid, operation, payload, fingerprint}.
    effects: list[EffectData] = field(default_factory=list)
    #: Replies of described APIs whose shape is new: one for each operation.
    api_replies: list[ApiReplyPayload] = field(default_factory=list)
    #: Every use of a method, and of an intent that may become one.
    uses: list[MethodUse] = field(default_factory=list)
    #: Writes of methods to objects that are not the mission's own: {oid, slot, had, former}.
    written: list[WrittenSlot] = field(default_factory=list)
    #: Slots of shared objects that methods read: (oid, slot).
    read: dict[tuple[str, str], None] = field(default_factory=dict)
    #: Trust classes of values that methods read, recalled or were given, beside the mission's evidence.
    trusts: list[str] = field(default_factory=list)
    #: The form of the prompts that each model was sent.
    forms: dict[str, str] = field(default_factory=dict)
    #: The part of the evidence that each call was shown in lean form, by the call's path.
    focus: dict[str, FocusDocument] = field(default_factory=dict)
    #: Decisions that a rule made in place of a model.
    rules: list[RuleDocument] = field(default_factory=list)
    #: Calls of tools, their results by their fingerprints, and the tools themselves once they are wanted.
    tools: list[ToolUseDocument] = field(default_factory=list)
    tool_results: dict[str, ToolResult] = field(default_factory=dict)
    toolbox: JoinedTools | None = None
    #: The calls that the mission ends with, for who asks to make.
    wanted: list[WantedCallDocument] = field(default_factory=list)
    #: The computation for each question of its minds, None where it asks for no computation.
    computed: dict[str, Reckoning | None] = field(default_factory=dict)
    #: The find of its questions in memory.
    memory: FoundMemory = field(default_factory=FoundMemory)
    #: The answer of a mission that only tells a fact, or orders one to be forgotten.
    told: ToldAnswer | None = None
    #: Evidence that methods recalled beside it.
    seen: list[Evidence] = field(default_factory=list)
    #: The path under which the answer was streamed last, "" if none was; and its words that stand.
    stream_path: str = ""
    streamed: list[str] = field(default_factory=list)
    #: Texts that were streamed and withdrawn, each with its reason.
    withdrawn: list[WithdrawnDocument] = field(default_factory=list)
    #: The places that were cited in what is streamed and not withdrawn: (document, start).
    stream_cited: set[tuple[int, int]] = field(default_factory=set)

    def keep_tools(self, tools: JoinedTools) -> JoinedTools:
        """Keep the tools of the mission, and return them."""
        self.toolbox = tools
        return tools

    def note_told(self, told: ToldAnswer | None) -> None:
        """Note the answer of a mission that only tells something, None for any other."""
        self.told = told

    def note_reads(self, slots: Iterable[Mapping[str, str]]) -> None:
        """Note slots of shared objects that methods have read."""
        self.read.update({(each["oid"], each["slot"]): None for each in slots})

    def note_focus(self, path: str, passages: Iterable[Passage], omitted: int) -> None:
        """Note the sentences of the evidence that a call was shown, and the number of those that it was not shown."""
        shown = [FocusSpan(document=each.number, start=each.start, length=len(each.text)) for each in passages]
        self.focus[path] = FocusDocument(path=path, shown=shown, omitted=omitted)

    def note_memory(self, found: Sequence[Passage]) -> None:
        """Note what a question found in a memory that is not empty; what is near hides what perhaps is."""
        perhaps = tuple(each for each in found if each.is_perhaps)
        if self.memory.state == "found" or len(perhaps) < len(found):
            self.memory = FoundMemory("found")
        else:
            several = {(each.chunk, each.start): each for each in (*self.memory.perhaps, *perhaps)}
            self.memory = FoundMemory("perhaps" if several else "nothing", tuple(several.values()))

    def note_forgetting(self, documents: Iterable[str]) -> None:
        """Note documents of which a person is asked, once the mission is done, whether they may be forgotten."""
        self.forgets.extend(each for each in documents if each not in self.forgets)

    def note_effects(self, effects: Iterable[EffectData]) -> None:
        """Note effects that are staged with the thought's commit; of equal ones the first counts."""
        for each in effects:
            if each["fingerprint"] not in {known["fingerprint"] for known in self.effects}:
                self.effects.append(each)

    def note_withdrawal(self, path: str, why: str) -> None:
        """Keep what was streamed as withdrawn, with the reason; what follows is streamed under this path."""
        if self.streamed:
            told = WithdrawnDocument(path=self.stream_path, reason=why, text="".join(self.streamed))
            self.withdrawn.append(told)
        self.stream_path, self.streamed = path, []
        self.stream_cited.clear()

    def note_words(self, path: str, text: str) -> None:
        """Note words of the answer that are streamed under a path."""
        self.stream_path = path
        self.streamed.append(text)

    def learn_ratios(self, measured: Mapping[str, tuple[int, int]]) -> None:
        """Take the ratios that were measured so far: by model, bytes sent and tokens counted."""
        known = self.ratios.items()
        self.ratios = {model: ratio(*measured.get(model, (0, 0)), before) for model, before in known}


def ratio(size: int, tokens: int, otherwise: float) -> float:
    """Return the measured tokens per byte plus a tenth: prompts differ in density, and a refused call costs more."""
    return max(LEAST_RATIO, 1.1 * tokens / size) if size and tokens else otherwise
