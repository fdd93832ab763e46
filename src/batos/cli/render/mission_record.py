"""The records of missions as text: their calls with their costs, the turns of a conversation, a tree of reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, Final

from batos.cli.render.mission import changes_lines, cost_text, moment, notes_text, placements, states_text
from batos.protocol.errors import NotFound
from batos.protocol.evidence_documents import FocusDocument, PromptDocument
from batos.protocol.image_documents import ConversationPage, WhyNode
from batos.protocol.mission_documents import MissionDocument, ProvenanceDocument, StateDocument
from batos.terminal.console import count_text, local_time, moment_text
from batos.terminal.layout import cut, lay_out, reveal, table, wrap
from batos.verbs.method_verbs import learnt_lines, ran_lines

#: The question of a mission that was erased, as the image has it.
ERASED: Final = "[erased]"
#: The words for missions that nobody works on.
_STANDS = {
    "queued": "no server runs; `batos resume` or `batos serve` runs it",
    "running": "the process that ran it has ended; `batos resume` goes on with it",
}
#: Fields of a brief that are shown as they stand, with what they are called here.
_WISHES = {
    "persona": "persona",
    "effort": "effort",
    "model": "model",
    "temperature": "temperature",
    "seed": "seed",
    "system": "system",
    "schema": "schema",
    "deadline": "deadline",
    "priority": "priority",
    "in_reply_to": "replies",
    "ancestor": "ancestor",
    "budget": "budget",
    "policy": "policy",
    "message": "message",
    "origin": "through",
}


def mission_text(mission: MissionDocument, *, voices: bool, served: bool = False) -> str:
    """Write a mission read back; `served` by a server, which runs what waits. Calls are told where they belong."""
    reason = mission.get("reason")
    lines = [*_question_lines(mission), "", wrap(mission["brief"]["text"]), ""]
    if not served and mission["status"] in _STANDS:
        # Whoever reads this holds the image, so nobody is working on it.
        lines.append(f"stands   {_STANDS[mission['status']]}")
    if reason is not None:
        lines += [f"reason   {reason['message']}", f"remedy   {reason['remedy']}"]
    if "answer" in mission:
        provenance = mission["provenance"]
        lines += [str(mission["answer"]), "", notes_text(mission, voices=voices, named=True)]
        lines += [] if voices else changes_lines(provenance)
        lean = {name for name, form in provenance.get("forms", {}).items() if form == "lean"}
        lines += [
            f"model    {name} ({digest[:12]}){', prompts in lean form' if name in lean else ''}"
            for name, digest in provenance["models"].items()
        ]
        lines += [f"trust    {mission['trust']['answer']}, lineage {mission['trust']['lineage']}"]
        lines += [f"read at  {provenance['read_at']}"]
    else:
        known = mission.get("provenance", ProvenanceDocument())
        is_erased = mission["brief"]["text"] == ERASED
        spent = "its record was erased; the digests of its calls are kept" if is_erased else cost_text(mission)
        lines += [*ran_lines(known), f"spent    {spent}", *learnt_lines(known), *placements(known)]
        lines.append(f"states   {states_text(mission) or 'none'}")
    return "\n".join([*lines, *_times(mission["states"]), *_calls(mission.get("prompts", ()))])


def _question_lines(mission: MissionDocument) -> Iterator[str]:
    brief = mission["brief"]
    yield f"mission  {mission['id']}"
    yield f"status   {mission['status']}"
    yield f"asked    {moment_text(mission['accepted_at'])} by {brief['user']}"
    for name, called in _WISHES.items():
        value = brief.get(name)
        if name == "deadline" and value is not None:
            value = moment_text(value)
        if value is not None and value != {}:
            shown = (
                value
                if isinstance(value, str | int | float)
                else ", ".join(f"{key} {_plain(each)}" for key, each in value.items())
            )
            yield f"{called.ljust(8)} {shown}"
    for each in brief.get("attachments", ()):
        yield f"file     {each['name']} ({each['sha256'][:12]})"
    for outcome in mission.get("outcomes", ()):
        said = f": {outcome['why']}" if "why" in outcome else ""
        yield f"outcome  {outcome['act'].replace('_', ' ')} ({outcome['value']:+.1f}) by {outcome['by']}{said}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _times(states: Sequence[StateDocument]) -> Iterator[str]:
    """Tell the time of each state: from its beginning to that of the next one of the same mind."""
    minds: dict[str, list[StateDocument]] = {}
    for step in states:
        minds.setdefault(step.get("path", ""), []).append(step)
    for path, steps in minds.items():
        took = [
            f"{one['state']} {(moment(after['at']) - moment(one['at'])).total_seconds():.1f} s"
            for one, after in pairwise(steps)
        ]
        if took:
            yield f"took     {f'{path}: ' if path else ''}{', '.join(took)}"


def _calls(calls: Sequence[PromptDocument]) -> Iterator[str]:
    """List calls, a line each, in the order in which they were made."""
    if not calls:
        return
    rows = []
    for call in calls:
        tokens, response = call["tokens"], call["response"] or {}
        seconds = response.get("total_seconds")
        rows.append(
            [
                call_name(call),
                call["state"],
                str(tokens.get("prompt", "?")),
                str(tokens.get("answer", "?")),
                "?" if seconds is None else f"{seconds:.1f}",
                call["model"] or "outside",
            ]
        )
    yield ""
    yield table(rows, ("call", "state", "prompt", "answer", "seconds", "model"))


def call_name(call: PromptDocument) -> str:
    """Return a call's path, after the selector of the method that it writes if there is one."""
    return f"{call['method'].rpartition('.')[2]}: {call['path']}" if "method" in call else call["path"]


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def find_calls(calls: Sequence[PromptDocument], name: str) -> list[PromptDocument]:
    """Return the calls that have a name in their path or in their method; NotFound where none has."""
    found = [call for call in calls if name.lower() in call_name(call).lower()]
    if not found:
        there = ", ".join(call_name(call).removesuffix("#0") for call in calls) or "none"
        raise NotFound(f"no call of this mission has {name!r} in its path", field="call", remedy=f"Its calls: {there}.")
    return found


