"""Methods as people read them: lists, one method whole, its history, the tools there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from batos.protocol.method_documents import (
    AccountDocument,
    MethodDocument,
    MethodHistory,
    MethodLine,
    MethodProvenance,
    ToolLine,
)
from batos.terminal.console import count_text
from batos.terminal.layout import table, wrap
from batos.terminal.short_names import local_time, moment_text


def list_text(lines: Sequence[MethodLine]) -> str:
    """List slots, a line each: which revision acts there, how often it was used, and what it is worth."""
    rows = [
        [
            line["method"],
            line["kind"],
            line["state"],
            f"{line['active']} of {line['revisions']}" if line["active"] else f"none of {line['revisions']}",
            str(line["calls"]),
            str(line["bad"]),
            _saved_text(line),
            line["reason"] or "",
        ]
        for line in lines
    ]
    return table(rows, ("method", "kind", "state", "revision", "uses", "bad", "tokens saved", "why it went"))


def tools_text(lines: Sequence[ToolLine]) -> str:
    """List tools, a line each: what it is for, and how it is called."""
    rows = [[line["tool"], line["signature"], str(line["calls"]), _line(line["what"])] for line in lines]
    return table(rows, ("tool", "called as", "uses", "what it does"))


def method_text(method: MethodDocument) -> str:
    """Write a whole method; its source last, so that it can be read as it is."""
    return "\n".join([*_heads(method), "", str(method["source"]).rstrip("\n")])


def _heads(method: MethodDocument) -> Iterator[str]:
    acts = "is active" if method["active"] == method["revision"] else _acting(method)
    yield f"method   {method['method']} ({method['kind']}), {method['state']}"
    yield f"revision {method['revision']} of {method['revisions']}: {acts}"
    yield f"intent   {wrap(method['intent'], ' ' * 9).strip()}"
    provenance = method["provenance"]
    yield f"made     {moment_text(provenance['at'])} by {_maker(provenance)}"
    for change in provenance.get("written", ()):
        yield f"read     {wrap(change, ' ' * 9).strip()}"
    yield f"trust    {provenance['trust']}{_approval_text(provenance)}"
    missions = provenance["missions"]
    if missions:
        yield f"for      {', '.join(map(str, missions))}"
    verdict = method["verdict"]
    yield f"verdict  {'accepted' if verdict.get('accepted') else 'refused'} by {verdict.get('policy', 'no policy')}"
    yield f"checks   {_checks(method)}"
    ledger = method["ledger"]
    yield f"ledger   {ledger_text(ledger)}"
    if ledger["better"] is not None:
        yield f"saved    {ledger['seconds_saved']:g} s and {ledger['tokens_saved']} tokens against its control"
    if method["retired"]:
        yield f"retired  {method['retired']['at']}: {method['retired']['reason']}"
    if method["barred"]:
        yield f"barred   it is not made again by the same model for the same intent: {method['barred']}"


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
    rows = [
        [
            f"{'*' if line['active'] else ' '}{line['revision']}",
            local_time(line["came"]["at"]),
            line["model"] or line["came"]["by"],
            str(line["calls"]),
            str(line["bad"]),
            line["went"]["reason"] if line["went"] else "",
        ]
        for line in history["revisions"]
    ]
    changes = [
        [
            str(line["number"]),
            local_time(line["at"]),
            line["event"],
            f"{line['former']} > {line['revision']}",
            line["by"],
            line["reason"],
        ]
        for line in history["changes"]
    ]
    head = f"{history['method']} ({history['kind']}), {history['state']}"
    revisions = table(rows, (" revision", "made", "by", "uses", "bad", "why it went"))
    return f"{head}\n\n{revisions}\n\n{table(changes, ('', 'at', 'change', 'revision', 'by', 'why'))}"


def _saved_text(line: Mapping[str, Any]) -> str:
    return "" if line["tokens_saved"] is None else str(line["tokens_saved"])


def _line(text: str) -> str:
    return " ".join(text.split())
