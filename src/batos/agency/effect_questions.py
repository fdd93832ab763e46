"""Effects that ask before: why one does, and the question, which holds its exact arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from batos.agency import permissions
from batos.agency.http_sink import is_local
from batos.agency.mcp import server_records
from batos.agency.records import effect_records
from batos.agency.records.effect_records import Effect
from batos.agency.records.schedule_records import DOOR
from batos.approvals.desk import Approvals
from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.image.writer import Publisher
from batos.objects.prototype import own_slots
from batos.protocol.method_documents import MethodProvenance
from batos.records import approvals
from batos.records.approval_subjects import FORGET_KIND, Candidate
from batos.records.approvals import ApprovalState

_BLIND: Final = "nobody can look whether it happened, or take it back"
_AWAY: Final = "it leaves this machine"
_FOREIGN: Final = "it was made from a text that came from outside"
_UNWATCHED: Final = "nobody watches its mission, and its grant does not say unattended"


def find_reason_to_ask(root: Root, effect: Effect) -> str:
    """Return why an effect waits for a person's yes, also under a standing grant; "" if it needs none.

    An effect whose grant is gone needs none: it fails. An approved plan that has it word for word is its yes.
    """
    capability = effect_records.find_capability_of(root, effect)
    if capability is None or permissions.is_planned(root, effect):
        return ""
    slots, origin = own_slots(capability), roots.mission_record(root, effect["mission"]).brief.value.get("origin") or {}
    reasons = {
        _AWAY: slots["kind"] == "http" and not is_local(slots["target"]),
        _BLIND: slots["sink"] not in ("keyed", "queryable"),
        _FOREIGN: effect["trust"] == "external",
        _UNWATCHED: origin.get("door") == DOOR and not slots.get("unattended"),
    }
    return "; ".join(why for why, holds in reasons.items() if holds)


def register(publisher: Publisher, desk: Approvals, clock: Callable[[], datetime]) -> None:
    """Let a publisher ask a person about what committed missions want: effects on the world, and to forget.

    Effects go into the outbox, those that wait for a yes too.
    """

    def fold(root: Root, mission: str, payload: Any) -> Sequence[Callable[[], None]]:
        effect = effect_records.fold(root, mission, payload, find_reason_to_ask)
        if effect is None:
            return ()
        effect["approval"], tell = desk.ask_named(root, question_about(root, effect, iso(clock())))
        return (tell,)

    publisher.register(effect_records.KIND, fold)
    publisher.register(FORGET_KIND, desk.fold_forgetting)


def settle(root: Root, said: ApprovalState, at: str) -> None:
    """Do with a question's effects, or tools of a server, what a person said: a yes stages, or pins, them.

    Of an effect that no more waits for this answer nothing is changed: a yes is for one use.
    """
    server_records.settle(root, said)
    for name in said.effects:
        effect = effect_records.find_effect(root, name)
        if effect["state"] != "asking" or effect.get("approval") != said.name:
            continue
        if said.word == "approved":
            effect["outcome"] = None
            effect_records.stage(root, effect)
        elif said.word in ("rejected", "expired"):
            who = f"{said.by} said no: {said.why}" if said.word == "rejected" else said.why
            effect_records.become(root, effect, "not_done", at, {"reason": who})


def count_unwatched(root: Root, user: str | None, at: str) -> int:
    """Count what missions that nobody watches (of a user's) ask a person."""
    missions = [
        mission
        for asked in approvals.open_approvals(root)
        if asked.word_at(at) == "asked" and asked.candidate.get("effects")
        for mission in asked.candidate["provenance"]["missions"]
    ]
    briefs = [roots.mission_record(root, each).brief.value for each in missions]
    return sum(user in (None, each["user"]) and (each.get("origin") or {}).get("door") == DOOR for each in briefs)


def question_about(root: Root, effect: Effect, at: str) -> Candidate:
    """Return the question about an effect: a yes counts for exactly this text, and this effect alone."""
    capability = effect_records.find_capability_of(root, effect)
    target = "" if capability is None else own_slots(capability)["target"]
    head = [
        f"effect   {effect['effect']}", f"grant    {effect['grant']}, {target}",
        f"because  {effect['outcome']['reason']}",
    ]  # fmt: skip
    asked_by = effect.get("asked_by") or effect["mission"]
    return Candidate(
        holder=effect["oid"],
        selector=f"{effect['operation'].rpartition('.')[2]}_",
        intent="",
        source="\n".join([*head, *_argument_lines(effect["payload"])]),
        verdict={"accepted": True, "faults": [], "policy": SHIPPED.version},
        checks=(),
        provenance=MethodProvenance(missions=[effect["mission"]], trust=effect["trust"], at=at, by=asked_by),
        effects=(effect["effect"],),
    )


def _argument_lines(payload: Mapping[str, object]) -> list[str]:
    """Return arguments line by line, whole; a text keeps its lines, each behind a bar."""
    lines = []
    for name, value in payload.items():
        if isinstance(value, str) and name != "path":
            lines += [f"{name}:", *(f"| {line}" for line in value.split("\n"))]
        else:
            lines.append(f"{name}: {json.dumps(value, ensure_ascii=False)}")
    return lines