def prompts_text(calls: Sequence[PromptDocument], focus: Sequence[FocusDocument] = ()) -> str:
    """Write every call's exact prompt, and what it was not shown; signs in it that cannot be seen are named."""
    omitted = {each["path"]: each["omitted"] for each in focus if each["omitted"]}
    lines = []
    for call in calls:
        lines.append(
            f"\n=== {call_name(call)} ({call['state']}, {call['model'] or 'outside'}{_tokens(call['tokens'])})"
        )
        lines += [f"--- {message['role']}\n{message['content']}" for message in call["messages"]]
        if call.get("erased"):
            lines.append("--- the words of this call are erased; their digests are in the journal")
            continue
        path = call["path"].partition("/again")[0]
        if path in omitted and "method" not in call:
            lines.append(f"--- not shown: {count_text(omitted[path], 'further sentence')} of the documents")
        if "outside" in call:
            lines.append(
                f"--- asked of the world\n{_as_json(call['outside'])}\n--- what came\n{_as_json(call['response'])}"
            )
            continue
        if "input" in call:
            lines.append(f"--- embedded\n{call['input']}")
            continue
        response = call["response"] or {}
        if response.get("thinking"):
            lines.append(f"--- thoughts, which are no part of the answer\n{response['thinking']}")
        lines.append(f"--- answer\n{response.get('text', 'none yet')}")
    return reveal("\n".join(lines))


def _tokens(tokens: Mapping[str, object]) -> str:
    """Write how many tokens went in and came out, as far as that is known."""
    return f", {tokens.get('prompt', '?')} -> {tokens.get('answer', '?')} tokens" if tokens else ""


def history_text(page: ConversationPage) -> str:
    """Write a page of turns, word for word, with the summaries that stand for older ones in prompts."""
    files = ", ".join(each["name"] for each in page["files"])
    lines = [f"{page['conversation']}: {count_text(page['count'], 'turn')}{f', with {files}' if files else ''}"]
    for each in page["turns"]:
        lines += ["", f"{each['position']}. {each['mission']}, {local_time(each['at'])}", wrap(each["question"])]
        lines += [f"   {', '.join(each['personas'])}:", wrap(each["answer"])]
    if page["next"] is not None:
        lines += ["", f"The next is {page['next']}."]
    if page["compactions"]:
        lines += ["", "In prompts these replace older turns:"]
    for made in page["compactions"]:
        lines += [
            f"   turns {made['turns'][0]} to {made['turns'][1]}, by {made['by']}:",
            wrap(made["text"], "     "),
        ]
    return "\n".join(lines)


def compacted_text(result: Mapping[str, Any], cost: str) -> str:
    """Write what a compaction made."""
    covered, whole = result["covered"], result["turns"]
    stands = f"{count_text(result['summaries'], 'summary').replace('summarys', 'summaries')} of turns 1 to {covered}"
    done = f"{stands} of {whole}; {count_text(len(result['made']), 'piece')} made, {cost}." if covered else ""
    return " ".join(each for each in (done, result["note"]) if each)


