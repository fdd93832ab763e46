"""The lifecycle of an image's methods: installed, rolled back, left out for a control, counted, or retired."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, cast

from batos.events import Events
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.image.writer import Telling
from batos.methods.execution import scoring
from batos.methods.execution.compiling import program_of
from batos.methods.lifecycle import method_reports
from batos.methods.lifecycle.method_reports import MethodReader
from batos.objects.method import Method
from batos.objects.prototype import UvmObject
from batos.protocol.errors import InternalError, Refused
from batos.protocol.event_payloads import METHOD_INSTALLED, METHOD_RETIRED, MethodInstalled, MethodRetired
from batos.protocol.method_documents import MethodDocument, UseDocument, UsePayload
from batos.records import methods, tool_declarations, tools
from batos.records.approval_subjects import Candidate

#: The defaults of the settings.
EVERY: Final = 10
ACTIVE: Final = 16
LEAST: Final = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings `method_control`, `method_active` and `method_uses`.

    Of each `every` calls one is interpreted as the control (0: none), a receiver has at most `active` active methods,
    and no method is judged before it was used `least` times.
    """

    every: int = EVERY
    active: int = ACTIVE
    least: int = LEAST


def is_control(mission: str, selector: str, every: int) -> bool:
    """Test if this mission interprets the method's intent as a control.

    The answer depends on nothing but the arguments.

        >>> [is_control("m-1", f"slot{number}_", 3) for number in range(6)].count(True)
        2
    """
    if every == 0:
        return False
    digest = hashlib.sha256(f"{mission} {selector}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % every == 0


def install(root: Root, candidate: Candidate, rules: Rules, at: str) -> tuple[Method, bool, list[MethodRetired]]:
    """Install a candidate. Return its method, True if the revision is new, and the methods retired to keep the limit.

    Raises: Refused, NotFound: as `methods.install`.
    """
    holder = methods.find_holder(root, candidate.holder)
    before = methods.lineage_of(root, holder, candidate.selector)
    revisions = 0 if before is None else len(before.revisions)
    method = methods.install(root, candidate, at)
    lineage = methods.lineage_of(root, holder, candidate.selector)
    if lineage is None:
        raise InternalError(f"{candidate.selector!r} was installed and has no lineage")
    return method, method.revision > revisions, enforce_limit(root, lineage, rules, at)


def roll_back(root: Root, lineage: Lineage, revision: int, rules: Rules, at: str, by: str) -> list[MethodRetired]:
    """Make a former revision active again (0: the intent), and return the methods that were retired for it.

    Raises: NotFound, Refused: as `methods.restore`.
    """
    former = lineage.active
    methods.restore(root, lineage, revision, at, by)
    if revision == 0:
        return [_retirement(root, lineage, former, f"{by} put the intent back")]
    return enforce_limit(root, lineage, rules, at)


def previous_revision(root: Root, lineage: Lineage) -> int:
    """Return the revision to roll back to if none is named.

    This is the newest older revision that was not retired, otherwise the newest older one; if none is active, the last
    active one.

    Raises: Refused: there is no such revision.
    """
    older = range(lineage.active - 1, 0, -1)
    if older:
        return next((number for number in older if number not in lineage.retired), older[0])
    former = [entry["former"] for entry in lineage.history.values() if entry["former"]]
    if lineage.active or not former:
        raise Refused(
            f"{methods.name_of(root, lineage)} has no revision before this one",
            field="revision",
            remedy="`--revision 0` puts the intent back, and it is interpreted again.",
        )
    return int(former[-1])


def enforce_limit(root: Root, newest: Lineage, rules: Rules, at: str) -> list[MethodRetired]:
    """Retire the receiver's worst methods until at most `rules.active` are active; return the retirements.

    The newest method is never retired here.
    """
    active = [each for each in methods.lineages_of(root, newest.holder) if each.active]
    gone: list[MethodRetired] = []
    while len(active) > rules.active and len(active) > 1:
        lineage = worst(each for each in active if each is not newest)
        counts = scoring.recent(lineage)
        did = f"{counts['bad']} of its {counts['calls']} uses ended badly" if counts["calls"] else "it was never used"
        reason = f"the receiver may have at most {rules.active} active methods; the worst was this: {did}"
        gone.append(_retire(root, lineage, reason, at))
        active.remove(lineage)
    return gone


def worst(lineages: Iterable[Lineage]) -> Lineage:
    """Return the lineage with the highest rate of bad uses; of equal ones the least used, then the first by selector.

    A method that was never used counts as failing half of the time, so a method that fails more often than that goes
    first.
    """

    def rank(lineage: Lineage) -> tuple[float, int, str]:
        counts = scoring.recent(lineage)
        return -scoring.rate(counts), int(counts["calls"]), lineage.selector

    return min(lineages, key=rank)


def fold(root: Root, mission: str, payload: UsePayload, rules: Rules, at: str) -> MethodRetired | None:
    """Add one use to its lineage, and return the retirement that this causes, if any.

    A slot without a lineage, or a revision that does not exist, is ignored. The cost is bounded: one lineage is
    read, and three of its records are written.
    """
    lineage = root[roots.METHODS].get(f"{payload['holder']} {payload['selector']}")
    if lineage is None:
        return None
    told = {name: value for name, value in payload.items() if name not in ("holder", "selector")}
    methods.use(lineage, cast("UseDocument", {"mission": mission, **told}))
    if not lineage.active or payload["revision"] != lineage.active:
        return None
    reason = scoring.fault_of(scoring.recent(lineage), scoring.control(lineage), rules.least)
    return _retire(root, lineage, reason, at) if reason else None


def _retire(root: Root, lineage: Lineage, reason: str, at: str) -> MethodRetired:
    """Retire the active revision for this reason, and return the retirement."""
    return _retirement(root, lineage, methods.retire(lineage, reason, at), reason)


def _retirement(root: Root, lineage: Lineage, revision: int, reason: str) -> MethodRetired:
    receiver = roots.name_of_object(root, lineage.holder)
    return MethodRetired(receiver=receiver, selector=lineage.selector, revision=revision, reason=reason)


class MethodLifecycle(MethodReader):
    """The lifecycle of an open image's methods.

    Each change is committed, and its events are emitted, before a method returns.
    """

    def __init__(
        self,
        image: LivingImage,
        events: Events,
        clock: Callable[[], datetime],
        rules: Rules,
        fit: Callable[[Method], Awaitable[object]] = program_of,
    ) -> None:
        """Create the lifecycle. `fit` raises an error for a method that cannot run now: the policy may have changed."""
        super().__init__(image)
        self._image: LivingImage = image
        self._fit = fit
        self._events = events
        self._clock = clock
        self.rules = rules

    # -- missions

    def is_control(self, mission: str, selector: str) -> bool:
        """Test if this mission interprets the method's intent, as a control that the method is compared with."""
        return is_control(mission, selector, self.rules.every)

    def fold(self, root: Root, mission: str, payload: UsePayload) -> list[Telling]:
        """Apply an entry of the kind `method` for the publisher.

        The use is added to its ledger; functions that emit the events are returned.
        """
        gone = fold(root, mission, payload, self.rules, self._now())
        return self._retired_events([] if gone is None else [gone])

    async def count(self, mission: str, payloads: Iterable[UsePayload]) -> None:
        """Add the uses of a failed mission, whose thought is never published.

        A method that fails missions must be retired too.
        """
        told = list(payloads)
        if told:
            self._emit_all(
                await self._image.shared.apply(
                    lambda root: [telling for payload in told for telling in self.fold(root, mission, payload)]
                )
            )

    # -- installing

    async def install(self, candidate: Candidate) -> Method:
        """Install a candidate as its slot's method in one commit, and return a copy that belongs to no connection.

        A candidate of several methods creates their object too, all or nothing.

        Raises: Refused, NotFound: as `methods.install`.
        """
        if not candidate.methods:
            return (await self.install_all([candidate]))[0]
        made = await self.install_all(
            tool_declarations.parts_of_object(candidate), partial(tool_declarations.make_object, candidate=candidate)
        )
        provenance = {**made[0].provenance, "intent": candidate.intent, "digest": candidate.digest}
        return Method(candidate.selector, candidate.source, provenance=provenance, verdict=dict(candidate.verdict))

    async def install_all(
        self, candidates: Iterable[Candidate], before: Callable[[Any], None] = lambda root: None
    ) -> list[Method]:
        """Install all candidates in one commit or none, after `before` has created the objects that they are for."""
        wanted, at = list(candidates), self._now()

        def change(root: Root) -> tuple[list[Method], list[Telling]]:
            before(root)
            made: list[Method] = []
            tellings: list[Telling] = []
            for candidate in wanted:
                method, new, gone = install(root, candidate, self.rules, at)
                made.append(Method(**method.as_dict()))
                if new:
                    holder = methods.find_holder(root, candidate.holder)
                    tellings.append(self._installed_event(root, holder, made[-1]))
                tellings += self._retired_events(gone)
            return made, tellings

        made, tellings = await self._image.shared.apply(change)
        self._emit_all(tellings)
        return made

    async def settle(self, holder: str, selector: str) -> None:
        """Emit the event of a method that another commit installed, and enforce the limit of active methods."""
        at = self._now()

        def change(root: Root) -> list[Telling]:
            whole = tools.find_tool(root, selector) if holder == roots.TOOLS else None
            if whole is not None:
                return [each for one in methods.lineages_of(root, whole) for each in self._enforce_limit(root, one, at)]
            lineage = methods.lineage_of(root, methods.find_holder(root, holder), selector)
            return [] if lineage is None else self._enforce_limit(root, lineage, at)

        self._emit_all(await self._image.shared.apply(change))

    def _enforce_limit(self, root: Root, lineage: Lineage, at: str) -> list[Telling]:
        """Enforce the limit for one lineage, and return the events to emit."""
        if not lineage.active:
            return []
        method = Method(**lineage.revisions[lineage.active].as_dict())
        gone = enforce_limit(root, lineage, self.rules, at)
        return [self._installed_event(root, lineage.holder, method), *self._retired_events(gone)]

    async def roll_back(self, name: str, revision: int | None, by: str) -> MethodDocument:
        """Make a former revision of `OBJECT.SELECTOR` active, and return the method's description.

        `revision` 0 means the intent, None the previous revision. The change takes effect with the next mission.

        Raises: NotFound, Refused: there is no such revision, or it is active already. CovenantViolation, MethodFailed:
        the revision could not run any more.
        """
        at = self._now()
        with self._image.snapshot() as root:
            lineage = method_reports.find_lineage(root, name)
            number = previous_revision(root, lineage) if revision is None else revision
            former = lineage.revisions.get(number)
            candidate = None if former is None else Method(**former.as_dict())
        if candidate is not None:
            await self._fit(candidate)

        def change(root: Root) -> tuple[MethodDocument, list[Telling]]:
            lineage = method_reports.find_lineage(root, name)
            gone = roll_back(root, lineage, number, self.rules, at, by)
            tellings: list[Telling] = []
            if number:
                method = Method(**lineage.revisions[number].as_dict())
                tellings.append(self._installed_event(root, lineage.holder, method))
            return method_reports.describe(root, lineage), [*tellings, *self._retired_events(gone)]

        shown, tellings = await self._image.shared.apply(change)
        self._emit_all(tellings)
        return shown

    # -- telling

    def _now(self) -> str:
        """Return the time in ISO format."""
        return iso(self._clock())

    def _emit_all(self, tellings: Iterable[Telling]) -> None:
        """Emit the events."""
        for tell in tellings:
            tell()

    def _installed_event(self, root: Root, holder: UvmObject, method: Method) -> Telling:
        """Return a function that emits the event of an installed method."""
        told = MethodInstalled(
            receiver=roots.name_of_object(root, holder),
            selector=method.selector,
            revision=method.revision,
            digest=method.provenance["digest"],
        )
        return lambda: self._events.emit(METHOD_INSTALLED, told)

    def _retired_events(self, gone: Iterable[MethodRetired]) -> list[Telling]:
        """Return functions that emit the events of these retirements."""
        return [partial(self._events.emit, METHOD_RETIRED, each) for each in gone]
