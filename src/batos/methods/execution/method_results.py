"""Conversion of a method's result to the form its caller needs: a facet's answer, a protocol's text, or plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from batos.gate.attribution import attribute
from batos.gate.citations import citations_of, gist_of, locate_citation
from batos.gate.evidence_index import index_of
from batos.gate.quotations import Quotation
from batos.memory.evidence import Evidence
from batos.methods.execution.invocation import Invocation, InvocationResult
from batos.methods.execution.plain_data import Data, describe_type
from batos.methods.execution.resolution import ToMethod
from batos.minds.calls.decisions import QUOTE
from batos.minds.context import MindContext
from batos.minds.results import PartResult
from batos.protocol.errors import MethodFailed

#: The most characters of a method's answer; the code that combines parts shortens further where needed.
LONGEST: Final = 8_000
#: The most citations that are kept of one part.
MOST_CITATIONS: Final = 8

#: The form of the result of a facet's method.
_PART: Final = "a text, or {answer, known, citations}"
_KEYS: Final = frozenset({"answer", "known", "citations"})


def part(context: MindContext, ran: InvocationResult, message: ToMethod, evidence: Evidence) -> PartResult:
    """Return a facet's answer as a part of the mission's answer.

    The method returned a text or {answer, known, citations}.

    Citations that the method gives are kept if they are found in their documents, beside those that are computed from
    its answer and from the model's answers to it. Without `known` the part has an answer if any of the model's answers
    was one, or if the model was not asked.

    Raises: MethodFailed: the method returned another form.
    """
    given = _fields(ran.value, message.selector)
    answer = text(given["answer"], message.selector)
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
        text(given["answer"], invocation.message.selector)
        _read_citations(given.get("citations"), invocation.message.selector)
    elif invocation.message.kind == "protocol":
        text(ran.value, invocation.message.selector, "a text")


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


def text(value: Data, selector: str, shape: str = _PART) -> str:
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
