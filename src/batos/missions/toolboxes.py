"""The tools of a mission, joined from all that give some: look-ups, programs and files, objects that were made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from batos.agency.toolbox import JoinedTools, Toolbox
from batos.image.roots import Root
from batos.inference.session import Session
from batos.protocol.brief import MissionBrief

#: Gives tools to a mission by its snapshot, its brief and its session; None: it has none of that kind.
MakesToolbox: TypeAlias = Callable[[Root, MissionBrief, Session], Toolbox | None]


def join_toolboxes(makers: Sequence[MakesToolbox], root: Root, brief: MissionBrief, session: Session) -> Toolbox | None:
    """Return the tools of a mission as one toolbox; None where it has none."""
    found = [each for make in makers if (each := make(root, brief, session)) is not None]
    return JoinedTools(found) if found else None
