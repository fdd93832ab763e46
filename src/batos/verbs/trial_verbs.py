"""The verbs of what the mind changes of itself: trials of a change, and slots that may be redefined while running."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from textwrap import shorten
from typing import Final, Literal

from pydantic import Field

from batos.protocol.trial_documents import (
    SealedFigure,
    SelfAuditDocument,
    SlotLineage,
    SlotPage,
    TrialDocument,
    TrialPage,
)
from batos.protocol.wire_messages import Asker, Name, StrictModel
from batos.terminal.console import count_text, local_time
from batos.terminal.layout import Column, card, listing
from batos.verbs.wire_verb import Noun, WireVerb

#: The most characters of a value that is given to a slot.
VALUE: Final = 4_000
#: The most characters of a value in a list.
SHOWN: Final = 48
#: Days between two figures that are called a month: a round may take some days.
_MONTH: Final = 45

TRIALS_NOUN: Final = Noun(
    "trials",
    """Show changes that the mind tried on questions whose answers are known; try one, keep it, undo it.

    Without a verb: `list`. The heartbeat tries changes by itself, and keeps what is better.""",
    default="list",
)


class TrialsArgs(StrictModel):
    """List the newest trials, and how many were kept."""

    limit: int = Field(default=20, ge=1, le=10_000, description="Most trials in the list.")


class TrialArgs(StrictModel):
    """A trial by its id."""

    trial: Name = Field(description="The trial's id or its beginning; `last`, `last-1`.")


class TrialShowArgs(TrialArgs):
    """Show a trial: what was changed, why, the evidence, the cost, and answers that became better and worse."""

    user: Name | None = Field(default=None, description="A guest's own name: no words of others' questions are shown.")


class TrialTryArgs(StrictModel):
    """Try a value of a slot on known questions: the trial begins now, and the heartbeat asks its questions.

    The value is kept if the answers are better. `batos slot list` has the slots, `batos heartbeat` tells if it is on.
    """

    slot: Name = Field(description="The slot, as ROBIN.temperature.")
    value: str = Field(max_length=VALUE, description="The value: a word, a number, or JSON.")
    why: str = Field(default="", max_length=500, description="The reason, in a sentence.")
    user: Asker = Field(default=None, description="The user who asks for it; absent: the server's own user.")


class TrialKeepArgs(TrialArgs):
    """Keep a change that a trial found better, where a person has to agree: a persona's line, say."""

    user: Asker = Field(default=None, description="The user who decides; absent: the server's own user.")


class TrialUndoArgs(TrialArgs):
    """Take back what a trial changed, or end a trial; its value is not tried again for 90 days.

    Refused where a later trial changed the same slots: it is named.
    """

    why: str = Field(default="", max_length=500, description="The reason, in a sentence.")
    user: Asker = Field(default=None, description="The user who decides; absent: the server's own user.")


class TrialAuditArgs(StrictModel):
    """Have ALFRED audit the running system: what is computed of integrity and costs, and his answer to each.

    Exit 1 when a check does not hold; 3 when no model answers: then what was computed is shown alone.
    """

    when: Literal["now"] = Field(default="now", description="`now`: at once, also while the heartbeat is off.")
    user: Asker = Field(default=None, description="The user who asks for it; absent: the server's own user.")


SLOT_NOUN: Final = Noun(
    "slot",
    """Show the slots that may be redefined while running, redefine one, and bring a former value back.

    SLOT is PERSONA.NAME, as ROBIN.temperature. Without a verb: `list`.""",
    default="list",
)


class SlotArgs(StrictModel):
    """A slot by its name."""

    slot: Name = Field(description="The slot, as ROBIN.temperature.")


class SlotRedefineArgs(SlotArgs):
    """Give a slot a value, from the next mission on; the former one is kept.

    A change of the codex for the same slot takes its place.
    """

    value: str = Field(max_length=VALUE, description="The value: a word, a number, or JSON.")
    why: str = Field(default="", max_length=500, description="The reason, in a sentence.")
    user: Asker = Field(default=None, description="The user who decides; absent: the server's own user.")


