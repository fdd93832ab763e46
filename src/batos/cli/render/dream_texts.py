"""Dreams as text: the list, and what one would change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from batos.protocol.dream_documents import DreamDiff, DreamList
from batos.protocol.mission_documents import ReplayDocument
from batos.terminal.console import count_text
from batos.terminal.layout import reveal, table
from batos.terminal.short_names import local_time


def list_text(told: DreamList) -> str:
    """Write a list of dreams."""
    rows = [[each["dream"], each["state"], local_time(each["at"]), each["text"]] for each in told["dreams"]]
    return table(rows, ("dream", "state", "asked", "question")) if rows else 'There is no dream: batos dream new "..."'


def difference_text(told: DreamDiff) -> str:
    """Write what a dream would change, a slot a line."""
    lines = [f"dream    {told['dream']} ({told['state']})", f"question {told['text']}", f"read at  {told['read_at']}"]
    lines += _answers(told)
    for each in told["slots"]:
        conflict = f"   ! {each['conflict']}" if each["conflict"] else ""
        change = f"{_short(each['before'])} -> {_short(each['after'])}"
        lines.append(f"slot     {each['object']}.{each['slot']}: {change}{conflict}")
    for made in told["made"]:
        conflict = f"   ! {made['conflict']}" if made["conflict"] else ""
        asks = ", after a person's yes" if made["asks"] else ""
        lines.append(f"method   {made['method']} is made{asks}{conflict}")
        lines += [f"         {line}" for line in made["source"].splitlines()]
    lines += [f"tool     {each}" for each in told["tools"]]
    lines += [f"ran      {each}" for each in told["methods"]]
    lines += [f"effect   {each}, which is not released" for each in told["effects"]]
    lines.append(f"adds     the mission{''.join(f', {each}' for each in told['contributions'])}")
    if told["conflicts"]:
        lines.append("It cannot be promoted: dream it again.")
    elif told["state"] == "open":
        dream = told["dream"]
        lines.append(f"`batos dream promote {dream}` does this, `batos dream drop {dream}` throws it away.")
    return reveal("\n".join(lines))


def _answers(told: DreamDiff) -> Iterator[str]:
    """Yield the answer of a dream, and below it that of the mind itself to the same question."""
    answer, base = told.get("answer"), told.get("base")
    yield f"answer   {_indent(answer)}"
    if base is None:
        yield "base     the mind itself was not asked this"
    elif base["answer"] == answer:
        yield f"base     the same, in {base['mission']}"
    else:
        yield f"base     {_indent(base['answer'])} ({base['mission']})"


def _indent(answer: Any) -> str:
    return "none" if answer is None else "\n         ".join(str(answer).splitlines())


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def replay_text(told: ReplayDocument, answered: bool) -> str:
    """Write what is otherwise in a replay, which has an answer or failed."""
    calls = f"{len(told['same'])} from the journal, {len(told['made'])} made anew, {len(told['gone'])} not needed"
    lines = [f"replay   {told['mission']} of {told['of']}", f"calls    {calls}"]
    lines += [f"made     {each}" for each in told["made"]]
    if told["erased"]:
        lines.append(
            f"erased   the words of {count_text(told['erased'], 'call')} are gone, and none was served for them"
        )
    for name in ("personas", "models"):
        before, after = (", ".join(each) or "none" for each in told[name])
        lines += [f"{name.ljust(8)} {before} -> {after}"] if before != after else []
    if told["carried"][0] != told["carried"][1]:
        lines.append(f"carried  {told['carried'][0]} -> {told['carried'][1]} sentences")
    lines += [f"methods  {each}" for each in told["methods"]]
    lines += [f"recalled {each}" for each in told["recalled"]]
    lines += [f"written  {each}" for each in told["written"]]
    lines += [f"answer   {each}" for each in told["answer"]]
    if not told["answer"]:
        lines.append("answer   the same" if answered else "answer   none: the replay has not ended with one")
    return reveal("\n".join(lines))
