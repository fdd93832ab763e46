"""The tools of a mission, joined from all that give some: look-ups, programs and files, objects that were made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from batos.agency.toolbox import JoinedTools, Toolbox
from batos.image.roots import Root
from batos.inference.outside_calls import OutsideCalls
from batos.protocol.brief import MissionBrief

#: Gives tools to a mission by its snapshot, its brief and its calls to the world; None: it has none of that kind.
MakesToolbox: TypeAlias = Callable[[Root, MissionBrief, OutsideCalls], Toolbox | None]


def join_toolboxes(
    makers: Sequence[MakesToolbox], root: Root, brief: MissionBrief, outside: OutsideCalls
) -> Toolbox | None:
    """Return the tools of a mission as one toolbox; None where it has none."""
    found = [each for make in makers if (each := make(root, brief, outside)) is not None]
    return JoinedTools(found) if found else None
