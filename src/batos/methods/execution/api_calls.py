"""Calls of described APIs: a method makes the request, the kernel sends it by the grant, a method reads the reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from batos.agency.api_transport import is_own
from batos.agency.apis import reply_shapes
from batos.agency.apis.api_operations import ApiRequest, Json, Operation, check_request
from batos.agency.apis.method_sources import is_failure
from batos.agency.look_ups import leaving
from batos.agency.look_ups.web_addresses import parse_address
from batos.agency.permissions import LEAVES, CallQuestion
from batos.agency.records import api_records, effect_records, look_up_records
from batos.agency.records.api_records import ApiReplyPayload
from batos.cell.cell import MethodCall
from batos.cell.values import MessageAnswer, Plain, Ref, Value, Writes
from batos.image.ids import iso
from batos.inference.outside_calls import OutsideCall
from batos.methods.execution import primitives
from batos.methods.execution.compiling import program_of
from batos.minds.context import MindContext
from batos.minds.permission import ask_person, list_earlier_questions
from batos.minds.trace import MethodUse
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, lookup, own_slots, reference
from batos.protocol.errors import (
    ApprovalNeeded,
    GenerationFailed,
    MessageNotUnderstood,
    MethodFailed,
    ObjectError,
    Refused,
)
from batos.records.tools import NAME, READING, REQUEST

#: The most lines of a value as evidence.
_MOST_LINES: Final = 60
#: Keys under which replies say that there is more of them.
_MORE: Final = frozenset({"next", "next_page", "nextPage", "next_cursor", "cursor", "has_more", "hasMore", "more"})


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """The answer of an operation: its value, or the document itself where no method reads it, or why there is none.

    `note` says what a reader must know of it: that the service changed, or that there is more.
    """

    operation: Operation
    address: str
    at: str
    body: str
    value: Json = None
    failure: str = ""
    note: str = ""
    is_raw: bool = False

    @property
    def text(self) -> str:
        """Return the value as lines that a model can quote: all of it stands in the reply."""
        lines = [self.body] if self.is_raw else lines_of(self.value)
        return "\n".join(lines[:_MOST_LINES])


@dataclass(slots=True)
class _OperationCall:
    """A call of one operation within a mission."""

    context: MindContext
    receiver: UvmObject
    operation: Operation
    path: str
    given: Mapping[str, Json] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(own_slots(self.receiver)[NAME])

    async def send_method(self, begin: str, *args: Json) -> Json:
        """Return what a method of the operation answers; it is made first where there is only its wish.

        Raises: MethodFailed: it failed, or sends a message although it is pure.
        """
        selector, io = begin + self.operation.name, self.context.io.methods
        found = lookup(self.receiver, selector)
        if found is None:
            raise MessageNotUnderstood(self.name, selector)
        method = found.value
        if isinstance(method, Intent) and io.generator is not None:
            context = self.context.strict()
            method = await io.generator.method_for(context, self.receiver, found, selector, tuple(args))
        if not isinstance(method, Method) or io.cell is None:
            raise GenerationFailed(f"{selector!r} of {self.name} has no method, or there is no cell to run it")
        given = MethodCall({}, cast("Sequence[Value]", args), seed=selector)
        outcome: Literal["ok", "fault"] = "fault"
        seconds = 0.0
        try:
            ran = await io.cell.run(await program_of(method), given, _PureHost())
            outcome, seconds = "ok", ran.seconds
        finally:
            use = MethodUse(reference(found.holder), selector, method.revision, outcome, False, seconds, 0, 0)
            self.context.trace.uses.append(use)
        return cast("Json", ran.result)


class _PureHost:
    """The host of a pure method: it answers no message."""

    async def send(
        self, to: Ref | None, selector: str, args: list[Plain], kwargs: dict[str, Plain], pending: Writes
    ) -> MessageAnswer:
        """Raise MethodFailed: a pure method sends nothing."""
        raise MethodFailed(f"it sends {selector!r}, and is to be computed of its arguments alone")

    async def read(self, of: Ref, slot: str) -> MessageAnswer:
        """Raise MethodFailed: a pure method reads no object."""
        raise MethodFailed(f"it reads {slot!r}, and is to be computed of its arguments alone")


async def call_api(
    context: MindContext, receiver: UvmObject, selector: str, args: Sequence[Json], path: str
) -> ApiAnswer:  # fmt: skip
    """Return what an operation answers to arguments: one dict of them by name, or their values in order.

    The reply is in the journal under `path`, and served from there.

    Raises: MessageNotUnderstood: there is no such operation. ObjectError: the mission does not hold the grant, or the
    arguments are wrong. Refused: the service does not answer. MethodFailed: the request is none that the description
    has.
    """
    operation = api_records.operation_at(receiver, selector)
    if operation is None:
        raise MessageNotUnderstood(str(own_slots(receiver).get(NAME)), selector)
    call = _OperationCall(context, receiver, operation, path, bind(operation, args))
    grant = primitives.find_capability(context, (call.name,))
    made = await call.send_method(REQUEST, {**call.given})
    request = made if is_failure(made) else check_request(operation, made)
    if not isinstance(request, ApiRequest):
        raise MethodFailed(f"{REQUEST}{operation.name} of {call.name}: {failure_line(request)}")
    reply = await _reply(call, grant, request)
    return await _read(call, reply)


async def answer_message(context: MindContext, receiver: UvmObject, args: Sequence[Json]) -> ApiAnswer:
    """Return what the operation answers that a mission's own message names. Raises: as `call_api`."""
    message = context.mission.brief.message
    selector = "" if message is None else message.selector
    return await call_api(context, receiver, selector, args, f"message/{selector}")


