"""Tell before an answer what tools did not bring: one computed sentence in the language of the question."""

from __future__ import annotations

from typing import Final

from batos.gate import languages
from batos.minds.context import MindContext
from batos.minds.tools import choice, words
from batos.minds.tools.toolboxes import tools_of

#: The persona whose work is to look things up.
SEEKER: Final = "BABS"


def lead_of(context: MindContext) -> str:
    """Return what is told before an answer: that tools failed, or that who looks things up was given none; or ""."""
    trace, asked = context.trace, context.mission.brief.text
    language = languages.guess(asked) or "English"
    said = f"said_{language}" if f"said_{language}" in words.sections() else "said_English"
    if trace.tools:
        failed = {each["tool"]: each["failure"] for each in trace.tools if each["failure"]}
        if has_brought(context) or not failed:
            return ""
        return " ".join(words.read_list(said, "failed").format(tool=tool, why=why) for tool, why in failed.items())
    has_other = context.mission.passages or trace.memory.state == "found" or trace.told
    if context.mission.route.personas[0] != SEEKER or has_other or context.mission.brief.message:
        return ""
    is_wanted = choice.asks_for_look(asked) and tools_of(context) is None
    return words.read_list(said, "none") if is_wanted else ""


def has_brought(context: MindContext) -> bool:
    """Test if a tool brought a text for a mission."""
    return any(not text["hit"] for each in context.trace.tools for text in each["texts"])
