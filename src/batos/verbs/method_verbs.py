"""The verbs of methods and of the tools among them, from list to redefine; and texts on what missions learnt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pydantic import Field, JsonValue

from batos.protocol.lent_tools import ToolList
from batos.protocol.method_documents import (
    AccountDocument,
    LateReport,
    MethodDocument,
    MethodHistory,
    MethodList,
    MethodProvenance,
)
from batos.protocol.mission_documents import LearntDocument, ProvenanceDocument
from batos.protocol.wire_messages import Asker, AsOf, Name, StrictModel
from batos.terminal.console import count_text, local_time, moment_text
from batos.terminal.layout import Column, card, listing, wrap
from batos.verbs.trial_verbs import slot_text
from batos.verbs.wire_verb import Noun, WireVerb

#: Longest wish and longest source of a method, in characters.
WISH_LIMIT: Final = 4_000
SOURCE_LIMIT: Final = 64 * 1024


METHOD_NOUN: Final = Noun(
    "method",
    """Show methods, roll one back to a former revision, redefine one, reparent an object. Every revision is kept.

    METHOD is OBJECT.SELECTOR.""",
)


class MethodListArgs(StrictModel):
    """List every slot that ever had a method, or those of OBJECT; and how many methods are still to be made."""

    object: Name | None = Field(default=None, description="Only those of this object, as `inspect` takes it.")
    user: Name | None = Field(default=None, description="Only missions and people that are this user's; absent: all.")
    as_of: AsOf = None


class MethodArgs(StrictModel):
    """A slot that has a method, or had one."""

    method: str = Field(min_length=1, max_length=256, description="OBJECT.SELECTOR, split at the last dot.")


class MethodShowArgs(MethodArgs):
    """Show all of a method: source, verdict, checks, provenance, ledger."""

    revision: int | None = Field(default=None, ge=1, description="The revision; absent: the active, or the last one.")
    user: Name | None = Field(default=None, description="Only missions and people that are this user's; absent: all.")
    as_of: AsOf = None


class MethodHistoryArgs(MethodArgs):
    """Show every revision of a method, the reasons of its start and end, and every change of its slot."""

    user: Name | None = Field(default=None, description="Only people and origins that are this user's; absent: all.")


class MethodMakeArgs(StrictModel):
    """Make the methods that were missing in answered missions; a new question stops this.

    A server and a chat make them by themselves while idle. Exit 0 also when no acceptable method was written: the
    intent is still interpreted.
    """


class MethodRollbackArgs(MethodArgs):
    """Make a former revision active again, from the next mission on; every revision is kept.

    Without --revision: the one before the active one, or, if none is active, the last one.
    """

    revision: int | None = Field(default=None, ge=0, description="The revision; 0: the intent; absent: the one before.")
    user: Asker = Field(default=None, description="The user who decides; absent: the server's own user.")


class MethodRedefineArgs(MethodArgs):
    """Make a new revision of a method, from a wish, a source, or both; audited and checked like any other.

    The revision is active from the next mission on. The former one is kept: `batos method rollback` restores it.
    """

    wish: str | None = Field(
        default=None,
        min_length=1,
        max_length=WISH_LIMIT,
        description="The new intent; alone: a model writes it.",
    )
    source: str | None = Field(default=None, min_length=1, max_length=SOURCE_LIMIT, description="The new source.")
    checks: list[dict[str, JsonValue]] | None = Field(
        default=None, min_length=1, max_length=16, description="Checks of the source; absent: the present ones."
    )
    user: Asker = Field(default=None, description="The user who decides; absent: the server's own user.")


class MethodReparentArgs(StrictModel):
    """Let an object of the image delegate to others, in this order, from the next mission on.

    Its parents answer what it has no slot for. The former parents are kept: `batos slot show OBJECT.parents` lists
    them, and `batos undo OBJECT.parents` brings the last ones back.
    """

    object: Name = Field(description="A tool, a made object, or oid:0x2a; none that the codex declares.")
    parents: list[Name] = Field(min_length=1, max_length=16, description="The objects that it delegates to, in order.")
    why: str = Field(default="", max_length=500, description="The reason, in a sentence.")
    user: Asker = Field(default=None, description="The user who decides; absent: the server's own user.")


class ToolsArgs(StrictModel):
    """List the tools: methods that can be called, functions that programs lend to missions, and files of the home.

    Each stands with who wrote it. A file of the home's folder `tools` that cannot be used stands with its error.
    """

    user: Asker = Field(default=None, description="Only tools that this user's programs lend.")


def methods_text(told: MethodList) -> str:
    """List slots, a line each: which revision acts there, how often it was used, and what it is worth."""
    columns: Mapping[str, Column] = {
        "method": "method", "kind": "kind", "state": "state",
        "revision": lambda each: f"{each['active'] or 'none'} of {each['revisions']}",
        "uses": "calls", "bad": "bad",
        "tokens saved": lambda each: "" if each["tokens_saved"] is None else each["tokens_saved"],
        "why it went": lambda each: each["reason"] or "",
    }  # fmt: skip
    count = told["waiting"]
    waits = f"{count_text(count, 'method')} {'waits' if count == 1 else 'wait'} to be made: `batos method make`."
    if not count:
        none = "There is no method yet: missing methods are made after an answer (`batos method make`: at once)."
        return listing(told["methods"], columns, none)
    return f"{listing(told['methods'], columns)}\n{waits}" if told["methods"] else f"There is no method yet; {waits}"


#: The columns of tools that people wrote.
_WRITTEN: Final[Mapping[str, Column]] = {
    "tool": "tool", "kind": "kind", "by": "by", "from": "place",
    "does": lambda each: "" if each["error"] else "reads" if each["reads"] else "may change something",
    "what it does": lambda each: each["error"] or each["what"],
}  # fmt: skip


def tools_text(told: ToolList) -> str:
    """List tools, a line each: what it is for, and how it is called."""
    columns: Mapping[str, Column] = {
        "tool": "tool", "called as": "signature", "uses": "calls", "by": "by",
        "what it does": lambda each: " ".join(each["what"].split()),
    }  # fmt: skip
    parts = []
    if told["tools"]:
        note = "None of them reaches a network, a file or another program: they compute, ask and recall."
        parts.append(f"{listing(told['tools'], columns)}\n{note}")
    if told["written"]:
        parts.append(listing(told["written"], _WRITTEN, ""))
    return "\n\n".join(parts) or "There are no tools yet: BRICK's Gadget Generation makes them."


def made_text(told: LateReport) -> str:
    """Write which methods were made."""
    return "\n".join(after_lines(told)) or "There is nothing to make."


def rolled_back_text(found: MethodDocument) -> str:
    """Write which revision acts from now on."""
    now = f"revision {found['active']} is active" if found["active"] else "the intent is interpreted"
    return f"{found['method']}: {now} from the next mission on."


def method_text(method: MethodDocument) -> str:
    """Write a whole method; its source last, so that it can be read as it is."""
    return f"{card(_heads(method))}\n\n{str(method['source']).rstrip(chr(10))}"


def _heads(method: MethodDocument) -> Iterator[tuple[str, str]]:
    acts = "is active" if method["active"] == method["revision"] else _acting(method)
    yield "method", f"{method['method']} ({method['kind']}), {method['state']}"
    yield "revision", f"{method['revision']} of {method['revisions']}: {acts}"
    yield "intent", wrap(method["intent"], "").strip()
    provenance = method["provenance"]
    yield "made", f"{moment_text(provenance['at'])} by {_maker(provenance)}"
    yield from (("read", wrap(change, "").strip()) for change in provenance.get("written", ()))
    yield "trust", f"{provenance['trust']}{_approval_text(provenance)}"
    if provenance["missions"]:
        yield "for", ", ".join(map(str, provenance["missions"]))
    verdict = method["verdict"]
    yield "verdict", f"{'accepted' if verdict.get('accepted') else 'refused'} by {verdict.get('policy', 'no policy')}"
    yield "checks", _checks(method)
    ledger = method["ledger"]
    yield "ledger", ledger_text(ledger)
    if ledger["better"] is not None:
        yield "saved", f"{ledger['seconds_saved']:g} s and {ledger['tokens_saved']} tokens against its control"
    if method["retired"]:
        yield "retired", f"{method['retired']['at']}: {method['retired']['reason']}"
    if method["barred"]:
        yield "barred", f"it is not made again by the same model for the same intent: {method['barred']}"


def _maker(provenance: MethodProvenance) -> str:
    person = provenance.get("by")
    if not provenance["model"]:
        return str(person or "somebody")
    model = f"{provenance['model']} ({str(provenance['model_digest'])[:12]}) in {provenance['generation']}"
    return f"{model}, as {person} wished" if person else model


def _acting(method: MethodDocument) -> str:
    return f"revision {method['active']} is active" if method["active"] else "none is active, the intent is"


def _approval_text(provenance: MethodProvenance) -> str:
    approval = provenance.get("approval")
    return f", approved as {approval} by {provenance.get('approved_by', 'somebody')}" if approval else ""


def _checks(method: MethodDocument) -> str:
    mutants = method["provenance"].get("mutants") or {}
    told = f"{len(method['checks'])} passed"
    if not mutants.get("made"):
        return told
    return f"{told}; they also catch {mutants['killed']} of {mutants['made']} broken variants"


def ledger_text(ledger: AccountDocument) -> str:
    """Sum up the uses of a revision in one line."""
    if not ledger["calls"]:
        return "never used"
    control = f"{ledger['control']} interpreted as its control"
    ended = f"{count_text(ledger['faults'], 'fault')}, {count_text(ledger['gate_faults'], 'fault')} of the gate"
    undone = f", {ledger['undone']} undone" if ledger["undone"] else ""
    return f"{count_text(ledger['calls'], 'use')}: {ledger['chosen']} chosen, {control}; {ended}{undone}"


def history_text(history: MethodHistory) -> str:
    """List every revision with how it did, then every change of the slot."""
    revisions: Mapping[str, Column] = {
        " revision": lambda each: f"{'*' if each['active'] else ' '}{each['revision']}",
        "made": lambda each: local_time(each["came"]["at"]), "by": lambda each: each["model"] or each["came"]["by"],
        "uses": "calls", "bad": "bad", "why it went": lambda each: each["went"]["reason"] if each["went"] else "",
    }  # fmt: skip
    changes: Mapping[str, Column] = {
        "": "number", "at": lambda each: local_time(each["at"]), "change": "event",
        "revision": lambda each: f"{each['former']} > {each['revision']}", "by": "by", "why": "reason",
    }  # fmt: skip
    head = f"{history['method']} ({history['kind']}), {history['state']}"
    return f"{head}\n\n{listing(history['revisions'], revisions)}\n\n{listing(history['changes'], changes)}"


METHOD_LIST: Final = WireVerb("method_list", MethodListArgs, "method list [OBJECT]", methods_text, reads=True)
METHOD_SHOW: Final = WireVerb("method_show", MethodShowArgs, "method show METHOD", method_text, reads=True)
METHOD_HISTORY: Final = WireVerb("method_history", MethodHistoryArgs, "method history METHOD", history_text, reads=True)
METHOD_ROLLBACK: Final = WireVerb(
    "method_rollback", MethodRollbackArgs, "method rollback METHOD", rolled_back_text, governs=True
)
METHOD_MAKE: Final = WireVerb(
    "method_make", MethodMakeArgs, "method make", made_text, progress="Making {receiver}.{selector} ..."
)
METHOD_REDEFINE: Final = WireVerb(
    "method_redefine", MethodRedefineArgs, "method redefine METHOD", method_text, governs=True
)
METHOD_REPARENT: Final = WireVerb(
    "method_reparent", MethodReparentArgs, "method reparent OBJECT PARENTS...", slot_text, governs=True,
    examples=("batos method reparent oid:0x2a tools_obj traits_obj",),
)  # fmt: skip
TOOLS: Final = WireVerb("tools", ToolsArgs, "tools", tools_text, reads=True)


#: Characters of why something was not learnt.
_WHY: Final = 200
#: The end of a generation, in words that follow its selector; where a method came of it nothing need be said.
_OUTCOMES: Final = {
    "declined": "was not tried again",
    "budget": "was not tried",
    "failed": "failed",
    "left": "was stopped while being written",
}


def ran_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """Tell which methods ran and which intents were interpreted, a line for each way; a method with its revision."""
    ways: dict[str, Counter[str]] = {}
    for each in provenance.get("methods", ()):
        way = each["as"]
        revision = f" {each['revision']}" if way.startswith("method") else ""
        ways.setdefault(way, Counter())[f"{each['selector']}{revision}"] += 1
    for way, selectors in ways.items():
        often = (f"{name} ({count} times)" if count > 1 else name for name, count in selectors.items())
        yield f"ran      {', '.join(often)}: {way}"


def learnt_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """Tell which methods were made, tried and waited for, with the cost, which is no part of the mission's own."""
    generated = provenance.get("generated", ())
    made = [each for each in generated if each["outcome"] in ("installed", "made")]
    if made:
        names = dict.fromkeys(str(each["selector"]) for each in made)
        yield f"learnt   {', '.join(names)}: {_cost(made)}"
    later: list[str] = []
    for each in generated:
        if each["outcome"] == "asked":
            asked = f"it waits for approval (batos approvals {each['approval']})"
            yield f"learnt   {each['selector']}, {asked}: {_cost([each])}"
        elif each["outcome"] == "later":
            later.append(str(each["selector"]))
        elif each["outcome"] in _OUTCOMES:
            how = f"{_OUTCOMES[each['outcome']]}{_reason_text(each)}"
            yield f"learnt   not {each['selector']}: it {how}; {_cost([each])}"
    if later:
        yield f"learnt   later: {', '.join(dict.fromkeys(later))}: interpreted here, made when the answer is out"