def bind(operation: Operation, args: Sequence[Json]) -> dict[str, Json]:
    """Return the arguments of an operation by name. Raises: ObjectError: they are others.

    >>> from batos.agency.apis.api_operations import Parameter
    >>> near = Operation("near_", "/near", parameters=(Parameter("limit"), Parameter("city", is_required=True)))
    >>> bind(near, ["Brest", 3])
    {'city': 'Brest', 'limit': 3}
    """
    known = [*operation.required_names, *(each.name for each in operation.parameters if not each.is_required)]
    given: dict[str, Json]
    if len(args) == 1 and isinstance(args[0], dict):
        given = {name: value for name, value in args[0].items() if value is not None}
    elif len(args) <= len(known):
        given = dict(zip(known, args, strict=False))
    else:
        raise ObjectError(f"{operation.name!r} takes ({', '.join(known)}), and was given {len(args)} arguments")
    foreign = [name for name in given if name not in known]
    missing = [name for name in operation.required_names if name not in given]
    if foreign or missing or any(isinstance(each, dict | list) for each in given.values()):
        what = f"has no {foreign[0]!r}" if foreign else f"needs {missing[0]!r}" if missing else "takes plain values"
        raise ObjectError(f"{operation.name!r} {what}: it takes ({', '.join(known)})")
    return given


async def _reply(call: _OperationCall, grant: UvmObject, request: ApiRequest) -> Mapping[str, Json]:
    """Return the reply from the journal, or send the request and write down what came.

    Raises: Refused: the grant is used up or has ended, or words would leave that are not of the question.
    ApprovalNeeded: a person is asked whether they may.
    """
    io, brief, slots = call.context.io, call.context.mission.brief, own_slots(grant)
    asked: dict[str, Json] = {"grant": str(slots["name"]), "target": request.target}

    async def act(_call: str) -> Mapping[str, Json]:
        await _ask_where_words_leave(call, slots, request)
        sender, look_ups = io.methods.apis, io.look_ups
        if sender is None or look_ups is None:
            raise Refused("this mind reaches no service", remedy="Ask the same of the mind itself.")
        query = {
            "what": request.target, "kind": "api", "to": str(slots["target"]), "user": brief.user,
            "mission": call.context.mission.id, "path": call.path,
        }  # fmt: skip
        named, terms = (call.name, effect_records.nonce_of(grant)), look_up_records.terms_of(grant)
        now = look_ups.clock()
        await look_ups.change(lambda root: look_up_records.enter(root, named, terms, query, now))
        return {**await sender.send(slots, request), "at": iso(now)}

    return await io.outside.perform(OutsideCall(call.path, "api", asked), act)


async def _ask_where_words_leave(call: _OperationCall, slots: Mapping[str, Any], request: ApiRequest) -> None:
    """Ask the person where words would leave that are not of the question. Raises: as `ask_person`."""
    if is_own(parse_address(str(slots["target"]))):
        return
    granted = (str(slots["name"]), str(slots["target"]), call.operation.path)
    own = leaving.words_of_question(call.context.mission.brief, (*list_earlier_questions(call.context), *granted))
    foreign = leaving.find_foreign(" ".join([request.path.replace("/", " "), *request.query.values()]), own)
    if foreign:
        remedy = f"If that is meant, send it yourself: batos send {call.name} {call.operation.name} ..."
        asked = CallQuestion(f"{call.name}.{call.operation.name}", call.given, LEAVES, tuple(foreign), remedy)
        await ask_person(call.context, asked)


