"""The lives of all methods of one image: whoever installs, chooses, counts, retires or brings one back does it here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from batos.events import Events
from batos.image import methods, roots, tools, wholes
from batos.image.candidates import Candidate
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.publisher import Telling
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.methods.execution.compilation import program_of
from batos.methods.lifecycle import control_group, installation, ledger, method_reports
from batos.methods.lifecycle.control_group import Rules
from batos.methods.lifecycle.ledger import Retirement
from batos.methods.lifecycle.method_readings import MethodReader
from batos.objects.method import Method
from batos.objects.prototype import UvmObject


class MethodLifecycle(MethodReader):
    """One for an open image; what it changes is committed, and told, when it returns."""

    def __init__(
        self,
        image: LivingImage,
        events: Events,
        clock: Callable[[], datetime],
        rules: Rules,
        fit: Callable[[Method], Awaitable[object]] = program_of,
    ) -> None:
        """`fit` raises what keeps a method from running now: the guardian's policy may be another than it was."""
        super().__init__(image)
        self._image: LivingImage = image
        self._fit = fit
        self._events = events
        self._clock = clock
        self.rules = rules

    # -- missions

    def is_control(self, mission: str, selector: str) -> bool:
        """Whether this mission interprets the method's intent instead, so that what it contributes is measured."""
        return control_group.is_control(mission, selector, self.rules.every)

    def may_generate(self, holder: UvmObject, selector: str, coder: str) -> bool:
        """Whether the model of digest `coder` may make a method there: not again what was retired for the same wish."""
        return methods.may_generate(holder, selector, coder)

    def fold(self, root: Root, mission: str, payload: Mapping[str, Any]) -> list[Telling]:
        """The publisher's applier of the kind `method`: one use into its ledger."""
        gone = ledger.fold(root, mission, payload, self.rules, self._now())
        return [] if gone is None else [lambda: self._tell_gone(gone)]

    async def count(self, mission: str, payloads: Iterable[Mapping[str, Any]]) -> None:
        """What a mission used that failed: its thought is gone, and a method that fails missions must not go on."""
        told = list(payloads)
        if told:
            self._told(await self._image.writer.apply(lambda root: self._counted(root, mission, told)))

    def _counted(self, root: Root, mission: str, payloads: list[Mapping[str, Any]]) -> list[Telling]:
        return [telling for payload in payloads for telling in self.fold(root, mission, payload)]

    # -- installing

    async def install(self, candidate: Candidate) -> Method:
        """Make a candidate its slot's method, durable at once; a copy of it that belongs to no connection.

        One of several methods makes the object that they are of, or nothing. Refused, NotFound: as `methods.install`.
        """
        if not candidate.methods:
            return (await self.install_all([candidate]))[0]
        made = await self.install_all(wholes.parts(candidate), partial(wholes.make, candidate=candidate))
        whole = Method(candidate.selector, candidate.source, verdict=dict(candidate.verdict))
        whole.provenance = {**made[0].provenance, "intent": candidate.intent, "digest": candidate.digest}
        return whole

    async def install_all(
        self, candidates: Iterable[Candidate], before: Callable[[Any], None] = lambda root: None
    ) -> list[Method]:
        """All of them or none, in one commit, after `before` has made the objects that they are for."""
        wanted, at = list(candidates), self._now()

        def change(root: Root) -> tuple[list[Method], list[Telling]]:
            before(root)
            made: list[Method] = []
            tellings: list[Telling] = []
            for candidate in wanted:
                method, new, gone = installation.install(root, candidate, self.rules, at)
                made.append(Method(**method.as_dict()))
                receiver = roots.named(root, methods.holder_named(root, candidate.holder))
                if new:
                    tellings.append(self._telling_installed(receiver, made[-1]))
                tellings += self._telling_gone(gone)
            return made, tellings

        made, tellings = await self._image.writer.apply(change)
        self._told(tellings)
        return made

    async def settle(self, holder: str, selector: str) -> None:
        """A method was installed in a commit of somebody else's: it is told, and what it is one too many for goes."""
        at = self._now()

        def change(root: Root) -> list[Telling]:
            whole = tools.made(root, selector) if holder == roots.TOOLS else None
            if whole is not None:
                return [each for one in methods.lineages_of(root, whole) for each in self._settled(root, one, at)]
            lineage = methods.lineage_of(root, methods.holder_named(root, holder), selector)
            return [] if lineage is None else self._settled(root, lineage, at)

        self._told(await self._image.writer.apply(change))

    def _settled(self, root: Root, lineage: Lineage, at: str) -> list[Telling]:
        if not lineage.active:
            return []
        method = Method(**lineage.revisions[lineage.active].as_dict())
        gone = installation.enforce_limit(root, lineage, self.rules, at)
        receiver = roots.named(root, lineage.holder)
        return [self._telling_installed(receiver, method), *self._telling_gone(gone)]

    async def roll_back(self, name: str, revision: int | None, by: str) -> dict[str, Any]:
        """Let a former revision of `OBJECT.SELECTOR` be active again (0: the intent; None: the one before); the method.

        It acts from the next mission on. NotFound, Refused: there is none, or it is active already. CovenantViolation,
        MethodFailed: it could not run any more.
        """
        at = self._now()
        with self._image.snapshot() as root:
            lineage = method_reports.find_lineage(root, name)
            number = installation.previous_revision(root, lineage) if revision is None else revision
            former = lineage.revisions.get(number)
            candidate = None if former is None else Method(**former.as_dict())
        if candidate is not None:
            await self._fit(candidate)

        def change(root: Root) -> tuple[dict[str, Any], list[Telling]]:
            lineage = method_reports.find_lineage(root, name)
            gone = installation.roll_back(root, lineage, number, self.rules, at, by)
            tellings: list[Telling] = []
            if number:
                receiver = roots.named(root, lineage.holder)
                tellings.append(self._telling_installed(receiver, Method(**lineage.revisions[number].as_dict())))
            return method_reports.describe(root, lineage), [*tellings, *self._telling_gone(gone)]

        shown, tellings = await self._image.writer.apply(change)
        self._told(tellings)
        return shown

    # -- telling

    def _now(self) -> str:
        return iso(self._clock())

    def _told(self, tellings: Iterable[Telling]) -> None:
        for tell in tellings:
            tell()

    def _telling_installed(self, receiver: str, method: Method) -> Telling:
        return lambda: self._events.emit(
            "method.installed",
            receiver=receiver,
            selector=method.selector,
            revision=method.revision,
            digest=method.provenance["digest"],
        )

    def _telling_gone(self, gone: Iterable[Retirement]) -> list[Telling]:
        return [lambda each=each: self._tell_gone(each) for each in gone]  # type: ignore[misc]

    def _tell_gone(self, gone: Retirement) -> None:
        self._events.emit(
            "method.retired",
            receiver=gone.receiver,
            selector=gone.selector,
            revision=gone.revision,
            reason=gone.reason,
        )