def learning_line(provenance: ProvenanceDocument) -> str:
    """Return what methods of a mission have cost so far, as a line; "" where that is nothing."""
    begun = [each for each in provenance.get("generated", ()) if each["calls"]]
    return f"Methods: {_cost(begun)}." if begun else ""


def after_lines(told: LateReport) -> Iterator[str]:
    """Yield lines on the methods made after the answer, and on those still to be made: {made, left}."""
    made = [each for each in told["made"] if each["outcome"] == "installed"]
    if made:
        yield f"Methods now: {', '.join(str(each['selector']) for each in made)} ({_cost(made)})."
    for each in told["made"]:
        if each["outcome"] == "asked":
            yield f"{each['selector']} waits for you: `batos approve {each['approval']}`."
        elif each["outcome"] != "gone" and each not in made:
            yield f"No method: {each['selector']} {_OUTCOMES.get(each['outcome'], 'was not made')}{_reason_text(each)}."
    if told["left"]:
        many = count_text(told["left"], "method")
        yield f"{many} to be made: `batos serve` makes them while idle, `batos method make` at once."


def _reason_text(told: LearntDocument) -> str:
    why = " ".join(str(told["failure"].get("message", "")).split()) if "failure" in told else ""
    return f" ({why if len(why) <= _WHY else f'{why[: _WHY - 3]}...'})" if why else ""


def _cost(generated: Iterable[LearntDocument]) -> str:
    """Return the cost of generations with the mission that began them, else the missions whose own cost it is."""
    told = list(generated)
    calls, tokens = sum(each["calls"] for each in told), sum(each["tokens"] for each in told)
    if calls:
        return f"{count_text(calls, 'call')}, {count_text(tokens, 'token')}, beside what was spent"
    makers = dict.fromkeys(each["mission"] for each in told if "mission" in each)
    return f"paid by {', '.join(makers)}" if makers else "nothing was paid"
