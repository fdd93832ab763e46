"""A mission's life between accept and answer: its transaction opened, its cycle run, committed or left without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from batos.cognition import brief as briefs
from batos.cognition.brief import MissionBrief
from batos.cognition.evidence import Turn, passages
from batos.cognition.interpreter import MissionInterpreter
from batos.cognition.machine import Machine
from batos.cognition.prompt import FIRST_RATIO, Voice
from batos.cognition.router import Route, Router
from batos.cognition.running import Running, Thinking
from batos.errors import BatosError, BriefError, InternalError, NotFound
from batos.events import Events
from batos.image import roots
from batos.image.ids import iso, tid_text
from batos.image.image import LivingImage
from batos.image.publisher import Publisher
from batos.image.records import Brief, least_trusted
from batos.image.transactions import MissionTransaction
from batos.inference.journal import Journal
from batos.inference.session import Limits, Session, Thinks
from batos.objects.prototype import UvmObject


#: Turns of a conversation that are looked at for a mission: more never fit a small window.
RECENT_TURNS = 64


@dataclass(slots=True)
class Conductor:
    """Runs accepted missions, each in a transaction of its own; wired in uvm.py."""

    image: LivingImage
    journal: Journal
    publisher: Publisher
    bridge: Thinks
    router: Router
    limits: Limits
    events: Events
    clock: Callable[[], datetime]
    #: Digest of each model that Ollama has, by name; asked for once at the start.
    digests: Mapping[str, str]

    async def run(self, mission: str) -> None:
        """Run a mission to its end. Raises why it failed, after its status and the journal say so."""
        await self.image.move(mission, "running")
        states: list[dict[str, str]] = []
        costs: list[Session] = []
        committed = False
        try:
            with self.image.transaction(mission) as transaction:
                try:
                    await self._think(mission, transaction, states, costs)
                finally:
                    committed = transaction.committed
        except (Exception, asyncio.CancelledError) as error:
            if not committed:
                await self._failed(mission, error, states, costs)
            raise
        finally:
            # Also after a cancellation that came too late to stop the commit: the thought is whole. If this fails,
            # the next start folds it in.
            if committed:
                await self.publisher.fold(mission)
                self.events.emit("mission.status", mission=mission, status="done", reason=None)

    async def _think(
        self, mission: str, transaction: MissionTransaction, states: list[dict[str, str]], costs: list[Session]
    ) -> None:
        running = self._prepare(mission, transaction, states)
        costs.append(running.session)
        interpreter = MissionInterpreter(running)
        machine = Machine(transaction.root["orchestrator_obj"], interpreter, running)
        interpreter.cycle = machine.begin()
        async for _ in machine.steps(interpreter.cycle):
            pass
        running.thought.states = states
        serial = await transaction.commit(running.thought)
        self.events.emit("mission.done", mission=mission, tid=tid_text(serial))

    async def _failed(
        self, mission: str, error: BaseException, states: list[dict[str, str]], costs: list[Session]
    ) -> None:
        """The reason goes to the journal and, in a short transaction of its own, to the mission."""
        cancelled = isinstance(error, asyncio.CancelledError)
        reason = _as_ours(error)
        report = {"states": states, "cost": costs[0].cost.as_dict() if costs else None}
        self.journal.note(mission, {"failed": reason.as_dict(), "at": iso(self.clock())})
        try:
            await self.journal.flush(mission)
            await self.image.move(mission, "cancelled" if cancelled else "failed", reason, report=report)
        except BatosError as unwritten:
            # A full disk can keep us from writing why: the first error is still the one to tell.
            self.events.emit("txn.abort", what=mission, reason=f"its failure is not recorded: {unwritten}")
        self.events.emit("mission.failed", mission=mission, reason=reason.as_dict())

    def _prepare(self, mission: str, transaction: MissionTransaction, states: list[dict[str, str]]) -> Running:
        root = transaction.root
        record, _, thought = self.image.find(root, mission)
        brief = briefs.parse({k: v for k, v in record.value.items() if k != "id"})
        route = self.router.route(brief.text, files=len(brief.attachments), persona=brief.persona, effort=brief.effort)
        self.events.emit("mission.routed", mission=mission, **route.as_dict())
        persona = _persona(root, route)
        thinking = _thinking(root, persona)
        turns, trust = _turns(root, brief)

        def note(state: str) -> None:
            states.append({"state": state, "at": iso(self.clock())})
            self.journal.note(mission, states[-1])
            self.events.emit("mission.state", mission=mission, state=state)

        orchestrator = root["orchestrator_obj"]
        return Running(
            id=mission,
            brief=brief,
            accepted_at=record.accepted_at,
            root=root,
            persona=persona,
            thought=thought,
            route=route,
            voice=_voice(persona),
            thinking=thinking,
            session=self._session(mission, brief, record),
            events=self.events,
            passages=passages(_files(root, brief)),
            turns=turns,
            turn_trust=trust,
            charter=orchestrator.charter,
            house_rules=orchestrator.house_rules,
            read_at=tid_text(transaction.read_at),
            note=note,
            doom=transaction.doom,
            states=states,
        )

    def _session(self, mission: str, brief: MissionBrief, record: Brief) -> Session:
        budget = brief.budget
        limits = Limits(
            calls=(budget and budget.calls) or self.limits.calls,
            tokens=(budget and budget.tokens) or self.limits.tokens,
            seconds=(budget and budget.seconds) or self.limits.seconds,
        )
        return Session(
            mission=mission,
            journal=self.journal,
            bridge=self.bridge,
            digests=self.digests,
            limits=limits,
            events=self.events,
            earlier=self.journal.read([*self._ancestors(brief), mission]),
            clock=self.clock,
        )

    def _ancestors(self, brief: MissionBrief) -> list[str]:
        """The missions whose paid answers this one may use, eldest first."""
        found: list[str] = []
        with self.image.snapshot() as root:
            ancestor = brief.ancestor
            while ancestor is not None and ancestor not in found:
                found.insert(0, ancestor)
                ancestor = self.image.find(root, ancestor)[0].value.get("ancestor")
        return found


def _as_ours(error: BaseException) -> BatosError:
    if isinstance(error, BatosError):
        return error
    if isinstance(error, asyncio.CancelledError):
        return BatosError("the mission was cancelled", remedy="Ask again; what was paid for is in the journal.")
    return InternalError(f"{type(error).__name__}: {error}")


def _persona(root: Any, route: Route) -> UvmObject:
    name = f"{route.personas[0].lower()}_prototype_obj"
    try:
        found: UvmObject = root[name]
    except KeyError as error:
        raise NotFound(f"the image has no {name}", remedy="Run `batos genesis`.") from error
    return found


def _voice(persona: UvmObject) -> Voice:
    return Voice(persona.name, persona.core_identity, persona.core_method, persona.prompts)


def _thinking(root: Any, persona: UvmObject) -> Thinking:
    model = getattr(persona, "persona_model", None) or persona.model
    options = dict(persona.options)
    mode = options.pop("mode", "direct")
    size, tokens = root[roots.STATISTICS].get("measured", {}).get(model, (0, 0))
    return Thinking(model, options, mode, 1.1 * tokens / size if size else FIRST_RATIO)


def _files(root: Any, brief: MissionBrief) -> list[tuple[str, str, str]]:
    attachments = root[roots.ATTACHMENTS]
    return [(ref.name, ref.sha256, attachments[ref.sha256].read().decode("utf-8")) for ref in brief.attachments]


def _turns(root: Any, brief: MissionBrief) -> tuple[tuple[Turn, ...], str]:
    """The conversation so far, and the least trust that any of its answers has."""
    if brief.conversation is None:
        return (), "user"
    conversation = root[roots.CONVERSATIONS].get(brief.conversation)
    if conversation is None:
        return (), "user"
    if conversation.user != brief.user:
        raise BriefError(
            f"{brief.conversation} is another user's conversation",
            field="conversation",
            remedy="Begin one of your own: what one user said is not recalled for another.",
        )
    found, trust = [], "user"
    turns = conversation.turns
    newest = turns.maxKey() if turns else 0
    for mission in turns.values(min=newest - RECENT_TURNS + 1):
        record, _, thought = root[roots.MISSIONS][mission]
        found.append(Turn(mission, record.value["text"], thought.answer))
        trust = least_trusted(trust, thought.lineage_trust)
    return tuple(found), trust


def fold_statistics(root: Any, mission: str, payload: Any) -> None:
    """What missions cost and how dense each model's prompts are, counted up."""
    kept = root[roots.STATISTICS]
    missions = dict(kept.get("missions", {}))
    missions[payload["persona"]] = missions.get(payload["persona"], 0) + 1
    kept["missions"] = missions
    kept["calls"] = kept.get("calls", 0) + payload["calls"]
    measured = dict(kept.get("measured", {}))
    for model, (size, tokens) in payload["measured"].items():
        before = measured.get(model, (0, 0))
        measured[model] = (before[0] + size, before[1] + tokens)
    kept["measured"] = measured


def fold_turn(root: Any, mission: str, payload: Any) -> None:
    """The mission as the newest turn of its conversation."""
    conversations, name = root[roots.CONVERSATIONS], payload["conversation"]
    if name not in conversations:
        user = root[roots.MISSIONS][mission][0].value["user"]
        parents = (root["traits_obj"],) if "traits_obj" in root else ()
        conversations[name] = UvmObject({"name": name, "user": user, "turns": roots.new_turns()}, parents)
    turns = conversations[name].turns
    turns[turns.maxKey() + 1 if turns else 1] = mission


APPLIERS: Mapping[str, Any] = {"statistics": fold_statistics, "turn": fold_turn}
