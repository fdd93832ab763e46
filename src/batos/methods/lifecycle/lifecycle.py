"""The lifecycle of an image's methods: installing, choosing controls, counting uses, retiring and rolling back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any

from batos.events import Events
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.publisher import Telling
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.methods.execution.method_run import program_of
from batos.methods.lifecycle import active_methods, method_reports
from batos.methods.lifecycle.active_methods import Rules
from batos.methods.lifecycle.method_reports import MethodReader
from batos.objects.method import Method
from batos.objects.prototype import UvmObject
from batos.protocol.event_payloads import METHOD_INSTALLED, METHOD_RETIRED, MethodInstalled, MethodRetired
from batos.protocol.method_documents import MethodDocument, UsePayload
from batos.records import methods, object_installation, tools
from batos.records.candidates import Candidate


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
        return active_methods.is_control(mission, selector, self.rules.every)

    def fold(self, root: Root, mission: str, payload: UsePayload) -> list[Telling]:
        """Apply an entry of the kind `method` for the publisher.

        The use is added to its ledger; functions that emit the events are returned.
        """
        gone = active_methods.fold(root, mission, payload, self.rules, self._now())
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
            object_installation.parts(candidate), partial(object_installation.make, candidate=candidate)
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
                method, new, gone = active_methods.install(root, candidate, self.rules, at)
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
        gone = active_methods.enforce_limit(root, lineage, self.rules, at)
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
            number = active_methods.previous_revision(root, lineage) if revision is None else revision
            former = lineage.revisions.get(number)
            candidate = None if former is None else Method(**former.as_dict())
        if candidate is not None:
            await self._fit(candidate)

        def change(root: Root) -> tuple[MethodDocument, list[Telling]]:
            lineage = method_reports.find_lineage(root, name)
            gone = active_methods.roll_back(root, lineage, number, self.rules, at, by)
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
