"""A mind that acts on the world and kills itself at a point of an effect's life; bench/effects.py starts it.

The argument and the lines of stdout are those of effects_saga_side.py.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, cast

from batos.agency.records import effect_records
from batos.agency.records.effect_records import GrantKind, SinkClass
from batos.image import roots
from batos.image.roots import Root
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.objects.method import Intent
from batos.objects.prototype import own_slots, reference
from batos.protocol.errors import BatosError, OllamaTimeout
from batos.protocol.method_documents import MethodProvenance
from batos.records import methods
from batos.records.approval_subjects import Candidate
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, EffectSeams, Seams
from effects_saga_side import LINE, die, say, wait_for_bench

#: The grants of the three classes, with the message by which each acts.
GRANTS: Final[Mapping[str, tuple[GrantKind, SinkClass, str, tuple[object, ...]]]] = {
    "queryable": ("file", "queryable", "append_", ("log.txt", LINE)),
    "keyed": ("http", "keyed", "post_", ({"text": LINE},)),
    "blind": ("http", "blind", "post_", ({"text": LINE},)),
}
_FACET: Final = "tamland_facet_"
_SOURCE: Final = """async def {facet}(self, query):
    {grant} = await self.capability_('{grant}')
    await {grant}.{selector}({arguments})
    answer = await self.infer_(query)
    if 'broken' in query:
        raise ValueError('the method is broken')
    return answer
"""


# -- the mind


class _Bridge(ScriptedBridge):
    """A model that fails, or never answers, where the question says so."""

    def __init__(self) -> None:
        super().__init__(self._respond)
        self.asked = asyncio.Event()

    def _respond(self, request: ChatRequest) -> str | BatosError:
        return OllamaTimeout("load", seconds=1.0) if "failing" in str(request.messages) else "Oak holds it."

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """Answer, or wait for ever."""
        if "silent" in str(request.messages):
            self.asked.set()
            await asyncio.Event().wait()
        return await super().think(request, on_token, stream=stream)


def _install(root: Root, grant: str) -> None:
    """Let BRICK have a method that acts, and then asks the model."""
    _, _, selector, arguments = GRANTS[grant]
    given = ", ".join(map(repr, arguments))
    source = _SOURCE.format(facet=_FACET, grant=grant, selector=selector, arguments=given)
    holder = root["brick_prototype_obj"]
    intent = cast("Intent", own_slots(holder)[_FACET])
    made = MethodProvenance(
        generation="g-1", missions=["m-1"], model="coder", model_digest="0" * 64, prompt_digest="p",
        at="2026-11-30T10:00:00.000Z", trust="model",
    )  # fmt: skip
    digest = hashlib.sha256(source.encode()).hexdigest()
    verdict = {"accepted": True, "faults": [], "policy": "bench", "digest": digest}
    intended = methods.digest_of(intent)
    candidate = Candidate(reference(holder), _FACET, intended, source, verdict, ({"call": ""},), made)
    methods.install(root, candidate, "2026-11-30T10:00:00.000Z")


@asynccontextmanager
async def _mind(given: Mapping[str, str]) -> AsyncIterator[tuple[UVM, _Bridge]]:
    """Open a mind with the grant of the class, and the method that acts by it."""

    async def hold(point: str, _effect: str) -> None:
        if point == given["point"]:
            die()

    place, bridge, sink = Path(given["place"]), _Bridge(), given["sink"]
    seams = Seams(effects=EffectSeams(hold=hold))
    async with scripted_uvm(place / "home", bridge, memory=False, seams=seams, method_control=0) as uvm:
        kind, declared, _, _ = GRANTS[sink]
        target = str(place / "world") if kind == "file" else f"{given['url']}/{sink}"

        def grant(root: Root) -> None:
            if sink in root[roots.GRANTS]:
                return
            told = "tester", "2026-11-30T10:00:00.000Z"
            made = effect_records.add_capability(root, sink, kind, target, declared, told)
            roots.connection_of(root).add(made)
            _install(root, sink)

        await uvm.image.shared.apply(grant)
        yield uvm, bridge


def _brief(sink: str, text: str, **more: object) -> dict[str, object]:
    message = {"receiver": "brick_prototype_obj", "selector": _FACET, "arguments": [text]}
    return {"message": message, "user": "tester", "grants": [sink], **more}


async def _abort(uvm: UVM, bridge: _Bridge, abort: str, sink: str) -> str | None:
    """Abort a mission that staged an effect; return its id, None if the mind has no such mission."""
    text = {"failed": "A failing one?", "cancelled": "A silent one?", "method": "A broken one?"}.get(abort, "What?")
    if abort == "dream":
        dispatcher = Dispatcher(uvm, Uploads(uvm.settings.place / "uploads", 10_000), works=False)
        await dispatcher.handle("dream_new", {"brief": _brief(sink, text)}, lambda *_: None, lambda *_: None)
        return None
    async with uvm.releaser._releasing:  # what is undone was staged, and not begun
        mission = await uvm.missions.submit(_brief(sink, text), begin=True)
        if abort == "cancelled":
            await bridge.asked.wait()
            await uvm.missions.cancel(mission)
        await uvm.missions.wait_for_end(mission)
        if abort == "undone":
            dispatcher = Dispatcher(uvm, Uploads(uvm.settings.place / "uploads", 10_000), works=False)
            await dispatcher.handle("undo", {"mission": mission, "user": "tester"}, lambda *_: None, lambda *_: None)
    await uvm.releaser.release_all()
    return mission


async def _approve(uvm: UVM) -> int:
    """Say yes to what asks before it happens, and return how many did."""
    with uvm.image.snapshot() as root:
        asked = list(root[roots.AWAITED])
    await uvm.approvals.approve(asked, "tester")
    return len(asked)


async def live_as_mind(given: Mapping[str, str]) -> None:
    """Abort, do the same again, and be killed; or go on with what was left."""
    async with _mind(given) as (uvm, bridge):
        if given["abort"]:
            before = await _abort(uvm, bridge, given["abort"], given["sink"])
            wait_for_bench()
            more = {} if before is None else {"ancestor": before}
            await uvm.missions.ask(_brief(given["sink"], "What holds a pier?", **more))
        for mission in await uvm.missions.recover():
            await uvm.missions.run(mission)
        approved = await _approve(uvm)
        await uvm.releaser.release_all()
        with uvm.image.snapshot() as root:
            states = [str(each["state"]) for each in effect_records.list_all_effects(root)]
        say({"released": states.count("released"), "unknown": states.count("unknown"), "approved": approved})


def main() -> int:
    """Run the process."""
    asyncio.run(live_as_mind(json.loads(sys.argv[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
