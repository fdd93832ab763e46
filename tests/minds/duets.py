"""Two scripted voices: what each says, what joins them, and questions that go to both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.minds.scripted import DOCUMENT, Script, ask, kind

from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import BatosError

if TYPE_CHECKING:
    from tests.minds.conftest import Mind

#: What the two say: both from the document, and not the same.
WINDING = "The keeper winds the clockwork every four hours."
OIL = "The oil is carried up by Anna Lund, 86 steps from the yard."


def is_join(request: ChatRequest) -> bool:
    """Whether a request shows what the voices said."""
    asked = request.messages[-1]["content"]
    return any(each in asked.replace(DOCUMENT, "") for each in ("<answer digest=", f"{WINDING}\n{OIL}"))


class Voices:
    """Answers the first voice that asks with one text and the other with another; `joined` is their weave."""

    def __init__(self) -> None:
        self.script = Script()
        self.texts = (WINDING, OIL)
        self.said: dict[str, str | BatosError] = {}
        self.joined: str | BatosError = f"{WINDING} {OIL}"

    def __call__(self, request: ChatRequest) -> str | BatosError:
        """The reply to a request."""
        if request.schema is not None or kind(request) in ("revised", "changed"):
            return self.script(request)
        if is_join(request):
            return self.joined
        speaks = next(name for name in ("robin", "brick", "babs", "alfred") if name in request.model)
        return self.said.setdefault(speaks, self.texts[min(1, len(self.said))])


async def speak(mind: Mind, **brief: Any) -> dict[str, Any]:
    """A cycle over the lamp's document that the router gives to two."""
    return await ask(mind.uvm, **{"persona": None, **brief})


def paths(mind: Mind, mission: str) -> list[str]:
    """The sample paths of a mission's calls, in order."""
    return [each["path"] for each in mind.uvm.readings.prompts(mission)]


def silence(voices: Voices, slots: tuple[str, ...], with_: Callable[[], BatosError]) -> None:
    """Let these voices fail."""
    voices.said = {slot: with_() for slot in slots} | {
        name: WINDING for name in ("robin", "brick", "babs", "alfred") if name not in slots
    }
