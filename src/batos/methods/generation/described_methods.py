"""Methods of a described API: computed where the description suffices, tried like a coder's, made at first use.

A model is asked for the one thing that computation lacks, an example of a reply where the description shows none: data,
which is checked against the words of the description, and of which the method is computed then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

from batos.agency.api_transport import is_own
from batos.agency.apis import method_sources, reply_shapes
from batos.agency.apis.api_operations import ApiDescription, Json, Operation, check_request
from batos.agency.apis.description import read_description
from batos.agency.apis.examples import read_example
from batos.agency.look_ups.web_addresses import parse_address
from batos.agency.records import api_records, effect_records, look_up_records
from batos.agency.records.schedule_records import DOOR
from batos.agency.toolbox import Tool, ToolResult, ToolText
from batos.image.roots import Root
from batos.inference.decide import sample_differently
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.session import Session, Step
from batos.methods.execution.api_calls import call_api, lines_of
from batos.methods.execution.resolution import summon
from batos.methods.generation.lean_request import TOKENS
from batos.methods.generation.method_checks import Check, Rehearsal, ScriptedHost
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.generation.trial import Trial, TrialResult
from batos.minds.context import MindContext
from batos.minds.prompt import Message
from batos.objects.method import Intent
from batos.objects.prototype import own_slots
from batos.protocol.errors import (
    AnswerUnreadable,
    ApprovalNeeded,
    BriefError,
    CellMissing,
    GenerationFailed,
    LookUpFailed,
    MethodFailed,
    ObjectError,
    Refused,
)
from batos.records import tools
from batos.records.tools import READING, REQUEST

#: The words of the provenance for a source, and for an example.
COMPUTED: Final = "its source was computed from the description"
SHOWN: Final = "the coder wrote the example of a reply, with words of the description alone"
#: The maker of a method of which no model wrote anything.
BY_DESCRIPTION: Final = "its description"
#: The most times that the coder is asked for an example.
ATTEMPTS: Final = 4
_HEAD: Final = "You write an example of the JSON reply that an HTTP API gives. Answer with the JSON alone."
_ASKED: Final = (
    "GET /trains/{number}\nWhere a train is. The reply has the `number` of the train, its `delay` in minutes, and "
    "under `next` the `station` and the `time` at which it stops there.\n\nAn example of the reply:"
)
_ANSWERED: Final = '{"number": "text", "delay": 1, "next": {"station": "text", "time": "text"}}'

#: Asks the coder for an example, given the messages, and returns its text.
Ask: TypeAlias = Callable[[tuple[Message, ...]], Awaitable[str]]


@dataclass(slots=True)
class ExampleDialogue:
    """The questions to the coder about one method, each with a path of its own in the journal."""

    wanted: MethodSpec
    session: Session
    path: str
    begun: tuple[Message, ...] = ()
    attempts: int = 0

    async def ask(self, messages: tuple[Message, ...]) -> str:
        """Return the coder's text; each further question is sampled differently. Raises: errors of Ollama."""
        self.begun, options = self.begun or messages, dict(self.wanted.coder.options)
        for _ in range(self.attempts):
            options = sample_differently(options)
        step = Step(f"{self.path}/{self.wanted.selector.rstrip('_')}/attempt{self.attempts}")
        self.attempts += 1
        request = ChatRequest(self.wanted.coder.model, messages, {**options, "num_predict": TOKENS}, think=False)
        try:
            return (await self.session.think(request, step)).text
        except AnswerUnreadable:
            return ""


def operation_of(wanted: MethodSpec) -> Operation | None:
    """Return the operation of an API that a method is for; None for any other method."""
    name = wanted.selector.removeprefix(REQUEST).removeprefix(READING)
    if wanted.kind != "tool" or name == wanted.selector:
        return None
    return next((replace(each, name=name) for each in read_description(wanted.text).operations), None)


