"""Changes of methods by a person, through every door: roll back, make and redefine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeAlias

from batos.approvals.reasons import approval_error
from batos.client.wire.pending import OnEvent
from batos.protocol.errors import GenerationFailed, ProtocolError, Refused
from batos.protocol.method_documents import MethodDocument
from batos.protocol.mission_documents import as_plain
from batos.protocol.verb_shapes import MethodMakeArgs, MethodRedefineArgs, MethodRollbackArgs
from batos.uvm import UVM

#: A verb's function of its arguments; the client hears of each method that is begun, before the result.
Verb: TypeAlias = Callable[[Any, OnEvent, object], Awaitable[dict[str, Any]]]


class Shield(Protocol):
    """The way in which a door changes the image: to the end, also when the client is gone."""

    async def __call__(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do the work to its end and return its result."""
        ...


def verbs(uvm: UVM, shielded: Shield) -> Mapping[str, Verb]:
    """Return the verbs that change methods, by name."""

    async def answer_make(_given: MethodMakeArgs, on_event: OnEvent, *_told: object) -> dict[str, Any]:
        def tell(event: str, keys: Mapping[str, Any]) -> None:
            if event == "method.generating":
                on_event(event, keys)

        leave = uvm.events.subscribe(tell)
        try:
            return as_plain(await uvm.learning.some())
        finally:
            leave()

    async def answer_rollback(given: MethodRollbackArgs, *_told: object) -> dict[str, Any]:
        return as_plain(await shielded(roll_back(uvm, given)))

    async def answer_redefine(given: MethodRedefineArgs, *_told: object) -> dict[str, Any]:
        return as_plain(await shielded(redefine(uvm, given)))

    return {"method_rollback": answer_rollback, "method_make": answer_make, "method_redefine": answer_redefine}


async def roll_back(uvm: UVM, given: MethodRollbackArgs) -> MethodDocument:
    """Let a former revision be active again; the method as `method_show` has it. Raises: see the lifecycle."""
    return await uvm.lifecycle.roll_back(given.method, given.revision, given.user or uvm.settings.asker)


async def redefine(uvm: UVM, given: MethodRedefineArgs) -> MethodDocument:
    """Make a new revision of a wish, a source or both; return the method as `method_show` has it.

    A person's own source is installed at once. A source that a model wrote for a wish is installed, asked about or
    refused as the setting `install` says; of an object that was made from documents it is always asked about. Raises:
    ApprovalNeeded: the revision waits for an answer. Refused: the setting forbids it. NotFound: there is no such slot.
    GenerationFailed, CovenantViolation: nothing acceptable came of it; the method is as it was.
    """
    written, policy = given.source is None, uvm.settings.install
    if written and (given.wish is None or given.checks is not None):
        what = "wish and source are both left out" if given.wish is None else "checks go with a source"
        raise ProtocolError(f"args: {what}", field="args.source", remedy="Give a wish, or a source.")
    if written and policy == "never":
        raise Refused(
            "no method is made of a wish: `install` is never",
            field="install",
            remedy="Give its source with --file, or set install to ask, now or auto.",
        )
    by = given.user or uvm.settings.asker
    holder, selector = uvm.lifecycle.slot(given.method)
    if written:  # a model thinks: the codex acts, and which models there are is known
        await uvm.readiness.check()
    candidate = await uvm.method_runtime.generator.redefine(
        holder, selector, by, wish=given.wish, source=given.source, checks=given.checks
    )
    asks = written and (policy == "ask" or candidate.provenance["trust"] == "external")
    approval = ""
    try:
        if asks:
            approval = await uvm.approvals.ask(candidate, None)
        else:
            await uvm.lifecycle.install(candidate)
    except (GenerationFailed, Refused):  # it was rejected before, or is for another wish by now: the next one is anew
        await uvm.method_runtime.generator.close_redefinition(candidate)
        raise
    await uvm.method_runtime.generator.close_redefinition(candidate)
    if approval:
        raise approval_error([approval], f"the new {given.method}")
    return uvm.lifecycle.describe(given.method)
