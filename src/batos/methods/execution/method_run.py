"""The run of a method: builds its view, runs its program, merges its writes, and converts its result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from batos.cell.cell import MethodCall
from batos.cell.program import Program
from batos.gate.attribution import attribute, citations_of, gist_of, locate_citation
from batos.gate.evidence_index import index_of
from batos.gate.quotations import Quotation
from batos.memory.evidence import Evidence
from batos.methods.execution.compiling import program_of
from batos.methods.execution.method_host import MethodHost
from batos.methods.execution.receiver_view import View
from batos.methods.execution.resolution import Invocation, InvocationResult, ToMethod
from batos.methods.execution.scoring import record_method
from batos.methods.execution.write_buffer import Data, WriteBuffer, describe_type
from batos.minds.calls.decisions import QUOTE
from batos.minds.context import MethodCell, MindContext
from batos.minds.results import PartResult
from batos.minds.trace import Trace
from batos.objects.prototype import label
from batos.protocol.errors import CellMissing, MethodFailed

#: The most runs of a method while other parts change slots that it read; a repeated run pays for no call again.
MOST_RUNS: Final = 12
#: Raises MethodFailed if the sender of the message cannot use the result.
Takes: TypeAlias = Callable[[Invocation[ToMethod], InvocationResult], None]


def accept_any(invocation: Invocation[ToMethod], ran: InvocationResult) -> None:
    """Accept any result: a method and `batos send` take whatever a method returns."""


async def run(invocation: Invocation[ToMethod], takes: Takes = accept_any) -> InvocationResult:
    """Run a method to its end and return its result.

    Its writes are merged into the buffer below, or the image, on success only.

    `takes` may refuse the result, which then counts as the method's failure. Besides the errors listed, errors that
    messages may not catch pass through: a spent budget, a stopped mission, a daemon that cannot be reached.

    Raises: CellMissing: there is no cell. MethodFailed, CovenantViolation, CellKilled: the method failed, and wrote
    nothing.
    """
    cell = invocation.context.io.methods.cell
    if cell is None:
        raise CellMissing(
            f"{invocation.message.selector!r} of {label(invocation.message.receiver)} is a method, "
            "and there is no cell to run it in"
        )
    return await record_method(invocation, _run(invocation, cell, takes))


async def _run(invocation: Invocation[ToMethod], cell: MethodCell, takes: Takes) -> InvocationResult:
    """Compile the method and run it until its reads are still valid at its end."""
    return await run_until_unchanged(invocation, cell, await program_of(invocation.message.method), takes)


async def run_until_unchanged(
    invocation: Invocation[ToMethod], cell: MethodCell, program: Program, takes: Takes = accept_any
) -> InvocationResult:
    """Run the program until no slot that it read was changed by another part during the run, then merge its writes.

    Raises: MethodFailed: a slot that it read was changed during each of MOST_RUNS runs.
    """
    for _ in range(MOST_RUNS):
        buffer = WriteBuffer(invocation.below or invocation.mind, invocation.context.mission.brief.user)
        ran = await _once(invocation, cell, program, buffer)
        moved = buffer.stale_read()
        if moved is None:
            takes(invocation, ran)
            # No await since the comparison: so the reads are still current when the writes are merged.
            merge_writes(buffer, invocation.context.trace)
            invocation.limits.spend(ran.seconds)
            if invocation.below is None:
                invocation.context.trace.trusts.append(ran.trust)
            return ran
    raise MethodFailed(
        f"{moved} was changed by other parts of the mission each of the {MOST_RUNS} times "
        f"that {invocation.message.selector!r} ran",
        remedy="Let each part write slots of its own.",
    )


def merge_writes(buffer: WriteBuffer, trace: Trace) -> None:
    """Merge the writes of a buffer into what lies below it, and note what reaches the mission by that."""
    trace.written.extend(buffer.merge_down())
    trace.note_reads(buffer.list_reads())
    trace.note_effects(buffer.list_staged())


async def _once(
    invocation: Invocation[ToMethod], cell: MethodCell, program: Program, buffer: WriteBuffer
) -> InvocationResult:
    """Run the program once over a fresh write buffer, and return its result; the writes stay in the buffer."""
    message = invocation.message
    view = View(buffer, message.receiver, program.view)
    host = MethodHost(invocation, buffer, view, run)
    # The method sees one time, for the whole mission: the moment when the question was asked.
    now = datetime.fromisoformat(invocation.context.mission.shared.asked_at)
    call = MethodCall(view.slot_values(), [*message.args], dict(message.kwargs), _seed(invocation), now)
    outcome = await cell.run(program, call, host)
    host.take(outcome.writes)
    result = view.table.from_cell(outcome.result, f"the result of {message.selector!r}")
    return InvocationResult(result, tuple(host.thoughts), host.trust, outcome.seconds)


def _seed(invocation: Invocation[ToMethod]) -> str:
    """Return the seed of the run's random numbers, made of the path and of the time of the question.

    The seed is equal in every attempt and retry.
    """
    return hashlib.sha256(f"{invocation.context.mission.shared.asked_at} {invocation.path}".encode()).hexdigest()


#: The most characters of a method's answer; the code that combines parts shortens further where needed.
LONGEST: Final = 8_000
#: The most citations that are kept of one part.
MOST_CITATIONS: Final = 8

#: The form of the result of a facet's method.
_PART: Final = "a text, or {answer, known, citations}"
_KEYS: Final = frozenset({"answer", "known", "citations"})


def part_of_result(context: MindContext, ran: InvocationResult, message: ToMethod, evidence: Evidence) -> PartResult:
    """Return a facet's answer as a part of the mission's answer.

    The method returned a text or {answer, known, citations}.

    Citations that the method gives are kept if they are found in their documents, beside those that are computed from
    its answer and from the model's answers to it. Without `known` the part has an answer if any of the model's answers
    was one, or if the model was not asked.

    Raises: MethodFailed: the method returned another form.
    """
    given = _fields(ran.value, message.selector)
    answer = text_of_result(given["answer"], message.selector)
    known = given.get("known")
    if known is None:
        known = not ran.thoughts or any(thought.is_known for thought in ran.thoughts)
    query = str(message.args[0])
    found = attribute(answer, query, index_of(evidence))
    given_ = (locate_citation(each, evidence) for each in _read_citations(given.get("citations"), message.selector))
    cited = [
        *(each for each in given_ if each is not None),
        *citations_of(found),
        *(each for thought in ran.thoughts for each in thought.citations),
    ]
    places = {(each.document, each.start): each for each in reversed(cited)}
    return PartResult(
        number=message.number,
        slot=message.selector,
        name=message.selector if message.intent is None else message.intent.name,
        query=query,
        answer=answer,
        citations=tuple(reversed(places.values()))[:MOST_CITATIONS],
        is_known=known and bool(answer.strip()),
        found_nothing=not known,
        persona=context.mind.voice.name,
        gist=gist_of(answer, found) if context.mind.parts_vote else "",
    )


def check_result(invocation: Invocation[ToMethod], ran: InvocationResult) -> None:
    """Check that the result has the form that the kind of slot requires; a slot of any other kind may return any data.

    Raises: MethodFailed: a facet returned neither a text nor {answer, known, citations}, or a protocol no text.
    """
    if invocation.message.kind == "facet":
        given = _fields(ran.value, invocation.message.selector)
        text_of_result(given["answer"], invocation.message.selector)
        _read_citations(given.get("citations"), invocation.message.selector)
    elif invocation.message.kind == "protocol":
        text_of_result(ran.value, invocation.message.selector, "a text")


def _fields(value: Data, selector: str) -> Mapping[str, Any]:
    """Return the fields of a facet's result. Raises: MethodFailed: the form is wrong."""
    if isinstance(value, str):
        return {"answer": value}
    if isinstance(value, dict) and "answer" in value and value.keys() <= _KEYS:
        if not isinstance(value.get("known"), bool | None):
            raise _wrong(selector, f"its `known` is a {type(value['known']).__name__}")
        return value
    raise _wrong(selector, f"it returned {describe_type(value)}")


def _read_citations(value: Data, selector: str) -> list[Quotation]:
    """Read the citations of a facet's result; each quote is cut to QUOTE characters.

    Raises: MethodFailed: the form is wrong.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(selector, f"its citations are {describe_type(value)}")
    found = []
    for each in value:
        number, quote = (each.get("document"), each.get("quote")) if isinstance(each, dict) else (None, None)
        if type(number) is not int or not isinstance(quote, str):
            raise _wrong(selector, "a citation of it is no {document, quote}")
        found.append(Quotation(number, quote[:QUOTE]))
    return found


def text_of_result(value: Data, selector: str, shape: str = _PART) -> str:
    """Return the value if it is a text.

    Raises: MethodFailed: the value is no text, or has more than LONGEST characters.
    """
    if not isinstance(value, str):
        raise _wrong(selector, f"it returned {describe_type(value)}", shape)
    if len(value) > LONGEST:
        raise MethodFailed(f"{selector!r} returned {len(value):,} characters, at most {LONGEST:,} are an answer")
    return value


def _wrong(selector: str, why: str, shape: str = _PART) -> MethodFailed:
    return MethodFailed(f"{selector!r} is to return {shape}, and {why}")
