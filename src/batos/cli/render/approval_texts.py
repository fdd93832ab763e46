"""The texts on approvals: a line for each, one of them in full, and the answers that were given."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from batos.terminal.console import count_text
from batos.terminal.layout import JOINERS, plain, table, wrap
from batos.terminal.short_names import local_time, short

#: Characters of a digest that people compare.
_DIGEST: Final = 12
#: Characters of a value of a check that is still shown on its line.
_VALUE: Final = 200
#: The categories of characters that are told by their number, so that nothing of a source that a person is to judge
#: is hidden from them.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


def listing_text(found: Mapping[str, Any], *, whole: bool = False) -> str:
    """List approvals, the answered ones with their status. `whole`: with ids in full, and sources.

    Ids and methods are never shortened to the terminal: the answer is given by them.
    """
    names = short([each["id"] for each in found["approvals"]])
    rows = [[names[each["id"]], _slot(each), _status(each), _time_text(each)] for each in found["approvals"]]
    heads = ["approval", "method", "status", "since"]
    if whole:
        rows = [
            [each["id"], *row[1:], each["digest"][:_DIGEST]] for each, row in zip(found["approvals"], rows, strict=True)
        ]
        heads.append("source")
    return table(rows, heads, whole=(0, 1))


def _status(found: Mapping[str, Any]) -> str:
    who = f" by {found['by']}" if "by" in found else ""
    return f"{found['status']}{who}"


def _time_text(found: Mapping[str, Any]) -> str:
    if found["status"] == "asked":
        waits = len(found["missions"])
        kept = f", {count_text(waits, 'mission')} {'waits' if waits == 1 else 'wait'}" if waits else ""
        return f"{local_time(found['asked_at'])}, until {local_time(found['until'])}{kept}"
    return local_time(found.get("answered_at") or found["until"])


def _slot(found: Mapping[str, Any]) -> str:
    return f"{found['object']}.{found['selector']}"


def whole_text(found: Mapping[str, Any]) -> str:
    """Write one approval with all that an answer needs; its source line by line, with nothing in it hidden."""
    judged = () if found.get("forgets") else _judgement_lines(found)
    return "\n".join([*_head(found), *judged, "", *_source(found), *_change(found), *_to_do(found)])


def _head(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"approval {found['id']}"
    yield f"status   {_status(found)}, {_time_text(found)}"
    if "why" in found:
        yield f"because  {visible(found['why'])}"
    yield f"method   {_slot(found)}, {_takes_the_place(found)}"
    yield f"source   {found['digest']}"
    intent, wish = found.get("intent"), found.get("wish")
    if intent is not None:
        yield f"intent   {visible(intent['name'])} {visible(intent['signature'])}".rstrip()
        yield wrap(visible(intent["text"]), " " * 9)
    if wish:
        yield f"wish     {visible(_plain(wish))}"
    if found["missions"]:
        yield f"for      {', '.join(found['missions'])}"
    made = found["provenance"]
    by = made.get("by") or f"{made.get('model', '?')} ({str(made.get('model_digest', ''))[:_DIGEST]})"
    yield f"made by  {visible(str(by))}, {local_time(made.get('at', '?'))}, trust {made.get('trust', '?')}"


def _takes_the_place(found: Mapping[str, Any]) -> str:
    if found.get("forgets"):
        return f"which forgets {count_text(len(found['forgets']), 'document')}"
    if "revision" in found:
        return f"installed as revision {found['revision']}"
    return f"in the place of revision {found['former']}" if found["former"] else "the first of its intent"


def _judgement_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the guardian's verdict (a whole object has one for each method), the checks, and how sharp they are."""
    verdict, mutants = found["verdict"], found["mutants"]
    several: Mapping[str, Any] = verdict.get("methods") or {}
    for selector, each in several.items():
        yield from _verdict(each, f" of {selector}")
    if not several:
        yield from _verdict(verdict, "")
    yield f"checks   {count_text(len(found['checks']), 'check')}, passed in a cell"
    for check in found["checks"]:
        yield f"         {visible(_plain(check))}"
    if mutants.get("made"):
        made, killed = mutants["made"], mutants.get("killed", 0)
        yield f"mutants  its checks find {killed} of {made} broken variants ({100 * killed / made:.0f} %)"


def _verdict(verdict: Mapping[str, Any], whose: str) -> Iterator[str]:
    said = "accepts it" if verdict.get("accepted") else "refuses it"
    yield f"guardian {said}{visible(whose)}, policy {verdict.get('policy', '?')}"
    for fault in verdict.get("faults", ()):
        yield f"         line {fault['line']}, {fault['rule']}: {visible(str(fault['why']))}"
    slots = verdict.get("slots") or {}
    for name in ("reads", "writes", "mutates", "deletes"):
        if slots.get(name):
            yield f"{name.ljust(8)} {', '.join(map(visible, sorted(slots[name])))}"
    if verdict.get("sends"):
        yield f"sends    {', '.join(map(visible, sorted(verdict['sends'])))}"


def _source(found: Mapping[str, Any]) -> Iterator[str]:
    lines = found["source"].split("\n")
    width = len(str(len(lines)))
    for number, line in enumerate(lines, 1):
        yield f"{number:>{width}}  {visible(line)}".rstrip()


def _change(found: Mapping[str, Any]) -> Iterator[str]:
    if found["diff"] is None:
        return
    yield ""
    yield from (visible(line) for line in found["diff"])
    if not found["diff"]:
        yield f"It is word for word revision {found['former']}."


def _to_do(found: Mapping[str, Any]) -> Iterator[str]:
    if found["status"] == "asked":
        yield ""
        yield f"batos approve {found['id']}"
        yield f"batos reject {found['id']} --why TEXT"


def approved_text(told: Mapping[str, Any], *, served: bool) -> str:
    """Tell which methods were approved, which could not be, and which missions go on."""
    rows = [
        [each["id"], _slot(each), str(each.get("revision", "")), each["digest"][:_DIGEST]] for each in told["approved"]
    ]
    lines = [table(rows, ("approved", "method", "revision", "source"), whole=(0,))] if rows else []
    lines += [f"not approved: {each['error']['message']}" for each in told["refused"]]
    return "\n".join([*lines, *woken_lines(told["woken"], served=served)])


def woken_lines(woken: Sequence[str], *, served: bool) -> list[str]:
    """Tell which missions waited for an answer and go on."""
    how = "goes on" if served else "waits to go on: `batos resume` or `batos serve` runs it"
    return [f"{mission} {how}." for mission in woken]


def visible(text: str) -> str:
    r"""Write each sign that could move a cursor, hide or look like nothing by its number.

    >>> print(visible("a\x1b[31m\u202eb\u200b"))
    a\x1b[31m\u202eb\u200b
    """
    return "".join(_escape(each) if _hides(each) else each for each in text)


def _hides(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN or character in JOINERS or not plain(character)


def _escape(character: str) -> str:
    if character == "\t":
        return "    "
    return character.encode("unicode_escape", "surrogatepass").decode()


def _plain(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"
