"""Use the tools of a mission for its questions: calls within limits, and texts that become evidence.

A mind that answers a question with its tools makes at most three calls of its own, of them two searches. A hit of a
search is no evidence: up to three of the pages that it names are fetched. An equal call is made once in a mission. The
calls end as soon as what is known carries the question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

from pydantic import BaseModel

from batos.agency.look_ups import leaving
from batos.agency.plans import PlannedCall
from batos.agency.toolbox import JoinedTools, Tool, Toolbox, ToolResult, ToolText
from batos.agency.written_tools import as_tool
from batos.concurrency.threads import offload
from batos.genesis import measuring
from batos.inference.schema import Decision
from batos.memory.evidence import Evidence, Passage, rank
from batos.memory.passages import passages
from batos.minds.calls.questions import Question, infer
from batos.minds.context import MindContext
from batos.minds.permission import list_earlier_questions
from batos.minds.results import Task
from batos.minds.tools import calling, choice, question_forms
from batos.minds.tools.arguments import query_of
from batos.minds.tools.calling import AsksModel, NoCall, ToolCall, decide_call, settle_call
from batos.minds.tools.telling import SEEKER
from batos.minds.tools.toolboxes import tools_of
from batos.minds.trace import ToldAnswer
from batos.objects.prototype import Interpreter
from batos.protocol.errors import DecisionInvalid, ObjectError, Refused
from batos.protocol.event_payloads import MISSION_TOOL, MissionTool
from batos.protocol.evidence_documents import ToolUseDocument, WantedCallDocument

#: The most calls, searches, and pages fetched of what these found, for one question.
MOST_SEARCHES, MOST_FETCHES = 2, 3
#: The reason of an answer that is a call, which who asked makes: its result comes with another brief.
HANDED: Final = "it wants a call that who asked makes"
#: The work of reading a letter of a text, as a multiple of copying one.
_READING: Final = 8
#: The most passages of what tools brought that join the evidence for one question.
MOST_PASSAGES: Final = 8
#: Characters of a failure that are told.
_FAILURE: Final = 300


@dataclass(slots=True)
class _Search:
    """The tools of one question, and what they brought so far; `path` is its place in sample paths."""

    context: MindContext
    toolbox: Toolbox
    query: str
    path: str
    known: Sequence[Passage]
    texts: list[ToolText] = field(default_factory=list)
    calls: int = 0
    fetches: int = 0

    async def is_carried(self) -> bool:
        """Test if what is known by now carries the question, in a thread for long texts."""
        texts = [*(each.text for each in self.known), *(each.text for each in self.texts)]
        return await offload(_READING * sum(map(len, texts)), lambda: choice.carries(self.query, texts))

    def keep(self, texts: Sequence[ToolText]) -> None:
        """Keep texts that are new by address and by content."""
        addresses = {each.source for each in self.texts}
        digests = {_digest(each.text) for each in self.texts}
        for each in texts:
            if each.text.strip() and _digest(each.text) not in digests:
                if each.is_hit and each.source in addresses:
                    continue
                self.texts.append(each)
                digests.add(_digest(each.text))
                addresses.add(each.source)


def may_use(context: MindContext) -> bool:
    """Test if a mind may use tools: a mission's own mind that was given some; one within it has its evidence."""
    has_some = context.mission.brief.tool_choice is not None or tools_of(context) is not None
    return not context.mind.inner and context.trace.told is None and has_some


async def hand_over(context: MindContext, interpreter: Interpreter, known: Sequence[Passage]) -> bool:
    """Note the call that the mission ends with, and return whether it wants one.

    Raises: DecisionInvalid: it has to, and no arguments are found.
    """
    brief, question = context.mission.brief, context.mind.question
    if not brief.tool_choice or not brief.tools:
        return False
    must, texts = brief.tool_choice == "required", [each.text for each in known]
    if not (must or choice.asks_for_look(question)) and await offload(
        _READING * sum(map(len, texts)), lambda: choice.carries(question, texts)
    ):
        return False
    tools = tuple(as_tool(each, "asker") for each in brief.tools)
    chosen = choice.ToolChoice(tools, "its words are those of the question", is_clear=len(tools) == 1)
    ask = _ask_model(context, interpreter, f"{context.mind.name}/tools/asker", 0)
    found = await settle_call(question, chosen, _today(context), ask, must=must)
    if isinstance(found, NoCall):
        if must:
            raise DecisionInvalid(found.why, field="tool_choice", remedy="Name in the question what the tool is given.")
        return False
    name, given = found.tool.name, dict(found.arguments)
    context.trace.wanted.append(
        WantedCallDocument(tool=name, arguments=given, why=found.why, written=list(found.written))
    )
    context.trace.note_told(ToldAnswer(HANDED, f"{name} {json.dumps(given, ensure_ascii=False)}"))
    return True


