"""The texts on faults of the image, and on what was done about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from batos.terminal.console import count_text
from batos.terminal.layout import plain

#: Faults that are told one by one.
_TOLD: Final = 50


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
