"""The texts on what is remembered: what became of files, what was found, a line for each document, one in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from batos.cli.render.short_names import local_time, short
from batos.terminal.console import count_text, size
from batos.terminal.layout import plain, table, wrap

#: Files that were skipped and are told one by one.
_TOLD: Final = 10
#: Characters of a part in a list.
_GLANCE: Final = 300


def remembered_text(found: Mapping[str, Any]) -> str:
    """Tell what became of each document, in numbers where there are many."""
    lines = found["remembered"]
    states = [each["state"] for each in lines]
    told = [f"{states.count(state)} {state}" for state in ("new", "replaced", "known") if state in states]
    chunks = sum(each["chunks"] for each in lines if each["state"] != "known")
    text = [f"Remembered: {', '.join(told) or 'nothing'}; {count_text(chunks, 'part')} added."]
    if len(lines) == 1:
        text = [f"{_STATES[lines[0]['state']]}: {plain(lines[0]['title'])} ({lines[0]['document']})."]
    skipped = found["skipped"]
    text += [f"Skipped {plain(each['source'])}: {plain(each['reason'])}." for each in skipped[:_TOLD]]
    if len(skipped) > _TOLD:
        text.append(f"And {count_text(len(skipped) - _TOLD, 'more file')} skipped; --json lists all.")
    vectors = found.get("vectors") or {}
    if vectors.get("reason"):
        missing = count_text(vectors["missing"], "part")
        text.append(f"{missing} found by words alone, until there are vectors: {plain(vectors['reason'])}.")
    return "\n".join(text)


_STATES: Final = {"new": "Remembered", "replaced": "Remembered in the place of its older content", "known": "Known"}


def recalled_text(found: Mapping[str, Any]) -> str:
    """Show each part that was found: where it stands, how well it matches and why, and its words."""
    if not found["recalled"]:
        return "Nothing that is remembered has a word of it."
    blocks = []
    for each in found["recalled"]:
        trust = "" if each["trust"] == "user" else f", {each['trust']}"
        standing = "" if each["standing"] == "current" else f", {each['standing'].upper()}"
        place = f"{each['document']}, {local_time(each['at'])}{trust}{standing}"
        head = f"{plain(each['title'])}  [{place}; {plain(each['why'])}]"
        words = " ".join(each["text"].split())
        lines = [head, wrap(words if len(words) <= _GLANCE else f"{words[:_GLANCE]}…")]
        if path := each["path"]:
            lines.append(wrap(f'reached from {plain(path["title"])}: "{plain(" ".join(path["sentence"].split()))}"'))
        blocks.append("\n".join(lines))
    shown = len(found["recalled"])
    tail = (
        [] if shown == found["of"] else [f"{shown} of {count_text(found['of'], 'part')} that match; --all shows all."]
    )
    note = [f"Found {plain(found['note'])}."] if found.get("note") else []
    return "\n\n".join([*blocks, *tail, *note])


def listing_text(found: Mapping[str, Any]) -> str:
    """List documents, a line each, and count them."""
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
            each["title"],
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
    ]
    parts = [f"[{each['span'][0]}-{each['span'][1]}]\n{plain_lines(each['text'])}" for each in found["parts"]]
    return "\n\n".join(["\n".join(head), *parts])


def plain_lines(text: str) -> str:
    """Return a text without what a terminal would take for an order, line by line."""
    return "\n".join(plain(each) for each in text.splitlines())


def forgotten_text(found: Mapping[str, Any]) -> str:
    """Tell which documents are gone, and what still holds their bytes."""
    lines = [
        f"Forgotten: {plain(each['title'])} ({count_text(each['chunks'], 'part')})." for each in found["forgotten"]
    ]
    return "\n".join([*lines, found["note"]])