def recalled_text(provenance: ProvenanceDocument, compaction: str | None) -> str:
    """Write which turns the last answer was shown, and in what form."""
    recalled = provenance["recalled"]
    turns = [str(each["turn"]) if each["turn"] else each["mission"] for each in recalled if "turn" in each]
    views = [each for each in recalled if "turns" in each]
    lines = [f"word for word: {', '.join(turns) or 'no turn'}"]
    lines += [
        f"{'a summary' if each['by_model'] else 'first sentences'} of turns {each['turns'][0]} to {each['turns'][1]}"
        for each in views
    ]
    lines.append(f"left out: {count_text(provenance['omitted']['turns'], 'turn')}")
    if compaction is not None:
        lines.append(f"older turns are being compacted by {compaction}")
    return "\n".join(lines)


#: Lines of a screen that the tree may take: the prompt and the notes have the others.
SCREEN: Final = 21
#: Things below one, and levels, the most first: rather all things than all levels, but three levels if possible.
_MOST: Final = (30, 16, 12, 9, 7, 6, 5, 4, 3, 2, 1)
_DEPTHS: Final = (12, 8, 6, 5, 4, 3)
_SHAPES: Final = (*product(_MOST, _DEPTHS), *product(_MOST, (2,)))
#: Cells that a node's text has at least, before when it was is shown.
_TEXT: Final = 10
#: Kinds whose reference says more than their text.
_NAMED: Final = frozenset({"mission", "memory", "method", "slot", "sentence"})


def tree_text(found: WhyNode, width: int, *, whole: bool = False) -> str:
    """Write a tree; unless `whole`, with as many branches as fit a screen."""
    if whole:
        return "\n".join(_lines(found, width, most=10**6, depth=10**3))
    shapes = (list(_lines(found, width, most, depth)) for most, depth in _SHAPES)
    lines = next((each for each in shapes if len(each) <= SCREEN), [])
    return "\n".join(lines or list(_lines(found, width, 1, 1)))


def _lines(node: WhyNode, width: int, most: int, depth: int) -> Iterator[str]:
    """Yield the lines of a tree; a sentence at its root is shown whole, since another may have been quoted."""
    if node["kind"] == "sentence":
        yield from (cut(line, width) for line in lay_out(_line(node, 10**6), width).splitlines())
    else:
        yield _line(node, width)
    yield from _branches(node["because"], "", width, most, depth - 1)


def _branches(nodes: list[WhyNode], indent: str, width: int, most: int, depth: int) -> Iterator[str]:
    """Yield the lines of what is below a node, and of how much is left out."""
    shown = nodes if len(nodes) <= most else _choose(nodes, most)
    left = len(nodes) - len(shown)
    for place, node in enumerate(shown):
        last = place == len(shown) - 1 and not left
        hidden = f" (+{_count(node['because'])})" if depth == 1 and node["because"] else ""
        yield f"{indent}{'└─ ' if last else '├─ '}" + _line(node, width - len(indent) - 3, hidden)
        below = f"{indent}{'   ' if last else '│  '}"
        if depth > 1:
            yield from _branches(node["because"], below, width, most, depth - 1)
    if left:
        yield f"{indent}└─ … {left} more (--whole)"


def _choose(nodes: list[WhyNode], most: int) -> list[WhyNode]:
    """Return so many nodes, of each kind the first before a second of any."""
    seen: dict[str, int] = {}
    ranked = []
    for place, node in enumerate(nodes):
        seen[node["kind"]] = seen.get(node["kind"], 0) + 1
        ranked.append((seen[node["kind"]], place))
    return [nodes[place] for place in sorted(place for _, place in sorted(ranked)[:most])]


def _count(nodes: list[WhyNode]) -> int:
    return sum(1 + _count(node["because"]) for node in nodes)


def _line(node: WhyNode, width: int, hidden: str = "") -> str:
    """Write a node on one line: its kind, its name, its text, when, and how much behind it is hidden.

    On a narrow line the moment gives way to the text, and the rest to the line's end.
    """
    at = f" [{local_time(node['at'])}]" if "at" in node else ""
    if width - len(at + hidden) < _TEXT:
        at = ""
    at += hidden if len(at + hidden) < width else ""
    name = f" {node['ref']}" if node["kind"] in _NAMED and node.get("ref", "") not in node["text"] else ""
    tid = f" {node['tid']}" if "tid" in node else ""
    text = f"{node['kind']}{name}: {' '.join(node['text'].split())}{tid}"
    return cut(reveal(text), max(1, width - len(at))) + at
