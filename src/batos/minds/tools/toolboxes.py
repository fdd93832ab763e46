"""The tools of a mission: its look-ups and whatever else gives it some, joined once."""

from __future__ import annotations

from batos.agency.toolbox import JoinedTools
from batos.minds import look_ups
from batos.minds.context import MindContext


def tools_of(context: MindContext) -> JoinedTools | None:
    """Return all tools of a mission as one toolbox; None where it has none. The first call joins them."""
    joined = context.trace.toolbox
    if joined is None:
        made = (make(context) for make in (look_ups.toolbox_of, *context.io.toolboxes))
        joined = context.trace.keep_tools(JoinedTools(each for each in made if each is not None))
    return joined if joined.tools() else None
