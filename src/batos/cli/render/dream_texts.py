"""Dreams as text: the list, and what one would change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from batos.cli.render.short_names import local_time
from batos.terminal.layout import reveal, table


def list_text(told: Mapping[str, Any]) -> str:
    """Write a list of dreams."""
    rows = [[each["dream"], each["state"], local_time(each["at"]), each["text"]] for each in told["dreams"]]
    return table(rows, ("dream", "state", "asked", "question")) if rows else 'There is no dream: batos dream new "..."'


def difference_text(told: Mapping[str, Any]) -> str:
    """Write what a dream would change, a slot a line."""
    lines = [f"dream    {told['dream']} ({told['state']})", f"question {told['text']}", f"read at  {told['read_at']}"]
    for each in told["slots"]:
        conflict = f"   ! {each['conflict']}" if each["conflict"] else ""
        change = f"{_short(each['before'])} -> {_short(each['after'])}"
        lines.append(f"slot     {each['object']}.{each['slot']}: {change}{conflict}")
    lines += [f"tool     {each}" for each in told["tools"]]
    lines += [f"ran      {each}" for each in told["methods"]]
    lines.append(f"adds     the mission{''.join(f', {each}' for each in told['contributions'])}")
    if told["conflicts"]:
        lines.append("It cannot be promoted: dream it again.")
    return reveal("\n".join(lines))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
