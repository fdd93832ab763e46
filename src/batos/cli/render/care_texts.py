"""The texts on faults of the image, and on what was done about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from batos.protocol.care_documents import ErasedPage, PackedPage
from batos.protocol.server_documents import StoredSizes
from batos.terminal.console import count_text, size
from batos.terminal.layout import cut, plain
from batos.terminal.short_names import moment_text

#: Faults that are told one by one.
_TOLD: Final = 50
#: Characters of what was named.
_LINE: Final = 60
#: The name of one thing of a kind.
_ONE: Final = {"memories": "memory", "conversations": "turns", "slots": "slot", "methods": "method"}


def verified_text(told: Mapping[str, Any]) -> str:
    """List the faults of an image, with what a repair would do."""
    faults = told["faults"]
    if not faults:
        return "The image is sound: every record can be read, and all lists and indexes agree."
    able = sum(each["can_repair"] for each in faults)
    tail = f"{count_text(len(faults), 'fault')}. `batos repair` mends {able}; make a backup first."
    return "\n".join([*_fault_lines(faults), tail])


def _fault_lines(faults: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in faults[:_TOLD]:
        yield f"{each['kind']}: {plain(each['where'])}: {plain(each['what'])}"
        yield f"    repair: {each['repair']}"
    if len(faults) > _TOLD:
        yield f"and {len(faults) - _TOLD} more; --json lists all."


def upgraded_text(told: Mapping[str, Any]) -> str:
    """List the steps of an upgrade that were made, or would be, and how it is undone."""
    if not told["steps"]:
        return f"The image has format {told['format']}, which is this version's: nothing is to be done."
    verb = "would become" if told["dry_run"] else "became"
    lines = [f"Format {told['format']} {verb} {told['known']}:"]
    lines += [f"    {each['format']}  {each['what']}" for each in told["steps"]]
    if told["backup"]:
        place = "The backup before it would be" if told["dry_run"] else "The backup before it is"
        lines += [f"{place} in {told['backup']}; `batos restore` undoes the upgrade with it."]
    return "\n".join(lines)


def packed_text(told: PackedPage) -> str:
    """Tell how far back the mind goes now, and what that freed."""
    freed = _sum(told["before"]) - _sum(told["after"])
    lines = [f"Past states are kept from {moment_text(told['until'])} on; {size(max(0, freed))} freed."]
    if told["held_by"]:
        lines.append(f"{told['held_by']} has not ended, and may still read what is newer.")
    if told["erased"]:
        lines.append(f"The words of {count_text(told['erased'], 'call')} are erased: their missions ended long ago.")
    now = told["after"]
    lines.append(f"image {size(now['bytes'])}, journal {size(now['journal_bytes'])}, blobs {size(now['blob_bytes'])}")
    return "\n".join(lines)


def repaired_text(told: Mapping[str, Any]) -> str:
    """List what was mended, or would be, and what is left."""
    if not told["mended"] and not told["left"]:
        return "Nothing is to be repaired."
    if told["dry_run"]:
        return "\n".join([*_fault_lines(told["mended"]), "Nothing is changed."])
    lines = [*_fault_lines(told["mended"]), f"{count_text(len(told['mended']), 'fault')} mended."]
    if told["left"]:
        lines += [*_fault_lines(told["left"]), f"{count_text(len(told['left']), 'fault')} left."]
    return "\n".join(lines)


def erased_text(told: ErasedPage) -> str:
    """List what was erased, or would be, and what may still have the words, with the remedy of each."""
    target = cut(" ".join(plain(told["target"]).split()), _LINE)
    lines = [f"{'would go' if told['dry_run'] else 'erased'}   {told['kind']} {target}"]
    lines += [f"  mission  {name}: {plain(why)}" for name, why in told["missions"].items()]
    for kind in ("memories", "conversations", "slots", "methods"):
        lines += [f"  {_ONE[kind].ljust(8)} {plain(each)}" for each in told[kind]]
    if told["dry_run"]:
        return "\n".join([*lines, "Nothing is changed. Calls and lines of logs that quote it would go too."])
    counts = ((told["calls"], "call"), (told["files"], "file"), (told["objects"], "object"), (told["lines"], "line"))
    lines.append(f"  and      {', '.join(count_text(*each) for each in counts)}. The history before is cut.")
    lines += [f"  found    {plain(each)}" for each in told["found"][:_TOLD]]
    for each in told["left"]:
        lines.append(f"left     {plain(each['place'])}: {plain(each['what'])}")
        lines.append(f"    remedy: {plain(each['remedy'])}")
    return "\n".join(lines)


def _sum(sizes: StoredSizes) -> int:
    return sizes["bytes"] + sizes["journal_bytes"] + sizes["blob_bytes"]
