"""Methods that no audit may accept, or no cell may suffer from, each by one well-known way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ollama_emulator.speech.authoring.thinking import about
from ollama_emulator.speech.authoring.wish_texts import MethodWish, method

_MARKER: Final = "self._p_changed = True"


@dataclass(frozen=True, slots=True)
class Attack:
    """The body of a method that means harm; `after` stands behind it, `thinks` where it awaits."""

    body: tuple[str, ...]
    thinks: bool = False
    after: str = ""

    def source(self, wish: MethodWish) -> str:
        """Return the whole method, under the wish's signature."""
        return method(wish, self.body, about(wish), thinks=self.thinks) + self.after


#: By what they reach for. Syntax gives away all but `loop`, `memory` and `flood`, which only a cell contains.
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
