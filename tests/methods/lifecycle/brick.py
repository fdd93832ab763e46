"""A living image with one receiver, its lifecycle, and missions that use its methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from tests.image.installing import candidate, standing
from tests.image.open_image import open_image

from batos.events import Events
from batos.guardian.audit import Context, audit
from batos.image.ids import utc_now
from batos.image.image import LivingImage
from batos.image.roots import named_objects
from batos.methods.lifecycle.lifecycle import MethodLifecycle, Rules
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import CovenantViolation
from batos.protocol.method_documents import UsePayload
from batos.records.approval_subjects import Candidate
from batos.uvm import UVM

NAME = "brick_prototype_obj"


@dataclass
class Receiver:
    """The one object, its slots, and what was told of them."""

    image: LivingImage
    lifecycle: MethodLifecycle
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    asked: int = 0

    async def declare(self, *selectors: str) -> None:
        """Intents in these slots."""

        def change(root: Any) -> None:
            for selector in selectors:
                setattr(root[NAME], selector, Intent(f"do {selector}", f"{selector}(self, text)", kind="facet"))

        await self.image.writer.apply(change)

    def candidate(self, selector: str, source: str = "", **also: Any) -> Candidate:
        """A method for a slot, as a generation would hand it in."""
        with self.image.snapshot() as root:
            wish = standing(root, named_objects(root)[NAME], selector)
            return candidate(named_objects(root)[NAME], selector, wish, source or f"source of {selector}", **also)

    async def learn(self, *selectors: str) -> None:
        """A first method for each, declared before."""
        await self.declare(*selectors)
        for selector in selectors:
            await self.lifecycle.install(self.candidate(selector))

    async def use(self, selector: str, **how: Any) -> None:
        """One mission's use, folded in."""
        self.asked += 1
        mission = f"m-{self.asked}"
        control = how.pop("control", self.lifecycle.is_control(mission, selector))
        revision = how.pop("revision") if "revision" in how else self.active(selector)
        told = UsePayload(
            holder=self.reference,
            selector=selector,
            revision=revision,
            outcome="ok",
            control=control,
            seconds=1.0,
            tokens=100,
            calls=1,
            gate_faults=0,
        )
        await self.lifecycle.count(mission, [cast("UsePayload", {**told, **how})])

    @cached_property
    def reference(self) -> str:
        """The receiver's."""
        with self.image.snapshot() as root:
            return reference(named_objects(root)[NAME])

    def active(self, selector: str) -> int:
        """The revision that acts."""
        lines = self.lifecycle.list_methods(NAME)
        return next((int(line["active"]) for line in lines if line["selector"] == selector), 0)

    def acting(self) -> set[str]:
        """Every slot in which a method acts."""
        return {line["selector"] for line in self.lifecycle.list_methods(NAME) if line["active"]}

    def slot(self, selector: str) -> Any:
        """What stands there: the type and the text or source."""
        with self.image.snapshot() as root:
            value = own_slots(named_objects(root)[NAME])[selector]
            return type(value).__name__, value.text if isinstance(value, Intent) else value.source


async def unfit(method: Any) -> None:
    """Sources of these tests are words; one that says so cannot run."""
    if "refused" in method.source:
        raise CovenantViolation("the guardian refuses it now")


@asynccontextmanager
async def receiver(**rules: int) -> AsyncIterator[Receiver]:
    """The object in an image in memory."""
    events = Events(log=False)
    async with open_image(None) as image:
        made = Receiver(image, MethodLifecycle(image, events, utc_now, Rules(**rules), unfit))
        events.subscribe(lambda event, keys: made.told.append((event, dict(keys))))
        await image.writer.apply(lambda root: named_objects(root).update({NAME: UvmObject({"name": "BRICK"})}))
        yield made


def seeded(uvm: UVM, holder: str, selector: str, source: str) -> Candidate:
    """A method for a slot of a mind, with the guardian's own verdict; `SELECTOR` in it is the slot."""
    text = source.replace("SELECTOR", selector)
    with uvm.image.snapshot() as root:
        wish = standing(root, named_objects(root)[holder], selector)
        verdict = audit(text, Context(selector=selector)).as_dict()
        return candidate(named_objects(root)[holder], selector, wish, text, verdict=verdict)