async def draft(wanted: MethodSpec, trial: Trial, ask: Ask) -> TrialResult:
    """Return the trial of one of an operation's methods; faults where no source can be computed.

    Raises: CellMissing: there is no cell. Errors of Ollama, where it is asked.
    """
    operation = operation_of(wanted)
    if operation is None:
        return TrialResult((f"{wanted.selector} is of no operation that its description has",))
    if wanted.selector.startswith(REQUEST):
        return await _draft_request(operation, trial)
    changes: tuple[str, ...] = (COMPUTED,)
    if not operation.replies:
        example = await _example(operation, ask)
        if example is None:
            return TrialResult(("the description shows no reply, and no example of one was found in its words",))
        operation, changes = replace(operation, replies=(_without_values(example),)), (COMPUTED, SHOWN)
    judged = await _draft_reading(operation, trial)
    return replace(judged, changes=changes)


async def _draft_request(operation: Operation, trial: Trial) -> TrialResult:
    """Try the method that makes requests: each is what the description says, and passes the kernel's own check."""
    checks = [
        Check([each], result=method_sources.request_for(operation, each))
        for each in method_sources.sample_arguments(operation)
    ]
    judged = await trial.source(method_sources.request_source(operation), checks)
    told = [check_request(operation, each.result) for each in checks]
    faults = [each for each in told if isinstance(each, str)]
    return replace(judged, faults=(*judged.faults, *faults), changes=(COMPUTED,))


async def _draft_reading(operation: Operation, trial: Trial) -> TrialResult:
    """Try the method that reads replies: each example gives its value, and each broken reply a failure."""
    source = method_sources.reading_source(operation) or ""
    checks = [Check([200, {}, _body(each)], result=each) for each in operation.replies]
    broken = method_sources.broken_replies(operation.replies)
    failing = [Check([500, {}, ""], result={"failure": "the status is 500, and the reply is no JSON"})]
    if isinstance(operation.replies[0], str):
        failing = [Check([500, {}, ""], result={"failure": "the status is 500"})]
    judged = await trial.source(source, [*checks, *failing])
    if judged.faults or judged.program is None:
        return judged
    faults, rehearsal = [], Rehearsal(trial.cell)
    for what, status, body in broken:
        if len(body) <= method_sources.MOST_BODY:  # a longer one never reaches a method
            value = await _value(judged, rehearsal, status, body)
            faults += [] if method_sources.is_failure(value) else [f"of {what} it makes a value: declare a failure"]
    return replace(judged, faults=tuple(faults))


async def _value(judged: TrialResult, rehearsal: Rehearsal, status: int, body: str) -> object:
    """Return what a method makes of a reply; None where it fails itself. Raises: CellMissing."""
    call = Check([status, {}, body])
    try:
        return (await rehearsal.outcome(judged.program, call, ScriptedHost({})))[0] if judged.program else None
    except CellMissing:
        raise
    except MethodFailed:
        return None


def _body(reply: Json) -> str:
    return reply if isinstance(reply, str) else json.dumps(reply)


# -- an example of a reply, by the coder


async def _example(operation: Operation, ask: Ask) -> Json:
    """Return an example whose every key stands in the description; None where the coder gives none."""
    asked = f"GET {operation.path}\n{operation.section}\n\nAn example of the reply:"
    shots: tuple[Message, ...] = (
        {"role": "system", "content": _HEAD},
        {"role": "user", "content": _ASKED},
        {"role": "assistant", "content": _ANSWERED},
        {"role": "user", "content": asked},
    )
    for _ in range(ATTEMPTS):
        found = read_example(await ask(shots))
        if isinstance(found, dict | list) and found and not _foreign_keys(found, operation.section):
            return found
    return None


def _without_values(value: Json) -> Json:
    """Return an example with its keys alone: of what type a value is the coder does not know."""
    if isinstance(value, list):
        return [_without_values(each) for each in value[:1]]
    return {key: _without_values(each) for key, each in value.items()} if isinstance(value, dict) else None


def _foreign_keys(value: Json, words: str) -> list[str]:
    """Return the keys of an example that the description does not have as words.

    >>> _foreign_keys({"delay": 1, "next": [{"platform": 2}]}, "the `delay`, and under `next` the stations")
    ['platform']
    """
    if isinstance(value, list):
        return [key for each in value for key in _foreign_keys(each, words)]
    if not isinstance(value, dict):
        return []
    own = [key for key in value if not re.search(rf"(?<![\w]){re.escape(key)}(?![\w])", words)]
    return own + [key for each in value.values() for key in _foreign_keys(each, words)]