class SlotRollbackArgs(SlotArgs):
    """Give a slot a value that it had; without --revision the one before this."""

    revision: int | None = Field(default=None, ge=0, description="The number of the value; 0: the codex's.")
    user: Asker = Field(default=None, description="The user who decides; absent: the server's own user.")


def trials_text(told: TrialPage) -> str:
    """Write trials, a line each, and how many were kept."""
    none = "Nothing was tried yet. `batos heartbeat` tells what is missing; with `resume` the mind tries by itself."
    sealed = list(_sealed_texts(told["sealed"]))
    if not told["trials"]:
        return "\n".join((none, *sealed))
    counted = f"tried {told['tried']}, kept {told['kept']}, expected false among them at most {told['false']:.1f}"
    return "\n".join((listing(told["trials"], TRIAL_COLUMNS, whole=(0,)), counted, *sealed))


def _sealed_texts(told: Sequence[SealedFigure]) -> Iterator[str]:
    """Yield a line with the newest figure, and the one before."""
    for newest in told[:1]:
        line = f"sealed: {newest['share']:.2f} on {count_text(newest['questions'], 'question')}, {newest['day']}"
        if len(told) > 1:
            days = (date.fromisoformat(newest["day"]) - date.fromisoformat(told[1]["day"])).days
            line += f"; {told[1]['share']:.2f} {'a month' if days < _MONTH else f'{days} days'} before"
        yield line


def _value_text(told: TrialDocument) -> str:
    """Write the value that is tried, or those among which none is chosen."""
    chosen = [each["value"] for each in told["changes"]]
    known = [chosen] if _is_chosen(told) else told["candidates"]
    return " or ".join(", ".join(dict.fromkeys(map(_plain_text, values))) for values in known)


def _is_chosen(told: TrialDocument) -> bool:
    return any(each["value"] != each["before"] for each in told["changes"])


def _plain_text(value: object) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


#: The columns of a list of trials.
TRIAL_COLUMNS: Final[Mapping[str, Column]] = {
    "trial": "id", "state": "state", "lever": "lever",
    "value": lambda each: shorten(_value_text(each), SHOWN, placeholder="..."),
    "questions": lambda each: each["screened"] + each["asked"],
    "better": "wins", "worse": "losses", "evidence": lambda each: f"{each['evidence']:.1f} of {each['needed']:g}",
    "why": lambda each: each["reason"] or each["why"],
}  # fmt: skip


def trial_text(told: TrialDocument) -> str:
    """Write all of a trial."""
    return "\n\n".join([card(list(_heads(told))), *_example_texts(told)])


def _heads(told: TrialDocument) -> Iterator[tuple[str, str]]:
    yield "trial", f"{told['id']}, {told['state']}{': ' * bool(told['reason'])}{told['reason']}"
    for place, each in enumerate(told["changes"]):
        known = [each["value"]] if _is_chosen(told) else [values[place] for values in told["candidates"]]
        yield each["slot"], f"{_plain_text(each['before'])} -> {' or '.join(map(_plain_text, known))}"
    yield "why", f"{told['why']}{', ' * bool(told['why'])}by {told['by']}"
    yield "begun", local_time(told["begun"]) + (f", ended {local_time(told['ended'])}" if told["ended"] else "")
    asked = f"{told['screened']} to choose the value, {told['asked']} to judge it, {told['probed']} after it was kept"
    yield "questions", asked
    yield "answers", f"{told['wins']} better, {told['losses']} worse"
    yield "evidence", f"{told['evidence']:.2f}; kept at {told['needed']:g}"
    yield "cost", f"{told['calls']:,} calls, {told['tokens']:,} tokens"
    if told["stood_on"]:
        yield "stood on", ", ".join(told["stood_on"])


def _example_texts(told: TrialDocument) -> Iterator[str]:
    for each in told.get("examples", ()):
        before, after = (_WORTHS.get(value, f"{value:.2f}") for value in each["worth"])
        yield card(
            [("question", each["question"]), (f"before, {before}", each["before"]), (f"after, {after}", each["after"])]
        )


