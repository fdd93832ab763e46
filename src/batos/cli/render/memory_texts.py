"""The texts on what is remembered: what became of files, what was found, a line for each document, one in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from batos.memory.table_heads import head_within
from batos.terminal.console import count_text
from batos.terminal.layout import plain, wrap
from batos.terminal.short_names import local_time, title_with_path
from batos.verbs.memory_verbs import standing_text

#: Files that were skipped and are told one by one.
_TOLD: Final = 10
#: Characters of a part in a list.
_GLANCE: Final = 300


def remembered_text(found: Mapping[str, Any]) -> str:
    """Tell what became of each document, in numbers where there are many."""
    lines, counts = found["remembered"], found["counts"]
    told = [f"{counts[state]:,} {state}" for state in ("new", "replaced", "known") if counts[state]]
    parts = "1 part" if counts["parts"] == 1 else f"{counts['parts']:,} parts"
    text = [f"Remembered: {', '.join(told) or 'nothing'}; {parts} added."]
    if len(lines) == 1 and not found["more"]["remembered"]:
        text = [f"{_STATES[lines[0]['state']]}: {plain(lines[0]['title'])} ({lines[0]['document']})."]
    text += _read_in_part(lines)
    superseded = [name for each in lines for name in each.get("superseded", ())]
    flagged = [name for each in lines for name in each.get("flagged", ())]
    aside = [each for each in lines if each.get("standing", "current") in ("edited", "retracted")]
    for standing, why in (("retracted", "retracted"), ("edited", "edited by hand since")):
        if named := [each["document"] for each in aside if each["standing"] == standing]:
            shown = ", ".join(named[:_TOLD]) + (f" and {len(named) - _TOLD} more" if len(named) > _TOLD else "")
            text.append(
                f"Known and {why}, so that it is not recalled: {shown}. `batos memories restore ID` changes that."
            )
    if superseded:
        text.append(f"Superseded: {', '.join(map(plain, superseded))}. It stays as history: `batos recall --history`.")
    if flagged:
        text.append(f"Marked, since they no longer hold as they stand: {', '.join(map(plain, flagged))}.")
    if missing := found.get("not_found"):
        text.append(f"No current fact is {plain(missing[0])}: nothing was superseded by that name.")
    skipped = found["skipped"]
    text += [f"Skipped {plain(each['source'])}: {plain(each['reason'])}." for each in skipped[:_TOLD]]
    if counts["skipped"] > _TOLD:
        text.append(f"And {count_text(counts['skipped'] - _TOLD, 'more file')} skipped; --json lists them.")
    left_out = [f"{count} {why}" for why, count in found["left_out"].items()]
    if left_out:
        text.append(f"Left out: {', '.join(left_out)}. --all takes them too.")
    vectors = found.get("vectors") or {}
    if vectors.get("reason") and vectors["missing"]:
        missing = count_text(vectors["missing"], "part")
        text.append(f"{missing} found by words alone, until there are vectors: {plain(vectors['reason'])}.")
    return "\n".join(text)


def _read_in_part(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each document of whose file not all could be read."""
    found = [each for each in lines if each.get("left_out")]
    for each in found[:_TOLD]:
        yield f"Read in part: {plain(each['title'])}: {plain('; '.join(each['left_out']))}."
    if len(found) > _TOLD:
        yield f"And {count_text(len(found) - _TOLD, 'more document')} read in part; --json lists them."


_STATES: Final = {"new": "Remembered", "replaced": "Remembered in the place of its older content", "known": "Known"}


def recalled_text(found: Mapping[str, Any], filters: Sequence[str] = ()) -> str:
    """Show each part that was found: where it stands, how well it matches and why, and its words.

    `filters` are the options by which less was looked for.
    """
    if not found["recalled"]:
        without = f"; {', '.join(filters)} left out the rest" if filters else ""
        return f"Nothing that is remembered has a word of it{without}."
    blocks = []
    for each in found["recalled"]:
        trust = "" if each["trust"] == "user" else f", {each['trust']}"
        standing = "" if each["standing"] == "current" else f", {standing_text(each)}"
        standing += f" in {each['summarised_by']}" if each.get("summarised_by") else ""
        place = f"{each['document']}, {local_time(each['at'])}{trust}{standing}"
        head = plain(title_with_path(each["title"], each["source"]))
        lines = [head, wrap(f"[{place}; {plain(each['why'])}]"), _glance(each["heading"], each["text"])]
        if path := each["path"]:
            lines.append(wrap(f'reached from {plain(path["title"])}: "{plain(" ".join(path["sentence"].split()))}"'))
        blocks.append("\n".join(lines))
    shown = len(found["recalled"])
    tail = (
        [] if shown >= found["of"] else [f"{shown} of {count_text(found['of'], 'part')} that match; --all shows all."]
    )
    note = [f"Found {plain(found['note'])}."] if found.get("note") else []
    return "\n\n".join([*blocks, *tail, *note])


def _glance(heading: str, text: str) -> str:
    """Return the beginning of a part, line by line, below the head of the table that it is of."""
    lines = [*head_within(heading).splitlines(), *text.splitlines()]
    words = "\n".join(line.rstrip() for line in lines if line.strip())
    words = words if len(words) <= _GLANCE else f"{words[:_GLANCE]}…"
    return "\n".join(map(wrap, words.splitlines()))
