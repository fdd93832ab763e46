"""Changes of methods by a person, through every door: roll back, make and redefine."""

from __future__ import annotations

from collections.abc import Mapping

from batos.approvals.reasons import approval_error
from batos.client.wire.pending import OnEvent
from batos.protocol.errors import GenerationFailed, ProtocolError, Refused
from batos.protocol.method_documents import LateReport, MethodDocument
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.method_verbs import (
    METHOD_MAKE,
    METHOD_REDEFINE,
    METHOD_ROLLBACK,
    MethodMakeArgs,
    MethodRedefineArgs,
    MethodRollbackArgs,
)


def verbs(uvm: UVM, shielded: Shield) -> Mapping[str, Handler]:
    """Return the verbs that change methods, by name."""

    async def answer_make(_given: MethodMakeArgs, on_event: OnEvent, *_told: object) -> LateReport:
        def tell(event: str, keys: Mapping[str, object]) -> None:
            if event == "method.generating":
                on_event(event, keys)

        leave = uvm.events.subscribe(tell)
        try:
            return await uvm.learning.some()
        finally:
            leave()

    return dict(
        (
            bind(METHOD_ROLLBACK, lambda given, *_told: shielded(roll_back(uvm, given))),
            bind(METHOD_MAKE, answer_make),
            bind(METHOD_REDEFINE, lambda given, *_told: shielded(redefine(uvm, given))),
        )
    )


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