#: The most characters of a purpose, and the most examples of a tool.
_PURPOSE: Final = 360
_EXAMPLES: Final = 3


class MadeTools:
    """The operations of granted APIs as tools of one mission, named `OBJECT.OPERATION_`."""

    def __init__(self, context: MindContext) -> None:
        self._context = context

    def tools(self) -> Sequence[Tool]:
        """Return a tool for each operation that reads, in the order of their names."""
        root = self._context.mission.root
        found = [_tool(root, name, at, each) for name, at, api in self._apis() for each in api.operations]
        return sorted(found, key=lambda tool: tool.name)

    async def call(self, name: str, arguments: Mapping[str, object], path: str) -> ToolResult:
        """Return the answer of an operation as one text; its object is made first where it does not exist.

        Raises: Appeared: the object was made, and the mission begins again with it. ApprovalNeeded: a person has to
        approve it.
        """
        owner, _, selector = name.partition(".")
        root = self._context.mission.root
        if effect_records.find_capability(root, owner) is None:
            return ToolResult(failure=f"nothing is granted to ask it: `batos grants add api URL --name {owner}` does")
        intent = tools.absent(root, owner)
        if intent is not None:
            return await self._make(owner, intent)
        receiver = tools.find_tool(root, owner)
        if receiver is None or selector not in own_slots(receiver):
            return ToolResult(failure=f"there is no tool {name[:80]!r}")
        given = cast("dict[str, Json]", dict(arguments))
        try:
            answer = await call_api(self._context, receiver, selector, [given], path)
        except (Refused, LookUpFailed, BriefError, ObjectError, MethodFailed) as error:
            return ToolResult(failure=error.message[:300])
        if answer.failure:
            return ToolResult(failure=answer.failure)
        asked = "; ".join(lines_of(given))
        about = "; ".join(filter(None, (asked, answer.note.strip("()"))))
        title = f"{answer.operation.purpose or name} ({about})" if about else answer.operation.purpose or name
        return ToolResult((ToolText(title[:200], answer.text, answer.address, answer.at),))

    async def _make(self, name: str, intent: Intent) -> ToolResult:
        """Make the object, so that the mission begins again on a snapshot that has it; else return why not."""
        try:
            await summon(self._context, name, intent)
        except ApprovalNeeded:
            raise
        except (GenerationFailed, MethodFailed, Refused) as error:
            return ToolResult(failure=error.message[:300])

    def _apis(self) -> Iterator[tuple[str, str, ApiDescription]]:
        """Yield the name and the address of each API that is granted to the mission, "" of one that nothing grants."""
        root, brief = self._context.mission.root, self._context.mission.brief
        unattended = brief.origin.door == DOOR
        for grant in look_up_records.list_usable(root, brief.user, unattended=unattended):
            if look_up_records.kind_of(grant) == "api":
                name, target = str(own_slots(grant)["name"]), str(own_slots(grant)["target"])
                yield name, target, read_description(api_records.api_text(root, name))
        for name in tools.names(root):
            if effect_records.find_capability(root, name) is None:
                yield name, "", read_description(api_records.api_text(root, name))


def _tool(root: Root, name: str, target: str, operation: Operation) -> Tool:
    """Return the tool of an operation; its purpose says which persona wished for it, where that is known."""
    shown = [each.example for each in operation.parameters if each.example][:_EXAMPLES]
    wisher = tools.find_wisher(root, name)
    purpose = f"{name.replace('_', ' ')}{wisher and f' of {wisher}'}: {operation.purpose}"[:200]
    if gives := ", ".join(dict.fromkeys(reply_shapes.words_of(operation.replies))):
        purpose = f"{purpose}: {gives}"[:_PURPOSE]
    local = not target or is_own(parse_address(target))
    return Tool(f"{name}.{operation.name}", purpose, operation.schema(), "made", local=local, examples=shown)