def audit_text(told: SelfAuditDocument) -> str:
    """Write what was computed, with ALFRED's answers beside it."""
    columns: Mapping[str, Column] = {
        "check": "id", "holds": lambda each: "yes" if each["ok"] else "no",
        "what": lambda each: f"{each['what']}{'. ' * bool(each['remedy'])}{each['remedy']}",
    }  # fmt: skip
    parts = [listing(told["findings"], columns), "\n".join(told["figures"])]
    parts += [f"{each['name']} ({each['mission']}, {each['verdict']})\n{each['answer']}" for each in told["audits"]]
    if told["error"] is not None:
        reason = f"{told['error']['message']}. {told['error']['remedy']}"
        parts.append(f"ALFRED gives no answer, so what was computed stands alone: {reason}")
    return "\n\n".join(filter(None, parts))


#: An answer that has all of what is right, and one that has nothing of it; any other is told by its share.
_WORTHS: Final[Mapping[float, str]] = {1.0: "right", 0.0: "wrong"}


def slots_text(told: SlotPage) -> str:
    """Write slots, a line each."""
    columns: Mapping[str, Column] = {
        "slot": "slot", "value": lambda each: shorten(_plain_text(each["value"]), SHOWN, placeholder="..."),
        "redefined": lambda each: _times(len(each["values"]) - 1) if each["values"] else "",
        "what it is": "what",
    }  # fmt: skip
    return listing(told["slots"], columns, "There are no slots yet: run `batos genesis`.")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def slot_text(told: SlotLineage) -> str:
    """Write a slot with its values."""
    columns: Mapping[str, Column] = {
        "number": lambda each: str(each["number"]), "value": lambda each: _plain_text(each["value"]), "by": "by",
        "at": lambda each: local_time(each["at"]), "why": "why", "trial": "trial",
    }  # fmt: skip
    head = card([("slot", told["slot"]), ("value", _plain_text(told["value"])), ("what it is", told["what"])])
    return f"{head}\n{listing(told['values'], columns)}" if told["values"] else f"{head}\nIt was not redefined."


TRIALS: Final = WireVerb("trials", TrialsArgs, "trials list", trials_text, reads=True)
TRIALS_SHOW: Final = WireVerb("trials_show", TrialShowArgs, "trials show TRIAL", trial_text, reads=True)
TRIALS_TRY: Final = WireVerb(
    "trials_try", TrialTryArgs, "trials try SLOT VALUE", trial_text, governs=True,
    examples=("batos trials try ROBIN.temperature 0.3", "batos trials try ROBIN.form lean"),
)  # fmt: skip
TRIALS_KEEP: Final = WireVerb("trials_keep", TrialKeepArgs, "trials keep TRIAL", trial_text, governs=True)
TRIALS_UNDO: Final = WireVerb("trials_undo", TrialUndoArgs, "trials undo TRIAL", trial_text, governs=True)
TRIALS_AUDIT: Final = WireVerb(
    "trials_audit", TrialAuditArgs, "trials audit [WHEN]", audit_text, governs=True, progress="{step}",
    examples=("batos trials audit now",),
)  # fmt: skip
SLOTS: Final = WireVerb(
    "slots", StrictModel, "slot list", slots_text, reads=True,
    about="List the slots that may be redefined while running, with the values that act.",
)  # fmt: skip
SLOT_SHOW: Final = WireVerb(
    "slot_show", SlotArgs, "slot show SLOT", slot_text, reads=True,
    about="Show a slot, and every value that it had, by whom and why.",
)  # fmt: skip
SLOT_REDEFINE: Final = WireVerb(
    "slot_redefine", SlotRedefineArgs, "slot redefine SLOT VALUE", slot_text, governs=True,
    examples=('batos slot redefine ROBIN.line "You are ROBIN. Answer briefly."',),
)  # fmt: skip
SLOT_ROLLBACK: Final = WireVerb("slot_rollback", SlotRollbackArgs, "slot rollback SLOT", slot_text, governs=True)