async def find_with_tools(
    context: MindContext, interpreter: Interpreter, asked: tuple[int, str], known: Sequence[Passage], most: int
) -> tuple[Passage, ...]:
    """Return the passages that tools bring for a question beside what is known, by at most `most` calls.

    `asked` is the question with its number: 0 the mind's own, then its sub-queries.

    Raises: ApprovalNeeded: a call waits for a person.
    """
    search = _open(context, asked, known)
    left = list(search.toolbox.tools())
    searches = 0
    while left and search.calls < most and not (search.calls and await search.is_carried()):
        found = await _decide(search, interpreter, left)
        if isinstance(found, NoCall):
            break
        is_search = choice.searches_by_words(found.tool)
        searches += is_search
        await _take(search, found)
        if search.texts and not is_search:
            break
        left = [each for each in left if each.name != found.tool.name]
        left = [each for each in left if choice.searches_by_words(each)] if searches < MOST_SEARCHES else []
    return await _bring(search)


async def make_planned(
    context: MindContext, asked: tuple[int, str], known: Sequence[Passage], calls: Sequence[PlannedCall]
) -> tuple[Passage, ...]:
    """Return the passages that the calls of a plan bring for a question: exactly these are made, and no others."""
    search = _open(context, asked, known)
    tools = {each.name: each for each in search.toolbox.tools()}
    for call in calls:
        gone = Tool(call.name, "", {}, "look_up")
        await _take(search, ToolCall(tools.get(call.name, gone), call.arguments, "the plan has it"))
    return await _bring(search)


async def plan_call(
    context: MindContext, interpreter: Interpreter, asked: tuple[int, str], known: Sequence[Passage]
) -> ToolCall | None:
    """Return the first call that a question would get, which is not made; None: it gets none."""
    search = _open(context, asked, known)
    found = await _decide(search, interpreter, search.toolbox.tools())
    return found if isinstance(found, ToolCall) else None


def _open(context: MindContext, asked: tuple[int, str], known: Sequence[Passage]) -> _Search:
    number, query = asked
    return _Search(context, tools_of(context) or JoinedTools(()), query, f"{context.mind.name}/tools/{number}", known)


async def _take(search: _Search, call: ToolCall) -> None:
    """Make a call, and keep its texts and those of the pages that it found."""
    search.calls += 1
    brought = await _call(search, call, f"{search.path}/{search.calls}")
    search.keep([each for each in brought if not each.is_hit])
    await _fetch(search, call.tool.name, [each for each in brought if each.is_hit])


async def _bring(search: _Search) -> tuple[Passage, ...]:
    size = sum(len(each.text) for each in search.texts)
    return await offload(_READING * size, lambda: _as_passages(search))


def _ask_model(context: MindContext, interpreter: Interpreter, path: str, number: int) -> AsksModel:
    """Return what asks the mind's model about the call of that number at a path."""

    async def ask(step: str, text: str, decision: Decision[BaseModel], fault: Callable[[BaseModel], str]) -> BaseModel:
        task = Task(text, alone=calling.ORDER)
        question = Question(f"{path}/{step}{number}#0", task, is_short=True, is_choice=True, fault=fault)
        value, _ = await infer(interpreter, context, Evidence(), question, decision)
        return value

    return ask


async def _decide(search: _Search, interpreter: Interpreter, tools: Sequence[Tool]) -> ToolCall | NoCall:
    """Decide on the next call. After a first one that did not carry the question, another look-up may."""
    context = search.context
    ask = _ask_model(context, interpreter, search.path, search.calls)
    shown = choice.shown_tools(_billions(context))
    found = await decide_call(search.query, tools, _today(context), ask, await _need(search), shown)
    return _in_own_words(context, found) if isinstance(found, ToolCall) else found


def _in_own_words(context: MindContext, call: ToolCall) -> ToolCall:
    """Return a search whose query has only words of the person's question, where what it asks leaves this machine.

    A sub-query was written by a model, which may have words from what it was shown.
    """
    query = call.arguments.get("query")
    if call.tool.local or not isinstance(query, str):
        return call
    own = leaving.words_of_question(context.mission.brief, list_earlier_questions(context))
    kept = " ".join(each for each in query.split() if leaving.own_word(each, own))
    return replace(call, arguments={**call.arguments, "query": kept or query_of(context.mission.brief.text)})


async def _need(search: _Search) -> choice.Need:
    if search.calls:
        return "look_up"
    if await search.is_carried():
        return "carried"
    return "look_up" if SEEKER in search.context.mission.route.personas else "open"


