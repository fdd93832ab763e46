"""Python functions as tools: what each declares, by signature and docstring, and the calls that missions make."""

from __future__ import annotations

import asyncio
import inspect
import re
import secrets
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from batos.client.pending import Asks, OnEvent, nobody
from batos.protocol.errors import BatosError, BriefError
from batos.protocol.lent_tools import (
    FAILURE_LIMIT,
    KEYWORDS,
    PURPOSE_LIMIT,
    RESULT_BYTES,
    CallOutcome,
    ToolDeclaration,
    check_parameter,
)

F = TypeVar("F", bound=Callable[..., object])

#: The attribute of a function that is marked: True: it changes nothing; False: it is a tool all the same.
_MARK: Final = "__batos_reads__"


class CallFailed(Exception):
    """A call that brought nothing, for a reason in one line; `ran` is False where the function was not begun."""

    def __init__(self, reason: str, *, ran: bool = True) -> None:
        line = " ".join(reason.split())
        super().__init__(line if len(line) <= FAILURE_LIMIT else f"{line[: FAILURE_LIMIT - 1]}…")
        self.ran = ran


class CallTimedOut(CallFailed):
    """A call that did not end in its time: its function may still be at work."""


def read(function: F) -> F:
    """Mark a function as one that changes nothing in the world, and return it."""
    setattr(function, _MARK, True)
    return function


def tool(function: F) -> F:
    """Mark a function of a file in the home's `tools/` as a tool that may change something, and return it."""
    setattr(function, _MARK, False)
    return function


def is_marked(value: object) -> bool:
    """Test if a value is a function that `read` or `tool` marked."""
    return inspect.isroutine(value) and hasattr(value, _MARK)


@dataclass(frozen=True, slots=True)
class ToolFunction:
    """A function with its declaration; `types` has the type of each parameter, `absent` those that None stands for."""

    declaration: ToolDeclaration
    function: Callable[..., object]
    types: Mapping[str, TypeAdapter[Any]]
    absent: frozenset[str]

    async def run(self, arguments: Mapping[str, object], seconds: float) -> str:
        """Run the function, one that is not asynchronous in a thread, and return its result as text or as JSON.

        Raises: CallFailed: the arguments do not fit, it raised, or its result is no JSON or too large. CallTimedOut.
        """
        given = self._read(arguments)
        work = asyncio.ensure_future(self._call(given))
        try:
            done, _ = await asyncio.wait({work}, timeout=seconds)
        finally:
            work.cancel()
        if not done:
            raise CallTimedOut(f"{self.declaration.name} did not end within {seconds:g} s")
        if work.cancelled():
            raise CallFailed(f"{self.declaration.name} was cancelled")
        return as_text(work.result())

    async def _call(self, given: Mapping[str, object]) -> object:
        try:
            if inspect.iscoroutinefunction(self.function):
                return await self.function(**given)
            return await asyncio.to_thread(_run, self.function, given)
        except CallFailed:
            raise
        except (Exception, SystemExit) as error:  # whatever a function raises is a reason, and ends no program
            raise CallFailed(f"{type(error).__name__}: {error}") from error

    def _read(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return arguments as the function's own types. Raises: CallFailed: they do not fit it."""
        unknown = arguments.keys() - self.types.keys()
        missing = [each for each in self.declaration.parameters.get("required", ()) if each not in arguments]  # type: ignore[union-attr]
        if unknown or missing:
            raise CallFailed(f"there is no {', '.join(sorted(unknown)) or f'value for {missing[0]}'}", ran=False)
        given: dict[str, object] = dict.fromkeys(self.absent)
        for name, value in arguments.items():
            try:
                given[name] = self.types[name].validate_python(value)
            except ValidationError as error:
                raise CallFailed(f"{name}: {error.errors(include_url=False)[0]['msg']}", ran=False) from None
        return given


def _run(function: Callable[..., object], given: Mapping[str, object]) -> object:
    """Run a function in a thread; what it raises is carried out as a reason, which StopIteration could not be."""
    try:
        return function(**given)
    except (Exception, SystemExit) as error:  # as above
        raise CallFailed(f"{type(error).__name__}: {error}") from error


def as_text(value: object) -> str:
    """Return a result as text: a text as it is, another value as JSON. Raises: CallFailed: it is neither, or too large.

    >>> as_text("18 degrees"), as_text({"degrees": 18})
    ('18 degrees', '{"degrees":18}')
    """
    try:
        data = value.encode("utf-8", "replace") if isinstance(value, str) else to_json(value, inf_nan_mode="null")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise CallFailed(f"its result is no JSON: {error}") from None
    text = data.decode()
    if (size := len(to_json(text))) > RESULT_BYTES:  # as it crosses the wire
        raise CallFailed(f"its result has {size:,} bytes of JSON, at most {RESULT_BYTES:,} are taken")
    return text


def declare(function: Callable[..., object]) -> ToolFunction:
    """Return a function with what it declares: its name, the first sentence of its docstring, and its parameters.

    Raises: BriefError: it cannot be a tool; the error names the function and the parameter.
    """
    name = str(getattr(function, "__name__", type(function).__name__))
    types, absent, schemas, required = dict[str, TypeAdapter[Any]](), set[str](), dict[str, object](), list[str]()
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise _no_tool(name, f"its signature cannot be read: {error}") from error
    for each, parameter in parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise _no_tool(name, f"{parameter} cannot be given by name")
        if each not in hints:
            raise _no_tool(name, f"the parameter {each} has no type")
        hint, is_optional = _without_none(hints[each])
        types[each], schemas[each] = _type_of(name, each, hint)
        if parameter.default is parameter.empty and not is_optional:
            required.append(each)
        elif parameter.default is parameter.empty:
            absent.add(each)
    whole = {"type": "object", "properties": schemas, "required": required, "additionalProperties": False}
    told = {"name": name, "purpose": _purpose(name, function), "parameters": whole}
    try:
        declared = ToolDeclaration.model_validate({**told, "reads": bool(getattr(function, _MARK, False))})
    except ValidationError as error:
        raise _no_tool(name, error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")) from None
    return ToolFunction(declared, function, types, frozenset(absent))


def _purpose(name: str, function: Callable[..., object]) -> str:
    """Return the first sentence of a function's docstring. Raises: BriefError: it has none."""
    first = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?])\s", first, maxsplit=1)[0]
    if not sentence:
        raise _no_tool(name, "it has no docstring, and nothing says what it is for")
    return sentence if len(sentence) <= PURPOSE_LIMIT else f"{sentence[: PURPOSE_LIMIT - 1]}…"