async def _read(call: _OperationCall, reply: Mapping[str, Json]) -> ApiAnswer:
    """Return what the reply says; one of another shape than before is told, and given as it is."""
    body = str(reply["body"])
    answer = ApiAnswer(call.operation, str(reply["address"]), str(reply["at"]), body)
    changes = _watch(call, reply)
    call.context.trace.trusts.append("external")
    reads = lookup(call.receiver, READING + call.operation.name) is not None
    if reply_shapes.breaks(changes) or not reads:
        note = f"(The replies of {call.name} have changed: {'; '.join(changes[:3])}.)" if changes and reads else ""
        return _raw(answer, reply, note)
    try:
        value = await call.send_method(READING, reply["status"], reply["headers"], body)
    except ApprovalNeeded as waits:
        return _raw(answer, reply, f"({waits.message})")
    if is_failure(value):
        first = next(
            (each for each in call.context.trace.api_replies if each["operation"] == call.operation.name), None
        )
        if first is None or changes or api_records.known_shape(call.receiver, call.operation) is not None:
            return _with(answer, failure=failure_line(value))
        first["changes"].append(f"the reading says: {failure_line(value)}")  # it was made without having seen a reply
        return _raw(answer, reply, "")
    more = isinstance(value, dict) and any(value.get(each) for each in _MORE)
    pages = value.get("pages") if isinstance(value, dict) else None
    more = more or (isinstance(pages, int) and isinstance(value, dict) and pages > int(str(value.get("page") or 1)))
    return _with(answer, value=value, note="(This is a part: the service has more pages.)" if more else "")


def _raw(answer: ApiAnswer, reply: Mapping[str, Json], note: str) -> ApiAnswer:
    """Return the document as it came, or the failure that its status says."""
    if reply["status"] != 200:
        return _with(answer, failure=f"the status is {reply['status']}")
    return _with(answer, is_raw=True, value=answer.body, note=note)


def _with(
    answer: ApiAnswer, *, value: Json = None, failure: str = "", note: str = "", is_raw: bool = False
) -> ApiAnswer:
    return ApiAnswer(answer.operation, answer.address, answer.at, answer.body, value, failure, note, is_raw)


def _watch(call: _OperationCall, reply: Mapping[str, Json]) -> list[str]:
    """Return how a good reply differs in its shape from those before, and note the shape where it is new."""
    try:
        value: Json = json.loads(str(reply["body"])) if reply["status"] == 200 else None
    except ValueError:
        return []
    if value is None or _is_error(call.operation, value):
        return []
    known, shape = api_records.known_shape(call.receiver, call.operation), reply_shapes.shape_of(value)
    changes = [] if known is None else reply_shapes.differences(known, value)
    whole = shape if known is None or reply_shapes.breaks(changes) else reply_shapes.merge([known, shape])
    payload = ApiReplyPayload(
        object=call.name, operation=call.operation.name, shape=whole, changes=changes, at=str(reply["at"]),
        digest=reply_shapes.digest_of(whole),
    )  # fmt: skip
    if not any(each["operation"] == payload["operation"] for each in call.context.trace.api_replies):
        call.context.trace.api_replies.append(payload)
    return changes


def _is_error(operation: Operation, value: Json) -> bool:
    """Test if a reply with a good status says that something failed, or found nothing: its shape tells nothing."""
    if not isinstance(value, dict):
        return not value
    like = [set(each) for each in operation.errors if isinstance(each, dict)]
    flags = [value.get(name) for name in ("ok", "success")]
    return (
        False in flags or bool(value.get("error")) or set(value) in like or all(each == [] for each in value.values())
    )


def failure_line(failure: object) -> str:
    """Return a failure in one line of at most 300 characters."""
    text = str(failure["failure"]) if isinstance(failure, dict) else str(failure)
    return " ".join(text.split())[:300]


def lines_of(value: Json, name: str = "") -> list[str]:
    """Return a value as lines of words: plain values that stand together are on one line.

    >>> lines_of({"city": "Brest", "days": [{"max": 12.5, "wind": {"kmh": 30}}]})
    ['city: Brest', 'days: max: 12.5; wind kmh: 30']
    """
    name = name.replace("_", " ")
    if isinstance(value, list):
        whole = [line for each in value for line in ([_line(each)] if _is_flat(each) else lines_of(each))]
        return [f"{name}: {line}" if name else line for line in whole]
    if not isinstance(value, dict):
        return [f"{name}: {_plain(value)}" if name else _plain(value)]
    flat = {key: each for key, each in value.items() if _is_flat(each)}
    lines = [_line(flat)] if flat else []
    for key, each in value.items():
        if key not in flat:
            lines += lines_of(each, f"{name} {key}".strip())
    return [f"{name}: {line}" if name and at == 0 and flat else line for at, line in enumerate(lines)]


def _is_flat(value: Json) -> bool:
    """Test if a value fits on a line: nothing within it but plain values, and dicts of them."""
    if isinstance(value, dict):
        return all(_is_flat(each) for each in value.values())
    return not isinstance(value, list) or not any(isinstance(each, dict | list) for each in value)


def _line(value: Json, name: str = "") -> str:
    name = name.replace("_", " ")
    if isinstance(value, dict):
        return "; ".join(_line(each, f"{name} {key}".strip()) for key, each in value.items())
    whole = ", ".join(map(_plain, value)) if isinstance(value, list) else _plain(value)
    return f"{name}: {whole}" if name else whole


def _plain(value: Json) -> str:
    """Return a plain value as JSON writes it, a text without its quotes: so it stands in the reply word for word."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
