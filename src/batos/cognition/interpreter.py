"""What gives messages their meaning while a mission runs: kernel functions by name, and intents by interpretation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import structlog

from batos.cognition import states
from batos.cognition.aside import aside
from batos.cognition.asking import calls
from batos.cognition.conversing import compaction, conversations
from batos.cognition.evidence import Evidence, recall
from batos.cognition.machine import Machine
from batos.cognition.mind import facets, protocols
from batos.cognition.running import Running
from batos.errors import InternalError, ObjectError
from batos.image.ids import tid_text
from batos.image.records import least_trusted
from batos.objects.message import send
from batos.objects.prototype import Found, UvmObject, label, own_slots, reference

_log = structlog.get_logger("batos.object")

#: The first turn and how many, where a message does not say; and at most.
_PAGE, _MOST_TURNS = (1, 20), 100
#: How much more work it is to load a byte of a turn than to read it.
_LOADING = 4

Kernel: TypeAlias = Callable[["MissionInterpreter", UvmObject, tuple[Any, ...]], Awaitable[Any]]
Derive: TypeAlias = Callable[[Callable[[Any], Any]], Awaitable[Any]]


class MissionInterpreter:
    """The interpreter of one running mission; facets share the evidence of its cycle."""

    def __init__(self, running: Running, cycle: UvmObject, derive: Derive | None = None) -> None:
        self.running = running
        self.cycle = cycle
        self._derive = derive

    def within(self, running: Running, cycle: UvmObject) -> MissionInterpreter:
        """One that interprets for a mind within this one, or with another voice."""
        return MissionInterpreter(running, cycle, self._derive)

    async def derive(self, change: Callable[[Any], Any]) -> Any:
        """Change what is derived from the image's truth (a view of turns) in a short commit of its own."""
        if self._derive is None:
            raise InternalError("there is nothing to change a view with")
        return await self._derive(change)

    async def primitive(self, receiver: UvmObject, name: str, args: tuple[Any, ...]) -> Any:
        """Run the kernel function of that name; ObjectError if this kernel has none."""
        state = states.STATES.get(name)
        if state is not None:
            return await state(self.running, self, receiver, args)
        kernel = KERNEL.get(name)
        if kernel is None:
            raise ObjectError(
                f"this version has no kernel function {name!r}",
                remedy="Send a message that it has, or use a version that has this one.",
            )
        return await kernel(self, receiver, args)

    async def intent(self, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...]) -> Any:
        """Interpret an intent: its text guides `infer_`."""
        if not args:
            raise ObjectError(f"{selector!r} of {label(receiver)} is an intent and needs to be told what about")
        self.running.methods.append(_told(found, selector))
        synthesis = states.work(self.cycle)
        if found.value.kind == "protocol":
            return await protocols.interpret(self, self.running, synthesis, selector, args)
        number = int(args[1]) if len(args) > 1 else 0
        asked = facets.SubQuery(selector, found.value, str(args[0]), number)
        return await facets.interpret(self, self.running, synthesis.evidence, asked)

    async def method(self, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...]) -> Any:
        """Generated code runs in a cell or not at all; this version has no cell."""
        raise ObjectError(
            f"{selector!r} of {label(receiver)} is a generated method, and there is no cell to run it in",
            remedy="Use the version of BAT OS that made it.",
        )


def _told(found: Found, selector: str) -> dict[str, str]:
    """For provenance: what was sent, who holds it, and which revision of it ran (the commit that wrote it)."""
    revision, holder = tid_text(found.value._p_serial), found.holder
    return {
        "selector": selector,
        "holder": label(holder),
        "oid": reference(holder),
        "revision": revision,
        "as": "interpreted intent",
    }


async def _log_line(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> None:
    _log.info("object", mission=interpreter.running.id, receiver=label(receiver), text=" ".join(map(str, args)))


async def _recall(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> Any:
    return await send(interpreter, interpreter.running.root["knowledge_catalog_obj"], "search_", *args)


async def _search(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> Evidence:
    """Until there is memory: the mission's own files and its conversation, within `room` bytes."""
    query, room = str(args[0]), int(args[1])
    running = interpreter.running
    # Loading turns takes longer than reading their text: a short conversation's are loaded here, a long one's aside.
    size = sum(len(passage.text) for passage in running.passages) + _LOADING * (room if running.past.count else 0)
    return await aside(size, lambda: recall(running.passages, running.past, query, room))


async def _infer(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> Any:
    """A question with its evidence and the decision that it is to be answered by."""
    evidence, question, decision = args
    return await calls.ask(interpreter.running, evidence, question, decision)


async def _start_cycle(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> UvmObject:
    """The orchestrator takes the mission's brief: its cycle runs from IDLE to IDLE."""
    await Machine(receiver, interpreter, interpreter.running).run(interpreter.cycle)
    return interpreter.cycle


async def _turns(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> dict[str, Any]:
    """A page of a conversation's turns, for its user; as trusted as the least of them."""
    running = interpreter.running
    name = own_slots(receiver).get("name", label(receiver))
    place = (*args, *_PAGE[len(args) :])
    page = conversations.page(running.root, name, place[0], min(place[1], _MOST_TURNS), running.brief.user)
    return {**page, "trust": least_trusted("user", *(turn["trust"] for turn in page["turns"]))}


KERNEL: Final[dict[str, Kernel]] = {
    "traits.log": _log_line,
    "traits.recall": _recall,
    "catalog.search": _search,
    "llm.infer": _infer,
    "orchestrator.start_cognitive_cycle_for": _start_cycle,
    "conversation.turns": _turns,
    "conversation.compact": compaction.compact,
    "conversation.recompact": compaction.recompact,
}