def _without_none(hint: object) -> tuple[object, bool]:
    """Return a type without None, and whether it had it: `Annotated[str | None, "..."]` is `Annotated[str, "..."]`."""
    if get_origin(hint) is Annotated:
        bare, *more = get_args(hint)
        inner, is_optional = _without_none(bare)
        return Annotated[inner, *more], is_optional
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
    if type(None) not in kinds:
        return hint, False
    return Union[tuple(each for each in kinds if each is not type(None))], True  # noqa: UP007


def _type_of(function: str, name: str, hint: Any) -> tuple[TypeAdapter[Any], dict[str, object]]:
    """Return the type of a parameter, and its schema. Raises: BriefError: it is no flat value."""
    try:
        adapter = TypeAdapter[Any](hint)
        schema = _plain(adapter.json_schema())
        check_parameter(schema)
    except (PydanticUserError, ValueError, TypeError) as error:
        why = error if isinstance(error, ValueError) else "its type has no JSON"
        remedy = "Take str, int, float, bool, a Literal of one kind, or a list of one of these."
        raise _no_tool(function, f"the parameter {name}: {why}", remedy) from None
    notes = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, str)]
    return adapter, {**schema, "description": " ".join(notes[0].split())} if notes else schema


def _plain(schema: Mapping[str, Any]) -> dict[str, object]:
    """Return a schema without titles, and with a constant as a choice of one."""
    told = {key: value for key, value in schema.items() if key not in ("title", "const", "description")}
    if "const" in schema:
        told["enum"] = [schema["const"]]
    if isinstance(items := told.get("items"), Mapping):
        told["items"] = _plain(items)
    if not KEYWORDS.issuperset(told) or told.get("format") == "binary":
        raise ValueError("it must be a text, a number, a truth value, or a list of one of these")
    return told


