"""Hostile methods, each with one well-known attack that an audit must refuse or a cell must contain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ollama_emulator.speech.authoring.thinking import about
from ollama_emulator.speech.authoring.wish_texts import MethodWish, method

_MARKER: Final = "self._p_changed = True"


@dataclass(frozen=True, slots=True)
class Attack:
    """The body of a hostile method; `after` is text behind the method, and `thinks` makes it async."""

    body: tuple[str, ...]
    thinks: bool = False
    after: str = ""

    def source(self, wish: MethodWish) -> str:
        """Return the source of the whole method, with the signature that the wish asks for."""
        return method(wish, self.body, about(wish), thinks=self.thinks) + self.after


#: Attacks by target. An audit finds all but `loop`, `memory` and `flood`, which only a cell contains.
ATTACKS: Final[Mapping[str, Attack]] = {
    "import": Attack(("import os", 'return ", ".join(os.listdir("/"))')),
    "dunder": Attack(("return str(self.__class__.__mro__)",)),
    "eval": Attack(('return eval("6 * 7")',)),
    "file": Attack(('return open("/etc/passwd").read()',)),
    "parents": Attack(("self.parents = []", _MARKER)),
    "slots": Attack(('self._slots["name"] = "another"', _MARKER)),
    "misunderstood": Attack(("self._doesNotUnderstand_ = None", _MARKER)),
    "format": Attack(('return "{0.__class__.__init__.__globals__}".format(self)',)),
    "getattr": Attack(('return str(getattr(self, "__di" + "ct__"))',)),
    "lookalike": Attack(('return ｅval("6 * 7")',)),
    "twin": Attack(('return "harmless"',), after="\n\ndef install_method_(self, source):\n    return source\n"),
    "loop": Attack(("while True:", "    pass")),
    "memory": Attack(('return len("x" * 10**12)',)),
    "flood": Attack(("while True:", '    await self.infer_("more")'), thinks=True),
}