async def _call(search: _Search, call: ToolCall, path: str) -> Sequence[ToolText]:
    """Make a call at a path, or take the result of the equal one before; tell and note it, and return its texts."""
    made = search.context.trace.tool_results
    print_ = fingerprint(call.tool.name, call.arguments)
    again = print_ in made
    if not again:
        made[print_] = await _ask_toolbox(search.toolbox, call.tool.name, call.arguments, path)
    result = made[print_]
    _note(search, path, call, result, again=again)
    return result.texts


async def _ask_toolbox(toolbox: Toolbox, name: str, arguments: Mapping[str, Any], path: str) -> ToolResult:
    """Return the result of a call; one that goes beyond its grant, or whose arguments no tool takes, is a failure.

    The address of a hit is a stranger's: it may be too long, or none.
    """
    try:
        return await toolbox.call(name, arguments, path)
    except (ObjectError, Refused) as refused:
        return ToolResult(failure=f"{refused.message} {refused.remedy}".strip())


async def _fetch(search: _Search, by: str, hits: Sequence[ToolText]) -> None:
    """Fetch the pages that a search by that tool found, one after another until they carry the question."""
    known = {each.source for each in search.texts}
    for hit in hits:
        tool = fetcher_of(search.toolbox.tools(), by, hit.source)
        if tool is None or search.fetches >= MOST_FETCHES or (search.texts and await search.is_carried()):
            return
        if hit.source in known:
            continue
        known.add(hit.source)
        search.fetches += 1
        call = ToolCall(tool, {next(_address_arguments(tool)): hit.source}, "the search found it")
        search.keep(await _call(search, call, f"{search.path}/{search.calls}/page{search.fetches}"))


def fetcher_of(tools: Sequence[Tool], search: str, source: str) -> Tool | None:
    """Return what fetches a hit of a search: of the same look-up, else any tool that takes addresses; None: nothing."""
    fetchers = [each for each in tools if each.reads and list(_address_arguments(each))]
    own = [each for each in fetchers if each.name.rpartition(".")[0] == search.rpartition(".")[0] != ""]
    return next(iter(own or (fetchers if question_forms.ADDRESS.fullmatch(source) else ())), None)


def _address_arguments(tool: Tool) -> Iterator[str]:
    """Yield the argument of a tool that takes an address, or a path, and needs nothing else."""
    properties = question_forms.properties_of(tool)
    needed = question_forms.list_required(tool)
    if len(needed) == 1 and question_forms.form_of(needed[0], properties.get(needed[0], {})) in ("address", "path"):
        yield needed[0]


def fingerprint(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the digest of a call: equal calls have equal ones."""
    return _digest(json.dumps([name, dict(arguments)], sort_keys=True, ensure_ascii=False, default=str))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _note(search: _Search, path: str, call: ToolCall, result: ToolResult, *, again: bool) -> None:
    """Note a call for provenance, and tell it."""
    used = ToolUseDocument(
        path=path,
        tool=call.tool.name,
        query=search.query,
        arguments=dict(call.arguments),
        why=call.why,
        written=list(call.written),
        texts=[{"title": each.title, "source": each.source, "at": each.at, "trust": each.trust, "hit": each.is_hit}
               for each in result.texts],
        failure=result.failure[:_FAILURE],
        again=again,
    )  # fmt: skip
    context = search.context
    context.trace.tools.append(used)
    told = MissionTool(
        mission=context.mission.id, path=path, tool=call.tool.name, texts=len(result.texts), failure=used["failure"]
    )
    context.io.events.emit(MISSION_TOOL, told)


def _as_passages(search: _Search) -> tuple[Passage, ...]:
    """Return the passages of the texts that say most about the question, in the order of their files."""
    found: list[Passage] = []
    for each in search.texts:
        name = calling.one_line(each.title)[:120] or each.source
        found += [
            replace(passage, trust=each.trust, source=each.source, day=each.at[:10])
            for passage in passages([(name, _digest(each.text), each.text)])
        ]
    best = rank([replace(each, number=number) for number, each in enumerate(found, 1)], search.query)[:MOST_PASSAGES]
    return tuple(sorted(best, key=lambda each: each.number))


def _billions(context: MindContext) -> float:
    """Return the billions of parameters of a mind's model; 0 where they are not known."""
    root, model = context.mission.root, context.mind.thinking.model
    measure = measuring.recorded_measures(root).get(measuring.base_of(root, model))
    return 0.0 if measure is None else measure.parameters / 1e9


def _today(context: MindContext) -> date:
    """Return the day on which a mission's question was asked."""
    return date.fromisoformat(context.mission.shared.asked_at[:10])