def _no_tool(name: str, why: str, remedy: str = "") -> BriefError:
    advice = remedy or "Give each parameter a type, and the function a docstring and a name."
    return BriefError(f"{name} cannot be a tool: {why}", field="tools", remedy=advice)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that a mission wants to make of a function, as `approve` gets it.

    `from_external`: an argument derives from a document, a page or a tool's reply, and not from the question.
    """

    tool: str
    arguments: Mapping[str, Any]
    reads: bool
    from_external: bool


#: Decides about a call: True lets it happen. A function that is not asynchronous runs in a thread, and may wait for a
#: person.
Approve: TypeAlias = Callable[[ToolUse], bool | Awaitable[bool]]


def always(_call: ToolUse) -> bool:
    """Return True: every call may happen, whatever it changes and wherever its arguments come from."""
    return True


class ToolCalls:
    """The functions that a program lends to one mission. A call that is asked for again is not made again.

    Raises: BriefError: a function cannot be a tool, or may change something and nothing approves its calls.
    """

    def __init__(
        self, functions: Sequence[Callable[..., object]], approve: Approve | None, ask: Asks, on_event: OnEvent | None
    ) -> None:
        declared = [declare(each) for each in functions]
        self._functions = {each.declaration.name: each for each in declared}
        self._approve, self._ask, self._on_event = approve, ask, on_event or nobody
        self.declarations = [each.declaration.model_dump() for each in declared]
        for each in declared if approve is None else ():
            if not each.declaration.reads:
                raise BriefError(
                    f"{each.declaration.name} may change something, and nothing approves its calls",
                    field="tools",
                    remedy="Mark it with @batos.read if it only reads, or give approve= (batos.always: each call).",
                )
        #: The name under which the server knows this asker, and nobody else does.
        self.caller = secrets.token_hex(16)
        self._made: dict[str, asyncio.Task[tuple[CallOutcome, str]]] = {}
        self._telling: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        """Begin to make calls."""
        return self

    async def __aexit__(self, *_raised: object) -> None:
        """Make no more calls: the mission has ended, or nobody waits for it."""
        tasks = (*self._telling.values(), *self._made.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def on_event(self, event: str, keys: Mapping[str, Any]) -> None:
        """Make the call that an event asks for, and pass every event on."""
        if event == "mission.tool_call":
            call = str(keys["call"])
            if call not in self._made:
                self._made[call] = asyncio.ensure_future(self._make(keys))
            if call not in self._telling or self._telling[call].done():
                self._telling[call] = asyncio.ensure_future(self._tell(call, self._made[call]))
        self._on_event(event, keys)

    async def _tell(self, call: str, made: asyncio.Task[tuple[CallOutcome, str]]) -> None:
        """Send the server the result of a call. A server that is not reached now asks again, and gets it then."""
        outcome, text = await asyncio.shield(made)
        with suppress(BatosError):
            await self._ask("tool_result", {"caller": self.caller, "call": call, "outcome": outcome, "text": text})

    async def _make(self, keys: Mapping[str, Any]) -> tuple[CallOutcome, str]:
        """Make a call and return its outcome with its result, or with the reason why there is none."""
        tool, is_file = str(keys["tool"]), bool(keys["is_file"])
        found = None if is_file else self._functions.get(tool)
        if found is None and not is_file:
            return "refused", f"the program has no function {tool!r}"
        reads = bool(keys["reads"]) if found is None else found.declaration.reads
        call = ToolUse(tool, dict(keys["arguments"]), reads, bool(keys["from_external"]))
        if objection := await self._objection(call):
            return "refused", objection
        if found is None:
            return "done", ""
        try:
            return "done", await found.run(call.arguments, float(keys["seconds"]))
        except CallTimedOut as error:
            return "failed" if found.declaration.reads else "unknown", str(error)
        except CallFailed as error:
            return "failed" if error.ran else "refused", str(error)

    async def _objection(self, call: ToolUse) -> str:
        """Return why a call may not be made; "" if it may."""
        if call.reads and not call.from_external:
            return ""
        if self._approve is None:
            return "it needs a yes (what it changes, or where its arguments are from), and there is no approve="
        try:
            if inspect.iscoroutinefunction(self._approve):
                said = await self._approve(call)
            else:
                said = await asyncio.to_thread(self._approve, call)
        except Exception as error:  # who cannot decide has not approved
            return f"approve= raised {type(error).__name__}: {error}"[:300]
        return "" if said is True else "the person who was asked said no"
