"""The texts on what is remembered: what became of files, what was found, a line for each document, one in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Any, Final

from batos.memory.table_heads import head_within
from batos.terminal.console import count_text, size
from batos.terminal.layout import plain, table, wrap
from batos.terminal.short_names import local_time, short, title_with_path

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
        standing = "" if each["standing"] == "current" else f", {_standing_text(each)}"
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


def _standing_text(each: Mapping[str, Any]) -> str:
    """Tell that a memory is history, and since when which other one is in its place."""
    by = f" by {each['superseded_by']}" if each["superseded_by"] else ""
    since = f" since {local_time(each['valid_to'])}" if each["valid_to"] else ""
    return f"{each['standing'].upper()}{by}{since}"


def _glance(heading: str, text: str) -> str:
    """Return the beginning of a part, line by line, below the head of the table that it is of."""
    lines = [*head_within(heading).splitlines(), *text.splitlines()]
    words = "\n".join(line.rstrip() for line in lines if line.strip())
    words = words if len(words) <= _GLANCE else f"{words[:_GLANCE]}…"
    return "\n".join(map(wrap, words.splitlines()))


def listing_text(found: Mapping[str, Any], *, pinned: bool = False, scope: str | None = None) -> str:
    """List documents, a line each, and count them; where there are none, say what was asked for."""
    if not found["memories"] and pinned:
        return "Nothing is pinned. `batos pin ID` pins a memory, and `batos memories` lists them."
    if not found["memories"] and scope:
        return f"Nothing is remembered in the scope {plain(scope)}. `batos memories` lists all scopes."
    if not found["memories"]:
        return "Nothing is remembered. Begin with `batos remember FILE`."
    names = short([each["document"] for each in found["memories"]])
    rows = [
        [
            names[each["document"]],
            each["kind"],
            local_time(each["at"]),
            each["scope"],
            str(each["chunks"]),
            size(each["size"]),
            title_with_path(each["title"], each["source"]),
        ]
        for each in found["memories"]
    ]
    text = table(rows, ("document", "type", "since", "scope", "parts", "size", "title"), whole=(0,))
    return f"{text}\n\n{count_text(found['documents'], 'document')}, {count_text(found['chunks'], 'part')}."


def whole_text(found: Mapping[str, Any]) -> str:
    """Show a document with all its parts."""
    head = [
        f"{plain(found['title'])} ({found['document']})",
        f"since {local_time(found['at'])}, scope {found['scope']}, trust {found['trust']}, {size(found['size'])}",
        *([f"from {plain(found['source'])}"] if found["source"] else []),
        *_folded_lines(found),
    ]
    if found["standing"] != "current":
        head.append(_standing_text(found))
    parts = [f"[{each['span'][0]}-{each['span'][1]}]\n{_part_text(each)}" for each in found["parts"]]
    return "\n\n".join(["\n".join(head), *parts])


def _part_text(part: Mapping[str, Any]) -> str:
    """Show a part, and below it what does not hold in it. Only words of the document are indented."""
    lines = [indent(plain_lines(part["text"]), "  ")]
    for mark in part.get("marks", ()):
        begin = part["span"][0]
        said = " ".join(part["text"][mark["span"][0] - begin : mark["span"][1] - begin].split())
        why = f": {mark['reason']}" if mark["reason"] else f" by {mark['by']}" if mark["by"] else ""
        lines.append(f'({mark["standing"]}{plain(why)}: "{plain(said)}")')
    return "\n".join(lines)


def _folded_lines(found: Mapping[str, Any]) -> list[str]:
    """Tell which summary stands for a document, or what a summary stands for."""
    lines = [f"stands for {plain(each['title'])} ({each['document']})" for each in found.get("stands_for", ())]
    if lines:
        lines.append(f"`batos curate --undo {found['document']}` brings these back")
    if above := found.get("summarised_by"):
        lines.append(f"summarised in {above}; `batos curate --undo {above}` brings it back")
    return lines


def plain_lines(text: str) -> str:
    """Return a text without what a terminal would take for an order, line by line."""
    return "\n".join(plain(each) for each in text.splitlines())


def forgotten_text(found: Mapping[str, Any]) -> str:
    """Tell which documents are gone, and what still holds their bytes."""
    lines = [
        f"Forgotten: {plain(each['title'])} ({count_text(each['chunks'], 'part')})." for each in found["forgotten"]
    ]
    return "\n".join([*lines, found["note"]])
