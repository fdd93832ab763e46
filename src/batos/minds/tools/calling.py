"""Decide on the call of a tool in at most two calls of a model: which tool, and the arguments that no rule found.

The kernel decides whether; the model picks one of a few by an enum with `none`, and fills what is missing by that
tool's schema. The arguments are checked; a fault that comes again ends in no call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import BaseModel, Field, create_model

from batos.agency.toolbox import Tool
from batos.concurrency.threads import offload
from batos.inference.schema import Decision
from batos.minds.tools import arguments, choice, question_forms
from batos.minds.tools.choice import Need, ToolChoice
from batos.protocol.errors import AnswerCut, AnswerUnreadable, DecisionInvalid, Runaway

#: The line before both questions.
ORDER: Final = "Choose a tool for the request, and take what it is given from the request alone."
#: The choice of no tool; it stands last among those that are shown.
NONE: Final = "none"
#: Errors that say only that a model's words were of no use.
_USELESS: Final = (AnswerCut, AnswerUnreadable, DecisionInvalid, Runaway)
#: The work of a first choice, in letters that are copied: it is made in a thread.
_FIRST: Final = 2**24
#: Characters of an argument that a model writes.
_WRITTEN: Final = 120


class AsksModel(Protocol):
    """Asks a model for one decision about a tool, at temperature 0."""

    async def __call__(
        self, step: str, text: str, decision: Decision[BaseModel], fault: Callable[[BaseModel], str]
    ) -> BaseModel:
        """Return the decision. `step` names its place; `fault` gives the reason why a valid one is of no use.

        Raises: DecisionInvalid and its like: the model gave none, asked twice.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that is to be made, the reason for the tool, and the names of the arguments that a model wrote."""

    tool: Tool
    arguments: Mapping[str, Any]
    why: str
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoCall:
    """No call, and why."""

    why: str


async def decide_call(
    question: str, tools: Sequence[Tool], today: date, ask: AsksModel, need: Need = "open", most: int = 3
) -> ToolCall | NoCall:
    """Return the call of a tool that a question wants, or why there is none. `most` tools are shown to a model."""
    # The patterns of all words are made at first, which takes too long for the loop.
    chosen = await offload(_FIRST, lambda: choice.choose(question, tools, today, need, most))
    return await settle_call(question, chosen, today, ask) if chosen.candidates else NoCall(chosen.why)


async def settle_call(
    question: str, chosen: ToolChoice, today: date, ask: AsksModel, *, must: bool = False
) -> ToolCall | NoCall:
    """Return the call of one of the tools that come into question, or why there is none; a model that `must` picks."""
    tool, why = chosen.candidates[0], chosen.why
    if not chosen.is_clear:
        picked = await _pick(question, chosen.candidates, ask, must=must)
        if picked is None:
            return NoCall("the model found that no tool fits")
        tool, why = picked, "the model picked it"
    bound = arguments.bind(question, tool, question_forms.list_required(tool), today)
    values = dict(bound.values)
    if bound.missing:
        try:
            values |= await _fill(question, tool, bound, ask)
        except _USELESS as useless:
            return NoCall(f"no arguments were found for {tool.name}: {useless.message}")
    faults = arguments.faults_of(tool, values, question)
    return (
        NoCall(f"the arguments of {tool.name} are not valid: {faults[0]}")
        if faults
        else ToolCall(tool, values, why, bound.missing)
    )


async def _pick(question: str, candidates: Sequence[Tool], ask: AsksModel, *, must: bool) -> Tool | None:
    """Return the tool that a model picks; the first of the ranking where its words are of no use."""
    shown = sorted(candidates, key=lambda each: each.name)
    listed = "\n".join(f"- {each.name}: {one_line(each.purpose)}" for each in shown)
    beside = "" if must else f"\n- {NONE}: no tool of these is what the request needs"
    text = f"Tools:\n{listed}{beside}\n\nRequest: {one_line(question)}\n\n"
    shape = _pick_of((*(each.name for each in shown), *(() if must else (NONE,))))
    try:
        value = await ask("which", f"{text}Which tool does the request need?", shape, lambda _: "")
    except _USELESS:
        return candidates[0]
    picked = value.model_dump()["pick"]
    return next((each for each in shown if each.name == picked), None)


@lru_cache(maxsize=64)
def _pick_of(names: tuple[str, ...]) -> Decision[BaseModel]:
    pick: Any = (Literal[names], ...)
    shape: type[BaseModel] = create_model("Pick", pick=pick)
    return Decision(shape)


async def _fill(question: str, tool: Tool, bound: arguments.BoundArguments, ask: AsksModel) -> Mapping[str, Any]:
    """Return the arguments that no rule found, as a model writes them. Raises: DecisionInvalid: it gave none valid."""
    properties = question_forms.properties_of(tool)
    decision = Decision(_model_of({name: properties[name] for name in bound.missing}))

    def fault(value: BaseModel) -> str:
        found = arguments.faults_of(tool, {**bound.values, **value.model_dump()}, question)
        return found[0] if found else ""

    about = "\n".join(f"- {name}: {_about(name, properties[name])}" for name in bound.missing)
    text = f"Request: {one_line(question)}\n\n{one_line(tool.purpose)} It is given:\n{about}\n\n"
    text += "Take each from the request, in its own words, as short as can be."
    return (await ask("with", text, decision, fault)).model_dump()


def _about(name: str, schema: Mapping[str, Any]) -> str:
    about = str(schema.get("description", "")) or name.replace("_", " ")
    values = ", ".join(map(str, schema.get("enum", ())))
    return f"{about} ({values})" if values else about


def _model_of(properties: Mapping[str, Mapping[str, Any]]) -> type[BaseModel]:
    """Return the shape of the arguments that are asked for: all required and bounded."""
    fields: dict[str, Any] = {name: (_type_of(schema), ...) for name, schema in properties.items()}
    made: type[BaseModel] = create_model("Arguments", **fields)
    return made


def _type_of(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    kind = schema.get("type")
    if kind == "boolean":
        return bool
    if kind == "integer":
        return int
    if kind == "number":
        return float
    return Annotated[str, Field(max_length=min(_WRITTEN, int(schema.get("maxLength", _WRITTEN))))]


def one_line(text: str) -> str:
    """Return a text on one line: no line of a question can be taken for one of a list."""
    return " ".join(text.split())
